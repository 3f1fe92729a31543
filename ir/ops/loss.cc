// Losses and normalisation, defined by other ops and computed in f32 for f16 and bf16.
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

Value Wide(Value x) { return CastTo(x, AccumulatorOf(x.dtype())); }

// ---------------------------------------------------------------- cross_entropy

absl::StatusOr<Types> CrossEntropyType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 2));
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, 1));
  const TensorType &logits = call.type(0), &labels = call.type(1);
  if (logits.dims[0] != labels.dims[0]) {
    return call.Error(absl::StrCat("logits have ", logits.dims[0], " rows and there are ", labels.dims[0], " labels"));
  }
  if (logits.elements() == 0) return call.Error(absl::StrCat("logits are ", ToString(logits), ", which has no mean"));
  return Types(TensorType{logits.dtype, {}});
}

// A label that is no class contributes 0 and no gradient, but is counted in the mean.
Value CrossEntropyDecompose(Rule& s) {
  const Value logits = Wide(s.x[0]);
  const Value hit = OneHot(s.x[1], logits.dim(1), DType::kBool), logp = LogSoftmax(logits);
  const Value sum = ReduceSum(Where(hit, logp, FullLike(logp, 0)));
  return CastTo(-sum / static_cast<double>(logits.dim(0)), s.x[0].dtype());
}

// Whether each label is a class, compared in a dtype that holds the number of classes.
Value IsClass(Value labels, int64_t classes) {
  if (SizeOf(labels.dtype()) < 4) labels = CastTo(labels, DType::kI32);
  const Value below = Less(labels, FullLike(labels, static_cast<double>(classes)));
  return IsSigned(labels.dtype()) ? LogicalAnd(below, GreaterEqual(labels, FullLike(labels, 0))) : below;
}

void CrossEntropyVjp(Vjp& s) {
  const Value logits = Wide(s.x[0]), labels = s.x[1];
  const int64_t n = logits.dim(0), classes = logits.dim(1);
  const Value share = Wide(s.g) / static_cast<double>(n);
  const Value each = Where(IsClass(labels, classes), share, ScalarLike(share, 0, Loc::Here()));
  const Value difference = Softmax(logits) - OneHot(labels, classes, logits.dtype());
  s.dx[0] = CastTo(difference * Reshape(each, {n, 1}), s.x[0].dtype());
}

// ---------------------------------------------------------------- mse

absl::StatusOr<Types> MseType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  const TensorType& x = call.type(0);
  if (x.elements() == 0) return call.Error(absl::StrCat("operands are ", ToString(x), ", which has no mean"));
  return Types(TensorType{x.dtype, {}});
}

Value MseDecompose(Rule& s) { return CastTo(ReduceMean(Square(Wide(s.x[0]) - Wide(s.x[1]))), s.x[0].dtype()); }

void MseVjp(Vjp& s) {
  const Value difference = Wide(s.x[0]) - Wide(s.x[1]);
  const double n = static_cast<double>(s.x[0].type().elements());
  s.dx[0] = CastTo(difference * (Wide(s.g) * 2.0 / n), s.x[0].dtype());
  s.dx[1] = -s.dx[0];
}

// ---------------------------------------------------------------- layer_norm

absl::StatusOr<Types> LayerNormType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const int64_t last = call.type(0).dims.back();
  for (int i = 1; i < 3; ++i) {
    if (call.type(i).dims == Dims{last}) continue;
    return call.Error(absl::StrCat(i == 1 ? "scale" : "shift", " is ", ToString(call.type(i)), ", expected ",
                                   ToString(TensorType{call.type(0).dtype, {last}}), " for the last axis"));
  }
  const double epsilon = call.number("epsilon");
  if (!(epsilon >= 0)) return call.Error(absl::StrCat("epsilon is ", epsilon, ", expected 0 or more"));
  return Types(call.type(0));
}

// Rows with mean 0 and variance 1, and 1 / deviation.
struct Normalized {
  Value rows = {}, scale = {};
};
Normalized Normalize(Value x, double epsilon) {
  const Value centred = x - ReduceMean(x, {-1}, true);
  const Value scale = Rsqrt(ReduceMean(Square(centred), {-1}, true) + epsilon);
  return {centred * scale, scale};
}

Value LayerNormDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Normalized n = Normalize(Wide(s.x[0]), s.number("epsilon"));
  return CastTo(n.rows * Wide(s.x[1]) + Wide(s.x[2]), s.x[0].dtype());
}

void LayerNormVjp(Vjp& s) {
  if (s.x[0].type().elements() == 0) {
    for (int i = 0; i < 3; ++i) s.dx[i] = FullLike(s.x[i], 0);
    return;
  }
  const Value g = Wide(s.g);
  const Normalized n = Normalize(Wide(s.x[0]), s.number("epsilon"));
  const Value inner = g * Wide(s.x[1]);
  const Value along = n.rows * ReduceMean(inner * n.rows, {-1}, true);
  s.dx[0] = CastTo(n.scale * (inner - ReduceMean(inner, {-1}, true) - along), s.x[0].dtype());
  const Dims row = s.x[1].dims();  // a copy: building moves what dims() refers to
  s.dx[1] = CastTo(SumTo(g * n.rows, row), s.x[1].dtype());
  s.dx[2] = CastTo(SumTo(g, row), s.x[2].dtype());
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cross_entropy", .cls = OpClass::kComposite, .arity = 2, .infer = CrossEntropyType, .decompose = CrossEntropyDecompose,
     .vjp = CrossEntropyVjp, .tol = {.f32 = 4e-6}, .numpy = "cross_entropy(x0, x1)",
     .sample = {.shapes = {"f32[3,4]", "i32[3]"}, .lo = 0, .hi = 3},
     .doc = "Mean over rows of -log_softmax of the logits [n,c] at the labels [n]. A label outside [0, c) contributes 0 and no gradient."},
    {.name = "layer_norm", .cls = OpClass::kComposite, .arity = 3, .attrs = {{"epsilon", kFloat, "1e-05"}}, .infer = LayerNormType,
     .decompose = LayerNormDecompose, .vjp = LayerNormVjp, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "layer_norm(x0, x1, x2, epsilon=epsilon)", .sample = {.shapes = {"f32[3,8]", "f32[8]", "f32[8]"}},
     .doc = "Brings the last axis to mean 0 and variance 1, then multiplies by the second operand and adds the third."},
    {.name = "mse", .cls = OpClass::kComposite, .arity = 2, .infer = MseType, .decompose = MseDecompose, .vjp = MseVjp,
     .numpy = "np.mean((x0 - x1) ** 2)", .doc = "Mean of squared differences."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kLossOps(kOps);

Value LayerNorm(Value x, Value scale, Value shift, double epsilon, Loc loc) {
  return Emit("layer_norm", {x, scale, shift}, {Attr{"epsilon", epsilon}}, loc);
}
Value CrossEntropy(Value logits, Value labels, Loc loc) { return Emit("cross_entropy", {logits, labels}, {}, loc); }
Value Mse(Value x, Value y, Loc loc) { return Emit("mse", {x, y}, {}, loc); }

}  // namespace agc
