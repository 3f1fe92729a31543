// Optimisers and learning rates of the C++ API on the host evaluator: what they train and how.
#include <cmath>
#include <map>

#include "compiler/agc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/train_steps.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

// ---------------------------------------------------------------- optimisers

// The weights and gradients of two steps on loss = sum(c w^2) / 2, whose gradient is c w.
constexpr double kLr = 0.125;
const Numbers kStart = {1, -2}, kCurve = {0.5, 3};

Numbers AfterTwoSteps(absl::FunctionRef<void(Tensor loss, Tensor lr)> minimize) {
  Module m("m");
  m.Graph("step", [&](Trace& t) {
    const Tensor c = t.Input("c", kF32, {2});
    const Tensor w = State(c, "w", {kF32, {2}}, {}, true);
    minimize(ReduceSum(c * w * w) * 0.5, t.Param("lr", kF32));
  });
  Steps s(m);
  s.in.params["c"] = TensorOf({kF32, {2}}, kCurve);
  s.in.params["lr"] = TensorOf({kF32, {}}, {kLr});
  s.in.states["w"] = TensorOf({kF32, {2}}, kStart);
  s.Run("step");
  s.Run("step");
  return s.State("w");
}

// The same by `step`(w, g, t, memory of eight numbers), element by element.
Numbers Expected(absl::FunctionRef<double(double w, double g, int t, double* memory)> step) {
  Numbers w = kStart;
  for (size_t i = 0; i < w.size(); ++i) {
    double memory[8] = {};
    for (int t = 1; t <= 2; ++t) w[i] = step(w[i], kCurve[i] * w[i], t, memory);
  }
  return w;
}

void ExpectNear(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << i;
}

TEST(Optimisers, Sgd) {
  for (bool nesterov : {false, true}) {
    const Numbers got = AfterTwoSteps([&](Tensor loss, Tensor lr) {
      optim::Sgd({.lr = lr, .momentum = 0.75, .nesterov = nesterov, .weight_decay = 0.5}).Minimize(loss);
    });
    ExpectNear(got, Expected([&](double w, double g, int, double* v) {
                 g += 0.5 * w;
                 v[0] = 0.75 * v[0] + g;
                 return w - kLr * (nesterov ? g + 0.75 * v[0] : v[0]);
               }));
  }
}

double AdamStep(double g, int t, double* m) {
  m[0] = 0.9 * m[0] + 0.1 * g;
  m[1] = 0.99 * m[1] + 0.01 * g * g;
  return m[0] / (1 - std::pow(0.9, t)) / (std::sqrt(m[1] / (1 - std::pow(0.99, t))) + 1e-3);
}

TEST(Optimisers, AdamAndAdamW) {
  ExpectNear(AfterTwoSteps([&](Tensor loss, Tensor lr) {
               optim::Adam({.lr = lr, .beta2 = 0.99, .epsilon = 1e-3, .weight_decay = 0.5}).Minimize(loss);
             }),
             Expected([](double w, double g, int t, double* m) { return w - kLr * AdamStep(g + 0.5 * w, t, m); }));
  ExpectNear(AfterTwoSteps([&](Tensor loss, Tensor lr) {
               optim::AdamW({.lr = lr, .beta2 = 0.99, .epsilon = 1e-3, .weight_decay = 0.5}).Minimize(loss);
             }),
             Expected([](double w, double g, int t, double* m) { return w - kLr * (AdamStep(g, t, m) + 0.5 * w); }));
}

// The first step of a constant gradient is the learning rate, however near to 1 the decays are; so are later ones.
TEST(Optimisers, AdamCorrectsItsBiasToTheLastDigits) {
  Module m("m");
  m.Graph("step", [&](Trace& t) {
    const Tensor w = State(t.builder(), "w", {kF32, {}}, {}, true);
    optim::Adam({.lr = t.Param("lr", kF32), .beta1 = 0.9, .beta2 = 0.99999, .epsilon = 0}).Minimize(w * 3.0);
  });
  Steps s(m);
  s.in.params["lr"] = TensorOf({kF32, {}}, {1});
  s.in.states["w"] = TensorOf({kF32, {}}, {0});
  for (int t = 1; t <= 3; ++t) {
    s.Run("step");
    EXPECT_NEAR(s.State("w")[0], -t, 1e-6 * t) << t;
  }
}

