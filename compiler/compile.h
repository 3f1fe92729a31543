// From a module to a bundle: the default pipeline, GLSL, SPIR-V, and the reflection check of every kernel.
//   AGC_ASSIGN_OR_RETURN(rt::Bundle bundle, CompileProgram(std::move(program), target, {}));
//   std::vector<uint8_t> bytes = WriteBundle(bundle);
#pragma once
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/options.h"
#include "ir/program.h"
#include "ir/target.h"
#include "runtime/format.h"

namespace agc {

// Errors: those of the passes (the user's program or the target's limits), Internal for kernels that do not compile.
absl::StatusOr<rt::Bundle> CompileProgram(Program program, const Target& target, const CompileOptions& options);

// The module at the plan stage, for dumps; `program` may be at any stage before.
absl::StatusOr<Program> LowerToPlan(Program program, const Target& target, const CompileOptions& options);

// Adds the values of all states to a bundle, in the order and layout of bundle.states; hidden states are left 0.
struct StateValue {
  std::string name = {};
  std::vector<uint8_t> bytes = {};  // logical row-major
};
absl::StatusOr<rt::Bundle> WithStates(rt::Bundle bundle, const std::vector<StateValue>& states);

}  // namespace agc
