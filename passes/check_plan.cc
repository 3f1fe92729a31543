// Proves every graph's plan with the checker that the runtime uses on loading (runtime/plan_check.h), which shares no
// code with the passes that made it, and that states lie at the same bytes in all graphs. Changes nothing.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/flat_plan.h"
#include "passes/registry.h"
#include "runtime/plan_check.h"

namespace agc {
namespace {

absl::Status CheckStates(const Program& program) {
  std::vector<int64_t> offsets(program.states.size(), -1);
  for (const Graph& graph : program.graphs) {
    for (const Buffer& b : graph.buffers) {
      const int state = b.kind == BufferKind::kState ? program.StateIndex(b.symbol) : -1;
      if (state < 0) continue;
      if (offsets[state] >= 0 && offsets[state] != b.offset) {
        return absl::InternalError(absl::StrCat("graph @", graph.name, ": state @", b.symbol, " lies at byte ",
                                                b.offset, ", in another graph at ", offsets[state]));
      }
      offsets[state] = b.offset;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> CheckPlan(Program& program, PassContext& context) {
  AGC_RETURN_IF_ERROR(CheckStates(program));
  for (const Graph& graph : program.graphs) {
    AGC_ASSIGN_OR_RETURN(const rt::FlatPlan plan, FillFlatPlan(program, graph));
    const rt::Status status = rt::CheckPlan(plan, {.alignment = static_cast<uint64_t>(PlanAlignment(context.target))});
    if (!status.ok()) return absl::InternalError(absl::StrCat("graph @", graph.name, ": ", status.message()));
  }
  return false;
}

}  // namespace agc
