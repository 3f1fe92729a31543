// Reads at computed positions. Indices are integers of any dtype; positions that no element has are clamped by `take`
// (after a negative index has counted from the end) and match nothing in `one_hot`.
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// An integer dtype that holds every value of `index` and the numbers up to `n`.
DType WideIndex(DType index, int64_t n) {
  if (SizeOf(index) == 8) return index;
  if (index == DType::kU32) return n <= std::numeric_limits<uint32_t>::max() ? index : DType::kI64;
  return n <= std::numeric_limits<int32_t>::max() ? DType::kI32 : DType::kI64;
}

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
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", x.dtype, out));
  const TensorType type{x.dtype, out};
  if (x.dims[axis] == 0 && type.elements() > 0) {
    return call.Error(absl::StrCat("axis ", axis, " of ", ToString(x), " has no element to take"));
  }
  return Types(type);
}

// The position along an axis of n elements that an index stands for.
Expr Position(Expr v, int64_t n) {
  const DType wide = WideIndex(v.dtype(), n);
  v = Cast(v, wide);
  const Expr zero = Number(*v.pool, wide, 0), last = Number(*v.pool, wide, static_cast<double>(n - 1));
  if (IsSigned(wide)) v = Alu("max", {Select(Alu("lt", {v, zero}), v + n, v), zero});
  return ToIndex(Alu("min", {v, last}), 0, n - 1);
}

Expr TakeAt(At& s, Index i) {
  const size_t axis = static_cast<size_t>(PositiveAxis(s.integer("axis"), s.type(0).rank()));
  const size_t rank = static_cast<size_t>(s.type(1).rank());
  absl::InlinedVector<Expr, 4> index(i.begin(), i.begin() + axis);
  index.push_back(Position(s.Read(1, i.subspan(axis, rank)), s.dim(0, static_cast<int>(axis))));
  index.insert(index.end(), i.begin() + axis + rank, i.end());
  return s.Read(0, index);
}

// The same with tensors.
Value Positions(Value v, int64_t n) {
  const DType wide = WideIndex(v.dtype(), n);
  if (wide != v.dtype()) v = CastTo(v, wide);
  if (IsSigned(wide)) {
    const Value zero = ScalarLike(v, 0, Loc::Here());
    v = Maximum(Where(Less(v, zero), v + static_cast<double>(n), v), zero);
  }
  return Minimum(v, ScalarLike(v, static_cast<double>(n - 1), Loc::Here()));
}

// Rows of the gradient are summed where their index says, as a product with the one-hot matrix: sums have one order.
void TakeVjp(Vjp& s) {
  const Value x = s.x[0], indices = s.x[1];
  if (!IsFloat(x.dtype())) return;
  if (x.type().elements() == 0) {
    s.dx[0] = FullLike(x, 0);
    return;
  }
  const int64_t axis = PositiveAxis(s.integer("axis"), x.rank()), n = x.dim(static_cast<int>(axis));
  const int64_t taken = indices.type().elements(), rest = x.type().elements() / n;
  Ints to_front, shape = {n}, back;
  for (int64_t k = 0; k < indices.rank(); ++k) to_front.push_back(axis + k);
  for (int64_t k = 0; k < s.g.rank(); ++k) {
    if (k < axis || k >= axis + indices.rank()) to_front.push_back(k);
  }
  for (int64_t k = 0; k < x.rank(); ++k) {
    if (k != axis) shape.push_back(x.dims()[k]);
    back.push_back(k == axis ? 0 : k < axis ? k + 1 : k);
  }
  const Value rows = Reshape(axis == 0 ? s.g : Transpose(s.g, to_front), {taken, rest});
  const Value hot = OneHot(Reshape(Positions(indices, n), {taken}), n, x.dtype());
  const Value sums = Reshape(Matmul(T(hot), rows), shape);
  s.dx[0] = axis == 0 ? sums : Transpose(sums, back);
}

// ---------------------------------------------------------------- one_hot

absl::StatusOr<Types> OneHotType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 0));
  const int64_t depth = call.integer("depth");
  if (depth < 0) return call.Error(absl::StrCat("depth is ", depth, ", expected 0 or more"));
  TensorType type{call.dtype("dtype"), call.type(0).dims};
  type.dims.push_back(depth);
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

Expr OneHotAt(At& s, Index i) {
  const DType wide = WideIndex(s.type(0).dtype, s.integer("depth"));
  const Expr index = Cast(s.Read(0, i.first(i.size() - 1)), wide);
  const Expr hit = Alu("eq", {index, FromIndex(i.back(), wide)});
  return s.out().dtype == DType::kBool ? hit : Select(hit, s.Number(1), s.Number(0));
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "one_hot", .cls = OpClass::kElementwise, .arity = 1, .attrs = {{"depth", kInt}, {"dtype", kDType, "f32"}},
     .infer = OneHotType, .at = OneHotAt, .vjp = NoGradient, .numpy = "one_hot(x0, depth=depth, dtype=dtype)",
     .sample = {.shapes = {"i32[2,3]"}, .attrs = "depth = 4", .lo = -1, .hi = 5, .differentiable = false},
     .doc = "A new last axis of `depth` elements: 1 where it equals the index, else 0; all 0 for an index that is negative or too large."},
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

}  // namespace agc
