#include "passes/memory/greedy.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace agc::memory {
namespace {

using Key = std::array<int64_t, 3>;  // smaller first

int64_t Width(const Interval& i) { return i.last - i.first + 1; }

// Saturates: only the order of keys matters.
int64_t Area(const Interval& i, int power) {
  __int128 area = i.size;
  for (int k = 0; k < power; ++k) area *= k % 2 == 0 ? Width(i) : i.size;
  return static_cast<int64_t>(std::min<__int128>(area, INT64_MAX));
}

// For each item the most bytes alive at a time of its life.
std::vector<int64_t> Crowding(const Problem& problem) {
  std::vector<int64_t> most(problem.items.size());
  for (size_t i = 0; i < problem.items.size(); ++i) {
    std::vector<std::pair<int64_t, int64_t>> events;  // time, change; ends come before starts at the same time
    for (int32_t n : problem.neighbours[i]) {
      const Interval& other = problem.items[n];
      events.push_back({std::max(other.first, problem.items[i].first), other.size});
      events.push_back({other.last + 1, -other.size});
    }
    std::sort(events.begin(), events.end());
    int64_t live = problem.items[i].size;
    most[i] = live;
    for (const auto& [time, change] : events) {
      if (time > problem.items[i].last) break;
      live += change;
      most[i] = std::max(most[i], live);
    }
  }
  return most;
}

Order Sorted(absl::string_view name, const std::vector<Key>& keys) {
  Order order{.name = name, .items = std::vector<int32_t>(keys.size())};
  std::iota(order.items.begin(), order.items.end(), 0);
  std::stable_sort(order.items.begin(), order.items.end(), [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
  return order;
}

}  // namespace

Problem MakeProblem(std::vector<Interval> items) {
  Problem problem;
  problem.items = std::move(items);
  problem.neighbours.resize(problem.items.size());
  std::vector<int32_t> by_first(problem.items.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::stable_sort(by_first.begin(), by_first.end(),
                   [&](int32_t a, int32_t b) { return problem.items[a].first < problem.items[b].first; });
  std::vector<int32_t> live;
  for (int32_t i : by_first) {
    live.erase(std::remove_if(live.begin(), live.end(),
                              [&](int32_t other) { return problem.items[other].last < problem.items[i].first; }),
               live.end());
    int64_t bytes = problem.items[i].size;
    for (int32_t other : live) {
      problem.neighbours[i].push_back(other);
      problem.neighbours[other].push_back(i);
      bytes += problem.items[other].size;
    }
    problem.bound = std::max(problem.bound, bytes);
    live.push_back(i);
  }
  return problem;
}

Placement PlaceGreedily(const Problem& problem, absl::Span<const int32_t> order, Fit fit, int64_t limit,
                        int64_t& steps) {
  Placement result;
  result.offsets.assign(problem.items.size(), -1);
  int64_t height = 0;
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (int32_t i : order) {
    taken.clear();
    for (int32_t n : problem.neighbours[i]) {
      if (result.offsets[n] >= 0) taken.push_back({result.offsets[n], result.offsets[n] + problem.items[n].size});
    }
    steps += static_cast<int64_t>(problem.neighbours[i].size()) + 1;
    std::sort(taken.begin(), taken.end());
    const int64_t size = problem.items[i].size;
    int64_t top = 0, place = -1, gap = INT64_MAX;
    for (const auto& [begin, end] : taken) {
      if (begin - top >= size && begin - top < gap) {
        place = top;
        gap = begin - top;
        if (fit == Fit::kFirst) break;
      }
      top = std::max(top, end);
    }
    if (place < 0) place = top;
    if (place + size > limit) return result;
    result.offsets[i] = place;
    height = std::max(height, place + size);
  }
  result.height = height;
  return result;
}

std::vector<Order> GreedyOrders(const Problem& problem) {
  const std::vector<int64_t> crowding = Crowding(problem);
  const size_t n = problem.items.size();
  std::vector<Key> size(n), area(n), tall(n), width(n), birth(n), death(n), crowd(n), crowd_width(n);
  for (size_t i = 0; i < n; ++i) {
    const Interval& item = problem.items[i];
    size[i] = {-item.size, -Width(item), item.first};
    area[i] = {-Area(item, 1), -item.size, item.first};
    tall[i] = {-Area(item, 2), -item.size, item.first};  // size * size * width
    width[i] = {-Width(item), -item.size, item.first};
    birth[i] = {item.first, -item.size, item.last};
    death[i] = {-item.last, -item.size, item.first};
    crowd[i] = {-crowding[i], -item.size, item.first};
    crowd_width[i] = {-crowding[i], -Width(item), -item.size};
  }
  return {
      Sorted("size", size),   Sorted("area", area),   Sorted("tall", tall),     Sorted("width", width),
      Sorted("birth", birth), Sorted("death", death), Sorted("crowded", crowd), Sorted("crowded-wide", crowd_width)};
}

}  // namespace agc::memory
