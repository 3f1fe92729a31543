#include "tools/agc/flags.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "tools/agc/command.h"

namespace agc::tool {
namespace {

std::string Dashed(absl::string_view name) { return absl::StrCat(name.size() == 1 ? "-" : "--", name); }

absl::Status Refuse(const Usage& usage, absl::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("agc ", usage.command, ": ", message, "\nnote: agc ", usage.command, " --help lists the options"));
}

const Option* Find(const Usage& usage, absl::string_view name) {
  for (const Option& o : usage.options) {
    if (o.name == name) return &o;
  }
  return nullptr;
}

bool MayBeLeftOut(const Option& o) { return absl::StartsWith(o.value, "["); }

// How the option reads in usage texts: "--input NAME=FILE", "--glsl[=KERNEL]".
std::string Spelled(const Option& o) {
  if (o.value.empty() || MayBeLeftOut(o)) return absl::StrCat(Dashed(o.name), o.value);
  return absl::StrCat(Dashed(o.name), " ", o.value);
}

// NAME and value of NAME=VALUE. A name in quotes may hold any sign, as in text: "a=b"=1.5.
std::pair<std::string, std::string> Pair(const std::string& text) {
  const size_t quote = absl::StartsWith(text, "\"") ? text.find("\"=", 1) : std::string::npos;
  if (quote != std::string::npos) return {text.substr(1, quote - 1), text.substr(quote + 2)};
  return absl::StrSplit(text, absl::MaxSplits('=', 1));
}

// Why `value` has not the form that the table asks for; empty: it has.
std::string Complaint(const Option& o, const std::string& value) {
  if (o.value == "N") {
    int64_t n = 0;
    return absl::SimpleAtoi(value, &n) && n >= 0 ? "" : "a count is expected";
  }
  if (o.value == "R") {
    double r = 0;
    return absl::SimpleAtod(value, &r) && r >= 0 ? "" : "a number from 0 is expected";
  }
  if (absl::StartsWith(o.value, "NAME=")) {
    const auto [name, text] = Pair(value);
    return !name.empty() && !text.empty() ? "" : absl::StrCat(o.value, " is expected");
  }
  if (o.value.find('|') != absl::string_view::npos && absl::AsciiStrToLower(o.value) == o.value) {
    const std::vector<absl::string_view> choices = absl::StrSplit(o.value, '|');
    const bool one = std::find(choices.begin(), choices.end(), value) != choices.end();
    return one ? "" : absl::StrCat(absl::StrJoin(choices, " or "), " is expected");
  }
  return value.empty() && !MayBeLeftOut(o) ? absl::StrCat(o.value, " is expected") : "";
}

}  // namespace

bool Flags::Has(absl::string_view name) const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto& v) { return v.first == name; });
}

std::string Flags::Text(absl::string_view name, absl::string_view fallback) const {
  std::string text(fallback);
  for (const auto& [option, value] : values_) {
    if (option == name) text = value;
  }
  return text;
}

int64_t Flags::Count(absl::string_view name, int64_t fallback) const {
  int64_t count = fallback;
  return absl::SimpleAtoi(Text(name), &count) ? count : fallback;
}

double Flags::Number(absl::string_view name, double fallback) const {
  double number = fallback;
  return absl::SimpleAtod(Text(name), &number) ? number : fallback;
}

std::vector<std::pair<std::string, std::string>> Flags::Named(absl::string_view name) const {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& [option, value] : values_) {
    if (option == name) pairs.push_back(Pair(value));
  }
  return pairs;
}

absl::Status Flags::Add(const Usage& usage, const Option& option, std::string value) {
  const std::string complaint = option.value.empty() ? "" : Complaint(option, value);
  if (!complaint.empty()) {
    return Refuse(usage, absl::StrCat(Dashed(option.name), " is '", value, "', ", complaint));
  }
  if (absl::StartsWith(option.value, "NAME=")) {
    for (const auto& [name, text] : Named(option.name)) {
      if (name == Pair(value).first)
        return Refuse(usage, absl::StrCat(Dashed(option.name), " ", name, " is given twice"));
    }
  }
  values_.emplace_back(option.name, std::move(value));
  return absl::OkStatus();
}

