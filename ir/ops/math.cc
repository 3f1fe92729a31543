// Exponentials, logarithms, roots, rounding, signs and extremes beyond those of elementwise.cc.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/build_math.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.6931471805599453, kLn10 = 2.302585092994046;
constexpr double kErfSlope = 1.1283791670955126;  // 2 / sqrt(pi)

// ---------------------------------------------------------------- exponentials, logarithms, roots

// exp(-x^2), clamped where it is 0 in f64 already, so that the derivative of the square stays finite.
Value Gaussian(Value x) { return Exp(-Square(Clamp(x, -28, 28))); }

// 1 / (3 y^2), infinite at 0.
void CbrtVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), zero = Equal(x, Filled(x, 0)), safe = Where(zero, Filled(x, 1), x);
  s.dx[0] = Along(s, Where(zero, Filled(x, kInf), (1.0 / 3) / Square(Cbrt(safe))));
}

Value LogAddExpDecompose(Rule& s) {
  const Value a = Wide(s.x[0]), b = Wide(s.x[1]);
  const Value sum = Add(Maximum(a, b), Log1p(Exp(-Abs(Sub(a, b)))));
  return NarrowTo(Where(Equal(a, b), a + kLn2, sum), s.x[0]);  // equal infinities have no difference
}
void LogAddExpVjp(Vjp& s) {
  const Value a = Wide(s.x[0]), b = Wide(s.x[1]);
  const Value d = Where(Equal(a, b), Filled(a, 0), Sub(a, b));
  s.dx[0] = Along(s, Sigmoid(d));
  s.dx[1] = Along(s, Sigmoid(-d));
}

absl::Status LogitVerify(const OpCall& call) {
  const double eps = call.number("eps");
  if (eps >= 0 && eps <= 0.5) return absl::OkStatus();
  return call.Error(absl::StrCat("eps is ", eps, ", expected 0 to 0.5"));
}
Value LogitArgument(const Rule& s) {
  const double eps = s.number("eps");
  return eps > 0 ? Clamp(Wide(s.x[0]), eps, 1 - eps) : Wide(s.x[0]);
}
// x / (1 - x) - 1 = (2x - 1) / (1 - x), which is exact relative to small results near x = 1/2; 2x - 1 needs x >= 1/4.
Value LogitDecompose(Rule& s) {
  const Value x = LogitArgument(s);
  const Value low = Log(x) - Log1p(-x), high = Log1p(DivOf(2.0 * x - 1.0, 1.0 - x));
  return NarrowTo(Where(Less(x, Filled(x, 0.25)), low, high), s.x[0]);
}
void LogitVjp(Vjp& s) {
  const Value x = LogitArgument(s), g = Wide(s.g), slope = SafeDiv(g, x) + SafeDiv(g, 1.0 - x);
  const Value kept = s.number("eps") > 0 ? Where(Equal(x, Wide(s.x[0])), slope, Filled(x, 0)) : slope;
  s.dx[0] = NarrowTo(kept, s.g);
}

// 0 where x is 0 and y no NaN.
Value XlogyDecompose(Rule& s) {
  const Value x = Wide(s.x[0]), y = Wide(s.x[1]), zero = Filled(x, 0);
  const Value none = LogicalAnd(Equal(x, zero), LogicalNot(IsNan(y)));
  return NarrowTo(Where(none, zero, Mul(x, Log(Where(none, Filled(y, 1), y)))), s.x[0]);
}
void XlogyVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), y = Wide(s.x[1]), zero = Filled(x, 0), one = Filled(y, 1);
  const Value none = LogicalAnd(Equal(x, zero), LessEqual(y, zero));
  const Value safe = Where(none, one, y);
  s.dx[0] = Along(s, Where(none, zero, Log(safe)));
  s.dx[1] = NarrowTo(SafeDiv(Mul(Wide(s.g), x), safe), s.g);
}

// ---------------------------------------------------------------- rounding, signs, extremes

