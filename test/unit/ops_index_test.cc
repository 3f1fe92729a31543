// Indexing, scattering and sorting at the edges of their domains: indices out of range, empty axes, NaN, equals, long
// rows, both ways to compute a scatter. Ordinary values are tested by the sweep over the op table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "test/unit/index_scene.h"

namespace agc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ---------------------------------------------------------------- gather

// Of an axis of ten elements: the end, before the beginning, and far beyond both.
const Numbers kAwkward = {0, 9, 10, -1, -10, -11, 100, -100};
const Numbers kClamped = {0, 9, 9, 9, 0, 0, 9, 0};

TEST(Index, ReadsClampWhatIsNoElement) {
  for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64}) {
    IndexScene s;
    Numbers ramp(10);
    for (int k = 0; k < 10; ++k) ramp[k] = k;
    const Value x = s.Input({DType::kF32, {10}}, ramp), i = s.Input({dtype, {8}}, kAwkward);
    EXPECT_EQ(s.Run(Take(x, i)), kClamped);
    EXPECT_EQ(s.Run(TakeAlongAxis(x, i)), kClamped);
    EXPECT_EQ(s.Run(GatherNd(x, Reshape(i, {8, 1}))), kClamped);
    EXPECT_EQ(s.Run(Embedding(Reshape(x, {10, 1}), i)), kClamped);
    EXPECT_EQ(s.Run(WrapIndex(i, 10, false)), kClamped);
    EXPECT_THAT(s.Run(WrapIndex(i, 10, true)), ElementsAre(0, 9, -1, 9, 0, -1, -1, -1));
  }
}

TEST(Index, UnsignedAndNarrowIndicesReachLongAxes) {
  IndexScene s;
  Numbers ramp(300);
  for (int k = 0; k < 300; ++k) ramp[k] = k;
  const Value x = s.Input({DType::kF32, {300}}, ramp);
  EXPECT_THAT(s.Run(TakeAlongAxis(x, s.Input({DType::kI8, {3}}, {-1, -128, 127}))), ElementsAre(299, 172, 127));
  EXPECT_THAT(s.Run(TakeAlongAxis(x, s.Input({DType::kU8, {1}}, {255}))), ElementsAre(255));
  EXPECT_THAT(s.Run(WrapIndex(s.Input({DType::kU32, {2}}, {4294967295.0, 2}), 300, true)), ElementsAre(-1, 2));
  EXPECT_THAT(s.Run(WrapIndex(s.Input({DType::kU64, {2}}, {1e18, 299}), 300, false)), ElementsAre(299, 299));
}

TEST(Index, EmptyAxesAreReadByNobody) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {2, 0}}, {}), none = s.Input({DType::kI32, {2, 0}}, {});
  EXPECT_TRUE(s.Run(TakeAlongAxis(x, none)).empty());
  EXPECT_TRUE(s.Run(Sort(x)).empty());
  EXPECT_TRUE(s.Run(TopK(x, 0).values).empty());
  const Value y = s.Input({DType::kF32, {3}}, {1, 2, 3});
  EXPECT_THAT(s.Run(IndexUpdate(y, s.Input({DType::kI32, {0}}, {}), s.Input({DType::kF32, {0}}, {}))),
              ElementsAre(1, 2, 3));
  EXPECT_TRUE(s.Run(GatherRows(s.Input({DType::kF32, {1, 0, 0}}, {}), s.Input({DType::kI32, {1, 2}}, {0}))).empty());
  EXPECT_THAT(s.Run(GatherRows(s.Input({DType::kF32, {1, 0, 1}}, {}), s.Input({DType::kI32, {1, 2}}, {0}))),
              ElementsAre(0, 0));
  EXPECT_THAT(s.Run(SearchSorted(s.Input({DType::kF32, {0}}, {}), y)), ElementsAre(0, 0, 0));
}

TEST(Index, PaddingPassesNoGradient) {
  IndexScene s;
  const Value table = s.Input({DType::kF32, {4, 1}}, {0, 1, 2, 3}), ids = s.Input({DType::kI32, {5}}, {1, 2, 1, -3, 3});
  const Value y = Embedding(table, ids, 1), g = s.Input({DType::kF32, {5, 1}}, {1, 2, 4, 8, 16});
  EXPECT_THAT(s.Run(y), ElementsAre(1, 2, 1, 1, 3));
  EXPECT_THAT(s.Run(s.Gradient(y, 0, g)), ElementsAre(0, 0, 2, 16));
}

