// form-groups: which ops share a kernel, recorded as op.group. From the last op to the first, each op that no kernel
// has taken yet becomes the root of a group, which then absorbs producers as long as that pays and some schedule family
// fits the result:
//   - a producer all of whose users are inside vanishes into the group;
//   - one that costs little more than reading it (views, casts, literals) is cloned for the group;
//   - any other becomes one more output of the group, if no value would have to go around through another kernel.
//   %0 = matmul %x, @w   %1 = add %0, %b   %2 = tanh %1      =>   all three: group 0
// What no family can compute without computing reductions more than once is refused by the families' `matches`.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "passes/groups.h"
#include "passes/pass.h"
#include "passes/schedules/tools.h"

namespace agc {
namespace {

constexpr double kCloneCost = 2;   // scalar operations that are cheaper than a trip through memory
constexpr double kRepeatCost = 8;  // scalar operations that may be repeated for every element of a broadcast
constexpr double kMostTimes = 8;   // how often a group may do the work of a producer over, to spare its storage
constexpr size_t kMaxOps = 48;     // ops of a group: bounds the work of checking one

// What one op does by itself.
struct Facts {
  double cost = 0;  // of its scalar operations, per element
  bool reduces = false;
  int64_t read = 0;                // bytes of its operands
  double overlap = 1;              // how often its reductions read an element of its largest operand
  double work = 0;                 // scalar operations for all elements
  std::map<OpId, int> loads = {};  // how many elements of an operand one element of the result reads, sums apart
};

// Steps of the longest reduction, over all elements.
double StepsOf(const Nest& nest) {
  double most = 0;
  for (const NestStage& stage : nest.stages) {
    double steps = 1;
    for (VarId v : nest.components[stage.first_component].axes) steps *= static_cast<double>(nest.extent(v));
    for (VarId v : stage.over) steps *= static_cast<double>(nest.extent(v));
    most = std::max(most, steps);
  }
  return most;
}

double CostOf(const Nest& nest, ExprId id) {
  double cost = 0;
  for (Expr e : PostOrder(nest.at(id))) {
    if (e.is(ExprKind::kAlu)) cost += ScalarOps()[e.node().ref].cost;
    if (e.is(ExprKind::kToIndex)) cost += 4;  // a dependent load
  }
  return cost;
}

// Scalar operations of the whole nest.
double WorkOf(const Nest& nest) {
  double work = 0;
  for (const NestStage& stage : nest.stages) {
    double each = stage.kind == StageKind::kContract ? 1 : 0;
    for (ExprId id : stage.values) each += CostOf(nest, id);
    const Component& c = nest.components[stage.first_component];
    work += each * static_cast<double>(Extent(nest, c.axes)) * static_cast<double>(Extent(nest, stage.over));
  }
  for (const NestStore& store : nest.stores)
    work += CostOf(nest, store.value) * static_cast<double>(Extent(nest, StoreAxes(nest, store)));
  return work;
}

class Grouper {
 public:
  Grouper(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  absl::Status Run() {
    AGC_RETURN_IF_ERROR(FindFacts());
    FindUsers();
    for (size_t i = graph_.ops.size(); i-- > 0;) {
      const OpId id{static_cast<uint32_t>(i)};
      if (!IsComputed(graph_.op(id)) || graph_.op(id).group >= 0 || Dead(i)) continue;
      Grow(id);
    }
    std::vector<bool> keep(graph_.ops.size());
    for (size_t i = 0; i < keep.size(); ++i) keep[i] = !Dead(i);
    Erase(graph_, keep);
    Renumber();
    return absl::OkStatus();
  }

 private:
  absl::Status FindFacts() {
    facts_.resize(graph_.ops.size());
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const OpId id{static_cast<uint32_t>(i)};
      const Op& op = graph_.op(id);
      if (!IsComputed(op)) continue;
      AGC_ASSIGN_OR_RETURN(const LoweredNest low,
                           LowerToNest(graph_, {{id, 0}}, [&](OpId other) { return other == id; }));
      facts_[i].reduces = !low.nest.stages.empty();
      facts_[i].cost = CostOf(low.nest, low.nest.stores[0].value);
      int64_t largest = 1;
      for (ValueRef v : low.inputs) {
        facts_[i].read += TypeOf(graph_, v).bytes();
        largest = std::max(largest, TypeOf(graph_, v).elements());
      }
      facts_[i].overlap = StepsOf(low.nest) / static_cast<double>(largest);
      facts_[i].work = WorkOf(low.nest);
      for (Expr e : PostOrder(low.nest.at(low.nest.stores[0].value))) {
        if (e.is(ExprKind::kLoad)) ++facts_[i].loads[low.inputs[e.node().ref].op];
      }
    }
    return absl::OkStatus();
  }

