#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- reshape

absl::StatusOr<Types> ReshapeTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  const Ints& shape = call.ints("shape");
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", x.dtype, shape));
  const TensorType out{x.dtype, shape};
  if (out.elements() == x.elements()) return Types(out);
  return call.Error(absl::StrCat(ToString(x), " has ", x.elements(), " elements, shape = ", ToString(shape), " has ",
                                 out.elements()));
}

// The linear element of the output, taken apart by the operand's dimensions.
Expr ReshapeAt(At& s, Index i) {
  Expr e = s.pool.Int(0);
  for (int axis = 0; axis < s.out().rank(); ++axis) e = e * s.out().dims[axis] + i[axis];
  const Dims& dims = s.type(0).dims;
  Point point(dims.size(), s.pool.Int(0));
  int64_t left = s.type(0).elements();  // elements below the axes that are not done yet
  for (int axis = static_cast<int>(dims.size()) - 1; axis >= 0; --axis) {
    if (dims[axis] <= 1) continue;
    left /= dims[axis];
    point[axis] = left == 1 ? e : Mod(e, dims[axis]);
    if (left > 1) e = Div(e, dims[axis]);
  }
  return s.Read(0, point);
}

// ---------------------------------------------------------------- transpose

absl::StatusOr<Types> TransposeTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  const Ints& perm = call.ints("perm");
  Ints sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  bool whole = static_cast<int>(perm.size()) == x.rank();
  for (size_t k = 0; k < sorted.size(); ++k) whole = whole && sorted[k] == static_cast<int64_t>(k);
  if (!whole)
    return call.Error(absl::StrCat("perm = ", ToString(perm), " does not name each axis of ", ToString(x), " once"));
  Dims dims;
  for (int64_t axis : perm) dims.push_back(x.dims[axis]);
  return Types(TensorType{x.dtype, dims});
}

Expr TransposeAt(At& s, Index i) {
  const Ints& perm = s.ints("perm");
  Point point(perm.size(), s.pool.Int(0));
  for (size_t k = 0; k < perm.size(); ++k) point[perm[k]] = i[k];
  return s.Read(0, point);
}

void TransposeVjp(Vjp& s) {
  const Ints perm = s.ints("perm");
  Ints inverse(perm.size(), 0);
  for (size_t k = 0; k < perm.size(); ++k) inverse[perm[k]] = static_cast<int64_t>(k);
  s.dx[0] = Transpose(s.g, inverse);
}

// ---------------------------------------------------------------- broadcast

// Output axis of each operand axis; without `axes` numpy's, aligned at the end.
Ints BroadcastAxesOf(const Ints& axes, int rank, int out_rank) {
  if (!axes.empty()) return axes;
  Ints out;
  for (int k = 0; k < rank; ++k) out.push_back(out_rank - rank + k);
  return out;
}

absl::StatusOr<Types> BroadcastTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  const Ints &shape = call.ints("shape"), &axes = call.ints("axes");
  const int out_rank = static_cast<int>(shape.size());
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", x.dtype, shape));
  if (axes.empty() && x.rank() > out_rank) {
    return call.Error(absl::StrCat(ToString(x), " has more axes than shape = ", ToString(shape)));
  }
  if (!axes.empty() && static_cast<int>(axes.size()) != x.rank()) {
    return call.Error(absl::StrCat("axes = ", ToString(axes), " has ", axes.size(), " numbers, ", ToString(x), " has ",
                                   x.rank(), " axes"));
  }
  const Ints to = BroadcastAxesOf(axes, x.rank(), out_rank);
  for (size_t k = 0; k < to.size(); ++k) {
    if (to[k] < 0 || to[k] >= out_rank || (k > 0 && to[k] <= to[k - 1])) {
      return call.Error(absl::StrCat("axes = ", ToString(axes), " must increase and lie in 0 to ", out_rank - 1));
    }
    if (x.dims[k] != shape[to[k]] && x.dims[k] != 1) {
      return call.Error(absl::StrCat("axis ", k, " of ", ToString(x), " does not broadcast to axis ", to[k], " of ",
                                     ToString(shape)));
    }
  }
  return Types(TensorType{x.dtype, shape});
}

