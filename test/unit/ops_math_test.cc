// Values and derivatives of the mathematical, bit and activation ops at the edges of their domains: zeros, poles, ties,
// infinities, NaN. Ordinary values are tested by the sweep over the op table, ordinary derivatives by autograd_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/build_math.h"
#include "ir/eval/graph_eval.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "test/unit/ops_math_tools.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;

constexpr DType F64 = DType::kF64, F32 = DType::kF32, F16 = DType::kF16, BF16 = DType::kBF16, I32 = DType::kI32,
                I16 = DType::kI16, I8 = DType::kI8, U8 = DType::kU8;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.141592653589793;

const auto Near = [](double v) { return DoubleNear(v, 1e-6 * std::max(1.0, std::abs(v))); };

// ---------------------------------------------------------------- values

TEST(MathValues, PolesAndDomains) {
  EXPECT_THAT(Of([](V x) { return Log(x[0]); }, F32, {{0, -0.0, -1, kInf}}), ElementsAre(-kInf, -kInf, IsNan(), kInf));
  EXPECT_THAT(Of([](V x) { return Log2(x[0]); }, F32, {{0, -1, 8, 0.125}}), ElementsAre(-kInf, IsNan(), 3, -3));
  EXPECT_THAT(Of([](V x) { return Log10(x[0]); }, F32, {{0, -1, 1000}}), ElementsAre(-kInf, IsNan(), 3));
  EXPECT_THAT(Of([](V x) { return Log1p(x[0]); }, F32, {{-1, -2, 1e-30, kInf}}),
              ElementsAre(-kInf, IsNan(), double(1e-30f), kInf));
  EXPECT_THAT(Of([](V x) { return Expm1(x[0]); }, F32, {{-kInf, 1e-30, 89}}), ElementsAre(-1, double(1e-30f), kInf));
  EXPECT_THAT(Of([](V x) { return Atanh(x[0]); }, F32, {{-1, 1, 1.5}}), ElementsAre(-kInf, kInf, IsNan()));
  EXPECT_THAT(Of([](V x) { return Acosh(x[0]); }, F32, {{1, 0.5, kInf}}), ElementsAre(0, IsNan(), kInf));
  EXPECT_THAT(Of([](V x) { return Asin(x[0]); }, F32, {{-1, 1, 1.5}}),
              ElementsAre(Near(-kPi / 2), Near(kPi / 2), IsNan()));
  EXPECT_THAT(Of([](V x) { return Acos(x[0]); }, F32, {{-1, 1, -1.5}}), ElementsAre(Near(kPi), 0, IsNan()));
  EXPECT_THAT(Of([](V x) { return Sin(x[0]); }, F32, {{kInf, -kInf}}), Each(IsNan()));
  EXPECT_THAT(Of([](V x) { return Cbrt(x[0]); }, F32, {{-8, 0, -kInf}}), ElementsAre(-2, 0, -kInf));
  EXPECT_THAT(Of([](V x) { return Erfc(x[0]); }, F32, {{-kInf, 9, kInf}}),
              ElementsAre(2, DoubleNear(4.137e-37, 1e-39), 0));
  EXPECT_THAT(Of([](V x) { return Logit(x[0]); }, F32, {{0, 1, 0.5, 2}}), ElementsAre(-kInf, kInf, 0, IsNan()));
  EXPECT_THAT(Of([](V x) { return Logit(x[0], 0.25); }, F32, {{0, 1, 2}}),
              ElementsAre(Near(-std::log(3)), Near(std::log(3)), Near(std::log(3))));
}

TEST(MathValues, AnglesOfIeee754) {
  const auto angle = [](V x) { return Atan2(x[0], x[1]); };
  EXPECT_THAT(Of(angle, F32, {{0, 0, -0.0, -0.0, 0, -0.0}, {0, -0.0, 0, -0.0, -1, -1}}),
              ElementsAre(0, Near(kPi), 0, Near(-kPi), Near(kPi), Near(-kPi)));
  EXPECT_THAT(Of(angle, F32, {{kInf, kInf, -kInf, 1, 1, kNaN}, {kInf, -kInf, 1, kInf, -kInf, 1}}),
              ElementsAre(Near(kPi / 4), Near(3 * kPi / 4), Near(-kPi / 2), 0, Near(kPi), IsNan()));
}