  void FindUsers() {
    users_.assign(graph_.ops.size(), {});
    leaves_.assign(graph_.ops.size(), false);
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (!IsComputed(graph_.ops[i])) continue;
      for (OpId operand : graph_.ops[i].operands)
        users_[Resolve(graph_, operand).op.index].insert(static_cast<uint32_t>(i));
    }
    for (const Output& out : graph_.outputs) leaves_[Resolve(graph_, out.value).op.index] = true;
    for (const Update& update : graph_.updates) leaves_[Resolve(graph_, update.value).op.index] = true;
  }

  // No value of `ops` may leave and come back through other kernels: a walk over users from those outside, where
  // reaching one op of a group reaches all of it, must not meet `ops` again.
  bool Convex(const std::set<OpId>& ops) const {
    std::vector<uint32_t> open;
    std::set<uint32_t> seen;
    const auto push = [&](uint32_t i) {
      if (seen.insert(i).second) open.push_back(i);
    };
    for (OpId id : ops) {
      for (uint32_t u : users_[id.index]) {
        if (ops.count({u}) == 0) push(u);
      }
    }
    while (!open.empty()) {
      const uint32_t i = open.back();
      open.pop_back();
      if (ops.count({i}) != 0) return false;
      const auto group = members_.find(graph_.ops[i].group);
      if (group != members_.end()) std::for_each(group->second.begin(), group->second.end(), push);
      std::for_each(users_[i].begin(), users_[i].end(), push);
    }
    return true;
  }

  std::vector<ValueRef> OutputsOf(const std::set<OpId>& ops) const {
    std::set<ValueRef> outputs;
    const auto inside = [&](OpId id) { return ops.count(id) != 0; };
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      if (!IsComputed(op) || inside({static_cast<uint32_t>(i)}) || Dead(i)) continue;
      for (OpId operand : op.operands) {
        if (const ValueRef v = Resolve(graph_, operand); inside(v.op)) outputs.insert(v);
      }
    }
    for (const Output& out : graph_.outputs) {
      if (const ValueRef v = Resolve(graph_, out.value); inside(v.op)) outputs.insert(v);
    }
    for (const Update& update : graph_.updates) {
      if (const ValueRef v = Resolve(graph_, update.value); inside(v.op)) outputs.insert(v);
    }
    return {outputs.begin(), outputs.end()};
  }

  // Some family fits the nest of the group, it needs no more bindings than the target has (one is kept for run.index),
  // and it does no more than `most` work, which it says.
  bool Fits(const std::set<OpId>& ops, double most, double* work) const {
    if (ops.size() > kMaxOps) return false;
    const std::vector<ValueRef> outputs = OutputsOf(ops);
    if (outputs.empty()) return false;
    absl::StatusOr<LoweredNest> low = LowerToNest(graph_, outputs, [&](OpId id) { return ops.count(id) != 0; });
    if (!low.ok()) return false;
    const int64_t buffers = static_cast<int64_t>(low->nest.params.size()) + Copies(ops, outputs) + 1;
    if (buffers > context_.target.storage_buffers) return false;
    const double total = WorkOf(low->nest);
    if (total > most) return false;
    FormContractions(low->nest);
    if (!PlainSides(low->nest)) return false;
    const bool fits = std::any_of(ScheduleFamilies().begin(), ScheduleFamilies().end(),
                                  [&](const ScheduleFamily* f) { return f->matches(low->nest); });
    if (fits) *work = total;
    return fits;
  }

