// Normalisation, attention and recurrence at the edges of their domains: offsets, constant rows, masks that leave
// nothing, overflow. Ordinary values are tested by the sweep and by test/ops/variants_test.py.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"
#include "test/unit/value_scene.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using Numbers = std::vector<double>;

constexpr DType BF16 = DType::kBF16, F16 = DType::kF16, F32 = DType::kF32, I32 = DType::kI32, Bool = DType::kBool;
constexpr double kInf = std::numeric_limits<double>::infinity();

Numbers Noise(size_t n, double offset, double scale, uint32_t seed = 1) {
  std::mt19937 random(seed);
  Numbers values;
  for (size_t i = 0; i < n; ++i) values.push_back(offset + scale * (static_cast<double>(random()) / 2147483648.0 - 1));
  return values;
}

void ExpectFinite(const Numbers& values, const char* what) {
  for (double v : values) ASSERT_TRUE(std::isfinite(v)) << what;
}

// ---------------------------------------------------------------- normalisation

struct Norm {
  const char* name;
  std::function<Value(ValueScene&, Value)> apply;  // on [2,4,n] with scale 2 and shift 7
};
const std::vector<Norm>& Norms() {
  const auto ones = [](ValueScene& s, Value x, Dims dims, double v) { return s.Input({x.dtype(), dims}, {v}); };
  static const auto* const kNorms = new std::vector<Norm>{
      {"layer_norm",
       [=](ValueScene& s, Value x) { return LayerNorm(x, ones(s, x, {x.dim(-1)}, 2), ones(s, x, {x.dim(-1)}, 7)); }},
      {"group_norm", [=](ValueScene& s, Value x) { return GroupNorm(x, ones(s, x, {4}, 2), ones(s, x, {4}, 7), 2); }},
      {"instance_norm",
       [=](ValueScene& s, Value x) { return InstanceNorm(x, ones(s, x, {4}, 2), ones(s, x, {4}, 7)); }},
      {"batch_norm_train",
       [=](ValueScene& s, Value x) { return BatchNormTrain(x, ones(s, x, {4}, 2), ones(s, x, {4}, 7)).y; }}};
  return *kNorms;
}

// Noise of 0.1 on 10,000: a mean that is rounded to f32 would be off by as much as the noise.
TEST(Norm, LargeOffsetsKeepTheNoise) {
  for (const Norm& norm : Norms()) {
    for (double offset : {1e4, -1e4, 3e5}) {
      ValueScene s;
      const Value x = s.Input({F32, {2, 4, 257}}, Noise(2 * 4 * 257, offset, offset > 1e5 ? 4 : 0.1));
      const Value y = norm.apply(s, x);
      const Numbers got = s.Run(y), want = s.Run(y, EvalMode::kDouble);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << norm.name << " at " << offset;
    }
  }
}

TEST(Norm, ConstantRowsGiveTheShiftAndNoGradient) {
  for (const Norm& norm : Norms()) {
    for (double value : {0.0, 0.1, 1e6, -3e7}) {
      ValueScene s;
      const Value x = s.Input({F32, {2, 4, 100}}, {value});
      const Value y = norm.apply(s, x);
      EXPECT_THAT(s.Run(y), Each(7)) << norm.name;
      EXPECT_THAT(s.Slope(y, x), Each(0)) << norm.name;
    }
  }
}

// Squares and sums of these leave f16: 1000^2 and 512 * 1000.
TEST(Norm, NarrowInputsHaveWideStatistics) {
  for (DType dtype : {F16, BF16}) {
    for (const Norm& norm : Norms()) {
      ValueScene s;
      Numbers values;
      for (int i = 0; i < 2 * 4 * 512; ++i) values.push_back(i % 2 == 0 ? 1000 : -1000);
      EXPECT_THAT(s.Run(norm.apply(s, s.Input({dtype, {2, 4, 512}}, values))), Each(testing::AnyOf(9, 5))) << norm.name;
    }
    ValueScene s;
    const Value x = s.Input({dtype, {4096, 1}}, {1000}), one = s.Input({F32, {1}}, {1});
    const BatchNormResult b = BatchNormTrain(x, one, one);
    EXPECT_EQ(b.mean.dtype(), F32);
    EXPECT_THAT(s.Run(b.mean), ElementsAre(1000));
    EXPECT_THAT(s.Run(b.variance), ElementsAre(0));
  }
}

