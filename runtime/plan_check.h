// Proves that a plan is safe to run; knows nothing of how plans are made. The compiler runs it as its last pass, the
// bundle reader on every entry it loads. What holds after CheckPlan(plan).ok():
//   - buffers lie inside their arena at multiples of 16, arguments inside their buffers, group counts are not 0
//   - two buffers share bytes only if their lives are disjoint or one takes over the other (`alias`), and every use of
//   a
//     temporary lies within its life
//   - const, input, resident and param bytes are never written
//   - a step that reads a buffer finds there what was last written to that buffer or to one whose storage it took over;
//     temporaries and outputs were written before, earlier in the plan
//   - between two steps that touch the same bytes, one of them writing, stands a barrier. A barrier is global, and the
//     recording begins with one.
// Parts of a buffer (rows of a concatenation) are arguments with an offset, not buffers of their own.
//   Status s = CheckPlan(entry.plan, {.kernels = &bundle.kernels});
//   // "step 4 (k2_add): reads h bytes [0, 64), which step 3 (k1_mul) writes, without a barrier between them"
#pragma once
#include "runtime/format.h"
#include "runtime/status.h"

namespace agc::rt {

struct PlanCheckOptions {
  const std::vector<Kernel>* kernels = nullptr;  // compares argument count and access with the kernels' parameters
  uint64_t alignment = 16;                       // of buffer offsets and of dispatch arguments within the arena
};

// InvalidArgument naming step, label, buffer and byte range of the first violation.
Status CheckPlan(const FlatPlan& plan, const PlanCheckOptions& options = {});

}  // namespace agc::rt
