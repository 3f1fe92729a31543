// What holds of every program between passes. Verify looks at the stage and checks what belongs to it; the first thing
// that does not hold is the error, with the location of the op, stage or statement.
//   AGC_RETURN_IF_ERROR(Verify(program));
// tensor, primitive: operands before users, types as inferred, states and outputs known and given once.
// nest, scheduled:   stages read earlier ones; every load and store proven in range by ranges, guards and `if`.
// loop, plan:        variables declared before use, barriers in uniform control flow, register arrays unrolled.
// from nest on:      steps and storage rows refer to what exists.
#pragma once
#include "absl/status/status.h"
#include "ir/program.h"
#include "ir/target.h"

namespace agc {

absl::Status Verify(const Program& program);
absl::Status VerifyGraph(const Graph& graph, const Program& program);  // tensor and primitive
absl::Status VerifyNest(const Nest& nest);
absl::Status VerifyKernel(const Kernel& kernel);
absl::Status VerifyStorage(const Graph& graph, const Program& program);  // nest and later
// Shared memory and invocations within the target's limits; ResourceExhausted otherwise.
absl::Status VerifyLimits(const Kernel& kernel, const Target& target);

// How often each distinct value of a stage is computed on average: windows that overlap compute elements again. 1 where
// no axis pair enters the stage through one sum only.
double RecomputeFactor(const Nest& nest, const NestStage& stage);

struct IndexRange {
  int64_t lo = 0, hi = 0;
};
// The values that `index` takes where all `conditions` hold; lo > hi if they never do.
IndexRange RangeUnder(const ExprPool& pool, ExprId index, absl::Span<const ExprId> conditions);

}  // namespace agc
