// agc eval FILE|- [--entry=NAME] [--input=NAME=V].. [--state=NAME=V].. [--output=NAME=FILE].. [--save=NAME=FILE]..
//          [--steps=N] [--double] [--subgroup=N]
// agc eval FILE|- --all=DIR [--to=DIR] [--double]
// Evaluates a graph at any stage on the host. V is an .npy file, one number for all elements, or a list 1,2,3. Outputs
// and states (--save) go to .npy files; without any such flag they are printed. --all evaluates every graph on
// DIR/<graph>.<input>.npy and writes <graph>.<output>.npy; it prints one line per graph that fails.
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "ir/eval/npy.h"
#include "ir/eval/plan_eval.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"

namespace agc::tool {
namespace {

constexpr absl::string_view kUsage =
    "usage: agc eval FILE|- [--entry=NAME] [--input=NAME=V].. [--state=NAME=V].. [--output=NAME=FILE].. "
    "[--save=NAME=FILE].. [--steps=N] [--double] [--subgroup=N], or --all=DIR [--to=DIR]";
constexpr int64_t kPrinted = 64;  // elements of a printed tensor

using Named = std::vector<std::pair<std::string, std::string>>;

struct EvalFlags {
  std::string path = {}, entry = {}, all = {}, to = {};
  Named inputs = {}, states = {}, outputs = {}, saves = {};
  int64_t steps = 1;
  KernelOptions options = {};
};

absl::Status Pair(absl::string_view flag, const std::string& value, Named& to) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(value, absl::MaxSplits('=', 1));
  if (parts.first.empty() || parts.second.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("agc eval: --", flag, "=", value, " is not NAME=VALUE"));
  }
  to.push_back(parts);
  return absl::OkStatus();
}

absl::Status Number(absl::string_view flag, const std::string& value, int64_t& to) {
  if (absl::SimpleAtoi(value, &to) && to >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("agc eval: --", flag, "=", value, " is not a positive number"));
}

// Both --name=VALUE and --name VALUE.
std::vector<std::string> Joined(const std::vector<std::string>& args) {
  std::vector<std::string> joined;
  for (size_t i = 0; i < args.size(); ++i) {
    const bool takes_value =
        absl::StartsWith(args[i], "--") && !absl::StrContains(args[i], "=") && args[i] != "--double";
    joined.push_back(args[i]);
    if (takes_value && i + 1 < args.size()) absl::StrAppend(&joined.back(), "=", args[++i]);
  }
  return joined;
}

absl::StatusOr<EvalFlags> ParseFlags(const std::vector<std::string>& args) {
  EvalFlags f;
  std::string value;
  const std::pair<absl::string_view, std::string*> texts[] = {{"entry", &f.entry}, {"all", &f.all}, {"to", &f.to}};
  const std::pair<absl::string_view, Named*> pairs[] = {
      {"input", &f.inputs}, {"state", &f.states}, {"output", &f.outputs}, {"save", &f.saves}};
  int64_t subgroup = f.options.subgroup;
  const std::pair<absl::string_view, int64_t*> numbers[] = {{"steps", &f.steps}, {"subgroup", &subgroup}};
  for (const std::string& arg : Joined(args)) {
    bool known = arg == "--double";
    if (known) f.options.mode = EvalMode::kDouble;
    for (const auto& [name, to] : texts) {
      if (known || !Flag(arg, name, value)) continue;
      known = true;
      *to = value;
    }
    for (const auto& [name, to] : pairs) {
      if (known || !Flag(arg, name, value)) continue;
      known = true;
      AGC_RETURN_IF_ERROR(Pair(name, value, *to));
    }
    for (const auto& [name, to] : numbers) {
      if (known || !Flag(arg, name, value)) continue;
      known = true;
      AGC_RETURN_IF_ERROR(Number(name, value, *to));
    }
    if (known) continue;
    if (!f.path.empty() || (arg.size() > 1 && arg[0] == '-'))
      return absl::InvalidArgumentError(absl::StrCat("agc eval: what is ", arg, "? ", kUsage));
    f.path = arg;
  }
  if (f.path.empty()) return absl::InvalidArgumentError(kUsage);
  f.options.subgroup = static_cast<int>(subgroup);
  return f;
}

absl::StatusOr<HostTensor> FromText(const std::string& text, const TensorType& type) {
  HostTensor t = HostTensor::Zeros(type);
  const std::vector<std::string> parts = absl::StrSplit(text, ',', absl::SkipEmpty());
  const int64_t n = type.elements();
  if (parts.size() != 1 && static_cast<int64_t>(parts.size()) != n) {
    return absl::InvalidArgumentError(absl::StrCat(parts.size(), " numbers for ", ToString(type)));
  }
  for (int64_t i = 0; i < n; ++i) {
    const std::string& part = parts[parts.size() == 1 ? 0 : static_cast<size_t>(i)];
    double number = 0;
    int64_t whole = 0;
    if (!IsFloat(type.dtype) && absl::SimpleAtoi(part, &whole)) {
      t.set(i, Scalar::Int(type.dtype, whole));
    } else if (absl::SimpleAtod(part, &number)) {
      t.set(i, Scalar::Of(type.dtype, number));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(part, " is not a number"));
    }
  }
  return t;
}

