// simplify-expr: values of stages and stores in a plain form. Index expressions and guards already are canonical; this
// pass folds scalar arithmetic on constants and identities, and drops stages that nothing reads.
//   store %y[i0] = %x0[i0] * 1 + (2 * 3)    =>    store %y[i0] = %x0[i0] + 6
#include <algorithm>

#include "ir/expand/expand_expr.h"
#include "passes/pass.h"

namespace agc {
namespace {

bool IsNumber(Expr e, double value) {
  return e.IsConst() && e.dtype() != DType::kIndex &&
         Scalar{e.dtype(), static_cast<uint64_t>(e.node().payload)} == Scalar::Of(e.dtype(), value);
}

// x*1, 1*x, x/1, and for integers x+0: those hold for every value, NaN and -0 included (x - 0.0 too; x + 0.0 does not).
Expr Identity(const ScalarOp& op, Index x, Expr otherwise) {
  const bool is_float = IsFloat(x[0].dtype());
  if (op.name == "mul" && IsNumber(x[1], 1)) return x[0];
  if (op.name == "mul" && IsNumber(x[0], 1)) return x[1];
  if (op.name == "div" && IsNumber(x[1], 1)) return x[0];
  if (op.name == "sub" && IsNumber(x[1], 0)) return x[0];
  if (op.name == "add" && !is_float && IsNumber(x[1], 0)) return x[0];
  if (op.name == "add" && !is_float && IsNumber(x[0], 0)) return x[1];
  return otherwise;
}

Expr FoldAlu(void* numerics, Expr original, Index args) {
  const ScalarOp& op = ScalarOps()[original.node().ref];
  const Expr rebuilt = Rebuild(original, args);
  if (!rebuilt.is(ExprKind::kAlu) || rebuilt.lanes() != 1) return rebuilt;
  if (std::all_of(args.begin(), args.end(), [](Expr e) { return e.IsConst(); })) {
    if (*static_cast<const Numerics*>(numerics) == Numerics::kPortable && HasExpansion(op, args))
      return Expanded(op, args);
    absl::InlinedVector<Scalar, 3> values;
    for (Expr e : args) values.push_back({e.dtype(), static_cast<uint64_t>(e.node().payload)});
    return rebuilt.pool->Const(Apply(op, values));
  }
  return args.size() == 2 ? Identity(op, args, rebuilt) : rebuilt;
}

bool SimplifyNest(Nest& nest, Numerics numerics) {
  Substitution s{.pool = nest.pool.get()};
  s.context = &numerics;
  s.hooks.emplace_back(ExprKind::kAlu, FoldAlu);
  bool changed = false;
  const auto simplify = [&](ExprId& id) {
    const ExprId before = id;
    id = Substitute(nest.at(id), s).id;
    changed = changed || !(id == before);
  };
  for (NestStage& stage : nest.stages) {
    for (ExprId& id : stage.values) simplify(id);
    if (stage.when.valid()) simplify(stage.when);
  }
  for (NestStore& store : nest.stores) {
    for (ExprId& id : store.index) simplify(id);
    simplify(store.value);
  }
  return changed;
}

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

}  // namespace

absl::StatusOr<bool> SimplifyExpr(Program& program, PassContext& context) {
  bool changed = false;
  for (Nest& nest : program.nests) {
    changed = SimplifyNest(nest, context.numerics) || changed;
    changed = DropDeadStages(nest) || changed;
  }
  return changed;
}

}  // namespace agc