Expr BroadcastAt(At& s, Index i) {
  const Ints to = BroadcastAxesOf(s.ints("axes"), s.type(0).rank(), s.out().rank());
  Point point;
  for (size_t k = 0; k < to.size(); ++k) {
    const int64_t dim = s.dim(0, static_cast<int>(k));
    point.push_back(dim == 1 && s.out().dims[to[k]] != 1 ? s.pool.Int(0) : i[to[k]]);
  }
  return s.Read(0, point);
}

void BroadcastVjp(Vjp& s) {
  const Dims dims = s.x[0].dims(), out = s.y.dims();
  const Ints to = BroadcastAxesOf(s.ints("axes"), static_cast<int>(dims.size()), static_cast<int>(out.size()));
  Ints added;
  for (int64_t axis = 0; axis < static_cast<int64_t>(out.size()); ++axis) {
    const auto* at = std::find(to.begin(), to.end(), axis);
    if (at == to.end() || dims[at - to.begin()] != out[axis]) added.push_back(axis);
  }
  s.dx[0] = added.empty() ? s.g : Reshape(ReduceSum(s.g, added), dims);
}

// ---------------------------------------------------------------- slice

absl::StatusOr<Types> SliceTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  const Ints &start = call.ints("start"), &limit = call.ints("limit"), &stride = call.ints("stride");
  AGC_RETURN_IF_ERROR(CheckInts(call, "start", x.rank(), 0));
  AGC_RETURN_IF_ERROR(CheckInts(call, "limit", x.rank(), 0));
  if (!stride.empty()) AGC_RETURN_IF_ERROR(CheckInts(call, "stride", x.rank(), 1));
  Dims dims;
  for (int k = 0; k < x.rank(); ++k) {
    if (start[k] > limit[k] || limit[k] > x.dims[k]) {
      return call.Error(absl::StrCat("axis ", k, " is cut from ", start[k], " to ", limit[k], ", but ", ToString(x),
                                     " has ", x.dims[k], " there"));
    }
    const int64_t step = stride.empty() ? 1 : stride[k], n = limit[k] - start[k];
    dims.push_back(n / step + (n % step != 0 ? 1 : 0));
  }
  return Types(TensorType{x.dtype, dims});
}

Expr SliceAt(At& s, Index i) {
  const Ints &start = s.ints("start"), &stride = s.ints("stride");
  Point point;
  for (size_t k = 0; k < start.size(); ++k) point.push_back(i[k] * (stride.empty() ? 1 : stride[k]) + start[k]);
  return s.Read(0, point);
}

// Puts step - 1 zeros after each element along `axis`, so that element k stands at k * step.
Value Dilate(Value g, int axis, int64_t step) {
  Ints apart = g.dims(), low, high, together = g.dims();
  apart.insert(apart.begin() + axis + 1, 1);
  low.assign(apart.size(), 0);
  high.assign(apart.size(), 0);
  high[axis + 1] = step - 1;
  together[axis] *= step;
  return Reshape(Pad(Reshape(g, apart), 0, low, high), together);
}

void SliceVjp(Vjp& s) {
  const Dims dims = s.x[0].dims();
  const Ints start = s.ints("start"), stride = s.ints("stride");
  Value g = s.g;
  Ints high, cut(dims.size(), 0);
  for (int k = 0; k < static_cast<int>(dims.size()); ++k) {
    const int64_t n = g.dim(k);
    if (!stride.empty() && stride[k] > 1 && n > 1) g = Dilate(g, k, stride[k]);
    cut[k] = std::min(g.dim(k), dims[k] - start[k]);  // dilation may have put zeros beyond the end
    high.push_back(dims[k] - start[k] - cut[k]);
  }
  if (cut != g.dims()) g = Slice(g, Ints(dims.size(), 0), cut, {});
  s.dx[0] = Pad(g, 0, start, high);
}

// ---------------------------------------------------------------- concat