// The tensor that a flag's value stands for; under kDouble a file may hold f64 for any float.
absl::StatusOr<HostTensor> Given(const std::string& value, const TensorType& type, EvalMode mode) {
  if (!absl::EndsWith(value, ".npy")) return FromText(value, type);
  AGC_ASSIGN_OR_RETURN(HostTensor t, ReadNpy(value));
  if (t.type == EvalType(type, mode)) return t;
  return ReadNpy(value, type);
}

absl::StatusOr<const Graph*> EntryOf(const Program& program, const std::string& entry) {
  if (entry.empty() && program.graphs.size() == 1) return &program.graphs[0];
  const Graph* graph = program.FindGraph(entry);
  if (graph != nullptr) return graph;
  const auto name = [](std::string* out, const Graph& g) { absl::StrAppend(out, "@", g.name); };
  return absl::InvalidArgumentError(
      absl::StrCat(entry.empty() ? "choose a graph with --entry=NAME" : absl::StrCat("no graph @", entry),
                   "; the module has ", absl::StrJoin(program.graphs, ", ", name)));
}

absl::StatusOr<EvalInputs> InputsOf(const Program& program, const Graph& graph, const EvalFlags& f) {
  EvalInputs in;
  for (const auto& [name, value] : f.inputs) {
    const GraphParam* param = nullptr;
    for (const GraphParam& p : graph.params) param = p.name == name ? &p : param;
    if (param == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("graph @", graph.name, " has no input %", name));
    AGC_ASSIGN_OR_RETURN(in.params[name], Given(value, param->type, f.options.mode));
  }
  for (const auto& [name, value] : f.states) {
    const StateDef* state = program.FindState(name);
    if (state == nullptr) return absl::InvalidArgumentError(absl::StrCat("the module has no state @", name));
    AGC_ASSIGN_OR_RETURN(in.states[name], Given(value, state->type, f.options.mode));
  }
  return in;
}

void PrintTensor(absl::string_view sigil, const std::string& name, const HostTensor& t) {
  const int64_t n = t.type.elements();
  std::string text;
  for (int64_t i = 0; i < std::min(n, kPrinted); ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", ToString(t.at(i)));
  std::printf("%s = [%s%s]\n", absl::StrCat(sigil, name, ": ", ToString(t.type)).c_str(), text.c_str(),
              n > kPrinted ? ", ..." : "");
}

absl::Status Write(const Named& files, const std::map<std::string, HostTensor>& values, absl::string_view what) {
  for (const auto& [name, file] : files) {
    const auto it = values.find(name);
    if (it == values.end()) return absl::InvalidArgumentError(absl::StrCat("the graph has no ", what, " ", name));
    AGC_RETURN_IF_ERROR(WriteNpy(file, it->second));
  }
  return absl::OkStatus();
}

absl::Status EvalOne(const Program& program, const EvalFlags& f) {
  AGC_ASSIGN_OR_RETURN(const Graph* graph, EntryOf(program, f.entry));
  AGC_ASSIGN_OR_RETURN(EvalInputs in, InputsOf(program, *graph, f));
  EvalResult result;
  for (int64_t step = 0; step < f.steps; ++step) {
    AGC_ASSIGN_OR_RETURN(result, Evaluate(program, graph->name, in, f.options));
    for (const auto& [name, value] : result.states) in.states[name] = value;
  }
  AGC_RETURN_IF_ERROR(Write(f.outputs, result.outputs, "output"));
  AGC_RETURN_IF_ERROR(Write(f.saves, result.states, "state"));
  if (!f.outputs.empty() || !f.saves.empty()) return absl::OkStatus();
  for (const auto& [name, value] : result.outputs) PrintTensor("%", name, value);
  for (const auto& [name, value] : result.states) PrintTensor("@", name, value);
  return absl::OkStatus();
}

absl::Status EvalInDirectory(const Program& program, const Graph& graph, const EvalFlags& f) {
  const auto file = [&](const std::string& dir, const std::string& name) {
    return absl::StrCat(dir, "/", graph.name, ".", name, ".npy");
  };
  EvalFlags one = f;
  one.entry = graph.name;
  for (const GraphParam& p : graph.params) one.inputs.emplace_back(p.name, file(f.all, p.name));
  for (const Output& out : graph.outputs)
    one.outputs.emplace_back(out.name, file(f.to.empty() ? f.all : f.to, out.name));
  for (const StateDef& s : program.states) {
    if (std::filesystem::exists(file(f.all, s.name))) one.states.emplace_back(s.name, file(f.all, s.name));
  }
  return EvalOne(program, one);
}

absl::StatusOr<int> Run(const std::vector<std::string>& args) {
  AGC_ASSIGN_OR_RETURN(const EvalFlags f, ParseFlags(args));
  AGC_ASSIGN_OR_RETURN(const std::string source, ReadInput(f.path));
  AGC_ASSIGN_OR_RETURN(const Program program, Parse(source, f.path == "-" ? "<stdin>" : f.path));
  if (f.all.empty()) {
    AGC_RETURN_IF_ERROR(EvalOne(program, f));
    return 0;
  }
  int failed = 0;
  for (const Graph& graph : program.graphs) {
    const absl::Status s = EvalInDirectory(program, graph, f);
    if (s.ok()) continue;
    ++failed;
    std::printf("%s: %s\n", graph.name.c_str(), std::string(s.message()).c_str());
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int Eval(const std::vector<std::string>& args) {
  const absl::StatusOr<int> code = Run(args);
  return code.ok() ? *code : Failed(code.status());
}

}  // namespace agc::tool
