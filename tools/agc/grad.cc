// agc grad FILE: prints the module after its gradients are expanded, unused values dropped.
#include <cstdio>

#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/flags.h"
#include "tools/agc/model.h"
#include "tools/agc/pass_flags.h"

namespace agc::tool {
namespace {

Usage GradUsage() {
  return {.command = "grad",
          .summary = "prints a module after its gradients are expanded and unused values dropped",
          .operand = "FILE",
          .options = PassTable(),
          .example = "agc grad mlp.agir",
          .details = "FILE may be - for the standard input."};
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(PassFlags passes, PassFlagsOf(flags));
  const std::string file = flags.operand() == "-" ? "<stdin>" : flags.operand();
  AGC_ASSIGN_OR_RETURN(Program program, ReadText(flags.operand()));
  AGC_RETURN_IF_ERROR(RunPipeline(program, {"canonicalize", "cse", "dce", "autograd", "canonicalize", "cse", "dce"},
                                  passes.context, passes.manager));
  const std::string text = Print(program, {.locations = true, .omit_file = file});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

int Grad(const std::vector<std::string>& args) { return RunCommand(GradUsage(), args, Run); }

}  // namespace agc::tool
