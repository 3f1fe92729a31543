// Normalisation, defined by other ops and computed in f32 for f16 and bf16. Scales, shifts and statistics may be f32
// beside a narrower input. Deviations are taken from shifted data: the first element of each row goes before the mean
// is taken, so that a common offset costs no bits and a row of equal elements has deviations of exactly 0 (Chan, Golub
// and LeVeque 1983, "Algorithms for computing the sample variance", section 3).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"
#include "ir/tuple.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- mean and variance

// Deviations from the mean over `axes`, and the mean with those axes kept. The gradient of either with respect to the
// subtracted element is 0.
struct Centred {
  Value rows = {}, mean = {};
};
Centred Centre(Value x, const Ints& axes) {
  Ints limit = x.dims();
  for (int64_t axis : axes) limit[axis] = 1;
  const Value first = StopGradient(Slice(x, Ints(limit.size(), 0), limit, {}));
  const Value shifted = x - first;
  const Value mean = ReduceMean(shifted, axes, true);
  return {shifted - mean, first + mean};
}

// Rows with mean 0 and variance 1, and 1 / deviation.
struct Normalized {
  Value rows = {}, scale = {};
};
Normalized Normalize(Value x, const Ints& axes, double epsilon) {
  const Value centred = Centre(x, axes).rows;
  const Value variance = ReduceMean(Square(centred), axes, true);
  const bool is_safe = RoundTo(variance.dtype(), epsilon) > 0;
  const Value scale = is_safe ? Rsqrt(variance + epsilon) : ZeroAtZero(variance, [](Value v) { return Rsqrt(v); });
  return {centred * scale, scale};
}

absl::StatusOr<Types> MeanVarianceType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes", call.ints("axes"), call.type(0).rank()));
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "epsilon"));
  return Types(call.type(0));
}

Ints AxesOf(const Rule& s) { return PositiveAxes(s.ints("axes"), s.x[0].rank()); }

Value MeanVarianceDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  return CastTo(Normalize(Wide(s.x[0]), AxesOf(s), s.number("epsilon")).rows, s.x[0].dtype());
}

void MeanVarianceVjp(Vjp& s) {
  if (s.x[0].type().elements() == 0) {
    s.dx[0] = FullLike(s.x[0], 0);
    return;
  }
  const Ints axes = AxesOf(s);
  const Value g = Wide(s.g);
  const Normalized n = Normalize(Wide(s.x[0]), axes, s.number("epsilon"));
  const Value along = n.rows * ReduceMean(g * n.rows, axes, true);
  s.dx[0] = CastTo(n.scale * (g - ReduceMean(g, axes, true) - along), s.x[0].dtype());
}

// ---------------------------------------------------------------- layer_norm, rms_norm

// Scale and shift cover the last axes of the input, all of one shape.
absl::StatusOr<Types> LastAxesType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "epsilon"));
  const Dims &x = call.type(0).dims, &scale = call.type(1).dims;
  if (scale.empty() || scale.size() > x.size() || !std::equal(scale.begin(), scale.end(), x.end() - scale.size())) {
    return call.Error(absl::StrCat("scale is ", ToString(call.type(1)), ", expected the last dimensions of ",
                                   ToString(call.type(0)), ", ", ToString(TensorType{call.type(0).dtype, {x.back()}}),
                                   " say"));
  }
  AGC_RETURN_IF_ERROR(CheckParamDType(call, 1, "scale"));
  if (call.arity() == 3) AGC_RETURN_IF_ERROR(CheckParam(call, 2, "shift", scale));
  return Types(call.type(0));
}

Ints LastAxes(const Rule& s) {
  Ints axes;
  for (int64_t k = s.x[0].rank() - s.x[1].rank(); k < s.x[0].rank(); ++k) axes.push_back(k);
  return axes;
}

Value LayerNormDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  Value y = MeanVarianceNorm(Wide(s.x[0]), LastAxes(s), s.number("epsilon")) * Wide(s.x[1]);
  if (s.x.size() == 3) y = y + Wide(s.x[2]);
  return CastTo(y, s.x[0].dtype());
}

// Zhang and Sennrich (2019), "Root mean square layer normalization", equation 4.
Value RmsNormDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Value x = Wide(s.x[0]);
  const Value scale = Rsqrt(ReduceMean(Square(x), LastAxes(s), true) + s.number("epsilon"));
  return CastTo(x * scale * Wide(s.x[1]), s.x[0].dtype());
}