// The remainder, moved by one divisor where its sign is not the divisor's; a zero has the divisor's sign.
Expr ModAt(At& s, Index i) {
  const Expr a = s.Read(0, i), b = s.Read(1, i), r = Alu("rem", {a, b}), zero = s.Number(0);
  if (IsUnsigned(a.dtype())) return r;
  const Expr whole = IsFloat(a.dtype()) ? Select(Alu("lt", {b, zero}), s.Number(-0.0), zero) : r;
  const Expr other = Alu("ne", {Alu("lt", {r, zero}), Alu("lt", {b, zero})});
  const Expr moved = IsFloat(a.dtype()) ? r + b : Select(Alu("eq", {b, zero}), r, r + b);
  return Select(Alu("eq", {r, zero}), whole, Select(other, moved, r));
}
void CopySignVjp(Vjp& s) { s.dx[0] = s.g * Sign(s.x[0]) * CopySign(Filled(s.g, 1), s.x[1]); }

// The extreme of both, and of a number and NaN the number.
Expr FextremeAt(At& s, Index i, absl::string_view extreme) {
  const Expr a = s.Read(0, i), b = s.Read(1, i), both = Alu(extreme, {a, b});
  if (!IsFloat(a.dtype())) return both;
  return Select(Alu("isnan", {a}), b, Select(Alu("isnan", {b}), a, both));
}
// The winner takes the cotangent; equals share it, two NaNs too.
void FextremeVjp(Vjp& s, Value first_wins, Value second_wins) {
  const Value zero = Filled(s.g, 0), half = s.g * 0.5, a = IsNan(s.x[0]), b = IsNan(s.x[1]);
  first_wins = LogicalOr(first_wins, LogicalAnd(b, LogicalNot(a)));
  second_wins = LogicalOr(second_wins, LogicalAnd(a, LogicalNot(b)));
  s.dx[0] = Where(first_wins, s.g, Where(second_wins, zero, half));
  s.dx[1] = Where(second_wins, s.g, Where(first_wins, zero, half));
}

// Exact at both ends: the nearer one is the start.
Value LerpDecompose(Rule& s) {
  const Value a = Wide(s.x[0]), b = Wide(s.x[1]), t = Wide(s.x[2]), d = Sub(b, a);
  return NarrowTo(Where(Less(t, Filled(t, 0.5)), Add(a, Mul(t, d)), Sub(b, Mul(1.0 - t, d))), s.x[0]);
}
void LerpVjp(Vjp& s) {
  const Value a = Wide(s.x[0]), b = Wide(s.x[1]), t = Wide(s.x[2]), g = Wide(s.g);
  s.dx[0] = NarrowTo(Mul(g, 1.0 - t), s.g);
  s.dx[1] = NarrowTo(Mul(g, t), s.g);
  s.dx[2] = NarrowTo(Mul(g, Sub(b, a)), s.g);
}

double Largest(DType dtype) {
  if (dtype == DType::kF64) return std::numeric_limits<double>::max();
  if (dtype == DType::kF32) return std::numeric_limits<float>::max();
  return dtype == DType::kF16 ? 65504 : std::ldexp(255, 120);
}
Expr NanToNumAt(At& s, Index i) {
  const Expr x = s.Read(0, i);
  const double most = Largest(s.out().dtype), up = s.number("posinf"), down = s.number("neginf");
  const Expr high = s.Number(up == kInf ? most : up), low = s.Number(down == -kInf ? -most : down);
  const Expr infinite = Select(Alu("eq", {x, s.Number(kInf)}), high, Select(Alu("eq", {x, s.Number(-kInf)}), low, x));
  return Select(Alu("isnan", {x}), s.Number(s.number("nan")), infinite);
}

