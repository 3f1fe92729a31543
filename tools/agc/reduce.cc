// agc reduce FILE: a smaller module on which a command still ends as it does on the whole one.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "ir/base/file.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "passes/manager.h"
#include "passes/replace.h"
#include "tools/agc/command.h"
#include "tools/agc/flags.h"
#include "tools/agc/model.h"
#include "tools/agc/trial.h"

namespace agc::tool {
namespace {

Usage ReduceUsage() {
  return {.command = "reduce",
          .summary = "cuts a module down as long as a command on it ends with the same exit code, which is not 0",
          .operand = "FILE",
          .options = {{"command", "CMD", "the command; {} stands for the module's file"},
                      {"o", "FILE", "where the small module goes; default: the standard output"}},
          .example = "agc reduce big.agir --command 'agc check {} --input x=0.5' -o small.agir",
          .details =
              "Leaves out graphs, outputs, updates, states and inputs, and puts an operand or ones in the place of "
              "ops, again and again,\nuntil nothing more can go. The module is one of stage tensor or primitive."};
}

class Reducer {
 public:
  Reducer(Program program, const Trial& trial) : best_(std::move(program)), trial_(trial) {}

  absl::Status Run() {
    AGC_ASSIGN_OR_RETURN(code_, trial_.Run(best_));
    ++trials_;
    if (code_ == 0) {
      return absl::FailedPreconditionError(
          "the command ends with exit code 0 on the whole module; it has to fail where there is something to keep");
    }
    bool smaller = true;
    while (smaller) {
      smaller = false;
      for (const auto step : {&Reducer::Graphs, &Reducer::Roots, &Reducer::Ops, &Reducer::Parameters}) {
        AGC_ASSIGN_OR_RETURN(const bool any, (this->*step)());
        smaller = smaller || any;
      }
    }
    return absl::OkStatus();
  }

  const Program& best() const { return best_; }
  int code() const { return code_; }
  int trials() const { return trials_; }

 private:
  // Takes `change` over if the command still ends the same way.
  template <typename Change>
  absl::StatusOr<bool> Try(Change change) {
    Program smaller = Clone(best_);
    change(smaller);
    PassContext context;
    const bool sound = Verify(smaller).ok() && RunPipeline(smaller, {"dce"}, context).ok();
    if (!sound) return false;
    ++trials_;
    AGC_ASSIGN_OR_RETURN(const int code, trial_.Run(smaller));
    if (code != code_) return false;
    best_ = std::move(smaller);
    return true;
  }

  absl::StatusOr<bool> Graphs() {
    bool any = false;
    for (size_t i = best_.graphs.size(); i-- > 0 && best_.graphs.size() > 1;) {
      AGC_ASSIGN_OR_RETURN(const bool gone, Try([&](Program& p) { p.graphs.erase(p.graphs.begin() + i); }));
      any = any || gone;
    }
    return any;
  }

  // Outputs and updates.
  absl::StatusOr<bool> Roots() {
    bool any = false;
    for (size_t g = 0; g < best_.graphs.size(); ++g) {
      for (size_t i = best_.graphs[g].outputs.size(); i-- > 0;) {
        AGC_ASSIGN_OR_RETURN(const bool gone, Try([&](Program& p) { Erase(p.graphs[g].outputs, i); }));
        any = any || gone;
      }
      for (size_t i = best_.graphs[g].updates.size(); i-- > 0;) {
        AGC_ASSIGN_OR_RETURN(const bool gone, Try([&](Program& p) { Erase(p.graphs[g].updates, i); }));
        any = any || gone;
      }
    }
    return any;
  }

  // From the last op on: an operand of its type in its place, else ones.
  absl::StatusOr<bool> Ops() {
    bool any = false;
    for (size_t g = 0; g < best_.graphs.size(); ++g) {
      for (size_t i = best_.graphs[g].ops.size(); i-- > 0;) {
        if (i >= best_.graphs[g].ops.size()) continue;  // dce took more than one
        AGC_ASSIGN_OR_RETURN(const bool gone, Bypass(g, {static_cast<uint32_t>(i)}));
        any = any || gone;
      }
    }
    return any;
  }

