#include "tools/agc/pass_flags.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/equivalence.h"
#include "tools/agc/command.h"

namespace agc::tool {
namespace {

// A built-in target by name, else a file.
absl::Status SetTarget(const std::string& value, PassFlags& flags) {
  const absl::StatusOr<Target> fake = FakeTarget(value);
  if (fake.ok()) {
    flags.context.target = *fake;
    return absl::OkStatus();
  }
  AGC_ASSIGN_OR_RETURN(const std::string text, ReadInput(value));
  AGC_ASSIGN_OR_RETURN(flags.context.target, ParseTarget(text));
  return absl::OkStatus();
}

absl::Status SetAbi(const std::string& value, PassFlags& flags) {
  if (value != "bindings" && value != "addresses") {
    return absl::InvalidArgumentError(absl::StrCat("--abi is ", value, ", expected bindings or addresses"));
  }
  flags.context.abi = value == "bindings" ? BufferAbi::kBindings : BufferAbi::kAddresses;
  return absl::OkStatus();
}

absl::Status SetCount(absl::string_view name, const std::string& value, int64_t& count) {
  if (absl::SimpleAtoi(value, &count) && count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", name, " is ", value, ", expected a count"));
}

bool SetSwitch(absl::string_view arg, PassFlags& flags) {
  if (arg == "--print-changed") return flags.manager.print_changed = true;
  if (arg == "--time") return flags.manager.time = true;
  if (arg == "--no-verify") return !(flags.manager.verify = false);
  if (arg == "--no-fuse") return !(flags.context.fuse = false);
  if (arg == "--no-reuse") return !(flags.context.reuse_memory = false);
  if (arg == "--no-in-place") return !(flags.context.in_place = false);
  if (arg != "--check-equivalence") return false;
  flags.manager.equivalent = SameMeaning;
  return flags.manager.check_equivalence = true;
}

}  // namespace

PassFlags::PassFlags() {
  std::error_code none;
  manager.reproducer = (std::filesystem::temp_directory_path(none) / "agc-reproducer.agir").string();
}

absl::StatusOr<bool> ParsePassFlag(absl::string_view arg, PassFlags& flags) {
  std::string value;
  absl::Status status;
  if (Flag(arg, "dump-dir", flags.manager.dump_dir) || Flag(arg, "start-at", flags.manager.start_at) ||
      Flag(arg, "stop-after", flags.manager.stop_after) || Flag(arg, "reproducer", flags.manager.reproducer)) {
    return true;
  }
  if (SetSwitch(arg, flags)) {
    // stored
  } else if (Flag(arg, "target", value)) {
    status = SetTarget(value, flags);
  } else if (Flag(arg, "abi", value)) {
    status = SetAbi(value, flags);
  } else if (Flag(arg, "ring", value)) {
    status = SetCount("ring", value, flags.context.ring);
  } else if (Flag(arg, "rewrite-limit", value)) {
    status = SetCount("rewrite-limit", value, flags.manager.rewrite_limit);
  } else {
    return false;
  }
  if (!status.ok()) return status;
  if (arg.substr(0, 9) == "--target=" || arg.substr(0, 6) == "--abi=" || arg.substr(0, 5) == "--no-") {
    absl::StrAppend(&flags.manager.reproducer_flags, flags.manager.reproducer_flags.empty() ? "" : " ", arg);
  }
  return true;
}

absl::string_view PassFlagsUsage() {
  return "  --target=NAME|FILE     device description: lavapipe, h200, tiny or a file\n"
         "  --abi=bindings|addresses\n"
         "  --no-fuse, --no-reuse, --no-in-place\n"
         "  --ring=N               slots of parameter rings\n"
         "  --print-changed        print the module after each pass that changed it\n"
         "  --dump-dir=DIR         write the module after every pass to DIR/<number>-<pass>.agir\n"
         "  --start-at=PASS, --stop-after=PASS\n"
         "  --time                 milliseconds per pass\n"
         "  --rewrite-limit=N      apply at most N rewrites\n"
         "  --check-equivalence    evaluate before and after each pass\n"
         "  --no-verify            do not verify between passes\n"
         "  --reproducer=FILE      where the input of a pass that fails internally goes\n";
}

}  // namespace agc::tool
