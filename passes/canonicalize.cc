// Brings graphs into canonical form: values in the order of a walk from the roots, arithmetic that changes nothing
// removed, constants folded up to 64 KiB, values without elements replaced by splats. The rules are in passes/rules/.
//   %1: f32[] = constant splat(0)            ->   output %y = %0
//   %2: f32[2] = broadcast %1 {shape = [2]}
//   %3: f32[2] = add %0, %2
//   output %y = %3
#include <utility>

#include "ir/text/text.h"
#include "passes/registry.h"
#include "passes/rules/rules.h"

namespace agc {
namespace {

// Whether the order that text shows changed: `input` and `state` ops have no line of their own.
bool Reorder(Graph& graph, const Program& program) {
  Graph ordered = graph;
  if (!Canonicalize(ordered, program)) return false;
  const bool shown = Print(ordered, program) != Print(graph, program);
  graph = std::move(ordered);
  return shown;
}

}  // namespace

absl::StatusOr<bool> Canonicalize(Program& program, PassContext& context) {
  bool moved = false;
  for (Graph& graph : program.graphs) moved |= Reorder(graph, program);
  const bool portable = context.numerics == Numerics::kPortable;
  const absl::StatusOr<bool> rewritten =
      portable ? ApplyRules(program, {kPortableFoldRules, kIdentityRules, kViewRules}, context)
               : ApplyRules(program, {kFoldRules, kZeroRules, kIdentityRules, kViewRules}, context);
  if (!rewritten.ok()) return rewritten;
  return moved || *rewritten;
}

}  // namespace agc
