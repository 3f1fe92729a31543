// Linear algebra, defined by matrix products, diagonals and elementwise products.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/einsum.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;

absl::Status CheckNumbers(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  return CheckNumber(call, 0);
}

// ---------------------------------------------------------------- einsum

std::vector<TensorType> TypesOf(absl::Span<const Value> xs) {
  std::vector<TensorType> types;
  for (const Value& x : xs) types.push_back(x.type());
  return types;
}

// The type an equation gives.
absl::StatusOr<Types> Contracted(const OpCall& call, absl::string_view equation) {
  std::vector<TensorType> types;
  for (int k = 0; k < call.arity(); ++k) types.push_back(call.type(k));
  const absl::StatusOr<EinsumPlan> plan = ParseEinsum(equation, types);
  if (!plan.ok()) return call.Error(plan.status().message());
  const TensorType type{types[0].dtype, plan->OutputDims()};
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

absl::StatusOr<Types> EinsumTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumbers(call));
  return Contracted(call, call.text("equation"));
}

Value Contract(absl::string_view equation, absl::Span<const Value> xs) {
  const absl::StatusOr<EinsumPlan> plan = ParseEinsum(equation, TypesOf(xs));
  AGC_CHECK(plan.ok());  // the shape rule has parsed it
  return BuildEinsum(*plan, xs);
}
Value EinsumDecompose(Rule& s) { return Contract(s.text("equation"), s.x); }

// ---------------------------------------------------------------- dot, inner, tensordot

// Axes of both operands that are summed over; the rest of a, then of b, is the result.
struct Pairs {
  Ints a = {}, b = {};
};
constexpr int kMostAxes = 26;  // of one operand: lower-case letters for a, upper-case ones for b

std::string EquationOf(const Pairs& pairs, int rank_a, int rank_b) {
  std::string a(static_cast<size_t>(rank_a), ' '), b(static_cast<size_t>(rank_b), ' '), out;
  std::iota(a.begin(), a.end(), 'a');
  std::iota(b.begin(), b.end(), 'A');
  for (size_t k = 0; k < pairs.a.size(); ++k) b[pairs.b[k]] = a[pairs.a[k]];
  const auto free = [](const std::string& own, const std::string& other) {
    std::string left;
    for (char c : own) {
      if (other.find(c) == std::string::npos) left += c;
    }
    return left;
  };
  return absl::StrCat(a, ",", b, "->", free(a, b), free(b, a));
}

absl::StatusOr<Types> PairTypes(const OpCall& call, const Pairs& pairs) {
  const TensorType &a = call.type(0), &b = call.type(1);
  if (std::max(a.rank(), b.rank()) > kMostAxes) return call.Error("an operand has more than 26 axes");
  for (size_t k = 0; k < pairs.a.size(); ++k) {
    if (a.dims[pairs.a[k]] == b.dims[pairs.b[k]]) continue;
    return call.Error(absl::StrCat("axis ", pairs.a[k], " of ", ToString(a), " and axis ", pairs.b[k], " of ",
                                   ToString(b), " differ and cannot be summed over"));
  }
  return Contracted(call, EquationOf(pairs, a.rank(), b.rank()));
}

// Scalars multiply; else the last axis of a meets the last but one of b, for a vector its only one.
Pairs DotPairs(int rank_a, int rank_b) {
  if (rank_a == 0 || rank_b == 0) return {};
  return {{rank_a - 1}, {std::max(rank_b - 2, 0)}};
}
Pairs InnerPairs(int rank_a, int rank_b) {
  if (rank_a == 0 || rank_b == 0) return {};
  return {{rank_a - 1}, {rank_b - 1}};
}
template <Pairs (*pairs)(int, int)>
absl::StatusOr<Types> ProductTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumbers(call));
  return PairTypes(call, pairs(call.type(0).rank(), call.type(1).rank()));
}
template <Pairs (*pairs)(int, int)>
Value ProductDecompose(Rule& s) {
  const int a = s.x[0].rank(), b = s.x[1].rank();
  return Contract(EquationOf(pairs(a, b), a, b), s.x);
}

