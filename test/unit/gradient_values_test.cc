// Gradients where they are awkward: broadcasting, ties, branches not taken, ends of a dtype's range, values used many
// times, nothing to sum over. Situations G1, G3 and G5 with what is like them; on the device: e2e_numerics_test.cc.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/gradients_match.h"
#include "test/unit/run_trace.h"

namespace agc::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

HostTensor Ramp(Dims dims, double from, double step) {
  HostTensor t = HostTensor::Zeros({DType::kF64, std::move(dims)});
  for (int64_t i = 0; i < t.type.elements(); ++i)
    t.set(i, Scalar::Float(DType::kF64, from + step * static_cast<double>(i)));
  return t;
}
HostTensor Filled(Dims dims, double value, DType dtype) {
  HostTensor t = HostTensor::Zeros({dtype, std::move(dims)});
  for (int64_t i = 0; i < t.type.elements(); ++i) t.set(i, Scalar::Of(dtype, value));
  return t;
}
// The gradient of the sum of f's elements at one f64 vector, or in another dtype.
std::vector<double> GradientAt(const std::function<Tensor(Tensor)>& f, const std::vector<double>& at,
                               DType dtype = DType::kF64) {
  const Dims dims = {static_cast<int64_t>(at.size())};
  return RunTrace(
             [&](Trace& t) {
               const Tensor x = t.Input("x", dtype, dims);
               t.Output("g", Grad(ReduceSum(f(x)), x));
             },
             {{"x", Numbers(dims, at, dtype)}})
      .at("g");
}

// ---------------------------------------------------------------- G1

TEST(GradientValues, G1BroadcastOperandsKeepTheirShape) {
  const std::pair<Dims, Dims> shapes[] = {{{2, 1}, {2, 3}}, {{2, 3}, {2, 1}},      {{2, 1, 3, 4}, {2, 1, 3, 1}},
                                          {{}, {4}},        {{3}, {2, 3}},         {{2, 1}, {1, 3}},
                                          {{1}, {}},        {{1, 1}, {3}},         {{0, 3}, {1, 3}},
                                          {{2, 1}, {2, 0}}, {{1, 2, 1}, {3, 1, 2}}};
  const std::pair<const char*, std::function<Tensor(Tensor, Tensor)>> ops[] = {
      {"add", [](Tensor a, Tensor b) { return a + b; }},
      {"sub", [](Tensor a, Tensor b) { return a - b; }},
      {"mul", [](Tensor a, Tensor b) { return a * b; }},
      {"div", [](Tensor a, Tensor b) { return a / b; }},
      {"pow", [](Tensor a, Tensor b) { return Pow(a, b); }},
      {"max", [](Tensor a, Tensor b) { return Maximum(a, b); }},
      {"where", [](Tensor a, Tensor b) { return Where(Less(a, b), a * 2.0, b); }}};
  for (const auto& [a, b] : shapes) {
    for (const auto& [name, op] : ops) {
      const auto f = [&op = op](TensorSpan x) { return op(x[0], x[1]); };
      EXPECT_TRUE(GradientsMatch(f, {Ramp(a, 0.5, 0.17), Ramp(b, 0.9, 0.23)}))
          << name << " " << a.size() << " " << b.size();
    }
  }
}

TEST(GradientValues, G1MatmulsOfEveryRank) {
  const std::pair<Dims, Dims> shapes[] = {{{2, 3}, {3, 4}}, {{1, 3}, {3, 1}}, {{2, 0}, {0, 3}}, {{2, 2, 3}, {2, 3, 2}}};
  for (const auto& [a, b] : shapes) {
    EXPECT_TRUE(
        GradientsMatch([](TensorSpan x) { return Matmul(x[0], x[1]); }, {Ramp(a, -0.5, 0.3), Ramp(b, 0.4, -0.2)}));
  }
}

// ---------------------------------------------------------------- G3

