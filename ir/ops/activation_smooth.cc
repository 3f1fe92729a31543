// Smooth activations, computed in f32 for f16 and bf16 and finite for finite arguments. Exponentials are taken of
// arguments that are not positive.
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_math.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using OpClass::kComposite;
using enum AttrKind;

Value IsPositive(Value x) { return Greater(x, Filled(x, 0)); }

// ---------------------------------------------------------------- exponential linear units

// scale * (x where it is positive, else alpha (exp(x / width) - 1)).
Value Elu(Value x, double scale, double alpha, double width) {
  return Where(IsPositive(x), x * scale, Expm1(NotPositive(x) * (1 / width)) * (scale * alpha));
}
Value EluSlope(Value x, double scale, double alpha, double width) {
  return Where(IsPositive(x), Filled(x, scale), Exp(NotPositive(x) * (1 / width)) * (scale * alpha / width));
}

// Clevert and others (2016).
Value EluDecompose(Rule& s) { return NarrowTo(Elu(Wide(s.x[0]), 1, s.number("alpha"), 1), s.x[0]); }
void EluVjp(Vjp& s) { s.dx[0] = Along(s, EluSlope(Wide(s.x[0]), 1, s.number("alpha"), 1)); }

// Barron (2017), "Continuously differentiable exponential linear units".
absl::Status CeluVerify(const OpCall& call) {
  return call.number("alpha") > 0
             ? absl::OkStatus()
             : call.Error(absl::StrCat("alpha is ", call.number("alpha"), ", expected more than 0"));
}
Value CeluDecompose(Rule& s) { return NarrowTo(Elu(Wide(s.x[0]), 1, s.number("alpha"), s.number("alpha")), s.x[0]); }
void CeluVjp(Vjp& s) { s.dx[0] = Along(s, EluSlope(Wide(s.x[0]), 1, s.number("alpha"), s.number("alpha"))); }

// Klambauer and others (2017), "Self-normalizing neural networks".
constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543772;
Value SeluDecompose(Rule& s) { return NarrowTo(Elu(Wide(s.x[0]), kSeluScale, kSeluAlpha, 1), s.x[0]); }
void SeluVjp(Vjp& s) { s.dx[0] = Along(s, EluSlope(Wide(s.x[0]), kSeluScale, kSeluAlpha, 1)); }

// ---------------------------------------------------------------- sigmoids

Value LogSigmoidDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return NarrowTo(NotPositive(x) - Log1p(Exp(-Abs(x))), s.x[0]);
}
void LogSigmoidVjp(Vjp& s) { s.dx[0] = Along(s, Sigmoid(-Wide(s.x[0]))); }

Value SwishDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return NarrowTo(x * Sigmoid(x * s.number("beta")), s.x[0]);
}
void SwishVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), z = x * s.number("beta"), p = Sigmoid(z), q = Sigmoid(-z);
  s.dx[0] = NarrowTo(Mul(Wide(s.g), p * (1.0 + z * q)), s.g);
}

absl::StatusOr<Types> GluType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  TensorType type = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), type.rank()));
  int64_t& extent = type.dims[PositiveAxis(call.integer("axis"), type.rank())];
  if (extent % 2 != 0) {
    return call.Error(absl::StrCat("axis ", call.integer("axis"), " of ", ToString(call.type(0)), " has ", extent,
                                   " elements, expected an even number"));
  }
  extent /= 2;
  return Types(type);
}
// Dauphin and others (2017), "Language modeling with gated convolutional networks".
Value GluDecompose(Rule& s) {
  const Value x = s.x[0];
  const int64_t axis = PositiveAxis(s.integer("axis"), x.rank()), half = x.dim(static_cast<int>(axis)) / 2;
  Ints start(x.rank(), 0), middle = x.dims(), limit = x.dims();
  middle[axis] = half;
  const Value a = Slice(x, start, middle, {});
  start[axis] = half;
  const Value b = Slice(x, start, limit, {});
  return NarrowTo(Mul(Wide(a), Sigmoid(Wide(b))), x);
}

// ---------------------------------------------------------------- tanh and its relatives

// Misra (2019). With e = exp(-|x|): tanh(softplus(x)) is (1 + 2e) / (1 + 2e + 2e^2) for x >= 0 and (e^2 + 2e) /
// (e^2 + 2e + 2) for x < 0; `rest` is 1 minus it. -|x| is a select, which has a slope at 0 as the branch has.
struct MishParts {
  Value t, rest;
};
MishParts TanhOfSoftplus(Value x) {
  const Value low = Less(x, Filled(x, 0)), e = Exp(Where(low, x, -x));
  const Value top = Where(low, Mul(e, e + 2.0), 1.0 + 2.0 * e);
  const Value more = Where(low, Filled(x, 2), 2.0 * Square(e)), bottom = Add(top, more);
  return {DivOf(top, bottom), DivOf(more, bottom)};
}
Value MishDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return NarrowTo(Mul(x, TanhOfSoftplus(x).t), s.x[0]);
}
void MishVjp(Vjp& s) {
  const Value x = Wide(s.x[0]);
  const MishParts m = TanhOfSoftplus(x);
  const Value slope = Add(m.t, Mul(Mul(x, Mul(m.rest, 1.0 + m.t)), Sigmoid(x)));
  s.dx[0] = NarrowTo(Mul(Wide(s.g), slope), s.g);
}

