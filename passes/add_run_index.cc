// Counts the steps of one Run in the hidden state `run.index`, which scalar parameters and each_step outputs are
// indexed by. The host sets it to 0 before each Run.
//   graph @step(param %lr: f32[]) -> (...) {        ->    state @run.index: u32[] ... in the module, and
//                                                         %n: u32[] = add @run.index, 1
//                                                         update @run.index = %n
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "passes/registry.h"

namespace agc {
namespace {

bool NeedsIndex(const Graph& graph) {
  return std::any_of(graph.params.begin(), graph.params.end(),
                     [](const GraphParam& p) { return p.kind == ParamKind::kParam; }) ||
         std::any_of(graph.outputs.begin(), graph.outputs.end(), [](const Output& o) { return o.each_step; });
}

bool CountsAlready(const Graph& graph) {
  return std::any_of(graph.updates.begin(), graph.updates.end(), [](const Update& u) { return u.state == kRunIndex; });
}

absl::Status AddCounter(const Program& program, Graph& graph) {
  const TensorType type{DType::kU32, {}};
  const OpId index = AppendState(graph, kRunIndex, type, graph.loc);
  auto one = std::make_shared<Literal>();
  one->values.push_back(Scalar::Int(DType::kU32, 1));
  const OpId step = AppendConstant(graph, type, std::move(one), graph.loc);
  AGC_ASSIGN_OR_RETURN(const OpId next, AppendChecked(graph, *FindOp("add"), {index, step}, {}, graph.loc));
  graph.updates.push_back({std::string(kRunIndex), next, graph.loc});
  Canonicalize(graph, program);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> AddRunIndex(Program& program, PassContext&) {
  const StateDef* state = program.FindState(kRunIndex);
  if (state != nullptr && !state->hidden) {
    return ErrorAt(state->loc,
                   absl::StrCat("state ", kRunIndex, ": the name is kept for the step counter; choose another"));
  }
  bool changed = false;
  for (Graph& graph : program.graphs) {
    if (!NeedsIndex(graph) || CountsAlready(graph)) continue;
    if (program.FindState(kRunIndex) == nullptr) {
      program.states.push_back({.name = std::string(kRunIndex), .type = {DType::kU32, {}}, .hidden = true});
    }
    AGC_RETURN_IF_ERROR(AddCounter(program, graph));
    changed = true;
  }
  return changed;
}

}  // namespace agc
