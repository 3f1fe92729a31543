// The rows of a graph's storage table as evaluators see them: what they hold before the first step, and what of them is
// shown afterwards. Shared by the evaluators of the nest, loop and plan stages.
#pragma once
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/eval/graph_eval.h"
#include "ir/eval/kernel_eval.h"
#include "ir/program.h"

namespace agc {

inline constexpr uint8_t kPoison = 0xff;  // bytes that hold no value: NaN in every float dtype

// What a buffer holds before the first step, in its logical type; nothing for those that steps fill.
absl::StatusOr<std::optional<HostTensor>> StartOf(const Program& program, const Buffer& row, const EvalInputs& inputs,
                                                  EvalMode mode);
// The slice of an each_step output that this step wrote; other values as they are.
HostTensor Visible(const Buffer& row, HostTensor value, int64_t run_index);
// The step's number in this run: the state `run.index`.
int64_t RunIndex(const Program& program, const EvalInputs& inputs);
// The buffer whose storage `buffer` lies in, at the end of its chain of aliases.
size_t RootOf(const Graph& graph, size_t buffer);
absl::Status StepError(const Step& step, size_t number, absl::string_view message,
                       absl::StatusCode code = absl::StatusCode::kInternal);

// A graph of the loop or plan stage.
absl::StatusOr<EvalResult> EvaluateDispatches(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                              const KernelOptions& options);

}  // namespace agc
