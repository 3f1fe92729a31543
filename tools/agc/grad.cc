// agc grad FILE|-: prints the module after its gradients are expanded, unused values dropped.
#include <cstdio>

#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/pass_flags.h"

namespace agc::tool {
namespace {

absl::Status Run(const std::vector<std::string>& args) {
  PassFlags flags;
  std::string path;
  for (const std::string& arg : args) {
    AGC_ASSIGN_OR_RETURN(const bool known, ParsePassFlag(arg, flags));
    if (known) continue;
    if (!path.empty() || (arg.size() > 1 && arg[0] == '-')) return absl::InvalidArgumentError("usage: agc grad FILE|-");
    path = arg;
  }
  if (path.empty()) return absl::InvalidArgumentError("usage: agc grad FILE|-");
  AGC_ASSIGN_OR_RETURN(const std::string source, ReadInput(path));
  const std::string file = path == "-" ? "<stdin>" : path;
  AGC_ASSIGN_OR_RETURN(Program program, Parse(source, file));
  AGC_RETURN_IF_ERROR(RunPipeline(program, {"canonicalize", "cse", "dce", "autograd", "canonicalize", "cse", "dce"},
                                  flags.context, flags.manager));
  const std::string text = Print(program, {.locations = true, .omit_file = file});
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

int Grad(const std::vector<std::string>& args) {
  const absl::Status status = Run(args);
  return status.ok() ? 0 : Failed(status);
}

}  // namespace agc::tool
