// What check and bench run: a module as written, as the evaluator takes it, and compiled for the device.
//   AGC_ASSIGN_OR_RETURN(const Subject subject, SubjectOf(std::move(model), device, flags));
#pragma once
#include "absl/status/statusor.h"
#include "ir/program.h"
#include "runtime/device.h"
#include "runtime/format.h"
#include "tools/agc/flags.h"
#include "tools/agc/model.h"
#include "tools/agc/session.h"

namespace agc::tool {

struct Subject {
  Program program = {};  // as written
  Program reference = {};
  rt::Bundle bundle = {};
  CompileOptions options = {};  // the bundle's own, where it was read from a file
};

// Errors: a bundle without module text, where `evaluated` a module beyond stage primitive, and those of compiling. The
// reference of such a module has its states alone.
absl::StatusOr<Subject> SubjectOf(Model model, const rt::Device& device, const Flags& flags, bool evaluated = true);
// States start from the bundle's values or the evaluator's init, then --state.
absl::StatusOr<Tensors> StartOfStates(const Subject& s, rt::Session& session, const Flags& flags);

}  // namespace agc::tool
