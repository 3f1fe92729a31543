// Activations made of pieces of straight lines, and hard_swish. At a kink the derivative is that of the flat side, as
// relu's is 0 at 0; the leaky ones take the slope of the negative side. NaN stays NaN.
#include "absl/strings/str_cat.h"
#include "ir/build_math.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using OpClass::kComposite;
using enum AttrKind;

// lo < x < hi, where a clamped line rises.
Value Between(Value x, double lo, double hi) { return LogicalAnd(Greater(x, Filled(x, lo)), Less(x, Filled(x, hi))); }
// lo <= x <= hi, where a shrunk line is flat.
Value Within(Value x, double lo, double hi) {
  return LogicalAnd(GreaterEqual(x, Filled(x, lo)), LessEqual(x, Filled(x, hi)));
}

Value Relu6Decompose(Rule& s) { return Clamp(s.x[0], 0, 6); }
void Relu6Vjp(Vjp& s) { s.dx[0] = Where(Between(s.x[0], 0, 6), s.g, Filled(s.g, 0)); }

absl::Status HardTanhVerify(const OpCall& call) {
  const double lo = call.number("lo"), hi = call.number("hi");
  return lo <= hi ? absl::OkStatus() : call.Error(absl::StrCat("lo is ", lo, " and hi is ", hi, ", expected lo <= hi"));
}
Value HardTanhDecompose(Rule& s) { return Clamp(s.x[0], s.number("lo"), s.number("hi")); }
void HardTanhVjp(Vjp& s) { s.dx[0] = Where(Between(s.x[0], s.number("lo"), s.number("hi")), s.g, Filled(s.g, 0)); }

Value HardSigmoidLine(const Rule& s) { return Wide(s.x[0]) * s.number("alpha") + s.number("beta"); }
Value HardSigmoidDecompose(Rule& s) { return NarrowTo(Clamp(HardSigmoidLine(s), 0, 1), s.x[0]); }
void HardSigmoidVjp(Vjp& s) {
  s.dx[0] = Where(Between(HardSigmoidLine(s), 0, 1), s.g * s.number("alpha"), Filled(s.g, 0));
}

// Howard and others (2019), "Searching for MobileNetV3": x relu6(x + 3) / 6.
Value HardSwishDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return NarrowTo(x * Clamp(x * (1.0 / 6) + 0.5, 0, 1), s.x[0]);
}
void HardSwishVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), curve = Clamp(x, -3, 3) * (1.0 / 3) + 0.5;
  const Value ends = Where(Less(x, Filled(x, 0)), Filled(x, 0), Filled(x, 1));
  s.dx[0] = NarrowTo(Mul(Wide(s.g), Where(Between(x, -3, 3), curve, ends)), s.g);
}

absl::Status ShrinkVerify(const OpCall& call) {
  const double lambd = call.number("lambd");
  return lambd >= 0 ? absl::OkStatus() : call.Error(absl::StrCat("lambd is ", lambd, ", expected 0 or more"));
}
Value ShrinkDecompose(Rule& s) {
  const Value x = s.x[0], zero = Filled(x, 0);
  const double lambd = s.number("lambd"), bias = s.number("bias");
  return Where(Within(x, -lambd, lambd), zero, Where(Greater(x, zero), x - bias, x + bias));
}
void ShrinkVjp(Vjp& s) {
  const double lambd = s.number("lambd");
  s.dx[0] = Where(Within(s.x[0], -lambd, lambd), Filled(s.g, 0), s.g);
}

Value ThresholdedReluDecompose(Rule& s) {
  const Value x = s.x[0];
  return Where(LessEqual(x, Filled(x, s.number("alpha"))), Filled(x, 0), x);
}
void ThresholdedReluVjp(Vjp& s) {
  const Value x = s.x[0];
  s.dx[0] = Where(LessEqual(x, Filled(x, s.number("alpha"))), Filled(s.g, 0), s.g);
}

