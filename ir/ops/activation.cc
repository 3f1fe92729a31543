// Activations, defined by other ops. Those with sums, exponentials or polynomials are computed in f32 for f16 and bf16;
// gradients are written out where that is more accurate than differentiating the definition. All are finite for finite
// arguments.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- elementwise

// Not a maximum: NaN stays, and the derivative at 0 is 0.
Value ReluDecompose(Rule& s) { return Where(LessEqual(s.x[0], FullLike(s.x[0], 0)), FullLike(s.x[0], 0), s.x[0]); }
void ReluVjp(Vjp& s) { s.dx[0] = Where(Greater(s.y, FullLike(s.y, 0)), s.g, FullLike(s.g, 0)); }

Value LeakyReluDecompose(Rule& s) {
  return Where(Greater(s.x[0], FullLike(s.x[0], 0)), s.x[0], s.x[0] * s.number("slope"));
}
void LeakyReluVjp(Vjp& s) { s.dx[0] = Where(Greater(s.x[0], FullLike(s.x[0], 0)), s.g, s.g * s.number("slope")); }

// From exp(-|x|), which never overflows.
Value SigmoidDecompose(Rule& s) {
  const Value x = Wide(s.x[0]), e = Exp(-Abs(x)), r = 1.0 / (1.0 + e);
  return CastTo(Where(Less(x, FullLike(x, 0)), e * r, r), s.x[0].dtype());
}
void SigmoidVjp(Vjp& s) {
  const Value y = Wide(s.y);
  s.dx[0] = CastTo(Wide(s.g) * (y * (1.0 - y)), s.g.dtype());
}

Value SiluDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return CastTo(x * Sigmoid(x), s.x[0].dtype());
}
void SiluVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), p = Sigmoid(x);
  s.dx[0] = CastTo(Wide(s.g) * (p * (1.0 + x * (1.0 - p))), s.g.dtype());
}

Value SoftplusDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  return CastTo(Maximum(x, FullLike(x, 0)) + Log1p(Exp(-Abs(x))), s.x[0].dtype());
}
void SoftplusVjp(Vjp& s) { s.dx[0] = CastTo(Wide(s.g) * Sigmoid(Wide(s.x[0])), s.g.dtype()); }

// Hendrycks and Gimpel (2016), "Gaussian error linear units": x times the normal distribution at x, which the second
// form approximates with tanh. Beyond 10 tanh is 1 in every dtype, and beyond 40 the density is 0, so polynomials are
// taken at a clamped argument and cannot overflow.
constexpr double kGeluScale = 0.7978845608028654;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;
bool IsTanhForm(const AttrReader& a) { return a.text("approximate") == "tanh"; }
Value TanhOf(Value u) { return Tanh(u * (1.0 + Square(u) * kGeluCubic) * kGeluScale); }
Value TanhFormSlope(Value x) {
  const Value u = Clamp(x, -10, 10), t = TanhOf(u);
  const Value inner = (1.0 + Square(u) * (3 * kGeluCubic)) * kGeluScale;
  return (1.0 + t) * 0.5 + u * 0.5 * (1.0 - Square(t)) * inner;
}
Value HalfNormal(Value x) { return Erfc(x * -0.7071067811865476) * 0.5; }
Value ErfFormSlope(Value x) {
  const Value u = Clamp(x, -40, 40);
  return HalfNormal(u) + u * Exp(Square(u) * -0.5) * (0.5 * kGeluScale);
}

Value GeluDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  const Value share = IsTanhForm(s) ? (1.0 + TanhOf(Clamp(x, -10, 10))) * 0.5 : HalfNormal(x);
  return CastTo(x * share, s.x[0].dtype());
}
void GeluVjp(Vjp& s) {
  const Value x = Wide(s.x[0]), slope = IsTanhForm(s) ? TanhFormSlope(x) : ErfFormSlope(x);
  s.dx[0] = CastTo(Wide(s.g) * slope, s.g.dtype());
}

// ---------------------------------------------------------------- along an axis

absl::StatusOr<Types> AlongAxis(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), call.type(0).rank()));
  return Types(call.type(0));
}

absl::StatusOr<Types> LogSumExpType(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(Types types, AlongAxis(call));
  types[0].dims.erase(types[0].dims.begin() + PositiveAxis(call.integer("axis"), types[0].rank()));
  return types;
}

