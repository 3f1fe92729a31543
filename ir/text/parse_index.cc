#include "ir/text/parse_index.h"

#include <algorithm>
#include <utility>

namespace agc::text {
namespace {

Expr Fail(Cursor& c, Expr x, Loc loc, absl::string_view message) {
  c.Fail(loc, message);
  return x;
}

bool WithinLimits(Expr e) {
  const ExprNode& n = e.node();
  const auto small = [](int64_t v) { return v >= -kMaxInt && v <= kMaxInt; };
  return small(n.payload) && std::all_of(n.coefs.begin(), n.coefs.end(), small);
}

Expr Times(Cursor& c, Expr x, Expr y, Loc loc) {
  if (x.IsConst()) std::swap(x, y);
  if (!y.IsConst())
    return Fail(c, x, loc, "an index is a sum of variables times constants; one factor must be a constant");
  const auto fits = [&](int64_t v) {
    const __int128 p = static_cast<__int128>(v) * y.node().payload;
    return p <= kMaxInt && p >= -kMaxInt;
  };
  const ExprNode& n = x.node();
  if (!fits(n.payload) || !std::all_of(n.coefs.begin(), n.coefs.end(), fits))
    return Fail(c, x, loc, "the index is too large");
  return x * y.node().payload;
}

Expr Divided(Cursor& c, absl::string_view name, Expr x, Expr y, Loc loc) {
  if (!y.IsConst() || y.node().payload <= 0) return Fail(c, x, loc, "an index is divided by positive constants only");
  const int64_t by = y.node().payload;
  for (Expr e : PostOrder(x)) {  // nested divisions multiply their divisors
    if (e.is(ExprKind::kDiv) && static_cast<__int128>(e.node().payload) * by > kMaxInt)
      return Fail(c, x, loc, "the divisor is too large");
  }
  return name == "div" ? Div(x, by) : Mod(x, by);
}

}  // namespace

Expr IndexArithmetic(Cursor& c, absl::string_view op, Expr x, Expr y, Loc loc) {
  const Expr e = op == "add"   ? x + y
                 : op == "sub" ? x - y
                 : op == "mul" ? Times(c, x, y, loc)
                               : Divided(c, op, x, y, loc);
  return !c.ok() || WithinLimits(e) ? e : Fail(c, x, loc, "the index is too large");
}

Expr CompareIndices(const ScalarOp& op, Expr a, Expr b) {
  if (op.name == "ge") return NonNeg(a - b);
  if (op.name == "gt") return NonNeg(a - b - 1);
  if (op.name == "le") return NonNeg(b - a);
  if (op.name == "lt") return NonNeg(b - a - 1);
  return op.name == "eq" ? EqZero(a - b) : Not(EqZero(a - b));
}

}  // namespace agc::text
