// Sorts the steps of every graph into barrier epochs: steps of one epoch depend on none of each other and run side by
// side. First as few epochs as the longest chain of dependences has, then few bytes of temporaries alive at once.
//   dispatch @exp (%x, %a)              dispatch @exp (%x, %a) epoch 0
//   dispatch @neg (%a, %y)        ->    dispatch @exp (%z, %b) epoch 0
//   dispatch @exp (%z, %b)              dispatch @neg (%a, %y) epoch 1
// A step that makes a state's next value goes after the other readers of the state, so that `alias` may let it write
// the state in place of the copy, unless the epochs that this adds cost more than the copy.
#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "passes/element_rule.h"
#include "passes/flat_plan.h"
#include "passes/memory/planner.h"
#include "passes/registry.h"
#include "passes/step_uses.h"

namespace agc {
namespace {

using Lists = std::vector<std::vector<int32_t>>;

struct Orderer {
  const Program& program;
  const Graph& graph;
  Lists before = {}, after = {};
  std::vector<std::vector<Use>> uses = {};
  std::vector<int32_t> roots = {};
  std::vector<int64_t> bytes = {};    // by class; 0 for what is no temporary
  std::vector<bool> weightless = {};  // copies that alias will remove
  Lists readers = {};                 // by class
  std::vector<int32_t> writer = {};   // by buffer: the first step that writes it, or -1
  std::vector<int32_t> levels = {};   // as Levels gives them without the weightless
};

// Steps such that each comes after those before it. The list itself is one; soft dependences may point backwards in it.
std::vector<int32_t> Topological(const Lists& before, const Lists& after) {
  std::vector<int32_t> missing(before.size()), order;
  for (size_t s = 0; s < before.size(); ++s) missing[s] = static_cast<int32_t>(before[s].size());
  for (size_t s = 0; s < before.size(); ++s) {
    if (missing[s] == 0) order.push_back(static_cast<int32_t>(s));
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (int32_t next : after[order[i]]) {
      if (--missing[next] == 0) order.push_back(next);
    }
  }
  return order;
}

// Earliest epoch of each step; the weightless take none of their own.
std::vector<int32_t> Levels(const Orderer& o, bool weigh_all) {
  std::vector<int32_t> level(o.before.size());
  for (int32_t s : Topological(o.before, o.after)) {
    for (int32_t p : o.before[s]) level[s] = std::max(level[s], level[p] + (weigh_all || !o.weightless[s] ? 1 : 0));
  }
  return level;
}

int32_t Depth(const std::vector<int32_t>& levels) {
  return levels.empty() ? 0 : *std::max_element(levels.begin(), levels.end()) + 1;
}

bool Reaches(const Orderer& o, int32_t from, const std::vector<int32_t>& targets) {
  std::vector<bool> seen(o.after.size());
  std::vector<int32_t> stack = {from};
  while (!stack.empty()) {
    const int32_t s = stack.back();
    stack.pop_back();
    if (std::find(targets.begin(), targets.end(), s) != targets.end()) return true;
    for (int32_t next : o.after[s]) {
      if (!seen[next]) stack.push_back(next);
      seen[next] = true;
    }
  }
  return false;
}

void Link(Orderer& o, int32_t first, int32_t second) {
  if (std::find(o.before[second].begin(), o.before[second].end(), first) != o.before[second].end()) return;
  o.before[second].push_back(first);
  o.after[first].push_back(second);
}

void Unlink(Orderer& o, int32_t first, int32_t second) {
  std::erase(o.before[second], first);
  std::erase(o.after[first], second);
}

// The argument of `step` bound to `buffer`, -1 if none, -2 if several.
int ArgOf(const Step& step, int32_t buffer) {
  int found = -1;
  for (size_t i = 0; i < step.args.size(); ++i) {
    if (step.args[i] == buffer) found = found == -1 ? static_cast<int>(i) : -2;
  }
  return found;
}

// Bytes that are copied in the time of an epoch: 2 us at 4 TB/s, 16 us at 4 GB/s (docs/architecture.md has the
// figures).
int64_t CopiedPerEpoch(const Target& target) { return target.cpu() ? int64_t{32} << 10 : int64_t{4} << 20; }

// Lets `producer` wait for `readers`; returns the links that are new. Levels stay right.
std::vector<int32_t> Postpone(Orderer& o, int32_t producer, const std::vector<int32_t>& readers) {
  std::vector<int32_t> added;
  bool later = false;
  for (int32_t r : readers) {
    const size_t count = o.before[producer].size();
    Link(o, r, producer);
    if (o.before[producer].size() == count) continue;
    added.push_back(r);
    later = later || o.levels[r] >= o.levels[producer];
  }
  if (later) o.levels = Levels(o, false);  // else the readers come before it anyway
  return added;
}

// For the copy of a new value into a state: lets the value's producer wait for the state's other readers.
void PreferInPlace(Orderer& o, const Target& target, int32_t copy) {
  const int32_t value = o.graph.steps[copy].args[0], state = o.graph.steps[copy].args[1];
  if (o.graph.buffers[state].kind != BufferKind::kState || o.graph.buffers[value].kind != BufferKind::kTemp) return;
  const int32_t producer = o.writer[value];
  if (producer < 0) return;
  std::vector<int32_t> readers = o.readers[o.roots[state]];
  std::erase(readers, copy);
  if (std::find(readers.begin(), readers.end(), producer) != readers.end()) {
    const Step& step = o.graph.steps[producer];
    const int read = ArgOf(step, state), written = ArgOf(step, value);
    if (step.kind != StepKind::kDispatch || read < 0 || written < 0) return;
    if (!ElementRule(o.program.kernels[step.callee], read, written)) return;
    std::erase(readers, producer);
  }
  if (Reaches(o, producer, readers)) return;
  const int32_t depth = Depth(o.levels);
  o.weightless[copy] = true;
  if (o.after[copy].empty()) {
    o.levels[copy] = 0;
    for (int32_t p : o.before[copy]) o.levels[copy] = std::max(o.levels[copy], o.levels[p]);
  } else {
    o.levels = Levels(o, false);
  }
  const std::vector<int32_t> added = Postpone(o, producer, readers);
  const int64_t later = Depth(o.levels) - depth;
  if (later <= 0 || PaddedBytes(o.graph.buffers[state]) >= later * CopiedPerEpoch(target)) return;
  o.weightless[copy] = false;
  for (int32_t r : added) Unlink(o, r, producer);
  o.levels = Levels(o, false);
}

Orderer MakeOrderer(const Program& program, const Graph& graph) {
  Orderer o{.program = program, .graph = graph, .before = Dependences(program, graph)};
  o.after.resize(o.before.size());
  o.weightless.resize(o.before.size());
  for (size_t s = 0; s < o.before.size(); ++s) {
    for (int32_t p : o.before[s]) o.after[p].push_back(static_cast<int32_t>(s));
    o.uses.push_back(UsesOf(program, graph.steps[s]));
  }
  o.roots = StorageRoots(graph);
  o.readers.resize(graph.buffers.size());
  o.writer.assign(graph.buffers.size(), -1);
  for (size_t s = 0; s < o.uses.size(); ++s) {
    const auto step = static_cast<int32_t>(s);
    for (const Use& use : o.uses[s]) {
      if (use.write && o.writer[use.buffer] < 0) o.writer[use.buffer] = step;
      std::vector<int32_t>& readers = o.readers[o.roots[use.buffer]];
      if (use.read && (readers.empty() || readers.back() != step)) readers.push_back(step);
    }
  }
  o.levels = Levels(o, false);
  o.bytes.resize(graph.buffers.size());
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    int64_t& bytes = o.bytes[o.roots[b]];
    if (IsTemporary(graph.buffers[o.roots[b]])) bytes = std::max(bytes, PaddedBytes(graph.buffers[b]));
  }
  return o;
}

// When a step that may wait is taken all the same.
enum class Policy : uint8_t { kEarly, kFrees, kHelpsFree, kLate };

// Fills epochs one after another with steps that are ready.
class Scheduler {
 public:
  Scheduler(const Orderer& o, Policy policy) : o_(o), policy_(policy), epochs_(o.before.size(), -1) {
    unused_.resize(o.graph.buffers.size());
    for (size_t s = 0; s < o.uses.size(); ++s) {
      for (int32_t root : RootsOf(static_cast<int32_t>(s))) ++unused_[root];
    }
    total_ = unused_;
  }

