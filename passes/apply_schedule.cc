// apply-schedule: scheduled -> loop. Every nest becomes the loop trees that its family builds, every `run` step the
// dispatches of those kernels, with scratch buffers where the family asks for them. Nests that are equal but for names,
// on buffers of equal storage, share their kernels: every later pass has less to do.
//   run @k0_exp(%x) -> (%y)   =>   dispatch @k0_exp groups [4, 1, 1] (%x, %y)
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
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

// What a nest was built to, for all equal ones.
struct Shared {
  std::vector<ScratchBuffer> scratch = {};
  std::vector<uint32_t> kernels = {};           // of the program
  std::vector<std::vector<int32_t>> args = {};  // by kernel, as in BuiltKernel
};

class Applier {
 public:
  Applier(Program& program, const PassContext& context) : program_(program), context_(context) {}

  // Replaces one run step by the dispatches of its nest.
  absl::Status Apply(Graph& graph, const Step& run, std::vector<Step>& steps) {
    const Nest& nest = program_.nests[run.callee];
    const auto [it, fresh] = built_.try_emplace(KeyOf(graph, run));
    if (fresh) AGC_RETURN_IF_ERROR(Build(graph, run, it->second));
    const Shared& shared = it->second;
    std::vector<int32_t> scratch;
    for (const ScratchBuffer& s : shared.scratch) {
      Buffer row{.name = absl::StrCat(nest.name, ".", s.name),
                 .type = s.type,
                 .kind = s.counter ? BufferKind::kCounter : BufferKind::kScratch,
                 .stored = s.type.dtype,
                 .loc = nest.loc};
      scratch.push_back(static_cast<int32_t>(graph.buffers.size()));
      graph.buffers.push_back(std::move(row));
    }
    for (size_t k = 0; k < shared.kernels.size(); ++k) {
      const Kernel& kernel = program_.kernels[shared.kernels[k]];
      Step step{.kind = StepKind::kDispatch, .callee = shared.kernels[k], .groups = kernel.groups()};
      step.label = kernel.name;
      step.origin = run.origin;
      for (int32_t arg : shared.args[k]) step.args.push_back(arg >= 0 ? run.args[arg] : scratch[-1 - arg]);
      steps.push_back(std::move(step));
    }
    return absl::OkStatus();
  }

 private:
  // The nest's text without names, and how its arguments are stored.
  std::string KeyOf(const Graph& graph, const Step& run) const {
    std::string key = Print(program_.nests[run.callee], {.labels = false, .names = false});
    for (int32_t b : run.args) {
      const Buffer& buffer = graph.buffers[b];
      absl::StrAppend(&key, Name(buffer.stored));
      for (int64_t axis : buffer.order) absl::StrAppend(&key, " ", axis);
      for (int64_t pad : buffer.pad) absl::StrAppend(&key, "+", pad);
      absl::StrAppend(&key, ";");
    }
    return key;
  }

  absl::Status Build(const Graph& graph, const Step& run, Shared& shared) {
    const Nest& nest = program_.nests[run.callee];
    AGC_RETURN_IF_ERROR(CheckSchedule(nest, context_.target, context_.numerics));
    AGC_ASSIGN_OR_RETURN(Built built, FindFamily(nest.schedule.family)->build(nest, context_.target));
    for (BuiltKernel& k : built.kernels) {
      AGC_RETURN_IF_ERROR(CheckLimits(k.kernel, context_));
      if (context_.numerics != Numerics::kRepeatable) k.kernel.precise = context_.numerics == Numerics::kPortable;
      for (size_t i = 0; i < k.args.size(); ++i) {
        const int32_t arg = k.args[i];
        k.kernel.params[i].stored = arg >= 0 ? graph.buffers[run.args[arg]].stored : built.scratch[-1 - arg].type.dtype;
      }
      shared.kernels.push_back(static_cast<uint32_t>(program_.kernels.size()));
      shared.args.push_back(std::move(k.args));
      program_.kernels.push_back(std::move(k.kernel));
    }
    shared.scratch = std::move(built.scratch);
    return absl::OkStatus();
  }

  Program& program_;
  const PassContext& context_;
  std::map<std::string, Shared> built_ = {};  // by key
};

}  // namespace

absl::StatusOr<bool> ApplySchedule(Program& program, PassContext& context) {
  Applier applier(program, context);
  for (Graph& graph : program.graphs) {
    std::vector<Step> steps;
    for (const Step& step : graph.steps) {
      if (step.kind != StepKind::kRun) {
        steps.push_back(step);
      } else {
        AGC_RETURN_IF_ERROR(applier.Apply(graph, step, steps));
      }
    }
    graph.steps = std::move(steps);
  }
  program.nests.clear();
  program.stage = Stage::kLoop;
  return true;
}

}  // namespace agc