TEST(Optimisers, RmsPropAdagradAndLion) {
  for (bool centred : {false, true}) {
    const Numbers got = AfterTwoSteps([&](Tensor loss, Tensor lr) {
      optim::RmsProp({.lr = lr, .decay = 0.75, .epsilon = 1e-2, .momentum = 0.5, .centred = centred}).Minimize(loss);
    });
    ExpectNear(got, Expected([&](double w, double g, int, double* m) {
                 m[0] = 0.75 * m[0] + 0.25 * g * g;
                 m[1] = 0.75 * m[1] + 0.25 * g;
                 m[2] = 0.5 * m[2] + g / (std::sqrt(m[0] - (centred ? m[1] * m[1] : 0)) + 1e-2);
                 return w - kLr * m[2];
               }));
  }
  ExpectNear(AfterTwoSteps([&](Tensor loss, Tensor lr) { optim::Adagrad({.lr = lr, .initial = 0.5}).Minimize(loss); }),
             Expected([](double w, double g, int t, double* m) {
               m[0] = (t == 1 ? 0.5 : m[0]) + g * g;
               return w - kLr * g / (std::sqrt(m[0]) + 1e-10);
             }));
  ExpectNear(
      AfterTwoSteps([&](Tensor loss, Tensor lr) { optim::Lion({.lr = lr, .weight_decay = 0.5}).Minimize(loss); }),
      Expected([](double w, double g, int, double* m) {
        const double u = 0.9 * m[0] + 0.1 * g;
        m[0] = 0.99 * m[0] + 0.01 * g;
        return w - kLr * ((u > 0) - (u < 0) + 0.5 * w);
      }));
}

TEST(Optimisers, Clipping) {
  ExpectNear(
      AfterTwoSteps([&](Tensor loss, Tensor lr) { optim::Sgd({.lr = lr, .clip = {.value = 1}}).Minimize(loss); }),
      Expected([](double w, double g, int, double*) { return w - kLr * std::fmin(std::fmax(g, -1), 1); }));
  // Both elements share one norm: (0.5, -6), then what that leaves.
  Numbers w = kStart;
  for (int t = 0; t < 2; ++t) {
    const double norm = std::hypot(kCurve[0] * w[0], kCurve[1] * w[1]);
    for (size_t i = 0; i < 2; ++i) w[i] -= kLr * kCurve[i] * w[i] * std::fmin(1, 2 / norm);
  }
  ExpectNear(AfterTwoSteps([&](Tensor loss, Tensor lr) { optim::Sgd({.lr = lr, .clip = {.norm = 2}}).Minimize(loss); }),
             w);
  ExpectNear(
      AfterTwoSteps([&](Tensor loss, Tensor lr) { optim::Sgd({.lr = lr, .clip = {.norm = 1e6}}).Minimize(loss); }),
      AfterTwoSteps([&](Tensor loss, Tensor lr) { optim::Sgd({.lr = lr}).Minimize(loss); }));
}

// A scale that is a power of two changes no bit of a finite step; one whose gradients overflow changes the scale alone.
TEST(Optimisers, LossScaling) {
  const auto adam = [](double initial) {
    return
        [initial](Tensor loss, Tensor lr) { optim::Adam({.lr = lr, .scaling = {.initial = initial}}).Minimize(loss); };
  };
  EXPECT_EQ(AfterTwoSteps(adam(1024)), AfterTwoSteps(adam(0)));

  Module m("m");
  m.Graph("step", [&](Trace& t) {
    const Tensor c = t.Input("c", kF32, {2}), w = State(c, "w", {kF32, {2}}, {.a = 1}, true);
    optim::Sgd({.lr = t.Param("lr", kF32), .momentum = 0.5, .scaling = {.initial = 65536, .growth_every = 2}})
        .Minimize(ReduceSum(w * c));
  });
  Steps s(m);
  s.in.params["lr"] = TensorOf({kF32, {}}, {0.25});
  s.in.states["w"] = TensorOf({kF32, {2}}, {1, 1});
  s.in.params["c"] = TensorOf({kF32, {2}}, {1e38, 1});  // 65536 times that is infinite
  s.Run("step");
  EXPECT_THAT(s.State("w"), ElementsAre(1, 1));
  EXPECT_THAT(s.State("w.velocity"), ElementsAre(0, 0));
  EXPECT_THAT(s.State("loss_scale"), ElementsAre(32768));
  s.in.params["c"] = TensorOf({kF32, {2}}, {2, 4});
  s.Run("step");
  EXPECT_THAT(s.State("w"), ElementsAre(0.5, 0));
  EXPECT_THAT(s.State("loss_scale"), ElementsAre(32768));
  s.Run("step");  // the second good one in a row
  EXPECT_THAT(s.State("loss_scale"), ElementsAre(65536));
  EXPECT_THAT(s.State("loss_scale.good"), ElementsAre(0));
}

