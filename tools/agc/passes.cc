// agc passes [--markdown|--json]: the table of passes. docs/passes.md is the Markdown form.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "passes/registry.h"
#include "tools/agc/command.h"
#include "tools/agc/flags.h"
#include "tools/agc/json.h"

namespace agc::tool {
namespace {

std::string Leaves(const PassDef& pass) { return pass.result == stages::kSame ? "the same" : ToString(pass.result); }

std::string Markdown() {
  std::string out =
      "# Passes\n\nGenerated from `passes/passes.def` by `agc passes --markdown`; the order is that of the table, the "
      "default pipeline is in\n`compiler/pipeline.cc`.\n\n| pass | accepts stage | leaves stage | what it does "
      "|\n|---|---|---|---|\n";
  for (const PassDef& pass : AllPasses()) {
    absl::StrAppend(&out, "| `", pass.name, "` | ", ToString(pass.accepts), " | ", Leaves(pass), " | ", pass.doc,
                    " |\n");
  }
  return out;
}

std::string AsJson() {
  std::vector<Json> rows;
  for (const PassDef& pass : AllPasses()) {
    std::vector<Json> accepts;
    for (absl::string_view stage : absl::StrSplit(ToString(pass.accepts), ", ")) accepts.push_back(Json::Of(stage));
    rows.push_back(Json::Object({{"name", Json::Of(pass.name)},
                                 {"accepts", Json::List(accepts)},
                                 {"leaves", Json::Of(pass.result == stages::kSame ? "" : ToString(pass.result))},
                                 {"doc", Json::Of(pass.doc)}}));
  }
  return Json::List(rows, /*lines=*/true).text + "\n";
}

std::string Plain() {
  std::string out;
  for (const PassDef& pass : AllPasses()) {
    std::string name(pass.name);
    name.resize(std::max<size_t>(name.size(), 16), ' ');
    absl::StrAppend(&out, name, " ", pass.doc, "\n");
  }
  return out;
}

Usage PassesUsage() {
  return {.command = "passes",
          .summary = "lists the passes",
          .options = {{"markdown", "", "docs/passes.md"}, {"json", "", "for scripts"}},
          .example = "agc passes --json"};
}

absl::StatusOr<int> Run(const Flags& flags) {
  const std::string text = flags.Has("markdown") ? Markdown() : flags.Has("json") ? AsJson() : Plain();
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

int Passes(const std::vector<std::string>& args) { return RunCommand(PassesUsage(), args, Run); }

}  // namespace agc::tool
