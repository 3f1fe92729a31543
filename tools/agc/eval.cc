// agc eval: evaluates a graph of a module in text on the host, at the stage it is at or after the compiler's passes.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/compile.h"
#include "compiler/pipeline.h"
#include "ir/base/status.h"
#include "ir/derivative.h"
#include "ir/eval/npy.h"
#include "ir/eval/plan_eval.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "tools/agc/command.h"
#include "tools/agc/flags.h"
#include "tools/agc/model.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

Usage EvalUsage() {
  return {.command = "eval",
          .summary = "evaluates a graph of a module in text on the host, at any stage; no device is needed",
          .operand = "MODEL.agir",
          .options =
              {
                  {"entry", "NAME", "the graph; may be left out where there is one"},
                  {"input", "NAME=VALUE", "an input, resident or param: FILE.npy, one number, or a list 1,2,3"},
                  {"resident", "NAME=VALUE", "a resident"},
                  {"param", "NAME=VALUE", "a param: a number, or one per step: 0.1,0.05"},
                  {"state", "NAME=VALUE", "a state's value before the first step; default: what @init gives it"},
                  {"seed", "N", "seed of init, which gives the states their first values; default 0"},
                  {"output", "NAME=FILE", "writes an output as .npy"},
                  {"save", "NAME=FILE", "writes a state's value after the last step as .npy"},
                  {"steps", "N", "runs that many steps, states going on (default 1)"},
                  {"double", "", "computes floats in f64: the reference for tolerances"},
                  NumericsOption(),
                  PrecisionOption(),
                  {"subgroup", "N", "lanes of a subgroup for kernels (default 32)"},
                  {"all", "DIR", "every graph, on DIR/<graph>.<input>.npy; writes <graph>.<output>.npy"},
                  {"to", "DIR", "with --all: where outputs go (default: the same directory)"},
                  {"passes", "a,b", "runs these passes first"},
                  {"planned", "", "runs all passes first: evaluates the plan, kernel by kernel"},
                  {"target", "TARGET", "for passes: lavapipe (default), h200, tiny or a file"},
                  {"no-fuse", "", "for passes: one kernel per op"},
                  {"no-reuse", "", "for passes: every temporary has bytes of its own"},
                  {"no-in-place", "", "for passes: no result takes over storage"},
              },
          .example = "agc eval mlp.agir --entry step --input x=x.npy --state w=0.5 --output y=y.npy",
          .details =
              "Without --output and --save outputs and states are printed. With --all, graphs that fail are\n"
              "printed and the exit code is 1. A NAME with = in it is given in quotes, as '\"a=b\"=1'."};
}

using Pairs = std::vector<std::pair<std::string, std::string>>;
struct Request {
  std::string entry = {};
  Pairs inputs = {}, residents = {}, params = {}, states = {}, outputs = {}, saves = {};
  int64_t steps = 1;
  uint64_t seed = 0;
  KernelOptions options = {};
};

// The tensor that a flag's value stands for; under kDouble a file may hold f64 for any float.
absl::StatusOr<HostTensor> Given(const std::string& what, const std::string& value, const TensorType& type,
                                 EvalMode mode, std::optional<int64_t> steps = std::nullopt) {
  if (mode == EvalMode::kDouble && absl::EndsWith(value, ".npy")) {
    AGC_ASSIGN_OR_RETURN(HostTensor t, ReadNpy(value));
    if (t.type == EvalType(type, mode)) return t;
  }
  return TensorOf(what, value, type, steps);
}

// The graph asked for, or the only one besides the generated `init`.
absl::StatusOr<const Graph*> EntryOf(const Program& program, const std::string& entry) {
  if (!entry.empty()) return Named(program.graphs, "graph", entry, "the module");
  std::vector<const Graph*> all;
  for (const Graph& g : program.graphs) {
    if ((g.name != kInitGraph || program.graphs.size() == 1) && !IsGradientFunction(g)) all.push_back(&g);
  }
  if (all.size() == 1) return all[0];
  if (all.empty()) return absl::InvalidArgumentError("the module has no graph to evaluate");
  const auto name = [](std::string* out, const Graph* g) { absl::StrAppend(out, g->name); };
  return absl::InvalidArgumentError(
      absl::StrCat("--entry: the module has several graphs, choose one of ", absl::StrJoin(all, ", ", name)));
}

