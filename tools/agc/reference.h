// The evaluator's side of `agc check`, and the search for the op that is off.
//   AGC_ASSIGN_OR_RETURN(const Program reference, ReferenceOf(program, {}));    // gradients expanded, nothing else
//   AGC_ASSIGN_OR_RETURN(const EvalResult want, EvaluateGraph(reference, *graph, inputs, EvalMode::kExact));
#pragma once
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/options.h"
#include "ir/eval/graph_eval.h"
#include "ir/program.h"
#include "ir/target.h"
#include "runtime/device.h"
#include "tools/agc/compare.h"
#include "tools/agc/session.h"

namespace agc::tool {

// The module with init and with gradients expanded; composites stay as the user wrote them, but for a precision below
// f32, which is decided on primitives.
absl::StatusOr<Program> ReferenceOf(const Program& program, const CompileOptions& options);
// First values of all states, as the evaluator computes `init`.
absl::StatusOr<Tensors> InitialStates(const Program& reference, uint64_t seed);
EvalInputs InputsOf(const EntryValues& given, const Tensors& states);

// What a run on the device needs.
struct Setting {
  const rt::Device& device;
  Target target = {};
  CompileOptions options = {};
  EntryValues given = {};
  Tensors states = {};
  std::string entry = {};
};
// Outputs, then states as they are after one step on the device; each_step outputs without their first axis.
struct DeviceResult {
  Tensors outputs = {}, states = {};
};
absl::StatusOr<DeviceResult> RunOnDevice(rt::Session& session, const Setting& setting);
absl::StatusOr<DeviceResult> CompileAndRun(const Program& program, const Setting& setting);

struct OffOp {
  std::string op = {}, type = {}, loc = {}, role = {};
  Difference difference = {};
};
// The first op whose value on the device is not what the evaluator makes of its operands' values on the device. Every
// value is an output for this, so that fusion and memory differ from the run that was compared; none may be off.
absl::StatusOr<std::optional<OffOp>> FirstOffOp(const Program& reference, const Setting& setting, const Limits& limits);

}  // namespace agc::tool