TEST(GradientValues, G3ExtremaOfManyEqualsShareInEveryFloat) {
  for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    const auto r = RunTrace(
        [&](Trace& t) {
          const Tensor x = t.Input("x", dtype, {70000});
          t.Output("max", Grad(ReduceMax(x), x));
          t.Output("min", Grad(ReduceMin(x), x));
        },
        {{"x", Filled({70000}, 3, dtype)}});
    const double error = dtype == DType::kF16 ? 3e-8 : dtype == DType::kBF16 ? 6e-8 : 1e-11;  // half a step at 1/70000
    EXPECT_THAT(r.at("max"), Each(testing::DoubleNear(1.0 / 70000, error))) << Name(dtype);
    EXPECT_THAT(r.at("min"), Each(testing::DoubleNear(1.0 / 70000, error))) << Name(dtype);
  }
}

TEST(GradientValues, G3TiesOfTwoAndKinks) {
  EXPECT_THAT(GradientAt([](Tensor x) { return Maximum(x, x); }, {1, -2}), ElementsAre(1, 1));
  EXPECT_THAT(GradientAt([](Tensor x) { return Maximum(x, x * 0.0); }, {0, 1, -1}), ElementsAre(0.5, 1, 0));
  EXPECT_THAT(GradientAt([](Tensor x) { return Minimum(x, x * 0.0); }, {0, 1, -1}), ElementsAre(0.5, 0, 1));
  EXPECT_THAT(GradientAt([](Tensor x) { return Relu(x); }, {0, 1, -1}), ElementsAre(0, 1, 0));
  EXPECT_THAT(GradientAt([](Tensor x) { return Abs(x); }, {0, 1, -1}), ElementsAre(0, 1, -1));
  EXPECT_THAT(GradientAt([](Tensor x) { return Clamp(x, -1, 1); }, {-1, 1, 0, 2}), ElementsAre(1, 1, 1, 0));
  // A tie between infinities, and rows with several ties.
  EXPECT_THAT(GradientAt([](Tensor x) { return ReduceMax(x); }, {kInf, kInf, 1, 2}), ElementsAre(0.5, 0.5, 0, 0));
  EXPECT_THAT(GradientAt(
                  [](Tensor x) {
                    return ReduceMax(Reshape(x, {2, 3}), {1});
                  },
                  {1, 1, 0, 2, 2, 2}),
              ElementsAre(0.5, 0.5, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3));
}

TEST(GradientValues, G3PoolingCreditsTheFirstWinner) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF16, {1, 1, 2, 4});
        t.Output("g", Grad(ReduceSum(MaxPool2d(x, {.window = {2, 2}})), x));
        t.Output("t", Jvp(MaxPool2d(x, {.window = {2, 2}}), x, Reshape(t.Iota(kF16, 8), {1, 1, 2, 4})));
      },
      {{"x", Filled({1, 1, 2, 4}, 1, kF16)}});
  EXPECT_THAT(r.at("g"), ElementsAre(1, 0, 1, 0, 0, 0, 0, 0));
  EXPECT_THAT(r.at("t"), ElementsAre(0, 2));  // the winners' tangents
}

// ---------------------------------------------------------------- G5

TEST(GradientValues, G5BranchesNotTakenPassNothing) {
  const auto where = [](Tensor x) { return Where(Less(x, FullLike(x, 1)), x, Sqrt(x)); };
  EXPECT_THAT(GradientAt(where, {0, -1, 4}), ElementsAre(1, 1, 0.25));
  EXPECT_THAT(GradientAt([](Tensor x) { return Where(Greater(x, FullLike(x, 0)), Log(x), x); }, {0, -1, 4}),
              ElementsAre(1, 1, 0.25));
  EXPECT_THAT(GradientAt([](Tensor x) { return Where(Equal(x, FullLike(x, 0)), x, Sin(x) / x); }, {0}), ElementsAre(1));
  EXPECT_THAT(GradientAt([](Tensor x) { return Where(Less(x, FullLike(x, 9)), x, Exp(x)); }, {1000, 1}),
              ElementsAre(kInf, 1));  // the branch that is taken does overflow
  EXPECT_THAT(GradientAt([](Tensor x) { return Where(Less(x, FullLike(x, 9)), Exp(x), x); }, {1000, 0}),
              ElementsAre(1, 1));
  // Two deep, and through the inverse square root of a norm at 0.
  EXPECT_THAT(GradientAt(
                  [](Tensor x) {
                    const Tensor zero = FullLike(x, 0);
                    return Where(Greater(x, zero), Sqrt(Log(1.0 + Where(Greater(x, zero), x, zero))), zero);
                  },
                  {0, -1}),
              ElementsAre(0, 0));
  EXPECT_THAT(GradientAt(
                  [](Tensor x) {
                    const Tensor n = Sqrt(ReduceSum(x * x, {0}, true)), zero = FullLike(n, 0);
                    return x * Broadcast(Where(Greater(n, zero), 1.0 / n, zero), {2});
                  },
                  {0, 0}),
              ElementsAre(0, 0));
}

