// Random draws: moments, frequencies and independence with fixed seeds, keys, and what is made of them. Bounds are
// about five standard errors of the statistic, so that another seed would pass too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/init.h"
#include "ir/eval/plan_eval.h"
#include "passes/manager.h"
#include "test/unit/index_scene.h"

namespace agc {
namespace {

using Numbers = std::vector<double>;
constexpr int64_t kN = 20000;

Value Key(IndexScene& s, double word = 7) { return s.Input({DType::kU32, {2}}, {word, 11}); }

double Mean(const Numbers& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}
double Moment(const Numbers& x, int order) {
  Numbers powers;
  const double mean = Mean(x);
  for (double v : x) powers.push_back(std::pow(v - mean, order));
  return Mean(powers);
}
double Largest(const Numbers& x) { return *std::max_element(x.begin(), x.end()); }
double Smallest(const Numbers& x) { return *std::min_element(x.begin(), x.end()); }

// Pearson's statistic of whole numbers 0, 1, ... against their probabilities: about as large as there are classes.
double ChiSquare(const Numbers& x, const Numbers& p) {
  Numbers counts(p.size());
  for (double v : x) counts.at(static_cast<size_t>(v)) += 1;
  double sum = 0;
  for (size_t k = 0; k < p.size(); ++k) {
    const double expected = p[k] * static_cast<double>(x.size());
    sum += (counts[k] - expected) * (counts[k] - expected) / expected;
  }
  return sum;
}

TEST(Distributions, Uniform) {
  IndexScene s;
  const Numbers x = s.Run(RandomUniform(Key(s), 0, {kN}, -2, 4));
  EXPECT_NEAR(Mean(x), 1, 5 * std::sqrt(3.0 / kN));
  EXPECT_NEAR(Moment(x, 2), 3, 0.1);
  EXPECT_GE(Smallest(x), -2);
  EXPECT_LT(Largest(x), 4);
  // A width that f32 rounds up from below hi.
  EXPECT_LT(Largest(s.Run(RandomUniform(Key(s), 0, {kN}, 1, 1 + 0x1p-22))), 1 + 0x1p-22);
}

TEST(Distributions, Normal) {
  IndexScene s;
  const Numbers x = s.Run(RandomNormal(Key(s), 1, {kN}, 3, 2));
  EXPECT_NEAR(Mean(x), 3, 5 * 2 / std::sqrt(kN));
  EXPECT_NEAR(Moment(x, 2), 4, 5 * 4 * std::sqrt(2.0 / kN));
  EXPECT_NEAR(Moment(x, 3) / 8, 0, 5 * std::sqrt(15.0 / kN));
  EXPECT_NEAR(Moment(x, 4) / 16, 3, 5 * std::sqrt(96.0 / kN));
}

TEST(Distributions, TruncatedNormal) {
  IndexScene s;
  const Numbers x = s.Run(TruncatedNormal(Key(s), 1, {kN}));
  EXPECT_NEAR(Mean(x), 0, 5 * 0.88 / std::sqrt(kN));
  EXPECT_NEAR(Moment(x, 2), 0.7737, 0.03);  // 1 - 4 phi(2) / (2 Phi(2) - 1)
  EXPECT_LE(Largest(x), 2);
  EXPECT_GE(Smallest(x), -2);
  const Numbers tail = s.Run(TruncatedNormal(Key(s), 1, {kN}, 1, 1e9));
  EXPECT_NEAR(Mean(tail), 1.5251, 0.02);  // phi(1) / (1 - Phi(1))
  EXPECT_GE(Smallest(tail), 1);
}

TEST(Distributions, ExponentialAndGumbel) {
  IndexScene s;
  const Numbers x = s.Run(RandomExponential(Key(s), 2, {kN})), g = s.Run(RandomGumbel(Key(s), 3, {kN}));
  EXPECT_NEAR(Mean(x), 1, 5 / std::sqrt(kN));
  EXPECT_NEAR(Moment(x, 2), 1, 5 * std::sqrt(8.0 / kN));
  EXPECT_GE(Smallest(x), 0);
  EXPECT_NEAR(Mean(g), 0.5772, 5 * 1.2825 / std::sqrt(kN));  // Euler's constant
  EXPECT_NEAR(Moment(g, 2), 1.6449, 0.12);                   // pi^2 / 6
}

TEST(Distributions, WholeNumbers) {
  IndexScene s;
  Numbers x = s.Run(RandomInt(Key(s), 4, {kN}, -3, 7, DType::kI8));
  for (double& v : x) v += 3;
  EXPECT_LT(ChiSquare(x, Numbers(10, 0.1)), 35);
  for (double v : s.Run(RandomInt(Key(s), 4, {100}, 5, 6))) EXPECT_EQ(v, 5);
  // All 2^32 values, and more than half of them: the mean is in the middle, no part is missing.
  Numbers wide = s.Run(RandomInt(Key(s), 5, {kN}, -2147483648LL, 2147483648LL)),
          most = s.Run(RandomInt(Key(s), 5, {kN}, 0, 3000000000LL, DType::kI64));
  EXPECT_NEAR(Mean(wide) / 4294967296.0, 0, 0.0103);
  for (double& v : most) v = std::floor(v / 3e8);
  EXPECT_LT(ChiSquare(most, Numbers(10, 0.1)), 35);
}

TEST(Distributions, BernoulliAndCategorical) {
  IndexScene s;
  EXPECT_NEAR(Mean(s.Run(Bernoulli(Key(s), 6, s.Input({DType::kF32, {kN}}, {0.3})))), 0.3, 5 * 0.46 / std::sqrt(kN));
  EXPECT_THAT(s.Run(Bernoulli(Key(s), 6, s.Input({DType::kF32, {100}}, {1}))), testing::Each(1));
  EXPECT_THAT(s.Run(Bernoulli(Key(s), 6, s.Input({DType::kF32, {100}}, {0}))), testing::Each(0));
  const Numbers p = {0.1, 0.2, 0.3, 0.4};
  Numbers logits;
  for (double v : p) logits.push_back(std::log(v) + 5);
  const Value row = s.Input({DType::kF32, {4}}, logits);
  EXPECT_LT(ChiSquare(s.Run(Multinomial(Key(s), 7, row, kN, true)), p), 22);
  const Numbers some = s.Run(Multinomial(Key(s), 8, row, 4, false));
  EXPECT_EQ(std::set<double>(some.begin(), some.end()).size(), 4u);
}

TEST(Distributions, Permutations) {
  IndexScene s;
  const int64_t n = 600;
  const Numbers p = s.Run(Permutation(Key(s), 9, n));
  EXPECT_EQ(std::set<double>(p.begin(), p.end()).size(), static_cast<size_t>(n));
  double fixed = 0, shift = 0;
  for (int64_t k = 0; k < n; ++k) {
    fixed += p[k] == static_cast<double>(k);
    shift += std::abs(p[k] - static_cast<double>(k));
  }
  EXPECT_LT(fixed, 8);                        // 1 on average
  EXPECT_NEAR(shift / n, n / 3.0, n / 15.0);  // a third of the length
  const Value x = s.Input({DType::kF32, {2, 3}}, {1, 2, 3, 4, 5, 6});
  Numbers shuffled = s.Run(Shuffle(x, Key(s), 10, 1));
  EXPECT_EQ(shuffled[0] + 3, shuffled[3]);  // whole columns move
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, (Numbers{1, 2, 3, 4, 5, 6}));
}

TEST(Distributions, Dropouts) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {50, 40, 3}}, {1});
  const Numbers shared = s.Run(DropoutShared(x, Key(s), 11, 0.25, {2}));
  int zeros = 0;
  for (size_t k = 0; k < shared.size(); k += 3) {
    zeros += shared[k] == 0;
    EXPECT_EQ(shared[k], shared[k + 1]);
    EXPECT_EQ(shared[k], shared[k + 2]);
  }
  EXPECT_NEAR(zeros, 500, 100);
  const Numbers alpha = s.Run(AlphaDropout(RandomNormal(Key(s), 12, {kN}), Key(s), 13, 0.2));
  EXPECT_NEAR(Mean(alpha), 0, 0.04);
  EXPECT_NEAR(Moment(alpha, 2), 1, 0.06);
}

