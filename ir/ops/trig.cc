// Trigonometric and hyperbolic functions, and polar coordinates.
#include <limits>

#include "ir/build_math.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {

Value OneMinusSquare(Value x) {
  const Value inside = Less(Abs(x), Filled(x, 1));
  return Where(inside, Mul(1.0 - x, 1.0 + x), 1.0 - Square(x));
}

namespace {

using enum OpClass;

constexpr double kInf = std::numeric_limits<double>::infinity();

// ---------------------------------------------------------------- polar coordinates

// m sqrt(1 + (n / m)^2) with m the larger of both; IEEE 754: infinite if either is, even beside NaN.
Expr HypotAt(At& s, Index i) {
  const DType wide = AccumulatorOf(s.out().dtype);
  const auto number = [&](double v) { return Number(s.pool, wide, v); };
  const Expr a = Alu("abs", {Cast(s.Read(0, i), wide)}), b = Alu("abs", {Cast(s.Read(1, i), wide)});
  const Expr m = Alu("max", {a, b}), n = Alu("min", {a, b});
  const Expr q = Alu("div", {n, Select(Alu("eq", {m, number(0)}), number(1), m)});
  const Expr r = m * Alu("sqrt", {number(1) + q * q});
  const Expr infinite = Or(Alu("eq", {a, number(kInf)}), Alu("eq", {b, number(kInf)}));
  return Cast(Select(infinite, number(kInf), r), s.out().dtype);
}

// (x / r, y / r) with r = hypot(x, y); 0 at the origin, to every order.
struct Direction {
  Value x, y, r;
  Value origin;  // r = 0
};
Direction DirectionOf(Value x, Value y) {
  const Value r = Hypot(x, y), origin = Equal(r, Filled(r, 0)), safe = Where(origin, Filled(r, 1), r);
  return {DivOf(x, safe), DivOf(y, safe), safe, origin};
}
void HypotVjp(Vjp& s) {
  const Direction d = DirectionOf(Wide(s.x[0]), Wide(s.x[1]));
  const Value zero = Filled(d.r, 0), g = Wide(s.g);
  s.dx[0] = NarrowTo(Where(d.origin, zero, Mul(g, d.x)), s.g);
  s.dx[1] = NarrowTo(Where(d.origin, zero, Mul(g, d.y)), s.g);
}
void Atan2Vjp(Vjp& s) {
  const Direction d = DirectionOf(Wide(s.x[1]), Wide(s.x[0]));
  const Value zero = Filled(d.r, 0), g = DivOf(Wide(s.g), d.r);
  s.dx[0] = NarrowTo(Where(d.origin, zero, Mul(g, d.x)), s.g);
  s.dx[1] = NarrowTo(Where(d.origin, zero, -Mul(g, d.y)), s.g);
}

// ---------------------------------------------------------------- slopes

void AsinVjp(Vjp& s) { s.dx[0] = Across(s, Sqrt(OneMinusSquare(Wide(s.x[0])))); }
void AcosVjp(Vjp& s) { s.dx[0] = -Across(s, Sqrt(OneMinusSquare(Wide(s.x[0])))); }
void AtanVjp(Vjp& s) { s.dx[0] = Across(s, 1.0 + Square(Wide(s.x[0]))); }
void AtanhVjp(Vjp& s) { s.dx[0] = Across(s, OneMinusSquare(Wide(s.x[0]))); }
void AsinhVjp(Vjp& s) {
  const Value x = Wide(s.x[0]);
  s.dx[0] = Across(s, Hypot(x, Filled(x, 1)));
}
// sqrt(x^2 - 1), as OneMinusSquare.
void AcoshVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), inside = Greater(x, Filled(x, 1)), safe = Where(inside, x, Filled(x, 2));
  s.dx[0] = Across(s, Where(inside, Mul(Sqrt(safe - 1.0), Sqrt(safe + 1.0)), Sqrt(Square(x) - 1.0)));
}
void CoshVjp(Vjp& s) { s.dx[0] = Along(s, Sinh(Wide(s.x[0]))); }
void SinhVjp(Vjp& s) { s.dx[0] = Along(s, Cosh(Wide(s.x[0]))); }
void TanVjp(Vjp& s) { s.dx[0] = Along(s, 1.0 + Square(Tan(Wide(s.x[0])))); }

