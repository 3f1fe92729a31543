// Losses of predictions that are numbers or parameters of distributions, defined by other ops and computed in f32 for
// f16 and bf16.
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

Value Difference(const Rule& s) { return Wide(s.x[0]) - Wide(s.x[1]); }

// ---------------------------------------------------------------- mse, mae, huber

Value MseDecompose(Rule& s) { return ReduceLoss(s, Square(Difference(s))); }

void MseVjp(Vjp& s) {
  s.dx[0] = CastTo(Difference(s) * (SpreadLoss(s, s.x[0].dims()) * 2.0), s.x[0].dtype());
  s.dx[1] = -s.dx[0];
}

Value MaeDecompose(Rule& s) { return ReduceLoss(s, Abs(Difference(s))); }

// d^2 / 2 up to `bound`, bound (|d| - bound / 2) beyond (Huber 1964): with c the difference kept within the bound it is
// c (d - c / 2).
Value HuberOf(Value d, double bound) {
  const Value c = Clamp(d, -bound, bound);
  return c * (d - c * 0.5);
}

absl::StatusOr<Types> HuberType(const OpCall& call) {
  const double delta = call.number("delta");
  if (!(delta > 0)) return call.Error(absl::StrCat("delta is ", delta, ", expected more than 0"));
  return ElementwiseLoss(call);
}

Value HuberDecompose(Rule& s) { return ReduceLoss(s, HuberOf(Difference(s), s.number("delta"))); }

absl::StatusOr<Types> SmoothL1Type(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "beta"));
  return ElementwiseLoss(call);
}

Value SmoothL1Decompose(Rule& s) {
  const double beta = s.number("beta");
  return ReduceLoss(s, beta == 0 ? Abs(Difference(s)) : HuberOf(Difference(s), beta) / beta);
}

// ---------------------------------------------------------------- likelihoods

absl::StatusOr<Types> LikelihoodType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "epsilon"));
  return ElementwiseLoss(call);
}

// exp(x) - t x of a logarithm x of the rate, else x - t log(x + epsilon); in full with Stirling's approximation of
// log(t!) for targets above 1.
Value PoissonNllDecompose(Rule& s) {
  const Value x = Wide(s.x[0]), t = Wide(s.x[1]), one = FullLike(t, 1);
  Value loss = s.flag("log_input") ? Exp(x) - t * x : x - t * Log(x + s.number("epsilon"));
  if (s.flag("full")) {
    const Value above = Where(Greater(t, one), t, one);
    const Value stirling = above * Log(above) - above + Log(above * (2 * std::numbers::pi)) * 0.5;
    loss = loss + Where(Greater(t, one), stirling, FullLike(t, 0));
  }
  return ReduceLoss(s, loss);
}

// Nix and Weigend (1994); a variance below epsilon counts as epsilon.
Value GaussianNllDecompose(Rule& s) {
  const Value v = Wide(s.x[2]), variance = Maximum(v, FullLike(v, s.number("epsilon")));
  Value loss = (Log(variance) + Square(Difference(s)) / variance) * 0.5;
  if (s.flag("full")) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return ReduceLoss(s, loss);
}