TEST(Norm, EmptyAndSingleElements) {
  ValueScene s;
  const Value one = s.Input({F32, {1}}, {3}), none = s.Input({F32, {2, 0}}, {0}), empty = s.Input({F32, {0}}, {0});
  EXPECT_THAT(s.Run(LayerNorm(s.Input({F32, {1, 1}}, {5}), one, one)), ElementsAre(3));
  EXPECT_TRUE(s.Run(LayerNorm(none, empty, empty)).empty());
  EXPECT_TRUE(s.Run(RmsNorm(none, empty)).empty());
  EXPECT_THAT(s.Run(RmsNorm(s.Input({F32, {2, 1}}, {0, -4}), one, 0.0)).back(), -3);
}

TEST(Norm, ZeroRowsOfNormalizeStayZero) {
  for (int64_t p : {1, 2}) {
    ValueScene s;
    const Value x = s.Input({F32, {2, 3}}, {0, 0, 0, 3, 0, 4});
    const Value y = LpNormalize(x, -1, p);
    const Numbers values = s.Run(y);
    EXPECT_THAT(Numbers(values.begin(), values.begin() + 3), Each(0));
    EXPECT_NEAR(values[5], p == 1 ? 4.0 / 7 : 0.8, 1e-6);
    ExpectFinite(s.Slope(y, x), "gradient");
  }
}

// f16 and bf16 have the range of f32. In f32 squares overflow and vanish as in numpy and torch, which do not scale
// either: infinite or 0, with a gradient of 0, and never NaN.
TEST(Norm, SquaresAreSummedInF32WithoutScaling) {
  for (DType dtype : {F16, BF16}) {
    ValueScene s;
    const Value x = s.Input({dtype, {4}}, {12000, -16000, 0, 0}), one = s.Input({dtype, {4}}, {1});
    EXPECT_NEAR(s.Run(ReduceL2(x))[0], 20000, 100);
    EXPECT_NEAR(s.Run(ReduceNorm(x, 2))[0], 20000, 100);
    EXPECT_NEAR(s.Run(ReduceNorm(x, 3))[0], 17983, 100);
    EXPECT_NEAR(s.Run(LpNormalize(x))[1], -0.8, 2e-3);
    EXPECT_NEAR(s.Run(RmsNorm(x, one))[0], 1.2, 5e-3);
    EXPECT_NEAR(s.Run(ReduceStd(x))[0], std::sqrt(99e6), 100);
    const Value small = s.Input({dtype, {2}}, {3e-5, -4e-5});
    EXPECT_NEAR(s.Run(LpNormalize(small))[0], 0.6, 2e-2);
  }
  for (double size : {1e30, 1e-30}) {
    ValueScene s;
    const Value x = s.Input({F32, {4}}, {3 * size, -4 * size, 0, 0}), one = s.Input({F32, {4}}, {1});
    EXPECT_THAT(s.Run(ReduceL2(x)), ElementsAre(size > 1 ? kInf : 0));
    EXPECT_THAT(s.Slope(ReduceL2(x), x), Each(0));
    if (size > 1) {
      EXPECT_THAT(s.Run(RmsNorm(x, one)), Each(0));
    }
    for (const Value& y : {LpNormalize(x), RmsNorm(x, one)}) {
      ExpectFinite(s.Run(y), "value");
      ExpectFinite(s.Slope(y, x), "gradient");
    }
    EXPECT_NEAR(s.Run(Hypot(Slice(x, {0}, {1}, {}), Slice(x, {1}, {2}, {})))[0] / size, 5, 1e-5);  // the op that scales
  }
}