TEST(MathValues, HypotNeitherOverflowsNorVanishes) {
  const auto hypot = [](V x) { return Hypot(x[0], x[1]); };
  EXPECT_THAT(Of(hypot, F32, {{3e30, 3e-30, 0, kInf, kNaN, kNaN}, {4e30, 4e-30, 0, kNaN, -kInf, 1}}),
              ElementsAre(Near(double(5e30f)), DoubleNear(5e-30, 1e-36), 0, kInf, kInf, IsNan()));
  EXPECT_THAT(Of(hypot, F16, {{300}, {400}}), ElementsAre(500));
}

TEST(MathValues, RemainderOfEitherSign) {
  const auto mod = [](V x) { return Mod(x[0], x[1]); };
  EXPECT_THAT(Of([](V x) { return Rem(x[0], x[1]); }, F32, {{-7, 7, -7, 7}, {3, -3, -3, 3}}),
              ElementsAre(-1, 1, -1, 1));
  EXPECT_THAT(Of(mod, F32, {{-7, 7, -7, 7, -1, 1, 1}, {3, -3, -3, 3, kInf, kInf, 0}}),
              ElementsAre(2, -2, -1, 1, kInf, 1, IsNan()));
  EXPECT_THAT(Of(mod, I32, {{-7, 7, -7, 7, 5, -6}, {3, -3, -3, 3, 0, 3}}), ElementsAre(2, -2, -1, 1, 5, 0));
  EXPECT_THAT(Of(mod, I8, {{-128, 127, -128}, {3, -128, -1}}), ElementsAre(1, -1, 0));
  EXPECT_THAT(Of(mod, U8, {{250, 7}, {8, 0}}), ElementsAre(2, 7));
  const Numbers zero = Of(mod, F32, {{-6, 6}, {3, -3}});
  EXPECT_FALSE(std::signbit(zero[0]));
  EXPECT_TRUE(std::signbit(zero[1]));
}

// 1 / 0.1f rounds to 10, but 0.1f is more than a tenth.
TEST(MathValues, FloorOfTheExactQuotient) {
  const auto floor_div = [](V x) { return FloorDiv(x[0], x[1]); };
  EXPECT_THAT(Of(floor_div, F32, {{1, -1, -7, 7, 1, 0, -1, kInf}, {0.1, 0.1, 2, -2, 0, 0, kInf, 2}}),
              ElementsAre(9, -10, -4, -4, kInf, IsNan(), -1, IsNan()));
  EXPECT_THAT(Of(floor_div, F16, {{-7, 1}, {2, 0.1}}), ElementsAre(-4, 10));  // 0.1 in f16 is less than a tenth
  // The dividend less its remainder has more digits than the dtype.
  EXPECT_THAT(Of(floor_div, BF16, {{10, 149, 149, -149}, {0.10009765625, -1.5, 1.5, 1.5}}),
              ElementsAre(99, -100, 99, -100));
  const Numbers zeros = Of(floor_div, F32, {{-0.0, 0.0, -3, 3}, {2, -2, -5, 5}});
  EXPECT_THAT(zeros, ElementsAre(0, 0, 0, 0));
  EXPECT_TRUE(std::signbit(zeros[0]) && std::signbit(zeros[1]) && !std::signbit(zeros[2]) && !std::signbit(zeros[3]));
}

TEST(MathValues, FmaxAndFminIgnoreNan) {
  const std::vector<Numbers> x = {{kNaN, 1, kNaN, 1}, {1, kNaN, kNaN, 2}};
  EXPECT_THAT(Of([](V v) { return Fmax(v[0], v[1]); }, F32, x), ElementsAre(1, 1, IsNan(), 2));
  EXPECT_THAT(Of([](V v) { return Fmin(v[0], v[1]); }, F32, x), ElementsAre(1, 1, IsNan(), 1));
  EXPECT_THAT(Of([](V v) { return Fmax(v[0], v[1]); }, I8, {{-128, 5}, {127, -5}}), ElementsAre(127, 5));
  const Derivatives d = DerivativesOf([](V v) { return Fmax(v[0], v[1]); }, F32, {{kNaN, 1, 2, 3}, {1, kNaN, 2, 4}});
  EXPECT_THAT(d.at("d0"), ElementsAre(0, 1, 0.5, 0));
  EXPECT_THAT(d.at("d1"), ElementsAre(1, 0, 0.5, 1));
}

