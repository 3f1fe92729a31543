// Hyperbolic functions and their inverses, by expm1 and log1p as in fdlibm (e_sinh.c, e_cosh.c, s_tanh.c, s_asinh.c,
// e_acosh.c, e_atanh.c).
#include <cmath>

#include "ir/expand/expand.h"

namespace agc::expand {
namespace {

// e^a / 2 for large a, where e^a would overflow too early.
V HalfExp(V a) {
  const V root = Exp(a * 0.5);
  return (root * 0.5) * root;
}
V IsLarge(V a) { return a > Real(a, 80, 700); }

}  // namespace

// t / (t + 2) with t = e^2|x| - 1, from 1 on 1 - 2 / (t + 2).
V Tanh(V x) {
  const V a = Abs(x), large = a >= 1.0;
  const V t = Expm1(a * Select(large, 2.0, Constant(x, -2)));
  const V quotient = Divide(Select(large, 2.0, -t), t + 2.0);
  return Select(IsNan(x) | IsTiny(x), x, WithSign(Select(large, 1.0 - quotient, quotient), x));
}

// (t + t / (t + 1)) / 2 with t = e^|x| - 1
V Sinh(V x) {
  const V a = Abs(x), large = IsLarge(a), t = Expm1(Select(large, 1.0, a));
  const V value = Select(large, HalfExp(a), (t + Divide(t, t + 1.0)) * 0.5);
  return Select(IsNan(x) | IsTiny(x), x, WithSign(value, x));
}

V Cosh(V x) {
  const V a = Abs(x), large = IsLarge(a), e = Exp(Select(large, 1.0, a));
  return Select(large, HalfExp(a), (e + Divide(Constant(x, 1), e)) * 0.5);
}

namespace {

// log(2a) where a is so large that the terms below vanish, else log1p(t).
V LogOfTwice(V a, V t) {
  const V large = a > std::ldexp(1.0, a.format().wide() ? 54 : 28);
  return Log1p(Select(large, a, t)) + Select(large, 0.69314718055994530942, Constant(a, 0));
}

}  // namespace

// log1p(a + a^2 / (1 + sqrt(1 + a^2)))
V Asinh(V x) {
  const V a = Abs(x), square = a * a;
  const V value = LogOfTwice(a, a + Divide(square, 1.0 + SquareRoot(square + 1.0)));
  return Select(IsNan(x) | (x == 0.0), x, WithSign(value, x));
}

// log1p(t + sqrt(2 t + t^2)) with t = x - 1
V Acosh(V x) {
  const V t = x - 1.0;
  return Select(x >= 1.0, LogOfTwice(x, t + SquareRoot(t * 2.0 + t * t)), Quiet(x));
}

// log1p(2 a / (1 - a)) / 2, below 1/2 as 2a + 2a a / (1 - a)
V Atanh(V x) {
  const V a = Abs(x), twice = a * 2.0, quotient = Divide(a, 1.0 - a);
  const V value = Log1p(Select(a < 0.5, twice + twice * quotient, quotient * 2.0)) * 0.5;
  return Select(a <= 1.0, Select(x == 0.0, x, WithSign(value, x)), Quiet(x));
}

}  // namespace agc::expand