TEST(Index, OneHotOptions) {
  IndexScene s;
  const Value i = s.Input({DType::kI32, {2}}, {1, 5});
  EXPECT_THAT(s.Run(OneHot(i, 3, {.axis = 0, .on = 7, .off = -1})), ElementsAre(-1, -1, 7, -1, -1, -1));
  EXPECT_THAT(s.Run(OneHot(i, 3, {.dtype = DType::kBool, .on = 0, .off = 1})), ElementsAre(1, 0, 1, 1, 1, 1));
}

TEST(Index, WindowsAreMovedInside) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {6}}, {0, 1, 2, 3, 4, 5}), u = s.Input({DType::kF32, {3}}, {7, 8, 9});
  const auto at = [&](double v) { return s.Input({DType::kI32, {1}}, {v}); };
  EXPECT_THAT(s.Run(DynamicSlice(x, at(5), {3})), ElementsAre(3, 4, 5));
  EXPECT_THAT(s.Run(DynamicSlice(x, at(-1), {3})), ElementsAre(3, 4, 5));
  EXPECT_THAT(s.Run(DynamicSlice(x, at(-5), {3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(s.Run(DynamicSlice(x, at(-100), {3})), ElementsAre(0, 1, 2));
  EXPECT_THAT(s.Run(DynamicUpdateSlice(x, u, at(100))), ElementsAre(0, 1, 2, 7, 8, 9));
  EXPECT_THAT(s.Run(DynamicUpdateSlice(x, u, at(1))), ElementsAre(0, 7, 8, 9, 4, 5));
  EXPECT_TRUE(s.Run(DynamicSlice(x, at(2), {0})).empty());
}

TEST(Index, SearchSortedOnEveryLength) {
  for (int n = 0; n < 20; ++n) {
    IndexScene s;
    Numbers row, values;
    for (int k = 0; k < n; ++k) row.push_back(k / 3);  // with equals
    for (double v = -1; v < 8; v += 0.5) values.push_back(v);
    const Value r = s.Input({DType::kF32, {n}}, row), v = s.Input({DType::kF32, {18}}, values);
    const Numbers left = s.Run(SearchSorted(r, v)), right = s.Run(Bucketize(v, r, true));
    for (size_t k = 0; k < values.size(); ++k) {
      EXPECT_EQ(left[k], std::lower_bound(row.begin(), row.end(), values[k]) - row.begin());
      EXPECT_EQ(right[k], std::upper_bound(row.begin(), row.end(), values[k]) - row.begin());
    }
  }
  IndexScene s;
  const Value r = s.Input({DType::kF32, {4}}, {-kInf, 0, kInf, kNaN});
  EXPECT_THAT(s.Run(SearchSorted(r, s.Input({DType::kF32, {3}}, {-kInf, kInf, kNaN}))), ElementsAre(0, 2, 3));
  EXPECT_THAT(s.Run(SearchSorted(r, s.Input({DType::kF32, {2}}, {kInf, kNaN}), true)), ElementsAre(3, 4));
}

// ---------------------------------------------------------------- scatter

TEST(Scatter, DropsWhatIsNoElementAndKeepsTheLast) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {4}}, {0, 1, 2, 3});
  const Value i = s.Input({DType::kI32, {7}}, {2, 4, -1, 100, -5, 2, -4}),
              u = s.Input({DType::kF32, {7}}, {10, 11, 12, 13, 14, 15, 16});
  EXPECT_THAT(s.Run(IndexUpdate(x, i, u)), ElementsAre(16, 1, 15, 12));
  EXPECT_THAT(s.Run(IndexAdd(x, 0, i, u)), ElementsAre(16, 1, 27, 15));
  EXPECT_THAT(s.Run(ScatterElements(x, i, u)), ElementsAre(16, 1, 15, 12));
  EXPECT_THAT(s.Run(ScatterNd(x, Reshape(i, {7, 1}), u, ScatterMode::kMin)), ElementsAre(0, 1, 2, 3));
  const Value y = s.Input({DType::kI32, {2, 2}}, {0});
  const Value pairs = s.Input({DType::kI32, {3, 2}}, {1, -1, 0, 2, -3, 0});  // the second and the third are outside
  EXPECT_THAT(s.Run(ScatterNd(y, pairs, s.Input({DType::kI32, {3}}, {5, 6, 7}))), ElementsAre(0, 0, 0, 5));
  const Value flags = s.Input({DType::kBool, {3}}, {0}), on = s.Input({DType::kBool, {1}}, {1});
  EXPECT_THAT(s.Run(IndexUpdate(flags, s.Input({DType::kU8, {1}}, {1}), on)), ElementsAre(0, 1, 0));
}