// ---------------------------------------------------------------- what is trained

// Two states with a loss on `chosen` only, both trainable, updated by `minimize`; their values after one step from 1.
std::map<std::string, Numbers> Trained(absl::FunctionRef<void(Trace& t, Tensor w, Tensor v)> minimize) {
  Module m("m");
  m.Graph("step", [&](Trace& t) {
    const Tensor one = t.Full(kF32, {2}, 1), w = State(one, "net.w", {kF32, {2}}, {}, true);
    minimize(t, w, State(one, "other.v", {kF32, {2}}, {}, true));
  });
  Steps s(m);
  s.in.states["net.w"] = TensorOf({kF32, {2}}, {1, 1});
  s.in.states["other.v"] = TensorOf({kF32, {2}}, {1, 1});
  s.Run("step");
  std::map<std::string, Numbers> states;
  for (const auto& [name, value] : s.in.states) states[name] = NumbersOf(value);
  return states;
}

TEST(Trained, StatesThatTheLossDoesNotReachStay) {
  for (Tensor (*ends)(Tensor, Loc) : {&StopGradient, &Round}) {
    const auto after = Trained([&](Trace& t, Tensor w, Tensor v) {
      const optim::SgdOptions o{.lr = t.Full(kF32, {}, 0.5), .momentum = 0.5, .weight_decay = 0.5};
      optim::Sgd(o).Minimize(ReduceSum(w * ends(v, {})));
    });
    EXPECT_THAT(after.at("net.w"), ElementsAre(0.25, 0.25));
    EXPECT_THAT(after.at("other.v"), ElementsAre(1, 1));
    EXPECT_EQ(after.count("other.v.velocity"), 0u);
  }
}

TEST(Trained, TwoOptimisersShareAGraph) {
  const auto after = Trained([](Trace& t, Tensor w, Tensor v) {
    const Tensor loss = ReduceSum(w * v), lr = t.Full(kF32, {}, 0.5);
    optim::Adam({.lr = lr, .prefix = "a."}).Minimize(loss, Trainable(loss, "net."));
    optim::Adam({.lr = lr, .scaling = {.initial = 4}, .prefix = "b."}).Minimize(loss * -1.0, {v});
  });
  EXPECT_THAT(after.at("net.w"), ElementsAre(DoubleNear(0.5, 1e-5), DoubleNear(0.5, 1e-5)));
  EXPECT_THAT(after.at("other.v"), ElementsAre(DoubleNear(1.5, 1e-5), DoubleNear(1.5, 1e-5)));
  EXPECT_THAT(after.at("a.adam.step"), ElementsAre(1));
  EXPECT_THAT(after.at("b.adam.step"), ElementsAre(1));
  EXPECT_THAT(after.at("b.loss_scale"), ElementsAre(4));
  EXPECT_EQ(after.count("a.other.v.adam_m"), 0u);
}

TEST(Trained, DecayLeavesOutStatesOfFewAxes) {
  const auto rate = [](Trace& t) { return t.Full(kF32, {}, 1); };
  for (const int rank : {1, 2}) {
    const auto after = Trained([&](Trace& t, Tensor w, Tensor v) {
      const Tensor none = ReduceSum(w * v) * 0.0;
      optim::AdamW({.lr = rate(t), .weight_decay = 0.5, .decay_rank = rank}).Minimize(none, {w});
      optim::Sgd({.lr = rate(t), .weight_decay = 0.5, .decay_rank = rank}).Minimize(none, {v});
    });
    EXPECT_THAT(after.at("net.w"), ElementsAre(rank == 1 ? 0.5 : 1, rank == 1 ? 0.5 : 1));
    EXPECT_THAT(after.at("other.v"), ElementsAre(rank == 1 ? 0.5 : 1, rank == 1 ? 0.5 : 1));
  }
}

