// Pooling over the last two axes of NCHW tensors, with the gradients. Maximum pooling remembers which tap of its window
// won; scattering along it (max_pool2d_grad) and gathering along it (max_pool2d_take) are each other's gradient.
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

using enum AttrKind;

Window2d PoolWindow(const AttrReader& a) { return WindowOf(a, {a.ints("window")[0], a.ints("window")[1]}); }

// ---------------------------------------------------------------- types

// The shape that pooling an input of shape `x` gives. Padding below the window's size keeps every window on the input.
absl::StatusOr<Dims> Pooled(const OpCall& call, const Dims& x) {
  AGC_RETURN_IF_ERROR(CheckInts(call, "window", 2, 1));
  AGC_ASSIGN_OR_RETURN(const Window2d window, CheckedWindow(call, {call.ints("window")[0], call.ints("window")[1]}));
  for (int axis = 0; axis < 2; ++axis) {
    if (window.before[axis] >= window.kernel[axis] || window.after[axis] >= window.kernel[axis]) {
      return call.Error(absl::StrCat("pad = ", ToString(call.ints("pad")), " reaches the window ",
                                     ToString(call.ints("window")), ", a window could lie in the padding"));
    }
    if (x[2 + axis] == 0)
      return call.Error(absl::StrCat("the input ", ToString(x), " has nothing to pool along axis ", 2 + axis));
  }
  AGC_ASSIGN_OR_RETURN(const Extents2d out, WindowedExtents(call, window, {x[2], x[3]}));
  const Dims dims = {x[0], x[1], out[0], out[1]};
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", call.type(0).dtype, dims));
  return dims;
}

// The position of a tap must fit the index's u8.
absl::Status CheckTaps(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInts(call, "window", 2, 1));
  const int64_t height = call.ints("window")[0], width = call.ints("window")[1];
  if (height <= 256 && width <= 256 && height * width <= 256) return absl::OkStatus();
  return call.Error(absl::StrCat("the window ", height, "x", width, " has more than 256 elements"));
}

absl::StatusOr<Types> MaxPoolType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 4));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  AGC_ASSIGN_OR_RETURN(const Dims dims, Pooled(call, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, dims});
}

absl::StatusOr<Types> MaxPoolWithIndexType(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(const Types value, MaxPoolType(call));
  return Types{value[0], TensorType{DType::kU8, value[0].dims}};
}

absl::StatusOr<Types> AvgPoolType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 4));
  AGC_ASSIGN_OR_RETURN(const Dims dims, Pooled(call, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, dims});
}

// `operand` must have the shape that pooling `x` gives.
absl::Status CheckPooled(const OpCall& call, int operand, const Dims& x) {
  AGC_ASSIGN_OR_RETURN(const Dims expected, Pooled(call, x));
  if (call.type(operand).dims == expected) return absl::OkStatus();
  return call.Error(absl::StrCat("operand ", operand, " is ", ToString(call.type(operand)), ", but pooling ",
                                 ToString(x), " gives ", ToString(expected)));
}

absl::StatusOr<Types> PoolGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", 4, 0));
  const TensorType type{call.type(0).dtype, call.ints("input")};
  AGC_RETURN_IF_ERROR(CheckDims(call, "input", type.dtype, type.dims));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 0, type.dims));
  return Types(type);
}

absl::StatusOr<Types> MaxPoolGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kU8));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  AGC_ASSIGN_OR_RETURN(const Types types, PoolGradType(call));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 1, types[0].dims));
  return types;
}

absl::StatusOr<Types> MaxPoolTakeType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 4));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kU8));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 1, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, call.type(1).dims});
}

// ---------------------------------------------------------------- values

Expr MaxPoolAt(At& s, Index i) {
  const Window2d w = PoolWindow(s);
  const DType dtype = s.type(0).dtype;
  const Expr lowest = s.pool.Const(FindCombiner("max")->identity(0, dtype));
  const std::vector<Expr> best = s.Reduce("argmax", {w.kernel[0], w.kernel[1]}, [&](Index k) {
    const WindowPlace y = InputAt(w, 0, i[2], k[0], s.dim(0, 2)), x = InputAt(w, 1, i[3], k[1], s.dim(0, 3));
    const Expr value = s.Guard(
        And(y.inside, x.inside),
        [&] {
          return s.Read(0, {i[0], i[1], y.index, x.index});
        },
        lowest);
    return std::vector<Expr>{value, FromIndex(k[0] * w.kernel[1] + k[1], DType::kI32)};
  });
  return Cast(best[s.part], s.out().dtype);
}

