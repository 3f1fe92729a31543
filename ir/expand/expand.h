// The functions behind ScalarOp::expand: scalar ops that devices compute loosely, as expressions of exact ops, for f32
// and f64. Every one gives the same bits wherever the exact ops do. Errors are measured by test/unit/expand_test.cc.
#pragma once
#include "ir/expand/value.h"

namespace agc::expand {

// compare.cc: exact as they are, for devices without a built-in for f64 or with another idea of zeros, subnormal
// numbers and NaN.
V Less(V a, V b);
V LessEqual(V a, V b);
V Greater(V a, V b);
V GreaterEqual(V a, V b);
V Equal(V a, V b);
V NotEqual(V a, V b);
V Larger(V a, V b);
V Smaller(V a, V b);
V Sign(V a);
V Copysign(V a, V b);

// divide.cc: rounded correctly.
V Divide(V a, V b);
V SquareRoot(V a);
V ReciprocalSquareRoot(V a);  // of the rounded root: 1 ulp
V CubeRoot(V a);
V ReciprocalNearOne(V x);  // of x in [1, 2): a few ulp
V Remainder(V a, V b);     // exact; the sign is the dividend's

// exp_log.cc
V Exp(V x);
V ExpOfSum(V x, V rest);  // e^(x + rest): |x| at most about 110 (f32) or 750 (f64), the rest below its last bits
V Expm1(V x);
V Log(V x);
V Log1p(V x);
V Exp2(V x);
V Log2(V x);
V Log10(V x);

// hyperbolic.cc
V Tanh(V x);
V Sinh(V x);
V Cosh(V x);
V Asinh(V x);
V Acosh(V x);
V Atanh(V x);

// erf.cc
V Erf(V x);
V Erfc(V x);

// pow.cc
V Pow(V x, V y);

// trig.cc
V Sin(V x);
V Cos(V x);
V Tan(V x);
V Atan(V x);
V Atan2(V y, V x);
V Asin(V x);
V Acos(V x);

// A row's expansion as ScalarOp::expand wants it.
template <V (*kFunction)(V)>
Expr Unary(absl::Span<const Expr> x) {
  return kFunction({x[0]}).e;
}
template <V (*kFunction)(V, V)>
Expr Binary(absl::Span<const Expr> x) {
  return kFunction({x[0]}, {x[1]}).e;
}

}  // namespace agc::expand
