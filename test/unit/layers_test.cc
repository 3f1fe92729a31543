// Layers of the C++ API on the host evaluators: what states they declare and how those move.
#include <cmath>
#include <map>

#include "compiler/agc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/train_steps.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(Layers, OptimisersLeaveFrozenLayersAlone) {
  Module m("m");
  m.Graph("train", [&](Trace& t) {
    const Tensor x = t.Input("x", kF32, {2, 3});
    const nn::Linear first{.name = "first", .in = 3, .out = 2, .trainable = false},
        last{.name = "last", .in = 2, .out = 1};
    nn::MultiHeadAttention{.name = "a", .size = 4, .trainable = false}(t.Input("z", kF32, {1, 2, 4}));
    optim::Sgd({.lr = t.Param("lr", kF32), .weight_decay = 0.5}).Minimize(ReduceSum(last(first(x))));
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  std::vector<std::string> updated;
  for (const auto& u : m.program().FindGraph("train")->updates) updated.push_back(u.state);
  EXPECT_THAT(updated, ElementsAre("last.weight", "last.bias"));
  EXPECT_FALSE(m.program().FindState("a.out.bias")->trainable);
}

}  // namespace
}  // namespace agc
