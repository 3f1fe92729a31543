#include "ir/eval/plan_eval.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/eval/nest_eval.h"
#include "ir/eval/plan_buffers.h"

namespace agc {
namespace {

absl::StatusOr<EvalResult> EvaluateNests(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         EvalMode mode) {
  std::vector<HostTensor> tensors(graph.buffers.size());
  for (size_t b = 0; b < tensors.size(); ++b) {
    AGC_ASSIGN_OR_RETURN(std::optional<HostTensor> start, StartOf(program, graph.buffers[b], inputs, mode));
    if (RootOf(graph, b) != b) continue;
    if (start.has_value()) {
      tensors[b] = *std::move(start);
    } else {
      tensors[b] = HostTensor::Zeros(EvalType(graph.buffers[b].type, mode));
      std::fill(tensors[b].bytes.begin(), tensors[b].bytes.end(), kPoison);
    }
  }
  const auto at = [&](int32_t b) -> HostTensor& { return tensors[RootOf(graph, static_cast<size_t>(b))]; };
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    const Step& step = graph.steps[s];
    if (step.kind == StepKind::kCopy) {
      at(step.args[1]) = at(step.args[0]);
    } else if (step.kind == StepKind::kRun) {
      std::vector<HostTensor*> args;
      for (int32_t b : step.args) args.push_back(&at(b));
      AGC_RETURN_IF_ERROR(RunNest(program.nests[step.callee], args, mode));
    } else if (step.kind != StepKind::kBarrier) {
      return StepError(step, s, "this kind of step has no place at the nest stage");
    }
  }
  EvalResult result;
  const int64_t run_index = RunIndex(program, inputs);
  for (size_t b = 0; b < tensors.size(); ++b) {
    const Buffer& row = graph.buffers[b];
    if (row.kind == BufferKind::kOutput)
      result.outputs[row.symbol] = Visible(row, at(static_cast<int32_t>(b)), run_index);
    if (row.kind == BufferKind::kState) result.states[row.symbol] = at(static_cast<int32_t>(b));
  }
  return result;
}

}  // namespace

absl::StatusOr<EvalResult> EvaluateSteps(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         const KernelOptions& options) {
  if (program.stage == Stage::kNest || program.stage == Stage::kScheduled)
    return EvaluateNests(program, graph, inputs, options.mode);
  if (program.stage < Stage::kNest) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph @", graph.name, " is at stage ", Name(program.stage), ", it has no steps yet"));
  }
  return EvaluateDispatches(program, graph, inputs, options);
}

absl::StatusOr<EvalResult> Evaluate(const Program& program, absl::string_view graph, const EvalInputs& inputs,
                                    const KernelOptions& options) {
  const Graph* g = program.FindGraph(graph);
  if (g == nullptr) return absl::NotFoundError(absl::StrCat("module @", program.name, " has no graph @", graph));
  return program.stage <= Stage::kPrimitive ? EvaluateGraph(program, *g, inputs, options.mode)
                                            : EvaluateSteps(program, *g, inputs, options);
}

}  // namespace agc
