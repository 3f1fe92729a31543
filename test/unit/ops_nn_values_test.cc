// What contractions, pooling, gather, activations and losses compute at the edges of their domains: overflow, NaN,
// ties, indices out of range, padding. Ordinary values are tested by the sweep over the op table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/build_shape.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/program.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;
using Numbers = std::vector<double>;

constexpr DType F16 = DType::kF16, F32 = DType::kF32, I32 = DType::kI32, I8 = DType::kI8, U8 = DType::kU8,
                U32 = DType::kU32;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A graph of given tensors, evaluated as a device would: every operation rounds to its dtype.
struct Scene {
  Program program = {};
  Graph graph = {};
  Builder builder = {.program = &program, .graph = &graph};
  EvalInputs given = {};

  // One number fills the tensor.
  Value Input(TensorType type, const Numbers& values) {
    const std::string name = absl::StrCat("x", graph.params.size());
    HostTensor t = HostTensor::Zeros(type);
    for (int64_t i = 0; i < type.elements(); ++i) {
      const double v = values.size() == 1 ? values[0] : values[static_cast<size_t>(i)];
      t.set(i, IsFloat(type.dtype) ? Scalar::Float(type.dtype, v) : Scalar::Int(type.dtype, static_cast<int64_t>(v)));
    }
    given.params[name] = std::move(t);
    return {&builder, AppendInput(graph, ParamKind::kInput, name, std::move(type), {}), 0, false};
  }