// ---------------------------------------------------------------- per channel

// Operands from the second on are called `params` and have one number per element of axis 1.
absl::Status CheckChannels(const OpCall& call, int min_rank, absl::Span<const absl::string_view> params) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, min_rank));
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "epsilon"));
  for (int k = 1; k < call.arity(); ++k) {
    AGC_RETURN_IF_ERROR(CheckParam(call, k, params[k - 1], {call.type(0).dims[1]}));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> BatchNormType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckChannels(call, 2, {"mean", "variance", "scale", "shift"}));
  return Types(call.type(0));
}

Value Channels(const Rule& s, int k) { return AlongAxes(Wide(s.x[k]), s.x[0].rank(), {1}); }

Value BatchNormDecompose(Rule& s) {
  Value scale = Rsqrt(Channels(s, 2) + s.number("epsilon"));
  if (s.x.size() > 3) scale = scale * Channels(s, 3);
  const Value y = (Wide(s.x[0]) - Channels(s, 1)) * scale;
  return CastTo(s.x.size() > 4 ? y + Channels(s, 4) : y, s.x[0].dtype());
}

absl::StatusOr<Types> BatchNormTrainType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckChannels(call, 2, {"scale", "shift"}));
  const TensorType& x = call.type(0);
  if (x.elements() == 0) return call.Error(absl::StrCat("the input is ", ToString(x), ", which has no mean"));
  const TensorType statistic{AccumulatorOf(x.dtype), {x.dims[1]}};
  return Types{x, statistic, statistic};
}

Value BatchNormTrainDecompose(Rule& s) {
  const Value x = Wide(s.x[0]);
  Ints axes;
  for (int64_t k = 0; k < x.rank(); ++k) {
    if (k != 1) axes.push_back(k);
  }
  const Centred centred = Centre(x, axes);
  const Value variance = ReduceMean(Square(centred.rows), axes);
  const Value rows = MeanVarianceNorm(x, axes, s.number("epsilon"));
  const Value y = CastTo(rows * Channels(s, 1) + Channels(s, 2), s.x[0].dtype());
  return Tuple({y, Reshape(centred.mean, variance.dims()), variance});
}

absl::StatusOr<Types> GroupNormType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckChannels(call, 2, {"scale", "shift"}));
  const int64_t groups = call.integer("groups"), channels = call.type(0).dims[1];
  if (groups < 1 || channels % groups != 0) {
    return call.Error(absl::StrCat("groups is ", groups, ", expected a divisor of the ", channels, " channels"));
  }
  return Types(call.type(0));
}

// Wu and He (2018), "Group normalization".
Value GroupNormDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Value x = Wide(s.x[0]);
  const Dims dims = x.dims();
  const Value rows = MeanVarianceNorm(Reshape(x, {dims[0], s.integer("groups"), -1}), {2}, s.number("epsilon"));
  return CastTo(Reshape(rows, dims) * Channels(s, 1) + Channels(s, 2), s.x[0].dtype());
}

absl::StatusOr<Types> InstanceNormType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckChannels(call, 3, {"scale", "shift"}));
  return Types(call.type(0));
}

Value InstanceNormDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  Ints axes;
  for (int64_t k = 2; k < s.x[0].rank(); ++k) axes.push_back(k);
  const Value rows = MeanVarianceNorm(Wide(s.x[0]), axes, s.number("epsilon"));
  return CastTo(rows * Channels(s, 1) + Channels(s, 2), s.x[0].dtype());
}

// ---------------------------------------------------------------- by size

absl::StatusOr<Types> LrnType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 2));
  const int64_t size = call.integer("size");
  if (size < 1) return call.Error(absl::StrCat("size is ", size, ", expected 1 or more"));
  return Types(call.type(0));
}

// Krizhevsky, Sutskever and Hinton (2012), section 3.3, with alpha divided by the size as ONNX has it. The sum of an
// even size reaches one channel further up than down.
Value LrnDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Value x = Wide(s.x[0]);
  const Dims dims = x.dims();
  const int64_t size = s.integer("size"), channels = dims[1];
  const int64_t below = std::min((size - 1) / 2, channels - 1), above = std::min(size / 2, channels - 1);
  const Value planes = Reshape(Square(x), {dims[0], 1, channels, -1});
  const Attr attrs[] = {
      {"window", Ints{below + 1 + above, 1}}, {"stride", Ints{1, 1}}, {"pad", Ints{below, 0, above, 0}}};
  const Value sum = Reshape(ReduceSum(Emit("sliding_windows", {planes}, attrs, s.op.loc), {4, 5}), dims);
  const Value base = sum * (s.number("alpha") / static_cast<double>(size)) + s.number("bias");
  return CastTo(x * Pow(base, FullLike(base, -s.number("beta"))), s.x[0].dtype());
}

