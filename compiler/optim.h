// Optimisers: they differentiate a loss with respect to states and update those. Forward, backward and update are one
// graph. Learning rates are f32[] tensors: a param of the graph, or a schedule of a step counter.
//   agc::optim::Sgd({.lr = lr, .momentum = 0.9f}).Minimize(loss);
//   agc::optim::AdamW({.lr = agc::optim::Cosine(t.Counter("step"), {.peak = 3e-4, .warmup = 100, .steps = 5000}),
//                      .clip = {.norm = 1}}).Minimize(loss);
//   agc::optim::Adam({.lr = lr, .prefix = "g."}).Minimize(loss, agc::Trainable(loss, "generator."));
// Moments and arithmetic are in f32 for weights of f16 and bf16, else in the weight's type.
#pragma once
#include "compiler/module.h"

namespace agc::optim {

// Limits of gradients, 0: none. First every element to [-value, value], then all gradients are scaled so that their
// common norm is at most `norm` (Pascanu, Mikolov and Bengio 2013, algorithm 1).
struct Clip {
  double value = 0, norm = 0;
};

// For contractions in f16 (--precision=f16), whose gradients would round to 0: derivatives are taken of loss * scale
// and divided by scale. After a step with a gradient that is not finite the scale is halved; after `growth_every` other
// steps in a row it doubles, up to 2^24, or 2^15 for a loss in f16 (Micikevicius et al. 2018, "Mixed precision
// training", section 3.2). A step that is not finite changes no weight, no moment, and no float state that the graph
// updates before Minimize, such as running statistics; counters and other integer states go on, so that the next step
// sees the next batch, and so do updates made behind Minimize. States `loss_scale` and `loss_scale.good`. initial 0: no
// scaling.
struct LossScaling {
  double initial = 0;
  int64_t growth_every = 2000;
};

// What all options have in common: lr; weight_decay, which reaches the states of decay_rank axes and more (2 leaves out
// biases and the scales of normalisations); clip and scaling; and a prefix for the names of the optimiser's own states,
// which two optimisers in one module need where they would share one (`adam.step`, `loss_scale`).

// Minimize trains every trainable state that the graph has read so far and the loss depends on, or those given: reads
// of states, as State and Trainable return them. A state that the loss does not reach, or only through ops that
// pass no gradient (stop_gradient, round), is not touched; given by name it is an error.
template <typename Options>
class Optimiser {
 public:
  explicit Optimiser(Options options) : options_(std::move(options)) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;
  void Minimize(Tensor loss, TensorSpan params, Loc loc = Loc::Here()) const;

 private:
  Options options_;
};

// g' = g + weight_decay * w;  v' = momentum * v + g';  w' = w - lr * v'  (Sutskever et al. 2013, "On the importance of
// initialization and momentum", equation 1, with the learning rate outside v); nesterov: w' = w - lr * (g' + momentum *
// v'). Velocities are states `<w>.velocity`; none where momentum is 0.
struct SgdOptions {
  Tensor lr = {};  // f32[], a param of the graph, say
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
  int decay_rank = 0;
  std::string prefix = {};
};
using Sgd = Optimiser<SgdOptions>;

// Kingma and Ba (2015), "Adam", algorithm 1, with weight_decay * w added to the gradient. States `<w>.adam_m`,
// `<w>.adam_v` and the step counter `adam.step`.
struct AdamOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
  int decay_rank = 0;
  std::string prefix = {};
};
using Adam = Optimiser<AdamOptions>;

// Loshchilov and Hutter (2019), "Decoupled weight decay regularization", algorithm 2: Adam, and lr * weight_decay * w
// is taken from the weight beside it.
struct AdamWOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  Clip clip = {};
  LossScaling scaling = {};
  int decay_rank = 0;
  std::string prefix = {};
};
using AdamW = Optimiser<AdamWOptions>;

// Hinton (2012), lecture 6e: s' = decay * s + (1 - decay) * g^2;  w' = w - lr * g / (sqrt(s') + epsilon), or with
// momentum by a velocity; centred: s' less the square of the mean gradient (Graves 2013). States `<w>.square`,
// `<w>.mean`, `<w>.velocity`.
struct RmsPropOptions {
  Tensor lr = {};
  double decay = 0.99, epsilon = 1e-8, momentum = 0;
  bool centred = false;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
  int decay_rank = 0;
  std::string prefix = {};
};
using RmsProp = Optimiser<RmsPropOptions>;

// Duchi, Hazan and Singer (2011): s' = s + g^2;  w' = w - lr * g / (sqrt(s') + epsilon). States `<w>.square`.
struct AdagradOptions {
  Tensor lr = {};
  double epsilon = 1e-10, initial = 0;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
  int decay_rank = 0;
  std::string prefix = {};
};
using Adagrad = Optimiser<AdagradOptions>;

// Chen et al. (2023), "Symbolic discovery of optimization algorithms", program 1. States `<w>.lion_m`.
struct LionOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
  int decay_rank = 0;
  std::string prefix = {};
};
using Lion = Optimiser<LionOptions>;

// ---------------------------------------------------------------- schedules

// Learning rates f32[] of a step counter (an integer scalar, 0 in the first step). All rise linearly over the first
// `warmup` steps, to `peak` in step warmup - 1; what follows counts from there.
struct ScheduleOptions {
  double peak = 1e-3;
  int64_t warmup = 0;
  int64_t steps = 1000;  // with the warmup; from there on it is `last`
  double last = 0;
};
Tensor Constant(Tensor step, ScheduleOptions options, Loc loc = Loc::Here());  // stays at `peak`
Tensor Linear(Tensor step, ScheduleOptions options, Loc loc = Loc::Here());
// Loshchilov and Hutter (2017), "SGDR", equation 5, without restarts.
Tensor Cosine(Tensor step, ScheduleOptions options, Loc loc = Loc::Here());
// peak * factor^floor(steps behind the warmup / every)
struct StepDecayOptions {
  double peak = 1e-3;
  int64_t warmup = 0;
  int64_t every = 1000;
  double factor = 0.1;
};
Tensor StepDecay(Tensor step, StepDecayOptions options, Loc loc = Loc::Here());

}  // namespace agc::optim
