// The packer: validity on random instances, and the best possible height on small ones against every order of first fit
// (some order of first fit is always optimal).
#include "passes/memory/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace agc::memory {
namespace {

std::vector<Interval> Random(std::mt19937& rng, int n, int times, int sizes) {
  std::vector<Interval> lives(n);
  for (Interval& i : lives) {
    i.size = 1 + rng() % sizes;
    i.first = rng() % times;
    i.last = std::min<int64_t>(times - 1, i.first + rng() % 4);
  }
  return lives;
}

bool Valid(const std::vector<Interval>& lives, const PackResult& result, int64_t align) {
  for (size_t i = 0; i < lives.size(); ++i) {
    const Interval& a = lives[i];
    if (a.offset < 0 || a.offset % align != 0 || a.offset + a.size > result.height) return false;
    for (size_t j = 0; j < i; ++j) {
      const Interval& b = lives[j];
      if (a.first <= b.last && b.first <= a.last && a.offset < b.offset + b.size && b.offset < a.offset + a.size) {
        return false;
      }
    }
  }
  return true;
}

int64_t Optimum(std::vector<Interval> lives) {
  std::vector<int> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    int64_t height = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      Interval& item = lives[order[k]];
      item.offset = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t m = 0; m < k; ++m) {
          const Interval& other = lives[order[m]];
          const bool together = item.first <= other.last && other.first <= item.last;
          if (!together || item.offset >= other.offset + other.size || other.offset >= item.offset + item.size)
            continue;
          item.offset = other.offset + other.size;
          moved = true;
        }
      }
      height = std::max(height, item.offset + item.size);
    }
    best = std::min(best, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Planner, Empty) {
  const PackResult r = Pack({}, {});
  EXPECT_EQ(r.height, 0);
  EXPECT_EQ(r.bound, 0);
}

TEST(Planner, DisjointLivesShare) {
  std::vector<Interval> lives = {{.size = 64, .first = 0, .last = 1}, {.size = 40, .first = 2, .last = 3}};
  EXPECT_EQ(Pack(absl::MakeSpan(lives), {}).height, 64);
  EXPECT_EQ(lives[0].offset, 0);
  EXPECT_EQ(lives[1].offset, 0);
}

TEST(Planner, LivesThatTouchDoNotShare) {
  std::vector<Interval> lives = {{.size = 64, .first = 0, .last = 1}, {.size = 64, .first = 1, .last = 3}};
  EXPECT_EQ(Pack(absl::MakeSpan(lives), {}).height, 128);
}

TEST(Planner, Aligns) {
  std::vector<Interval> lives = {{.size = 20, .first = 0, .last = 1}, {.size = 4, .first = 1, .last = 1}};
  const PackResult r = Pack(absl::MakeSpan(lives), {.align = 256});
  EXPECT_EQ(r.height, 512);
  EXPECT_EQ(r.bound, 512);
  EXPECT_TRUE(Valid(lives, r, 256));
}

TEST(Planner, BestFitTakesTheSmallerGap) {
  // Two gaps are free at time 2, of 4 and of 2 units; the item of 2 belongs into the smaller one, so that 4 fits too.
  std::vector<Interval> lives = {{.size = 5, .first = 1, .last = 3}, {.size = 4, .first = 0, .last = 1},
                                 {.size = 3, .first = 0, .last = 3}, {.size = 2, .first = 0, .last = 1},
                                 {.size = 2, .first = 2, .last = 3}, {.size = 4, .first = 2, .last = 3}};
  EXPECT_EQ(Pack(absl::MakeSpan(lives), {.align = 1}).height, 14);
}

TEST(Planner, RandomAgainstOptimum) {
  std::mt19937 rng(7);
  int optimal = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Interval> lives = Random(rng, 2 + rng() % 6, 6, 6);
    const PackResult r = Pack(absl::MakeSpan(lives), {.align = 1});
    ASSERT_TRUE(Valid(lives, r, 1)) << round;
    const int64_t optimum = Optimum(lives);
    ASSERT_GE(r.height, optimum) << round;
    ASSERT_LE(r.bound, optimum) << round;
    ASSERT_EQ(r.bound, LiveBound(lives, 1)) << round;
    optimal += r.height == optimum;
  }
  EXPECT_GE(optimal, 396);
}

TEST(Planner, RandomLarge) {
  std::mt19937 rng(11);
  for (int round = 0; round < 6; ++round) {
    std::vector<Interval> lives = Random(rng, 300, 100, 5000), again = lives;
    const PackResult r = Pack(absl::MakeSpan(lives), {.align = 16, .search_steps = 1 << 20});
    ASSERT_TRUE(Valid(lives, r, 16));
    EXPECT_LE(r.height, r.bound * 6 / 5) << r.method;
    Pack(absl::MakeSpan(again), {.align = 16, .search_steps = 1 << 20});
    for (size_t i = 0; i < lives.size(); ++i) ASSERT_EQ(lives[i].offset, again[i].offset);
  }
}

}  // namespace
}  // namespace agc::memory