constexpr Sample kPositive = {.lo = 0.5, .hi = 2};
constexpr Sample kSteps = {.lo = -4, .hi = 4, .differentiable = false};
constexpr Tolerance kClose = {.f32 = 2e-6};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cbrt", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"cbrt">, .vjp = CbrtVjp, .tol = kClose,
     .numpy = "np.cbrt(x0)", .sample = kPositive, .doc = "Cube root, also of negative numbers."},
    {.name = "copysign", .cls = kElementwise, .arity = 2, .infer = SameFloat, .at = Map<"copysign">, .vjp = CopySignVjp,
     .numpy = "np.copysign(x0, x1)", .doc = "Magnitude of the first with the sign of the second, to which no gradient passes."},
    {.name = "erf", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"erf">,
     .vjp = [](Vjp& s) { s.dx[0] = Along(s, Gaussian(Wide(s.x[0])) * kErfSlope); }, .tol = kClose,
     .numpy = "erf(x0)", .sample = {.lo = -3, .hi = 3}, .doc = "Error function."},
    {.name = "erfc", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"erfc">,
     .vjp = [](Vjp& s) { s.dx[0] = Along(s, Gaussian(Wide(s.x[0])) * -kErfSlope); }, .tol = kClose,
     .numpy = "1 - erf(x0)", .sample = {.lo = -3, .hi = 3}, .doc = "1 - erf(x), exact relative to small results too."},
    {.name = "exp2", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"exp2">,
     .vjp = [](Vjp& s) { s.dx[0] = Along(s, Wide(s.y) * kLn2); }, .tol = {.f32 = 4e-6},
     .numpy = "np.exp2(x0)", .sample = {.lo = -4, .hi = 4}, .doc = "2 to the power of x."},
    {.name = "expm1", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"expm1">,
     .vjp = [](Vjp& s) { s.dx[0] = Along(s, Exp(Wide(s.x[0]))); }, .tol = kClose,
     .numpy = "np.expm1(x0)", .sample = {.lo = -4, .hi = 4}, .doc = "exp(x) - 1, exact near 0."},
    {.name = "fmax", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = [](At& s, Index i) { return FextremeAt(s, i, "max"); },
     .vjp = [](Vjp& s) { FextremeVjp(s, Greater(s.x[0], s.x[1]), Less(s.x[0], s.x[1])); },
     .numpy = "np.fmax(x0, x1)", .doc = "Larger of two, the other where one is NaN; equals share the gradient evenly."},
    {.name = "fmin", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = [](At& s, Index i) { return FextremeAt(s, i, "min"); },
     .vjp = [](Vjp& s) { FextremeVjp(s, Less(s.x[0], s.x[1]), Greater(s.x[0], s.x[1])); },
     .numpy = "np.fmin(x0, x1)", .doc = "Smaller of two, the other where one is NaN; equals share the gradient evenly."},
    {.name = "lerp", .cls = kComposite, .arity = 3, .infer = SameFloat, .decompose = LerpDecompose, .vjp = LerpVjp,
     .numpy = "x0 + x2 * (x1 - x0)", .sample = {.lo = 0, .hi = 1}, .doc = "a + t (b - a), exact at t = 0 and t = 1."},
    {.name = "log10", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"log10">,
     .vjp = [](Vjp& s) { s.dx[0] = Across(s, Wide(s.x[0]) * kLn10); }, .tol = kClose,
     .numpy = "np.log10(x0)", .sample = kPositive, .doc = "Logarithm to base 10."},
    {.name = "log1p", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"log1p">,
     .vjp = [](Vjp& s) { s.dx[0] = Across(s, Wide(s.x[0]) + 1.0); }, .tol = kClose,
     .numpy = "np.log1p(x0)", .sample = {.lo = -0.5, .hi = 4}, .doc = "log(1 + x), exact near 0."},
    {.name = "log2", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"log2">,
     .vjp = [](Vjp& s) { s.dx[0] = Across(s, Wide(s.x[0]) * kLn2); }, .tol = kClose,
     .numpy = "np.log2(x0)", .sample = kPositive, .doc = "Logarithm to base 2."},
    {.name = "logaddexp", .cls = kComposite, .arity = 2, .infer = SameFloat, .decompose = LogAddExpDecompose, .vjp = LogAddExpVjp,
     .tol = {.f32 = 4e-6}, .numpy = "np.logaddexp(x0, x1)", .sample = {.lo = -4, .hi = 4}, .doc = "log(exp(a) + exp(b)) without overflow on the way."},
    {.name = "logit", .cls = kComposite, .arity = 1, .attrs = {{"eps", AttrKind::kFloat, "0"}}, .infer = SameFloat, .verify = LogitVerify,
     .decompose = LogitDecompose, .vjp = LogitVjp, .tol = {.f32 = 4e-6}, .numpy = "np.log(x0) - np.log1p(-x0)", .sample = {.lo = 0.2, .hi = 0.8},
     .doc = "log(x / (1 - x)), the inverse of sigmoid; with eps above 0 x is first limited to [eps, 1 - eps]."},
    {.name = "mod", .cls = kElementwise, .arity = 2, .infer = SameNumber, .at = ModAt, .vjp = RemainderVjp, .tol = {.f32 = 4e-6},
     .numpy = "np.remainder(x0, x1)", .sample = {.lo = 0.5, .hi = 4}, .doc = "Remainder with the divisor's sign; by integer 0 the dividend."},
    {.name = "nan_to_num", .cls = kElementwise, .arity = 1,
     .attrs = {{"nan", AttrKind::kFloat, "0"}, {"posinf", AttrKind::kFloat, "inf"}, {"neginf", AttrKind::kFloat, "-inf"}}, .infer = SameFloat, .at = NanToNumAt,
     .vjp = [](Vjp& s) { s.dx[0] = Where(IsFinite(s.x[0]), s.g, Filled(s.g, 0)); },
     .numpy = "np.nan_to_num(x0)", .doc = "NaN becomes `nan`, infinities the dtype's largest numbers or the given ones; those pass no gradient."},
    {.name = "trunc", .cls = kElementwise, .arity = 1, .infer = SameFloat, .at = Map<"trunc">, .vjp = NoGradient,
     .numpy = "np.trunc(x0)", .sample = kSteps, .doc = "Whole number towards 0; passes no gradient."},
    {.name = "xlogy", .cls = kComposite, .arity = 2, .infer = SameFloat, .decompose = XlogyDecompose, .vjp = XlogyVjp, .tol = {.f32 = 4e-6},
     .numpy = "x0 * np.log(x1)", .sample = kPositive, .doc = "x log(y), and 0 where x is 0."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kMathOps(kOps);

void RemainderVjp(Vjp& s) {
  s.dx[0] = s.g;
  s.dx[1] = -SafeMul(s.g, Round(DivOf(Sub(s.x[0], s.y), s.x[1])));
}

Value Exp2(Value x, Loc loc) { return Emit("exp2", {x}, {}, loc); }
Value Expm1(Value x, Loc loc) { return Emit("expm1", {x}, {}, loc); }
Value Log2(Value x, Loc loc) { return Emit("log2", {x}, {}, loc); }
Value Log10(Value x, Loc loc) { return Emit("log10", {x}, {}, loc); }
Value Log1p(Value x, Loc loc) { return Emit("log1p", {x}, {}, loc); }
Value LogAddExp(Value a, Value b, Loc loc) { return EmitBinary("logaddexp", a, b, loc); }
Value Logit(Value x, double eps, Loc loc) { return Emit("logit", {x}, {Attr{"eps", eps}}, loc); }
Value Xlogy(Value x, Value y, Loc loc) { return EmitBinary("xlogy", x, y, loc); }
Value Cbrt(Value x, Loc loc) { return Emit("cbrt", {x}, {}, loc); }
Value Erf(Value x, Loc loc) { return Emit("erf", {x}, {}, loc); }
Value Erfc(Value x, Loc loc) { return Emit("erfc", {x}, {}, loc); }
Value Trunc(Value x, Loc loc) { return Emit("trunc", {x}, {}, loc); }
Value Mod(Value a, Value b, Loc loc) { return EmitBinary("mod", a, b, loc); }
Value CopySign(Value x, Value sign, Loc loc) { return EmitBinary("copysign", x, sign, loc); }
Value Fmax(Value a, Value b, Loc loc) { return EmitBinary("fmax", a, b, loc); }
Value Fmin(Value a, Value b, Loc loc) { return EmitBinary("fmin", a, b, loc); }
Value ClampMin(Value x, double lo, Loc loc) { return Emit("clamp", {x}, {Attr{"lo", lo}}, loc); }
Value ClampMax(Value x, double hi, Loc loc) { return Emit("clamp", {x}, {Attr{"hi", hi}}, loc); }

Value Lerp(Value a, Value b, Value t, Loc loc) {
  if (a.valid() && b.valid() && t.valid()) {
    Dims ends, dims;
    if (!CommonDims(a.dims(), b.dims(), ends) || !CommonDims(ends, t.dims(), dims)) {
      return Poison(*a.builder, loc,
                    absl::StrCat("lerp: shapes do not broadcast (", ToString(a.type()), ", ", ToString(b.type()),
                                 " and ", ToString(t.type()), ")"));
    }
    for (Value* v : {&a, &b, &t}) {
      if (v->dims() != dims) *v = Broadcast(*v, dims, loc);
    }
  }
  return Emit("lerp", {a, b, t}, {}, loc);
}

Value NanToNum(Value x, NanToNumOptions o, Loc loc) {
  return Emit("nan_to_num", {x}, {Attr{"nan", o.nan}, Attr{"posinf", o.posinf}, Attr{"neginf", o.neginf}}, loc);
}

}  // namespace agc
