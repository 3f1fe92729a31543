// Whether a kernel may write an output over one of its inputs: each element of the input is read only by the invocation
// that writes that element of the output, and before it does. Used by `order`, which prepares for it, and by `alias`,
// which does it.
//   store %y[i] = %x[i] + 1      // may take %x for %y
//   store %y[i] = %x[63 - i]     // may not
#pragma once
#include <cstdint>

#include "absl/types/span.h"
#include "ir/kernel.h"

namespace agc {

// `read` and `written` are parameters. Proves it or says no: every load has the index of a store that follows in the
// same loops, no two iterations of those have it in common, and stores of different indices never meet.
bool ElementRule(const Kernel& kernel, uint32_t read, uint32_t written);

struct ParamPair {
  uint32_t read = 0, written = 0;
};
// The same kernel with each pair as one read_write parameter at the place of `read`. Loads of it are named by a let.
Kernel MergeParams(const Kernel& kernel, absl::Span<const ParamPair> pairs);

}  // namespace agc