TEST(Norm, LocalResponseOfOneChannelAndOfMany) {
  ValueScene s;
  const Value one = s.Input({F32, {1, 1, 2}}, {3, 0});
  const Numbers y = s.Run(Lrn(one, {.size = 5, .alpha = 5, .beta = 0.5, .bias = 1}));
  EXPECT_NEAR(y[0], 3 / std::sqrt(10.0), 1e-6);
  EXPECT_EQ(y[1], 0);
  // A window of 2 reaches one channel up.
  const Value many = s.Input({F32, {1, 3}}, {1, 2, 3});
  const Numbers z = s.Run(Lrn(many, {.size = 2, .alpha = 2, .beta = 1, .bias = 0}));
  EXPECT_THAT(z, ElementsAre(DoubleNear(1.0 / 5, 1e-6), DoubleNear(2.0 / 13, 1e-6), DoubleNear(3.0 / 9, 1e-6)));
}

// What only moves keeps its bits; f32 is never taken through a narrower type.
TEST(Norm, CopiesAreExact) {
  ValueScene s;
  const Value x = s.Input({F32, {2, 3}}, {0.5569, -0.5569, 1e-40, 3e38, 1.0 / 3, -0.1});
  const Numbers before = s.Run(x);
  const Value y = Transpose(Reshape(T(x), {3, 2}), {1, 0});
  EXPECT_EQ(s.Run(y), before);
  const Value zero = s.Input({F32, {3, 1}}, {0}), one = s.Input({F32, {3, 1}}, {1});
  const Value turned = RotaryEmbedding(Reshape(x, {3, 2}), one, zero);
  EXPECT_EQ(s.Run(Reshape(turned, {2, 3})), before);
}

// ---------------------------------------------------------------- attention

struct Qkv {
  Value q = {}, k = {}, v = {};
};
Qkv Inputs(ValueScene& s, DType dtype, int64_t heads, int64_t rows, int64_t keys) {
  const size_t n = static_cast<size_t>(heads);
  return {s.Input({dtype, {heads, rows, 4}}, Noise(n * rows * 4, 0, 1, 1)),
          s.Input({dtype, {heads, keys, 4}}, Noise(n * keys * 4, 0, 1, 2)),
          s.Input({dtype, {heads, keys, 4}}, Noise(n * keys * 4, 0, 1, 3))};
}

void ExpectRow(const Numbers& values, size_t row, bool zero, const char* what) {
  const bool zeros =
      std::all_of(values.begin() + 4 * row, values.begin() + 4 * row + 4, [](double v) { return v == 0; });
  EXPECT_EQ(zeros, zero) << what << ", row " << row;
}

TEST(Attention, AQueryThatSeesNothingGivesZero) {
  for (DType dtype : {F32, F16}) {
    for (int kind = 0; kind < 3; ++kind) {
      ValueScene s;
      const Qkv in = Inputs(s, dtype, 1, 3, 2);
      AttentionOptions options;
      if (kind == 0) options.mask = s.Input({Bool, {3, 2}}, {0, 0, 1, 0, 1, 1});
      if (kind == 1) options.mask = s.Input({dtype, {3, 2}}, {-kInf, -kInf, 0, -kInf, 0, 0});
      if (kind == 2) options.causal = Causal::kLowerRight;  // three queries, two keys
      const Value y = Attention(in.q, in.k, in.v, options);
      const Numbers out = s.Run(y), dq = s.Slope(y, in.q), dk = s.Slope(y, in.k), dv = s.Slope(y, in.v);
      for (const Numbers& n : {out, dq, dk, dv}) ExpectFinite(n, "attention");
      ExpectRow(out, 0, true, "output");
      ExpectRow(out, 1, false, "output");
      ExpectRow(dq, 0, true, "dq");
      ExpectRow(dq, 1, true, "dq");  // one key: the weight is 1 whatever the query is
      ExpectRow(dq, 2, false, "dq");
      ExpectRow(dv, 1, false, "dv");
      for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(out[4 + k], s.Run(in.v)[k], 1e-3);
      if (kind != 1) continue;
      ExpectFinite(s.Slope(y, options.mask), "mask");
    }
  }
}

TEST(Attention, EverythingMaskedOrNoKeysGivesZeroEverywhere) {
  ValueScene s;
  const Qkv in = Inputs(s, F32, 2, 3, 5);
  const Value y = Attention(in.q, in.k, in.v, {.mask = s.Input({Bool, {1}}, {0})});
  for (Value x : {in.q, in.k, in.v}) EXPECT_THAT(s.Slope(y, x), Each(0));
  EXPECT_THAT(s.Run(y), Each(0));
  const Value none = s.Input({F32, {2, 0, 4}}, {0});
  EXPECT_THAT(s.Run(Attention(in.q, none, none)), Each(0));
}

