// The plan stage as the runtime knows it: rt::FlatPlan of runtime/format.h, for check-plan and for the bundle writer.
//   AGC_ASSIGN_OR_RETURN(rt::FlatPlan plan, FillFlatPlan(program, graph));   // buffers keep their numbers
#pragma once
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "ir/target.h"
#include "runtime/format.h"

namespace agc {

// Buffer i of the plan is buffer i of the graph; kernels are numbered as in program.kernels. Internal errors: buffers
// without a place, arguments that do not fit the kernel, group counts that do not fit 32 bits.
absl::StatusOr<rt::FlatPlan> FillFlatPlan(const Program& program, const Graph& graph);

// Byte offsets of all states, in the order of Program::states, in arena 0, which is the same in every graph. `bytes` is
// what the states take; counters of a graph follow them, and Graph::arena_sizes[0] is the size of the whole. Counters
// must be 0 before the first run.
struct StateLayout {
  std::vector<int64_t> offsets = {};
  int64_t bytes = 0;
};
StateLayout LayoutStates(const Program& program, const Target& target);

// Contents of arena 2, which is one for the whole module: what const buffers hold, at their offsets.
std::vector<uint8_t> ConstantBytes(const Program& program);

// Alignment of every offset: what the target asks of bindings, at least 16.
int64_t PlanAlignment(const Target& target);

}  // namespace agc