  // Buffers beyond one per value: a value is stored once for the ops of other groups and for updates, and once for each
  // output of the graph.
  int64_t Copies(const std::set<OpId>& ops, const std::vector<ValueRef>& outputs) const {
    int64_t copies = 0;
    for (ValueRef v : outputs) {
      const auto is = [&](const auto& root) { return Resolve(graph_, root.value) == v; };
      const bool read = std::any_of(users_[v.op.index].begin(), users_[v.op.index].end(),
                                    [&](uint32_t user) { return ops.count({user}) == 0; }) ||
                        std::any_of(graph_.updates.begin(), graph_.updates.end(), is);
      copies += (read ? 1 : 0) + std::count_if(graph_.outputs.begin(), graph_.outputs.end(), is) - 1;
    }
    return copies;
  }

  // A contraction reads its operands many times over: nothing that computes may be inlined into them.
  static bool PlainSides(const Nest& nest) {
    for (const NestStage& stage : nest.stages) {
      if (stage.kind != StageKind::kContract) continue;
      for (ExprId side : stage.values) {
        if (CostOf(nest, side) > 0) return false;
      }
    }
    return true;
  }

  void Grow(OpId root) {
    const int group = next_group_++;
    std::set<OpId> ops = {root};
    graph_.op(root).group = group;
    members_[group] = {root.index};
    double work = facts_[root.index].work;
    bool grew = context_.fuse;
    while (grew) {
      grew = false;
      for (OpId producer : Producers(ops)) {
        if (!Absorb(producer, ops, group, work)) continue;
        grew = true;
        break;
      }
    }
  }

  // Computed ops that the group reads, nearest first.
  std::vector<OpId> Producers(const std::set<OpId>& ops) const {
    std::set<OpId> all;
    for (OpId id : ops) {
      for (OpId operand : graph_.op(id).operands) {
        const OpId p = Resolve(graph_, operand).op;
        if (ops.count(p) == 0 && IsComputed(graph_.op(p))) all.insert(p);
      }
    }
    return {all.rbegin(), all.rend()};
  }

  bool Absorb(OpId producer, std::set<OpId>& ops, int group, double& work) {
    const Facts& facts = facts_[producer.index];
    const std::set<uint32_t>& users = users_[producer.index];
    const bool all_inside = !leaves_[producer.index] &&
                            std::all_of(users.begin(), users.end(), [&](uint32_t u) { return ops.count({u}) != 0; });
    std::set<OpId> wider = ops;
    wider.insert(producer);
    const bool free = graph_.op(producer).group < 0;
    const bool repeated = facts.cost > kRepeatCost && Elements(producer) * 2 <= Largest(ops);
    if (!facts.reduces && (repeated || ReadOften(producer, ops))) return false;
    if (facts.cost > 0 && ReadTooOften(producer, ops)) return false;
    if (!all_inside && !facts.reduces && !graph_.op(producer).is_tuple() && facts.cost <= kCloneCost &&
        facts.read <= graph_.op(producer).type().bytes())
      return Clone(producer, ops, group, work);
    if (!free || !Convex(wider) || !Fits(wider, MostWork(work, facts, ops), &work)) return false;
    graph_.op(producer).group = group;
    members_[group].insert(producer.index);
    ops = std::move(wider);
    return true;
  }

  // Some reduction inside reads every element many times, as overlapping windows and prefixes do, and would compute the
  // producer as often.
  bool ReadOften(OpId producer, const std::set<OpId>& ops) const {
    std::vector<uint32_t> open = {producer.index};
    std::set<uint32_t> seen;
    while (!open.empty()) {
      const uint32_t i = open.back();
      open.pop_back();
      for (uint32_t u : users_[i]) {
        if (ops.count({u}) == 0 || !seen.insert(u).second) continue;
        if (facts_[u].reduces && facts_[producer.index].cost * (facts_[u].overlap - 1) > 8 * kRepeatCost) return true;
        if (!facts_[u].reduces) open.push_back(u);
      }
    }
    return false;
  }

  // Some op of the group reads the producer at so many places that it would be computed over and over; known without
  // lowering the group, which might be large.
  bool ReadTooOften(OpId producer, const std::set<OpId>& ops) const {
    return std::any_of(ops.begin(), ops.end(), [&](OpId id) {
      const auto it = facts_[id.index].loads.find(producer);
      return it != facts_[id.index].loads.end() && it->second > kMostTimes;
    });
  }