// A masked key counts for nothing, however large its score is; 3e38 squared is infinite.
TEST(Attention, MaskedScoresDoNotMatter) {
  for (double huge : {1e4, 1e30, 3e38}) {
    ValueScene s;
    const Value q = s.Input({F32, {1, 4}}, {huge, 1, 1, 1}), k = s.Input({F32, {2, 4}}, {0, 1, 0, 1, huge, 0, 0, 0});
    const Value v = s.Input({F32, {2, 4}}, {1, 2, 3, 4, 5, 6, 7, 8});
    const Value y = Attention(q, k, v, {.mask = s.Input({Bool, {1, 2}}, {1, 0})});
    EXPECT_THAT(s.Run(y), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(s.Slope(y, v), ElementsAre(1, 1, 1, 1, 0, 0, 0, 0));
    EXPECT_THAT(s.Slope(y, q), Each(0));
    EXPECT_THAT(s.Slope(y, k), Each(0));
  }
}

TEST(Attention, SharedKeysEqualRepeatedKeys) {
  ValueScene s;
  const Qkv in = Inputs(s, F32, 4, 3, 5);
  const auto half = [](Value x) { return Slice(x, {0, 0, 0}, {2, x.dim(1), x.dim(2)}, {}); };
  const auto twice = [](Value x) {
    return Reshape(Broadcast(ExpandDims(x, {1}), {2, 2, x.dim(1), x.dim(2)}), {4, x.dim(1), x.dim(2)});
  };
  const Value k = half(in.k), v = half(in.v);
  const Value shared = Attention(in.q, k, v), repeated = Attention(in.q, twice(k), twice(v));
  EXPECT_THAT(s.Run(shared - repeated), Each(DoubleNear(0, 1e-6)));
  const Value weights = s.Input({F32, {4, 3, 4}}, Noise(48, 0, 1, 9));
  const Numbers a = s.Slope(shared, in.k, weights), b = s.Slope(repeated, in.k, weights);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(Attention, LargeScoresDoNotOverflow) {
  for (DType dtype : {F32, F16}) {
    ValueScene s;
    const Value q = s.Input({dtype, {2, 2}}, {100, 100, -100, 100}), k = s.Input({dtype, {2, 2}}, {100, 0, 0, 100});
    const Value v = s.Input({dtype, {2, 2}}, {1, 2, 3, 4});
    const Value y = Attention(q, k, v);
    EXPECT_THAT(s.Run(y), ElementsAre(2, 3, 3, 4));
    for (Value x : {q, k, v}) ExpectFinite(s.Slope(y, x), "slope");
  }
}

TEST(MaskedSoftmax, OneHugeMaskedLogit) {
  for (double huge : {1e30, 3e38, kInf}) {
    ValueScene s;
    const Value x = s.Input({F32, {1, 3}}, {1, huge, 1}), mask = s.Input({Bool, {1, 3}}, {1, 0, 1});
    const Value y = MaskedSoftmax(x, mask), weights = s.Input({F32, {1, 3}}, {1, 2, 3});
    EXPECT_THAT(s.Run(y), ElementsAre(0.5, 0, 0.5));
    EXPECT_THAT(s.Slope(y, x, weights), ElementsAre(-0.5, 0, 0.5));
    // The same with the ops that users would write it with.
    const Value z = Softmax(Where(mask, x, FullLike(x, -1e30)));
    EXPECT_THAT(s.Run(z), ElementsAre(0.5, 0, 0.5));
    EXPECT_THAT(s.Slope(z, x, weights), ElementsAre(-0.5, 0, 0.5));
  }
}

TEST(MaskedSoftmax, RowsOfEqualLogitsSumToOne) {
  ValueScene s;
  for (double logit : {0.0, 1e4, -6e4}) {
    const Value x = s.Input({F16, {1, 4096}}, {logit});
    EXPECT_THAT(s.Run(Softmax(x)), Each(1.0 / 4096));
    EXPECT_THAT(s.Run(MaskedSoftmax(x, {})), Each(1.0 / 4096));
    EXPECT_THAT(s.Slope(MaskedSoftmax(x, {}), x), Each(0));
  }
  const Value long_row = s.Input({F16, {65536}}, {3});
  EXPECT_THAT(s.Run(LogSoftmax(long_row)), Each(DoubleNear(-16 * std::log(2.0), 8e-3)));
  EXPECT_THAT(s.Slope(LogSoftmax(long_row), long_row), Each(DoubleNear(0, 2e-3)));
}

// The share of 70,000 equal winners is 1.43e-5, which f16 still holds.
TEST(Gradients, TiesAndDeadBranches) {
  ValueScene s;
  const Value many = s.Input({F16, {70000}}, {2});
  EXPECT_THAT(s.Slope(ReduceMax(many, {0}), many), Each(DoubleNear(1.0 / 70000, 6e-8)));
  const Value zero = s.Input({F32, {1}}, {0});
  EXPECT_THAT(s.Slope(Where(Less(zero, FullLike(zero, 1)), zero, Sqrt(zero)), zero), ElementsAre(1));
  EXPECT_THAT(s.Slope(Softplus(zero), zero), ElementsAre(0.5));
}

// ---------------------------------------------------------------- recurrence

// A sequence of length k gives what the first k steps alone give, and its padding has no influence.
TEST(Recurrent, LengthsCutTheSequence) {
  for (const bool reverse : {false, true}) {
    ValueScene s;
    const Value x = s.Input({F32, {4, 2, 3}}, Noise(24, 0, 1, 1)), w = s.Input({F32, {1, 8, 3}}, Noise(24, 0, 1, 2));
    const Value r = s.Input({F32, {1, 8, 2}}, Noise(16, 0, 1, 3)), lengths = s.Input({I32, {2}}, {2, 4});
    const Direction direction = reverse ? Direction::kReverse : Direction::kForward;
    const RecurrentResult all = Lstm(x, w, r, {.lengths = lengths, .direction = direction});
    const RecurrentResult part = Lstm(Slice(x, {0, 0, 0}, {2, 1, 3}, {}), w, r, {.direction = direction});
    const Numbers y = s.Run(Slice(all.y, {0, 0, 0, 0}, {4, 1, 1, 2}, {})), want = s.Run(part.y);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], i < want.size() ? want[i] : 0, 1e-6);
    EXPECT_THAT(s.Run(Slice(all.c, {0, 0, 0}, {1, 1, 2}, {}) - part.c), Each(DoubleNear(0, 1e-6)));
    const Numbers dx = s.Slope(all.y, x);
    for (size_t i = 0; i < 6; ++i) EXPECT_EQ(dx[2 * 6 + 6 * (i / 3) + i % 3], 0) << i;
  }
}