TEST(MathValues, ClassesAndBits) {
  const Numbers x = {kInf, -kInf, kNaN, 0, -0.0, 3e38};
  EXPECT_THAT(Of([](V v) { return IsInf(v[0]); }, F32, {x}), ElementsAre(1, 1, 0, 0, 0, 0));
  EXPECT_THAT(Of([](V v) { return IsFinite(v[0]); }, F32, {x}), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(Of([](V v) { return SignBit(v[0]); }, F32, {{kInf, -kInf, 0, -0.0}}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Of(
                  [](V v) {
                    return Emit("isinf", {v[0]}, {Attr{"negative", false}}, {});
                  },
                  F32, {x}),
              ElementsAre(1, 0, 0, 0, 0, 0));
  EXPECT_THAT(Of([](V v) { return BitNot(v[0]); }, U8, {{0, 5}}), ElementsAre(255, 250));
  EXPECT_THAT(Of([](V v) { return BitNot(v[0]); }, I16, {{0, -1}}), ElementsAre(-1, 0));
  EXPECT_THAT(Of([](V v) { return PopulationCount(v[0]); }, I8, {{-1, -128, 7}}), ElementsAre(8, 1, 3));
  EXPECT_THAT(Of([](V v) { return PopulationCount(v[0]); }, DType::kU64, {{4294967295.0}}), ElementsAre(32));
}

TEST(MathValues, NanToNumKnowsTheDtype) {
  const Numbers x = {kNaN, kInf, -kInf, 1};
  const auto plain = [](V v) { return NanToNum(v[0]); };
  EXPECT_THAT(Of(plain, F16, {x}), ElementsAre(0, 65504, -65504, 1));
  EXPECT_THAT(Of(plain, BF16, {x}), ElementsAre(0, std::ldexp(255, 120), -std::ldexp(255, 120), 1));
  EXPECT_THAT(Of(plain, F64, {x}), ElementsAre(0, 1.7976931348623157e308, -1.7976931348623157e308, 1));
  EXPECT_THAT(Of([](V v) { return NanToNum(v[0], {.nan = 2, .posinf = 3, .neginf = -4}); }, F32, {x}),
              ElementsAre(2, 3, -4, 1));
}

TEST(MathValues, ClampWithOneBound) {
  EXPECT_THAT(Of([](V x) { return ClampMin(x[0], -0.5); }, F32, {{-1, 3, kNaN}}), ElementsAre(-0.5, 3, IsNan()));
  EXPECT_THAT(Of([](V x) { return ClampMax(x[0], 0); }, I8, {{-128, 127}}), ElementsAre(-128, 0));
  EXPECT_THAT(Of([](V x) { return Clamp(x[0], -100, 100); }, I16, {{-32768, 32767, -100}}),
              ElementsAre(-100, 100, -100));
}

TEST(MathValues, LerpIsExactAtBothEnds) {
  EXPECT_THAT(Of([](V x) { return Lerp(x[0], x[1], x[2]); }, F32, {{0.1, 0.1, 1e8}, {0.7, 0.7, 1}, {0, 1, 1}}),
              ElementsAre(double(0.1f), double(0.7f), 1));
}

TEST(MathValues, ExtremesOfLogarithmicSums) {
  EXPECT_THAT(Of([](V x) { return LogAddExp(x[0], x[1]); }, F32,
                 {{-kInf, kInf, 1e30, -kInf, kNaN}, {-kInf, kInf, -1e30, 5, 1}}),
              ElementsAre(-kInf, kInf, double(1e30f), 5, IsNan()));
  EXPECT_THAT(Of([](V x) { return Xlogy(x[0], x[1]); }, F32, {{0, 0, 0, 1}, {0, -1, kNaN, 0}}),
              ElementsAre(0, 0, IsNan(), -kInf));
}

// ---------------------------------------------------------------- activations

TEST(ActivationValues, GeluHasBothForms) {
  const Numbers x = {-5, -13.24, 20.6, 1, -1e30, 1e30};
  EXPECT_THAT(Of([](V v) { return Gelu(v[0]); }, F32, {x}),
              ElementsAre(DoubleNear(-1.4332578e-6, 1e-12), DoubleNear(0, 1e-36), Near(20.6f), Near(0.841344746), 0,
                          Near(double(1e30f))));
  EXPECT_THAT(Of([](V v) { return GeluTanh(v[0]); }, F32, {{1, -13.24, 20.6}}),
              ElementsAre(Near(0.841191990), 0, Near(20.6f)));
}

TEST(ActivationValues, KinksBelongToTheFlatSide) {
  const auto slope = [](Value (*f)(Value), const Numbers& x) {
    return DerivativesOf([f](V v) { return f(v[0]); }, F32, {x}).at("d0");
  };
  EXPECT_THAT(slope([](Value x) { return Relu6(x); }, {0, 3, 6}), ElementsAre(0, 1, 0));
  EXPECT_THAT(slope([](Value x) { return HardTanh(x); }, {-1, 0, 1}), ElementsAre(0, 1, 0));
  EXPECT_THAT(slope([](Value x) { return HardSigmoid(x); }, {-3, 0, 3}), ElementsAre(0, Near(1.0 / 6), 0));
  EXPECT_THAT(slope([](Value x) { return HardSwish(x); }, {-3, 0, 3}), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(slope([](Value x) { return HardShrink(x); }, {-0.5, 0, 0.5, 1}), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(slope([](Value x) { return ThresholdedRelu(x); }, {1, 2}), ElementsAre(0, 1));
  EXPECT_THAT(slope([](Value x) { return Elu(x); }, {0, 1}), ElementsAre(1, 1));
  EXPECT_THAT(slope([](Value x) { return Prelu(x, 0.25); }, {-1, 0, 1}), ElementsAre(0.25, 0.25, 1));
}

TEST(ActivationValues, NanStaysNan) {
  for (absl::Span<const OpDef> table : {kLinearActivationOps, kSmoothActivationOps}) {
    for (const OpDef& op : table) {
      if (op.name == "glu") continue;
      const Numbers y =
          Of([&](V x) { return Emit(op.name, std::vector<Value>(op.arity.min, x[0]), {}, {}); }, F32, {{kNaN}});
      EXPECT_THAT(y, Each(IsNan())) << op.name;
    }
  }
}

TEST(ActivationValues, Shrinking) {
  const Numbers x = {-2, -0.5, 0.25, 0.5, 2};
  EXPECT_THAT(Of([](V v) { return HardShrink(v[0]); }, F32, {x}), ElementsAre(-2, 0, 0, 0, 2));
  EXPECT_THAT(Of([](V v) { return SoftShrink(v[0]); }, F32, {x}), ElementsAre(-1.5, 0, 0, 0, 1.5));
}

// ---------------------------------------------------------------- derivatives

// Wherever the value is finite, the first and second derivative is a number or infinite, but not NaN.
const Numbers kPoints = {0, -0.0, 1e-7, -1e-7, 0.25,  -0.25,  0.5,  -0.5,  0.75, 1,    -1,  2,   -2,
                         3, -3,   6,    -6,    13.24, -13.24, 20.6, -20.6, 100,  -100, 1e4, -1e4};

void ExpectNoNan(const OpDef& op, DType dtype) {
  std::vector<Numbers> x(op.arity.min);
  const double scale = dtype == F16 ? 1e3 : 1;
  for (double a : kPoints) {
    for (double b : op.arity.min > 1 ? kPoints : Numbers{0}) {
      x[0].push_back(std::abs(a) < 1e-6 ? a * scale : a);
      if (x.size() > 1) x[1].push_back(std::abs(b) < 1e-6 ? b * scale : b);
    }
  }
  if (op.arity.min == 1) x[0].insert(x[0].end(), {dtype == F16 ? 6e4 : 1e30, dtype == F16 ? -6e4 : -1e30});
  const std::vector<Attr> attrs = *ParseAttrs(op, op.sample.attrs);
  const Derivatives d = DerivativesOf([&](V v) { return Emit(op.name, v, attrs, {}); }, dtype, x);
  for (size_t i = 0; i < x[0].size(); ++i) {
    if (!std::isfinite(d.at("y")[i])) continue;
    for (const auto& [name, values] : d) {
      EXPECT_FALSE(std::isnan(values[i])) << op.name << " of " << Name(dtype) << " " << name << " at " << x[0][i]
                                          << ", " << (x.size() > 1 ? x[1][i] : 0);
    }
  }
}

TEST(MathDerivatives, NoNanWhereTheValueIsFinite) {
  int rows = 0;
  for (absl::Span<const OpDef> table :
       {kElementwiseOps, kMathOps, kTrigOps, kActivationOps, kLinearActivationOps, kSmoothActivationOps}) {
    for (const OpDef& op : table) {
      const bool elementwise = op.infer == SameFloat || op.infer == SameNumber;
      if (!elementwise || op.vjp == nullptr || op.arity.min > 2) continue;
      for (DType dtype : {F64, F32, F16}) ExpectNoNan(op, dtype);
      ++rows;
    }
  }
  EXPECT_GE(rows, 60);
}

TEST(MathDerivatives, AtAwkwardPoints) {
  const auto of = [](auto f, std::vector<Numbers> x) { return DerivativesOf(f, F32, x); };
  const Derivatives abs = of([](V x) { return Abs(x[0]); }, {{0}});
  EXPECT_THAT(abs.at("d0"), ElementsAre(0));
  EXPECT_THAT(abs.at("d00"), ElementsAre(0));
  const Derivatives root = of([](V x) { return Where(Less(x[0], FullLike(x[0], 1)), x[0], Sqrt(x[0])); }, {{0, 4}});
  EXPECT_THAT(root.at("d0"), ElementsAre(1, 0.25));
  EXPECT_THAT(root.at("d00"), ElementsAre(0, -0.03125));
  const Derivatives elu = of([](V x) { return Elu(x[0]); }, {{0, -1, 1}});
  EXPECT_THAT(elu.at("d0"), ElementsAre(1, Near(std::exp(-1)), 1));
  EXPECT_THAT(elu.at("d00"), ElementsAre(1, Near(std::exp(-1)), 0));
  const Derivatives pow = of([](V x) { return Pow(x[0], x[1]); }, {{0, 0, 0, 0}, {0, 1, 2, 3}});
  EXPECT_THAT(pow.at("d0"), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(pow.at("d1"), Each(0));
  EXPECT_THAT(pow.at("d00"), ElementsAre(0, 0, 2, 0));
  for (const auto& f : {+[](V x) { return Hypot(x[0], x[1]); }, +[](V x) { return Atan2(x[0], x[1]); }}) {
    for (const auto& [name, values] : of(f, {{0}, {0}})) EXPECT_THAT(values, ElementsAre(0)) << name;
  }
  EXPECT_THAT(of([](V x) { return Log1p(x[0]); }, {{-1}}).at("d0"), ElementsAre(kInf));
  const Derivatives logit = of([](V x) { return Logit(x[0]); }, {{0, 1, 0.5}});
  EXPECT_THAT(logit.at("d0"), ElementsAre(kInf, kInf, 4));
  EXPECT_THAT(logit.at("d00"), ElementsAre(-kInf, kInf, 0));
  const Derivatives softplus = of([](V x) { return Softplus(x[0]); }, {{-1e30, 0, 1e30}});
  EXPECT_THAT(softplus.at("d0"), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(softplus.at("d00"), ElementsAre(0, 0.25, 0));
  EXPECT_THAT(of([](V x) { return Asin(x[0]); }, {{1}}).at("d00"), ElementsAre(kInf));
  EXPECT_THAT(of([](V x) { return Acosh(x[0]); }, {{1}}).at("d00"), ElementsAre(-kInf));
}

// A branch that `select` did not take sends a cotangent of 0 to an op whose derivative has a pole or is NaN there.
TEST(MathDerivatives, DeadBranchesStaySilent) {
  const std::pair<const char*, double> poles[] = {
      {"sqrt", 0},     {"log", 0},    {"log2", -1},  {"log10", 0}, {"log1p", -1},     {"log1p", -2},
      {"asin", 1},     {"acos", -1},  {"acosh", 1},  {"acosh", 0}, {"atanh", 1},      {"atanh", 2},
      {"cbrt", 0},     {"logit", 0},  {"logit", 1},  {"rsqrt", 0}, {"reciprocal", 0}, {"exp", 1000},
      {"expm1", 1000}, {"exp2", 1e4}, {"sinh", 1e4}, {"cosh", 1e4}};
  for (const auto& pole : poles) {
    const auto masked = [&](V x) {
      const Value dead = Equal(x[0], FullLike(x[0], pole.second));
      return Where(dead, x[0] * 3.0, Emit(pole.first, {x[0]}, {}, {}));
    };
    const Derivatives d = DerivativesOf(masked, F32, {{pole.second}});
    EXPECT_THAT(d.at("d0"), ElementsAre(3)) << pole.first;
    EXPECT_THAT(d.at("d00"), ElementsAre(0)) << pole.first;
  }
}

}  // namespace
}  // namespace agc
