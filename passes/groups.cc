#include "passes/groups.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/op_def.h"

namespace agc {

bool IsComputed(const Op& op) { return op.def->at != nullptr && op.def != &GetOp() && op.def != &ConstantOp(); }

namespace {

// Group number of every computed op, in [0, n), numbered by first op; -1 for the rest.
std::vector<int> Number(const Graph& graph, std::vector<Group>& groups) {
  std::vector<int> of(graph.ops.size(), -1);
  std::map<int, int> named;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (!IsComputed(op)) continue;
    int number = static_cast<int>(groups.size());
    if (op.group >= 0) number = named.try_emplace(op.group, number).first->second;
    if (number == static_cast<int>(groups.size())) groups.emplace_back();
    of[i] = number;
    groups[number].ops.push_back({static_cast<uint32_t>(i)});
  }
  return of;
}

void FindOutputs(const Graph& graph, const std::vector<int>& of, std::vector<Group>& groups) {
  std::set<ValueRef> leaving;
  const auto leave = [&](ValueRef v) {
    if (of[v.op.index] >= 0) leaving.insert(v);
  };
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].def == &GetOp()) continue;
    for (OpId operand : graph.ops[i].operands) {
      const ValueRef v = Resolve(graph, operand);
      if (of[v.op.index] != of[i]) leave(v);
    }
  }
  for (const Output& out : graph.outputs) leave(Resolve(graph, out.value));
  for (const Update& update : graph.updates) leave(Resolve(graph, update.value));
  for (ValueRef v : leaving) groups[of[v.op.index]].outputs.push_back(v);
}

}  // namespace

absl::StatusOr<std::vector<Group>> GroupsOf(const Graph& graph) {
  std::vector<Group> groups;
  const std::vector<int> of = Number(graph, groups);
  FindOutputs(graph, of, groups);
  std::vector<std::set<int>> readers(groups.size());
  std::vector<int> missing(groups.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (of[i] < 0) continue;
    for (OpId operand : graph.ops[i].operands) {
      const int producer = of[Resolve(graph, operand).op.index];
      if (producer >= 0 && producer != of[i] && readers[producer].insert(of[i]).second) ++missing[of[i]];
    }
  }
  std::set<int> ready;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (missing[g] == 0) ready.insert(static_cast<int>(g));
  }
  std::vector<Group> sorted;
  while (!ready.empty()) {
    const int g = *ready.begin();
    ready.erase(ready.begin());
    for (int reader : readers[g]) {
      if (--missing[reader] == 0) ready.insert(reader);
    }
    sorted.push_back(std::move(groups[g]));
  }
  if (sorted.size() < groups.size()) {
    return absl::InternalError(absl::StrCat("graph @", graph.name, ": groups depend on each other in a circle"));
  }
  sorted.erase(std::remove_if(sorted.begin(), sorted.end(), [](const Group& g) { return g.outputs.empty(); }),
               sorted.end());
  return sorted;
}

}  // namespace agc