Pairs TensordotPairs(const AttrReader& attrs, int rank_a, int rank_b) {
  Pairs pairs;
  for (int64_t axis : attrs.ints("axes_a")) pairs.a.push_back(PositiveAxis(axis, rank_a));
  for (int64_t axis : attrs.ints("axes_b")) pairs.b.push_back(PositiveAxis(axis, rank_b));
  return pairs;
}
absl::StatusOr<Types> TensordotTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumbers(call));
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes_a", call.ints("axes_a"), call.type(0).rank()));
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes_b", call.ints("axes_b"), call.type(1).rank()));
  if (call.ints("axes_a").size() != call.ints("axes_b").size()) {
    return call.Error(absl::StrCat("axes_a = ", ToString(call.ints("axes_a")), " and axes_b = ",
                                   ToString(call.ints("axes_b")), " differ in length, expected pairs of axes"));
  }
  return PairTypes(call, TensordotPairs(call, call.type(0).rank(), call.type(1).rank()));
}
Value TensordotDecompose(Rule& s) {
  const int a = s.x[0].rank(), b = s.x[1].rank();
  return Contract(EquationOf(TensordotPairs(s, a, b), a, b), s.x);
}

// ---------------------------------------------------------------- outer, kron, cross

absl::StatusOr<Types> OuterTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumbers(call));
  const Dims dims = {call.type(0).elements(), call.type(1).elements()};
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", call.type(0).dtype, dims));
  return Types(TensorType{call.type(0).dtype, dims});
}
Value OuterDecompose(Rule& s) {
  return Reshape(s.x[0], {s.x[0].type().elements(), 1}) * Reshape(s.x[1], {1, s.x[1].type().elements()});
}

Dims Filled(Dims dims, size_t rank) {
  dims.insert(dims.begin(), rank - std::min(rank, dims.size()), 1);
  return dims;
}
absl::StatusOr<Types> KronTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumbers(call));
  const size_t rank = static_cast<size_t>(std::max(call.type(0).rank(), call.type(1).rank()));
  const Dims a = Filled(call.type(0).dims, rank), b = Filled(call.type(1).dims, rank);
  TensorType type{call.type(0).dtype, {}};
  for (size_t k = 0; k < rank; ++k) {
    AGC_RETURN_IF_ERROR(CheckDims(call, "a pair of axes", type.dtype, {a[k], b[k]}));
    type.dims.push_back(a[k] * b[k]);
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}
Value KronDecompose(Rule& s) {
  const size_t rank = s.op.type().dims.size();
  const Dims a = Filled(s.x[0].dims(), rank), b = Filled(s.x[1].dims(), rank);
  Ints slow, fast;
  for (size_t k = 0; k < rank; ++k) {
    slow.insert(slow.end(), {a[k], 1});
    fast.insert(fast.end(), {1, b[k]});
  }
  return Reshape(Reshape(s.x[0], slow) * Reshape(s.x[1], fast), s.op.type().dims);
}

absl::StatusOr<Types> CrossTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const int64_t axis = PositiveAxis(call.integer("axis"), x.rank());
  if (x.dims[axis] == 3) return Types(x);
  return call.Error(absl::StrCat("axis ", axis, " of ", ToString(x), " has not 3 elements"));
}
// Component k is a[k + 1] b[k + 2] - a[k + 2] b[k + 1].
Value CrossDecompose(Rule& s) {
  const auto after = [&](int operand, int64_t k) { return Roll(s.x[operand], {-k}, {s.integer("axis")}); };
  const Value first = after(0, 1) * after(1, 2), second = after(0, 2) * after(1, 1);
  return first - second;
}