Ints Axis(const AttrReader& a, Value x) { return {PositiveAxis(a.integer("axis"), x.rank())}; }

// x minus its largest element along the axis: at most 0.
Value Centred(Value x, const Ints& axis) { return x - ReduceMax(x, axis, true); }

Value SoftmaxDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Ints axis = Axis(s, s.x[0]);
  const Value e = Exp(Centred(Wide(s.x[0]), axis));
  return CastTo(e / ReduceSum(e, axis, true), s.x[0].dtype());
}
// A row of -inf has no weights, but none are asked for where the cotangent is 0.
void SoftmaxVjp(Vjp& s) {
  const Value y = Wide(s.y), g = Wide(s.g);
  const Value centred = g - ReduceSum(SafeMul(g, y), Axis(s, s.x[0]), true);
  s.dx[0] = CastTo(SafeMul(centred, y), s.g.dtype());
}

Value LogSoftmaxDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Ints axis = Axis(s, s.x[0]);
  const Value z = Centred(Wide(s.x[0]), axis);
  return CastTo(z - Log(ReduceSum(Exp(z), axis, true)), s.x[0].dtype());
}
// Gradients take softmax of a narrow operand: the exponential of a result that was rounded to f16 would be off by the
// absolute error of that.
bool Narrow(Value x) { return AccumulatorOf(x.dtype()) != x.dtype(); }

void LogSoftmaxVjp(Vjp& s) {
  const Value g = Wide(s.g);
  const Value p = Narrow(s.y) ? Softmax(Wide(s.x[0]), s.integer("axis")) : Exp(s.y);
  const Value sum = Broadcast(ReduceSum(g, Axis(s, s.x[0]), true), g.dims());
  s.dx[0] = CastTo(g - SafeMul(sum, p), s.g.dtype());
}

Value LogSumExpDecompose(Rule& s) { return ReduceLogSumExp(s.x[0], Axis(s, s.x[0])); }

// ---------------------------------------------------------------- dropout

absl::StatusOr<Types> DropoutType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  if (call.type(1) != TensorType{DType::kU32, {2}}) {
    return call.Error(absl::StrCat("the key is ", ToString(call.type(1)), ", expected u32[2]"));
  }
  const double rate = call.number("rate");
  if (!(rate >= 0 && rate < 1))
    return call.Error(absl::StrCat("rate is ", rate, ", expected 0 or more and less than 1"));
  return Types(call.type(0));
}

Value DropoutDecompose(Rule& s) {
  const Value x = s.x[0];
  const Value u = RandomUniform(s.x[1], s.integer("stream"), x.dims());
  const Value kept = GreaterEqual(u, FullLike(u, s.number("rate")));
  return Where(kept, x * (1 / (1 - s.number("rate"))), FullLike(x, 0));
}
// The same key and stream give the same mask.
void DropoutVjp(Vjp& s) { s.dx[0] = Dropout(s.g, s.x[1], s.integer("stream"), s.number("rate")); }