// p (log p - log q) of log q and p, 0 where p is 0.
Value KlDivDecompose(Rule& s) {
  const Value x = Wide(s.x[0]), t = Wide(s.x[1]);
  if (s.flag("log_target")) {
    const Value never = Equal(t, FullLike(t, -std::numeric_limits<double>::infinity()));
    const Value log_p = Where(never, FullLike(t, 0), t);
    return ReduceLoss(s, Where(never, FullLike(t, 0), Exp(log_p) * (log_p - x)));
  }
  const Value none = Equal(t, FullLike(t, 0)), p = Where(none, FullLike(t, 1), t);
  return ReduceLoss(s, Where(none, FullLike(t, 0), p * (Log(p) - x)));
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "gaussian_nll", .cls = OpClass::kComposite, .arity = 3, .attrs = {{"full", kBool, "false"}, {"epsilon", kFloat, "1e-06"}, kReduction},
     .infer = LikelihoodType, .decompose = GaussianNllDecompose, .tol = {.f32 = 1e-5},
     .numpy = "gaussian_nll(x0, x1, x2, full=full, epsilon=epsilon, reduction=reduction)", .sample = {.lo = 0.25, .hi = 2},
     .doc = "(log(variance) + (x - target)^2 / variance) / 2 of x, target and variance, which is at least epsilon; in full plus log(2 pi) / 2."},
    {.name = "huber", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"delta", kFloat, "1"}, kReduction}, .infer = HuberType,
     .decompose = HuberDecompose, .numpy = "huber(x0, x1, delta=delta, reduction=reduction)", .sample = {.lo = -3, .hi = 3},
     .doc = "d^2 / 2 for differences d up to delta, delta (|d| - delta / 2) beyond."},
    {.name = "kl_div", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"log_target", kBool, "false"}, kReduction}, .infer = ElementwiseLoss,
     .decompose = KlDivDecompose, .tol = {.f32 = 4e-6}, .numpy = "kl_div(x0, x1, log_target=log_target, reduction=reduction)",
     .sample = {.lo = 0.1, .hi = 2},
     .doc = "p (log p - log q) of log q and p, or of log q and log p; 0 where p is 0."},
    {.name = "mae", .cls = OpClass::kComposite, .arity = 2, .attrs = {kReduction}, .infer = ElementwiseLoss, .decompose = MaeDecompose,
     .numpy = "reduce_loss(np.abs(x0 - x1), reduction)", .doc = "Absolute differences; equal elements get no gradient."},
    {.name = "mse", .cls = OpClass::kComposite, .arity = 2, .attrs = {kReduction}, .infer = ElementwiseLoss, .decompose = MseDecompose, .vjp = MseVjp,
     .numpy = "reduce_loss((x0 - x1) ** 2, reduction)", .doc = "Squared differences."},
    {.name = "poisson_nll", .cls = OpClass::kComposite, .arity = 2,
     .attrs = {{"log_input", kBool, "true"}, {"full", kBool, "false"}, {"epsilon", kFloat, "1e-08"}, kReduction}, .infer = LikelihoodType,
     .decompose = PoissonNllDecompose, .tol = {.f32 = 4e-6},
     .numpy = "poisson_nll(x0, x1, log_input=log_input, full=full, epsilon=epsilon, reduction=reduction)",
     .sample = {.attrs = "full = true", .lo = 0.1, .hi = 4},
     .doc = "exp(x) - target x of the logarithm x of a rate, or x - target log(x + epsilon); in full plus Stirling's log(target!) for targets above 1."},
    {.name = "smooth_l1", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"beta", kFloat, "1"}, kReduction}, .infer = SmoothL1Type,
     .decompose = SmoothL1Decompose, .numpy = "smooth_l1(x0, x1, beta=beta, reduction=reduction)", .sample = {.attrs = "beta = 0.5", .lo = -3, .hi = 3},
     .doc = "d^2 / (2 beta) for differences d up to beta, |d| - beta / 2 beyond."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kRegressionLossOps(kOps);

Value Mse(Value x, Value y, Loc loc) { return Emit("mse", {x, y}, {}, loc); }
Value Mse(Value x, Value y, Reduction r, Loc loc) { return Emit("mse", {x, y}, {ReductionAttr(r)}, loc); }
Value Mae(Value x, Value y, Reduction r, Loc loc) { return Emit("mae", {x, y}, {ReductionAttr(r)}, loc); }
Value Huber(Value x, Value y, double delta, Reduction r, Loc loc) {
  return Emit("huber", {x, y}, {Attr{"delta", delta}, ReductionAttr(r)}, loc);
}
Value SmoothL1(Value x, Value y, double beta, Reduction r, Loc loc) {
  return Emit("smooth_l1", {x, y}, {Attr{"beta", beta}, ReductionAttr(r)}, loc);
}
Value PoissonNll(Value x, Value target, PoissonNllOptions o, Loc loc) {
  return Emit(
      "poisson_nll", {x, target},
      {Attr{"log_input", o.log_input}, Attr{"full", o.full}, Attr{"epsilon", o.epsilon}, ReductionAttr(o.reduction)},
      loc);
}
Value GaussianNll(Value x, Value target, Value variance, GaussianNllOptions o, Loc loc) {
  return Emit("gaussian_nll", {x, target, variance},
              {Attr{"full", o.full}, Attr{"epsilon", o.epsilon}, ReductionAttr(o.reduction)}, loc);
}
Value KlDiv(Value log_q, Value p, bool log_target, Reduction r, Loc loc) {
  return Emit("kl_div", {log_q, p}, {Attr{"log_target", log_target}, ReductionAttr(r)}, loc);
}

}  // namespace agc
