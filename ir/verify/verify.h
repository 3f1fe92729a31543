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
absl::Status VerifyKernelRanges(const Kernel& kernel);  // part of it: declared ranges, and places within extents
absl::Status VerifyStorage(const Graph& graph, const Program& program);  // nest and later
// Every index of the kernel, its loop bounds and constants are held by the 32 bits that GLSL computes them in;
// Unimplemented naming what is not.
absl::Status VerifyIndexBits(const Kernel& kernel);
// Shared memory and invocations within the target's limits; ResourceExhausted otherwise.
absl::Status VerifyLimits(const Kernel& kernel, const Target& target);

}  // namespace agc
