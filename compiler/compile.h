// From a module to a bundle: the default pipeline, GLSL, SPIR-V, and the reflection check of every kernel.
//   AGC_ASSIGN_OR_RETURN(rt::Bundle bundle, CompileProgram(std::move(program), target, {}));
//   std::vector<uint8_t> bytes = WriteBundle(bundle);
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/options.h"
#include "ir/program.h"
#include "ir/target.h"
#include "runtime/format.h"

namespace agc {

// Errors: those of the passes (the user's program or the target's limits), Internal for kernels that do not compile.
absl::StatusOr<rt::Bundle> CompileProgram(Program program, const Target& target, const CompileOptions& options);

// What the passes are told for a compile.
PassContext ContextOf(const Target& target, const CompileOptions& options);

// The options that results depend on, where they are not the defaults, as a comment that heads the module text of a
// bundle ("// compiled with --numerics=portable --precision=f16"); and back from such a text.
std::string OptionsComment(const CompileOptions& options);
CompileOptions WithOptionsOf(absl::string_view module_text, CompileOptions options);

// The module at the plan stage, for dumps; `program` may be at any stage before.
absl::StatusOr<Program> LowerToPlan(Program program, const Target& target, const CompileOptions& options);

// Adds the values of all states to a bundle, in the order and layout of bundle.states; hidden states are left 0. Each
// is given once, of its type where one is said, and there are no others.
struct StateValue {
  std::string name = {};
  std::vector<uint8_t> bytes = {};  // logical row-major
  std::optional<rt::DType> dtype = {};
  std::vector<int64_t> dims = {};  // with a dtype
};
absl::StatusOr<rt::Bundle> WithStates(rt::Bundle bundle, const std::vector<StateValue>& states);

}  // namespace agc
