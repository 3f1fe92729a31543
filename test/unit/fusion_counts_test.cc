// How many kernels models take on a GPU-like target, and how many steps must wait for one another: the goals of
// form-groups, order and fuse-horizontally.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "compiler/compile.h"
#include "test/unit/lenet_model.h"

namespace agc {
namespace {

struct Counts {
  int dispatches = 0, levels = 0;
};

// Of the plan of one graph for the built-in H200.
Counts CountsOf(const Module& m, absl::string_view graph) {
  EXPECT_TRUE(m.status().ok()) << m.status().message();
  const absl::StatusOr<Program> plan = LowerToPlan(Clone(m.program()), *FakeTarget("h200"), {});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  Counts counts;
  if (!plan.ok()) return counts;
  for (const Graph& g : plan->graphs) {
    if (g.name != graph) continue;
    int32_t epoch = -1;
    for (const Step& step : g.steps) {
      if (step.kind != StepKind::kDispatch) continue;
      ++counts.dispatches;
      counts.levels += step.epoch != epoch ? 1 : 0;
      epoch = step.epoch;
    }
  }
  return counts;
}

// y = f(x), and dx and the gradients of all weights with the cotangent %g.
template <typename F>
void TraceBoth(Module& m, const Dims& dims, F f) {
  m.Graph("forward", [&](Trace& t) { t.Output("y", f(t.Input("x", kF32, dims))); });
  m.Graph("both", [&](Trace& t) {
    const Tensor x = t.Input("x", kF32, dims), y = f(x);
    const Tensor loss = y.rank() == 0 ? y : ReduceSum(y * t.Input("g", kF32, dims));
    t.Output("y", y);
    t.Output("dx", Gradient(loss, x));
    for (const StateDef& s : std::vector<StateDef>(m.program().states))
      t.Output(absl::StrCat("d.", s.name), Gradient(loss, State(x, s.name, s.type, s.init, s.trainable)));
  });
}

TEST(FusionCounts, Softmax) {
  Module m("softmax");
  TraceBoth(m, {512, 1000}, [](Tensor x) { return Softmax(x); });
  EXPECT_EQ(CountsOf(m, "forward").dispatches, 1);
  EXPECT_EQ(CountsOf(m, "both").dispatches, 1);
}

TEST(FusionCounts, LayerNorm) {
  Module m("norm");
  TraceBoth(m, {512, 1024}, nn::LayerNorm{.name = "n", .size = 1024});
  EXPECT_EQ(CountsOf(m, "forward").dispatches, 1);
  EXPECT_EQ(CountsOf(m, "both").dispatches, 2);
}

TEST(FusionCounts, RmsNorm) {
  Module m("norm");
  TraceBoth(m, {512, 1024}, nn::RmsNorm{.name = "n", .size = 1024});
  EXPECT_EQ(CountsOf(m, "forward").dispatches, 1);
  EXPECT_EQ(CountsOf(m, "both").dispatches, 2);
}

// The mean of the rows' losses is a kernel of its own.
TEST(FusionCounts, CrossEntropy) {
  Module m("loss");
  TraceBoth(m, {512, 1000}, [](Tensor x) { return CrossEntropy(x, Iota(*x.builder, kI32, {512})); });
  EXPECT_EQ(CountsOf(m, "forward").dispatches, 2);
  EXPECT_EQ(CountsOf(m, "both").dispatches, 2);
}

// A hundred independent updates are parts of one kernel; one before it counts steps, reads the learning rate and takes
// the powers of beta.
TEST(FusionCounts, AdamOverManyParameters) {
  Module m("adam");
  m.Graph("step", [&](Trace& t) {
    const Tensor lr = t.Param("lr", kF32);
    Tensor loss;
    for (int64_t i = 0; i < 100; ++i) {
      const Dims dims = {64 + 32 * (i % 10)};
      const Tensor w = State(lr, absl::StrCat("w", i), {kF32, dims}, {}, true);
      const Tensor y = ReduceSum(w * t.Input(absl::StrCat("x", i), kF32, dims));
      loss = i == 0 ? y : loss + y;
    }
    optim::Adam({.lr = lr}).Minimize(loss);
  });
  EXPECT_LE(CountsOf(m, "step").dispatches, 2);
}

TEST(FusionCounts, LeNet5) {
  Module m("lenet5");
  test::TraceLenetTraining(m, 60000, 100);
  const Counts train = CountsOf(m, "train_step");
  EXPECT_LE(train.dispatches, 24);
  EXPECT_LE(train.levels, 13);
  EXPECT_LE(CountsOf(m, "infer").dispatches, 5);
}

// Pre-norm, Xiong et al. (2020), "On layer normalization in the transformer architecture", figure 1b.
TEST(FusionCounts, TransformerLayer) {
  Module m("layer");
  TraceBoth(m, {8, 128, 256}, [](Tensor x) {
    const nn::LayerNorm first{.name = "n1", .size = 256}, second{.name = "n2", .size = 256};
    const nn::MultiHeadAttention attention{.name = "a", .size = 256, .heads = 8};
    const nn::Linear up{.name = "up", .in = 256, .out = 1024}, down{.name = "down", .in = 1024, .out = 256};
    x = x + attention(first(x));
    return x + down(Gelu(up(second(x))));
  });
  const int forward = CountsOf(m, "forward").dispatches;
  EXPECT_LE(forward, 8);
  EXPECT_LE(CountsOf(m, "both").dispatches - forward, 20);
}

}  // namespace
}  // namespace agc