TEST(Trained, WrongUsesAreDiagnostics) {
  const auto error = [](absl::FunctionRef<void(Trace & t, Tensor w, Tensor lr)> f) {
    Module m("m");
    m.Graph("g", [&](Trace& t) { f(t, State(t.builder(), "w", {kF32, {2}}, {}, true), t.Param("lr", kF32)); });
    const std::string text(m.status().message());
    const size_t at = text.find("optimiser: ");
    return at == std::string::npos ? text : text.substr(at);
  };
  const Loc here = Loc::Here();
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor lr) { optim::Sgd({.lr = lr}).Minimize(ReduceSum(w), {w * 2.0}); }),
            "optimiser: parameter 0 is the value of an op mul, expected a state");
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor lr) {
              optim::Sgd({.lr = lr}).Minimize(ReduceSum(w), {w, w});
            }),
            "optimiser: @w is given twice");
  EXPECT_EQ(error([&](Trace&, Tensor, Tensor lr) { optim::Sgd({.lr = lr}).Minimize(lr); }),
            "optimiser: the loss depends on no trainable state");
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor lr) { optim::Sgd({.lr = lr}).Minimize(lr, {w}); }),
            "optimiser: the loss does not depend on @w");
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor lr) { optim::Sgd({.lr = lr}).Minimize(ReduceSum(w), TensorSpan{}); }),
            "optimiser: the list of what is to be trained is empty");
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor) { optim::Sgd({}).Minimize(ReduceSum(w), here); }),
            "optimiser: the learning rate is missing, give lr a tensor of type f32[]");
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor) { optim::Sgd({.lr = w}).Minimize(ReduceSum(w)); }),
            "optimiser: the learning rate is f32[2], expected f32[]");
  EXPECT_EQ(error([&](Trace&, Tensor w, Tensor lr) { optim::Sgd({.lr = lr}).Minimize(w); }),
            "optimiser: the loss is f32[2], expected a float scalar; reduce it first");
  EXPECT_THAT(error([&](Trace&, Tensor w, Tensor) { Trainable(w, "net."); }),
              HasSubstr("graph @g reads no trainable state whose name starts with net."));
}

// ---------------------------------------------------------------- dtypes

// A weight of `dtype` from 1 after three steps on loss = sum(w^2) / 2 * 2^-10, whose square f16 rounds to 0.
double Small(DType dtype, absl::FunctionRef<void(Tensor loss, Tensor lr)> minimize) {
  Module m("m");
  m.Graph("step", [&](Trace& t) {
    const Tensor w = State(t.builder(), "w", {dtype, {1}}, {}, true);
    minimize(ReduceSum(w * w * 0.00048828125), t.Param("lr", kF32));
  });
  Steps s(m);
  s.in.params["lr"] = TensorOf({kF32, {}}, {0.0625});
  s.in.states["w"] = TensorOf({dtype, {1}}, {1});
  for (int k = 0; k < 3; ++k) s.Run("step");
  for (const StateDef& state : s.program.states) {
    if (state.name.find("w.") == std::string::npos) continue;
    EXPECT_EQ(state.type.dtype, dtype == kF64 ? kF64 : kF32) << state.name;
  }
  return s.State("w")[0];
}

TEST(Optimisers, ComputeInTheAccumulatorOfEveryDtype) {
  const std::pair<const char*, void (*)(Tensor, Tensor)> all[] = {
      {"sgd", [](Tensor loss, Tensor lr) { optim::Sgd({.lr = lr, .momentum = 0.5}).Minimize(loss * 1024.0); }},
      {"adam", [](Tensor loss, Tensor lr) { optim::Adam({.lr = lr}).Minimize(loss); }},
      {"adamw", [](Tensor loss, Tensor lr) { optim::AdamW({.lr = lr, .clip = {.norm = 1}}).Minimize(loss); }},
      {"rmsprop", [](Tensor loss, Tensor lr) { optim::RmsProp({.lr = lr, .centred = true}).Minimize(loss); }},
      {"adagrad", [](Tensor loss, Tensor lr) { optim::Adagrad({.lr = lr}).Minimize(loss); }},
      {"lion", [](Tensor loss, Tensor lr) { optim::Lion({.lr = lr}).Minimize(loss); }},
      {"scaled",
       [](Tensor loss, Tensor lr) { optim::Adam({.lr = lr, .scaling = {.initial = 65536}}).Minimize(loss); }}};
  for (const auto& [name, minimize] : all) {
    const double exact = Small(kF64, minimize);
    EXPECT_LT(exact, 0.99) << name;
    EXPECT_NEAR(Small(kF32, minimize), exact, 1e-5) << name;
    EXPECT_NEAR(Small(kF16, minimize), exact, 4e-3) << name;
    EXPECT_NEAR(Small(kBF16, minimize), exact, 3e-2) << name;
  }
}