// The parameters of a kind, of any for --input, from their flags. A param may have a value per step, as a first axis.
absl::Status Take(const Graph& graph, const Request& r, std::optional<ParamKind> kind, const Pairs& given,
                  std::map<std::string, HostTensor>& params) {
  const absl::string_view role = kind.has_value() ? Name(*kind) : "input";
  std::vector<GraphParam> fit;
  for (const GraphParam& p : graph.params) {
    if (!kind.has_value() || p.kind == *kind) fit.push_back(p);
  }
  for (const auto& [name, value] : given) {
    AGC_ASSIGN_OR_RETURN(const GraphParam* p, Named(fit, role, name, absl::StrCat("graph @", graph.name)));
    const bool each = p->kind == ParamKind::kParam && r.steps > 1;
    AGC_ASSIGN_OR_RETURN(params[name], Given(absl::StrCat(role, " ", name), value, p->type, r.options.mode,
                                             each ? std::optional<int64_t>(r.steps) : std::nullopt));
  }
  return absl::OkStatus();
}

// One step's values: of a param that has one per step, that of step `step`.
EvalInputs AtStep(const Graph& graph, const EvalInputs& given, int64_t step, EvalMode mode) {
  EvalInputs in = given;
  for (const GraphParam& p : graph.params) {
    const auto it = in.params.find(p.name);
    const TensorType type = EvalType(p.type, mode);
    if (it == in.params.end() || it->second.type == type || p.kind != ParamKind::kParam) continue;
    HostTensor one = HostTensor::Zeros({it->second.type.dtype, type.dims});
    for (int64_t i = 0; i < type.elements(); ++i) one.set(i, it->second.at(step * type.elements() + i));
    it->second = std::move(one);
  }
  return in;
}

absl::StatusOr<EvalInputs> InputsOf(const Program& program, const Graph& graph, const Request& r) {
  EvalInputs in;
  AGC_RETURN_IF_ERROR(Take(graph, r, std::nullopt, r.inputs, in.params));
  AGC_RETURN_IF_ERROR(Take(graph, r, ParamKind::kResident, r.residents, in.params));
  AGC_RETURN_IF_ERROR(Take(graph, r, ParamKind::kParam, r.params, in.params));
  for (const auto& [name, value] : r.states) {
    AGC_ASSIGN_OR_RETURN(const StateDef* s, Named(program.states, "state", name, "the module"));
    AGC_ASSIGN_OR_RETURN(in.states[name], Given(absl::StrCat("state ", name), value, s->type, r.options.mode));
  }
  return in;
}

// Graph @init of a module; where it has none yet, the one that the compiler makes.
absl::StatusOr<Program> WithInit(const Program& program) {
  Program all = Clone(program);
  if (all.FindGraph(kInitGraph) != nullptr || all.stage != Stage::kTensor) return all;
  all.graphs.clear();
  PassContext context;
  AGC_RETURN_IF_ERROR(RunPipeline(all, {"add-init"}, context));
  return all;
}

// What @init gives the states that were not given, as on a device. Constants need no @init.
absl::Status StartStates(const Program& program, const Graph& graph, const Request& r, EvalInputs& in) {
  const bool own = program.FindGraph(kInitGraph) != nullptr;
  const auto starts = [&](const StateDef& s) {
    return !s.hidden && (own || s.init.kind != InitKind::kConstant) && in.states.count(s.name) == 0;
  };
  if (graph.name == kInitGraph || std::none_of(program.states.begin(), program.states.end(), starts))
    return absl::OkStatus();
  AGC_ASSIGN_OR_RETURN(const Program all, WithInit(program));
  const Graph* init = all.FindGraph(kInitGraph);
  if (init == nullptr) return absl::OkStatus();
  EvalInputs seeded;
  for (const StateDef& s : all.states) seeded.states[s.name] = HostTensor::Zeros(EvalType(s.type, r.options.mode));
  for (const GraphParam& p : init->params) {
    seeded.params[p.name] = HostTensor::Zeros(EvalType(p.type, r.options.mode));
    if (p.name == "seed") seeded.params[p.name].set(0, Scalar::Int(p.type.dtype, static_cast<int64_t>(r.seed)));
  }
  AGC_ASSIGN_OR_RETURN(EvalResult first, Evaluate(all, kInitGraph, seeded, r.options));
  for (const StateDef& s : all.states) {
    const auto it = first.states.find(s.name);
    if (!s.hidden && it != first.states.end()) in.states.try_emplace(s.name, it->second);
  }
  return absl::OkStatus();
}

absl::Status Write(const Pairs& files, const std::map<std::string, HostTensor>& values, absl::string_view what) {
  for (const auto& [name, file] : files) {
    const auto it = values.find(name);
    if (it == values.end()) return absl::InvalidArgumentError(absl::StrCat("the graph has no ", what, " ", name));
    AGC_RETURN_IF_ERROR(WriteNpy(file, it->second));
  }
  return absl::OkStatus();
}