Value SoftsignDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return NarrowTo(DivOf(x, 1.0 + Abs(x)), s.x[0]);
}
void SoftsignVjp(Vjp& s) { s.dx[0] = Along(s, Square(1.0 / (1.0 + Abs(Wide(s.x[0]))))); }

Value TanhshrinkDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return NarrowTo(Sub(x, Tanh(x)), s.x[0]);
}
void TanhshrinkVjp(Vjp& s) { s.dx[0] = Along(s, Square(Tanh(Wide(s.x[0])))); }

constexpr Tolerance kClose = {.f32 = 4e-6};
constexpr Sample kWide = {.lo = -4, .hi = 4};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "celu", .cls = kComposite, .arity = 1, .attrs = {{"alpha", kFloat, "1"}}, .infer = SameFloat, .verify = CeluVerify,
     .decompose = CeluDecompose, .vjp = CeluVjp, .tol = kClose, .numpy = "np.where(x0 > 0, x0, alpha * np.expm1(x0 / alpha))", .sample = {.attrs = "alpha = 0.75", .lo = -4, .hi = 4},
     .doc = "x where it is positive, else alpha (exp(x / alpha) - 1)."},
    {.name = "elu", .cls = kComposite, .arity = 1, .attrs = {{"alpha", kFloat, "1"}}, .infer = SameFloat,
     .decompose = EluDecompose, .vjp = EluVjp, .tol = kClose, .numpy = "np.where(x0 > 0, x0, alpha * np.expm1(x0))", .sample = {.attrs = "alpha = 0.75", .lo = -4, .hi = 4},
     .doc = "x where it is positive, else alpha (exp(x) - 1), whose derivative holds at 0."},
    {.name = "glu", .cls = kComposite, .arity = 1, .attrs = {{"axis", kInt, "-1"}}, .infer = GluType,
     .decompose = GluDecompose, .tol = kClose, .numpy = "glu(x0, axis)", .sample = {.shapes = {"f32[3,4]"}, .lo = -4, .hi = 4},
     .doc = "First half along the axis times the sigmoid of the second half."},
    {.name = "log_sigmoid", .cls = kComposite, .arity = 1, .infer = SameFloat, .decompose = LogSigmoidDecompose, .vjp = LogSigmoidVjp,
     .tol = kClose, .numpy = "-np.logaddexp(0, -x0)", .sample = kWide, .doc = "Logarithm of sigmoid(x)."},
    {.name = "mish", .cls = kComposite, .arity = 1, .infer = SameFloat, .decompose = MishDecompose, .vjp = MishVjp,
     .tol = kClose, .numpy = "x0 * np.tanh(np.logaddexp(0, x0))", .sample = kWide, .doc = "x tanh(softplus(x))."},
    {.name = "selu", .cls = kComposite, .arity = 1, .infer = SameFloat, .decompose = SeluDecompose, .vjp = SeluVjp,
     .tol = kClose, .numpy = "1.0507009873554805 * np.where(x0 > 0, x0, 1.6732632423543772 * np.expm1(x0))", .sample = kWide,
     .doc = "elu with the alpha and scale of self-normalising networks."},
    {.name = "softsign", .cls = kComposite, .arity = 1, .infer = SameFloat, .decompose = SoftsignDecompose, .vjp = SoftsignVjp,
     .numpy = "x0 / (1 + np.abs(x0))", .sample = kWide, .doc = "x / (1 + |x|)."},
    {.name = "swish", .cls = kComposite, .arity = 1, .attrs = {{"beta", kFloat, "1"}}, .infer = SameFloat, .decompose = SwishDecompose, .vjp = SwishVjp,
     .tol = kClose, .numpy = "x0 / (1 + np.exp(-beta * x0))", .sample = {.attrs = "beta = 1.5", .lo = -4, .hi = 4},
     .doc = "x sigmoid(beta x); silu is the one with beta = 1."},
    {.name = "tanhshrink", .cls = kComposite, .arity = 1, .infer = SameFloat, .decompose = TanhshrinkDecompose, .vjp = TanhshrinkVjp,
     .tol = kClose, .numpy = "x0 - np.tanh(x0)", .sample = kWide, .doc = "x - tanh(x)."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kSmoothActivationOps(kOps);

Value Elu(Value x, double alpha, Loc loc) { return Emit("elu", {x}, {Attr{"alpha", alpha}}, loc); }
Value Celu(Value x, double alpha, Loc loc) { return Emit("celu", {x}, {Attr{"alpha", alpha}}, loc); }
Value Selu(Value x, Loc loc) { return Emit("selu", {x}, {}, loc); }
Value Glu(Value x, int64_t axis, Loc loc) { return Emit("glu", {x}, {Attr{"axis", axis}}, loc); }
Value LogSigmoid(Value x, Loc loc) { return Emit("log_sigmoid", {x}, {}, loc); }
Value Mish(Value x, Loc loc) { return Emit("mish", {x}, {}, loc); }
Value Softsign(Value x, Loc loc) { return Emit("softsign", {x}, {}, loc); }
Value Swish(Value x, double beta, Loc loc) { return Emit("swish", {x}, {Attr{"beta", beta}}, loc); }
Value Tanhshrink(Value x, Loc loc) { return Emit("tanhshrink", {x}, {}, loc); }

}  // namespace agc
