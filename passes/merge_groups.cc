#include "passes/merge_groups.h"

#include <algorithm>
#include <deque>
#include <map>

#include "ir/op_def.h"
#include "passes/fusion_fit.h"
#include "passes/groups.h"

namespace agc {
namespace {

constexpr double kRepeatCost = 8;  // scalar operations that may be repeated for every element
constexpr int kMostSiblings = 4;   // readers of one value that are tried on either side

class Merger {
 public:
  Merger(FusionGraph& graph, const PassContext& context, std::vector<double>& work)
      : graph_(graph), context_(context), work_(work) {}

  std::vector<NotFused> Run() {
    graph_.FindLevels();
    for (int g = 0; g < graph_.groups(); ++g) open_.push_back(g);
    while (!open_.empty()) {
      const int g = open_.front();
      open_.pop_front();
      if (graph_.members(g).empty()) continue;
      const std::vector<int> others = Neighbours(g);
      const auto merged = std::find_if(others.begin(), others.end(), [&](int other) { return TryMerge(g, other); });
      if (merged != others.end()) open_.push_back(g);
    }
    std::vector<NotFused> all;
    for (int g = 0; g < graph_.groups(); ++g) {
      for (int p : ReadBy(g)) {
        const auto why = refused_.find({p, g});
        all.push_back({p, g, why != refused_.end() ? why->second : "not tried, too many kernels read it"});
      }
    }
    return all;
  }

 private:
  int GroupOf(OpId id) const { return IsComputed(graph_.op(id)) ? graph_.op(id).group : -1; }

  // Groups whose values this one reads.
  std::set<int> ReadBy(int group) const {
    std::set<int> all;
    for (OpId id : graph_.members(group)) {
      for (OpId p : graph_.producers(id)) all.insert(GroupOf(p));
    }
    all.erase(group);
    return all;
  }

  // What the group reads from elsewhere.
  OpSet InputsOf(int group) const {
    OpSet inputs;
    for (OpId id : graph_.members(group)) {
      for (OpId operand : graph_.op(id).operands) {
        const OpId p = Resolve(graph_.graph(), operand).op;
        if (GroupOf(p) != group && graph_.op(p).def != &ConstantOp()) inputs.insert(p);
      }
    }
    return inputs;
  }

  int64_t Bytes(OpId id) const {
    int64_t bytes = 0;
    for (const TensorType& type : graph_.op(id).types) bytes += type.bytes();
    return bytes;
  }

  // Groups that this one reads or that read it, and those that read the largest of its inputs too: as much as one of
  // the two reads anyway is then read once.
  std::vector<int> Neighbours(int group) const {
    std::set<int> all;
    const OpSet inputs = InputsOf(group);
    int64_t largest = 0;
    for (OpId p : inputs) largest = std::max(largest, Bytes(p));
    for (OpId p : inputs) {
      if (GroupOf(p) >= 0) all.insert(GroupOf(p));
      if (Bytes(p) != largest) continue;
      const OpSet& users = graph_.users(p);
      const auto at = users.lower_bound(*graph_.members(group).begin());
      auto before = at;
      for (int n = 0; n < kMostSiblings && before != users.begin(); ++n) all.insert(GroupOf(*--before));
      auto after = at;
      for (int n = 0; n < kMostSiblings && after != users.end(); ++n) all.insert(GroupOf(*after++));
    }
    for (OpId id : graph_.members(group)) {
      int n = 0;
      for (auto user = graph_.users(id).begin(); user != graph_.users(id).end() && n < kMostSiblings; ++user, ++n)
        all.insert(GroupOf(*user));
    }
    all.erase(group);
    all.erase(-1);  // of ops that nothing uses
    return {all.rbegin(), all.rend()};
  }

  // Takes `other` into `group`.
  bool TryMerge(int group, int other) {
    if (graph_.members(other).empty()) return false;
    const std::pair<int, int> key = ReadBy(other).count(group) != 0 ? std::pair(group, other) : std::pair(other, group);
    const std::pair<int, int> sizes = {static_cast<int>(graph_.members(key.first).size()),
                                       static_cast<int>(graph_.members(key.second).size())};
    const auto [tried, fresh] = tried_.try_emplace(key, sizes);
    if (!fresh && tried->second == sizes) return false;
    tried->second = sizes;
    std::string why = WhyNot(group, other);
    if (!why.empty()) {
      refused_[key] = std::move(why);
      return false;
    }
    refused_.erase(key);
    graph_.Merge(other, group);
    return true;
  }

  // Empty: they may be merged, and the work of `group` is that of both.
  std::string WhyNot(int group, int other) {
    const OpSet &a = graph_.members(group), &b = graph_.members(other);
    OpSet both = a;
    both.insert(b.begin(), b.end());
    int64_t largest = 0;
    for (OpId id : both) largest = std::max(largest, graph_.op(id).types[0].elements());
    const double most = work_[group] + work_[other] + kRepeatCost * static_cast<double>(largest);
    Fit fit = FitOf(graph_, both, context_, most, /*alike=*/true);
    if (!fit.ok()) return std::move(fit.refused);
    if (graph_.Lengthens(group, other)) return "what waits for one of them would wait for both";
    const int level_a = graph_.level(group), level_b = graph_.level(other);
    if ((level_a < level_b && graph_.ReachesAround(a, b, level_b)) ||
        (level_b < level_a && graph_.ReachesAround(b, a, level_a)))
      return "another kernel computes from one what the other needs";
    work_[group] = fit.work;
    return {};
  }

  FusionGraph& graph_;
  const PassContext& context_;
  std::vector<double>& work_;
  std::deque<int> open_ = {};
  std::map<std::pair<int, int>, std::pair<int, int>> tried_ = {};  // sizes of the groups then
  std::map<std::pair<int, int>, std::string> refused_ = {};
};

}  // namespace

std::vector<NotFused> MergeGroups(FusionGraph& graph, const PassContext& context, std::vector<double>& work) {
  return Merger(graph, context, work).Run();
}

}  // namespace agc