absl::StatusOr<Types> ConcatTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), call.type(0).rank()));
  const int axis = static_cast<int>(PositiveAxis(call.integer("axis"), call.type(0).rank()));
  TensorType out = call.type(0);
  for (int k = 1; k < call.arity(); ++k) {
    Dims dims = call.type(k).dims;
    if (static_cast<int>(dims.size()) != out.rank()) {
      return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(k)),
                                     ", expected one rank"));
    }
    out.dims[axis] += dims[axis];
    dims[axis] = out.dims[axis];
    if (dims != out.dims) {
      return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(k)),
                                     ", which differ not only in axis ", axis));
    }
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "joined shape", out.dtype, out.dims));
  return Types(out);
}

// Every operand is read under the guard that the index lies in its segment.
Expr ConcatAt(At& s, Index i) {
  const int axis = static_cast<int>(PositiveAxis(s.integer("axis"), s.out().rank()));
  int64_t begin = s.out().dims[axis];
  Expr out = s.Number(0);
  for (int k = s.arity() - 1; k >= 0; --k) {
    const int64_t extent = s.dim(k, axis);
    begin -= extent;
    if (extent == 0) continue;
    Point point(i.begin(), i.end());
    point[axis] = i[axis] - begin;
    out = s.Guard(
        InRange(point[axis], extent), [&] { return s.Read(k, point); }, out);
  }
  return out;
}

void ConcatVjp(Vjp& s) {
  const int axis = static_cast<int>(PositiveAxis(s.integer("axis"), s.y.rank()));
  Ints start(s.y.rank(), 0), limit = s.y.dims();
  for (size_t k = 0; k < s.x.size(); ++k) {
    limit[axis] = start[axis] + s.x[k].dim(axis);
    s.dx[k] = Slice(s.g, start, limit, {});
    start[axis] = limit[axis];
  }
}

using A = AttrKind;

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "broadcast", .cls = kView, .arity = 1, .attrs = {{"shape", A::kInts}, {"axes", A::kInts, "[]"}}, .infer = BroadcastTypes, .at = BroadcastAt,
     .vjp = BroadcastVjp, .numpy = "broadcast(x0, shape, axes)",
     .sample = {.shapes = {"f32[2,3]"}, .attrs = "shape = [2, 4, 3], axes = [0, 2]"},
     .doc = "Repeats along new axes and axes of 1; axes[k] is the output axis of operand axis k, left out: aligned at the end."},
    {.name = "concat", .cls = kView, .arity = {1, 65535}, .attrs = {{"axis", A::kInt}}, .infer = ConcatTypes, .at = ConcatAt,
     .vjp = ConcatVjp, .numpy = "np.concatenate([x0, x1, x2], axis)",
     .sample = {.shapes = {"f32[2,3]", "f32[2,1]", "f32[2,2]"}, .attrs = "axis = 1"}, .doc = "Joins along an axis."},
    {.name = "reshape", .cls = kView, .arity = 1, .attrs = {{"shape", A::kInts}}, .infer = ReshapeTypes, .at = ReshapeAt,
     .vjp = [](Vjp& s) { s.dx[0] = Reshape(s.g, s.x[0].dims()); }, .numpy = "np.reshape(x0, shape)",
     .sample = {.shapes = {"f32[4,6]"}, .attrs = "shape = [3, 2, 4]"}, .doc = "The same elements, row-major, under another shape."},
    {.name = "slice", .cls = kView, .arity = 1, .attrs = {{"start", A::kInts}, {"limit", A::kInts}, {"stride", A::kInts, "[]"}}, .infer = SliceTypes, .at = SliceAt,
     .vjp = SliceVjp, .numpy = "x0[tuple(slice(*c) for c in zip(start, limit, stride))]",
     .sample = {.shapes = {"f32[4,7]"}, .attrs = "start = [1, 0], limit = [3, 6], stride = [1, 2]"},
     .doc = "Elements start, start + stride, ... below limit of each axis; stride left out: 1."},
    {.name = "transpose", .cls = kView, .arity = 1, .attrs = {{"perm", A::kInts}}, .infer = TransposeTypes, .at = TransposeAt,
     .vjp = TransposeVjp, .numpy = "np.transpose(x0, perm)", .sample = {.shapes = {"f32[2,3,4]"}, .attrs = "perm = [2, 0, 1]"},
     .doc = "Reorders axes: output axis k is operand axis perm[k]."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kViewOps(kOps);

}  // namespace agc