constexpr AttrList kLastAxis = {{"axis", kInt, "-1"}};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "dropout", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"stream", kInt}, {"rate", kFloat}}, .infer = DropoutType,
     .decompose = DropoutDecompose, .vjp = DropoutVjp, .numpy = "dropout(x0, x1, stream=stream, rate=rate)",
     .sample = {.shapes = {"f32[4,5]", "u32[2]"}, .attrs = "stream = 3, rate = 0.25", .lo = 0, .hi = 9},
     .doc = "Each element is 0 with probability `rate`, else divided by 1 - rate; the key u32[2] and the stream decide which."},
    {.name = "gelu", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"approximate", kString, "none", "none|tanh"}}, .infer = SameFloat,
     .decompose = GeluDecompose, .vjp = GeluVjp, .tol = {.f32 = 4e-6}, .numpy = "gelu(x0, approximate)", .sample = {.lo = -4, .hi = 4},
     .doc = "Gaussian error linear unit; as in ONNX and torch with erf, or the form with tanh."},
    {.name = "leaky_relu", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"slope", kFloat, "0.01"}}, .infer = SameFloat,
     .decompose = LeakyReluDecompose, .vjp = LeakyReluVjp, .numpy = "np.where(x0 > 0, x0, x0 * slope)",
     .doc = "x where it is positive, else x * slope, which is also the derivative at 0."},
    {.name = "log_softmax", .cls = OpClass::kComposite, .arity = 1, .attrs = kLastAxis, .infer = AlongAxis,
     .decompose = LogSoftmaxDecompose, .vjp = LogSoftmaxVjp, .tol = {.f32 = 4e-6}, .numpy = "log_softmax(x0, axis=axis)", .sample = {.lo = -4, .hi = 4},
     .doc = "Logarithm of softmax along one axis."},
    {.name = "logsumexp", .cls = OpClass::kComposite, .arity = 1, .attrs = kLastAxis, .infer = LogSumExpType,
     .decompose = LogSumExpDecompose, .tol = {.f32 = 4e-6}, .numpy = "logsumexp(x0, axis=axis)", .sample = {.lo = -4, .hi = 4},
     .doc = "Logarithm of the sum of exponentials along one axis, which goes; of nothing -inf."},
    {.name = "relu", .cls = OpClass::kComposite, .arity = 1, .infer = SameNumber, .decompose = ReluDecompose, .vjp = ReluVjp,
     .numpy = "np.maximum(x0, 0)", .doc = "The positive part; NaN stays NaN. The derivative at 0 is 0."},
    {.name = "sigmoid", .cls = OpClass::kComposite, .arity = 1, .infer = SameFloat, .decompose = SigmoidDecompose, .vjp = SigmoidVjp,
     .tol = {.f32 = 4e-6}, .numpy = "1 / (1 + np.exp(-x0))", .sample = {.lo = -4, .hi = 4}, .doc = "1 / (1 + exp(-x))."},
    {.name = "silu", .cls = OpClass::kComposite, .arity = 1, .infer = SameFloat, .decompose = SiluDecompose, .vjp = SiluVjp,
     .tol = {.f32 = 4e-6}, .numpy = "x0 / (1 + np.exp(-x0))", .sample = {.lo = -4, .hi = 4}, .doc = "x * sigmoid(x)."},
    {.name = "softmax", .cls = OpClass::kComposite, .arity = 1, .attrs = kLastAxis, .infer = AlongAxis,
     .decompose = SoftmaxDecompose, .vjp = SoftmaxVjp, .tol = {.f32 = 4e-6}, .numpy = "softmax(x0, axis=axis)", .sample = {.lo = -4, .hi = 4},
     .doc = "Exponentials divided by their sum along one axis; all -inf gives NaN."},
    {.name = "softplus", .cls = OpClass::kComposite, .arity = 1, .infer = SameFloat, .decompose = SoftplusDecompose, .vjp = SoftplusVjp,
     .tol = {.f32 = 4e-6}, .numpy = "np.logaddexp(0, x0)", .sample = {.lo = -4, .hi = 4}, .doc = "log(1 + exp(x))."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kActivationOps(kOps);

Value Relu(Value x, Loc loc) { return Emit("relu", {x}, {}, loc); }
Value Sigmoid(Value x, Loc loc) { return Emit("sigmoid", {x}, {}, loc); }
Value Gelu(Value x, Loc loc) { return Emit("gelu", {x}, {}, loc); }
Value GeluTanh(Value x, Loc loc) { return Emit("gelu", {x}, {Attr{"approximate", std::string("tanh")}}, loc); }
Value Silu(Value x, Loc loc) { return Emit("silu", {x}, {}, loc); }
Value Softplus(Value x, Loc loc) { return Emit("softplus", {x}, {}, loc); }
Value LeakyRelu(Value x, double slope, Loc loc) { return Emit("leaky_relu", {x}, {Attr{"slope", slope}}, loc); }
Value Softmax(Value x, int64_t axis, Loc loc) { return Emit("softmax", {x}, {Attr{"axis", axis}}, loc); }
Value LogSoftmax(Value x, int64_t axis, Loc loc) { return Emit("log_softmax", {x}, {Attr{"axis", axis}}, loc); }
Value LogSumExp(Value x, int64_t axis, Loc loc) { return Emit("logsumexp", {x}, {Attr{"axis", axis}}, loc); }
Value Dropout(Value x, Value key, int64_t stream, double rate, Loc loc) {
  return Emit("dropout", {x, key}, {Attr{"stream", stream}, Attr{"rate", rate}}, loc);
}

}  // namespace agc
