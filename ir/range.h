// Interval analysis of indices under guards, for verifiers, lowering and schedules.
//   RangeUnder(pool, (2*p + r - 2).id, {InRange(2*p + r - 2, 28).id})   // [0, 27]
#pragma once
#include "absl/types/span.h"
#include "ir/expr.h"

namespace agc {

struct IndexRange {
  int64_t lo = 0, hi = 0;
};
// The values that `index` takes where all `conditions` hold; lo > hi if they never do.
IndexRange RangeUnder(const ExprPool& pool, ExprId index, absl::Span<const ExprId> conditions);
// False where the conditions are known to contradict each other, as i/8 >= 17 and i%8 >= i/8.
bool CanHold(const ExprPool& pool, absl::Span<const ExprId> conditions);

}  // namespace agc