TEST(GradientValues, G5SecondDerivativesOfBranchesNotTaken) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF64, {3}), one = t.Input("one", kF64, {3});
        const Tensor loss = ReduceSum(Where(Less(x, FullLike(x, 1)), x * x, Sqrt(x)));
        t.Output("forward", Hvp(loss, x, one));
        t.Output("reverse", Grad(ReduceSum(Grad(loss, x)), x));
      },
      {{"x", Numbers({3}, {0, -1, 4})}, {"one", Numbers({3}, {1, 1, 1})}});
  EXPECT_THAT(r.at("reverse"), ElementsAre(2, 2, -1.0 / 32));
  EXPECT_THAT(r.at("forward"), ElementsAre(2, 2, -1.0 / 32));
}

TEST(GradientValues, G5ActivationsAtZeroAndFarOut) {
  const auto second = [](const std::function<Tensor(Tensor)>& f, double at) {
    return GradientAt([&](Tensor x) { return Grad(ReduceSum(f(x)), x); }, {at})[0];
  };
  const auto softplus = [](Tensor x) { return Softplus(x); };
  EXPECT_EQ(GradientAt(softplus, {0})[0], 0.5);
  EXPECT_EQ(second(softplus, 0), 0.25);
  EXPECT_EQ(GradientAt([](Tensor x) { return Sigmoid(x); }, {0})[0], 0.25);
  const std::function<Tensor(Tensor)> all[] = {softplus,
                                               [](Tensor x) { return Sigmoid(x); },
                                               [](Tensor x) { return Silu(x); },
                                               [](Tensor x) { return Gelu(x); },
                                               [](Tensor x) { return Tanh(x); },
                                               [](Tensor x) { return LogSoftmax(x); },
                                               [](Tensor x) { return Square(Softmax(x)); }};
  for (const auto& f : all) {
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      for (double v : GradientAt(f, {0, -0.0, 60000, -60000, 20.6, -13.24, 100, 1e-7}, dtype)) {
        EXPECT_TRUE(std::isfinite(v)) << Name(dtype) << " " << v;
      }
    }
    for (double at : {0.0, 1e4, -1e4}) EXPECT_TRUE(std::isfinite(second(f, at))) << at;
  }
}

TEST(GradientValues, G5MaskedSoftmaxWithAHugeLogit) {
  for (double masked : {-1e30, -kInf}) {
    const auto r = RunTrace(
        [&](Trace& t) {
          const Tensor x = t.Input("x", kF32, {4}), mask = t.Input("mask", kBool, {4});
          const Tensor p = Softmax(Where(mask, x, FullLike(x, masked)));
          t.Output("p", p);
          t.Output("g", Grad(ReduceSum(p * p), x));
        },
        {{"x", Numbers({4}, {1, 1e38, 2, -3}, kF32)}, {"mask", Numbers({4}, {1, 0, 1, 1}, kBool)}});
    EXPECT_EQ(r.at("p")[1], 0);
    EXPECT_EQ(r.at("g")[1], 0);
    for (double v : r.at("g")) EXPECT_TRUE(std::isfinite(v));
  }
}

TEST(GradientValues, G5LogSoftmaxOf65536HalvesIsFinite) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF16, {65536}), y = LogSoftmax(x), w = t.Input("w", kF16, {65536});
        t.Output("y", y);
        t.Output("g", Grad(ReduceSum(y * w), x));
      },
      {{"x", Filled({65536}, 60000, kF16)}, {"w", Filled({65536}, 1, kF16)}});
  EXPECT_THAT(r.at("y"), Each(testing::DoubleNear(-std::log(65536.0), 4e-3)));
  EXPECT_THAT(r.at("g"), Each(testing::DoubleNear(0, 1e-2)));
}

// ---------------------------------------------------------------- sums of cotangents