Expr MaxPoolGradAt(At& s, Index i) {
  const Window2d w = PoolWindow(s);
  return s.Sum({w.kernel[0], w.kernel[1]}, [&](Index k) {
    const WindowPlace y = OutputAt(w, 0, i[2], k[0], s.dim(0, 2)), x = OutputAt(w, 1, i[3], k[1], s.dim(0, 3));
    return s.Guard(
        And(y.inside, x.inside),
        [&] {
          const Expr at[] = {i[0], i[1], y.index, x.index};
          const Expr winner = Cast(s.Read(1, at), DType::kI32), tap = FromIndex(k[0] * w.kernel[1] + k[1], DType::kI32);
          return Select(Alu("eq", {winner, tap}), s.Read(0, at), s.Number(0));
        },
        s.Number(0));
  });
}

// A position beyond the window names no element: 0, as max_pool2d_grad drops it.
Expr MaxPoolTakeAt(At& s, Index i) {
  const Window2d w = PoolWindow(s);
  const Expr position = ToIndex(Cast(s.Read(1, i), DType::kI32), 0, 255);
  const WindowPlace y = InputAt(w, 0, i[2], Div(position, w.kernel[1]), s.dim(0, 2));
  const WindowPlace x = InputAt(w, 1, i[3], Mod(position, w.kernel[1]), s.dim(0, 3));
  const Expr inside = And(And(y.inside, x.inside), InRange(position, w.taps()));
  return s.Guard(
      inside,
      [&] {
        return s.Read(0, {i[0], i[1], y.index, x.index});
      },
      s.Number(0));
}

// Sum over the window, kept wide until it is divided.
Expr Mean(At& s, const Window2d& w, absl::FunctionRef<Expr(Index)> read) {
  const DType wide = AccumulatorOf(s.out().dtype);
  const std::vector<Expr> sum =
      s.Reduce("add", {w.kernel[0], w.kernel[1]}, [&](Index k) { return std::vector<Expr>{Cast(read(k), wide)}; });
  return Cast(Alu("div", {sum[0], Number(s.pool, wide, static_cast<double>(w.taps()))}), s.out().dtype);
}

Expr AvgPoolAt(At& s, Index i) {
  const Window2d w = PoolWindow(s);
  return Mean(s, w, [&](Index k) {
    const WindowPlace y = InputAt(w, 0, i[2], k[0], s.dim(0, 2)), x = InputAt(w, 1, i[3], k[1], s.dim(0, 3));
    return s.Guard(
        And(y.inside, x.inside),
        [&] {
          return s.Read(0, {i[0], i[1], y.index, x.index});
        },
        s.Number(0));
  });
}

Expr AvgPoolGradAt(At& s, Index i) {
  const Window2d w = PoolWindow(s);
  return Mean(s, w, [&](Index k) {
    const WindowPlace y = OutputAt(w, 0, i[2], k[0], s.dim(0, 2)), x = OutputAt(w, 1, i[3], k[1], s.dim(0, 3));
    return s.Guard(
        And(y.inside, x.inside),
        [&] {
          return s.Read(0, {i[0], i[1], y.index, x.index});
        },
        s.Number(0));
  });
}

// ---------------------------------------------------------------- gradients

using Attrs = absl::InlinedVector<Attr, 4>;

Attrs WindowAttrs(const AttrReader& a) {
  return {{"window", a.ints("window")}, {"stride", a.ints("stride")}, {"pad", a.ints("pad")}};
}
Attrs GradAttrs(const AttrReader& a, const Dims& input) {
  Attrs attrs = {{"input", input}};
  for (Attr& attr : WindowAttrs(a)) attrs.push_back(std::move(attr));
  return attrs;
}

void MaxPoolVjp(Vjp& s) {
  if (s.g.valid()) s.dx[0] = Emit("max_pool2d_grad", {s.g, Get(s.y, 1)}, GradAttrs(s, s.x[0].dims()), s.op.loc);
}
void MaxPoolGradVjp(Vjp& s) { s.dx[0] = Emit("max_pool2d_take", {s.g, s.x[1]}, WindowAttrs(s), s.op.loc); }
void MaxPoolTakeVjp(Vjp& s) { s.dx[0] = Emit("max_pool2d_grad", {s.g, s.x[1]}, GradAttrs(s, s.x[0].dims()), s.op.loc); }
void AvgPoolVjp(Vjp& s) { s.dx[0] = Emit("avg_pool2d_grad", {s.g}, GradAttrs(s, s.x[0].dims()), s.op.loc); }
void AvgPoolGradVjp(Vjp& s) { s.dx[0] = Emit("avg_pool2d", {s.g}, WindowAttrs(s), s.op.loc); }

