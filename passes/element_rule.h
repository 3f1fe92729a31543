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

// `read` and `written` are parameters. Proves it or says no: one index for all loads and stores, in the same loops, and
// different in every iteration of them.
bool ElementRule(const Kernel& kernel, uint32_t read, uint32_t written);

struct ParamPair {
  uint32_t read = 0, written = 0;
};
// The same kernel with each pair as one read_write parameter at the place of `read`. Loads of it are named by a let.
Kernel MergeParams(const Kernel& kernel, absl::Span<const ParamPair> pairs);

}  // namespace agc
