// Executes a graph whose body is storage and steps: nests through the nest evaluator, kernels through the loop
// executor, over one piece of bytes per buffer (loop stage) or over arenas (plan stage).
//   AGC_ASSIGN_OR_RETURN(EvalResult r, Evaluate(program, "step", inputs));   // any stage
// Bytes that hold no value are poison (0xff: NaN) and known to be so, and at the plan stage become so again when the
// last step of a temporary has ended: reading them is an error. So are steps that touch the same bytes, one of them
// writing, between two barriers or within one epoch.
#pragma once
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/eval/graph_eval.h"
#include "ir/eval/kernel_eval.h"
#include "ir/program.h"

namespace agc {

// One step of the entry. Params are given as one value, or one per slot of their ring; each_step outputs are the slice
// that this step writes (slot `run.index`).
absl::StatusOr<EvalResult> EvaluateSteps(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         const KernelOptions& options = {});
// At the tensor and primitive stages EvaluateGraph, else EvaluateSteps.
absl::StatusOr<EvalResult> Evaluate(const Program& program, absl::string_view graph, const EvalInputs& inputs,
                                    const KernelOptions& options = {});

}  // namespace agc
