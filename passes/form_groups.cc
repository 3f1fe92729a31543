// form-groups: which ops share a kernel, recorded as op.group. From the last op to the first, each op that no kernel
// has taken yet becomes the root of a group, which then absorbs producers as long as that pays and some schedule family
// fits the result:
//   - a producer all of whose users are inside vanishes into the group;
//   - one that costs little more than reading it (views, casts, literals) is cloned for the group;
//   - any other becomes one more output of the group, if no value would have to go around through another kernel.
//   %0 = matmul %x, @w   %1 = add %0, %b   %2 = tanh %1      =>   all three: group 0
// Then groups beside each other are merged (merge_groups.h). What no family can compute without computing reductions
// more than once is refused by the families' `matches`.
#include <algorithm>
#include <limits>
#include <map>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "passes/fusion_cost.h"
#include "passes/fusion_fit.h"
#include "passes/groups.h"
#include "passes/merge_groups.h"
#include "passes/pass.h"

namespace agc {
namespace {

constexpr double kCloneCost = 2;    // scalar operations that are cheaper than a trip through memory
constexpr double kSpreadCost = 24;  // the same, of values that are smaller there than here
constexpr double kRepeatCost = 8;   // scalar operations that may be repeated for every element of a broadcast
constexpr double kMostTimes = 8;    // how often a group may do the work of a producer over, to spare its storage

constexpr int kMostSmall = 16;  // ops that are cloned to spare an epoch

class Grouper {
 public:
  Grouper(Graph& graph, const PassContext& context) : fusion_(graph), context_(context) {}

  absl::StatusOr<std::vector<NotFused>> Run() {
    Graph& graph = fusion_.graph();
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const OpId id{static_cast<uint32_t>(i)};
      facts_.emplace_back();
      if (!IsComputed(graph.op(id))) continue;
      AGC_ASSIGN_OR_RETURN(facts_.back(), FactsOf(graph, id, context_.target));
    }
    FindWhatFollowsParams();
    for (size_t i = graph.ops.size(); i-- > 0;) {
      const OpId id{static_cast<uint32_t>(i)};
      if (IsComputed(graph.op(id)) && graph.op(id).group < 0 && !fusion_.dead(id)) Grow(id);
    }
    std::vector<NotFused> refused;
    if (context_.fuse) refused = MergeGroups(fusion_, context_, work_);
    std::vector<bool> keep(graph.ops.size());
    for (size_t i = 0; i < keep.size(); ++i) keep[i] = !fusion_.dead({static_cast<uint32_t>(i)});
    Erase(graph, keep);
    Renumber(refused);
    return refused;
  }

 private:
  // Kernels with params wait for the one that reads their slots (lower-to-nests), so the first epoch is none of theirs.
  void FindWhatFollowsParams() {
    const Graph& graph = fusion_.graph();
    follows_param_.resize(graph.ops.size());
    for (const GraphParam& p : graph.params) follows_param_[p.op.index] = p.kind == ParamKind::kParam;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      for (OpId operand : graph.ops[i].operands) follows_param_[i] = follows_param_[i] || follows_param_[operand.index];
    }
  }

  // The nearest producer first. Those that were refused are tried again when the group has grown.
  void Grow(OpId root) {
    const int group = fusion_.NewGroup();
    fusion_.Join(root, group);
    roots_.push_back(root);
    work_.push_back(facts_[root.index].work);
    OpSet open = fusion_.producers(root), refused;
    bool grew = context_.fuse;
    while (grew) {
      grew = false;
      while (!open.empty()) {
        const OpId producer = *open.rbegin();
        open.erase(producer);
        const OpId absorbed = Absorb(producer, group);
        if (!absorbed.valid()) {
          refused.insert(producer);
          continue;
        }
        grew = true;
        for (OpId p : fusion_.producers(absorbed)) {
          if (fusion_.members(group).count(p) == 0 && refused.count(p) == 0) open.insert(p);
        }
      }
      open = std::move(refused);
      refused = {};
    }
  }

  // Takes the producer or a clone of it into the group; invalid: neither pays.
  OpId Absorb(OpId producer, int group) {
    const OpSet& ops = fusion_.members(group);
    const OpFacts& facts = facts_[producer.index];
    const bool small = Small(producer, ops);
    const bool spares_epoch =
        (small && !follows_param_[roots_[group].index]) || (!facts.reduces && fusion_.UsedOnlyBy(producer, ops));
    if (!facts.reduces && !spares_epoch && Repeated(producer, ops)) return {};
    if (!facts.reduces && ReadOften(producer, ops)) return {};
    if (facts.cost > 0 && (ReadTooOften(producer, ops) || LeftToItsProducer(producer, ops))) return {};
    if (!fusion_.UsedOnlyBy(producer, ops) && !facts.reduces && !fusion_.op(producer).is_tuple()) {
      const OpId clone = Cheap(producer) || small ? Clone(producer, group, spares_epoch) : OpId();
      if (Cheap(producer) || clone.valid()) return clone;
    }
    if (fusion_.op(producer).group >= 0 || fusion_.ReachesAround({producer}, ops)) return {};
    return Join(producer, group, spares_epoch) ? producer : OpId();
  }

