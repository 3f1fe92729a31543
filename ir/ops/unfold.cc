// Windows as tensors: every window of the input beside the next (sliding_windows), and its transpose, which adds
// windows up where they overlap (overlap_add); each is the other's gradient. Fused into a reduction they cost no
// memory, and so average pooling and its like are built.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/pool.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- sliding_windows, overlap_add

// The shape [n, c, outputs..., taps...] of the windows of an input of shape `x`.
absl::StatusOr<Dims> Windowed(const OpCall& call, const Dims& x) {
  AGC_RETURN_IF_ERROR(CheckInts(call, "window", static_cast<int>(x.size()) - 2, 1));
  AGC_ASSIGN_OR_RETURN(const Window window, CheckedWindow(call, call.ints("window")));
  AGC_ASSIGN_OR_RETURN(const Ints out, WindowedExtents(call, window, Spatial(x)));
  Dims dims = {x[0], x[1]};
  dims.insert(dims.end(), out.begin(), out.end());
  dims.insert(dims.end(), window.kernel.begin(), window.kernel.end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", call.type(0).dtype, dims));
  return dims;
}

absl::StatusOr<Types> SlidingWindowsType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  AGC_ASSIGN_OR_RETURN(const Dims dims, Windowed(call, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, dims});
}

absl::StatusOr<Types> OverlapAddType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  const int rank = static_cast<int>(call.ints("window").size());
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 2 + 2 * rank));
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", rank, 0));
  const TensorType& x = call.type(0);
  TensorType type{x.dtype, {x.dims[0], x.dims[1]}};
  type.dims.insert(type.dims.end(), call.ints("input").begin(), call.ints("input").end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  AGC_ASSIGN_OR_RETURN(const Dims expected, Windowed(call, type.dims));
  if (x.dims == expected) return Types(type);
  return call.Error(absl::StrCat("operand 0 is ", ToString(x), ", but the windows of ", ToString(type.dims), " are ",
                                 ToString(expected)));
}

Expr SlidingWindowsAt(At& s, Index i) {
  const Window w = WindowOf(s, s.ints("window"));
  Point x = {i[0], i[1]};
  Expr inside = s.pool.Bool(true);
  for (int axis = 0; axis < w.rank(); ++axis) {
    const WindowPlace place = InputAt(w, axis, i[2 + axis], i[2 + w.rank() + axis], s.dim(0, 2 + axis));
    x.push_back(place.index);
    inside = And(inside, place.inside);
  }
  return s.Guard(
      inside, [&] { return s.Read(0, x); }, s.Number(0));
}

Expr OverlapAddAt(At& s, Index i) {
  const Window w = WindowOf(s, s.ints("window"));
  Ints readers;
  for (int axis = 0; axis < w.rank(); ++axis) readers.push_back(Readers(w, axis, FormOf(w, axis)));
  return s.Sum(readers, [&](Index k) {
    Point x = {i[0], i[1]}, tap;
    Expr inside = s.pool.Bool(true);
    for (int axis = 0; axis < w.rank(); ++axis) {
      const Reader r = OutputAt(w, axis, i[2 + axis], k[axis], s.dim(0, 2 + axis), FormOf(w, axis));
      inside = And(And(inside, r.inside), r.is_tap);
      x.push_back(r.index);
      tap.push_back(r.tap);
    }
    x.insert(x.end(), tap.begin(), tap.end());
    return s.Guard(
        inside, [&] { return s.Read(0, x); }, s.Number(0));
  });
}

Value OverlapAdd(const Rule& s, Value x, const Ints& input, const Window& window) {
  PoolAttrs attrs = AttrsOf(window);
  attrs.push_back({"input", input});
  return Emit("overlap_add", {x}, attrs, s.op.loc);
}
Value SlidingWindows(const Rule& s, Value x, const Window& window) {
  return Emit("sliding_windows", {x}, AttrsOf(window), s.op.loc);
}

void SlidingWindowsVjp(Vjp& s) { s.dx[0] = OverlapAdd(s, s.g, Spatial(s.x[0].dims()), WindowOf(s, s.ints("window"))); }
void OverlapAddVjp(Vjp& s) { s.dx[0] = SlidingWindows(s, s.g, WindowOf(s, s.ints("window"))); }

// ---------------------------------------------------------------- unfold, fold

// [n, c, outputs..., taps...] as unfold has them: [n, c * taps, outputs].
Dims UnfoldedDims(const Dims& windows, int rank) {
  Dims dims = {windows[0], windows[1], 1};
  for (int axis = 0; axis < rank; ++axis) {
    dims[1] *= windows[2 + rank + axis];
    dims[2] *= windows[2 + axis];
  }
  return dims;
}

absl::StatusOr<Types> UnfoldType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  AGC_ASSIGN_OR_RETURN(const Dims dims, Windowed(call, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, UnfoldedDims(dims, static_cast<int>(call.ints("window").size()))});
}

