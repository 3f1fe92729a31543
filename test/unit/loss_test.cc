// Losses at the edges of their domains: extreme logits, certain predictions, ignored labels, kinks, empty operands.
// Ordinary values are tested by the sweep and by test/ops/variants_test.py.
#include <cmath>
#include <limits>

#include "absl/functional/function_ref.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/unit/value_scene.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using Numbers = std::vector<double>;

constexpr DType F16 = DType::kF16, F32 = DType::kF32, I32 = DType::kI32, U8 = DType::kU8;
constexpr double kInf = std::numeric_limits<double>::infinity();

// Every path of `steps` frames over the classes, with the labels that it collapses to: repeats merged, blanks dropped.
void ForEachPath(int steps, int classes, int blank,
                 absl::FunctionRef<void(const std::vector<int>&, const Numbers&)> f) {
  std::vector<int> path(static_cast<size_t>(steps), 0);
  for (size_t at = 0; at < path.size();) {
    Numbers labels;
    for (size_t t = 0; t < path.size(); ++t) {
      if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
    }
    f(path, labels);
    for (at = 0; at < path.size() && ++path[at] == classes; ++at) path[at] = 0;
  }
}

TEST(Ctc, EqualsTheSumOverAllAlignments) {
  constexpr int kSteps = 5, kClasses = 3;
  const std::vector<Numbers> targets = {{}, {1}, {2}, {1, 2}, {1, 1}, {2, 1, 2}, {1, 2, 2, 1}};
  for (int blank : {0, 2}) {
    for (const Numbers& target : targets) {
      for (int steps = 0; steps <= kSteps; ++steps) {
        ValueScene s;
        Numbers scores, padded = target;
        for (int k = 0; k < kSteps * kClasses; ++k) scores.push_back(std::sin(7.0 * k) - 1);
        for (double& label : padded) label = blank == 2 ? label - 1 : label;
        const Numbers wanted = padded;
        padded.resize(4, 1);
        const Value x = s.Input({DType::kF64, {kSteps, 1, kClasses}}, scores), labels = s.Input({I32, {1, 4}}, padded);
        const Value loss = Ctc(x, labels, s.Input({I32, {1}}, {static_cast<double>(steps)}),
                               s.Input({I32, {1}}, {static_cast<double>(target.size())}),
                               {.blank = blank, .reduction = Reduction::kSum});
        double sum = 0;
        Numbers slope(scores.size(), 0);
        ForEachPath(steps, kClasses, blank, [&](const std::vector<int>& path, const Numbers& collapsed) {
          if (collapsed != wanted) return;
          double p = 0;
          for (int t = 0; t < steps; ++t) p += scores[static_cast<size_t>(t * kClasses + path[t])];
          sum += std::exp(p);
          for (int t = 0; t < steps; ++t) slope[static_cast<size_t>(t * kClasses + path[t])] -= std::exp(p);
        });
        if (steps == 0 && target.empty()) sum = 1;  // the empty path
        const Numbers got = s.Run(loss), d = s.Slope(loss, x);
        EXPECT_THAT(got, ElementsAre(sum > 0 ? DoubleNear(-std::log(sum), 1e-9) : testing::DoubleEq(kInf)));
        for (size_t k = 0; k < d.size(); ++k) EXPECT_NEAR(d[k], sum > 0 ? slope[k] / sum : 0, 1e-9) << k;
      }
    }
  }
}

// Labels that do not fit into the steps, and classes that cannot be.
TEST(Ctc, ImpossibleLabelsCostInfinityOrNothing) {
  ValueScene s;
  const Value x = s.Input({F32, {2, 2, 3}}, {-1, -1, -1, -kInf, -1, -1, -1, -1, -1, -kInf, -kInf, -1});
  const Value labels = s.Input({I32, {2, 2}}, {1, 1, 2, 1}), steps = s.Input({I32, {2}}, {2});
  const Value each = Ctc(x, labels, steps, steps, {.reduction = Reduction::kNone});
  EXPECT_THAT(s.Run(each), ElementsAre(kInf, kInf));
  const Value mean = Ctc(x, labels, steps, s.Input({I32, {2}}, {1, 1}), {.zero_infinity = true});
  const Value zero = Ctc(x, labels, steps, steps, {.zero_infinity = true});
  EXPECT_THAT(s.Run(zero), ElementsAre(0));
  EXPECT_THAT(s.Slope(zero, x), Each(0));
  // 1 in two frames: 11, 01 and 10; 2 in two frames, the last of which can be 2 alone: 22.
  EXPECT_THAT(s.Run(mean), ElementsAre(DoubleNear(((2 - std::log(3)) + 2) / 2, 1e-6)));
  for (double v : s.Slope(mean, x)) EXPECT_TRUE(std::isfinite(v));
}