absl::Status EvalOne(const Program& program, const Request& r) {
  AGC_ASSIGN_OR_RETURN(const Graph* graph, EntryOf(program, r.entry));
  AGC_ASSIGN_OR_RETURN(EvalInputs in, InputsOf(program, *graph, r));
  AGC_RETURN_IF_ERROR(StartStates(program, *graph, r, in));
  EvalResult result;
  for (int64_t step = 0; step < r.steps; ++step) {
    AGC_ASSIGN_OR_RETURN(result, Evaluate(program, graph->name, AtStep(*graph, in, step, r.options.mode), r.options));
    for (const auto& [name, value] : result.states) in.states[name] = value;
  }
  AGC_RETURN_IF_ERROR(Write(r.outputs, result.outputs, "output"));
  AGC_RETURN_IF_ERROR(Write(r.saves, result.states, "state"));
  if (!r.outputs.empty() || !r.saves.empty()) return absl::OkStatus();
  for (const auto& [name, value] : result.outputs)
    std::printf("%s\n", TensorText(absl::StrCat("%", name), value).c_str());
  for (const auto& [name, value] : result.states)
    std::printf("%s\n", TensorText(absl::StrCat("@", name), value).c_str());
  return absl::OkStatus();
}

int EvalAll(const Program& program, const Request& request, const std::string& from, const std::string& to) {
  int failed = 0;
  for (const Graph& graph : program.graphs) {
    if (IsGradientFunction(graph)) continue;
    const auto file = [&](const std::string& dir, const std::string& name) {
      return absl::StrCat(dir, "/", graph.name, ".", name, ".npy");
    };
    Request r = request;
    r.entry = graph.name;
    for (const GraphParam& p : graph.params) r.inputs.emplace_back(p.name, file(from, p.name));
    for (const Output& out : graph.outputs) r.outputs.emplace_back(out.name, file(to, out.name));
    for (const StateDef& s : program.states) {
      if (std::filesystem::exists(file(from, s.name))) r.states.emplace_back(s.name, file(from, s.name));
    }
    const absl::Status s = EvalOne(program, r);
    if (s.ok()) continue;
    ++failed;
    std::printf("%s: %s\n", graph.name.c_str(), std::string(s.message()).c_str());
  }
  return failed == 0 ? 0 : 1;
}

absl::Status RunPassesOf(const Flags& flags, Program& program) {
  std::vector<std::string> passes = absl::StrSplit(flags.Text("passes"), ',', absl::SkipEmpty());
  AGC_ASSIGN_OR_RETURN(const Target target, ReadTarget(flags.Text("target", "lavapipe")));
  PassContext context = ContextOf(target, CompileOptionsOf(flags));
  AGC_RETURN_IF_ERROR(RunPipeline(program, passes, context));
  return flags.Has("planned") ? RunPipeline(program, DefaultPipeline(program.stage), context) : absl::OkStatus();
}

absl::StatusOr<int> Run(const Flags& flags) {
  const int64_t steps = flags.Count("steps", 1);
  if (steps < 1) return absl::InvalidArgumentError("--steps is 0, at least 1 is needed");
  if (flags.Has("to") && !flags.Has("all")) return absl::InvalidArgumentError("--to is for --all, give that too");
  AGC_ASSIGN_OR_RETURN(Program program, ReadText(flags.operand()));
  AGC_RETURN_IF_ERROR(RunPassesOf(flags, program));
  Request r{.entry = flags.Text("entry"),
            .inputs = flags.Named("input"),
            .residents = flags.Named("resident"),
            .params = flags.Named("param"),
            .states = flags.Named("state"),
            .outputs = flags.Named("output"),
            .saves = flags.Named("save"),
            .steps = steps,
            .seed = static_cast<uint64_t>(flags.Count("seed", 0))};
  r.options.subgroup = static_cast<int>(flags.Count("subgroup", 32));
  r.options.mode = EvaluatorFor(NumericsOf(flags));
  if (flags.Has("double")) r.options.mode = EvalMode::kDouble;
  if (flags.Has("all")) return EvalAll(program, r, flags.Text("all"), flags.Text("to", flags.Text("all")));
  AGC_RETURN_IF_ERROR(EvalOne(program, r));
  return 0;
}

}  // namespace

int Eval(const std::vector<std::string>& args) { return RunCommand(EvalUsage(), args, Run); }

}  // namespace agc::tool