absl::StatusOr<Types> FoldType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 3));
  const int rank = static_cast<int>(call.ints("window").size());
  AGC_RETURN_IF_ERROR(CheckInts(call, "window", rank, 1));
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", rank, 0));
  const TensorType& x = call.type(0);
  AGC_ASSIGN_OR_RETURN(const Window window, CheckedWindow(call, call.ints("window")));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  const int64_t taps = window.taps();
  if (x.dims[1] % taps != 0) {
    return call.Error(absl::StrCat("operand 0 is ", ToString(x), ", whose axis 1 is no multiple of the window's ", taps,
                                   " elements"));
  }
  TensorType type{x.dtype, {x.dims[0], x.dims[1] / taps}};
  type.dims.insert(type.dims.end(), call.ints("input").begin(), call.ints("input").end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  AGC_ASSIGN_OR_RETURN(const Dims windows, Windowed(call, type.dims));
  const Dims expected = UnfoldedDims(windows, rank);
  if (x.dims == expected) return Types(type);
  return call.Error(absl::StrCat("operand 0 is ", ToString(x), ", but the windows of ", ToString(type.dims), " are ",
                                 ToString(expected)));
}

// Axes of the outputs behind those of the taps, and back: the same exchange of two blocks of `rank` axes.
Ints Exchanged(int rank) {
  Ints perm = {0, 1};
  for (int axis = 0; axis < rank; ++axis) perm.push_back(2 + rank + axis);
  for (int axis = 0; axis < rank; ++axis) perm.push_back(2 + axis);
  return perm;
}

Value UnfoldDecompose(Rule& s) {
  const Window w = WindowOf(s, s.ints("window"));
  return Reshape(Transpose(SlidingWindows(s, s.x[0], w), Exchanged(w.rank())), s.op.type().dims);
}

Value FoldDecompose(Rule& s) {
  const Window w = WindowOf(s, s.ints("window"));
  const Dims& out = s.op.type().dims;
  Ints shape = {out[0], out[1]};
  shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
  for (int axis = 0; axis < w.rank(); ++axis) {
    shape.push_back((out[2 + axis] + w.before[axis] + w.after[axis] - w.reach(axis)) / w.stride[axis] + 1);
  }
  return OverlapAdd(s, Transpose(Reshape(s.x[0], shape), Exchanged(w.rank())), Spatial(out), w);
}

constexpr AttrDef kWindow = {"window", kInts}, kStride = {"stride", kInts, "[]"}, kPad = {"pad", kInts, "[]"},
                  kDilation = {"dilation", kInts, "[]"}, kInput = {"input", kInts};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "fold", .cls = OpClass::kComposite, .arity = 1, .attrs = {kInput, kWindow, kStride, kPad, kDilation}, .infer = FoldType, .decompose = FoldDecompose,
     .numpy = "fold(x0, input=input, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[2,12,9]"}, .attrs = "input = [4, 3], window = [3, 2], stride = [2, 1], pad = [1, 0, 2, 1]"},
     .doc = "Adds up the columns of unfold where they came from (col2im): [n,c*taps,outputs] to [n,c,input...]."},
    {.name = "overlap_add", .cls = OpClass::kReduce, .arity = 1, .attrs = {kInput, kWindow, kStride, kPad, kDilation}, .infer = OverlapAddType, .at = OverlapAddAt, .vjp = OverlapAddVjp,
     .numpy = "overlap_add(x0, input=input, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,3,3,3,2]"}, .attrs = "input = [4, 3], window = [3, 2], stride = [2, 1], pad = [1, 0, 2, 1]"},
     .doc = "Adds up windows [n,c,outputs...,taps...] where they lie over [n,c,input...]; the transpose of sliding_windows."},
    {.name = "sliding_windows", .cls = OpClass::kGather, .arity = 1, .attrs = {kWindow, kStride, kPad, kDilation}, .infer = SlidingWindowsType, .at = SlidingWindowsAt, .vjp = SlidingWindowsVjp,
     .numpy = "sliding_windows(x0, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,5,4]"}, .attrs = "window = [2, 2], stride = [2, 1], pad = [1, 0, 0, 1], dilation = [2, 1]"},
     .doc = "Every window of [n,c,spatial...], padded with 0: [n,c,outputs...,taps...]. An empty stride is the window, an empty pad 0, an empty dilation 1."},
    {.name = "unfold", .cls = OpClass::kComposite, .arity = 1, .attrs = {kWindow, kStride, kPad, kDilation}, .infer = UnfoldType, .decompose = UnfoldDecompose,
     .numpy = "unfold(x0, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,5,4]"}, .attrs = "window = [2, 2], stride = [2, 1], pad = [1, 0, 0, 1], dilation = [2, 1]"},
     .doc = "Windows of [n,c,spatial...] as columns (im2col): [n,c*taps,outputs]. An empty stride is the window."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kUnfoldOps(kOps);

}  // namespace agc
