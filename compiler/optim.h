// Optimisers: they differentiate a loss with respect to every trainable state that the graph reads, and update those
// states. Forward, backward and update are one graph.
//   agc::optim::Sgd({.lr = lr, .momentum = 0.9f}).Minimize(loss);
#pragma once
#include "compiler/module.h"

namespace agc::optim {

// v' = momentum * v + g;  w' = w - lr * v'  (Sutskever et al. 2013, "On the importance of initialization and momentum",
// equation 1, with the learning rate outside v). Velocities are states `<w>.velocity`; none where momentum is 0.
struct SgdOptions {
  Tensor lr = {};  // f32[], a param of the graph, say
  double momentum = 0;
};
class Sgd {
 public:
  explicit Sgd(SgdOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  SgdOptions options_;
};

// Kingma and Ba (2015), "Adam", algorithm 1. States `<w>.adam_m`, `<w>.adam_v` and the step counter `adam.step`.
struct AdamOptions {
  Tensor lr = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};
class Adam {
 public:
  explicit Adam(AdamOptions options) : options_(options) {}
  void Minimize(Tensor loss, Loc loc = Loc::Here()) const;

 private:
  AdamOptions options_;
};

}  // namespace agc::optim