TEST(Scatter, NarrowTypesAreSummedWide) {
  IndexScene s;
  const Value i = s.Input({DType::kI32, {4096}}, {0});
  EXPECT_THAT(s.Run(IndexAdd(s.Input({DType::kF16, {1}}, {1}), 0, i, s.Input({DType::kF16, {4096}}, {1}))),
              ElementsAre(4096));
  EXPECT_THAT(s.Run(IndexAdd(s.Input({DType::kI8, {1}}, {100}), 0, s.Input({DType::kI32, {2}}, {0}),
                             s.Input({DType::kI8, {2}}, {100, -100}))),
              ElementsAre(100));
}

TEST(Scatter, NanWinsExtrema) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {2}}, {1, kNaN}), i = s.Input({DType::kI32, {2}}, {0, 1});
  for (ScatterMode mode : {ScatterMode::kMin, ScatterMode::kMax}) {
    for (double v : s.Run(IndexUpdate(x, i, s.Input({DType::kF32, {2}}, {kNaN, 5}), mode))) EXPECT_TRUE(std::isnan(v));
  }
}

// Sums in increasing order of the updates, whichever way they are found: the bits of a loop.
TEST(Scatter, BothWaysGiveTheBitsOfALoop) {
  std::mt19937 random(7);
  const int64_t r = 9, n = 50, d = 2;
  Numbers x, u, p;
  for (int64_t k = 0; k < r * d; ++k) x.push_back(static_cast<float>(random()) / 1e3f);
  for (int64_t k = 0; k < n * d; ++k)
    u.push_back(static_cast<float>(random()) / 1e5f * (random() % 2 == 0 ? 1.0f : -1e-3f));
  for (int64_t k = 0; k < n; ++k) p.push_back(static_cast<double>(random() % 12) - 1);
  IndexScene s;
  const Value vx = s.Input({DType::kF32, {1, r, d}}, x), vp = s.Input({DType::kI32, {1, n}}, p),
              vu = s.Input({DType::kF32, {1, n, d}}, u);
  const Value order = ArgSort(vp),
              first = SearchSorted(TakeAlongAxis(vp, order), Iota(s.builder, DType::kI32, {1, r + 1}, 1));
  for (const char* mode : {"set", "add", "mul", "min", "max"}) {
    std::vector<float> want(x.begin(), x.end()), sum(r * d, mode == std::string("mul") ? 1.0f : 0.0f);
    for (int64_t k = 0; k < n * d; ++k) {
      const int64_t row = static_cast<int64_t>(p[k / d]);
      if (row < 0 || row >= r) continue;
      const float v = static_cast<float>(u[k]);
      float &w = want[row * d + k % d], &acc = sum[row * d + k % d];
      if (mode == std::string("set")) w = v;
      if (mode == std::string("add")) acc += v;
      if (mode == std::string("mul")) acc *= v;
      if (mode == std::string("min")) w = std::min(w, v);
      if (mode == std::string("max")) w = std::max(w, v);
    }
    for (int64_t k = 0; k < r * d; ++k) {
      if (mode == std::string("add")) want[k] += sum[k];
      if (mode == std::string("mul")) want[k] *= sum[k];
    }
    const Numbers expected(want.begin(), want.end());
    EXPECT_EQ(s.Run(Emit("scatter_matches", {vx, vp, vu}, {Attr{"mode", std::string(mode)}}, {})), expected) << mode;
    EXPECT_EQ(s.Run(Emit("scatter_runs", {vx, order, first, vu}, {Attr{"mode", std::string(mode)}}, {})), expected)
        << mode;
  }
}

TEST(Scatter, RunsHaveTheGradientOfMatches) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {1, 3, 1}}, {1, 2, 3}), p = s.Input({DType::kI32, {1, 5}}, {2, 0, 2, -1, 7});
  const Value u = s.Input({DType::kF32, {1, 5, 1}}, {4, 5, 0, 6, 7}),
              g = s.Input({DType::kF32, {1, 3, 1}}, {1, 10, 100});
  const Value order = ArgSort(p),
              first = SearchSorted(TakeAlongAxis(p, order), Iota(s.builder, DType::kI32, {1, 4}, 1));
  for (const char* mode : {"set", "add", "mul", "min", "max"}) {
    const Attr a{"mode", std::string(mode)};
    const Value runs = Emit("scatter_runs", {x, order, first, u}, {a}, {}),
                matches = Emit("scatter_matches", {x, p, u}, {a}, {});
    EXPECT_EQ(s.Run(s.Gradient(runs, 0, g)), s.Run(s.Gradient(matches, 0, g))) << mode;
    EXPECT_EQ(s.Run(s.Gradient(runs, 3, g)), s.Run(s.Gradient(matches, 2, g))) << mode;
  }
}

