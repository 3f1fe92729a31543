#include "tools/agc/pass_flags.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "compiler/compile.h"
#include "ir/base/status.h"
#include "passes/equivalence.h"
#include "tools/agc/model.h"

namespace agc::tool {
namespace {

std::string DefaultReproducer() {
  std::error_code none;
  return (std::filesystem::temp_directory_path(none) / "agc-reproducer.agir").string();
}

// The options that change what passes decide, for the command that reproduces a failure.
std::string ReproducerFlags(const Flags& flags) {
  std::string out;
  for (absl::string_view name : {"target", "abi", "numerics", "precision", "ring"}) {
    if (flags.Has(name)) absl::StrAppend(&out, out.empty() ? "" : " ", "--", name, "=", flags.Text(name));
  }
  for (absl::string_view name : {"no-fuse", "no-reuse", "no-in-place"}) {
    if (flags.Has(name)) absl::StrAppend(&out, out.empty() ? "" : " ", "--", name);
  }
  return out;
}

}  // namespace

std::vector<Option> PassTable() {
  return {{"target", "TARGET", "lavapipe, h200, tiny or a file with a device description; default: tiny"},
          {"abi", "bindings|addresses", "how kernels reach buffers"},
          NumericsOption(),
          PrecisionOption(),
          {"no-fuse", "", "one kernel per op"},
          {"no-reuse", "", "every temporary has bytes of its own"},
          {"no-in-place", "", "no result takes over storage"},
          {"ring", "N", "slots of parameter rings"},
          {"print-changed", "", "print the module on stderr after each pass that changed it"},
          {"dump-dir", "DIR", "write the module after every pass to DIR/<number>-<pass>.agir"},
          {"start-at", "PASS", "leave out the passes before this one"},
          {"stop-after", "PASS", "leave out the passes after this one"},
          {"time", "", "print milliseconds per pass on stderr"},
          {"rewrite-limit", "N", "apply at most N rewrites"},
          {"check-equivalence", "", "evaluate the module before and after each pass"},
          {"no-verify", "", "do not verify between passes"},
          {"reproducer", "FILE", "where the input of a pass that fails internally goes"}};
}

absl::StatusOr<PassFlags> PassFlagsOf(const Flags& flags) {
  PassFlags out;
  Target target;
  if (flags.Has("target")) {
    AGC_ASSIGN_OR_RETURN(target, ReadTarget(flags.Text("target")));
  }
  out.context = ContextOf(target, CompileOptionsOf(flags));
  ManagerOptions& manager = out.manager;
  manager.verify = !flags.Has("no-verify");
  manager.print_changed = flags.Has("print-changed");
  manager.time = flags.Has("time");
  manager.check_equivalence = flags.Has("check-equivalence");
  manager.equivalent = manager.check_equivalence ? SameMeaning : nullptr;
  manager.rewrite_limit = flags.Count("rewrite-limit", manager.rewrite_limit);
  manager.dump_dir = flags.Text("dump-dir");
  manager.start_at = flags.Text("start-at");
  manager.stop_after = flags.Text("stop-after");
  manager.reproducer = flags.Text("reproducer", DefaultReproducer());
  manager.reproducer_flags = ReproducerFlags(flags);
  return out;
}

}  // namespace agc::tool
