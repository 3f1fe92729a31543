#include "tools/agc/subject.h"

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/reference.h"
#include "tools/agc/values.h"

namespace agc::tool {

namespace {
// A module with the states alone: what gives them their first values.
Program OnlyStates(const Program& program) {
  Program states;
  states.name = program.name;
  states.states = program.states;
  states.blobs = program.blobs;
  return states;
}
}  // namespace

absl::StatusOr<Subject> SubjectOf(Model model, const rt::Device& device, const Flags& flags, bool evaluated) {
  Subject s;
  s.options = CompileOptionsOf(flags);
  if (model.is_bundle) {
    if (model.bundle.ir_text.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          model.path, " was compiled with --strip: there is nothing to evaluate, check the module instead"));
    }
    AGC_ASSIGN_OR_RETURN(s.program, Parse(model.bundle.ir_text, absl::StrCat(model.path, " (module)")));
    s.bundle = std::move(model.bundle);
    s.options = WithOptionsOf(s.bundle.ir_text, s.options);
  } else {
    AGC_ASSIGN_OR_RETURN(const Target target, ParseTarget(device.target()));
    AGC_ASSIGN_OR_RETURN(s.bundle, CompileModel(model, target, s.options));
    s.program = std::move(model.program);
  }
  if (s.program.stage > Stage::kPrimitive && evaluated) {
    return absl::InvalidArgumentError(absl::StrCat(model.path, ": the module is at stage ", Name(s.program.stage),
                                                   ", one at stage tensor or primitive is needed"));
  }
  const bool lowered = s.program.stage > Stage::kPrimitive;
  AGC_ASSIGN_OR_RETURN(s.reference, ReferenceOf(lowered ? OnlyStates(s.program) : Clone(s.program), s.options));
  return s;
}

absl::StatusOr<Tensors> StartOfStates(const Subject& s, rt::Session& session, const Flags& flags) {
  Tensors states;
  if (s.bundle.has_state_values) {
    AGC_ASSIGN_OR_RETURN(states, ReadStates(session));
  } else {
    AGC_ASSIGN_OR_RETURN(states, InitialStates(s.reference, static_cast<uint64_t>(flags.Count("seed", 0))));
  }
  for (const rt::State& state : session.states()) {
    const HostTensor* t = Find(states, state.name);
    if (state.hidden || (t != nullptr && t->type == TypeOf(state))) continue;
    return absl::DataLossError(absl::StrCat("the module text of the bundle has another state ", state.name));
  }
  AGC_ASSIGN_OR_RETURN(const Tensors given, GivenStates(flags, session.states()));
  for (auto& [name, t] : states) {
    if (const HostTensor* other = Find(given, name); other != nullptr) t = *other;
  }
  return states;
}

}  // namespace agc::tool
