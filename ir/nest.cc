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
