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
