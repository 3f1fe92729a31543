// Drops ops that no output and no update reaches. Parameters stay: they are the graph's signature.
//   %0: f32[2] = exp %x          ->   %0: f32[2] = neg %x
//   %1: f32[2] = neg %x               output %y = %0
//   output %y = %1
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/registry.h"

namespace agc {
namespace {

bool DropDead(Graph& graph) {
  std::vector<bool> keep(graph.ops.size());
  for (const GraphParam& p : graph.params) keep[p.op.index] = true;
  for (const Output& out : graph.outputs) keep[out.value.index] = true;
  for (const Update& update : graph.updates) keep[update.value.index] = true;
  bool all = true, seen = false;
  for (size_t i = graph.ops.size(); i-- > 0;) {  // users come after operands
    all &= keep[i];
    seen |= !keep[i] && graph.ops[i].def != &StateOp();  // reads of states have no line of their own
    if (!keep[i]) continue;
    for (OpId id : graph.ops[i].operands) keep[id.index] = true;
  }
  if (!all) Erase(graph, keep);
  return seen;
}

}  // namespace

absl::StatusOr<bool> Dce(Program& program, PassContext&) {
  bool changed = false;
  for (Graph& graph : program.graphs) changed |= DropDead(graph);
  return changed;
}

}  // namespace agc