Value MaxPoolDecompose(Rule& s) { return Get(Emit("max_pool2d_with_index", {s.x[0]}, WindowAttrs(s), s.op.loc), 0); }

constexpr AttrList kWindow = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0]"}};
constexpr AttrList kInputWindow = {
    {"input", kInts}, {"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0]"}};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "avg_pool2d", .cls = OpClass::kReduce, .arity = 1, .attrs = kWindow, .infer = AvgPoolType, .at = AvgPoolAt, .vjp = AvgPoolVjp,
     .numpy = "avg_pool2d(x0, window=window, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Mean of each window; padding counts as 0 and in the number of elements. An empty stride is the window."},
    {.name = "avg_pool2d_grad", .cls = OpClass::kReduce, .arity = 1, .attrs = kInputWindow, .infer = PoolGradType, .at = AvgPoolGradAt, .vjp = AvgPoolGradVjp,
     .numpy = "avg_pool2d_grad(x0, input=input, window=window, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,2,3,6]"}, .attrs = "input = [2, 2, 5, 6], window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Gradient of avg_pool2d with respect to its input of shape `input`."},
    {.name = "max_pool2d", .cls = OpClass::kComposite, .arity = 1, .attrs = kWindow, .infer = MaxPoolType, .decompose = MaxPoolDecompose,
     .numpy = "max_pool2d(x0, window=window, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Largest element of each window, NaN if any is; padding never wins. The first of equals gets the gradient."},
    {.name = "max_pool2d_grad", .cls = OpClass::kReduce, .arity = 2, .attrs = kInputWindow, .infer = MaxPoolGradType, .at = MaxPoolGradAt, .vjp = MaxPoolGradVjp,
     .numpy = "max_pool2d_grad(x0, x1, input=input, window=window, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[1,2,3,6]", "u8[1,2,3,6]"}, .attrs = "input = [1, 2, 5, 6], window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]", .lo = 0, .hi = 5},
     .doc = "Adds each element of the first operand to the input element that the second, from max_pool2d_with_index, names."},
    {.name = "max_pool2d_take", .cls = OpClass::kGather, .arity = 2, .attrs = kWindow, .infer = MaxPoolTakeType, .at = MaxPoolTakeAt, .vjp = MaxPoolTakeVjp,
     .numpy = "max_pool2d_take(x0, x1, window=window, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[1,2,5,6]", "u8[1,2,3,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]", .lo = 0, .hi = 5},
     .doc = "The element of each window that the second operand, from max_pool2d_with_index, names; 0 in the padding."},
    {.name = "max_pool2d_with_index", .cls = OpClass::kReduce, .arity = 1, .attrs = kWindow, .infer = MaxPoolWithIndexType, .at = MaxPoolAt, .vjp = MaxPoolVjp,
     .numpy = "max_pool2d_with_index(x0, window=window, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "A tuple: the largest element of each window, and its row-major position in the window as u8, that of the first of equals or of the first NaN. At most 256 elements."},
};
// clang-format on
static_assert(CheckOps(kOps));

// ---------------------------------------------------------------- functions

// One number stands for both axes; a stride of 0 for the window.
Attrs AttrsOf(PoolOptions o) {
  if (o.window.size() == 1) o.window.push_back(o.window[0]);
  if (o.stride.size() == 1) o.stride.push_back(o.stride[0]);
  if (o.stride.empty()) o.stride = o.window;
  for (size_t i = 0; i < o.stride.size() && i < o.window.size(); ++i) {
    if (o.stride[i] == 0) o.stride[i] = o.window[i];
  }
  return {{"window", o.window}, {"stride", o.stride}, {"pad", o.pad}};
}

}  // namespace

constinit const absl::Span<const OpDef> kPoolOps(kOps);

Value MaxPool2d(Value x, PoolOptions options, Loc loc) { return Emit("max_pool2d", {x}, AttrsOf(options), loc); }
Value MaxPool2dWithIndex(Value x, PoolOptions options, Loc loc) {
  return Emit("max_pool2d_with_index", {x}, AttrsOf(options), loc);
}
Value AvgPool2d(Value x, PoolOptions options, Loc loc) { return Emit("avg_pool2d", {x}, AttrsOf(options), loc); }

}  // namespace agc