TEST(Recurrent, SaturatedGatesStayFinite) {
  ValueScene s;
  const Value x = s.Input({F16, {3, 1, 2}}, {100, -100, 100, 100, -100, 50}), w = s.Input({F16, {1, 12, 2}}, {60});
  const Value r = s.Input({F16, {1, 12, 3}}, {-60});
  for (const RecurrentResult& result :
       {Lstm(x, w, r), Rnn(x, Slice(w, {0, 0, 0}, {1, 3, 2}, {}), Slice(r, {0, 0, 0}, {1, 3, 3}, {}))}) {
    ExpectFinite(s.Run(result.y), "y");
    ExpectFinite(s.Slope(result.y, x), "dx");
  }
}

TEST(Recurrent, NothingToDo) {
  ValueScene s;
  const Value x = s.Input({F32, {0, 2, 3}}, {0}), w = s.Input({F32, {1, 8, 3}}, {1}),
              r = s.Input({F32, {1, 8, 2}}, {1});
  const Value start = s.Input({F32, {1, 2, 2}}, {1, 2, 3, 4});
  const RecurrentResult result = Lstm(x, w, r, {.h0 = start});
  EXPECT_TRUE(s.Run(result.y).empty());
  EXPECT_THAT(s.Run(result.h), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(s.Run(result.c), Each(0));
}

}  // namespace
}  // namespace agc
