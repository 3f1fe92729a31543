#include "ir/merge_stages.h"

#include <algorithm>
#include <map>
#include <set>

namespace agc {
namespace {

using Renaming = std::map<VarId, VarId>;

Substitution ToSubstitution(Nest& nest, const Renaming& renaming) {
  Substitution s{.pool = nest.pool.get()};
  for (const auto& [from, to] : renaming) s.vars[from] = nest.pool->Var(to);
  return s;
}

// Adds what turns `from` into `to`, axis by axis.
bool Pair(const Nest& nest, const std::vector<VarId>& from, const std::vector<VarId>& to, Renaming& renaming) {
  if (from.size() != to.size()) return false;
  for (size_t i = 0; i < from.size(); ++i) {
    if (nest.extent(from[i]) != nest.extent(to[i])) return false;
    if (from[i] != to[i] && !renaming.emplace(from[i], to[i]).second) return false;
  }
  return true;
}

// Whether some stage or store has both ends of a pair.
bool Mixes(const Nest& nest, const Renaming& renaming) {
  const auto mixes = [&](const std::set<VarId>& axes) {
    return std::any_of(renaming.begin(), renaming.end(),
                       [&](const auto& pair) { return axes.count(pair.first) + axes.count(pair.second) == 2; });
  };
  const auto add = [&](std::set<VarId>& axes, ExprId id) {
    const std::vector<VarId> vars = FreeVars(nest.at(id));
    axes.insert(vars.begin(), vars.end());
  };
  for (const NestStage& stage : nest.stages) {
    std::set<VarId> axes(stage.over.begin(), stage.over.end());
    const std::vector<VarId>& own = nest.components[stage.first_component].axes;
    axes.insert(own.begin(), own.end());
    for (ExprId id : stage.values) add(axes, id);
    if (stage.when.valid()) add(axes, stage.when);
    if (mixes(axes)) return true;
  }
  return std::any_of(nest.stores.begin(), nest.stores.end(), [&](const NestStore& store) {
    std::set<VarId> axes;
    for (ExprId id : store.index) add(axes, id);
    add(axes, store.value);
    return mixes(axes);
  });
}

// The renaming that makes stage `b` the same as the earlier stage `a`; false: there is none.
bool Same(Nest& nest, const NestStage& a, const NestStage& b, Renaming& renaming) {
  if (a.kind != b.kind || a.combiner != b.combiner || a.kind == StageKind::kScan || a.when.valid() || b.when.valid() ||
      a.values.size() != b.values.size())
    return false;
  if (!Pair(nest, nest.components[b.first_component].axes, nest.components[a.first_component].axes, renaming) ||
      !Pair(nest, b.over, a.over, renaming) || Mixes(nest, renaming))
    return false;
  Substitution s = ToSubstitution(nest, renaming);
  for (size_t i = 0; i < a.values.size(); ++i) {
    if (Substitute(nest.at(b.values[i]), s).id != a.values[i]) return false;
  }
  return true;
}

void Rename(std::vector<VarId>& axes, const Renaming& renaming) {
  for (VarId& v : axes) {
    if (const auto it = renaming.find(v); it != renaming.end()) v = it->second;
  }
}

// Stage `b` goes, `a` stands for it.
void Replace(Nest& nest, size_t a, size_t b, const Renaming& renaming) {
  const uint32_t first = nest.stages[b].first_component, into = nest.stages[a].first_component;
  const auto count = static_cast<uint32_t>(
      std::count_if(nest.components.begin(), nest.components.end(), [&](const Component& c) { return c.stage == b; }));
  std::vector<uint32_t> components(nest.components.size());
  for (uint32_t c = 0; c < components.size(); ++c)
    components[c] = c < first ? c : c < first + count ? into + c - first : c - count;
  Substitution s = ToSubstitution(nest, renaming);
  s.context = &components;
  s.hooks.emplace_back(ExprKind::kStage, [](void* context, Expr original, Index args) {
    const auto& to = *static_cast<const std::vector<uint32_t>*>(context);
    return original.pool->Stage(to[original.node().ref], args, original.dtype());
  });
  const auto substitute = [&](ExprId& id) { id = Substitute(nest.at(id), s).id; };
  for (NestStage& stage : nest.stages) {
    std::for_each(stage.values.begin(), stage.values.end(), substitute);
    if (stage.when.valid()) substitute(stage.when);
    Rename(stage.over, renaming);
    stage.first_component = components[stage.first_component];
  }
  for (NestStore& store : nest.stores) {
    std::for_each(store.index.begin(), store.index.end(), substitute);
    substitute(store.value);
  }
  nest.stages.erase(nest.stages.begin() + static_cast<std::ptrdiff_t>(b));
  nest.components.erase(nest.components.begin() + first, nest.components.begin() + first + count);
  for (Component& c : nest.components) {
    Rename(c.axes, renaming);
    if (c.stage > b) --c.stage;
  }
  std::erase_if(nest.axes, [&](VarId v) { return renaming.count(v) != 0; });
}

bool MergeOne(Nest& nest) {
  for (size_t b = 1; b < nest.stages.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      Renaming renaming;
      if (!Same(nest, nest.stages[a], nest.stages[b], renaming)) continue;
      Replace(nest, a, b, renaming);
      return true;
    }
  }
  return false;
}

}  // namespace

bool MergeStages(Nest& nest) {
  bool changed = false;
  while (MergeOne(nest)) changed = true;
  return changed;
}

}  // namespace agc
