// The `agc` program: one small file per subcommand, one line in the table below each.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "runtime/format.h"
#include "tools/agc/command.h"

namespace agc::tool {
namespace {

constexpr Command kCommands[] = {
    {"bench", "times a module on a device", Bench},
    {"bisect", "finds the rewrite that changes a result", Bisect},
    {"check", "runs a module on a device and on the host, and compares", Check},
    {"compile", "compiles a module to a bundle", Compile},
    {"devices", "lists the Vulkan devices", Devices},
    {"dump", "shows what is in a module or a bundle", Dump},
    {"eval", "evaluates a graph on the host, at any stage", Eval},
    {"export", "writes a graph as an ONNX model", Export},
    {"grad", "prints a module after its gradients are expanded", Grad},
    {"ops", "lists the operations", Ops},
    {"opt", "runs passes on a module in text and prints it", Opt},
    {"passes", "lists the passes", Passes},
    {"reduce", "cuts a module down to what makes a command fail", Reduce},
    {"run", "runs a bundle or a module on a device", RunModel},
};

int Help(std::FILE* to) {
  std::fprintf(to, "usage: agc COMMAND ...\n\n");
  for (const Command& c : kCommands) {
    std::fprintf(to, "  %-10.*s %.*s\n", static_cast<int>(c.name.size()), c.name.data(),
                 static_cast<int>(c.summary.size()), c.summary.data());
  }
  std::fprintf(to, "\nagc COMMAND --help lists the options. Exit codes: 0 done, 1 the answer is no, 2 refused.\n");
  return to == stdout ? 0 : 2;
}

int Version() {
  std::printf("agc %s, bundles of version %u\n", AGC_VERSION, rt::kBundleVersion);
  return 0;
}

}  // namespace
}  // namespace agc::tool

int main(int argc, char** argv) {
  using namespace agc::tool;  // NOLINT
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  if (args.size() > 1 && args[0] == "help") args = {args[1], "--help"};
  if (!args.empty() && (args[0] == "--help" || args[0] == "-h" || args[0] == "help")) return Help(stdout);
  if (!args.empty() && args[0] == "--version") return Version();
  if (args.empty()) return Help(stderr);
  const std::string name = args[0];
  args.erase(args.begin());
  for (const Command& c : kCommands) {
    if (c.name == name) return c.run(args);
  }
  std::fprintf(stderr, "error: there is no command %s\n", name.c_str());
  return Help(stderr);
}