absl::StatusOr<Types> LpNormalizeType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), call.type(0).rank()));
  const int64_t p = call.integer("p");
  if (p != 1 && p != 2) return call.Error(absl::StrCat("p is ", p, ", expected 1 or 2"));
  const double epsilon = call.number("epsilon");
  if (!(epsilon > 0)) return call.Error(absl::StrCat("epsilon is ", epsilon, ", expected more than 0"));
  return Types(call.type(0));
}

Value LpNormalizeDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Value x = Wide(s.x[0]);
  const Ints axes = {PositiveAxis(s.integer("axis"), x.rank())};
  const Value norm = s.integer("p") == 1 ? ReduceSum(Abs(x), axes, true) : Sqrt(ReduceSum(Square(x), axes, true));
  return CastTo(x / Maximum(norm, FullLike(norm, s.number("epsilon"))), s.x[0].dtype());
}

constexpr AttrList kEpsilon = {{"epsilon", kFloat, "1e-05"}};
constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "batch_norm", .cls = OpClass::kComposite, .arity = {3, 5}, .attrs = kEpsilon, .infer = BatchNormType, .decompose = BatchNormDecompose,
     .tol = kTolerance, .numpy = "batch_norm(x0, x1, x2, x3, epsilon=epsilon)",
     .sample = {.shapes = {"f32[2,3,4]", "f32[3]", "f32[3]", "f32[3]"}, .lo = 0.25, .hi = 2},
     .doc = "(x - mean) / sqrt(variance + epsilon) * scale + shift per channel, which is axis 1; the operands are x, mean, variance and, if given, scale and shift."},
    {.name = "batch_norm_train", .cls = OpClass::kComposite, .arity = 3, .attrs = kEpsilon, .infer = BatchNormTrainType,
     .decompose = BatchNormTrainDecompose, .tol = kTolerance, .numpy = "batch_norm_train(x0, x1, x2, epsilon=epsilon)",
     .sample = {.shapes = {"f32[3,2,4]", "f32[2]", "f32[2]"}},
     .doc = "batch_norm by the batch's own statistics: the result, the mean and the biased variance per channel, the latter two f32 for f16 and bf16."},
    {.name = "group_norm", .cls = OpClass::kComposite, .arity = 3, .attrs = {{"groups", kInt}, {"epsilon", kFloat, "1e-05"}},
     .infer = GroupNormType, .decompose = GroupNormDecompose, .tol = kTolerance, .numpy = "group_norm(x0, x1, x2, groups=groups, epsilon=epsilon)",
     .sample = {.shapes = {"f32[2,4,3]", "f32[4]", "f32[4]"}, .attrs = "groups = 2"},
     .doc = "Brings each group of channels of each example to mean 0 and variance 1, then scales and shifts per channel, which is axis 1."},
    {.name = "instance_norm", .cls = OpClass::kComposite, .arity = 3, .attrs = kEpsilon, .infer = InstanceNormType,
     .decompose = InstanceNormDecompose, .tol = kTolerance, .numpy = "instance_norm(x0, x1, x2, epsilon=epsilon)",
     .sample = {.shapes = {"f32[2,3,5]", "f32[3]", "f32[3]"}},
     .doc = "Brings each channel of each example to mean 0 and variance 1, then scales and shifts per channel, which is axis 1."},
    {.name = "layer_norm", .cls = OpClass::kComposite, .arity = {2, 3}, .attrs = kEpsilon, .infer = LastAxesType,
     .decompose = LayerNormDecompose, .tol = kTolerance,
     .numpy = "layer_norm(x0, x1, x2, epsilon=epsilon)", .sample = {.shapes = {"f32[3,8]", "f32[8]", "f32[8]"}},
     .doc = "Brings the last axes, which the second operand has, to mean 0 and variance 1, multiplies by the second operand and adds the third, if there is one."},
    {.name = "lp_normalize", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"axis", kInt, "-1"}, {"p", kInt, "2"}, {"epsilon", kFloat, "1e-12"}},
     .infer = LpNormalizeType, .decompose = LpNormalizeDecompose, .tol = {.f32 = 4e-6}, .numpy = "lp_normalize(x0, axis=axis, p=p, epsilon=epsilon)",
     .doc = "Divides by the norm along an axis, the sum of magnitudes (p = 1) or the root of the sum of squares (p = 2), epsilon at least."},
    {.name = "lrn", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"size", kInt}, {"alpha", kFloat, "0.0001"}, {"beta", kFloat, "0.75"}, {"bias", kFloat, "1"}},
     .infer = LrnType, .decompose = LrnDecompose, .tol = kTolerance, .numpy = "lrn(x0, size=size, alpha=alpha, beta=beta, bias=bias)",
     .sample = {.shapes = {"f32[2,5,3]"}, .attrs = "size = 3, alpha = 0.5"},
     .doc = "Local response normalisation: x / (bias + alpha / size * sum of x^2 over size channels around)^beta; channels are axis 1."},
    {.name = "mean_variance_norm", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"axes", kInts, "[]"}, {"epsilon", kFloat, "1e-05"}},
     .infer = MeanVarianceType, .decompose = MeanVarianceDecompose, .vjp = MeanVarianceVjp, .tol = kTolerance,
     .numpy = "mean_variance_norm(x0, axes, epsilon=epsilon)", .sample = {.shapes = {"f32[3,4,5]"}, .attrs = "axes = [0, 2]"},
     .doc = "(x - mean) / sqrt(variance + epsilon) over axes (none given: all); equal elements give 0."},
    {.name = "rms_norm", .cls = OpClass::kComposite, .arity = 2, .attrs = kEpsilon, .infer = LastAxesType, .decompose = RmsNormDecompose,
     .tol = kTolerance, .numpy = "rms_norm(x0, x1, epsilon=epsilon)", .sample = {.shapes = {"f32[3,8]", "f32[8]"}},
     .doc = "x / sqrt(mean of x^2 + epsilon) over the last axes, which the second operand has, times the second operand."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kNormOps(kOps);

Value MeanVarianceNorm(Value x, Ints axes, double epsilon, Loc loc) {
  return Emit("mean_variance_norm", {x}, {Attr{"axes", axes}, Attr{"epsilon", epsilon}}, loc);
}
Value LayerNorm(Value x, Value scale, Value shift, double epsilon, Loc loc) {
  return Emit("layer_norm", {x, scale, shift}, {Attr{"epsilon", epsilon}}, loc);
}
Value LayerNorm(Value x, Value scale, double epsilon, Loc loc) {
  return Emit("layer_norm", {x, scale}, {Attr{"epsilon", epsilon}}, loc);
}
Value RmsNorm(Value x, Value scale, double epsilon, Loc loc) {
  return Emit("rms_norm", {x, scale}, {Attr{"epsilon", epsilon}}, loc);
}
Value BatchNorm(Value x, Value mean, Value variance, Value scale, Value shift, double epsilon, Loc loc) {
  return Emit("batch_norm", {x, mean, variance, scale, shift}, {Attr{"epsilon", epsilon}}, loc);
}
BatchNormResult BatchNormTrain(Value x, Value scale, Value shift, double epsilon, Loc loc) {
  const Value t = Emit("batch_norm_train", {x, scale, shift}, {Attr{"epsilon", epsilon}}, loc);
  return {Get(t, 0, loc), Get(t, 1, loc), Get(t, 2, loc)};
}
Value GroupNorm(Value x, Value scale, Value shift, int64_t groups, double epsilon, Loc loc) {
  return Emit("group_norm", {x, scale, shift}, {Attr{"groups", groups}, Attr{"epsilon", epsilon}}, loc);
}
Value InstanceNorm(Value x, Value scale, Value shift, double epsilon, Loc loc) {
  return Emit("instance_norm", {x, scale, shift}, {Attr{"epsilon", epsilon}}, loc);
}
Value LpNormalize(Value x, int64_t axis, int64_t p, double epsilon, Loc loc) {
  return Emit("lp_normalize", {x}, {Attr{"axis", axis}, Attr{"p", p}, Attr{"epsilon", epsilon}}, loc);
}
Value Lrn(Value x, LrnOptions o, Loc loc) {
  return Emit("lrn", {x}, {Attr{"size", o.size}, Attr{"alpha", o.alpha}, Attr{"beta", o.beta}, Attr{"bias", o.bias}},
              loc);
}

}  // namespace agc
