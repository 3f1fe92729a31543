#include "compiler/optim.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"
#include "ir/combiner.h"
#include "ir/op_def.h"

namespace agc::optim {
namespace {

Tensor Broadcasted(Tensor scalar, Tensor like, Loc loc) {
  return Broadcast(CastTo(scalar, like.dtype(), loc), {like.dims().begin(), like.dims().end()}, loc);
}

Tensor Times(Tensor x, double factor, Loc loc) { return Mul(x, ScalarLike(x, factor, loc), loc); }

// A trainable state that the graph reads, and the gradient of the loss with respect to it; with loss scaling, whether
// all gradients of the step are finite.
struct Weight {
  StateDef state = {};
  Tensor w = {}, g = {}, finite = {};
};

// In declaration order; empty after a diagnostic.
std::vector<Weight> WeightsOf(Tensor loss, Tensor lr, Loc loc) {
  if (!loss.valid()) return {};
  Builder& b = *loss.builder;
  if (!lr.valid()) {
    if (!lr.poison) Poison(b, loc, "optimiser: the learning rate is missing, give lr a tensor of type f32[]");
    return {};
  }
  if (loss.rank() != 0) {
    Poison(b, loc,
           absl::StrCat("optimiser: the loss is ", ToString(loss.type()), ", expected a scalar; reduce it first"));
    return {};
  }
  std::vector<Weight> weights;
  for (const StateDef& s : b.program->states) {
    const OpId read = b.graph->FindState(s.name);
    if (s.trainable && read.valid()) weights.push_back({s, {&b, read, b.generation, false}});
  }
  if (weights.empty()) Poison(b, loc, absl::StrCat("optimiser: graph @", b.graph->name, " reads no trainable state"));
  return weights;
}

// Torch's clip_grad_norm_: the factor is norm / (common norm + 1e-6), at most 1. Squares are summed in f32 at least.
void ClipNorm(std::vector<Weight>& weights, double norm, Loc loc) {
  Tensor sum;
  for (const Weight& v : weights) {
    const Tensor square =
        CastTo(ReduceSum(Square(CastTo(v.g, AccumulatorOf(v.g.dtype()), loc), loc), {}, false, loc), DType::kF32, loc);
    sum = sum.valid() ? Add(sum, square, loc) : square;
  }
  const Tensor common = Add(Sqrt(sum, loc), ScalarLike(sum, 1e-6, loc), loc);
  const Tensor factor = Minimum(DivOf(ScalarLike(common, norm, loc), common, loc), ScalarLike(common, 1, loc), loc);
  for (Weight& v : weights) v.g = Mul(v.g, Broadcasted(factor, v.g, loc), loc);
}

// The new value of a state, or the old one where the step does not count.
void Put(const Weight& v, absl::string_view name, Tensor old, Tensor value, Loc loc) {
  if (!v.finite.valid()) return Update(old, name, value, loc);
  const Tensor finite = Broadcast(v.finite, {value.dims().begin(), value.dims().end()}, loc);
  Update(old, name, Where(finite, value, old, loc), loc);
}

// Gradients of the scaled loss, unscaled; updates the scale.
void ScaledGradients(std::vector<Weight>& weights, Tensor loss, const LossScaling& o, Loc loc) {
  const Tensor scale = State(loss, "loss_scale", {DType::kF32, {}}, {.a = o.initial}, false, loc);
  const Tensor good = State(loss, "loss_scale.good", {DType::kI32, {}}, {}, false, loc);
  const Tensor scaled = Mul(CastTo(loss, DType::kF32, loc), scale, loc);
  Tensor finite;
  for (Weight& v : weights) {
    v.g = DivOf(Gradient(scaled, v.w, loc), Broadcasted(scale, v.w, loc), loc);
    const Tensor all = ReduceAll(IsFinite(v.g, loc), {}, false, loc);
    finite = finite.valid() ? LogicalAnd(finite, all, loc) : all;
  }
  for (Weight& v : weights) v.finite = finite;
  const Tensor next = Add(good, ScalarLike(good, 1, loc), loc);
  const Tensor full = GreaterEqual(next, ScalarLike(good, static_cast<double>(o.growth_every), loc), loc);
  const Tensor grown = Where(full, Times(scale, 2, loc), scale, loc);
  Update(loss, "loss_scale", Clamp(Where(finite, grown, Times(scale, 0.5, loc), loc), 1, 16777216, loc), loc);
  Update(loss, "loss_scale.good",
         Where(LogicalAnd(finite, LogicalNot(full, loc), loc), next, FullLike(good, 0, loc), loc), loc);
}

// Calls `step` with every weight after clipping and, where decay is not 0, with decay * w added to the gradient.
template <typename Options>
void ForEachWeight(Tensor loss, const Options& o, double decay, Loc loc, absl::FunctionRef<void(const Weight&)> step) {
  std::vector<Weight> weights = WeightsOf(loss, o.lr, loc);
  if (weights.empty()) return;
  if (o.scaling.initial > 0) {
    ScaledGradients(weights, loss, o.scaling, loc);
  } else {
    for (Weight& v : weights) v.g = Gradient(loss, v.w, loc);
  }
  const Clip& clip = o.clip;
  for (Weight& v : weights) {
    if (clip.value > 0) v.g = Clamp(v.g, -clip.value, clip.value, loc);
  }
  if (clip.norm > 0) ClipNorm(weights, clip.norm, loc);
  for (Weight& v : weights) {
    if (decay != 0) v.g = Add(v.g, Times(v.w, decay, loc), loc);
    step(v);
  }
}

// A state `<w><suffix>` of the weight's type that moves to decay * state + share * x.
Tensor Moving(const Weight& v, absl::string_view suffix, double decay, double share, Tensor x, Loc loc,
              double initial = 0) {
  const std::string name = absl::StrCat(v.state.name, suffix);
  const Tensor old = State(v.w, name, v.state.type, {.a = initial}, false, loc);
  const Tensor now = Add(decay == 1 ? old : Times(old, decay, loc), share == 1 ? x : Times(x, share, loc), loc);
  Put(v, name, old, now, loc);
  return now;
}

// w' = w - lr * direction.
void Descend(const Weight& v, Tensor lr, Tensor direction, Loc loc) {
  Put(v, v.state.name, v.w, Sub(v.w, Mul(direction, Broadcasted(lr, v.w, loc), loc), loc), loc);
}

// g / (sqrt(square) + epsilon)
Tensor Scaled(Tensor g, Tensor square, double epsilon, Loc loc) {
  return DivOf(g, Add(Sqrt(square, loc), ScalarLike(square, epsilon, loc), loc), loc);
}

// `decoupled` is AdamW's decay.
void MinimizeAdam(Tensor loss, const AdamOptions& o, double decoupled, Loc loc) {
  if (!loss.valid()) return;
  Builder& b = *loss.builder;
  const Tensor step = State(b, "adam.step", {DType::kI32, {}}, {}, false, loc);
  const Tensor next = Add(step, ScalarLike(step, 1, loc), loc);
  const Tensor t = CastTo(next, DType::kF32, loc);
  // 1 - beta^t; with a beta near 1 the power would leave few digits, those of beta as f32 at most.
  const auto correction = [&](double beta) { return Neg(Expm1(Times(t, std::log(beta), loc), loc), loc); };
  const Tensor c1 = correction(o.beta1), c2 = correction(o.beta2);
  Weight last;
  ForEachWeight(loss, o, o.weight_decay, loc, [&](const Weight& v) {
    const Tensor g = v.g;
    const Tensor mean = Moving(v, ".adam_m", o.beta1, 1 - o.beta1, g, loc);
    const Tensor square = Moving(v, ".adam_v", o.beta2, 1 - o.beta2, Mul(g, g, loc), loc);
    const Tensor unbiased = DivOf(mean, Broadcasted(c1, v.w, loc), loc);
    Tensor direction = Scaled(unbiased, DivOf(square, Broadcasted(c2, v.w, loc), loc), o.epsilon, loc);
    if (decoupled != 0) direction = Add(direction, Times(v.w, decoupled, loc), loc);
    Descend(v, o.lr, direction, loc);
    last = v;
  });
  Put(last, "adam.step", step, next, loc);
}

}  // namespace

void Sgd::Minimize(Tensor loss, Loc loc) const {
  const SgdOptions& o = options_;
  ForEachWeight(loss, o, o.weight_decay, loc, [&](const Weight& v) {
    const Tensor g = v.g;
    Tensor direction = g;
    if (o.momentum != 0) {
      direction = Moving(v, ".velocity", o.momentum, 1, g, loc);
      if (o.nesterov) direction = Add(g, Times(direction, o.momentum, loc), loc);
    }
    Descend(v, o.lr, direction, loc);
  });
}

void Adam::Minimize(Tensor loss, Loc loc) const { MinimizeAdam(loss, options_, 0, loc); }

void AdamW::Minimize(Tensor loss, Loc loc) const {
  const AdamWOptions& o = options_;
  MinimizeAdam(
      loss,
      {.lr = o.lr, .beta1 = o.beta1, .beta2 = o.beta2, .epsilon = o.epsilon, .clip = o.clip, .scaling = o.scaling},
      o.weight_decay, loc);
}

void RmsProp::Minimize(Tensor loss, Loc loc) const {
  const RmsPropOptions& o = options_;
  ForEachWeight(loss, o, o.weight_decay, loc, [&](const Weight& v) {
    const Tensor g = v.g;
    Tensor square = Moving(v, ".square", o.decay, 1 - o.decay, Mul(g, g, loc), loc);
    if (o.centred) {
      const Tensor mean = Moving(v, ".mean", o.decay, 1 - o.decay, g, loc), zero = FullLike(mean, 0, loc);
      square = Maximum(Sub(square, Mul(mean, mean, loc), loc), zero, loc);  // rounding may take it below 0
    }
    Tensor direction = Scaled(g, square, o.epsilon, loc);
    if (o.momentum != 0) direction = Moving(v, ".velocity", o.momentum, 1, direction, loc);
    Descend(v, o.lr, direction, loc);
  });
}

void Adagrad::Minimize(Tensor loss, Loc loc) const {
  const AdagradOptions& o = options_;
  ForEachWeight(loss, o, o.weight_decay, loc, [&](const Weight& v) {
    const Tensor g = v.g;
    const Tensor square = Moving(v, ".square", 1, 1, Mul(g, g, loc), loc, o.initial);
    Descend(v, o.lr, Scaled(g, square, o.epsilon, loc), loc);
  });
}

void Lion::Minimize(Tensor loss, Loc loc) const {
  const LionOptions& o = options_;
  ForEachWeight(loss, o, 0, loc, [&](const Weight& v) {
    const std::string name = absl::StrCat(v.state.name, ".lion_m");
    const Tensor m = State(v.w, name, v.state.type, {}, false, loc);
    const auto mixed = [&](double beta) { return Add(Times(m, beta, loc), Times(v.g, 1 - beta, loc), loc); };
    Tensor direction = Sign(mixed(o.beta1), loc);
    if (o.weight_decay != 0) direction = Add(direction, Times(v.w, o.weight_decay, loc), loc);
    Put(v, name, m, mixed(o.beta2), loc);
    Descend(v, o.lr, direction, loc);
  });
}

// ---------------------------------------------------------------- schedules

namespace {

// The step as f32[], or poison.
Tensor Counted(Tensor step, Loc loc) {
  if (!step.valid()) return step;
  if (step.rank() != 0 || !IsInt(step.dtype())) {
    return Poison(*step.builder, loc,
                  absl::StrCat("schedule: the step is ", ToString(step.type()), ", expected an integer scalar"));
  }
  return CastTo(step, DType::kF32, loc);
}

// The part of the warmup that is done behind this step, at most 1; then `after`, times peak.
Tensor Warmed(Tensor t, double peak, int64_t warmup, Tensor after, Loc loc) {
  const Tensor rate = Times(after, peak, loc);
  if (warmup <= 0) return rate;
  const Tensor rising = Times(Add(t, ScalarLike(t, 1, loc), loc), peak / static_cast<double>(warmup), loc);
  return Where(Less(t, ScalarLike(t, static_cast<double>(warmup), loc), loc), rising, rate, loc);
}

// How far the steps behind the warmup are, 0 to 1.
Tensor Progress(Tensor t, const ScheduleOptions& o, Loc loc) {
  const double rest = static_cast<double>(std::max<int64_t>(o.steps - o.warmup, 1));
  const Tensor behind = Sub(t, ScalarLike(t, static_cast<double>(o.warmup), loc), loc);
  return Clamp(DivOf(behind, ScalarLike(t, rest, loc), loc), 0, 1, loc);
}

// From 1 to last / peak as `share` falls from 1 to 0.
Tensor Between(Tensor share, const ScheduleOptions& o, Loc loc) {
  const double last = o.peak == 0 ? 0 : o.last / o.peak;
  return Add(Times(share, 1 - last, loc), ScalarLike(share, last, loc), loc);
}

}  // namespace

Tensor Constant(Tensor step, ScheduleOptions o, Loc loc) {
  const Tensor t = Counted(step, loc);
  return Warmed(t, o.peak, o.warmup, ScalarLike(t, 1, loc), loc);
}

Tensor Linear(Tensor step, ScheduleOptions o, Loc loc) {
  const Tensor t = Counted(step, loc), progress = Progress(t, o, loc);
  return Warmed(t, o.peak, o.warmup, Between(Sub(ScalarLike(t, 1, loc), progress, loc), o, loc), loc);
}

Tensor Cosine(Tensor step, ScheduleOptions o, Loc loc) {
  const Tensor t = Counted(step, loc), angle = Times(Progress(t, o, loc), std::numbers::pi, loc);
  const Tensor share = Times(Add(Cos(angle, loc), ScalarLike(t, 1, loc), loc), 0.5, loc);
  return Warmed(t, o.peak, o.warmup, Between(share, o, loc), loc);
}

Tensor StepDecay(Tensor step, StepDecayOptions o, Loc loc) {
  const Tensor t = Counted(step, loc);
  const Tensor behind =
      Maximum(Sub(t, ScalarLike(t, static_cast<double>(o.warmup), loc), loc), ScalarLike(t, 0, loc), loc);
  const Tensor times =
      Floor(DivOf(behind, ScalarLike(t, static_cast<double>(std::max<int64_t>(o.every, 1)), loc), loc), loc);
  return Warmed(t, o.peak, o.warmup, Pow(ScalarLike(t, o.factor, loc), times, loc), loc);
}

}  // namespace agc::optim
