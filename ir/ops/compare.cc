#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;

constexpr double kInf = std::numeric_limits<double>::infinity();

absl::StatusOr<Types> OrderTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  return CompareTypes(call);
}

absl::StatusOr<Types> CastTypes(const OpCall& call) {
  return Types(TensorType{call.dtype("dtype"), call.type(0).dims});
}

absl::StatusOr<Types> SelectTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckDType(call, 0, DType::kBool));
  const TensorType &then = call.type(1), &otherwise = call.type(2);
  if (then.dtype != otherwise.dtype) {
    return call.Error(
        absl::StrCat("branches are ", ToString(then), " and ", ToString(otherwise), ", cast one of them"));
  }
  if (then.dims != otherwise.dims || then.dims != call.type(0).dims) {
    return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), ", ", ToString(then), " and ",
                                   ToString(otherwise), ", broadcast them to one shape"));
  }
  return Types(then);
}

absl::StatusOr<Types> ClampTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  const double lo = call.number("lo"), hi = call.number("hi");
  if (!(lo <= hi)) return call.Error(absl::StrCat("lo is ", lo, " and hi is ", hi, ", expected lo <= hi"));
  for (double bound : {lo, hi}) {
    if (std::isfinite(bound)) AGC_RETURN_IF_ERROR(CheckValueOf(call, "bound", bound, call.type(0).dtype));
  }
  return Types(call.type(0));
}

// Operands are read in statements of their own: inside a call the order is the compiler's, and a nest numbers its
// buffers by first use.
Expr Both(At& s, Index i) {
  const Expr a = s.Read(0, i), b = s.Read(1, i);
  return And(a, b);
}
Expr Either(At& s, Index i) {
  const Expr a = s.Read(0, i), b = s.Read(1, i);
  return Or(a, b);
}
Expr SelectAt(At& s, Index i) {
  const Expr cond = s.Read(0, i), then = s.Read(1, i), otherwise = s.Read(2, i);
  return Select(cond, then, otherwise);
}

// An infinite bound is none, for integers too.
Expr ClampAt(At& s, Index i) {
  Expr x = s.Read(0, i);
  if (s.number("lo") > -kInf) x = Alu("max", {x, s.Number(s.number("lo"))});
  if (s.number("hi") < kInf) x = Alu("min", {x, s.Number(s.number("hi"))});
  return x;
}

// Gradient on the closed interval.
void ClampVjp(Vjp& s) {
  const Value x = s.x[0];
  const Value inside =
      LogicalAnd(GreaterEqual(x, FullLike(x, s.number("lo"))), LessEqual(x, FullLike(x, s.number("hi"))));
  s.dx[0] = Where(inside, s.g, FullLike(s.g, 0));
}

void CastVjp(Vjp& s) {
  if (IsFloat(s.x[0].dtype()) && IsFloat(s.y.dtype())) s.dx[0] = CastTo(s.g, s.x[0].dtype());
}

// The cotangent is masked before it enters a branch, so that a branch that was not taken sees 0.
void SelectVjp(Vjp& s) {
  const Value zero = FullLike(s.g, 0);
  s.dx[1] = Where(s.x[0], s.g, zero);
  s.dx[2] = Where(s.x[0], zero, s.g);
}

constexpr Sample kPairs = {.differentiable = false};
constexpr Sample kBools = {.shapes = {"bool[2,3]", "bool[2,3]"}, .lo = 0, .hi = 1, .differentiable = false};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cast", .cls = kElementwise, .arity = 1, .attrs = {{"dtype", AttrKind::kDType}}, .infer = CastTypes,
     .at = [](At& s, Index i) { return Cast(s.Read(0, i), s.dtype("dtype")); }, .vjp = CastVjp,
     .numpy = "cast(x0, dtype)", .sample = {.attrs = "dtype = f64", .lo = -9, .hi = 9},
     .doc = "Converts to another dtype; float to integer truncates and saturates, NaN becomes 0."},
    {.name = "clamp", .cls = kElementwise, .arity = 1, .attrs = {{"lo", AttrKind::kFloat, "-inf"}, {"hi", AttrKind::kFloat, "inf"}}, .infer = ClampTypes,
     .at = ClampAt, .vjp = ClampVjp, .numpy = "np.clip(x0, lo, hi)", .sample = {.attrs = "lo = -0.5, hi = 0.75"},
     .doc = "Limits to [lo, hi], of which one may be left out; NaN stays; the gradient passes on the closed interval."},
    {.name = "eq", .cls = kElementwise, .arity = 2, .infer = CompareTypes, .at = Map<"eq">, .vjp = NoGradient,
     .numpy = "x0 == x1", .sample = {.shapes = {"i32[2,3]", "i32[2,3]"}, .lo = 0, .hi = 2, .differentiable = false}, .doc = "Equal."},
    {.name = "ge", .cls = kElementwise, .arity = 2, .infer = OrderTypes, .at = Map<"ge">, .vjp = NoGradient,
     .numpy = "x0 >= x1", .sample = kPairs, .doc = "Greater or equal."},
    {.name = "gt", .cls = kElementwise, .arity = 2, .infer = OrderTypes, .at = Map<"gt">, .vjp = NoGradient,
     .numpy = "x0 > x1", .sample = kPairs, .doc = "Greater."},
    {.name = "isnan", .cls = kElementwise, .arity = 1, .infer = FloatClassTypes, .at = Map<"isnan">, .vjp = NoGradient,
     .numpy = "np.isnan(x0)", .sample = kPairs, .doc = "Not a number."},
    {.name = "le", .cls = kElementwise, .arity = 2, .infer = OrderTypes, .at = Map<"le">, .vjp = NoGradient,
     .numpy = "x0 <= x1", .sample = kPairs, .doc = "Less or equal."},
    {.name = "logical_and", .cls = kElementwise, .arity = 2, .infer = SameBool,
     .at = Both, .numpy = "np.logical_and(x0, x1)", .sample = kBools, .doc = "Both hold."},
    {.name = "logical_not", .cls = kElementwise, .arity = 1, .infer = SameBool,
     .at = [](At& s, Index i) { return Not(s.Read(0, i)); }, .numpy = "np.logical_not(x0)",
     .sample = {.shapes = {"bool[2,3]"}, .lo = 0, .hi = 1, .differentiable = false}, .doc = "Does not hold."},
    {.name = "logical_or", .cls = kElementwise, .arity = 2, .infer = SameBool,
     .at = Either, .numpy = "np.logical_or(x0, x1)", .sample = kBools, .doc = "Either holds."},
    {.name = "lt", .cls = kElementwise, .arity = 2, .infer = OrderTypes, .at = Map<"lt">, .vjp = NoGradient,
     .numpy = "x0 < x1", .sample = kPairs, .doc = "Less."},
    {.name = "ne", .cls = kElementwise, .arity = 2, .infer = CompareTypes, .at = Map<"ne">, .vjp = NoGradient,
     .numpy = "x0 != x1", .sample = {.shapes = {"i32[2,3]", "i32[2,3]"}, .lo = 0, .hi = 2, .differentiable = false}, .doc = "Not equal."},
    {.name = "select", .cls = kElementwise, .arity = 3, .infer = SelectTypes,
     .at = SelectAt, .vjp = SelectVjp,
     .numpy = "np.where(x0, x1, x2)", .sample = {.shapes = {"bool[2,3]", "f32[2,3]", "f32[2,3]"}},
     .doc = "The second where the first holds, else the third; a branch that is not taken gets no gradient, not even NaN."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kCompareOps(kOps);

}  // namespace agc
