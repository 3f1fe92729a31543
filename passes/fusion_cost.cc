#include "passes/fusion_cost.h"

#include <algorithm>

#include "ir/base/status.h"
#include "ir/lowering.h"
#include "ir/merge_stages.h"
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

// A sum of products of matrices, as two factors with what computing each takes.
struct Product {
  Expr left = {}, right = {};
  double products = 0;  // multiply-adds
  double sides = 0;     // scalar operations of both factors
};

// The operations of one factor. Tiles in shared memory compute it once for so many positions along the other's axes.
double WorkOfSide(const Nest& nest, Expr side, const std::vector<VarId>& axes, const Target& target) {
  constexpr int64_t kTile = 32;
  const double cost = CostOf(nest, side.id);
  if (cost == 0) return 0;
  const std::vector<VarId> own = FreeVars(side);
  double points = 1;
  int64_t others = 1;
  for (VarId v : axes) {
    const bool mentioned = std::find(own.begin(), own.end(), v) != own.end();
    (mentioned ? points *= static_cast<double>(nest.extent(v)) : others *= nest.extent(v));
  }
  return cost * points * static_cast<double>(target.cpu() ? others : (others + kTile - 1) / kTile);
}

// Invalid factors: the stage is none.
Product ProductOf(const Nest& nest, const NestStage& stage, const Target& target) {
  Product p;
  if (stage.kind == StageKind::kContract) {
    p.left = nest.at(stage.values[0]);
    p.right = nest.at(stage.values[1]);
  } else if (stage.kind != StageKind::kReduce || stage.combiner != FindCombiner("add") || stage.when.valid() ||
             !SplitProduct(nest.at(stage.values[0]), p.left, p.right)) {
    return {};
  }
  const std::vector<VarId>& results = nest.components[stage.first_component].axes;
  const std::vector<VarId> left = FreeVars(p.left), right = FreeVars(p.right);
  const auto lacks = [&](const std::vector<VarId>& side) {
    return std::any_of(results.begin(), results.end(),
                       [&](VarId v) { return std::find(side.begin(), side.end(), v) == side.end(); });
  };
  if (!lacks(left) || !lacks(right)) return {};  // a matrix and a vector
  std::vector<VarId> axes = results;
  axes.insert(axes.end(), stage.over.begin(), stage.over.end());
  p.products = static_cast<double>(Extent(nest, results)) * static_cast<double>(Extent(nest, stage.over));
  p.sides = WorkOfSide(nest, p.left, axes, target) + WorkOfSide(nest, p.right, axes, target);
  return p;
}

// A contraction reads its operands many times over. Only tiles in shared memory compute what is inlined into them less
// often; that must be little beside the products, or beside a kernel of its own.
bool CheapSides(const Nest& nest, const Target& target) {
  for (const NestStage& stage : nest.stages) {
    if (stage.kind != StageKind::kContract) continue;
    if (CostOf(nest, stage.values[0]) + CostOf(nest, stage.values[1]) == 0) continue;
    const Product p = ProductOf(nest, stage, target);
    if (target.cpu() || p.left.pool == nullptr) return false;
    const double outputs = static_cast<double>(Extent(nest, nest.components[stage.first_component].axes));
    if (p.sides > std::max(0.25 * p.products, WorkPerEpoch(target, outputs))) return false;
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

// A family computes the product together with reductions over its rows, and quicker than two kernels would.
bool ReducesProduct(Nest& nest, const Target& target) {
  if (nest.stages.size() < 2 || target.cpu()) return false;
  Nest merged = Clone(nest);
  MergeStages(merged);
  if (!kProductRowsFamily.matches(merged) || kProductRowsFamily.candidates(merged, target).empty()) return false;
  nest = std::move(merged);
  return true;
}

bool SomeFamilyFits(const Nest& nest) {
  return std::any_of(ScheduleFamilies().begin(), ScheduleFamilies().end(),
                     [&](const ScheduleFamily* f) { return f->matches(nest); });
}

}  // namespace

double WorkPerEpoch(const Target& target, double elements) {
  const double full = static_cast<double>(target.compute_units) * (target.cpu() ? 16 : 512);
  const double most = target.cpu() ? 1 << 17 : 1 << 24;  // 16 us, 2 us: docs/architecture.md
  return most * std::min(1.0, elements / full);
}

double WorkOf(const Nest& nest, const Target& target) {
  const std::vector<VarId> rows = RowAxes(nest);
  double work = 0;
  for (const NestStage& stage : nest.stages) {
    if (const Product p = ProductOf(nest, stage, target); p.left.pool != nullptr) {
      work += p.products + p.sides;
      continue;
    }
    const Component& c = nest.components[stage.first_component];
    const double points = static_cast<double>(Extent(nest, c.axes)) * static_cast<double>(Extent(nest, stage.over));
    if (stage.kind == StageKind::kContract) work += points;
    for (ExprId id : stage.values) work += WorkOf(nest, id, rows, points);
  }
  for (const NestStore& store : nest.stores)
    work += WorkOf(nest, store.value, rows, static_cast<double>(Extent(nest, StoreAxes(nest, store))));
  return work;
}

absl::StatusOr<OpFacts> FactsOf(const Graph& graph, OpId id, const Target& target) {
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
  facts.work = WorkOf(low.nest, target);
  facts.product = !target.cpu() && std::any_of(low.nest.stages.begin(), low.nest.stages.end(), [&](const auto& stage) {
    return ProductOf(low.nest, stage, target).left.pool != nullptr;
  });
  for (Expr e : PostOrder(low.nest.at(low.nest.stores[0].value))) {
    if (e.is(ExprKind::kLoad)) ++facts.loads[low.inputs[e.node().ref].op];
  }
  return facts;
}

bool FormFittingContractions(Nest& nest, const Target& target) {
  if (nest.stages.empty()) return SomeFamilyFits(nest);
  Nest formed = Clone(nest);
  if (!FormContractions(formed)) return SomeFamilyFits(nest);
  const bool product = HasMatrixProduct(formed);
  const auto fits = [&] {
    return product ? IsContraction(formed) || ReducesProduct(formed, target) : SomeFamilyFits(formed);
  };
  if (CheapSides(formed, target) && fits()) {
    nest = std::move(formed);
    return true;
  }
  if (!product && SomeFamilyFits(nest)) return true;
  nest = std::move(formed);
  return false;
}

}  // namespace agc
