#include "passes/schedules/contract_shape.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/base/status.h"

namespace agc {
namespace {

int64_t StrideIn(const Nest& nest, const NestStore& store, VarId axis) {
  std::vector<Expr> index;
  for (ExprId id : store.index) index.push_back(nest.at(id));
  const Expr linear = LinearIndex(*nest.pool, nest.params[store.param].type, index);
  for (size_t i = 0; i < linear.node().args.size(); ++i) {
    if (linear.is(ExprKind::kLin) && linear.arg(static_cast<int>(i)) == nest.pool->Var(axis))
      return linear.node().coefs[i];
  }
  return linear == nest.pool->Var(axis) ? 1 : 0;
}

// The nest that adds the parts: the stage becomes a reduction over the scratch buffer, everything else stays.
Nest FinishNest(const Nest& nest, const ContractShape& shape, const TensorType& scratch) {
  Nest finish = Clone(nest);
  finish.name = absl::StrCat(nest.name, "_finish");
  const auto at = static_cast<uint32_t>(
      std::count_if(nest.params.begin(), nest.params.end(), [](const NestParam& p) { return !p.written; }));
  finish.params.insert(finish.params.begin() + at, {"parts", scratch, false});
  for (NestStore& store : finish.stores) ++store.param;
  ExprPool& pool = *finish.pool;
  const auto flatten = [&](const std::vector<VarId>& axes) {
    Expr flat = pool.Int(0);
    for (VarId v : axes) flat = flat * finish.extent(v) + pool.Var(v);
    return flat;
  };
  NestStage& stage = finish.stages[0];
  stage.kind = StageKind::kReduce;
  stage.over = {finish.AddAxis("part", scratch.dims[0])};
  const std::vector<Expr> index = {pool.Var(stage.over[0]), flatten(shape.batch), flatten(shape.m), flatten(shape.n)};
  stage.values = {pool.Load(at, index, scratch.dtype).id};
  finish.schedule = Schedule{.family = "pointwise"};
  finish.schedule.Set("local", nest.schedule.Int("local", 32));
  return finish;
}

}  // namespace

int64_t StrideInLoads(const Nest& nest, ExprId side, VarId axis) {
  int64_t stride = 0;
  for (Expr e : PostOrder(nest.at(side))) {
    if (!e.is(ExprKind::kLoad)) continue;
    std::vector<Expr> index;
    for (size_t i = 0; i + 1 < e.node().args.size(); ++i) index.push_back(e.arg(static_cast<int>(i)));
    const Expr linear = LinearIndex(*nest.pool, nest.params[e.node().ref].type, index);
    for (size_t i = 0; i < linear.node().args.size() && linear.is(ExprKind::kLin); ++i) {
      if (linear.arg(static_cast<int>(i)) == nest.pool->Var(axis))
        stride = std::max(stride, std::abs(linear.node().coefs[i]));
    }
    if (linear == nest.pool->Var(axis)) stride = std::max<int64_t>(stride, 1);
  }
  return stride;
}

bool IsContraction(const Nest& nest) {
  if (nest.stages.size() != 1 || nest.stages[0].kind != StageKind::kContract || nest.stores.empty()) return false;
  if (!ReadsStagesPlainly(nest)) return false;
  std::vector<VarId> axes = nest.components[0].axes;
  std::sort(axes.begin(), axes.end());
  for (const NestStore& store : nest.stores) {
    std::vector<VarId> own = StoreAxes(nest, store);
    std::sort(own.begin(), own.end());
    if (own != axes) return false;
  }
  return true;
}

ContractShape ShapeOf(const Nest& nest) {
  const ContractAxes axes = ClassifyContraction(nest, nest.stages[0]);
  ContractShape shape{axes.batch, axes.m, axes.n, axes.k};
  const NestStore& store = nest.stores[0];
  const auto least = [&](const std::vector<VarId>& side) {
    int64_t stride = std::numeric_limits<int64_t>::max();
    for (VarId v : side) stride = std::min(stride, StrideIn(nest, store, v));
    return stride;
  };
  // Neighbours are those of the smallest stride, where a batch axis has stride 1.
  const bool nearer = least(shape.batch) == 1 && least(shape.m) < least(shape.n);
  if (least(shape.m) == 1 || nearer || shape.n.empty()) {
    std::swap(shape.m, shape.n);
    shape.swapped = true;
  }
  const auto by_store = [&](VarId a, VarId b) { return StrideIn(nest, store, a) > StrideIn(nest, store, b); };
  for (std::vector<VarId>* side : {&shape.batch, &shape.m, &shape.n})
    std::stable_sort(side->begin(), side->end(), by_store);
  if (nest.schedule.Int("in_order", 0) != 0) return shape;
  const auto stride = [&](VarId axis) {
    const std::vector<ExprId>& sides = nest.stages[0].values;
    return std::max(StrideInLoads(nest, sides[0], axis), StrideInLoads(nest, sides[1], axis));
  };
  std::stable_sort(shape.k.begin(), shape.k.end(), [&](VarId a, VarId b) { return stride(a) > stride(b); });
  return shape;
}

void StoreOutputs(const Nest& nest, KernelBuilder& b, absl::Span<const OutputSum> outputs, std::vector<Stmt>& body) {
  std::vector<AxisMap> axes;
  std::vector<StageMap> sums;
  for (const OutputSum& o : outputs) {
    axes.push_back(o.axes);
    sums.push_back({{0, o.sum}});
  }
  b.EmitStores(StoresOf(nest), axes, sums, body);
}

absl::StatusOr<Built> BuildContraction(const Nest& nest, const ContractShape& shape, int64_t split,
                                       const Target& target, TileKernel tile) {
  Built built;
  if (split == 1) {
    const auto store = [&](KernelBuilder& b, absl::Span<const OutputSum> outputs, Expr, Expr, std::vector<Stmt>& body) {
      StoreOutputs(nest, b, outputs, body);
    };
    AGC_ASSIGN_OR_RETURN(Kernel kernel, tile(nest, 1, store));
    built.kernels.push_back({std::move(kernel), SameArgs(nest)});
    return built;
  }
  const TensorType scratch{nest.components[0].dtype,
                           {split, Extent(nest, shape.batch), Extent(nest, shape.m), Extent(nest, shape.n)}};
  // The tile kernel reads the nest's inputs and writes the partial sums.
  Nest partial = Clone(nest);
  partial.name = absl::StrCat(nest.name, "_parts");
  std::vector<int32_t> args;
  partial.params.clear();
  for (size_t i = 0; i < nest.params.size(); ++i) {
    if (nest.params[i].written) continue;
    partial.params.push_back(nest.params[i]);
    args.push_back(static_cast<int32_t>(i));
  }
  const auto out = static_cast<uint32_t>(partial.params.size());
  partial.params.push_back({"parts", scratch, true});
  args.push_back(-1);
  partial.stores.clear();
  const auto store = [&](KernelBuilder&, absl::Span<const OutputSum> outputs, Expr batch, Expr part,
                         std::vector<Stmt>& body) {
    for (const OutputSum& o : outputs) body.push_back(SetBuffer(out, {part, batch, o.m, o.n}, o.sum));
  };
  AGC_ASSIGN_OR_RETURN(Kernel parts, tile(partial, split, store));
  AGC_ASSIGN_OR_RETURN(built, kPointwiseFamily.build(FinishNest(nest, shape, scratch), target));
  std::vector<int32_t> finish_args(args.begin(), args.end());
  for (size_t i = 0; i < nest.params.size(); ++i) {
    if (nest.params[i].written) finish_args.push_back(static_cast<int32_t>(i));
  }
  built.kernels[0].args = std::move(finish_args);
  built.kernels.insert(built.kernels.begin(), BuiltKernel{std::move(parts), std::move(args)});
  built.scratch.push_back({"parts", scratch});
  return built;
}

}  // namespace agc
