#include "ir/split_axes.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

namespace agc {
namespace {

// Replaces `axis` by `outer` and `inner`, which follow each other.
void Replace(std::vector<VarId>& axes, VarId axis, VarId outer, VarId inner) {
  const auto it = std::find(axes.begin(), axes.end(), axis);
  if (it == axes.end()) return;
  *it = inner;
  axes.insert(it, outer);
}

// axis = outer * extent + inner, in every expression of the nest.
void SplitAxis(Nest& nest, VarId axis, int64_t extent) {
  const std::string name = nest.pool->var(axis).name;
  const VarId outer = nest.AddAxis(absl::StrCat(name, "o"), nest.extent(axis) / extent);
  const VarId inner = nest.AddAxis(absl::StrCat(name, "i"), extent);
  nest.axes.resize(nest.axes.size() - 2);
  struct Context {
    const std::vector<Component> components;
    VarId axis;
    int64_t extent;
  } context{nest.components, axis, extent};
  Substitution s{.pool = nest.pool.get()};
  s.vars[axis] = nest.pool->Var(outer) * extent + nest.pool->Var(inner);
  s.context = &context;
  s.hooks.emplace_back(ExprKind::kStage, [](void* c, Expr original, Index args) {
    const auto& ctx = *static_cast<const Context*>(c);
    const std::vector<VarId>& axes = ctx.components[original.node().ref].axes;
    std::vector<Expr> index;
    for (size_t i = 0; i < args.size(); ++i) {
      if (axes[i] != ctx.axis) {
        index.push_back(args[i]);
        continue;
      }
      index.push_back(Div(args[i], ctx.extent));
      index.push_back(Mod(args[i], ctx.extent));
    }
    return original.pool->Stage(original.node().ref, index, original.dtype());
  });
  const auto substitute = [&](ExprId& id) { id = Substitute(nest.at(id), s).id; };
  for (NestStage& stage : nest.stages) {
    std::for_each(stage.values.begin(), stage.values.end(), substitute);
    if (stage.when.valid()) substitute(stage.when);
    Replace(stage.over, axis, outer, inner);
  }
  for (NestStore& store : nest.stores) {
    std::for_each(store.index.begin(), store.index.end(), substitute);
    substitute(store.value);
  }
  for (Component& c : nest.components) Replace(c.axes, axis, outer, inner);
  Replace(nest.axes, axis, outer, inner);
}

// The numbers that `axis`, plus a constant or other terms, is divided by in the sides of the stage.
std::set<int64_t> Divisors(const Nest& nest, const NestStage& stage, VarId axis) {
  std::set<int64_t> divisors;
  const Expr var = nest.pool->Var(axis);
  const auto mentions = [&](Expr e) {
    if (e == var) return true;
    for (size_t i = 0; e.is(ExprKind::kLin) && i < e.node().args.size(); ++i) {
      if (e.arg(static_cast<int>(i)) == var && e.node().coefs[i] == 1) return true;
    }
    return false;
  };
  for (ExprId side : stage.values) {
    for (Expr e : PostOrder(nest.at(side))) {
      const int64_t c = e.node().payload;
      if ((e.is(ExprKind::kDiv) || e.is(ExprKind::kMod)) && mentions(e.arg(0)) && nest.extent(axis) % c == 0 &&
          c < nest.extent(axis))
        divisors.insert(c);
    }
  }
  return divisors;
}

// One cut that helps, of the first axis that has one.
bool SplitOnce(Nest& nest, size_t stage) {
  const ContractAxes before = ClassifyContraction(nest, nest.stages[stage]);
  for (VarId axis : before.batch) {
    for (int64_t divisor : Divisors(nest, nest.stages[stage], axis)) {
      Nest split = Clone(nest);
      SplitAxis(split, axis, divisor);
      if (ClassifyContraction(split, split.stages[stage]).batch.size() > before.batch.size()) continue;
      nest = std::move(split);
      return true;
    }
  }
  return false;
}

// Stages that scan go along one axis.
bool HasScan(const Nest& nest) {
  return std::any_of(nest.stages.begin(), nest.stages.end(),
                     [](const NestStage& s) { return s.kind == StageKind::kScan; });
}

bool SplitReductionOnce(Nest& nest, size_t stage) {
  for (VarId axis : nest.stages[stage].over) {
    const std::set<int64_t> divisors = Divisors(nest, nest.stages[stage], axis);
    if (divisors.empty()) continue;
    SplitAxis(nest, axis, *divisors.begin());
    return true;
  }
  return false;
}

}  // namespace

bool SplitReductionAxes(Nest& nest, size_t stage) {
  bool changed = false;
  while (!HasScan(nest) && SplitReductionOnce(nest, stage)) changed = true;
  return changed;
}

bool SplitBatchAxes(Nest& nest, size_t stage) {
  if (HasScan(nest)) return false;
  bool changed = false;
  while (SplitOnce(nest, stage)) changed = true;
  return changed;
}

}  // namespace agc
