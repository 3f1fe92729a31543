// agc bisect FILE: which single rewrite changes what a module computes, or the exit code of a command.
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/pipeline.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "passes/equivalence.h"
#include "passes/manager.h"
#include "tools/agc/command.h"
#include "tools/agc/model.h"
#include "tools/agc/pass_flags.h"
#include "tools/agc/trial.h"

namespace agc::tool {
namespace {

Usage BisectUsage() {
  return {
      .command = "bisect",
      .summary = "finds the rewrite of a module that makes it compute something else, or a command fail",
      .operand = "FILE",
      .options = Join({{{"passes", "LIST", "graph passes, with commas; default: those of compile up to decompose"},
                        {"command", "CMD", "a command on the module, {}: its exit code says what is right"}},
                       PassTable()}),
      .example = "agc bisect mlp.agir --command 'agc check {} --entry infer --input x=0.5'",
      .details =
          "Runs the passes with 0, 1, 2, ... rewrites, by halving. Without --command the module is evaluated on "
          "random values before\nand after. Exit code 0: no rewrite is at fault, 1: one is, which is printed as the "
          "lines that it changed."};
}

// The module after passes that may rewrite `limit` times, and how often they did.
struct Rewritten {
  Program program = {};
  int64_t rewrites = 0;
};

class Bisection {
 public:
  Bisection(const Program& original, std::vector<std::string> passes, PassFlags flags, const Trial* trial)
      : original_(original), passes_(std::move(passes)), flags_(std::move(flags)), trial_(trial) {}

  absl::StatusOr<int> Run() {
    AGC_ASSIGN_OR_RETURN(const Rewritten all, With(int64_t{1} << 40));
    if (trial_ != nullptr) {
      AGC_ASSIGN_OR_RETURN(const Rewritten none, With(0));
      AGC_ASSIGN_OR_RETURN(right_, trial_->Run(none.program));
    }
    AGC_ASSIGN_OR_RETURN(const bool fine, IsRight(all.program));
    if (fine) {
      std::printf("%d rewrites, none at fault\n", static_cast<int>(all.rewrites));
      return 0;
    }
    int64_t good = 0, bad = all.rewrites;
    while (bad - good > 1) {
      const int64_t middle = good + (bad - good) / 2;
      AGC_ASSIGN_OR_RETURN(const Rewritten some, With(middle));
      AGC_ASSIGN_OR_RETURN(const bool right, IsRight(some.program));
      (right ? good : bad) = middle;
    }
    if (bad == 0) {
      std::printf("wrong with no rewrite at all: a pass that does not count as rewriting is at fault\n");
      return 1;
    }
    AGC_ASSIGN_OR_RETURN(const Rewritten before, With(bad - 1));
    AGC_ASSIGN_OR_RETURN(const Rewritten after, With(bad));
    std::printf("rewrite %d of %d is at fault (--rewrite-limit=%d is the first that is wrong):\n",
                static_cast<int>(bad), static_cast<int>(all.rewrites), static_cast<int>(bad));
    PrintChanged(Print(before.program), Print(after.program));
    return 1;
  }

 private:
  absl::StatusOr<Rewritten> With(int64_t limit) const {
    Rewritten r{.program = Clone(original_)};
    PassContext context = flags_.context;
    ManagerOptions manager = flags_.manager;
    manager.rewrite_limit = limit;
    AGC_RETURN_IF_ERROR(RunPipeline(r.program, passes_, context, manager));
    r.rewrites = limit - context.rewrites_left;
    return r;
  }

  absl::StatusOr<bool> IsRight(const Program& program) const {
    if (trial_ == nullptr) return SameMeaning(original_, program).ok();
    AGC_ASSIGN_OR_RETURN(const int code, trial_->Run(program));
    return code == right_;
  }

  // The lines between the common head and the common tail.
  static void PrintChanged(const std::string& before, const std::string& after) {
    const std::vector<std::string> a = absl::StrSplit(before, '\n'), b = absl::StrSplit(after, '\n');
    size_t head = 0, tail = 0;
    while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
    while (tail < std::min(a.size(), b.size()) - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
    for (size_t i = head; i < a.size() - tail; ++i) std::printf("- %s\n", a[i].c_str());
    for (size_t i = head; i < b.size() - tail; ++i) std::printf("+ %s\n", b[i].c_str());
  }

  const Program& original_;
  std::vector<std::string> passes_ = {};
  PassFlags flags_ = {};
  const Trial* trial_ = nullptr;
  int right_ = 0;
};

// The passes of compile up to the primitive stage, or those given.
std::vector<std::string> PassesOf(const Flags& flags, Stage from) {
  if (flags.Has("passes")) return absl::StrSplit(flags.Text("passes"), ',', absl::SkipEmpty());
  std::vector<std::string> passes = DefaultPipeline(from);
  for (size_t i = 0; i < passes.size(); ++i) {
    if (passes[i] == "add-run-index") passes.resize(i);
  }
  return passes;
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(PassFlags passes, PassFlagsOf(flags));
  AGC_ASSIGN_OR_RETURN(const Program program, ReadText(flags.operand()));
  std::optional<Trial> trial;
  if (flags.Has("command")) trial.emplace(flags.Text("command"));
  Bisection bisection(program, PassesOf(flags, program.stage), std::move(passes), trial ? &*trial : nullptr);
  return bisection.Run();
}

}  // namespace

int Bisect(const std::vector<std::string>& args) { return RunCommand(BisectUsage(), args, Run); }

}  // namespace agc::tool