using A = AttrKind;
constexpr Tolerance kSums = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cross", .cls = kComposite, .arity = 2, .attrs = {{"axis", A::kInt, "-1"}}, .infer = CrossTypes, .decompose = CrossDecompose,
     .tol = {.f32 = 2e-6, .f16 = 4e-3, .bf16 = 3e-2}, .numpy = "cross(x0, x1, axis)", .sample = {.shapes = {"f32[2,3,4]", "f32[2,3,4]"}, .attrs = "axis = 1"},
     .doc = "Cross product of three-vectors along an axis."},
    {.name = "dot", .cls = kComposite, .arity = 2, .infer = ProductTypes<DotPairs>, .decompose = ProductDecompose<DotPairs>, .tol = kSums,
     .numpy = "np.dot(x0, x1)", .sample = {.shapes = {"f32[2,3]", "f32[4,3,2]"}},
     .doc = "numpy.dot: the last axis of the first operand with the last but one of the second, the only one of a vector; scalars multiply."},
    {.name = "einsum", .cls = kComposite, .arity = {1, 64}, .attrs = {{"equation", A::kString}}, .infer = EinsumTypes, .decompose = EinsumDecompose,
     .tol = kSums, .numpy = "np.einsum(equation, x0, x1, x2)", .sample = {.shapes = {"f32[2,3,4]", "f32[4,5]", "f32[3,3,2]"}, .attrs = "equation = \"...jk,kl,jji->...li\""},
     .doc = "Einstein summation: letters name axes, an ellipsis the rest, and what the output does not name is summed over."},
    {.name = "inner", .cls = kComposite, .arity = 2, .infer = ProductTypes<InnerPairs>, .decompose = ProductDecompose<InnerPairs>, .tol = kSums,
     .numpy = "np.inner(x0, x1)", .sample = {.shapes = {"f32[2,3]", "f32[4,2,3]"}}, .doc = "numpy.inner: the last axes of both summed over; scalars multiply."},
    {.name = "kron", .cls = kComposite, .arity = 2, .infer = KronTypes, .decompose = KronDecompose, .numpy = "np.kron(x0, x1)",
     .sample = {.shapes = {"f32[2,3]", "f32[2]"}}, .doc = "Kronecker product: every element of the first times the whole second."},
    {.name = "outer", .cls = kComposite, .arity = 2, .infer = OuterTypes, .decompose = OuterDecompose, .numpy = "np.outer(x0, x1)",
     .sample = {.shapes = {"f32[4]", "f32[2,3]"}}, .doc = "Every element of the first times every element of the second, as a matrix."},
    {.name = "tensordot", .cls = kComposite, .arity = 2, .attrs = {{"axes_a", A::kInts}, {"axes_b", A::kInts}}, .infer = TensordotTypes,
     .decompose = TensordotDecompose, .tol = kSums, .numpy = "np.tensordot(x0, x1, (axes_a, axes_b))",
     .sample = {.shapes = {"f32[2,3,4]", "f32[4,5,2]"}, .attrs = "axes_a = [0, -1], axes_b = [2, 0]"}, .doc = "Sums over pairs of axes; the others of both remain."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kLinalgOps(kOps);

Value Einsum(absl::string_view equation, absl::Span<const Value> xs, Loc loc) {
  return Emit("einsum", xs, {Attr{"equation", absl::StrReplaceAll(equation, {{" ", ""}})}}, loc);
}
Value Dot(Value a, Value b, Loc loc) { return Emit("dot", {a, b}, {}, loc); }
Value Inner(Value a, Value b, Loc loc) { return Emit("inner", {a, b}, {}, loc); }
Value Outer(Value a, Value b, Loc loc) { return Emit("outer", {a, b}, {}, loc); }
Value Kron(Value a, Value b, Loc loc) { return Emit("kron", {a, b}, {}, loc); }
Value Tensordot(Value a, Value b, Ints axes_a, Ints axes_b, Loc loc) {
  return Emit("tensordot", {a, b}, {Attr{"axes_a", axes_a}, Attr{"axes_b", axes_b}}, loc);
}
Value Bilinear(Value a, Value b, Value w, Loc loc) { return Einsum("...i,oij,...j->...o", {a, w, b}, loc); }

Value Cross(Value a, Value b, int64_t axis, Loc loc) {
  Dims common;
  if (a.valid() && b.valid() && a.dims() != b.dims() && CommonDims(a.dims(), b.dims(), common)) {
    a = Broadcast(a, common, loc);
    b = Broadcast(b, common, loc);
  }
  return Emit("cross", {a, b}, {Attr{"axis", axis}}, loc);
}

}  // namespace agc
