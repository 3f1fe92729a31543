// Expansion of whole expressions: scalar ops replaced by their `expand`. f16 and bf16 are computed in f32 and rounded.
//   e = ExpandAll(e, [](const ScalarOp& op, DType t) { return t == DType::kF64 && !op.glsl_f64; });
#pragma once
#include "absl/functional/function_ref.h"
#include "ir/expr.h"

namespace agc {

// Whether the op on these operands is one that devices compute loosely.
bool HasExpansion(const ScalarOp& op, Index args);
// Its exact form; a constant where all operands are.
Expr Expanded(const ScalarOp& op, Index args);

// `wanted` is asked for every op that has an expansion, with the dtype it computes in.
Expr ExpandAll(Expr e, absl::FunctionRef<bool(const ScalarOp& op, DType dtype)> wanted);

}  // namespace agc
