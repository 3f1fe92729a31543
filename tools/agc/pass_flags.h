// Options of passes and of their manager, the same for every subcommand that runs passes.
//   Usage{.command = "grad", .operand = "FILE", .options = PassTable()}
//   AGC_ASSIGN_OR_RETURN(PassFlags passes, PassFlagsOf(flags));
#pragma once
#include <vector>

#include "absl/status/statusor.h"
#include "passes/manager.h"
#include "passes/pass.h"
#include "tools/agc/flags.h"

namespace agc::tool {

struct PassFlags {
  PassContext context = {};
  ManagerOptions manager = {};
};

std::vector<Option> PassTable();
// Without --reproducer a reproducer goes to the directory for temporary files.
absl::StatusOr<PassFlags> PassFlagsOf(const Flags& flags);

}  // namespace agc::tool