constexpr Tolerance kClose = {.f32 = 2e-6};
constexpr Sample kUnit = {.lo = -0.7, .hi = 0.7};
constexpr Sample kPositive = {.lo = 0.5, .hi = 2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "acos", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"acos">, .vjp = AcosVjp, .tol = kClose,
     .numpy = "np.arccos(x0)", .sample = kUnit, .doc = "Inverse cosine, in [0, pi]; NaN outside [-1, 1]."},
    {.name = "acosh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"acosh">, .vjp = AcoshVjp, .tol = kClose,
     .numpy = "np.arccosh(x0)", .sample = {.lo = 1.5, .hi = 4}, .doc = "Inverse hyperbolic cosine; NaN below 1."},
    {.name = "asin", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"asin">, .vjp = AsinVjp, .tol = kClose,
     .numpy = "np.arcsin(x0)", .sample = kUnit, .doc = "Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1]."},
    {.name = "asinh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"asinh">, .vjp = AsinhVjp, .tol = kClose,
     .numpy = "np.arcsinh(x0)", .sample = {.lo = -4, .hi = 4}, .doc = "Inverse hyperbolic sine."},
    {.name = "atan", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"atan">, .vjp = AtanVjp, .tol = kClose,
     .numpy = "np.arctan(x0)", .sample = {.lo = -4, .hi = 4}, .doc = "Inverse tangent, in [-pi/2, pi/2]."},
    {.name = "atan2", .cls = kElementwise, .arity = 2, .infer = SameFloat, .at = Map<"atan2">, .vjp = Atan2Vjp, .tol = kClose,
     .numpy = "np.arctan2(x0, x1)", .sample = kPositive,
     .doc = "Angle of the point (second, first) in [-pi, pi], with the quadrants of IEEE 754; its gradient at (0, 0) is 0."},
    {.name = "atanh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"atanh">, .vjp = AtanhVjp, .tol = kClose,
     .numpy = "np.arctanh(x0)", .sample = kUnit, .doc = "Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond."},
    {.name = "cosh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"cosh">, .vjp = CoshVjp, .tol = kClose,
     .numpy = "np.cosh(x0)", .sample = {.lo = -3, .hi = 3}, .doc = "Hyperbolic cosine."},
    {.name = "hypot", .cls = kElementwise, .arity = 2, .infer = SameFloat, .at = HypotAt, .vjp = HypotVjp, .tol = kClose,
     .numpy = "np.hypot(x0, x1)", .sample = kPositive, .doc = "sqrt(a^2 + b^2) without overflow on the way; its gradient at (0, 0) is 0."},
    {.name = "sinh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"sinh">, .vjp = SinhVjp, .tol = kClose,
     .numpy = "np.sinh(x0)", .sample = {.lo = -3, .hi = 3}, .doc = "Hyperbolic sine."},
    {.name = "tan", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"tan">, .vjp = TanVjp, .tol = kClose,
     .numpy = "np.tan(x0)", .sample = {.lo = -1, .hi = 1}, .doc = "Tangent of radians."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kTrigOps(kOps);

Value Tan(Value x, Loc loc) { return Emit("tan", {x}, {}, loc); }
Value Asin(Value x, Loc loc) { return Emit("asin", {x}, {}, loc); }
Value Acos(Value x, Loc loc) { return Emit("acos", {x}, {}, loc); }
Value Atan(Value x, Loc loc) { return Emit("atan", {x}, {}, loc); }
Value Atan2(Value y, Value x, Loc loc) { return EmitBinary("atan2", y, x, loc); }
Value Sinh(Value x, Loc loc) { return Emit("sinh", {x}, {}, loc); }
Value Cosh(Value x, Loc loc) { return Emit("cosh", {x}, {}, loc); }
Value Asinh(Value x, Loc loc) { return Emit("asinh", {x}, {}, loc); }
Value Acosh(Value x, Loc loc) { return Emit("acosh", {x}, {}, loc); }
Value Atanh(Value x, Loc loc) { return Emit("atanh", {x}, {}, loc); }
Value Hypot(Value a, Value b, Loc loc) { return EmitBinary("hypot", a, b, loc); }

}  // namespace agc
