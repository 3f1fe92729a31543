#include "ir/build.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;

// One less than the truncated quotient where a remainder is left and the signs differ. Floats: the quotient of what is
// left without the remainder is whole but for rounding, while that of the operands may round up to the next number, as
// 1 / 0.1f does; f16 and bf16 have no digits to spare for that and are divided in f32. By 0 floats give the quotient,
// integers 0. A quotient of 0 is -0 for a dividend of 0 only.
Expr FloorDivAt(At& s, Index i) {
  const DType dtype = s.out().dtype, wide = IsFloat(dtype) ? AccumulatorOf(dtype) : dtype;
  const Expr a = Cast(s.Read(0, i), wide), b = Cast(s.Read(1, i), wide), q = Alu("div", {a, b});
  if (IsUnsigned(wide)) return q;
  const Expr r = Alu("rem", {a, b}), zero = Cast(s.Number(0), wide), one = Cast(s.Number(1), wide);
  const Expr below = And(Alu("lt", {r, zero}), Alu("gt", {b, zero}));
  const Expr above = And(Alu("gt", {r, zero}), Alu("lt", {b, zero}));
  if (!IsFloat(wide)) return Select(Or(below, above), Alu("sub", {q, one}), q);
  const Expr whole = Alu("round", {Alu("div", {Alu("sub", {a, r}), b})});
  const Expr down = Select(Or(below, above), Alu("sub", {whole, one}), Alu("add", {whole, zero}));
  return Cast(Select(Or(Alu("eq", {a, zero}), Alu("eq", {b, zero})), q, down), dtype);
}

Expr ReciprocalAt(At& s, Index i) { return Alu("div", {s.Number(1), s.Read(0, i)}); }

Expr SquareAt(At& s, Index i) {
  const Expr x = s.Read(0, i);
  return x * x;
}

// The winner takes the cotangent; equals share it.
void ExtremumVjp(Vjp& s, Value first_wins) {
  const Value zero = FullLike(s.g, 0);
  const Value shared = Where(Equal(s.x[0], s.x[1]), s.g * 0.5, zero);
  s.dx[0] = Where(first_wins, s.g, shared);
  const Value either = LogicalOr(first_wins, Equal(s.x[0], s.x[1]));
  s.dx[1] = Where(either, shared, s.g);
}

// d/dx = p x^(p-1), and 0 for p = 0 also at x = 0; d/dp = y log(x), and 0 where x is not positive.
void PowVjp(Vjp& s) {
  const Value x = s.x[0], p = s.x[1], zero = FullLike(x, 0), one = FullLike(x, 1);
  const Value flat = LogicalAnd(Equal(p, zero), Equal(x, zero)), positive = Greater(x, zero);
  s.dx[0] = SafeMul(s.g, SafeMul(p, Pow(x, Where(flat, zero, Sub(p, one)))));
  s.dx[1] = SafeMul(s.g, Mul(Where(positive, s.y, zero), Log(Where(positive, x, one))));
}

// In f32 for f16 and bf16, where quotients by small numbers would overflow before they meet a small factor.
void DivVjp(Vjp& s) {
  const DType wide = AccumulatorOf(s.g.dtype()), narrow = s.g.dtype();
  const Value q = SafeDiv(CastTo(s.g, wide), CastTo(s.x[1], wide));
  s.dx[0] = CastTo(q, narrow);
  s.dx[1] = CastTo(-SafeMul(q, CastTo(s.y, wide)), narrow);
}

