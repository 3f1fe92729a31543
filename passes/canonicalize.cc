// Brings graphs into canonical form: values in the order of a walk from the roots, arithmetic that changes nothing
// removed, constants folded up to 64 KiB, values without elements replaced by splats. The rules are in passes/rules/.
//   %1: f32[] = constant splat(0)            ->   output %y = %0
//   %2: f32[2] = broadcast %1 {shape = [2]}
//   %3: f32[2] = add %0, %2
//   output %y = %3
#include "passes/registry.h"
#include "passes/rules/rules.h"

namespace agc {

absl::StatusOr<bool> Canonicalize(Program& program, PassContext& context) {
  bool moved = false;
  for (Graph& graph : program.graphs) moved |= Canonicalize(graph, program);
  const absl::StatusOr<bool> rewritten = ApplyRules(program, {kFoldRules, kIdentityRules, kViewRules}, context);
  if (!rewritten.ok()) return rewritten;
  return moved || *rewritten;
}

}  // namespace agc