  // What a group that does so much work may do once it has taken in a producer: a cheap one may be repeated for every
  // element.
  double MostWork(double work, const Facts& producer, const std::set<OpId>& ops) const {
    const double each = producer.cost <= kRepeatCost ? kRepeatCost * static_cast<double>(Largest(ops)) : 0;
    return work + std::max(kMostTimes * producer.work, each);
  }

  int64_t Elements(OpId id) const { return graph_.op(id).type().elements(); }
  int64_t Largest(const std::set<OpId>& ops) const {
    int64_t most = 0;
    for (OpId id : ops) most = std::max(most, Elements(id));
    return most;
  }

  // A copy of a cheap producer for this group alone.
  bool Clone(OpId producer, std::set<OpId>& ops, int group, double& work) {
    const OpId clone = graph_.Append(Op(graph_.op(producer)));
    graph_.op(clone).group = group;
    std::set<uint32_t> users;
    for (OpId id : ops) {
      if (Redirect(id, producer, clone)) users.insert(id.index);
    }
    AddFacts(clone, producer, users);
    std::set<OpId> wider = ops;
    wider.insert(clone);
    if (!Fits(wider, MostWork(work, facts_[producer.index], ops), &work)) {
      for (OpId id : ops) Redirect(id, clone, producer);
      DropFacts(clone);
      return false;
    }
    for (uint32_t u : users) users_[producer.index].erase(u);
    Bury(producer);
    members_[group].insert(clone.index);
    ops = std::move(wider);
    return true;
  }

  bool Redirect(OpId user, OpId from, OpId to) {
    bool any = false;
    for (OpId& operand : graph_.op(user).operands) {
      any = any || operand == from;
      if (operand == from) operand = to;
    }
    return any;
  }

  void AddFacts(OpId clone, OpId original, const std::set<uint32_t>& users) {
    facts_.push_back(Facts(facts_[original.index]));
    users_.push_back(users);
    leaves_.push_back(false);
    for (OpId operand : graph_.op(clone).operands) users_[Resolve(graph_, operand).op.index].insert(clone.index);
  }

  void DropFacts(OpId clone) {
    for (OpId operand : graph_.op(clone).operands) users_[Resolve(graph_, operand).op.index].erase(clone.index);
    facts_.pop_back();
    users_.pop_back();
    leaves_.pop_back();
    graph_.ops.pop_back();
  }

  bool Dead(size_t i) const { return IsComputed(graph_.ops[i]) && users_[i].empty() && !leaves_[i]; }

  // An op whose last user went over to a clone uses nothing any more.
  void Bury(OpId id) {
    if (!Dead(id.index)) return;
    for (OpId operand : graph_.op(id).operands) {
      const OpId p = Resolve(graph_, operand).op;
      if (users_[p.index].erase(id.index) != 0) Bury(p);
    }
  }

  // Groups numbered by their first op in canonical order, later; here by root.
  void Renumber() {
    std::map<int, int> names;
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      int& g = graph_.ops[i].group;
      if (g >= 0) g = names.try_emplace(g, static_cast<int>(names.size())).first->second;
    }
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<Facts> facts_ = {};
  std::vector<std::set<uint32_t>> users_ = {};
  std::vector<bool> leaves_ = {};
  std::map<int, std::set<uint32_t>> members_ = {};  // ops of every group formed so far
  int next_group_ = 0;
};

}  // namespace

absl::StatusOr<bool> FormGroups(Program& program, PassContext& context) {
  bool changed = false;
  for (Graph& graph : program.graphs) {
    for (Op& op : graph.ops) {
      changed = changed || op.group >= 0;
      op.group = -1;
    }
    AGC_RETURN_IF_ERROR(Grouper(graph, context).Run());
    changed = Canonicalize(graph, program) || changed;                  // clones stand at the end
    for (const Op& op : graph.ops) changed = changed || op.group >= 0;  // none where nothing is computed
  }
  return changed;
}

}  // namespace agc
