// Offsets for buffers with known sizes and lives in one arena, so that buffers alive together never share a byte. Knows
// nothing of the IR. Deterministic: budgets are counted in steps of work, never in time.
//   std::vector<Interval> lives = {{.size = 64, .first = 0, .last = 1}, {.size = 64, .first = 2, .last = 3}};
//   PackResult r = Pack(absl::MakeSpan(lives), {});   // r.height == 64: both at offset 0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace agc::memory {

struct Interval {
  int64_t size = 0;             // bytes, more than 0
  int64_t first = 0, last = 0;  // closed range of time
  int64_t offset = 0;           // result
};

struct PackOptions {
  int64_t align = 16;  // of offsets; sizes are rounded up to it
  int64_t search_steps =
      int64_t{1} << 23;  // looks at a placed neighbour that the search after the greedy orders may take
};

struct PackResult {
  int64_t height = 0;             // bytes of the arena
  int64_t bound = 0;              // most bytes alive at one time: no placement is lower
  absl::string_view method = {};  // what found the best placement of the largest part: "size best-fit", "search"
};

// Most bytes alive at one time, with sizes rounded up to `align`.
int64_t LiveBound(absl::Span<const Interval> lives, int64_t align);

// Fills the offsets. Parts of time that no buffer crosses are packed on their own; each by a portfolio of greedy
// orders, then, while above its bound, by moving buffers of the best order.
PackResult Pack(absl::Span<Interval> lives, const PackOptions& options);

}  // namespace agc::memory