TEST(Optimisers, BiasCorrectionInF64) {
  const auto adam = [](Tensor loss, Tensor lr) { optim::Adam({.lr = lr, .epsilon = 0}).Minimize(loss); };
  // With gradients g(w) = w / 1024 the first step is exactly lr, whatever the betas: m / c1 = g, v / c2 = g^2.
  Module m("m");
  m.Graph("step", [&](Trace& t) {
    const Tensor w = State(t.builder(), "w", {kF64, {1}}, {}, true);
    adam(ReduceSum(w * w), t.Full(kF64, {}, 0.1));
  });
  Steps s(m);
  s.in.states["w"] = TensorOf({kF64, {1}}, {1});
  s.Run("step");
  EXPECT_NEAR(s.State("w")[0], 0.9, 1e-14);
}

// What a step that is not finite leaves alone, and what goes on.
TEST(Optimisers, ScaledStepsKeepForwardStates) {
  Module m("m");
  const nn::BatchNorm norm{.name = "bn", .channels = 1, .momentum = 0.5};
  m.Graph("step", [&](Trace& t) {
    t.Counter("batch");
    const Tensor y = norm(t.Input("x", kF32, {2, 1}), true), w = State(y, "w", {kF32, {}}, {.a = 1}, true);
    optim::Adam({.lr = t.Full(kF32, {}, 0.5), .scaling = {.initial = 8}}).Minimize(ReduceSum(y * y) * w);
    t.Update("behind", t.State("behind", {kF32, {}}) + 1.0);
  });
  Steps s(m);
  s.in.states["bn.scale"] = s.in.states["w"] = TensorOf({kF32, {}}, {1});
  s.in.states["bn.scale"] = TensorOf({kF32, {1}}, {1});
  s.in.params["x"] = TensorOf({kF32, {2, 1}}, {INFINITY, 0});
  s.Run("step");
  EXPECT_THAT(s.State("bn.running_mean"), ElementsAre(0));
  EXPECT_THAT(s.State("bn.running_variance"), ElementsAre(1));
  EXPECT_THAT(s.State("w"), ElementsAre(1));
  EXPECT_THAT(s.State("adam.step"), ElementsAre(0));
  EXPECT_THAT(s.State("loss_scale"), ElementsAre(4));
  EXPECT_THAT(s.State("batch"), ElementsAre(1));
  EXPECT_THAT(s.State("behind"), ElementsAre(1));
  s.in.params["x"] = TensorOf({kF32, {2, 1}}, {2, 4});
  s.Run("step");
  EXPECT_THAT(s.State("bn.running_mean"), ElementsAre(1.5));
  EXPECT_THAT(s.State("adam.step"), ElementsAre(1));
  EXPECT_THAT(s.State("loss_scale"), ElementsAre(4));
  EXPECT_THAT(s.State("batch"), ElementsAre(2));
}

// ---------------------------------------------------------------- schedules

Numbers Rates(int n, absl::FunctionRef<Tensor(Tensor step)> schedule) {
  Module m("m");
  m.Graph("g", [&](Trace& t) { t.Output("lr", schedule(t.Counter("step"))); });
  Steps s(m);
  Numbers rates;
  for (int k = 0; k < n; ++k) rates.push_back(s.Run("g").outputs.at("lr").at(0).AsDouble());
  return rates;
}

TEST(Schedules, FollowTheirFormulas) {
  const auto near = [](const Numbers& want) { return testing::Pointwise(DoubleNear(1e-6), want); };
  EXPECT_THAT(Rates(4, [](Tensor t) { return optim::Constant(t, {.peak = 2, .warmup = 2}); }), near({1, 2, 2, 2}));
  EXPECT_THAT(Rates(8, [](Tensor t) { return optim::Linear(t, {.peak = 2, .warmup = 2, .steps = 6, .last = 1}); }),
              near({1, 2, 2, 1.75, 1.5, 1.25, 1, 1}));
  EXPECT_THAT(Rates(7, [](Tensor t) { return optim::Cosine(t, {.peak = 2, .steps = 4, .last = 0}); }),
              near({2, 1 + std::sqrt(0.5), 1, 1 - std::sqrt(0.5), 0, 0, 0}));
  EXPECT_THAT(
      Rates(6, [](Tensor t) { return optim::StepDecay(t, {.peak = 8, .warmup = 1, .every = 2, .factor = 0.5}); }),
      near({8, 8, 8, 4, 4, 2}));
}

}  // namespace
}  // namespace agc
