// Flags of passes and of their manager, the same for every subcommand that runs passes.
//   PassFlags flags;
//   AGC_ASSIGN_OR_RETURN(const bool known, ParsePassFlag("--print-changed", flags));   // known
#pragma once
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/manager.h"
#include "passes/pass.h"

namespace agc::tool {

struct PassFlags {
  PassContext context = {};
  ManagerOptions manager = {};
  PassFlags();  // a reproducer goes to the directory for temporary files
};

// Whether `arg` is one of these flags; then it is stored. A bad value is an error.
absl::StatusOr<bool> ParsePassFlag(absl::string_view arg, PassFlags& flags);
// What usage texts say about them.
absl::string_view PassFlagsUsage();

}  // namespace agc::tool