TEST(Initialisers, HaveTheirVariance) {
  EXPECT_EQ(nn::GlorotUniform(2, 4), (Init{InitKind::kUniform, -1, 1}));
  EXPECT_EQ(nn::GlorotNormal(3, 5), (Init{InitKind::kNormal, 0, 0.5}));
  EXPECT_EQ(nn::HeUniform(6), (Init{InitKind::kUniform, -1, 1}));
  EXPECT_EQ(nn::HeNormal(8), (Init{InitKind::kNormal, 0, 0.5}));
  EXPECT_EQ(nn::LecunUniform(3), (Init{InitKind::kUniform, -1, 1}));
  EXPECT_EQ(nn::LecunNormal(4), (Init{InitKind::kNormal, 0, 0.5}));
}

// State w of that type as @init makes it.
Numbers Started(TensorType type, Init init, uint32_t seed) {
  Program program;
  program.states.push_back({.name = "w", .type = type, .init = init});
  PassContext context;
  EXPECT_TRUE(RunPipeline(program, {"add-init"}, context).ok());
  EvalInputs in;
  in.params["seed"] = HostTensor::Zeros({DType::kU32, {}});
  in.params["seed"].set(0, Scalar::Int(DType::kU32, seed));
  const absl::StatusOr<EvalResult> r = Evaluate(program, kInitGraph, in);
  EXPECT_TRUE(r.ok()) << r.status();
  Numbers w;
  for (int64_t i = 0; r.ok() && i < type.elements(); ++i) w.push_back(r->states.at("w").at(i).f());
  return w;
}