TEST(Scatter, GradientsAtZerosAndTies) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {1, 2, 1}}, {2, 3}), p = s.Input({DType::kI32, {1, 4}}, {0, 0, 1, 1});
  const Value u = s.Input({DType::kF32, {1, 4, 1}}, {0, 5, 0, 0});
  const Value y = ScatterRows(x, p, u, ScatterMode::kMul);
  EXPECT_THAT(s.Run(s.Gradient(y, 0)), ElementsAre(0, 0));
  EXPECT_THAT(s.Run(s.Gradient(y, 2)), ElementsAre(10, 0, 0, 0));
  const Value top = ScatterRows(x, p, s.Input({DType::kF32, {1, 4, 1}}, {2, 1, 4, 4}), ScatterMode::kMax);
  EXPECT_THAT(s.Run(s.Gradient(top, 0)), ElementsAre(0.5, 0));
  EXPECT_THAT(s.Run(s.Gradient(top, 2)), ElementsAre(0.5, 0, 0.5, 0.5));
  const Value last = ScatterRows(x, s.Input({DType::kI32, {1, 4}}, {0, 0, -1, 9}), u);
  EXPECT_THAT(s.Run(s.Gradient(last, 0)), ElementsAre(0, 1));
  EXPECT_THAT(s.Run(s.Gradient(last, 2)), ElementsAre(0, 1, 0, 0));
}

// ---------------------------------------------------------------- sort

TEST(Sort, NanIsLargestAndEqualsKeepTheirOrder) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {9}}, {0, kNaN, -0.0, kInf, 1, kNaN, -kInf, 1, 0});
  EXPECT_THAT(s.Run(ArgSort(x)), ElementsAre(6, 0, 2, 8, 4, 7, 3, 1, 5));
  EXPECT_THAT(s.Run(ArgSort(x, 0, true)), ElementsAre(1, 5, 3, 4, 7, 0, 2, 8, 6));
  EXPECT_THAT(s.Run(TopK(x, 3, 0, false).indices), ElementsAre(6, 0, 2));
  EXPECT_THAT(s.Run(ArgSort(s.Input({DType::kBool, {4}}, {1, 0, 1, 0}))), ElementsAre(1, 3, 0, 2));
  EXPECT_THAT(s.Run(Sort(s.Input({DType::kI8, {4}}, {-128, 127, 0, -1}), 0, true)), ElementsAre(127, 0, -1, -128));
  EXPECT_THAT(s.Run(Sort(s.Input({DType::kU32, {3}}, {4294967295.0, 0, 2147483648.0}))),
              ElementsAre(0, 2147483648.0, 4294967295.0));
}

// Several blocks, the last one and the last run shorter than the others, with many equals.
TEST(Sort, LongRowsAreMerged) {
  for (const bool descending : {false, true}) {
    std::mt19937 random(3);
    const int64_t n = 5000;
    Numbers x;
    for (int64_t k = 0; k < n; ++k) x.push_back(random() % 50 == 0 ? kNaN : static_cast<double>(random() % 700));
    std::vector<int> order(n);
    for (int64_t k = 0; k < n; ++k) order[k] = static_cast<int>(k);
    const auto before = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return descending ? before(x[b], x[a]) : before(x[a], x[b]); });
    IndexScene s;
    const Value v = s.Input({DType::kF32, {n}}, x);
    EXPECT_EQ(s.Run(ArgSort(v, 0, descending)), Numbers(order.begin(), order.end()));
  }
}

TEST(Sort, GradientGoesBackToThePlaces) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {2, 3}}, {3, 1, 2, 5, 5, 4}),
              g = s.Input({DType::kF32, {2, 3}}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(s.Run(s.Gradient(Sort(x), 0, g)), ElementsAre(3, 1, 2, 5, 6, 4));
}

TEST(Sort, MedianAndKthValue) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {2, 4}}, {4, 1, 3, 2, 1, kNaN, 0, 0});
  const Numbers m = s.Run(Median(x));
  EXPECT_EQ(m[0], 2.5);
  EXPECT_TRUE(std::isnan(m[1]));
  EXPECT_THAT(s.Run(Median(x, 0))[0], 2.5);
  EXPECT_THAT(s.Run(KthValue(x, 2)), ElementsAre(2, 0));
}