constexpr Sample kPositive = {.lo = 0.5, .hi = 2};
constexpr Sample kSteps = {.lo = -4, .hi = 4, .differentiable = false};
constexpr Sample kInts = {.shapes = {"i32[2,3]", "i32[2,3]"}, .lo = -9, .hi = 9, .differentiable = false};
constexpr Sample kShifts = {.shapes = {"i32[2,3]", "i32[2,3]"}, .lo = 0, .hi = 15, .differentiable = false};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "abs", .cls = kElementwise, .arity = 1, .infer = SameNumber, .at = Map<"abs">,
     .vjp = [](Vjp& s) { s.dx[0] = s.g * Sign(s.x[0]); }, .numpy = "np.abs(x0)", .doc = "Absolute value; its gradient at 0 is 0."},
    {.name = "add", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"add">,
     .vjp = [](Vjp& s) { s.dx[0] = s.g; s.dx[1] = s.g; }, .numpy = "x0 + x1", .doc = "Sum; integers wrap."},
    {.name = "bit_and", .cls = kElementwise, .arity = 2, .infer = SameInt, .at = Map<"bit_and">,
     .numpy = "x0 & x1", .sample = kInts, .doc = "Bitwise and."},
    {.name = "bit_or", .cls = kElementwise, .arity = 2, .infer = SameInt, .at = Map<"bit_or">,
     .numpy = "x0 | x1", .sample = kInts, .doc = "Bitwise or."},
    {.name = "bit_xor", .cls = kElementwise, .arity = 2, .infer = SameInt, .at = Map<"bit_xor">,
     .numpy = "x0 ^ x1", .sample = kInts, .doc = "Bitwise exclusive or."},
    {.name = "ceil", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"ceil">, .vjp = NoGradient,
     .numpy = "np.ceil(x0)", .sample = kSteps, .doc = "Smallest whole number not below; passes no gradient."},
    {.name = "cos", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"cos">,
     .vjp = [](Vjp& s) { s.dx[0] = -(s.g * Sin(s.x[0])); }, .tol = {.f32 = 4e-6}, .numpy = "np.cos(x0)",
     .sample = {.lo = -4, .hi = 4}, .doc = "Cosine of radians."},
    {.name = "div", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"div">, .vjp = DivVjp,
     .numpy = "x0 / x1", .sample = kPositive, .doc = "Quotient; integers truncate, and by 0 give 0."},
    {.name = "exp", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"exp">,
     .vjp = [](Vjp& s) { s.dx[0] = SafeMul(s.g, s.y); }, .tol = {.f32 = 4e-6}, .numpy = "np.exp(x0)",
     .sample = {.lo = -4, .hi = 4}, .doc = "Natural exponential."},
    {.name = "floor", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"floor">, .vjp = NoGradient,
     .numpy = "np.floor(x0)", .sample = kSteps, .doc = "Largest whole number not above; passes no gradient."},
    {.name = "floor_div", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = FloorDivAt, .vjp = NoGradient,
     .numpy = "np.floor_divide(x0, x1)", .sample = {.lo = 0.5, .hi = 4, .differentiable = false},
     .doc = "Quotient rounded down; integers by 0 give 0; passes no gradient."},
    {.name = "log", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"log">,
     .vjp = [](Vjp& s) { s.dx[0] = SafeDiv(s.g, s.x[0]); }, .tol = {.f32 = 4e-6}, .numpy = "np.log(x0)",
     .sample = {.lo = 0.1, .hi = 4}, .doc = "Natural logarithm."},
    {.name = "maximum", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"max">,
     .vjp = [](Vjp& s) { ExtremumVjp(s, Greater(s.x[0], s.x[1])); }, .numpy = "np.maximum(x0, x1)",
     .doc = "Larger of two, NaN if either is; equals share the gradient evenly."},
    {.name = "minimum", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"min">,
     .vjp = [](Vjp& s) { ExtremumVjp(s, Less(s.x[0], s.x[1])); }, .numpy = "np.minimum(x0, x1)",
     .doc = "Smaller of two, NaN if either is; equals share the gradient evenly."},
    {.name = "mul", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"mul">,
     .vjp = [](Vjp& s) { s.dx[0] = s.g * s.x[1]; s.dx[1] = s.g * s.x[0]; }, .numpy = "x0 * x1", .doc = "Product; integers wrap."},
    {.name = "neg", .cls = kElementwise, .arity = 1, .infer = SameNumber, .at = Map<"neg">,
     .vjp = [](Vjp& s) { s.dx[0] = -s.g; }, .numpy = "-x0", .doc = "Negation; integers wrap."},
    {.name = "pow", .cls = kElementwise, .arity = 2, .infer = SameFloat, .at = Map<"pow">, .vjp = PowVjp, .tol = {.f32 = 1e-5},
     .numpy = "np.power(x0, x1)", .sample = kPositive, .doc = "IEEE 754 power; passes no gradient to the exponent where the base is not positive."},
    {.name = "reciprocal", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = ReciprocalAt,
     .vjp = [](Vjp& s) { s.dx[0] = -SafeMul(SafeMul(s.g, s.y), s.y); }, .numpy = "1 / x0", .sample = kPositive, .doc = "One over x."},
    {.name = "rem", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"rem">, .vjp = RemainderVjp, .tol = {.f32 = 4e-6},
     .numpy = "np.fmod(x0, x1)", .sample = {.lo = 0.5, .hi = 4}, .doc = "Remainder with the dividend's sign; by integer 0 the dividend."},
    {.name = "round", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"round">, .vjp = NoGradient,
     .numpy = "np.round(x0)", .sample = kSteps, .doc = "Nearest whole number, halves to even; passes no gradient."},
    {.name = "rsqrt", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"rsqrt">,
     .vjp = [](Vjp& s) { s.dx[0] = SafeMul(s.g * -0.5, DivOf(s.y, s.x[0])); }, .tol = {.f32 = 4e-6}, .numpy = "1 / np.sqrt(x0)",
     .sample = kPositive, .doc = "Reciprocal square root."},
    {.name = "shift_left", .cls = kElementwise, .arity = 2, .infer = SameInt, .at = Map<"shl">,
     .numpy = "np.left_shift(x0, x1)", .sample = kShifts, .doc = "Left shift; by the width or more gives 0."},
    {.name = "shift_right", .cls = kElementwise, .arity = 2, .infer = SameInt, .at = Map<"shr">,
     .numpy = "np.right_shift(x0, x1)", .sample = kShifts, .doc = "Right shift, arithmetic for signed types; by the width or more gives 0 or -1."},
    {.name = "sign", .cls = kElementwise, .arity = 1, .infer = SameNumber, .at = Map<"sign">, .vjp = NoGradient,
     .numpy = "np.sign(x0)", .sample = kSteps, .doc = "-1, 0 or 1, NaN stays; passes no gradient."},
    {.name = "sin", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"sin">,
     .vjp = [](Vjp& s) { s.dx[0] = s.g * Cos(s.x[0]); }, .tol = {.f32 = 4e-6}, .numpy = "np.sin(x0)",
     .sample = {.lo = -4, .hi = 4}, .doc = "Sine of radians."},
    {.name = "sqrt", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"sqrt">,
     .vjp = [](Vjp& s) { s.dx[0] = SafeDiv(s.g * 0.5, s.y); }, .numpy = "np.sqrt(x0)",
     .sample = {.lo = 0.1, .hi = 4}, .doc = "Square root."},
    {.name = "square", .cls = kElementwise, .arity = 1, .infer = SameNumber, .at = SquareAt,
     .vjp = [](Vjp& s) { s.dx[0] = s.g * s.x[0] * 2.0; }, .numpy = "x0 * x0", .doc = "x times x; integers wrap."},
    {.name = "sub", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = Map<"sub">,
     .vjp = [](Vjp& s) { s.dx[0] = s.g; s.dx[1] = -s.g; }, .numpy = "x0 - x1", .doc = "Difference; integers wrap."},
    {.name = "tanh", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"tanh">,
     .vjp = [](Vjp& s) { s.dx[0] = s.g - s.g * s.y * s.y; }, .tol = {.f32 = 4e-6}, .numpy = "np.tanh(x0)",
     .sample = {.lo = -4, .hi = 4}, .doc = "Hyperbolic tangent."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kElementwiseOps(kOps);

}  // namespace agc
