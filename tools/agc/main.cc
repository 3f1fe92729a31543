// The `agc` program: one small file per subcommand, one line in the table below each.
#include <cstdio>
#include <vector>

#include "absl/strings/string_view.h"
#include "tools/agc/command.h"

namespace agc::tool {
namespace {

constexpr Command kCommands[] = {
    {"eval", "evaluates a graph on the host, at any stage", Eval},
    {"grad", "prints a module after its gradients are expanded", Grad},
    {"ops", "lists the operations", Ops},
    {"opt", "runs passes on a module in text and prints it", Opt},
    {"passes", "lists the passes", Passes},
};

int Usage(std::FILE* to) {
  std::fprintf(to, "usage: agc COMMAND ...\n");
  for (const Command& c : kCommands) {
    std::fprintf(to, "  %-10.*s %.*s\n", static_cast<int>(c.name.size()), c.name.data(),
                 static_cast<int>(c.summary.size()), c.summary.data());
  }
  return to == stdout ? 0 : 2;
}

}  // namespace
}  // namespace agc::tool

int main(int argc, char** argv) {
  using namespace agc::tool;  // NOLINT
  const absl::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "help") return Usage(stdout);
  for (const Command& c : kCommands) {
    if (c.name == name) return c.run({argv + 2, argv + argc});
  }
  if (!name.empty()) std::fprintf(stderr, "error: unknown command %s\n", argv[1]);
  return Usage(stderr);
}
