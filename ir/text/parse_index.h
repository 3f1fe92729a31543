// Arithmetic of index expressions as text has it: sums of variables times constants, divided by constants, within the
// limits of an index. What an index cannot be is an error at `loc`.
//   IndexArithmetic(c, "div", x, pool.Int(4), loc)        x / 4
#pragma once
#include "ir/expr.h"
#include "ir/scalar_op.h"
#include "ir/text/cursor.h"

namespace agc::text {

Expr IndexArithmetic(Cursor& c, absl::string_view op, Expr x, Expr y, Loc loc);  // add, sub, mul, div, rem
Expr CompareIndices(const ScalarOp& op, Expr a, Expr b);

}  // namespace agc::text
