// apply-schedule: scheduled -> loop. Every nest becomes the loop trees that its family builds, every `run` step the
// dispatches of those kernels, with scratch buffers where the family asks for them.
//   run @k0_exp(%x) -> (%y)   =>   dispatch @k0_exp groups [4, 1, 1] (%x, %y)
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"
#include "passes/pass.h"
#include "passes/schedules/family.h"

namespace agc {
namespace {

// A kernel that no bundle could run is refused here, by name.
absl::Status CheckLimits(const Kernel& kernel, const PassContext& context) {
  AGC_RETURN_IF_ERROR(VerifyLimits(kernel, context.target));
  const auto params = static_cast<int64_t>(kernel.params.size());
  const bool bindings = context.abi == BufferAbi::kBindings;
  const int64_t most = bindings ? context.target.storage_buffers : context.target.push_constant_bytes / 8;
  if (params <= most) return absl::OkStatus();
  return ErrorAt(kernel.loc,
                 absl::StrCat(kernel.name, ": ", params, " buffers are needed, ", context.target.name, " allows ", most,
                              bindings ? " bindings" : " addresses in push constants"),
                 absl::StatusCode::kResourceExhausted);
}

// Replaces one run step by the dispatches of its nest.
absl::Status Apply(Program& program, Graph& graph, const Step& run, const PassContext& context,
                   std::vector<Step>& steps) {
  const Nest& nest = program.nests[run.callee];
  AGC_RETURN_IF_ERROR(CheckSchedule(nest, context.target, context.numerics));
  const ScheduleFamily* family = FindFamily(nest.schedule.family);
  AGC_ASSIGN_OR_RETURN(Built built, family->build(nest, context.target));
  std::vector<int32_t> scratch;
  for (ScratchBuffer& s : built.scratch) {
    Buffer row{.name = absl::StrCat(nest.name, ".", s.name),
               .type = s.type,
               .kind = s.counter ? BufferKind::kCounter : BufferKind::kScratch,
               .stored = s.type.dtype,
               .loc = nest.loc};
    scratch.push_back(static_cast<int32_t>(graph.buffers.size()));
    graph.buffers.push_back(std::move(row));
  }
  for (BuiltKernel& k : built.kernels) {
    AGC_RETURN_IF_ERROR(CheckLimits(k.kernel, context));
    Step step{.kind = StepKind::kDispatch,
              .callee = static_cast<uint32_t>(program.kernels.size()),
              .groups = k.kernel.groups()};
    step.label = k.kernel.name;
    if (context.numerics != Numerics::kRepeatable) k.kernel.precise = context.numerics == Numerics::kPortable;
    step.origin = run.origin;
    for (int32_t arg : k.args) step.args.push_back(arg >= 0 ? run.args[arg] : scratch[-1 - arg]);
    for (size_t i = 0; i < step.args.size(); ++i) k.kernel.params[i].stored = graph.buffers[step.args[i]].stored;
    program.kernels.push_back(std::move(k.kernel));
    steps.push_back(std::move(step));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ApplySchedule(Program& program, PassContext& context) {
  for (Graph& graph : program.graphs) {
    std::vector<Step> steps;
    for (const Step& step : graph.steps) {
      if (step.kind != StepKind::kRun) {
        steps.push_back(step);
      } else {
        AGC_RETURN_IF_ERROR(Apply(program, graph, step, context, steps));
      }
    }
    graph.steps = std::move(steps);
  }
  program.nests.clear();
  program.stage = Stage::kLoop;
  return true;
}

}  // namespace agc