  // `small`: computing it again and again takes less time than an epoch.
  bool Join(OpId producer, int group, bool small) {
    OpSet wider = fusion_.members(group);
    double most = MostWork(work_[group], facts_[producer.index], wider);
    if (small) most = std::max(most, work_[group] + Epoch(wider));
    wider.insert(producer);
    const Fit fit = FitOf(fusion_, wider, context_, most);
    if (!fit.ok()) return false;
    work_[group] = fit.work;
    fusion_.Join(producer, group);
    return true;
  }

  // A copy of a cheap producer for this group alone.
  OpId Clone(OpId producer, int group, bool small) {
    const std::vector<int> opened = GroupsOpenedBy(producer, group);
    const OpId clone = fusion_.Clone(producer, fusion_.members(group));
    facts_.push_back(OpFacts(facts_[producer.index]));
    const bool others = std::all_of(opened.begin(), opened.end(), [&](int g) {
      return FitOf(fusion_, fusion_.members(g), context_, std::numeric_limits<double>::infinity()).ok();
    });
    if (!others || !Join(clone, group, small)) {
      fusion_.Unclone(clone, producer);
      facts_.pop_back();
      return {};
    }
    fusion_.Bury(producer);
    return clone;
  }

  // Other groups that would have to store what a clone of the producer reads, which so far nobody outside them needs.
  std::vector<int> GroupsOpenedBy(OpId producer, int group) const {
    std::vector<int> all;
    for (OpId p : fusion_.producers(producer)) {
      const int g = fusion_.op(p).group;
      if (g >= 0 && g != group && fusion_.UsedOnlyBy(p, fusion_.members(g))) all.push_back(g);
    }
    return all;
  }

  // Computing it takes no more than a trip through memory. On a GPU, what makes much of little (unpooling, say) may
  // take more: others read little, too, then.
  bool Cheap(OpId producer) const {
    const OpFacts& facts = facts_[producer.index];
    const int64_t bytes = fusion_.op(producer).type().bytes();
    if (facts.cost <= kCloneCost && facts.read <= bytes) return true;
    return facts.cost <= kSpreadCost && Spreads(producer);
  }
  bool Spreads(OpId producer) const {
    return !context_.target.cpu() && 2 * facts_[producer.index].read <= fusion_.op(producer).type().bytes();
  }

  // Computing so little again for every element, from what the graph is given, takes less time than waiting for the
  // kernel that computes it once.
  bool Small(OpId producer, const OpSet& ops) const {
    return Elements(producer) * 8 <= Largest(ops) &&
           FromWhatIsGiven(producer, Epoch(ops) / static_cast<double>(Largest(ops)));
  }

  // No kernel is needed for the producer, which costs at most so much per element.
  bool FromWhatIsGiven(OpId producer, double most) const {
    double cost = 0;
    OpSet open = {producer};
    for (int steps = 0; !open.empty(); ++steps) {
      const OpId id = *open.rbegin();
      open.erase(id);
      cost += facts_[id.index].cost;
      if (facts_[id.index].reduces || fusion_.op(id).is_tuple() || cost > most || steps > kMostSmall) return false;
      open.merge(fusion_.producers(id));
    }
    return true;
  }

  // A group without reductions would compute the producer again for every element of a broadcast.
  bool Repeated(OpId producer, const OpSet& ops) const {
    if (facts_[producer.index].cost <= kRepeatCost || Elements(producer) * 2 > Largest(ops)) return false;
    return std::none_of(ops.begin(), ops.end(), [&](OpId id) { return facts_[id.index].reduces; });
  }

  // A side of a product that some kernel before could compute with its own results, as the last of its work: there
  // every element is computed once.
  bool LeftToItsProducer(OpId producer, const OpSet& ops) const {
    if (facts_[producer.index].reduces || Spreads(producer)) return false;
    return FeedsProduct(producer, ops) && !FromWhatIsGiven(producer, std::numeric_limits<double>::infinity());
  }