TEST(CrossEntropy, IgnoredRowsCountForNothing) {
  ValueScene s;
  const Value logits = s.Input({F32, {3, 2}}, {0, 0, 5, 5, 1, 1}), labels = s.Input({I32, {3}}, {1, -100, 0});
  const Value loss = CrossEntropy(logits, labels, {.ignore_index = -100});
  EXPECT_THAT(s.Run(loss), ElementsAre(DoubleNear(std::log(2), 1e-6)));
  EXPECT_THAT(s.Slope(loss, logits), ElementsAre(0.25, -0.25, 0, 0, -0.25, 0.25));
  const Value each = CrossEntropy(logits, labels, {.ignore_index = -100, .reduction = Reduction::kNone});
  EXPECT_THAT(s.Run(each), ElementsAre(DoubleNear(std::log(2), 1e-6), 0, DoubleNear(std::log(2), 1e-6)));
}

TEST(CrossEntropy, NothingLeftIsZero) {
  ValueScene s;
  const Value logits = s.Input({F32, {2, 2}}, {0, 1, 5, 5}), labels = s.Input({I32, {2}}, {7, 7});
  const Value weight = s.Input({F32, {2}}, {0});
  for (const CrossEntropyOptions& o :
       {CrossEntropyOptions{.ignore_index = 7}, CrossEntropyOptions{.weight = weight},
        CrossEntropyOptions{.weight = weight, .label_smoothing = 0.5, .ignore_index = 7}}) {
    const Value loss = CrossEntropy(logits, labels, o);
    EXPECT_THAT(s.Run(loss), ElementsAre(0));
    EXPECT_THAT(s.Slope(loss, logits), Each(0));
    EXPECT_THAT(s.Run(Nll(logits, labels, {.weight = o.weight, .ignore_index = o.ignore_index})), ElementsAre(0));
  }
}

// A label that the dtype cannot hold ignores nothing.
TEST(CrossEntropy, AnIgnoredLabelOutOfRange) {
  ValueScene s;
  const Value logits = s.Input({F32, {1, 2}}, {0, 0}), labels = s.Input({U8, {1}}, {0});
  EXPECT_THAT(s.Run(CrossEntropy(logits, labels, {.ignore_index = -100})), ElementsAre(DoubleNear(std::log(2), 1e-6)));
}

TEST(CrossEntropy, ExtremeLogitsOfEveryForm) {
  ValueScene s;
  const Value logits = s.Input({F32, {2, 3}}, {1e4, -1e4, 0, -kInf, 0, -kInf}), labels = s.Input({I32, {2}}, {1, 1});
  const Value weight = s.Input({F32, {3}}, {1, 2, 1}), hot = s.Input({F32, {2, 3}}, {0, 1, 0, 0, 1, 0});
  EXPECT_THAT(s.Run(CrossEntropy(logits, labels, {.weight = weight})), ElementsAre(1e4));
  EXPECT_THAT(s.Slope(CrossEntropy(logits, labels, {.weight = weight}), logits), ElementsAre(0.5, -0.5, 0, 0, 0, 0));
  EXPECT_THAT(s.Run(CrossEntropy(logits, hot)), ElementsAre(1e4));
  EXPECT_THAT(s.Slope(CrossEntropy(logits, hot), logits), ElementsAre(0.5, -0.5, 0, 0, 0, 0));
  // Sums of f16 losses leave its range on the way, not in the mean.
  const Value half = s.Input({F16, {4, 2}}, {30000, 0, 30000, 0, 30000, 0, 30000, 0}), ones = s.Input({I32, {4}}, {1});
  EXPECT_THAT(s.Run(CrossEntropy(half, ones, {.label_smoothing = 0.5})), ElementsAre(22496));
}

// d loss / d weight and d loss / d probabilities against finite differences: the table's sample has neither.
TEST(CrossEntropy, GradientsOfWeightsAndProbabilities) {
  for (Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
    for (bool soft : {false, true}) {
      const Numbers logits = {0.3, -0.2, 1, 0.5, 0.1, -0.7, 0.9, 0.2, -0.4},
                    p = {0.2, 0.3, 0.5, 0.1, 0.1, 0.8, 0, 1, 0};
      Numbers weights = {0.5, 1.5, 0.75};
      const auto loss = [&](ValueScene& s, Value& weight, Value& target) {
        const Value x = s.Input({DType::kF64, {3, 3}}, logits);
        weight = s.Input({DType::kF64, {3}}, weights);
        target = soft ? s.Input({DType::kF64, {3, 3}}, p) : s.Input({I32, {3}}, {2, 0, 5});
        return ReduceSum(
            Square(CrossEntropy(x, target, {.weight = weight, .label_smoothing = 0.25, .reduction = reduction})));
      };
      ValueScene s;
      Value weight, target;
      const Value y = loss(s, weight, target);
      const Numbers slope = s.Slope(y, weight);
      for (size_t k = 0; k < 3; ++k) {
        double f[2];
        for (int side : {0, 1}) {
          weights[k] += side == 0 ? -1e-5 : 2e-5;
          ValueScene moved;
          Value w, t;
          f[side] = moved.Run(loss(moved, w, t))[0];
        }
        weights[k] -= 1e-5;
        EXPECT_NEAR(slope[k], (f[1] - f[0]) / 2e-5, 1e-7) << k;
      }
      if (!soft) continue;
      const Numbers by_p = s.Slope(y, target);
      for (size_t k = 0; k < 9; ++k) EXPECT_TRUE(std::isfinite(by_p[k]));
    }
  }
}

