// Lets results take over storage. A state's next value is computed into the state, and its copy goes, where every other
// reader of the state comes in an earlier epoch; the step that computes it may read the state itself under the element
// rule (passes/element_rule.h). A temporary takes the place of another that dies in the step that makes it.
//   dispatch @sgd (%w, %g, %t)  epoch 1         dispatch @sgd (%w, %g)  epoch 1
//   copy %t -> %w               epoch 2   ->
// The two parameters of the kernel become one, read and written; kernels that others use as they are, are cloned first.
// Parameters that share storage with no other of their step are marked `restrict`.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/element_rule.h"
#include "passes/registry.h"
#include "passes/step_uses.h"

namespace agc {
namespace {

using Merges = std::vector<std::pair<uint32_t, uint32_t>>;  // read, written

struct Aliaser {
  Program& program;
  PassContext& context;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, bool> rule = {};
  std::map<std::pair<uint32_t, Merges>, uint32_t> clones = {};
  bool changed = false;
};

bool SameLayout(const Buffer& a, const Buffer& b) {
  return a.type == b.type && a.stored == b.stored && a.order == b.order && a.pad == b.pad && a.parent < 0 &&
         b.parent < 0;
}

// The only argument bound to `buffer`, or -1.
int OnlyArg(const Step& step, int32_t buffer) {
  int found = -1;
  for (size_t i = 0; i < step.args.size(); ++i) {
    if (step.args[i] != buffer) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

class GraphAliaser {
 public:
  GraphAliaser(Aliaser& all, Graph& graph) : all_(all), graph_(graph), epochs_(EpochsOf(graph)) {
    merges_.resize(graph.steps.size());
    removed_.resize(graph.steps.size());
    users_.resize(graph.buffers.size());
    for (int32_t s = 0; s < steps(); ++s) {
      uses_.push_back(UsesOf(all.program, graph.steps[s]));
      for (const Use& use : uses_.back()) AddUser(use.buffer, s);
    }
    aliased_.resize(graph.buffers.size());
    for (size_t b = 0; b < graph.buffers.size(); ++b) {
      if (graph.buffers[b].alias >= 0) aliased_[b] = aliased_[graph.buffers[b].alias] = true;
    }
  }

  void Run() {
    for (int32_t s = 0; s < steps(); ++s) {
      const Step& step = graph_.steps[s];
      if (step.kind == StepKind::kCopy && graph_.buffers[step.args[1]].kind == BufferKind::kState) RemoveCopy(s);
    }
    FindClasses();
    for (int32_t s = 0; s < steps(); ++s) {
      if (graph_.steps[s].kind == StepKind::kDispatch) TakeOver(s);
    }
    Apply();
  }

 private:
  int32_t steps() const { return static_cast<int32_t>(graph_.steps.size()); }

  void AddUser(int32_t buffer, int32_t step) {
    std::vector<int32_t>& steps = users_[buffer];
    if (steps.empty() || steps.back() != step) steps.push_back(step);
  }

  // What shares storage already, and which steps use it.
  void FindClasses() {
    class_ = StorageRoots(graph_);
    class_steps_.assign(graph_.buffers.size(), {});
    for (int32_t s = 0; s < steps(); ++s) {
      if (removed_[s]) continue;
      for (const Use& use : uses_[s]) {
        std::vector<int32_t>& all = class_steps_[class_[use.buffer]];
        if (all.empty() || all.back() != s) all.push_back(s);
      }
    }
  }

  bool Rule(const Step& step, int read, int written) {
    if (step.kind != StepKind::kDispatch || read < 0 || written < 0) return false;
    const auto [it, inserted] = all_.rule.try_emplace({step.callee, read, written}, false);
    if (inserted) it->second = ElementRule(all_.program.kernels[step.callee], read, written);
    return it->second;
  }

  void Keep(int32_t copy, absl::string_view why) {
    all_.context.remarks.push_back(absl::StrCat("alias: graph @", graph_.name, ": the update of @",
                                                graph_.buffers[graph_.steps[copy].args[1]].symbol,
                                                " is copied: ", why));
  }

  // The first step that writes `buffer`, or -1.
  int32_t FirstWriter(int32_t buffer) const {
    for (int32_t s : users_[buffer]) {
      for (const Use& use : uses_[s]) {
        if (use.write && use.buffer == buffer && !removed_[s]) return s;
      }
    }
    return -1;
  }

  void RemoveCopy(int32_t copy) {
    const int32_t value = graph_.steps[copy].args[0], state = graph_.steps[copy].args[1];
    const Buffer& from = graph_.buffers[value];
    if (from.kind != BufferKind::kTemp || !SameLayout(from, graph_.buffers[state])) {
      return Keep(copy, absl::StrCat("its value is the ", Name(from.kind), " buffer %", from.name));
    }
    if (aliased_[value] || aliased_[state]) return Keep(copy, "its storage is taken over already");
    const int32_t producer = FirstWriter(value);
    if (producer < 0) return;
    for (int32_t s : users_[state]) {
      for (const Use& use : uses_[s]) {
        if (use.buffer != state || s == copy || removed_[s]) continue;
        if (use.write) return Keep(copy, "another step writes the state");
        if (s != producer && epochs_[s] >= epochs_[producer]) {
          return Keep(copy, absl::StrCat("step ", s, " reads the old value when the new one is made"));
        }
      }
    }
    const Step& step = graph_.steps[producer];
    const auto read = std::find(step.args.begin(), step.args.end(), state);
    if (read != step.args.end()) {
      const int x = OnlyArg(step, state), y = OnlyArg(step, value);
      if (!Rule(step, x, y)) return Keep(copy, "its step reads other elements of the state than the one it writes");
      merges_[producer].push_back({x, y});
    }
    removed_[copy] = true;
    all_.changed = true;
    Rebind(value, state);
  }

  void Rebind(int32_t from, int32_t to) {
    for (int32_t s : users_[from]) {
      for (Use& use : uses_[s]) {
        if (use.buffer == from) use.buffer = to;
      }
      for (int32_t& b : graph_.steps[s].args) {
        if (b == from) b = to;
      }
    }
    std::vector<int32_t> both;
    std::set_union(users_[from].begin(), users_[from].end(), users_[to].begin(), users_[to].end(),
                   std::back_inserter(both));
    users_[to] = std::move(both);
    users_[from].clear();
  }

  bool Merged(int32_t step, uint32_t arg) const {
    return std::any_of(merges_[step].begin(), merges_[step].end(),
                       [&](const auto& m) { return m.first == arg || m.second == arg; });
  }

  // Whether all uses of the class of `buffer`, other than those of `step`, come in earlier epochs (or, the other way,
  // in later ones). Epochs never fall from step to step, so the last (first) other use decides.
  bool Apart(int32_t buffer, int32_t step, bool before) const {
    const std::vector<int32_t>& all = class_steps_[class_[buffer]];
    if (before) {
      const auto last = std::find_if(all.rbegin(), all.rend(), [&](int32_t s) { return s != step; });
      return last == all.rend() || epochs_[*last] < epochs_[step];
    }
    const auto first = std::find_if(all.begin(), all.end(), [&](int32_t s) { return s != step; });
    return first == all.end() || epochs_[*first] > epochs_[step];
  }

  // y, whose class is itself alone, joins that of x, which is used before it.
  void Join(int32_t y, int32_t x) {
    graph_.buffers[y].alias = x;
    aliased_[y] = aliased_[x] = true;
    std::vector<int32_t>& all = class_steps_[class_[x]];
    for (int32_t s : class_steps_[class_[y]]) {
      if (all.empty() || all.back() != s) all.push_back(s);
    }
    class_[y] = class_[x];
  }

  void TakeOver(int32_t s) {
    const Step& step = graph_.steps[s];
    for (const Use& y : uses_[s]) {
      if (!y.write || y.read || Merged(s, y.arg) || graph_.buffers[y.buffer].kind != BufferKind::kTemp) continue;
      if (aliased_[y.buffer] || !Apart(y.buffer, s, false)) continue;
      for (const Use& x : uses_[s]) {
        if (!x.read || x.write || Merged(s, x.arg) || graph_.buffers[x.buffer].kind != BufferKind::kTemp) continue;
        if (!SameLayout(graph_.buffers[x.buffer], graph_.buffers[y.buffer]) || !Apart(x.buffer, s, true)) continue;
        if (!Rule(step, OnlyArg(step, x.buffer), OnlyArg(step, y.buffer))) continue;
        Join(y.buffer, x.buffer);
        merges_[s].push_back({x.arg, y.arg});
        all_.changed = true;
        break;
      }
    }
  }

  // Binds merged parameters to what they write, and drops the copies.
  void Apply() {
    const bool any = std::any_of(merges_.begin(), merges_.end(), [](const Merges& m) { return !m.empty(); }) ||
                     std::find(removed_.begin(), removed_.end(), true) != removed_.end();
    if (!any) return;
    std::vector<Step> kept;
    for (int32_t s = 0; s < steps(); ++s) {
      if (removed_[s]) continue;
      Step step = std::move(graph_.steps[s]);
      Merges& merges = merges_[s];
      std::sort(merges.begin(), merges.end());
      if (!merges.empty()) step.callee = CloneFor(step.callee, merges);
      std::vector<bool> gone(step.args.size());
      for (const auto& [read, written] : merges) {
        step.args[read] = step.args[written];
        gone[written] = true;
      }
      std::vector<int32_t> args;
      for (size_t i = 0; i < gone.size(); ++i) {
        if (!gone[i]) args.push_back(step.args[i]);
      }
      step.args = std::move(args);
      kept.push_back(std::move(step));
    }
    graph_.steps = std::move(kept);
    EraseUnusedTemporaries(graph_);
    int32_t epoch = -1, last = -1;
    for (Step& step : graph_.steps) {
      if (step.epoch < 0) break;
      if (step.epoch != last) ++epoch;
      last = step.epoch;
      step.epoch = epoch;
    }
  }

  uint32_t CloneFor(uint32_t callee, const Merges& merges) {
    const auto [it, inserted] = all_.clones.try_emplace({callee, merges}, 0);
    if (!inserted) return it->second;
    std::vector<ParamPair> pairs;
    for (const auto& [read, written] : merges) pairs.push_back({read, written});
    std::vector<Kernel>& kernels = all_.program.kernels;
    it->second = static_cast<uint32_t>(kernels.size());
    Kernel clone = MergeParams(kernels[callee], pairs);
    const std::string base = clone.name;
    for (int n = 0;; ++n) {
      clone.name = absl::StrCat(base, "_inplace", n == 0 ? "" : absl::StrCat(n));
      if (std::none_of(kernels.begin(), kernels.end(), [&](const Kernel& k) { return k.name == clone.name; })) break;
    }
    kernels.push_back(std::move(clone));
    return it->second;
  }

  Aliaser& all_;
  Graph& graph_;
  std::vector<int64_t> epochs_;
  std::vector<std::vector<Use>> uses_ = {};
  std::vector<Merges> merges_ = {};               // by step
  std::vector<bool> removed_ = {};                // copies that go
  std::vector<bool> aliased_ = {};                // buffers that take over storage, or whose storage is taken over
  std::vector<std::vector<int32_t>> users_ = {};  // by buffer: steps, ascending
  std::vector<int32_t> class_ = {};               // by buffer: of what shares its storage
  std::vector<std::vector<int32_t>> class_steps_ = {};  // by class: steps that use it, ascending
};

// A kernel whose every step now uses a clone goes; its first clone takes its place and name.
void DropReplacedKernels(Aliaser& all) {
  std::vector<Kernel>& kernels = all.program.kernels;
  std::vector<int32_t> renamed(kernels.size(), -1);
  std::set<uint32_t> used;
  for (const Graph& graph : all.program.graphs) {
    for (const Step& step : graph.steps) {
      if (step.kind == StepKind::kDispatch) used.insert(step.callee);
    }
  }
  std::set<uint32_t> moved;
  for (const auto& [key, clone] : all.clones) {
    const uint32_t original = key.first;
    if (used.count(original) > 0) continue;
    used.insert(original);
    kernels[clone].name = kernels[original].name;
    kernels[original] = std::move(kernels[clone]);
    renamed[clone] = static_cast<int32_t>(original);
    moved.insert(clone);
  }
  std::vector<Kernel> kept;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    if (moved.count(k) > 0) continue;
    renamed[k] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(kernels[k]));
  }
  for (uint32_t clone : moved) renamed[clone] = renamed[renamed[clone]];
  kernels = std::move(kept);
  for (Graph& graph : all.program.graphs) {
    for (Step& step : graph.steps) {
      if (step.kind == StepKind::kDispatch) step.callee = static_cast<uint32_t>(renamed[step.callee]);
    }
  }
}

// A parameter is `restrict` where no step binds another parameter to storage of the same class: classes that are alive
// in one step never share bytes.
bool MarkRestrict(Program& program) {
  std::vector<std::vector<bool>> apart(program.kernels.size());  // empty: no step uses the kernel
  for (const Graph& graph : program.graphs) {
    const std::vector<int32_t> roots = StorageRoots(graph);
    for (const Step& step : graph.steps) {
      if (step.kind != StepKind::kDispatch) continue;
      std::vector<bool>& mine = apart[step.callee];
      mine.resize(step.args.size(), true);
      for (size_t i = 0; i < step.args.size(); ++i) {
        const auto same = [&](int32_t other) { return roots[other] == roots[step.args[i]]; };
        if (std::count_if(step.args.begin(), step.args.end(), same) > 1) mine[i] = false;
      }
    }
  }
  bool changed = false;
  for (size_t k = 0; k < apart.size(); ++k) {
    for (size_t i = 0; i < apart[k].size(); ++i) {
      KernelParam& p = program.kernels[k].params[i];
      changed = changed || p.restrict_ != apart[k][i];
      p.restrict_ = apart[k][i];
    }
  }
  return changed;
}

}  // namespace

absl::StatusOr<bool> Alias(Program& program, PassContext& context) {
  Aliaser all{.program = program, .context = context};
  for (Graph& graph : program.graphs) {
    if (context.in_place) GraphAliaser(all, graph).Run();
  }
  DropReplacedKernels(all);
  return MarkRestrict(program) || all.changed;
}

}  // namespace agc
