// A convolutional network that is small in every dimension, so that drivers compile its kernels quickly, and trains
// with Adam: convolution, pooling, layer norm, a dense layer, cross entropy.
//   Module m("small");   TraceSmallStep(m);
#pragma once
#include "compiler/agc.h"

namespace agc::test {

inline void TraceSmallStep(Module& m) {
  const nn::Conv2d conv{.name = "conv", .in = 1, .out = 3, .kernel = 3, .pad = 1};
  const nn::LayerNorm norm{.name = "norm", .size = 12};
  const nn::Linear dense{.name = "dense", .in = 12, .out = 4};
  m.Graph("step", [&](Trace& t) {
    const agc::Tensor images = t.Input("images", kF32, {5, 1, 4, 4}), labels = t.Input("labels", kI32, {5});
    const agc::Tensor features = MaxPool2d(Relu(conv(images)), {.window = {2, 2}});
    const agc::Tensor loss = CrossEntropy(dense(norm(Reshape(features, {5, 12}))), labels);
    optim::Adam({.lr = t.Param("lr", kF32)}).Minimize(loss);
    t.OutputEachStep("loss", loss);
  });
}

}  // namespace agc::test
