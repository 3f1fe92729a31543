#include "tools/agc/work.h"

#include "compiler/agc.h"
#include "compiler/pipeline.h"
#include "ir/base/status.h"
#include "ir/lowering.h"
#include "passes/groups.h"
#include "passes/manager.h"
#include "passes/schedules/tools.h"

namespace agc::tool {

namespace {
double FlopsOfNest(const Nest& nest) {
  double flops = 0;
  for (const NestStage& stage : nest.stages) {
    if (stage.kind != StageKind::kContract) continue;
    flops += 2.0 * static_cast<double>(Extent(nest, nest.components[stage.first_component].axes)) *
             static_cast<double>(Extent(nest, stage.over));
  }
  return flops;
}
}  // namespace

absl::StatusOr<double> FlopsOf(const Program& program, const Program& reference, const std::string& graph) {
  double flops = 0;
  if (program.stage == Stage::kNest || program.stage == Stage::kScheduled) {
    for (const Step& step : program.FindGraph(graph)->steps) {
      if (step.kind == StepKind::kRun) flops += FlopsOfNest(program.nests[step.callee]);
    }
    return flops;
  }
  if (reference.FindGraph(graph) == nullptr) return 0;  // kernels only
  Program primitives = Clone(reference);
  PassContext context;
  AGC_RETURN_IF_ERROR(
      RunPipeline(primitives, DefaultPipeline(primitives.stage), context, {.stop_after = "add-run-index"}));
  const Graph& g = *primitives.FindGraph(graph);
  for (size_t i = 0; i < g.ops.size(); ++i) {
    const OpId id{static_cast<uint32_t>(i)};
    if (!IsComputed(g.op(id))) continue;
    AGC_ASSIGN_OR_RETURN(LoweredNest low, LowerToNest(g, {{id, 0}}, [&](OpId other) { return other == id; }));
    FormContractions(low.nest);
    flops += FlopsOfNest(low.nest);
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