  std::vector<int32_t> Run() {
    const std::vector<int32_t> levels = Levels(o_, true);
    const int32_t depth = Depth(levels);
    std::vector<int32_t> latest(o_.before.size(), depth - 1);
    std::vector<int32_t> order = Topological(o_.before, o_.after);
    std::reverse(order.begin(), order.end());
    for (int32_t s : order) {
      for (int32_t next : o_.after[s]) latest[s] = std::min(latest[s], latest[next] - 1);
    }
    for (size_t s = 0; s < epochs_.size(); ++s) {
      missing_.push_back(static_cast<int32_t>(o_.before[s].size()));
      if (missing_[s] == 0) ready_.push_back(static_cast<int32_t>(s));
    }
    for (int32_t epoch = 0; epoch < depth; ++epoch) {
      const std::vector<int32_t> ready = std::move(ready_);
      const auto must = [&](int32_t s) { return latest[s] == epoch || policy_ == Policy::kEarly; };
      for (int32_t s : ready) {
        if (must(s)) Take(s, epoch);
      }
      for (bool taken = policy_ != Policy::kLate; taken;) {
        taken = false;
        for (int32_t s : ready) {
          if (epochs_[s] >= 0 || Growth(s) > 0) continue;
          Take(s, epoch);
          taken = true;
        }
      }
      FindReady(ready);
    }
    return std::move(epochs_);
  }