  // Whether some op inside that reads the producer, through elementwise work at most, is as asked.
  bool SomeReader(OpId producer, const OpSet& ops, absl::FunctionRef<bool(const OpFacts&)> asked) const {
    std::vector<OpId> open = {producer};
    OpSet seen;
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      for (OpId user : fusion_.users(id)) {
        if (ops.count(user) == 0 || !seen.insert(user).second) continue;
        if (asked(facts_[user.index])) return true;
        if (!facts_[user.index].reduces) open.push_back(user);
      }
    }
    return false;
  }

  bool FeedsProduct(OpId producer, const OpSet& ops) const {
    return SomeReader(producer, ops, [](const OpFacts& facts) { return facts.product; });
  }

  // Some reduction inside reads every element many times, as overlapping windows and prefixes do, and would compute the
  // producer as often. What products would do is known from the work of the group.
  bool ReadOften(OpId producer, const OpSet& ops) const {
    const double cost = facts_[producer.index].cost;
    return SomeReader(producer, ops, [&](const OpFacts& facts) {
      return facts.reduces && !facts.product && cost * (facts.overlap - 1) > 8 * kRepeatCost;
    });
  }

  // Some op of the group reads the producer at so many places that it would be computed over and over; known without
  // lowering the group, which might be large.
  bool ReadTooOften(OpId producer, const OpSet& ops) const {
    return std::any_of(ops.begin(), ops.end(), [&](OpId id) {
      const auto it = facts_[id.index].loads.find(producer);
      return it != facts_[id.index].loads.end() && it->second > kMostTimes;
    });
  }

  // What a group that does so much work may do once it has taken in a producer: a cheap one may be repeated for every
  // element, a reduction in as much work as fits the time of a kernel of its own.
  double MostWork(double work, const OpFacts& producer, const OpSet& ops) const {
    const double each = producer.cost <= kRepeatCost ? kRepeatCost * static_cast<double>(Largest(ops)) : 0;
    if (producer.reduces) {
      const double again = std::min((kMostTimes - 1) * producer.work, Epoch(ops));
      return work + producer.work + std::max({again, 0.25 * producer.work, each});
    }
    return work + std::max(kMostTimes * producer.work, each);
  }

  int64_t Elements(OpId id) const { return fusion_.op(id).types[0].elements(); }
  int64_t Largest(const OpSet& ops) const {
    int64_t most = 0;
    for (OpId id : ops) most = std::max(most, Elements(id));
    return most;
  }

  double Epoch(const OpSet& ops) const { return WorkPerEpoch(context_.target, static_cast<double>(Largest(ops))); }

  // Groups numbered by their first op; until then by root.
  void Renumber(std::vector<NotFused>& refused) {
    std::map<int, int> names;
    for (Op& op : fusion_.graph().ops) {
      if (op.group >= 0) op.group = names.try_emplace(op.group, static_cast<int>(names.size())).first->second;
    }
    for (NotFused& n : refused) {
      n.producer = names[n.producer];
      n.consumer = names[n.consumer];
    }
  }

  FusionGraph fusion_;
  const PassContext& context_;
  std::vector<OpFacts> facts_ = {};       // by op
  std::vector<double> work_ = {};         // by group: scalar operations
  std::vector<OpId> roots_ = {};          // by group
  std::vector<bool> follows_param_ = {};  // by op, clones apart
};

// What --explain says of each pair of kernels with a value between them.
void Remark(const Graph& graph, const std::vector<NotFused>& refused, std::vector<std::string>& remarks) {
  std::map<std::pair<int, int>, std::set<ValueRef>> between;
  for (const Op& op : graph.ops) {
    if (!IsComputed(op)) continue;
    for (OpId operand : op.operands) {
      const ValueRef v = Resolve(graph, operand);
      const int from = IsComputed(graph.op(v.op)) ? graph.op(v.op).group : -1;
      if (from >= 0 && from != op.group) between[{from, op.group}].insert(v);
    }
  }
  for (const NotFused& n : refused) {
    std::string names;
    int64_t bytes = 0;
    for (ValueRef v : between[{n.producer, n.consumer}]) {
      absl::StrAppend(&names, names.empty() ? "%" : ", %", v.op.index, " (", graph.op(v.op).def->name, ")");
      bytes += TypeOf(graph, v).bytes();
    }
    remarks.push_back(absl::StrCat("form-groups: graph @", graph.name, ": groups ", n.producer, " and ", n.consumer,
                                   " exchange ", bytes, " bytes of ", names, ": ", n.why));
  }
}

}  // namespace

absl::StatusOr<bool> FormGroups(Program& program, PassContext& context) {
  bool changed = false;
  for (Graph& graph : program.graphs) {
    const auto groups = [&] {
      std::vector<int> all;
      for (const Op& op : graph.ops) all.push_back(op.group);
      return all;
    };
    const std::vector<int> before = groups();
    for (Op& op : graph.ops) op.group = -1;
    AGC_ASSIGN_OR_RETURN(const std::vector<NotFused> refused, Grouper(graph, context).Run());
    changed = Canonicalize(graph, program) || changed;  // clones stand at the end
    Remark(graph, refused, context.remarks);
    changed = changed || groups() != before;
  }
  return changed;
}

}  // namespace agc
