// Optimisers: they differentiate a loss with respect to every trainable state that the graph reads, and update those
// states. Forward, backward and update are one graph. Learning rates are f32[] tensors: a param of the graph, or a
// schedule of a step counter.
//   agc::optim::Sgd({.lr = lr, .momentum = 0.9f}).Minimize(loss);
//   agc::optim::AdamW({.lr = agc::optim::Cosine(t.Counter("step"), {.peak = 3e-4, .warmup = 100, .steps = 5000}),
//                      .clip = {.norm = 1}}).Minimize(loss);
#pragma once
#include "compiler/module.h"

namespace agc::optim {

// Limits of gradients, 0: none. First every element to [-value, value], then all gradients are scaled so that their
// common norm is at most `norm` (Pascanu, Mikolov and Bengio 2013, algorithm 1).
struct Clip {
  double value = 0, norm = 0;
};

// For contractions in f16 (--precision=f16), whose gradients would round to 0: derivatives are taken of loss * scale
// and divided by scale. A step with a gradient that is not finite changes nothing but the scale, which it halves; after
// `growth_every` other steps in a row the scale doubles, up to 2^24 (Micikevicius et al. 2018, "Mixed precision
// training", section 3.2). States `loss_scale` and `loss_scale.good`. initial 0: no scaling.
struct LossScaling {
  double initial = 0;
  int64_t growth_every = 2000;
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
};
class Sgd {
 public:
  explicit Sgd(SgdOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  SgdOptions options_;
};

// Kingma and Ba (2015), "Adam", algorithm 1, with weight_decay * w added to the gradient. States `<w>.adam_m`,
// `<w>.adam_v` and the step counter `adam.step`.
struct AdamOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
};
class Adam {
 public:
  explicit Adam(AdamOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  AdamOptions options_;
};

// Loshchilov and Hutter (2019), "Decoupled weight decay regularization", algorithm 2: Adam, and lr * weight_decay * w
// is taken from the weight beside it.
struct AdamWOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0.01;
  Clip clip = {};
  LossScaling scaling = {};
};
class AdamW {
 public:
  explicit AdamW(AdamWOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  AdamWOptions options_;
};

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
};
class RmsProp {
 public:
  explicit RmsProp(RmsPropOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  RmsPropOptions options_;
};

// Duchi, Hazan and Singer (2011): s' = s + g^2;  w' = w - lr * g / (sqrt(s') + epsilon). States `<w>.square`.
struct AdagradOptions {
  Tensor lr = {};
  double epsilon = 1e-10, initial = 0;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
};
class Adagrad {
 public:
  explicit Adagrad(AdagradOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  AdagradOptions options_;
};

// Chen et al. (2023), "Symbolic discovery of optimization algorithms", program 1. States `<w>.lion_m`.
struct LionOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  Clip clip = {};
  LossScaling scaling = {};
};
class Lion {
 public:
  explicit Lion(LionOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  LionOptions options_;
};

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
