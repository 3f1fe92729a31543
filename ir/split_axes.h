// Cutting an axis of a nest in two. A reshape of the result, a group of channels or a stride leaves i / c and i % c in
// a contraction's sides; with i = c * o + p they become o and p, of which a side may mention only one. Then the
// contraction gets rows and columns where it had a batch of single products.
//   %s[i] = contract add over k : %x[i / 4,k] ; %w[i % 4,k]     =>     %s[o,p] = contract add over k : %x[o,k] ;
//   %w[p,k]
#pragma once
#include "ir/nest.h"

namespace agc {

// Cuts the batch axes of contract stage `stage` as long as a part leaves the batch. Returns whether any was.
bool SplitBatchAxes(Nest& nest, size_t stage);

// Cuts the reduction axes of contract stage `stage` where its sides divide them, as the columns of an im2col do: the
// loops over the parts divide nothing, and go through the elements in the same order. Returns whether any was.
bool SplitReductionAxes(Nest& nest, size_t stage);

}  // namespace agc
