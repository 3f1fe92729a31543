#include "passes/replace.h"

#include <algorithm>

#include "ir/base/status.h"

namespace agc {

void Replacements::Replace(OpId old, OpId by) {
  AGC_CHECK(old != Resolve(by));
  if (by_.size() <= old.index) by_.resize(graph_.ops.size());
  by_[old.index] = by;
}

OpId Replacements::Resolve(OpId id) const {
  while (id.index < by_.size() && by_[id.index].valid()) id = by_[id.index];
  return id;
}

std::vector<bool> Replacements::Kept() const {
  std::vector<bool> keep(graph_.ops.size());
  std::vector<OpId> stack;
  const auto visit = [&](OpId id) {
    if (!keep[id.index]) stack.push_back(id);
    keep[id.index] = true;
  };
  for (uint32_t i = 0; i < first_new_; ++i) {
    if (!Replaced({i})) visit({i});
  }
  for (const Output& out : graph_.outputs) visit(out.value);
  for (const Update& update : graph_.updates) visit(update.value);
  while (!stack.empty()) {
    const OpId id = stack.back();
    stack.pop_back();
    for (OpId operand : graph_.op(id).operands) visit(operand);
  }
  return keep;
}

bool Replacements::Apply(const Program& program) {
  if (by_.empty() && graph_.ops.size() == first_new_) return false;
  for (Op& op : graph_.ops) {
    for (OpId& id : op.operands) id = Resolve(id);
  }
  for (Output& out : graph_.outputs) out.value = Resolve(out.value);
  for (Update& update : graph_.updates) update.value = Resolve(update.value);
  const std::vector<bool> keep = Kept();
  const bool grew = std::find(keep.begin() + first_new_, keep.end(), true) != keep.end();
  Erase(graph_, keep);
  const bool moved = Canonicalize(graph_, program);
  return grew || moved || !by_.empty();
}

}  // namespace agc
