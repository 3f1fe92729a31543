#include "passes/fusion_cost.h"

#include <algorithm>

#include "ir/base/status.h"
#include "ir/lowering.h"
#include "passes/schedules/contract_shape.h"

namespace agc {
namespace {

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

double OwnCost(Expr e) {
  if (e.is(ExprKind::kAlu)) return ScalarOps()[e.node().ref].cost;
  return e.is(ExprKind::kToIndex) ? 4 : 0;  // a dependent load
}

double CostOf(const Nest& nest, ExprId id) {
  double cost = 0;
  for (Expr e : PostOrder(nest.at(id))) cost += OwnCost(e);
  return cost;
}

// The axes that all results of reductions have; none where they differ or something is contracted.
std::vector<VarId> RowAxes(const Nest& nest) {
  std::vector<VarId> rows;
  for (size_t c = 0; c < nest.components.size(); ++c) {
    std::vector<VarId> axes = nest.components[c].axes;
    std::sort(axes.begin(), axes.end());
    if (c > 0 && axes != rows) return {};
    if (nest.stages[nest.components[c].stage].kind != StageKind::kReduce) return {};
    rows = std::move(axes);
  }
  return rows;
}

// Operations of a value that is needed at `points` places. What depends on the row alone is computed once per row: it
// stands before the loop along the row.
double WorkOf(const Nest& nest, ExprId id, const std::vector<VarId>& rows, double points) {
  const double per_row = rows.empty() ? points : std::min(points, static_cast<double>(Extent(nest, rows)));
  std::vector<bool> beyond(nest.pool->size());
  double work = 0;
  for (Expr e : PostOrder(nest.at(id))) {
    bool varies = e.is(ExprKind::kVar) && !std::binary_search(rows.begin(), rows.end(), e.node().ref);
    for (ExprId arg : e.node().args) varies = varies || beyond[arg.index];
    beyond[e.id.index] = varies;
    work += OwnCost(e) * (varies ? points : per_row);
  }
  return work;
}

// A contraction reads its operands many times over: nothing that computes may be inlined into them.
bool PlainSides(const Nest& nest) {
  for (const NestStage& stage : nest.stages) {
    if (stage.kind != StageKind::kContract) continue;
    for (ExprId side : stage.values) {
      if (CostOf(nest, side) > 0) return false;
    }
  }
  return true;
}

// Some stage multiplies matrices: both sides have axes of their own.
bool HasMatrixProduct(const Nest& nest) {
  return std::any_of(nest.stages.begin(), nest.stages.end(), [&](const NestStage& stage) {
    if (stage.kind != StageKind::kContract) return false;
    const ContractAxes axes = ClassifyContraction(nest, stage);
    return !axes.m.empty() && !axes.n.empty();
  });
}

bool SomeFamilyFits(const Nest& nest) {
  return std::any_of(ScheduleFamilies().begin(), ScheduleFamilies().end(),
                     [&](const ScheduleFamily* f) { return f->matches(nest); });
}

}  // namespace

double WorkOf(const Nest& nest) {
  const std::vector<VarId> rows = RowAxes(nest);
  double work = 0;
  for (const NestStage& stage : nest.stages) {
    const Component& c = nest.components[stage.first_component];
    const double points = static_cast<double>(Extent(nest, c.axes)) * static_cast<double>(Extent(nest, stage.over));
    if (stage.kind == StageKind::kContract) work += points;
    for (ExprId id : stage.values) work += WorkOf(nest, id, rows, points);
  }
  for (const NestStore& store : nest.stores)
    work += WorkOf(nest, store.value, rows, static_cast<double>(Extent(nest, StoreAxes(nest, store))));
  return work;
}

absl::StatusOr<OpFacts> FactsOf(const Graph& graph, OpId id) {
  AGC_ASSIGN_OR_RETURN(const LoweredNest low, LowerToNest(graph, {{id, 0}}, [&](OpId other) { return other == id; }));
  OpFacts facts;
  facts.reduces = !low.nest.stages.empty();
  facts.cost = CostOf(low.nest, low.nest.stores[0].value);
  int64_t largest = 1;
  for (ValueRef v : low.inputs) {
    facts.read += TypeOf(graph, v).bytes();
    largest = std::max(largest, TypeOf(graph, v).elements());
  }
  facts.overlap = StepsOf(low.nest) / static_cast<double>(largest);
  facts.work = WorkOf(low.nest);
  for (Expr e : PostOrder(low.nest.at(low.nest.stores[0].value))) {
    if (e.is(ExprKind::kLoad)) ++facts.loads[low.inputs[e.node().ref].op];
  }
  return facts;
}

bool FormFittingContractions(Nest& nest) {
  if (nest.stages.empty()) return SomeFamilyFits(nest);
  Nest formed = Clone(nest);
  if (!FormContractions(formed)) return SomeFamilyFits(nest);
  const bool product = HasMatrixProduct(formed);
  if (PlainSides(formed) && (product ? IsContraction(formed) : SomeFamilyFits(formed))) {
    nest = std::move(formed);
    return true;
  }
  if (!product && SomeFamilyFits(nest)) return true;
  nest = std::move(formed);
  return false;
}

}  // namespace agc
