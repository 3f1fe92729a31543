// LeNet-5 as the tests train it, and the step that test/e2e_fixtures/lenet_numpy.py computes independently.
//   Module m("lenet5");   TraceLenetStep(m, /*batch=*/6);
#pragma once
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"

namespace agc::test {

struct LeNet5 {
  nn::Conv2d c1{.name = "c1", .in = 1, .out = 6, .kernel = 5, .pad = 2};
  nn::Conv2d c2{.name = "c2", .in = 6, .out = 16, .kernel = 5};
  nn::Linear f1{.name = "f1", .in = 400, .out = 120};
  nn::Linear f2{.name = "f2", .in = 120, .out = 84};
  nn::Linear f3{.name = "f3", .in = 84, .out = 10};
  agc::Tensor operator()(agc::Tensor bytes) const {  // u8[n,28,28] -> f32[n,10]
    agc::Tensor x = Reshape(Cast(bytes, kF32) / 255.0f, {bytes.dim(0), 1, 28, 28});
    x = MaxPool2d(Relu(c1(x)), {.window = {2, 2}});
    x = MaxPool2d(Relu(c2(x)), {.window = {2, 2}});
    return f3(Relu(f2(Relu(f1(Reshape(x, {x.dim(0), -1}))))));
  }
};

// @step: loss, logits, the gradient of every weight, and SGD with momentum 0.9. @loss: the loss alone.
inline void TraceLenetStep(Module& m, int64_t batch) {
  const LeNet5 net;
  m.Graph("step", [&](Trace& t) {
    const agc::Tensor images = t.Input("images", kU8, {batch, 28, 28}), labels = t.Input("labels", kI32, {batch});
    const agc::Tensor lr = t.Param("lr", kF32), logits = net(images), loss = CrossEntropy(logits, labels);
    t.Output("loss", loss);
    t.Output("logits", logits);
    const std::vector<StateDef> weights = m.program().states;  // the optimiser declares more
    for (const StateDef& w : weights) {
      const agc::Tensor value = State(images, w.name, w.type, w.init, w.trainable);
      t.Output(absl::StrCat("grad.", w.name), Gradient(loss, value));
    }
    optim::Sgd({.lr = lr, .momentum = 0.9f}).Minimize(loss);
  });
  m.Graph("loss", [&](Trace& t) {
    const agc::Tensor images = t.Input("images", kU8, {batch, 28, 28}), labels = t.Input("labels", kI32, {batch});
    t.Output("loss", CrossEntropy(net(images), labels));
  });
}

// @train_step as in examples/lenet5: a resident data set of `rows` images, read `batch` a time in the order given.
inline void TraceLenetTraining(Module& m, int64_t rows, int64_t batch) {
  const LeNet5 net;
  m.Graph("train_step", [&](Trace& t) {
    const agc::Tensor images = t.Resident("train_images", kU8, {rows, 28, 28});
    const agc::Tensor labels = t.Resident("train_labels", kU8, {rows}), order = t.Resident("order", kI32, {rows});
    const agc::Tensor lr = t.Param("lr", kF32), step = t.Counter("step");
    const agc::Tensor at =
        Take(order, Rem(step, static_cast<double>(rows / batch)) * static_cast<double>(batch) + t.Iota(kI32, batch));
    const agc::Tensor loss = CrossEntropy(net(Take(images, at)), Cast(Take(labels, at), kI32));
    optim::Sgd({.lr = lr, .momentum = 0.9f}).Minimize(loss);
    t.OutputEachStep("loss", loss);
  });
  m.Graph("infer", [&](Trace& t) {
    const agc::Tensor logits = net(t.Input("images", kU8, {batch, 28, 28}));
    t.Output("logits", logits);
    t.Output("digits", ArgMax(logits, 1));
  });
}

}  // namespace agc::test