 private:
  std::vector<int32_t> RootsOf(int32_t step) const {
    std::vector<int32_t> roots;
    for (const Use& use : o_.uses[step]) {
      const int32_t root = o_.roots[use.buffer];
      if (o_.bytes[root] > 0 && std::find(roots.begin(), roots.end(), root) == roots.end()) roots.push_back(root);
    }
    return roots;
  }

  // Those of `ready` that were not taken, and those that waited for the others, in order.
  void FindReady(const std::vector<int32_t>& ready) {
    ready_.clear();
    for (int32_t s : ready) {
      if (epochs_[s] < 0) ready_.push_back(s);
      for (int32_t next : o_.after[s]) {
        if (epochs_[s] >= 0 && --missing_[next] == 0) ready_.push_back(next);
      }
    }
    std::sort(ready_.begin(), ready_.end());
  }

  void Take(int32_t step, int32_t epoch) {
    epochs_[step] = epoch;
    for (int32_t root : RootsOf(step)) --unused_[root];
  }

  // Bytes that become alive with the step less those that die with it.
  double Growth(int32_t step) const {
    double growth = 0;
    for (int32_t root : RootsOf(step)) {
      if (unused_[root] == total_[root]) growth += static_cast<double>(o_.bytes[root]);
      if (policy_ == Policy::kHelpsFree) growth -= static_cast<double>(o_.bytes[root]) / unused_[root];
      if (policy_ == Policy::kFrees && unused_[root] == 1) growth -= static_cast<double>(o_.bytes[root]);
    }
    return growth;
  }

  const Orderer& o_;
  const Policy policy_;
  std::vector<int32_t> epochs_;
  std::vector<int32_t> ready_ = {}, missing_ = {};  // missing: by step, predecessors not taken yet
  std::vector<int32_t> unused_ = {}, total_ = {};   // by class: steps that use it, not yet taken and all
};

int64_t PeakBytes(const Orderer& o, const std::vector<int32_t>& epochs, int64_t align) {
  const std::vector<Life> lives = LivesOf(o.program, o.graph, {epochs.begin(), epochs.end()});
  std::vector<memory::Interval> intervals;
  for (size_t b = 0; b < lives.size(); ++b) {
    if (o.bytes[b] > 0 && lives[b].first >= 0) intervals.push_back({o.bytes[b], lives[b].first, lives[b].last});
  }
  return memory::LiveBound(intervals, align);
}

bool OrderGraph(const Program& program, const PassContext& context, Graph& graph) {
  Orderer o = MakeOrderer(program, graph);
  for (size_t s = 0; s < graph.steps.size() && context.in_place; ++s) {
    if (graph.steps[s].kind == StepKind::kCopy) PreferInPlace(o, context.target, static_cast<int32_t>(s));
  }
  std::vector<int32_t> epochs;
  int64_t lowest = INT64_MAX;
  for (Policy policy : {Policy::kEarly, Policy::kFrees, Policy::kHelpsFree, Policy::kLate}) {
    std::vector<int32_t> tried = Scheduler(o, policy).Run();
    const int64_t peak = PeakBytes(o, tried, PlanAlignment(context.target));
    if (peak < lowest) {
      lowest = peak;
      epochs = std::move(tried);
    }
  }
  std::vector<int32_t> order(graph.steps.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return epochs[a] < epochs[b]; });
  bool changed = !std::is_sorted(order.begin(), order.end());
  std::vector<Step> steps;
  for (int32_t s : order) {
    changed = changed || graph.steps[s].epoch != epochs[s];
    steps.push_back(std::move(graph.steps[s]));
    steps.back().epoch = epochs[s];
  }
  graph.steps = std::move(steps);
  return changed;
}

}  // namespace

absl::StatusOr<bool> Order(Program& program, PassContext& context) {
  bool changed = false;
  for (Graph& graph : program.graphs) changed = OrderGraph(program, context, graph) || changed;
  return changed;
}

}  // namespace agc
