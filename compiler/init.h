// First values of weights, from the numbers of inputs and outputs of a unit, as State() takes them.
//   agc::Tensor w = agc::State(x, "w", {agc::kF32, {784, 10}}, agc::nn::GlorotUniform(784, 10), /*trainable=*/true);
#pragma once
#include <cmath>
#include <cstdint>

#include "ir/program.h"

namespace agc::nn {

// Uniform or normal with mean 0 and the given variance.
inline Init UniformOfVariance(double v) { return {InitKind::kUniform, -std::sqrt(3 * v), std::sqrt(3 * v)}; }
inline Init NormalOfVariance(double v) { return {InitKind::kNormal, 0, std::sqrt(v)}; }

// Glorot and Bengio (2010), "Understanding the difficulty of training deep feedforward networks", section 4.2.
inline Init GlorotUniform(int64_t in, int64_t out, double gain = 1) {
  return UniformOfVariance(gain * gain * 2 / static_cast<double>(in + out));
}
inline Init GlorotNormal(int64_t in, int64_t out, double gain = 1) {
  return NormalOfVariance(gain * gain * 2 / static_cast<double>(in + out));
}
// He, Zhang, Ren and Sun (2015), "Delving deep into rectifiers", equation 10: before relu.
inline Init HeUniform(int64_t in) { return UniformOfVariance(2 / static_cast<double>(in)); }
inline Init HeNormal(int64_t in) { return NormalOfVariance(2 / static_cast<double>(in)); }
// LeCun, Bottou, Orr and Mueller (1998), "Efficient BackProp", section 4.6: before tanh and selu.
inline Init LecunUniform(int64_t in) { return UniformOfVariance(1 / static_cast<double>(in)); }
inline Init LecunNormal(int64_t in) { return NormalOfVariance(1 / static_cast<double>(in)); }

// Saxe, McClelland and Ganguli (2014), "Exact solutions to the nonlinear dynamics of learning in deep linear neural
// networks", section 3: for weights of two axes and more, see InitKind.
inline Init Orthogonal(double gain = 1) { return {InitKind::kOrthogonal, gain}; }

}  // namespace agc::nn