absl::StatusOr<Flags> ParseFlags(const Usage& usage, const Args& args) {
  Flags flags;
  bool options_end = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--" && !options_end) {
      options_end = true;
      continue;
    }
    if (options_end || arg.size() < 2 || arg[0] != '-') {
      if (usage.operand.empty()) return Refuse(usage, absl::StrCat("no file is expected, ", arg, " is given"));
      if (!flags.operand_.empty())
        return Refuse(usage, absl::StrCat("one ", usage.operand, " is expected, ", arg, " is a second"));
      flags.operand_ = arg;
      continue;
    }
    const bool is_long = arg[1] == '-';
    const size_t equals = is_long ? arg.find('=') : 2;
    const std::string name =
        is_long ? arg.substr(2, equals == std::string::npos ? equals : equals - 2) : arg.substr(1, 1);
    const Option* option = Find(usage, name);
    if (option == nullptr || is_long != (option->name.size() > 1)) {
      return Refuse(usage, absl::StrCat("there is no option ", is_long ? arg.substr(0, equals) : arg));
    }
    const bool attached = is_long ? equals != std::string::npos : arg.size() > 2;
    if (attached && option->value.empty()) return Refuse(usage, absl::StrCat(Dashed(name), " takes no value"));
    std::string value = attached ? arg.substr(equals + (arg[equals] == '=' ? 1 : 0)) : "";
    if (!attached && !option->value.empty() && !MayBeLeftOut(*option)) {
      if (i + 1 == args.size()) return Refuse(usage, absl::StrCat(Dashed(name), " needs ", option->value));
      value = args[++i];
    }
    AGC_RETURN_IF_ERROR(flags.Add(usage, *option, std::move(value)));
  }
  if (flags.operand_.empty() && !usage.operand.empty() && usage.operand[0] != '[') {
    return Refuse(usage, absl::StrCat(usage.operand, " is missing"));
  }
  return flags;
}

std::string HelpText(const Usage& usage) {
  std::string out =
      absl::StrCat("usage: agc ", usage.command, usage.operand.empty() ? "" : " ", usage.operand,
                   usage.options.empty() ? "" : " [OPTION]..", "\n\nagc ", usage.command, " ", usage.summary, ".\n");
  if (!usage.details.empty()) absl::StrAppend(&out, "\n", usage.details, "\n");
  size_t width = Spelled({"help"}).size();
  for (const Option& o : usage.options) width = std::max(width, Spelled(o).size());
  absl::StrAppend(&out, "\noptions:\n");
  const auto line = [&](const Option& o) {
    std::string spelled = Spelled(o);
    spelled.resize(width, ' ');
    absl::StrAppend(&out, "  ", spelled, "  ", o.doc, "\n");
  };
  for (const Option& o : usage.options) line(o);
  line({"help", "", "print this"});
  if (!usage.example.empty()) absl::StrAppend(&out, "\nexample:\n  ", usage.example, "\n");
  return out;
}

int RunCommand(const Usage& usage, const Args& args, absl::StatusOr<int> (*body)(const Flags& flags)) {
  const auto asks = [](const std::string& arg) { return arg == "--help" || arg == "-h"; };
  if (std::any_of(args.begin(), std::find(args.begin(), args.end(), "--"), asks)) {
    std::fputs(HelpText(usage).c_str(), stdout);
    return 0;
  }
  const absl::StatusOr<Flags> flags = ParseFlags(usage, args);
  if (!flags.ok()) return Failed(flags.status());
  const absl::StatusOr<int> code = body(*flags);
  if (code.ok()) return *code;
  const int refused = Failed(code.status());
  return code.status().code() == absl::StatusCode::kAborted ? 1 : refused;  // --check-equivalence says no
}

std::vector<Option> Join(const std::vector<std::vector<Option>>& tables) {
  std::vector<Option> all;
  for (const std::vector<Option>& table : tables) all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace agc::tool