TEST(Sort, UniqueElements) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {2, 4}}, {3, 1, 3, kNaN, 2, kNaN, 1, 3});
  const UniqueResult all = Unique(x, 6, -1), few = Unique(x, 2);
  const Numbers values = s.Run(all.values);
  EXPECT_THAT(Numbers(values.begin(), values.begin() + 3), ElementsAre(1, 2, 3));
  EXPECT_TRUE(std::isnan(values[3]));
  EXPECT_THAT(Numbers(values.begin() + 4, values.end()), ElementsAre(-1, -1));
  EXPECT_THAT(s.Run(all.counts), ElementsAre(2, 1, 3, 2, 0, 0));
  EXPECT_THAT(s.Run(all.inverse), ElementsAre(2, 0, 2, 3, 1, 3, 0, 2));
  EXPECT_THAT(s.Run(all.count), ElementsAre(4));
  EXPECT_THAT(s.Run(few.values), ElementsAre(1, 2));
  EXPECT_THAT(s.Run(few.counts), ElementsAre(2, 1));
  EXPECT_THAT(s.Run(Unique(s.Input({DType::kI32, {1}}, {7}), 2).values), ElementsAre(7, 0));
}

TEST(Sort, NonZeroAndCounts) {
  IndexScene s;
  const Value x = s.Input({DType::kF32, {2, 3}}, {0, 5, 0, kNaN, 0, -1});
  EXPECT_THAT(s.Run(NonZero(x, 4)), ElementsAre(0, 1, 1, 0, 1, 2, -1, -1));
  EXPECT_THAT(s.Run(NonZero(x, 2, 9)), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(s.Run(BinCount(s.Input({DType::kI32, {7}}, {0, 2, 2, 5, -1, 4, 2}), 5)), ElementsAre(1, 0, 3, 0, 1));
  const Value v = s.Input({DType::kF32, {8}}, {0, 0.24, 0.25, 0.5, 0.99, 1, 1.01, kNaN});
  EXPECT_THAT(s.Run(Histogram(v, 4, 0, 1)), ElementsAre(2, 1, 1, 2));
}

// ---------------------------------------------------------------- diagnostics of the C++ functions

TEST(Index, FunctionsSayWhatIsWrong) {
  const auto error = [](auto call) {
    IndexScene s;
    const Value x = s.Input({DType::kF32, {2, 3}}, {0}), i = s.Input({DType::kI32, {2, 3}}, {0}),
                key = s.Input({DType::kU32, {2}}, {0});
    call(x, i, key);
    return std::string(s.builder.status().message());
  };
  EXPECT_THAT(error([](Value x, Value i, Value) { IndexSelect(x, 0, i); }),
              HasSubstr("index_select: the indices are i32[2,3], expected rank 1"));
  EXPECT_THAT(error([](Value x, Value, Value) { KthValue(x, 4); }), HasSubstr("kth_value: k is 4, expected 1 to 3"));
  EXPECT_THAT(error([](Value, Value i, Value) { Median(i); }),
              HasSubstr("median: of i32[2,3] along axis -1, expected a float type"));
  EXPECT_THAT(error([](Value x, Value, Value) { Unique(x, -1); }), HasSubstr("unique: of f32[2,3] cut to -1"));
  EXPECT_THAT(error([](Value x, Value, Value) { NonZero(x, -1); }), HasSubstr("nonzero: of f32[2,3] cut to -1"));
  EXPECT_THAT(error([](Value x, Value, Value) { BinCount(x, 3); }),
              HasSubstr("bincount: of f32[2,3] into 3 bins, expected an integer type"));
  EXPECT_THAT(error([](Value x, Value, Value) { Histogram(x, 3, 1, 1); }),
              HasSubstr("histogram: of f32[2,3] into 3 bins from 1 to 1"));
  EXPECT_THAT(error([](Value x, Value, Value k) { Shuffle(x, k, 0, 2); }),
              HasSubstr("shuffle: axis is 2, and the operand is f32[2,3]"));
  EXPECT_THAT(error([](Value x, Value, Value k) { DropoutShared(x, k, 0, 0.5, {2}); }),
              HasSubstr("dropout: axis is 2"));
  EXPECT_THAT(error([](Value x, Value, Value k) { AlphaDropout(x, k, 0, 1); }),
              HasSubstr("dropout: rate is 1, expected 0 or more"));
  EXPECT_THAT(error([](Value, Value, Value k) { RandomUniform(k, 0, {2}, 1, 1); }),
              HasSubstr("random_uniform: lo is 1 and hi is 1"));
}

}  // namespace
}  // namespace agc
