// The meaning of a tensor graph, computed on the host op by op: primitive ops by their own definition (`at`),
// composites by their decomposition.
//   EvalInputs in;  in.params["x"] = x;  in.states["w"] = w;
//   AGC_ASSIGN_OR_RETURN(EvalResult r, EvaluateGraph(program, *program.FindGraph("step"), in, EvalMode::kExact));
//   r.outputs.at("y");  r.states.at("w");
// Errors carry the op's location: InvalidArgument for missing or mistyped inputs, FailedPrecondition for `gradient` ops
// (the autograd pass expands them) and NotFound for a blob's file.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/eval/tensor.h"
#include "ir/program.h"

namespace agc {

// Values by name. States that are not given start at their `init` constant; random ones must be given.
struct EvalInputs {
  std::map<std::string, HostTensor> params = {};  // inputs, residents and params
  std::map<std::string, HostTensor> states = {};
};
struct EvalResult {
  std::map<std::string, HostTensor> outputs = {};
  std::map<std::string, HostTensor> states = {};  // of every state the graph mentions, when the step has ended
};

absl::StatusOr<EvalResult> EvaluateGraph(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         EvalMode mode);

using TensorPtr = std::shared_ptr<const HostTensor>;
// Every op's value, by op and element of its tuple; empty for ops that no root needs.
absl::StatusOr<std::vector<std::vector<TensorPtr>>> EvaluateOps(const Program& program, const Graph& graph,
                                                                const EvalInputs& inputs, EvalMode mode);
// One op's value, or its elements, from its operands' (which must be tensors, in the types that `mode` keeps).
absl::StatusOr<std::vector<TensorPtr>> EvaluateOp(const Graph& graph, const Op& op,
                                                  absl::Span<const TensorPtr> operands, EvalMode mode);

// The tensor given for `name`, checked against `type` and in the form that `mode` keeps. `what`: "input %x".
absl::StatusOr<HostTensor> GivenTensor(const std::map<std::string, HostTensor>& given, const std::string& name,
                                       const TensorType& type, const std::string& what, Loc loc, EvalMode mode);
// The value a state starts with: given, or its init constant.
absl::StatusOr<HostTensor> StartOfState(const Program& program, const std::string& state, const EvalInputs& inputs,
                                        EvalMode mode);

}  // namespace agc
