#include "ir/expand/expand_expr.h"

#include "absl/container/inlined_vector.h"

namespace agc {
namespace {

bool IsHalf(DType t) { return t == DType::kF16 || t == DType::kBF16; }

using Wanted = absl::FunctionRef<bool(const ScalarOp& op, DType dtype)>;

}  // namespace

bool HasExpansion(const ScalarOp& op, Index args) {
  return op.expand != nullptr && IsFloat(args[0].dtype()) && args[0].lanes() == 1;
}

Expr Expanded(const ScalarOp& op, Index args) {
  const DType dtype = args[0].dtype();
  if (!IsHalf(dtype)) return op.expand(args);
  absl::InlinedVector<Expr, 2> wide;
  for (Expr e : args) wide.push_back(Cast(e, DType::kF32));
  const Expr result = op.expand(wide);
  return op.typing == ScalarTyping::kCompare ? result : Cast(result, dtype);
}

Expr ExpandAll(Expr e, Wanted wanted) {
  Substitution s{.pool = e.pool};
  s.context = &wanted;
  s.hooks.emplace_back(ExprKind::kAlu, [](void* context, Expr original, Index args) {
    const ScalarOp& op = ScalarOps()[original.node().ref];
    const bool expands = HasExpansion(op, args) && (*static_cast<Wanted*>(context))(op, args[0].dtype());
    return expands ? Expanded(op, args) : Rebuild(original, args);
  });
  return Substitute(e, s);
}

}  // namespace agc
