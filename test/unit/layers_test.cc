// Layers and optimisers of the C++ API on the host evaluators: what states they declare and how those move.
#include <cmath>
#include <map>
#include <random>

#include "compiler/agc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/eval/graph_eval.h"
#include "passes/manager.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<double>;

Numbers NumbersOf(const HostTensor& t) {
  Numbers values;
  for (int64_t i = 0; i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
  return values;
}
HostTensor TensorOf(TensorType type, const Numbers& values) {
  HostTensor t = HostTensor::Zeros(std::move(type));
  for (int64_t i = 0; i < t.type.elements(); ++i) {
    t.set(i, Scalar::Of(t.type.dtype, values[values.size() == 1 ? 0 : static_cast<size_t>(i)]));
  }
  return t;
}

// Steps of a module's graph from given inputs; states start at their constants unless they are given.
struct Steps {
  Program program;
  EvalInputs in = {};
  explicit Steps(const Module& m) : program(Clone(m.program())) {
    EXPECT_TRUE(m.status().ok()) << m.status();
    PassContext context;
    const absl::Status status = RunPipeline(program, {"dce", "autograd"}, context);
    EXPECT_TRUE(status.ok()) << status;
  }
  EvalResult Run(const std::string& graph) {
    absl::StatusOr<EvalResult> r = EvaluateGraph(program, *program.FindGraph(graph), in, EvalMode::kExact);
    EXPECT_TRUE(r.ok()) << r.status();
    if (!r.ok()) return {};
    for (const auto& [name, value] : r->states) in.states[name] = value;
    return *std::move(r);
  }
  Numbers State(const std::string& name) { return NumbersOf(in.states.at(name)); }
};

// ---------------------------------------------------------------- layers

TEST(Layers, BatchNormMovesItsStatistics) {
  Module m("m");
  const nn::BatchNorm norm{.name = "bn", .channels = 2, .momentum = 0.25};
  m.Graph("train", [&](Trace& t) { t.Output("y", norm(t.Input("x", kF32, {4, 2}), true)); });
  m.Graph("infer", [&](Trace& t) { t.Output("y", norm(t.Input("x", kF32, {4, 2}), false)); });
  Steps s(m);
  s.in.params["x"] = TensorOf({kF32, {4, 2}}, {1, 10, 2, 10, 3, 10, 6, 10});
  const Numbers y = NumbersOf(s.Run("train").outputs.at("y"));
  EXPECT_NEAR(y[0], -2 / std::sqrt(3.5), 1e-5);
  EXPECT_EQ(y[1], 0);
  // Mean 3 and 10; biased variance 3.5 and 0, unbiased 14/3 and 0.
  EXPECT_THAT(s.State("bn.running_mean"), ElementsAre(0.75, 2.5));
  EXPECT_THAT(s.State("bn.running_variance"), ElementsAre(DoubleNear(0.75 + 14.0 / 12, 1e-6), 0.75));
  const Numbers z = NumbersOf(s.Run("infer").outputs.at("y"));
  EXPECT_NEAR(z[0], 0.25 / std::sqrt(0.75 + 14.0 / 12 + 1e-5), 1e-5);
  EXPECT_THAT(s.State("bn.running_mean"), ElementsAre(0.75, 2.5));
  EXPECT_FALSE(s.program.FindState("bn.running_mean")->trainable);
  EXPECT_TRUE(s.program.FindState("bn.scale")->trainable);
}

TEST(Layers, BatchNormOfHalvesKeepsFloats) {
  Module m("m");
  const nn::BatchNorm norm{.name = "bn", .channels = 1};
  m.Graph("train", [&](Trace& t) { t.Output("y", norm(t.Input("x", kF16, {2, 1}), true)); });
  Steps s(m);
  s.in.params["x"] = TensorOf({kF16, {2, 1}}, {1000, -1000});
  EXPECT_THAT(NumbersOf(s.Run("train").outputs.at("y")), ElementsAre(1, -1));
  EXPECT_THAT(s.State("bn.running_variance"), ElementsAre(DoubleNear(0.9 + 0.1 * 2e6, 1)));
}

TEST(Layers, ShapesAndStates) {
  Module m("m");
  m.Graph("g", [&](Trace& t) {
    const Tensor ids = t.Input("ids", kI32, {2, 5}), key = t.Input("key", kU32, {2});
    const Tensor x = nn::Embedding{.name = "e", .count = 7, .size = 8}(ids);
    EXPECT_EQ(ToString(x.type()), "f32[2,5,8]");
    EXPECT_EQ(ToString(nn::Linear{.name = "l", .in = 8, .out = 3, .bias = false}(x).type()), "f32[2,5,3]");
    EXPECT_EQ(ToString(nn::RmsNorm{.name = "r", .size = 8}(x).type()), "f32[2,5,8]");
    EXPECT_EQ(ToString(nn::GroupNorm{.name = "g", .groups = 5, .channels = 5}(x).type()), "f32[2,5,8]");
    const nn::MultiHeadAttention a{.name = "a", .size = 8, .heads = 4, .kv_heads = 2, .rotary_base = 100};
    EXPECT_EQ(ToString(a(x, {.causal = Causal::kUpperLeft}).type()), "f32[2,5,8]");
    EXPECT_EQ(ToString(a(x, Slice(x, {0, 0, 0}, {2, 3, 8}, {})).type()), "f32[2,5,8]");
    const RecurrentResult lstm =
        nn::Lstm{.name = "s", .in = 8, .hidden = 3}(x, {.direction = Direction::kBidirectional});
    EXPECT_EQ(ToString(lstm.y.type()), "f32[2,5,6]");
    EXPECT_EQ(ToString(lstm.c.type()), "f32[2,5,3]");
    EXPECT_EQ(ToString(nn::Gru{.name = "u", .in = 8, .hidden = 3}(x, {.batch_first = true}).y.type()), "f32[2,5,3]");
    EXPECT_EQ(ToString(nn::Rnn{.name = "n", .in = 8, .hidden = 3, .bias = false}(x).h.type()), "f32[1,5,3]");
    const nn::Dropout drop{.rate = 0.5};
    EXPECT_EQ(drop(x, key, false).id, x.id);
    t.Output("a", drop(x, key, true) - drop(x, key, true));  // two calls, two masks
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  const auto type = [&](const char* name) {
    const StateDef* s = m.program().FindState(name);
    return s == nullptr ? "none" : ToString(s->type);
  };
  EXPECT_EQ(type("l.bias"), "none");
  EXPECT_EQ(type("a.k.weight"), "f32[8,4]");
  EXPECT_EQ(type("s.w"), "f32[2,12,8]");
  EXPECT_EQ(type("s.bias"), "f32[2,24]");
  EXPECT_EQ(type("n.bias"), "none");
  Steps s(m);
  s.in.params["ids"] = TensorOf({kI32, {2, 5}}, {1});
  s.in.params["key"] = TensorOf({kU32, {2}}, {1, 2});
  s.in.states["e.weight"] = TensorOf({kF32, {7, 8}}, {1});
  EXPECT_THAT(NumbersOf(s.Run("g").outputs.at("a")), testing::Contains(2));
}

// Types of states and results of convolutions over one, two and three axes, and that each is the op on its states: with
// weights of 1 an output counts the elements below it.
TEST(Layers, Convolutions) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const Tensor x = t.Input("x", kF32, {2, 4, 9}), y = t.Input("y", kF32, {2, 4, 5, 6}),
                 z = t.Input("z", kF32, {1, 2, 4, 5, 6});
    t.Output("one", nn::Conv1d{.name = "one", .in = 4, .out = 6, .stride = 2, .pad = 1, .groups = 2}(x));
    t.Output("two", nn::Conv2d{.name = "two", .in = 4, .out = 3, .kernel = 2, .dilation = 2, .bias = false}(y));
    t.Output("three", nn::Conv3d{.name = "three", .in = 2, .out = 4, .kernel = 2, .stride = 2, .groups = 2}(z));
    t.Output("transposed",
             nn::ConvTranspose2d{
                 .name = "transposed", .in = 4, .out = 2, .stride = 2, .pad = 1, .output_pad = 1, .groups = 2}(y));
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  std::map<std::string, std::string> types;
  for (const StateDef& s : m.program().states) types[s.name] = ToString(s.type);
  const std::map<std::string, std::string> expected = {
      {"one.weight", "f32[6,2,3]"},       {"one.bias", "f32[6]"},   {"two.weight", "f32[3,4,2,2]"},
      {"three.weight", "f32[4,1,2,2,2]"}, {"three.bias", "f32[4]"}, {"transposed.weight", "f32[4,1,3,3]"},
      {"transposed.bias", "f32[2]"}};
  EXPECT_EQ(types, expected);
  EXPECT_NEAR(m.program().FindState("one.weight")->init.b, 1 / std::sqrt(2.0 * 3), 1e-12);
  EXPECT_NEAR(m.program().FindState("transposed.weight")->init.b, 1 / 3.0, 1e-12);
  Steps s(m);
  for (const StateDef& state : m.program().states)
    s.in.states[state.name] = TensorOf(state.type, {state.type.rank() == 1 ? 0.5 : 1});
  s.in.params["x"] = TensorOf({kF32, {2, 4, 9}}, {1});
  s.in.params["y"] = TensorOf({kF32, {2, 4, 5, 6}}, {1});
  s.in.params["z"] = TensorOf({kF32, {1, 2, 4, 5, 6}}, {1});
  const EvalResult r = s.Run("g");
  const auto type = [&](const char* name) { return ToString(r.outputs.at(name).type); };
  EXPECT_EQ(type("one"), "f32[2,6,5]");
  EXPECT_EQ(type("two"), "f32[2,3,3,4]");
  EXPECT_EQ(type("three"), "f32[1,4,2,2,3]");
  EXPECT_EQ(type("transposed"), "f32[2,2,10,12]");
  const Numbers one = NumbersOf(r.outputs.at("one")), transposed = NumbersOf(r.outputs.at("transposed"));
  EXPECT_THAT(Numbers(one.begin(), one.begin() + 5), ElementsAre(4.5, 6.5, 6.5, 6.5, 4.5));
  EXPECT_THAT(NumbersOf(r.outputs.at("two")), Each(16));
  EXPECT_THAT(NumbersOf(r.outputs.at("three")), Each(8.5));
  // Two channels a group; along an axis an even place meets one tap, an odd one two.
  EXPECT_THAT(Numbers(transposed.begin(), transposed.begin() + 4), ElementsAre(2.5, 4.5, 2.5, 4.5));
  EXPECT_THAT(Numbers(transposed.begin() + 12, transposed.begin() + 16), ElementsAre(4.5, 8.5, 4.5, 8.5));
}

TEST(Layers, ConvolutionsOfWrongInputs) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const Tensor x = t.Input("x", kF32, {2, 3, 9});
    nn::Conv1d{.name = "one", .in = 4, .out = 2}(x);
    nn::Conv3d{.name = "three", .in = 3, .out = 2}(x);
    nn::ConvTranspose2d{.name = "transposed", .in = 3, .out = 2}(x);
  });
  const std::string message(m.status().message());
  EXPECT_THAT(message, HasSubstr("one: input is f32[2,3,9], expected [n,4,l]"));
  EXPECT_THAT(message, HasSubstr("three: input is f32[2,3,9], expected [n,3,d,h,w]"));
  EXPECT_THAT(message, HasSubstr("transposed: input is f32[2,3,9], expected [n,3,h,w]"));
}

TEST(Layers, WrongInputs) {
  Module m("m");
  m.Graph("g", [&](Trace& t) {
    const Tensor x = t.Input("x", kF32, {2, 3});
    nn::BatchNorm{.name = "bn", .channels = 4}(x, true);
    nn::Embedding{.name = "e", .count = 4, .size = 2}(x);
    nn::Lstm{.name = "l", .in = 3, .hidden = 2}(x);
    nn::MultiHeadAttention{.name = "a", .size = 8, .heads = 3}(t.Input("z", kF32, {2, 3, 8}));
    optim::Constant(x, {});
  });
  const std::string message(m.status().message());
  EXPECT_THAT(message, HasSubstr("bn: input is f32[2,3], expected [n,4,...]"));
  EXPECT_THAT(message, HasSubstr("e: input is f32[2,3], expected integers"));
  EXPECT_THAT(message, HasSubstr("l: input is f32[2,3], expected [steps,batch,3]"));
  EXPECT_THAT(message, HasSubstr("a: size 8, heads 3 and kv_heads 3 do not divide each other"));
  EXPECT_THAT(message, HasSubstr("schedule: the step is f32[2,3], expected an integer scalar"));
}

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
