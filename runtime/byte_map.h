// A map from byte positions of an arena to a small value, kept as segments of equal value. The plan checker paints byte
// ranges with it; the cost of a visit is the number of segments in the range.
//   ByteMap<int> owner;
//   owner.Visit(16, 64, [](uint64_t begin, uint64_t end, int& value) { value = 7; });
#pragma once
#include <cstdint>
#include <iterator>
#include <map>

namespace agc::rt {

template <typename T>
class ByteMap {
 public:
  // Calls visit(begin, end, value&) for each segment of [begin, end), in order, after cutting at both ends.
  template <typename F>
  void Visit(uint64_t begin, uint64_t end, F visit) {
    auto it = Cut(begin);
    Cut(end);
    while (it->first < end) {
      auto next = std::next(it);
      visit(it->first, next == segments_.end() ? end : next->first, it->second);
      it = next;
    }
  }

  // Makes [begin, end) one segment with this value.
  void Assign(uint64_t begin, uint64_t end, const T& value) {
    auto first = Cut(begin);
    auto last = Cut(end);
    segments_.erase(std::next(first), last);
    first->second = value;
  }

 private:
  using Map = std::map<uint64_t, T>;

  typename Map::iterator Cut(uint64_t at) {
    auto it = std::prev(segments_.upper_bound(at));
    return it->first == at ? it : segments_.emplace_hint(std::next(it), at, it->second);
  }

  Map segments_ = {{0, T{}}};  // key: first byte; holds to the next key
};

}  // namespace agc::rt
