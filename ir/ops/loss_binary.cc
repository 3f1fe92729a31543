// Losses of yes-or-no targets, defined by other ops and computed in f32 for f16 and bf16. All take a logarithm of a
// sigmoid as minus a softplus, which neither overflows nor loses small values.
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- bce

// Logarithms are at least -100, as torch has it: a certain but wrong prediction costs 100.
constexpr double kLowestLog = -100;
Value BoundedLog(Value p) {
  const Value log = Log(p);
  return Maximum(log, FullLike(log, kLowestLog));
}

Value BceDecompose(Rule& s) {
  const Value p = Wide(s.x[0]), t = Wide(s.x[1]);
  return ReduceLoss(s, -(t * BoundedLog(p) + (1.0 - t) * BoundedLog(1.0 - p)));
}

// (p - t) / (p (1 - p)), the divisor at least 1e-12, which keeps the gradient finite at 0 and 1.
void BceVjp(Vjp& s) {
  const Value p = Wide(s.x[0]), t = Wide(s.x[1]), g = SpreadLoss(s, s.x[0].dims());
  const Value product = p * (1.0 - p);
  s.dx[0] = CastTo(g * (p - t) / Maximum(product, FullLike(product, 1e-12)), s.x[0].dtype());
  s.dx[1] = CastTo(g * (BoundedLog(1.0 - p) - BoundedLog(p)), s.x[1].dtype());
}

// ---------------------------------------------------------------- of logits

absl::StatusOr<Types> BceWithLogitsType(const OpCall& call) {
  const auto pair = [&](int i) {
    if (call.type(i) == call.type(0)) return absl::OkStatus();
    return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(i)),
                                   ", broadcast or cast one of them"));
  };
  AGC_RETURN_IF_ERROR(pair(1));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  if (call.arity() == 3) AGC_RETURN_IF_ERROR(pair(2));
  return LossType(call, call.type(0));
}

// -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)), the former times the weight of positive targets.
Value BinaryLoss(Value x, Value t, Value weight) {
  const Value positive = t * Softplus(-x);
  return (weight.valid() ? positive * weight : positive) + (1.0 - t) * Softplus(x);
}

Value BceWithLogitsDecompose(Rule& s) {
  return ReduceLoss(s, BinaryLoss(Wide(s.x[0]), Wide(s.x[1]), s.x.size() == 3 ? Wide(s.x[2]) : Value()));
}

absl::StatusOr<Types> FocalType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "gamma"));
  const double alpha = call.number("alpha");
  if (!(alpha <= 1)) return call.Error(absl::StrCat("alpha is ", alpha, ", expected at most 1"));
  return ElementwiseLoss(call);
}

// Lin and others (2017), "Focal loss for dense object detection", equation 5.
Value FocalDecompose(Rule& s) {
  const Value x = Wide(s.x[0]), t = Wide(s.x[1]);
  const double alpha = s.number("alpha"), gamma = s.number("gamma");
  const Value missed = Sigmoid(x) * (1.0 - t) + Sigmoid(-x) * t;
  Value loss = BinaryLoss(x, t, {});
  if (gamma != 0) loss = loss * Pow(missed, FullLike(missed, gamma));
  if (alpha >= 0) loss = loss * (t * alpha + (1.0 - t) * (1 - alpha));
  return ReduceLoss(s, loss);
}

Value SoftMarginDecompose(Rule& s) { return ReduceLoss(s, Softplus(-(Wide(s.x[0]) * Wide(s.x[1])))); }

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "bce", .cls = OpClass::kComposite, .arity = 2, .attrs = {kReduction}, .infer = ElementwiseLoss, .decompose = BceDecompose, .vjp = BceVjp,
     .tol = {.f32 = 4e-6}, .numpy = "bce(x0, x1, reduction=reduction)", .sample = {.lo = 0.1, .hi = 0.9},
     .doc = "Binary cross entropy -t log(p) - (1 - t) log(1 - p) of probabilities and targets; logarithms are at least -100."},
    {.name = "bce_with_logits", .cls = OpClass::kComposite, .arity = {2, 3}, .attrs = {kReduction}, .infer = BceWithLogitsType,
     .decompose = BceWithLogitsDecompose, .tol = {.f32 = 4e-6}, .numpy = "bce_with_logits(x0, x1, x2, reduction=reduction)",
     .sample = {.shapes = {"f32[2,3]", "f32[2,3]", "f32[2,3]"}, .lo = 0, .hi = 3},
     .doc = "bce of sigmoid(x), for every x; a third operand multiplies the loss of positive targets."},
    {.name = "sigmoid_focal", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"alpha", kFloat, "0.25"}, {"gamma", kFloat, "2"}, kReduction},
     .infer = FocalType, .decompose = FocalDecompose, .tol = {.f32 = 1e-5}, .numpy = "sigmoid_focal(x0, x1, alpha=alpha, gamma=gamma, reduction=reduction)",
     .sample = {.lo = 0, .hi = 1},
     .doc = "Focal loss: bce_with_logits times (1 - probability of the target)^gamma, and alpha for positive, 1 - alpha for negative targets; alpha < 0: neither."},
    {.name = "soft_margin", .cls = OpClass::kComposite, .arity = 2, .attrs = {kReduction}, .infer = ElementwiseLoss, .decompose = SoftMarginDecompose,
     .tol = {.f32 = 4e-6}, .numpy = "reduce_loss(np.log1p(np.exp(-x0 * x1)), reduction)", .doc = "log(1 + exp(-x y)) of x and y, which is 1 or -1."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kBinaryLossOps(kOps);

Value Bce(Value p, Value target, Reduction r, Loc loc) { return Emit("bce", {p, target}, {ReductionAttr(r)}, loc); }
Value BceWithLogits(Value x, Value target, Value pos_weight, Reduction r, Loc loc) {
  if (pos_weight.builder == nullptr) return Emit("bce_with_logits", {x, target}, {ReductionAttr(r)}, loc);
  if (x.valid() && pos_weight.valid() && pos_weight.dims() != x.dims())
    pos_weight = Broadcast(pos_weight, x.dims(), loc);
  return Emit("bce_with_logits", {x, target, pos_weight}, {ReductionAttr(r)}, loc);
}
Value SigmoidFocal(Value x, Value target, double alpha, double gamma, Reduction r, Loc loc) {
  return Emit("sigmoid_focal", {x, target}, {Attr{"alpha", alpha}, Attr{"gamma", gamma}, ReductionAttr(r)}, loc);
}
Value SoftMargin(Value x, Value y, Reduction r, Loc loc) {
  return Emit("soft_margin", {x, y}, {ReductionAttr(r)}, loc);
}

}  // namespace agc
