#include "passes/fusion_graph.h"

#include <algorithm>

#include "ir/op_def.h"
#include "passes/groups.h"

namespace agc {
namespace {
constexpr int kMostSteps = 2048;  // of a walk: whether a path exists is asked for every op that may join a group
}

FusionGraph::FusionGraph(Graph& graph) : graph_(graph) {
  users_.resize(graph.ops.size());
  leaves_.resize(graph.ops.size());
  roots_.resize(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (!IsComputed(graph.ops[i])) continue;
    for (OpId operand : graph.ops[i].operands)
      users_[Resolve(graph, operand).op.index].insert({static_cast<uint32_t>(i)});
  }
  const auto root = [&](OpId value, bool update) {
    const ValueRef v = Resolve(graph, value);
    leaves_[v.op.index] = true;
    roots_[v.op.index].emplace_back(v, update);
  };
  for (const Output& out : graph.outputs) root(out.value, false);
  for (const Update& update : graph.updates) root(update.value, true);
}

OpSet FusionGraph::producers(OpId id) const {
  OpSet all;
  for (OpId operand : op(id).operands) {
    const OpId p = Resolve(graph_, operand).op;
    if (IsComputed(op(p))) all.insert(p);
  }
  return all;
}

bool FusionGraph::dead(OpId id) const { return IsComputed(op(id)) && users(id).empty() && !leaves(id); }

bool FusionGraph::UsedOnlyBy(OpId id, const OpSet& ops) const {
  return !leaves(id) &&
         std::all_of(users(id).begin(), users(id).end(), [&](OpId user) { return ops.count(user) != 0; });
}

int FusionGraph::NewGroup() {
  members_.emplace_back();
  return groups() - 1;
}

void FusionGraph::Join(OpId id, int group) {
  graph_.op(id).group = group;
  members_[group].insert(id);
}

void FusionGraph::Merge(int from, int into) {
  const int level = LevelOf(from, into);
  for (OpId id : members_[from]) Join(id, into);
  members_[from].clear();
  heights_[into] = std::max(heights_[into], heights_[from]);
  SetLevel(into, level);
}

std::vector<ValueRef> FusionGraph::OutputsOf(const OpSet& ops) const {
  std::set<ValueRef> outputs;
  for (OpId id : ops) {
    for (const auto& [value, update] : roots_[id.index]) outputs.insert(value);
    for (OpId user : users(id)) {
      if (ops.count(user) != 0) continue;
      if (!op(id).is_tuple()) {
        outputs.insert({id, 0});
        break;
      }
      for (OpId operand : op(user).operands) {
        if (const ValueRef v = Resolve(graph_, operand); v.op == id) outputs.insert(v);
      }
    }
  }
  return {outputs.begin(), outputs.end()};
}

int64_t FusionGraph::BuffersOf(const OpSet& ops, const std::vector<ValueRef>& outputs) const {
  int64_t buffers = 0;
  for (ValueRef v : outputs) {
    bool read = std::any_of(users(v.op).begin(), users(v.op).end(), [&](OpId user) { return ops.count(user) == 0; });
    for (const auto& [value, update] : roots_[v.op.index]) {
      read = read || (update && value == v);
      buffers += !update && value == v ? 1 : 0;
    }
    buffers += read ? 1 : 0;
  }
  return buffers;
}

bool FusionGraph::ReachesAround(const OpSet& from, const OpSet& to, int level) const {
  seen_.resize(graph_.ops.size());
  ++walk_;
  std::vector<OpId> open;
  const auto push = [&](OpId id) {
    if (from.count(id) != 0 || std::exchange(seen_[id.index], walk_) == walk_) return;
    const int group = op(id).group;
    if (group < 0 || levels_.empty() || levels_[group] < level || to.count(id) != 0) open.push_back(id);
  };
  for (OpId id : from) {
    for (OpId user : users(id)) {
      if (to.count(user) == 0) push(user);
    }
    if (open.size() > kMostSteps) return true;
  }
  for (size_t i = 0; i < open.size(); ++i) {
    if (to.count(open[i]) != 0 || open.size() > kMostSteps) return true;
    const int group = op(open[i]).group;
    if (group >= 0) std::for_each(members_[group].begin(), members_[group].end(), push);
    std::for_each(users(open[i]).begin(), users(open[i]).end(), push);
  }
  return false;
}

OpId FusionGraph::Clone(OpId id, const OpSet& ops) {
  const OpId clone = graph_.Append(Op(op(id)));
  graph_.op(clone).group = -1;
  users_.emplace_back();
  leaves_.push_back(false);
  roots_.emplace_back();
  for (OpId user : ops) {
    for (OpId& operand : graph_.op(user).operands) {
      if (operand != id) continue;
      operand = clone;
      users_[clone.index].insert(user);
      users_[id.index].erase(user);
    }
  }
  for (OpId operand : op(clone).operands) users_[Resolve(graph_, operand).op.index].insert(clone);
  return clone;
}

void FusionGraph::Unclone(OpId clone, OpId original) {
  for (OpId user : users(clone)) {
    for (OpId& operand : graph_.op(user).operands) {
      if (operand == clone) operand = original;
    }
    users_[original.index].insert(user);
  }
  for (OpId operand : op(clone).operands) users_[Resolve(graph_, operand).op.index].erase(clone);
  users_.pop_back();
  leaves_.pop_back();
  roots_.pop_back();
  graph_.ops.pop_back();
}

void FusionGraph::Bury(OpId id) {
  std::vector<OpId> open = {id};
  while (!open.empty()) {
    const OpId at = open.back();
    open.pop_back();
    if (!dead(at)) continue;
    if (op(at).group >= 0) members_[op(at).group].erase(at);
    for (OpId operand : op(at).operands) {
      const OpId p = Resolve(graph_, operand).op;
      if (users_[p.index].erase(at) != 0) open.push_back(p);
    }
  }
}

OpSet FusionGraph::ReadersOf(int group) const {
  OpSet readers;
  for (OpId id : members_[group]) {
    for (OpId user : users(id)) {
      if (op(user).group != group) readers.insert(user);
    }
  }
  return readers;
}

void FusionGraph::FindLevels() {
  levels_.assign(members_.size(), 0);
  std::vector<int> missing(members_.size());
  std::vector<std::set<int>> after(members_.size());
  for (int g = 0; g < groups(); ++g) {
    for (OpId reader : ReadersOf(g)) {
      if (op(reader).group >= 0 && after[g].insert(op(reader).group).second) ++missing[op(reader).group];
    }
  }
  std::vector<int> open;
  for (int g = 0; g < groups(); ++g) {
    if (missing[g] == 0) open.push_back(g);
  }
  for (size_t i = 0; i < open.size(); ++i) {
    for (int next : after[open[i]]) {
      levels_[next] = std::max(levels_[next], levels_[open[i]] + 1);
      if (--missing[next] == 0) open.push_back(next);
    }
    depth_ = std::max(depth_, levels_[open[i]]);
  }
  heights_.assign(members_.size(), 0);
  for (size_t i = open.size(); i-- > 0;) {
    for (int next : after[open[i]]) heights_[open[i]] = std::max(heights_[open[i]], heights_[next] + 1);
  }
}

bool FusionGraph::Lengthens(int a, int b) const {
  int height = 0;
  for (int g : {a, b}) {
    for (OpId reader : ReadersOf(g)) {
      const int next = op(reader).group;
      if (next >= 0 && next != a && next != b) height = std::max(height, heights_[next] + 1);
    }
  }
  return LevelOf(a, b) + height > depth_;
}

int FusionGraph::LevelOf(int a, int b) const {
  int level = 0;
  for (int g : {a, b}) {
    for (OpId id : members_[g]) {
      for (OpId p : producers(id)) {
        const int before = op(p).group;
        if (before >= 0 && before != a && before != b) level = std::max(level, levels_[before] + 1);
      }
    }
  }
  return level;
}

void FusionGraph::SetLevel(int group, int level) {
  levels_[group] = level;
  std::vector<int> open = {group};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (OpId reader : ReadersOf(at)) {
      const int next = op(reader).group;
      if (next < 0 || levels_[next] > levels_[at]) continue;
      levels_[next] = levels_[at] + 1;
      open.push_back(next);
    }
  }
}

}  // namespace agc