  Numbers Run(Value y) {
    EXPECT_TRUE(builder.status().ok()) << builder.status();
    graph.outputs = {{.name = "y", .type = y.type(), .value = y.id}};
    const absl::StatusOr<EvalResult> result = EvaluateGraph(program, graph, given, EvalMode::kExact);
    EXPECT_TRUE(result.ok()) << result.status();
    Numbers values;
    if (!result.ok()) return values;
    const HostTensor& t = result->outputs.at("y");
    for (int64_t i = 0; i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
    return values;
  }

  // The gradient of y with respect to operand `i`, given that of y (ones where none is given).
  Value Gradient(Value y, int i, Value g = {}) {
    if (!g.valid()) g = FullLike(y, 1);
    const Op op = graph.op(y.id);
    Vjp rule(builder, op, y.id);
    rule.g = g;
    op.def->vjp(rule);
    return rule.dx[static_cast<size_t>(i)];
  }
};

using Unary = Value (*)(Value);
Numbers Apply(Unary op, DType dtype, const Numbers& x) {
  Scene s;
  return s.Run(op(s.Input({dtype, {static_cast<int64_t>(x.size())}}, x)));
}
Numbers Slope(Unary op, DType dtype, const Numbers& x) {
  Scene s;
  return s.Run(s.Gradient(op(s.Input({dtype, {static_cast<int64_t>(x.size())}}, x)), 0));
}

// ---------------------------------------------------------------- activations

TEST(Activation, ReluKeepsNanAndHasNoSlopeAtZero) {
  const Unary relu = [](Value x) { return Relu(x); };
  const Numbers y = Apply(relu, F32, {-1, 0, 2, kInf, -kInf, kNaN});
  EXPECT_THAT(Numbers(y.begin(), y.end() - 1), ElementsAre(0, 0, 2, kInf, 0));
  EXPECT_TRUE(std::isnan(y.back()));
  EXPECT_THAT(Slope(relu, F32, {-1, 0, 2}), ElementsAre(0, 0, 1));
  const Unary leaky = [](Value x) { return LeakyRelu(x, 0.5); };
  EXPECT_THAT(Apply(leaky, F32, {-1, 0, 2}), ElementsAre(-0.5, 0, 2));
  EXPECT_THAT(Slope(leaky, F32, {-1, 0, 2}), ElementsAre(0.5, 0.5, 1));
  EXPECT_TRUE(std::isnan(Apply(leaky, F32, {kNaN})[0]));
}

TEST(Activation, FiniteForEveryFiniteArgument) {
  const std::pair<const char*, Unary> ops[] = {
      {"sigmoid", [](Value x) { return Sigmoid(x); }},
      {"gelu", [](Value x) { return Gelu(x); }},
      {"silu", [](Value x) { return Silu(x); }},
      {"softplus", [](Value x) { return Softplus(x); }},
      {"softmax", [](Value x) { return Softmax(x); }},
      {"log_softmax", [](Value x) { return LogSoftmax(x); }},
      {"reduce_log_sum_exp", [](Value x) { return ReduceLogSumExp(x, {-1}); }}};
  for (const auto& [name, op] : ops) {
    for (DType dtype : {F32, F16}) {
      const double big = dtype == F16 ? 3e4 : 1e38;
      const Numbers x = {-big, -1e4, -100, -20.6, -13.24, -1e-7, 0, 1e-7, 13.24, 20.6, 100, 1e4, big};
      for (double v : Apply(op, dtype, x)) EXPECT_TRUE(std::isfinite(v)) << name;
      for (double v : Slope(op, dtype, x)) EXPECT_TRUE(std::isfinite(v)) << name << " slope";
    }
  }
}

TEST(Activation, Limits) {
  EXPECT_THAT(Apply([](Value x) { return Gelu(x); }, F32, {-1e30, -13.24, 0, 20.6, 1e30}),
              Pointwise(DoubleNear(1e-6), Numbers{0, 0, 0, double(20.6f), double(1e30f)}));
  EXPECT_THAT(Slope([](Value x) { return Gelu(x); }, F32, {-1e30, 0, 1e30}), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Apply([](Value x) { return Sigmoid(x); }, F32, {-1e30, 0, 1e30}), ElementsAre(0, 0.5, 1));
  EXPECT_NEAR(Apply([](Value x) { return Sigmoid(x); }, F32, {-80})[0] / std::exp(-80), 1, 1e-5);
  EXPECT_THAT(Apply([](Value x) { return Softplus(x); }, F32, {-1e30, 1e30}), ElementsAre(0, double(1e30f)));
  EXPECT_THAT(Slope([](Value x) { return Softplus(x); }, F32, {-1e30, 0, 1e30}), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(Slope([](Value x) { return Silu(x); }, F32, {-1e30, 0, 1e30}), ElementsAre(0, 0.5, 1));
}

TEST(Softmax, LargeRows) {
  Scene s;
  const Numbers y = s.Run(Softmax(s.Input({F16, {1, 4096}}, {3})));
  EXPECT_THAT(y, testing::Each(1.0 / 4096));
  EXPECT_THAT(Apply([](Value x) { return Softmax(x); }, F32, {1e4, 1e4, -1e4}), ElementsAre(0.5, 0.5, 0));
  EXPECT_THAT(Apply([](Value x) { return Softmax(x); }, F32, {-kInf, 0, -kInf}), ElementsAre(0, 1, 0));
  for (double v : Apply([](Value x) { return Softmax(x); }, F32, {-kInf, -kInf})) EXPECT_TRUE(std::isnan(v));
  // 65,504 is the largest f16, and 70,000 equal logits have a sum beyond it.
  Scene many;
  EXPECT_THAT(many.Run(LogSumExp(many.Input({F16, {70000}}, {0})))[0], DoubleNear(std::log(70000), 4e-3));
  EXPECT_THAT(Apply([](Value x) { return LogSoftmax(x); }, F16, {65504, 0}), ElementsAre(0, -65504));
}

TEST(Softmax, InfiniteRows) {
  const Unary op = [](Value x) { return LogSumExp(x); };
  EXPECT_THAT(Apply(op, F32, {-kInf, -kInf}), ElementsAre(-kInf));
  EXPECT_THAT(Apply(op, F32, {kInf, 0}), ElementsAre(kInf));
  EXPECT_TRUE(std::isnan(Apply(op, F32, {kNaN, 0})[0]));
}

TEST(Softmax, EmptyRows) {
  Scene s;
  EXPECT_TRUE(s.Run(Softmax(s.Input({F32, {2, 0}}, {0}))).empty());
}

TEST(Dropout, GradientUsesTheSameMask) {
  Scene s;
  const Value x = s.Input({F32, {1000}}, {3}), key = s.Input({U32, {2}}, {1, 2});
  const Value y = Dropout(x, key, 5, 0.25), other = Dropout(x, key, 6, 0.25);
  const Numbers kept = s.Run(y), slope = s.Run(s.Gradient(y, 0)), elsewhere = s.Run(other);
  int zeros = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    zeros += kept[i] == 0;
    EXPECT_NEAR(kept[i], 3 * slope[i], 1e-6);
    EXPECT_TRUE(kept[i] == 0 || std::abs(kept[i] - 4) < 1e-6) << kept[i];
  }
  EXPECT_NEAR(zeros, 250, 50);
  EXPECT_NE(kept, elsewhere);
}

// ---------------------------------------------------------------- contractions

TEST(Contract, NarrowTypesAreSummedWide) {
  Scene s;
  // 4,096 products of 1 and 1: f16 alone would stop at 2,048.
  EXPECT_THAT(s.Run(Matmul(s.Input({F16, {1, 4096}}, {1}), s.Input({F16, {4096, 1}}, {1}))), ElementsAre(4096));
  // 300 * 300 overflows f16, the difference of two such products does not.
  EXPECT_THAT(s.Run(Matmul(s.Input({F16, {1, 2}}, {300, 300}), s.Input({F16, {2, 1}}, {300, -299}))), ElementsAre(300));
  // Integers wrap in the result, not on the way.
  EXPECT_THAT(s.Run(Matmul(s.Input({I8, {1, 2}}, {100, -100}), s.Input({I8, {2, 1}}, {100, 99}))), ElementsAre(100));
}

TEST(Contract, EmptySumIsZero) {
  Scene s;
  EXPECT_THAT(s.Run(Matmul(s.Input({F32, {2, 0}}, {0}), s.Input({F32, {0, 2}}, {0}))), ElementsAre(0, 0, 0, 0));
}

// A padding of one side only, a stride that skips the last column, a window larger than the input.
TEST(Contract, ConvolutionEdges) {
  Scene s;
  const Value x = s.Input({F32, {1, 1, 2, 3}}, {1, 2, 3, 4, 5, 6}), ones = s.Input({F32, {1, 1, 1, 2}}, {1});
  EXPECT_THAT(s.Run(Conv2d(x, ones, {.stride = {1, 2}})), ElementsAre(3, 9));
  EXPECT_THAT(s.Run(Conv2d(x, ones, {.stride = {1, 2}, .pad = {0, 1, 0, 0}})), ElementsAre(1, 5, 4, 11));
  const Value large = s.Input({F32, {1, 1, 4, 3}}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_THAT(s.Run(Conv2d(x, large, {.pad = {1, 0, 1, 0}})), ElementsAre(8));
  // The input that the stride leaves out has no gradient.
  const Value g = s.Input({F32, {1, 1, 2, 1}}, {10, 20});
  EXPECT_THAT(s.Run(Conv2dInputGrad(g, ones, {1, 1, 2, 3}, {.stride = {1, 2}})), ElementsAre(10, 10, 0, 20, 20, 0));
  EXPECT_THAT(s.Run(Conv2dWeightGrad(x, g, {1, 1, 1, 2}, {.stride = {1, 2}})), ElementsAre(90, 120));
}

// ---------------------------------------------------------------- pooling

TEST(Pool, TheFirstOfEqualsWins) {
  Scene s;
  const Value x = s.Input({F32, {1, 1, 2, 4}}, {1});
  const Value pooled = MaxPool2dWithIndex(x);
  EXPECT_THAT(s.Run(Get(pooled, 1)), ElementsAre(0, 0));
  EXPECT_THAT(s.Run(s.Gradient(pooled, 0, s.Input({F32, {1, 1, 1, 2}}, {5, 7}))), ElementsAre(5, 0, 7, 0, 0, 0, 0, 0));
}

TEST(Pool, PaddingNeverWins) {
  Scene s;
  const PoolOptions o{.window = {2, 2}, .pad = {1, 1, 0, 0}};
  const Value x = s.Input({F32, {1, 1, 1, 3}}, {-5, -6, -7});
  EXPECT_THAT(s.Run(MaxPool2d(x, o)), ElementsAre(-5, -6));
  EXPECT_THAT(s.Run(Get(MaxPool2dWithIndex(x, o), 1)), ElementsAre(3, 2));
  EXPECT_THAT(s.Run(MaxPool2d(s.Input({I8, {1, 1, 1, 3}}, {-5, -6, -128}), o)), ElementsAre(-5, -6));
  EXPECT_THAT(s.Run(AvgPool2d(x, o)), ElementsAre(-1.25, -3.25));
}

TEST(Pool, NanWins) {
  Scene s;
  const Value pooled = MaxPool2dWithIndex(s.Input({F32, {1, 1, 2, 2}}, {1, kNaN, 9, kNaN}));
  EXPECT_TRUE(std::isnan(s.Run(Get(pooled, 0))[0]));
  EXPECT_THAT(s.Run(Get(pooled, 1)), ElementsAre(1));
}

TEST(Pool, OverlappingWindowsAddUp) {
  Scene s;
  const PoolOptions o{.window = {1, 2}, .stride = {1, 1}};
  const Value x = s.Input({F32, {1, 1, 1, 4}}, {1, 9, 2, 3});
  const Value pooled = MaxPool2dWithIndex(x, o), g = s.Input({F32, {1, 1, 1, 3}}, {1, 10, 100});
  const Value slope = s.Gradient(pooled, 0, g);
  EXPECT_THAT(s.Run(slope), ElementsAre(0, 11, 0, 100));
  // The second order picks the winners again.
  EXPECT_THAT(s.Run(s.Gradient(slope, 0, x)), ElementsAre(9, 9, 3));
  EXPECT_THAT(s.Run(s.Gradient(AvgPool2d(x, o), 0, g)), ElementsAre(0.5, 5.5, 55, 50));
}

TEST(Pool, APositionBeyondTheWindowNamesNothing) {
  Scene s;
  const Value x = s.Input({F32, {1, 1, 1, 4}}, {1, 9, 2, 3}), index = s.Input({U8, {1, 1, 1, 2}}, {2, 255});
  const Attr window{"window", Ints{1, 2}}, input{"input", Ints{1, 1, 1, 4}};
  EXPECT_THAT(s.Run(Emit("max_pool_take", {x, index}, {window}, {})), ElementsAre(0, 0));
  const Value g = s.Input({F32, {1, 1, 1, 2}}, {5, 7});
  EXPECT_THAT(s.Run(Emit("max_pool_grad", {g, index}, {input, window}, {})), ElementsAre(0, 0, 0, 0));
}

// ---------------------------------------------------------------- gather

TEST(Gather, IndicesOutOfRangeAreClamped) {
  Scene s;
  const Value x = s.Input({F32, {4}}, {10, 11, 12, 13});
  EXPECT_THAT(s.Run(Take(x, s.Input({I32, {7}}, {0, 3, 4, 100, -1, -4, -100}))),
              ElementsAre(10, 13, 13, 13, 13, 10, 10));
  EXPECT_THAT(s.Run(Take(x, s.Input({U8, {2}}, {3, 255}))), ElementsAre(13, 13));
  EXPECT_THAT(s.Run(Take(x, s.Input({DType::kU64, {2}}, {2, 1e18}))), ElementsAre(12, 13));
  EXPECT_THAT(s.Run(Take(x, s.Input({DType::kI64, {2}}, {-1e18, 1e18}))), ElementsAre(10, 13));
}

TEST(Gather, GradientFollowsTheClamping) {
  Scene s;
  const Value x = s.Input({F32, {4}}, {0}), i = s.Input({I32, {6}}, {0, 0, 4, -1, -100, 2});
  const Value g = s.Input({F32, {6}}, {1, 2, 4, 8, 16, 32});
  EXPECT_THAT(s.Run(s.Gradient(Take(x, i), 0, g)), ElementsAre(19, 0, 32, 12));
  const Value u = s.Input({U32, {2}}, {4294967295.0, 1});
  EXPECT_THAT(s.Run(s.Gradient(Take(x, u), 0)), ElementsAre(0, 1, 0, 1));
}

TEST(Gather, GradientAlongAnyAxis) {
  Scene s;
  const Value x = s.Input({F32, {2, 3, 2}}, {0}), i = s.Input({I32, {1, 2}}, {2, 2});
  const Value g = s.Input({F32, {2, 1, 2, 2}}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_THAT(s.Run(s.Gradient(Take(x, i, 1), 0, g)), ElementsAre(0, 0, 0, 0, 4, 6, 0, 0, 0, 0, 12, 14));
}

TEST(Gather, NarrowIndicesReachLongAxes) {
  Scene s;
  Numbers ramp;
  for (int k = 0; k < 300; ++k) ramp.push_back(k);
  const Value x = s.Input({F32, {300}}, ramp);
  EXPECT_THAT(s.Run(Take(x, s.Input({I8, {3}}, {-1, -128, 127}))), ElementsAre(299, 172, 127));
  EXPECT_THAT(s.Run(Take(x, s.Input({U8, {1}}, {255}))), ElementsAre(255));
  const Numbers hot = s.Run(OneHot(s.Input({I8, {1}}, {44 - 256 + 128}), 300, F32));
  EXPECT_THAT(hot, testing::Each(0));  // -84 is not 300 - 84, and not 172 either
}

TEST(Gather, OneHotOfOtherIndicesIsZero) {
  Scene s;
  EXPECT_THAT(s.Run(OneHot(s.Input({I32, {4}}, {1, -1, 2, 0}), 2, F32)), ElementsAre(0, 1, 0, 0, 0, 0, 1, 0));
}

// ---------------------------------------------------------------- losses

TEST(Loss, LabelsThatAreNoClassCountForNothing) {
  Scene s;
  const Value logits = s.Input({F32, {4, 2}}, {0, 0, 1, 1, 5, 5, 7, 7});
  const Value loss = CrossEntropy(logits, s.Input({I32, {4}}, {1, 2, -1, 0}));
  EXPECT_THAT(s.Run(loss), ElementsAre(DoubleNear(2 * std::log(2) / 4, 1e-6)));
  EXPECT_THAT(s.Run(s.Gradient(loss, 0)), ElementsAre(0.125, -0.125, 0, 0, 0, 0, -0.125, 0.125));
  const Value unsigned_loss = CrossEntropy(logits, s.Input({U8, {4}}, {1, 2, 255, 0}));
  EXPECT_THAT(s.Run(unsigned_loss), ElementsAre(DoubleNear(2 * std::log(2) / 4, 1e-6)));
}

TEST(Loss, ExtremeLogits) {
  Scene s;
  const Value logits = s.Input({F32, {2, 3}}, {1e4, -1e4, 0, -kInf, 0, -kInf});
  const Value loss = CrossEntropy(logits, s.Input({I32, {2}}, {1, 1}));
  EXPECT_THAT(s.Run(loss), ElementsAre(1e4));
  EXPECT_THAT(s.Run(s.Gradient(loss, 0)), ElementsAre(0.5, -0.5, 0, 0, 0, 0));
}

TEST(Loss, MeanSquaredDifference) {
  Scene s;
  const Value x = s.Input({F16, {2}}, {300, 0}), y = s.Input({F16, {2}}, {0, 0});
  const Value loss = Mse(x, y);
  EXPECT_THAT(s.Run(loss), ElementsAre(44992));  // 45,000 in f16; the square of 300 overflows it
  EXPECT_THAT(s.Run(s.Gradient(loss, 0)), ElementsAre(300, 0));
  EXPECT_THAT(s.Run(s.Gradient(loss, 1)), ElementsAre(-300, 0));
}

}  // namespace
}  // namespace agc