Value PreluDecompose(Rule& s) { return Where(Greater(s.x[0], Filled(s.x[0], 0)), s.x[0], Mul(s.x[0], s.x[1])); }
void PreluVjp(Vjp& s) {
  const Value up = Greater(s.x[0], Filled(s.x[0], 0)), zero = Filled(s.g, 0);
  s.dx[0] = Where(up, s.g, Mul(s.g, s.x[1]));
  s.dx[1] = Mul(s.g, Where(up, zero, s.x[0]));
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "hard_sigmoid", .cls = kComposite, .arity = 1, .attrs = {{"alpha", kFloat, "0.16666666666666666"}, {"beta", kFloat, "0.5"}}, .infer = SameFloat,
     .decompose = HardSigmoidDecompose, .vjp = HardSigmoidVjp, .numpy = "np.clip(alpha * x0 + beta, 0, 1)", .sample = {.lo = -6, .hi = 6},
     .doc = "alpha x + beta, limited to [0, 1]; ONNX's default of alpha is 0.2."},
    {.name = "hard_swish", .cls = kComposite, .arity = 1, .infer = SameFloat, .decompose = HardSwishDecompose, .vjp = HardSwishVjp,
     .numpy = "x0 * np.clip(x0 + 3, 0, 6) / 6", .sample = {.lo = -5, .hi = 5}, .doc = "x relu6(x + 3) / 6."},
    {.name = "hard_tanh", .cls = kComposite, .arity = 1, .attrs = {{"lo", kFloat, "-1"}, {"hi", kFloat, "1"}}, .infer = SameFloat, .verify = HardTanhVerify,
     .decompose = HardTanhDecompose, .vjp = HardTanhVjp, .numpy = "np.clip(x0, lo, hi)", .sample = {.lo = -3, .hi = 3},
     .doc = "Limits to [lo, hi]; the gradient passes between them only."},
    {.name = "prelu", .cls = kComposite, .arity = 2, .infer = SameFloat, .decompose = PreluDecompose, .vjp = PreluVjp,
     .numpy = "np.where(x0 > 0, x0, x0 * x1)", .doc = "x where it is positive, else x times the slope, the second operand."},
    {.name = "relu6", .cls = kComposite, .arity = 1, .infer = SameNumber, .decompose = Relu6Decompose, .vjp = Relu6Vjp,
     .numpy = "np.clip(x0, 0, 6)", .sample = {.lo = -9, .hi = 9}, .doc = "Limits to [0, 6]; the gradient passes between them only."},
    {.name = "shrink", .cls = kComposite, .arity = 1, .attrs = {{"lambd", kFloat, "0.5"}, {"bias", kFloat, "0"}}, .infer = SameFloat, .verify = ShrinkVerify,
     .decompose = ShrinkDecompose, .vjp = ShrinkVjp, .numpy = "np.where(x0 > lambd, x0 - bias, np.where(x0 < -lambd, x0 + bias, 0))", .sample = {.attrs = "bias = 0.25", .lo = -2, .hi = 2},
     .doc = "0 within [-lambd, lambd], beyond it x moved towards 0 by bias: hard shrink with bias 0, soft shrink with bias = lambd."},
    {.name = "thresholded_relu", .cls = kComposite, .arity = 1, .attrs = {{"alpha", kFloat, "1"}}, .infer = SameFloat,
     .decompose = ThresholdedReluDecompose, .vjp = ThresholdedReluVjp, .numpy = "np.where(x0 > alpha, x0, 0)", .sample = {.lo = -3, .hi = 3},
     .doc = "x where it is above alpha, else 0."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kLinearActivationOps(kOps);

Value Relu6(Value x, Loc loc) { return Emit("relu6", {x}, {}, loc); }
Value HardTanh(Value x, double lo, double hi, Loc loc) {
  return Emit("hard_tanh", {x}, {Attr{"lo", lo}, Attr{"hi", hi}}, loc);
}
Value HardSigmoid(Value x, double alpha, double beta, Loc loc) {
  return Emit("hard_sigmoid", {x}, {Attr{"alpha", alpha}, Attr{"beta", beta}}, loc);
}
Value HardSwish(Value x, Loc loc) { return Emit("hard_swish", {x}, {}, loc); }
Value HardShrink(Value x, double lambd, Loc loc) { return Emit("shrink", {x}, {Attr{"lambd", lambd}}, loc); }
Value SoftShrink(Value x, double lambd, Loc loc) {
  return Emit("shrink", {x}, {Attr{"lambd", lambd}, Attr{"bias", lambd}}, loc);
}
Value ThresholdedRelu(Value x, double alpha, Loc loc) {
  return Emit("thresholded_relu", {x}, {Attr{"alpha", alpha}}, loc);
}
Value Prelu(Value x, Value slope, Loc loc) { return EmitBinary("prelu", x, slope, loc); }

}  // namespace agc
