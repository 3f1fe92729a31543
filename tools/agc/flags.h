// Options of a subcommand: one table that parsing, --help and messages share.
//   const Usage kUsage = {.command = "devices", .summary = "lists the Vulkan devices", .options = {{"json", "",
//   "..."}}}; int Devices(const Args& args) { return RunCommand(kUsage, args, [](const Flags& flags) { ... }); }
// --name=VALUE and --name VALUE mean the same; one-letter options are -o FILE or -oFILE.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace agc::tool {

using Args = std::vector<std::string>;

struct Option {
  absl::string_view name = {};
  // What follows; parsing checks it by its form: "" nothing, "N" a count, "R" a number, "a|b" one of these,
  // "NAME=..." a pair, "[...]" may be left out, anything else is text.
  absl::string_view value = {};
  absl::string_view doc = {};
};

struct Usage {
  absl::string_view command = {};
  absl::string_view summary = {};
  absl::string_view operand = {};  // "MODEL"; empty: none; "[FILE]": may be left out
  std::vector<Option> options = {};
  absl::string_view example = {};
  absl::string_view details = {};  // further lines of --help
};

// What was given, in order. Options that were not given have the fallback.
class Flags {
 public:
  bool Has(absl::string_view name) const;
  std::string Text(absl::string_view name, absl::string_view fallback = "") const;  // the last one given
  int64_t Count(absl::string_view name, int64_t fallback) const;
  double Number(absl::string_view name, double fallback) const;
  std::vector<std::pair<std::string, std::string>> Named(absl::string_view name) const;  // no name twice
  const std::string& operand() const { return operand_; }

 private:
  friend absl::StatusOr<Flags> ParseFlags(const Usage& usage, const Args& args);
  absl::Status Add(const Usage& usage, const Option& option, std::string value);
  std::vector<std::pair<std::string, std::string>> values_ = {};
  std::string operand_ = {};
};

// InvalidArgument for what the table does not have, naming what it has.
absl::StatusOr<Flags> ParseFlags(const Usage& usage, const Args& args);
std::string HelpText(const Usage& usage);

// Prints the help if it is asked for, else parses and runs `body`, which returns the exit code. Errors are printed; 2.
int RunCommand(const Usage& usage, const Args& args, absl::StatusOr<int> (*body)(const Flags& flags));

// Several tables, one after the other.
std::vector<Option> Join(const std::vector<std::vector<Option>>& tables);

}  // namespace agc::tool
