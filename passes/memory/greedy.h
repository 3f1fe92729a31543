// One greedy run of the planner: buffers one after another in a given order, each into a gap between those placed that
// are alive with it. A Problem counts in units of the alignment.
#pragma once
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "passes/memory/planner.h"

namespace agc::memory {

enum class Fit : uint8_t { kFirst, kBest };  // lowest gap that is large enough, or the smallest one

// The buffers of one part of time with, for each, those alive with it.
struct Problem {
  std::vector<Interval> items = {};
  std::vector<std::vector<int32_t>> neighbours = {};
  int64_t bound = 0;
};
Problem MakeProblem(std::vector<Interval> items);

struct Placement {
  std::vector<int64_t> offsets = {};
  int64_t height = INT64_MAX;
};

// Places all items in `order`; stops early, with height INT64_MAX, once an item would end above `limit`. `steps` counts
// the placed neighbours looked at.
Placement PlaceGreedily(const Problem& problem, absl::Span<const int32_t> order, Fit fit, int64_t limit,
                        int64_t& steps);

// The static orders worth trying: name and permutation.
struct Order {
  absl::string_view name = {};
  std::vector<int32_t> items = {};
};
std::vector<Order> GreedyOrders(const Problem& problem);

}  // namespace agc::memory