  absl::StatusOr<bool> Bypass(size_t g, OpId id) {
    const Op& op = best_.graphs[g].op(id);
    if (op.is_tuple() || op.def->cls == OpClass::kData) return false;
    const TensorType type = op.type();
    for (OpId operand : absl::InlinedVector<OpId, 3>(op.operands)) {
      if (!(best_.graphs[g].op(operand).types == Types{type})) continue;
      AGC_ASSIGN_OR_RETURN(const bool gone, Try([&](Program& p) { Replace(p, g, id, operand); }));
      if (gone) return true;
    }
    return Try([&](Program& p) {
      auto ones = std::make_shared<Literal>();
      ones->values.push_back(Scalar::Of(type.dtype, 1));
      Replace(p, g, id, AppendConstant(p.graphs[g], type, std::move(ones), {}));
    });
  }

  // Inputs and states that nothing reads.
  absl::StatusOr<bool> Parameters() {
    bool any = false;
    for (size_t g = 0; g < best_.graphs.size(); ++g) {
      for (size_t i = best_.graphs[g].params.size(); i-- > 0;) {
        AGC_ASSIGN_OR_RETURN(const bool gone, Try([&](Program& p) { EraseParam(p, g, i); }));
        any = any || gone;
      }
    }
    for (size_t i = best_.states.size(); i-- > 0;) {
      AGC_ASSIGN_OR_RETURN(const bool gone, Try([&](Program& p) { Erase(p.states, i); }));
      any = any || gone;
    }
    return any;
  }

  template <typename List>
  static void Erase(List& list, size_t i) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  }

  static void Replace(Program& p, size_t g, OpId old, OpId by) {
    Replacements r(p.graphs[g]);
    r.Replace(old, by);
    r.Apply(p);
  }

  // Only where nothing reads it: else the module no longer verifies and the change is dropped.
  static void EraseParam(Program& p, size_t g, size_t i) {
    Graph& graph = p.graphs[g];
    const OpId op = graph.params[i].op;
    Erase(graph.params, i);
    std::vector<bool> keep(graph.ops.size(), true);
    keep[op.index] = false;
    for (const Op& user : graph.ops) {
      for (OpId operand : user.operands) keep[op.index] = keep[op.index] || operand == op;
    }
    for (const Output& out : graph.outputs) keep[op.index] = keep[op.index] || out.value == op;
    for (const auto& update : graph.updates) keep[op.index] = keep[op.index] || update.value == op;
    if (!keep[op.index]) agc::Erase(graph, keep);
  }

  Program best_ = {};
  const Trial& trial_;
  int code_ = 0, trials_ = 0;
};

size_t OpsOf(const Program& program) {
  size_t n = 0;
  for (const Graph& g : program.graphs) n += g.ops.size();
  return n;
}

absl::StatusOr<int> Run(const Flags& flags) {
  if (!flags.Has("command")) return absl::InvalidArgumentError("--command is missing: what has to fail on the module");
  AGC_ASSIGN_OR_RETURN(Program program, ReadText(flags.operand()));
  if (program.stage > Stage::kPrimitive) {
    return absl::InvalidArgumentError(absl::StrCat(flags.operand(), ": the module is at stage ", Name(program.stage),
                                                   ", one at stage tensor or primitive is needed"));
  }
  const size_t before = OpsOf(program);
  const Trial trial(flags.Text("command"));
  Reducer reducer(std::move(program), trial);
  AGC_RETURN_IF_ERROR(reducer.Run());
  std::fprintf(stderr, "%zu of %zu ops are left after %d trials; the command still ends with exit code %d\n",
               OpsOf(reducer.best()), before, reducer.trials(), reducer.code());
  const std::string text = Print(reducer.best());
  if (!flags.Has("o")) return std::fputs(text.c_str(), stdout), 0;
  AGC_RETURN_IF_ERROR(WriteFile(flags.Text("o"), text));
  return 0;
}

}  // namespace

int Reduce(const std::vector<std::string>& args) { return RunCommand(ReduceUsage(), args, Run); }

}  // namespace agc::tool
