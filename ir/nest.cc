#include "ir/nest.h"

#include <algorithm>

#include "ir/base/status.h"

namespace agc {

absl::string_view Name(StageKind kind) {
  static constexpr absl::string_view kNames[] = {"map", "reduce", "contract", "scan"};
  return kNames[static_cast<int>(kind)];
}

int64_t Schedule::Int(absl::string_view name, int64_t fallback) const {
  for (const auto& [key, value] : params) {
    if (key == name && std::holds_alternative<int64_t>(value)) return *std::get_if<int64_t>(&value);
  }
  return fallback;
}

void Schedule::Set(absl::string_view name, int64_t value) {
  for (auto& [key, old] : params) {
    if (key == name) {
      old = value;
      return;
    }
  }
  params.emplace_back(std::string(name), value);
}

VarId Nest::AddAxis(std::string axis, int64_t extent) {
  const VarId v = pool->Declare({.name = std::move(axis), .lo = 0, .hi = extent - 1});
  axes.push_back(v);
  return v;
}

uint32_t Nest::AddStage(NestStage stage, std::vector<Component> results) {
  stage.first_component = static_cast<uint32_t>(components.size());
  for (Component& c : results) {
    c.stage = static_cast<uint32_t>(stages.size());
    components.push_back(std::move(c));
  }
  stages.push_back(std::move(stage));
  return stages.back().first_component;
}

Nest Clone(const Nest& n) {
  Nest copy;
  copy.name = n.name;
  copy.label = n.label;
  copy.pool = std::make_unique<ExprPool>(*n.pool);
  copy.params = n.params;
  copy.axes = n.axes;
  copy.components = n.components;
  copy.stages = n.stages;
  copy.stores = n.stores;
  copy.schedule = n.schedule;
  copy.loc = n.loc;
  return copy;
}

namespace {
// Stages that a store or a kept later stage reads.
std::vector<bool> Live(const Nest& nest) {
  std::vector<bool> live(nest.stages.size());
  const auto mark = [&](ExprId id) {
    for (Expr e : PostOrder(nest.at(id))) {
      if (e.is(ExprKind::kStage)) live[nest.components[e.node().ref].stage] = true;
    }
  };
  for (const NestStore& store : nest.stores) {
    for (ExprId id : store.index) mark(id);
    mark(store.value);
  }
  for (size_t i = nest.stages.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (ExprId id : nest.stages[i].values) mark(id);
    if (nest.stages[i].when.valid()) mark(nest.stages[i].when);
  }
  return live;
}
}  // namespace

bool DropDeadStages(Nest& nest) {
  const std::vector<bool> live = Live(nest);
  if (std::all_of(live.begin(), live.end(), [](bool l) { return l; })) return false;
  std::vector<uint32_t> renamed(nest.components.size());
  std::vector<Component> components;
  std::vector<NestStage> stages;
  for (size_t i = 0; i < nest.stages.size(); ++i) {
    if (!live[i]) continue;
    NestStage stage = nest.stages[i];
    const uint32_t first = stage.first_component;
    const size_t count =
        stage.combiner != nullptr ? static_cast<size_t>(stage.combiner->components) : stage.values.size();
    stage.first_component = static_cast<uint32_t>(components.size());
    for (size_t c = 0; c < count; ++c) {
      renamed[first + c] = static_cast<uint32_t>(components.size());
      components.push_back(nest.components[first + c]);
      components.back().stage = static_cast<uint32_t>(stages.size());
    }
    stages.push_back(std::move(stage));
  }
  nest.components = std::move(components);
  nest.stages = std::move(stages);
  Substitution s{.pool = nest.pool.get()};
  s.context = &renamed;
  s.hooks.emplace_back(ExprKind::kStage, [](void* map, Expr original, Index args) {
    const auto& names = *static_cast<const std::vector<uint32_t>*>(map);
    return original.pool->Stage(names[original.node().ref], args, original.dtype());
  });
  for (NestStage& stage : nest.stages) {
    for (ExprId& id : stage.values) id = Substitute(nest.at(id), s).id;
    if (stage.when.valid()) stage.when = Substitute(nest.at(stage.when), s).id;
  }
  for (NestStore& store : nest.stores) {
    for (ExprId& id : store.index) id = Substitute(nest.at(id), s).id;
    store.value = Substitute(nest.at(store.value), s).id;
  }
  return true;
}

ContractAxes ClassifyContraction(const Nest& nest, const NestStage& stage) {
  AGC_CHECK(stage.kind == StageKind::kContract);
  const std::vector<VarId> left = FreeVars(nest.at(stage.values[0])), right = FreeVars(nest.at(stage.values[1]));
  const auto has = [](const std::vector<VarId>& vars, VarId v) {
    return std::binary_search(vars.begin(), vars.end(), v);
  };
  ContractAxes axes;
  axes.k = stage.over;
  for (VarId v : nest.components[stage.first_component].axes) {
    const bool l = has(left, v), r = has(right, v);
    (l == r ? axes.batch : l ? axes.m : axes.n).push_back(v);
  }
  return axes;
}

}  // namespace agc