// The sum of the cotangents is rounded once: added up in f16 it would stop at 2048, in bf16 at 256.
TEST(GradientValues, AValueUsedManyTimes) {
  for (const auto& [dtype, uses] :
       {std::pair{DType::kF32, 3000}, std::pair{DType::kF16, 3000}, std::pair{DType::kBF16, 512}}) {
    const auto r = RunTrace(
        [&, dtype = dtype, uses = uses](Trace& t) {
          const Tensor x = t.Input("x", dtype, {});
          Tensor sum;
          for (int k = 0; k < uses; ++k) sum = sum.valid() ? sum + x : x;
          t.Output("g", Grad(sum, x));
        },
        {{"x", Numbers({}, {1}, dtype)}});
    EXPECT_THAT(r.at("g"), ElementsAre(uses)) << Name(dtype);
  }
}

TEST(GradientValues, NothingToSumOver) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF32, {0, 3}), w = t.Input("w", kF32, {3}), m = t.Input("m", kF32, {3, 2});
        const Tensor loss = ReduceSum(x * w) + ReduceSum(Matmul(x, m)) + ReduceSum(Softmax(x));
        t.Output("dx", Grad(loss, x));
        t.Output("dw", Grad(loss, w));
        t.Output("dm", Grad(loss, m));
        t.Output("tx", ReduceSum(Jvp(x * w, w, w)));
      },
      {{"x", Numbers({0, 3}, {}, kF32)},
       {"w", Numbers({3}, {1, 2, 3}, kF32)},
       {"m", Numbers({3, 2}, {1, 2, 3, 4, 5, 6}, kF32)}});
  EXPECT_THAT(r.at("dx"), ElementsAre());
  EXPECT_THAT(r.at("dw"), ElementsAre(0, 0, 0));
  EXPECT_THAT(r.at("dm"), Each(0));
  EXPECT_THAT(r.at("tx"), ElementsAre(0));
}

TEST(GradientValues, IntegersPassNone) {
  const auto r = RunTrace(
      [](Trace& t) {
        const Tensor x = t.Input("x", kF32, {3}), i = t.Input("i", kI32, {2});
        const Tensor picked = Take(x, i), by_value = Take(x, Cast(x, kI32));
        t.Output("dx", Grad(ReduceSum(picked * picked), x));
        t.Output("dv", Grad(ReduceSum(by_value), x));
        t.Output("hot", Grad(ReduceSum(OneHot(Cast(x, kI32), 3, kF32)), x));
      },
      {{"x", Numbers({3}, {2, 1, 1}, kF32)}, {"i", Numbers({2}, {0, 0}, kI32)}});
  EXPECT_THAT(r.at("dx"), ElementsAre(8, 0, 0));
  EXPECT_THAT(r.at("dv"), ElementsAre(0, 2, 1));  // as an operand, not as an index
  EXPECT_THAT(r.at("hot"), ElementsAre(0, 0, 0));
}

TEST(GradientValues, ThirdOrder) {
  const auto third = [](const std::function<Tensor(Tensor)>& f, double at) {
    return GradientAt([&](Tensor x) { return Grad(ReduceSum(Grad(ReduceSum(f(x)), x)), x); }, {at})[0];
  };
  EXPECT_NEAR(third([](Tensor x) { return Sin(x); }, 0.7), -std::cos(0.7), 1e-14);
  EXPECT_NEAR(third([](Tensor x) { return Exp(x * 2.0); }, 0.3), 8 * std::exp(0.6), 1e-13);
  EXPECT_NEAR(third([](Tensor x) { return Log(x); }, 2), 0.25, 1e-14);
  EXPECT_NEAR(third([](Tensor x) { return Reciprocal(x); }, 2), -6.0 / 16, 1e-14);
  EXPECT_NEAR(third([](Tensor x) { return Pow(x, FullLike(x, 2.5)); }, 4), 2.5 * 1.5 * 0.5 / 2, 1e-13);
  const double s = 1 / (1 + std::exp(-0.4));
  EXPECT_NEAR(third([](Tensor x) { return Softplus(x); }, 0.4), s * (1 - s) * (1 - 2 * s), 1e-14);
  const double t = std::tanh(0.4);
  EXPECT_NEAR(third([](Tensor x) { return Tanh(x); }, 0.4), (1 - t * t) * (6 * t * t - 2), 1e-14);
}

}  // namespace
}  // namespace agc::test
