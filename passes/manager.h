// Runs passes by name, with the program verified between them.
//   PassContext context;
//   AGC_RETURN_IF_ERROR(RunPipeline(program, {"canonicalize", "cse", "dce"}, context, {.print_changed = true}));
// A pipeline whose stages do not chain is refused before anything runs. An internal error (a pass that breaks the IR,
// reports a wrong `changed` flag or aborts) leaves the IR it was given and the command that reproduces it in a file.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "passes/pass.h"
#include "passes/registry.h"

namespace agc {

struct ManagerOptions {
  bool verify = true;              // verify before and after each pass
  bool compare = true;             // with verify: compare the text of before and after with the returned flag
  bool print_changed = false;      // print the module after each pass that changed it
  bool time = false;               // print milliseconds per pass
  bool check_equivalence = false;  // compare the program before and after each pass by `equivalent`
  int64_t rewrite_limit = -1;      // rewrites all passes together may apply; negative: any number
  std::string dump_dir = {};       // where every module goes, as <number>-<pass>.agir; must exist
  std::string start_at = {};       // skip the passes before this one (the program is text dumped there)
  std::string stop_after = {};
  std::string reproducer = {};        // file for the input of a pass that failed internally; empty: none
  std::string reproducer_flags = {};  // further flags of the command that reproduces it
  std::FILE* log = stderr;            // where print_changed and time write
  // Says whether two programs compute the same; set by whoever can evaluate. Not called where null.
  absl::Status (*equivalent)(const Program& before, const Program& after) = nullptr;
};

// Runs `names` in order. Errors are InvalidArgument for an unknown pass or stages that do not chain, the pass's own
// status for what the pass refuses, and Internal, naming the pass, for broken invariants.
absl::Status RunPipeline(Program& program, absl::Span<const std::string> names, PassContext& context,
                         const ManagerOptions& options = {});

// The same for table rows, which tests make up.
absl::Status RunPasses(Program& program, absl::Span<const PassDef* const> passes, PassContext& context,
                       const ManagerOptions& options = {});

// Whether `names` chain from `stage`; the error names the pass, what it accepts and what it would get.
absl::Status CheckChain(absl::Span<const std::string> names, Stage stage);

}  // namespace agc