// The largest element of w w' - gain^2 over the rows of w, or columns if those are fewer.
double OffOrthogonal(const Dims& dims, const Numbers& w, double gain) {
  const int64_t rows = dims[0], columns = static_cast<int64_t>(w.size()) / rows, n = std::min(rows, columns);
  const auto at = [&](int64_t line, int64_t k) { return w[rows <= columns ? line * columns + k : k * columns + line]; };
  double off = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < std::max(rows, columns); ++k) sum += at(i, k) * at(j, k);
      off = std::max(off, std::abs(sum - (i == j ? gain * gain : 0)));
    }
  }
  return off;
}

TEST(Initialisers, OrthogonalRowsOrColumns) {
  const std::vector<Dims> shapes = {{1, 1},   {1, 7},   {7, 1},    {2, 2},       {3, 5},
                                    {16, 16}, {40, 40}, {6, 2, 2}, {4, 3, 3, 3}, {50, 8}};
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    for (const Dims& dims : shapes) {
      for (DType dtype : {DType::kF32, DType::kF64}) {
        const TensorType type{dtype, dims};
        const double off = OffOrthogonal(dims, Started(type, nn::Orthogonal(1.5), seed), 1.5);
        EXPECT_LT(off, dtype == DType::kF32 ? 1e-5 : 1e-12) << ToString(type) << ", seed " << seed;
      }
    }
  }
}

// Of the uniform distribution: elements of an orthogonal n x n matrix have the variance 1 / n, and neither sign of the
// determinant of 2 x 2 is preferred.
TEST(Initialisers, OrthogonalIsUniform) {
  constexpr int kDraws = 400;
  double squares = 0;
  int turned = 0;
  for (uint32_t seed = 0; seed < kDraws; ++seed) {
    const Numbers w = Started({DType::kF32, {2, 2}}, nn::Orthogonal(), seed);
    squares += w[0] * w[0];
    turned += w[0] * w[3] - w[1] * w[2] < 0;
  }
  EXPECT_NEAR(squares / kDraws, 0.5, 0.08);
  EXPECT_NEAR(turned, kDraws / 2, 50);
}

TEST(RandomKeys, AreAllDifferent) {
  IndexScene s;
  std::set<std::pair<double, double>> keys;
  const auto add = [&](const Numbers& words) {
    for (size_t k = 0; k + 1 < words.size(); k += 2) keys.emplace(words[k], words[k + 1]);
  };
  const Value key = Key(s), counts = Iota(s.builder, DType::kI32, {100});
  add(s.Run(key));
  add(s.Run(SplitKey(key, 100)));
  add(s.Run(FoldIn(key, counts)));
  add(s.Run(FoldIn(KeyAt(SplitKey(key, 2), 1), counts)));
  add(s.Run(RandomBits(key, 0, {100, 2})));
  EXPECT_EQ(keys.size(), 401u);
  const Numbers wide = s.Run(FoldIn(key, s.Input({DType::kI64, {2}}, {1, 4294967297.0})));  // differ in the upper half
  EXPECT_NE(wide[0], wide[2]);
  const Numbers few = s.Run(SplitKey(key, 3)), many = s.Run(SplitKey(key, 100));
  EXPECT_EQ(few, Numbers(many.begin(), many.begin() + 6));
}

TEST(RandomKeys, StreamsAndKeysAreUncorrelated) {
  IndexScene s;
  const Value key = Key(s);
  const Numbers x = s.Run(RandomUniform(key, 0, {kN})), again = s.Run(RandomUniform(key, 0, {kN}));
  EXPECT_EQ(x, again);
  const Value others[] = {RandomUniform(key, 1, {kN}), RandomUniform(Key(s, 8), 0, {kN}),
                          RandomUniform(KeyAt(SplitKey(key, 2), 0), 0, {kN})};
  for (Value other : others) {
    const Numbers y = s.Run(other);
    double sum = 0;
    for (size_t k = 0; k < x.size(); ++k) sum += (x[k] - 0.5) * (y[k] - 0.5) * 12;
    EXPECT_LT(std::abs(sum / kN), 5 / std::sqrt(kN));
  }
}

}  // namespace
}  // namespace agc
