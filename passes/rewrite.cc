// Replaces values by cheaper forms of the same value (passes/rules/algebra.cc, motion.cc).
//   %1: f32[2] = neg %0            ->   %1: f32[2] = sub %x, %0
//   %2: f32[2] = add %x, %1
#include "passes/registry.h"
#include "passes/rules/rules.h"

namespace agc {

absl::StatusOr<bool> Rewrite(Program& program, PassContext& context) {
  return ApplyRules(program, {kAlgebraRules, kMotionRules}, context);
}

}  // namespace agc