TEST(Binary, LogitsOfAnySizeAreFinite) {
  for (DType dtype : {F32, F16}) {
    ValueScene s;
    const double big = dtype == F16 ? 6e4 : 1e38;
    const Value x = s.Input({dtype, {6}}, {-big, -100, -20, 20, 100, big}),
                t = s.Input({dtype, {6}}, {0, 1, 0, 1, 0, 1});
    for (const Value loss : {BceWithLogits(x, t, {}, Reduction::kNone), SigmoidFocal(x, t, 0.25, 2, Reduction::kNone),
                             SoftMargin(x, t * 2.0 - 1.0, Reduction::kNone)}) {
      for (double v : s.Run(loss)) EXPECT_TRUE(std::isfinite(v));
      for (double v : s.Slope(loss, x)) EXPECT_TRUE(std::isfinite(v));
    }
  }
  ValueScene s;
  const Value x = s.Input({F32, {3}}, {-20, 100, 20}), t = s.Input({F32, {3}}, {0, 0, 1});
  const Numbers y = s.Run(BceWithLogits(x, t, {}, Reduction::kNone));
  EXPECT_NEAR(y[0] / std::exp(-20), 1, 1e-4);  // small losses keep their digits
  EXPECT_EQ(y[1], 100);
  EXPECT_NEAR(y[2] / std::exp(-20), 1, 1e-4);
}

TEST(Binary, CertainPredictionsCostAHundred) {
  ValueScene s;
  const Value p = s.Input({F32, {4}}, {0, 1, 0, 1}), t = s.Input({F32, {4}}, {0, 1, 1, 0});
  const Value loss = Bce(p, t, Reduction::kNone);
  EXPECT_THAT(s.Run(loss), ElementsAre(0, 0, 100, 100));
  const Numbers slope = s.Slope(loss, p);
  EXPECT_EQ(slope[0], 0);
  EXPECT_EQ(slope[1], 0);
  EXPECT_LT(slope[2], -1e11);
  EXPECT_GT(slope[3], 1e11);
  for (double v : slope) EXPECT_TRUE(std::isfinite(v));
}

TEST(Losses, ZeroProbabilitiesAndEqualRows) {
  ValueScene s;
  const Value q = s.Input({F32, {3}}, {-kInf, -1, -2}), p = s.Input({F32, {3}}, {0, 0.5, 0.5});
  const Value kl = KlDiv(q, p, false, Reduction::kSum);
  EXPECT_NEAR(s.Run(kl)[0], 0.5 * (std::log(0.5) + 1) + 0.5 * (std::log(0.5) + 2), 1e-6);
  EXPECT_THAT(s.Slope(kl, q), ElementsAre(0, -0.5, -0.5));
  const Value a = s.Input({F32, {2, 2}}, {0, 0, 1, 1}), one = s.Input({F32, {2}}, {1});
  const Value cosine = CosineEmbedding(a, a, one);  // a row of zeros has similarity 0
  EXPECT_NEAR(s.Run(cosine)[0], 0.5, 1e-6);
  for (double v : s.Slope(cosine, a)) EXPECT_TRUE(std::isfinite(v));
  const Value triplet = TripletMargin(a, a, a, {.epsilon = 0});  // distances of 0 have no slope
  EXPECT_THAT(s.Run(triplet), ElementsAre(1));
  EXPECT_THAT(s.Slope(triplet, a), Each(0));
}

TEST(Losses, KinksHaveTheSlopeThatIsDocumented) {
  ValueScene s;
  const Value zero = s.Input({F32, {1}}, {0}), one = s.Input({F32, {1}}, {1});
  EXPECT_THAT(s.Slope(Mae(zero, zero), zero), ElementsAre(0));
  EXPECT_THAT(s.Slope(SmoothL1(zero, zero, 0), zero), ElementsAre(0));
  EXPECT_THAT(s.Slope(Huber(one, zero), one), ElementsAre(1));
  EXPECT_THAT(s.Slope(Hinge(one, one), one), ElementsAre(0));
}

TEST(Losses, ReductionsOfNothing) {
  ValueScene s;
  const Value none = s.Input({F32, {0, 3}}, {0});
  EXPECT_THAT(s.Run(Mae(none, none, Reduction::kSum)), ElementsAre(0));
  EXPECT_TRUE(s.Run(Huber(none, none, 1, Reduction::kNone)).empty());
  EXPECT_THAT(s.Run(CrossEntropy(none, s.Input({I32, {0}}, {0}), {.reduction = Reduction::kSum})), ElementsAre(0));
  Mae(none, none);
  EXPECT_NE(s.builder.status().message().find("mae: operands are f32[0,3], which has no mean"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace agc
