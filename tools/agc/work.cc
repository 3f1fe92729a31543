#include "tools/agc/work.h"

#include "compiler/agc.h"
#include "compiler/pipeline.h"
#include "ir/base/status.h"
#include "ir/lowering.h"
#include "passes/groups.h"
#include "passes/manager.h"
#include "passes/schedules/tools.h"

namespace agc::tool {

absl::StatusOr<double> FlopsOf(const Program& program, const std::string& graph) {
  Program primitives = Clone(program);
  PassContext context;
  AGC_RETURN_IF_ERROR(
      RunPipeline(primitives, DefaultPipeline(primitives.stage), context, {.stop_after = "add-run-index"}));
  double flops = 0;
  const Graph& g = *primitives.FindGraph(graph);
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const OpId id{static_cast<uint32_t>(i)};
    if (!IsComputed(g.op(id))) continue;
    AGC_ASSIGN_OR_RETURN(LoweredNest low, LowerToNest(g, {{id, 0}}, [&](OpId other) { return other == id; }));
    FormContractions(low.nest);
    for (const NestStage& stage : low.nest.stages) {
      if (stage.kind != StageKind::kContract) continue;
      flops += 2.0 * static_cast<double>(Extent(low.nest, low.nest.components[stage.first_component].axes)) *
               static_cast<double>(Extent(low.nest, stage.over));
    }
  }
  return flops;
}

double BytesOf(const rt::FlatStep& step) {
  double bytes = 0;
  for (const rt::FlatArg& a : step.args) {
    const bool both = a.access == rt::Access::kReadWrite;
    bytes += static_cast<double>(a.size) * (both ? 2 : 1);
  }
  return bytes;
}

}  // namespace agc::tool
