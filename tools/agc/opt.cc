// agc opt [--passes=a,b] [flags] FILE|-: parses a module, verifies it, runs the passes and prints what they leave.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/pass_flags.h"

namespace agc::tool {
namespace {

struct OptOptions {
  std::string path = {};
  std::vector<std::string> passes = {};
  PassFlags flags = {};
};

absl::StatusOr<OptOptions> ParseOptions(const std::vector<std::string>& args) {
  OptOptions o;
  std::string value;
  for (const std::string& arg : args) {
    AGC_ASSIGN_OR_RETURN(const bool known, ParsePassFlag(arg, o.flags));
    if (known || arg == "--verify") continue;  // verification is on unless --no-verify says otherwise
    if (Flag(arg, "passes", value)) {
      for (absl::string_view name : absl::StrSplit(value, ',', absl::SkipEmpty())) o.passes.emplace_back(name);
    } else if (arg.size() > 1 && arg[0] == '-') {
      return absl::InvalidArgumentError(absl::StrCat("agc opt: unknown option ", arg));
    } else if (o.path.empty()) {
      o.path = arg;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("agc opt: one file is expected, ", arg, " is a second"));
    }
  }
  if (o.path.empty()) return absl::InvalidArgumentError(absl::StrCat("usage: agc opt [--passes=a,b] [flags] FILE|-\n", PassFlagsUsage()));
  return o;
}

absl::Status Run(const std::vector<std::string>& args) {
  AGC_ASSIGN_OR_RETURN(OptOptions o, ParseOptions(args));
  AGC_ASSIGN_OR_RETURN(const std::string source, ReadInput(o.path));
  const std::string file = o.path == "-" ? "<stdin>" : o.path;
  AGC_ASSIGN_OR_RETURN(Program program, Parse(source, file));
  AGC_RETURN_IF_ERROR(RunPipeline(program, o.passes, o.flags.context, o.flags.manager));
  const std::string text = Print(program, {.locations = true, .omit_file = file});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

int Opt(const std::vector<std::string>& args) {
  const absl::Status status = Run(args);
  return status.ok() ? 0 : Failed(status);
}

}  // namespace agc::tool
