#include "passes/memory/planner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/base/status.h"
#include "passes/memory/greedy.h"

namespace agc::memory {
namespace {

// The smallest generator with full period: the same sequence everywhere.
uint64_t NextRandom(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

struct Best {
  Placement placement = {};
  std::vector<int32_t> order = {};
  Fit fit = Fit::kFirst;
  absl::string_view method = {};
};

Best Portfolio(const Problem& problem) {
  static constexpr absl::string_view kBestFit[] = {"size best-fit",    "area best-fit",        "tall best-fit",
                                                   "width best-fit",   "birth best-fit",       "death best-fit",
                                                   "crowded best-fit", "crowded-wide best-fit"};
  Best best;
  int64_t steps = 0;
  const std::vector<Order> orders = GreedyOrders(problem);
  for (size_t k = 0; k < orders.size(); ++k) {
    for (Fit fit : {Fit::kBest, Fit::kFirst}) {
      const int64_t limit = best.placement.height == INT64_MAX ? INT64_MAX : best.placement.height - 1;
      Placement p = PlaceGreedily(problem, orders[k].items, fit, limit, steps);
      if (p.height >= best.placement.height) continue;
      best = {std::move(p), orders[k].items, fit, fit == Fit::kBest ? kBestFit[k] : orders[k].name};
      if (best.placement.height == problem.bound) return best;
    }
  }
  return best;
}

// Moves an item that reaches the top, or one alive with it, to an earlier place of the order, and keeps what is not
// worse.
void Search(const Problem& problem, int64_t budget, Best& best) {
  const size_t n = problem.items.size();
  std::vector<int32_t> order = best.order, position(n);
  Placement now = best.placement;
  uint64_t random = 1;
  for (int64_t steps = 0; steps < budget && best.placement.height > problem.bound;) {
    std::vector<int32_t> top;
    for (size_t i = 0; i < n; ++i) {
      position[order[i]] = static_cast<int32_t>(i);
      if (now.offsets[i] + problem.items[i].size == now.height) top.push_back(static_cast<int32_t>(i));
    }
    steps += static_cast<int64_t>(n);
    int32_t item = top[NextRandom(random) % top.size()];
    const std::vector<int32_t>& near = problem.neighbours[item];
    if (!near.empty() && NextRandom(random) % 2 == 0) item = near[NextRandom(random) % near.size()];
    const int32_t from = position[item];
    if (from == 0) continue;
    const int32_t to = static_cast<int32_t>(NextRandom(random) % from);
    std::vector<int32_t> tried = order;
    std::rotate(tried.begin() + to, tried.begin() + from, tried.begin() + from + 1);
    Placement p = PlaceGreedily(problem, tried, best.fit, now.height, steps);
    if (p.height == INT64_MAX) continue;
    order = std::move(tried);
    now = std::move(p);
    if (now.height < best.placement.height) {
      best.placement = now;
      best.order = order;
      best.method = "search";
    }
  }
}

// Groups of items, by index, that no life connects.
std::vector<std::vector<int32_t>> SplitAtCuts(absl::Span<const Interval> lives) {
  std::vector<int32_t> order(lives.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return lives[a].first < lives[b].first; });
  std::vector<std::vector<int32_t>> parts;
  int64_t last = 0;
  for (int32_t i : order) {
    if (parts.empty() || lives[i].first > last) parts.emplace_back();
    last = parts.back().empty() ? lives[i].last : std::max(last, lives[i].last);
    parts.back().push_back(i);
  }
  return parts;
}

int64_t Units(int64_t bytes, int64_t align) { return (bytes + align - 1) / align; }

}  // namespace

int64_t LiveBound(absl::Span<const Interval> lives, int64_t align) {
  std::vector<std::pair<int64_t, int64_t>> events;  // time, change; negative changes come first
  for (const Interval& i : lives) {
    const int64_t bytes = Units(i.size, align) * align;
    events.push_back({i.first, bytes});
    events.push_back({i.last + 1, -bytes});
  }
  std::sort(events.begin(), events.end());
  int64_t live = 0, most = 0;
  for (const auto& [time, change] : events) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

PackResult Pack(absl::Span<Interval> lives, const PackOptions& options) {
  PackResult result;
  int64_t highest_bound = 0;
  for (const std::vector<int32_t>& part : SplitAtCuts(lives)) {
    std::vector<Interval> items;
    for (int32_t i : part) {
      AGC_CHECK(lives[i].size > 0 && lives[i].first <= lives[i].last);
      items.push_back(lives[i]);
      items.back().size = Units(lives[i].size, options.align);
    }
    const Problem problem = MakeProblem(std::move(items));
    Best best = Portfolio(problem);
    // A part that stays below another's bound needs no search, nor one within a hundredth of its own.
    const bool matters = best.placement.height * options.align > highest_bound;
    const bool close = best.placement.height - problem.bound <= problem.bound / 100;
    if (matters && !close) Search(problem, options.search_steps, best);
    highest_bound = std::max(highest_bound, problem.bound * options.align);
    const int64_t height = best.placement.height * options.align;
    if (height > result.height) result.method = best.method;
    result.height = std::max(result.height, height);
    for (size_t k = 0; k < part.size(); ++k) lives[part[k]].offset = best.placement.offsets[k] * options.align;
  }
  result.bound = highest_bound;
  return result;
}

}  // namespace agc::memory
