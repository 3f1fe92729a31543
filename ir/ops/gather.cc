// Reads at computed positions. Indices are integers of any dtype; positions that no element has are clamped by `take`
// (after a negative index has counted from the end) and match nothing in `one_hot`.
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/index.h"
#include "ir/ops/tables.h"

namespace agc {

DType WideIndex(DType index, int64_t n) {
  if (SizeOf(index) == 8) return index;
  if (index == DType::kU32) return n <= std::numeric_limits<uint32_t>::max() ? index : DType::kI64;
  return n <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
}

Expr Position(Expr v, int64_t n) {
  const DType wide = WideIndex(v.dtype(), n);
  v = Cast(v, wide);
  const Expr zero = Number(*v.pool, wide, 0), last = Number(*v.pool, wide, static_cast<double>(n - 1));
  if (IsSigned(wide)) v = Alu("max", {Select(Alu("lt", {v, zero}), v + n, v), zero});
  return ToIndex(Alu("min", {v, last}), 0, n - 1);
}

absl::Status CheckTaken(const OpCall& call, const TensorType& result, int64_t axis) {
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", result.dtype, result.dims));
  // The gradient adds up by i32 positions.
  if (IsFloat(result.dtype)) AGC_RETURN_IF_ERROR(CheckPositionCount(call, {call.type(0).dims[axis]}));
  if (call.type(0).dims[axis] != 0 || result.elements() == 0) return absl::OkStatus();
  return call.Error(absl::StrCat("axis ", axis, " of ", ToString(call.type(0)), " has no element to take"));
}

namespace {

using enum AttrKind;

// ---------------------------------------------------------------- take

absl::StatusOr<Types> TakeType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType &x = call.type(0), &indices = call.type(1);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const int64_t axis = PositiveAxis(call.integer("axis"), x.rank());
  Dims out(x.dims.begin(), x.dims.begin() + axis);
  out.insert(out.end(), indices.dims.begin(), indices.dims.end());
  out.insert(out.end(), x.dims.begin() + axis + 1, x.dims.end());
  const TensorType type{x.dtype, out};
  AGC_RETURN_IF_ERROR(CheckTaken(call, type, axis));
  return Types(type);
}

Expr TakeAt(At& s, Index i) {
  const size_t axis = static_cast<size_t>(PositiveAxis(s.integer("axis"), s.type(0).rank()));
  const size_t rank = static_cast<size_t>(s.type(1).rank());
  absl::InlinedVector<Expr, 4> index(i.begin(), i.begin() + axis);
  index.push_back(Position(s.Read(1, i.subspan(axis, rank)), s.dim(0, static_cast<int>(axis))));
  index.insert(index.end(), i.begin() + axis + rank, i.end());
  return s.Read(0, index);
}

// The slices of the gradient are added where their index says.
void TakeVjp(Vjp& s) {
  const Value x = s.x[0];
  if (!IsFloat(x.dtype())) return;
  s.dx[0] = FullLike(x, 0);
  if (x.type().elements() == 0) return;
  const int64_t axis = PositiveAxis(s.integer("axis"), x.rank());
  const Value positions = WrapIndex(s.x[1], x.dim(static_cast<int>(axis)), /*drop=*/false);
  s.dx[0] = IndexUpdate(s.dx[0], positions, s.g, ScatterMode::kAdd, axis);
}

// ---------------------------------------------------------------- one_hot

absl::StatusOr<Types> OneHotType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 0));
  const int64_t depth = call.integer("depth");
  if (depth < 0) return call.Error(absl::StrCat("depth is ", depth, ", expected 0 or more"));
  TensorType type{call.dtype("dtype"), call.type(0).dims};
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), type.rank() + 1));
  for (absl::string_view name : {"on", "off"}) {
    AGC_RETURN_IF_ERROR(CheckValueOf(call, name, call.number(name), type.dtype));
  }
  type.dims.insert(type.dims.begin() + PositiveAxis(call.integer("axis"), type.rank() + 1), depth);
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

Expr OneHotAt(At& s, Index i) {
  const DType wide = WideIndex(s.type(0).dtype, s.integer("depth"));
  const size_t axis = static_cast<size_t>(PositiveAxis(s.integer("axis"), s.out().rank()));
  absl::InlinedVector<Expr, 4> point(i.begin(), i.end());
  point.erase(point.begin() + axis);
  const Expr hit = Alu("eq", {Cast(s.Read(0, point), wide), FromIndex(i[axis], wide)});
  const bool plain = s.number("on") == 1 && s.number("off") == 0;
  return plain && s.out().dtype == DType::kBool ? hit
                                                : Select(hit, s.Number(s.number("on")), s.Number(s.number("off")));
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "one_hot", .cls = OpClass::kElementwise, .arity = 1,
     .attrs = {{"depth", kInt}, {"dtype", kDType, "f32"}, {"axis", kInt, "-1"}, {"on", kFloat, "1"}, {"off", kFloat, "0"}},
     .infer = OneHotType, .at = OneHotAt, .vjp = NoGradient, .numpy = "one_hot(x0, depth=depth, axis=axis, on=on, off=off)",
     .sample = {.shapes = {"i32[2,3]"}, .attrs = "depth = 4", .lo = -1, .hi = 5, .differentiable = false},
     .doc = "A new axis of `depth` elements: `on` where its position equals the index, else `off`; all `off` for an index that is negative or too large."},
    {.name = "take", .cls = OpClass::kGather, .arity = 2, .attrs = {{"axis", kInt, "0"}}, .infer = TakeType, .at = TakeAt, .vjp = TakeVjp,
     .numpy = "take(x0, x1, axis=axis)",
     .sample = {.shapes = {"f32[2,4,3]", "i32[2,2]"}, .attrs = "axis = 1", .lo = -5, .hi = 5},
     .doc = "Elements of the first operand along `axis` at the positions that the second holds; its axes take the place of that axis. A negative index counts from the end, then indices are clamped."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kGatherOps(kOps);

Value Take(Value x, Value indices, int64_t axis, Loc loc) {
  return Emit("take", {x, indices}, {Attr{"axis", axis}}, loc);
}

Value OneHot(Value indices, int64_t depth, DType dtype, Loc loc) {
  return Emit("one_hot", {indices}, {Attr{"depth", depth}, Attr{"dtype", dtype}}, loc);
}

Value OneHot(Value indices, int64_t depth, const OneHotOptions& o, Loc loc) {
  return Emit(
      "one_hot", {indices},
      {Attr{"depth", depth}, Attr{"dtype", o.dtype}, Attr{"axis", o.axis}, Attr{"on", o.on}, Attr{"off", o.off}}, loc);
}

Value IndexSelect(Value x, int64_t axis, Value indices, Loc loc) {
  if (!indices.valid() || indices.rank() == 1) return Take(x, indices, axis, loc);
  return Poison(*indices.builder, loc,
                absl::StrCat("index_select: the indices are ", ToString(indices.type()), ", expected rank 1"));
}

}  // namespace agc
