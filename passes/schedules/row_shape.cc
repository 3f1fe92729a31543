#include "passes/schedules/row_shape.h"

#include <algorithm>

namespace agc {
namespace {

bool ReadsStages(const Nest& nest, ExprId id) {
  const std::vector<Expr> nodes = PostOrder(nest.at(id));
  return std::any_of(nodes.begin(), nodes.end(), [](Expr e) { return e.is(ExprKind::kStage); });
}

}  // namespace

bool RowShapeOf(const Nest& nest, RowShape& shape) {
  if (nest.stages.empty() || nest.stores.empty()) return false;
  shape.rows = nest.components[0].axes;
  const auto in_rows = [&](VarId v) { return std::find(shape.rows.begin(), shape.rows.end(), v) != shape.rows.end(); };
  for (const Component& c : nest.components) {
    if (c.axes.size() != shape.rows.size() || !std::all_of(c.axes.begin(), c.axes.end(), in_rows)) return false;
  }
  for (const NestStage& stage : nest.stages) {
    if (stage.kind == StageKind::kContract || stage.kind == StageKind::kScan) return false;
  }
  for (const NestStore& store : nest.stores) {
    std::vector<VarId> columns, axes = StoreAxes(nest, store);
    size_t rows = 0;
    for (VarId v : axes) {
      if (in_rows(v)) ++rows;
      if (!in_rows(v)) columns.push_back(v);
    }
    if (rows != shape.rows.size()) return false;
    if (!columns.empty() && !shape.columns.empty() && columns != shape.columns) return false;
    if (!columns.empty()) shape.columns = columns;
  }
  return true;
}

std::vector<const NestStore*> StoresOver(const Nest& nest, const RowShape& shape, bool rows_only) {
  std::vector<const NestStore*> all;
  for (const NestStore& store : nest.stores) {
    if ((StoreAxes(nest, store).size() == shape.rows.size()) == rows_only) all.push_back(&store);
  }
  return all;
}

int64_t LongestReduction(const Nest& nest) {
  int64_t longest = 1;
  for (const NestStage& stage : nest.stages) {
    if (LiveElements(nest, stage).pool == nullptr) longest = std::max(longest, Extent(nest, stage.over));
  }
  return longest;
}

bool Splittable(const Nest& nest, const RowShape& shape) {
  for (const NestStore* store : StoresOver(nest, shape, /*rows_only=*/false)) {
    if (ReadsStages(nest, store->value)) return false;
  }
  for (const NestStage& stage : nest.stages) {
    if (stage.kind != StageKind::kReduce) continue;
    if (stage.when.valid() && ReadsStages(nest, stage.when)) return false;
    for (ExprId id : stage.values) {
      if (ReadsStages(nest, id)) return false;
    }
    for (int c = 0; c < stage.combiner->components; ++c) {
      if (SizeOf(nest.components[stage.first_component + static_cast<uint32_t>(c)].dtype) < 4) return false;
    }
  }
  return true;
}

}  // namespace agc
