// agc opt FILE: parses a module, verifies it, runs the passes and prints what they leave.
#include <cstdio>

#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/flags.h"
#include "tools/agc/model.h"
#include "tools/agc/pass_flags.h"

namespace agc::tool {
namespace {

Usage OptUsage() {
  return {.command = "opt",
          .summary = "parses a module, verifies it, runs passes and prints what they leave",
          .operand = "FILE",
          .options = Join({{{"passes", "LIST", "names of passes, with commas; `agc passes` lists them"}}, PassTable()}),
          .example = "agc opt --passes=canonicalize,cse,dce mlp.agir",
          .details = "FILE may be - for the standard input."};
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(PassFlags passes, PassFlagsOf(flags));
  const std::vector<std::string> names = absl::StrSplit(flags.Text("passes"), ',', absl::SkipEmpty());
  const std::string file = flags.operand() == "-" ? "<stdin>" : flags.operand();
  AGC_ASSIGN_OR_RETURN(Program program, ReadText(flags.operand()));
  AGC_RETURN_IF_ERROR(RunPipeline(program, names, passes.context, passes.manager));
  const std::string text = Print(program, {.locations = true, .omit_file = file});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

int Opt(const std::vector<std::string>& args) { return RunCommand(OptUsage(), args, Run); }

}  // namespace agc::tool
