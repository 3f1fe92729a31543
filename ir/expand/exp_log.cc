// Exponentials and logarithms. ln 2 is split so that the upper part times an exponent is exact: for f32 as in Cephes
// (expf.c) and FreeBSD (e_logf.c), for f64 as in fdlibm (e_exp.c).
#include <array>
#include <cmath>

#include "ir/expand/expand.h"

namespace agc::expand {
namespace {

constexpr double kLog2E = 1.44269504088896340736, kLn2 = 0.69314718055994530942, kLog10E = 0.43429448190325182765;

// e^r = 1 + r + r^2 * sum r^k / (k + 2)!: the Taylor series, for |r| <= ln(2) / 2. What is cut off is below 2^-28
// (f32) and 2^-58 (f64) of the sum.
constexpr std::array<double, 6> kExp32 = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
constexpr std::array<double, 12> kExp64 = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                           1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                           1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// (log(1 + f) - log(1 - f)) / f - 2 in f^2 from f^2 on: FreeBSD k_logf.h and fdlibm e_log.c.
constexpr std::array<double, 4> kLog32 = {0xaaaaaa.0p-24, 0xccce13.0p-25, 0x91e9ee.0p-25, 0xf89e26.0p-26};
constexpr std::array<double, 7> kLog64 = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                          2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                          1.479819860511658591e-01};

V Between(V lo, V x, V hi) { return Select(x < lo, lo, Select(x > hi, hi, x)); }  // NaN stays

// x + rest = exponent * ln 2 + r, |r| <= ln(2) / 2, and e^r - 1; the rest is small.
struct Reduced {
  V exponent = {}, minus_one = {};
};
Reduced ReduceExp(V x, V rest) {
  const Rounded n = ToNearest(x * kLog2E);
  const V plain = (x - n.real * Real(x, 0.693359375, 6.93147180369123816490e-01)) -
                  n.real * Real(x, -2.12194440e-4, 1.90821492927058770002e-10);
  const V r = rest.e.IsConst() ? plain : plain + rest;  // constant: 0
  const V tail = x.format().wide() ? PolynomialIn(r, kExp64) : PolynomialIn(r, kExp32);
  return {n.integer, r + r * r * tail};
}

}  // namespace

V Exp(V x) { return ExpOfSum(Between(Real(x, -104, -746), x, Real(x, 89, 710)), Constant(x, 0)); }

V ExpOfSum(V x, V rest) {
  const Reduced e = ReduceExp(x, rest);
  return Scale(1.0 + e.minus_one, e.exponent);
}

// 2^n 2^r with r within a half.
V Exp2(V x) {
  const V inside = Between(Real(x, -151, -1076), x, Real(x, 129, 1025));
  const Rounded n = ToNearest(inside);
  const V r = (inside - n.real) * kLn2;
  const V tail = x.format().wide() ? PolynomialIn(r, kExp64) : PolynomialIn(r, kExp32);
  return Scale(1.0 + (r + r * r * tail), n.integer);
}

// e^x - 1 = s * m + (s - 1) with s = 2^n, in halves so that s does not overflow; x itself where x^2 / 2 is below its
// last bit.
V Expm1(V x) {
  const Reduced e = ReduceExp(Between(Real(x, -40, -60), x, Real(x, 89, 710)), Constant(x, 0));
  const V half = PowerOfTwo(e.exponent - 1.0);
  return Select(IsTiny(x), x, (half * e.minus_one + (half - 0.5)) * 2.0);
}

namespace {

// log(2^exponent * (1 + f)) + c for 1 + f between sqrt(1/2) and sqrt(2): the scheme of fdlibm e_log.c.
V LogOf(V exponent, V f, V c) {
  const V d = 1.0 + f * 0.5;
  V y = 2.0 - d;  // of 1 / d, off by less than 0.05, which each step squares
  for (int i = 0; i < (f.format().wide() ? 4 : 3); ++i) y = y + y * (1.0 - d * y);
  const V s = (f * 0.5) * y, z = s * s, half_square = 0.5 * f * f;
  const V r = z * (f.format().wide() ? PolynomialIn(z, kLog64) : PolynomialIn(z, kLog32));
  const V k = ToFloat(exponent);
  const V low = k * Real(f, 9.0580006145e-06, 1.90821492927058770002e-10) + c;
  return s * (half_square + r) + low - half_square + f + k * Real(f, 6.9313812256e-01, 6.93147180369123816490e-01);
}

// A positive normal number as 2^exponent * m, sqrt(1/2) <= m < sqrt(2).
struct Split {
  V exponent = {}, m = {};
};
Split SplitNumber(V x) {
  const Format& f = x.format();
  const uint64_t root = f.wide() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;  // sqrt(1/2)
  const uint64_t one = static_cast<uint64_t>(f.bias) << f.fraction;
  const V shifted = Bits(x) + Word(x, one - root);
  return {Signed(shifted >> f.fraction) - static_cast<double>(f.bias),
          FromBits((shifted & Word(x, f.hidden() - 1)) + Word(x, root))};
}

// The same of any positive number.
Split SplitAny(V x) {
  const Format& f = x.format();
  const V subnormal = x < std::ldexp(1.0, 1 - f.bias);
  const Split s = SplitNumber(Select(subnormal, x * std::ldexp(1.0, f.fraction + 2), x));
  return {Select(subnormal, s.exponent - (f.fraction + 2.0), s.exponent), s.m};
}

// -inf at 0, NaN below, infinity and NaN as they are.
V LogEdges(V x, V argument, V value) {
  return Select(argument > 0.0, Select(argument == Infinity(x), argument, value),
                Select(argument == 0.0, -Infinity(x), Quiet(x)));
}

}  // namespace

V Log(V x) {
  const Split s = SplitAny(x);
  return LogEdges(x, x, LogOf(s.exponent, s.m - 1.0, Constant(x, 0)));
}

V Log2(V x) {
  const Split s = SplitAny(x);
  const V none = Constant(s.exponent, 0), mantissa = LogOf(none, s.m - 1.0, Constant(x, 0));
  return LogEdges(x, x, ToFloat(s.exponent) + mantissa * kLog2E);
}

// log10(2) in two parts, the first short enough that an exponent times it is exact.
V Log10(V x) {
  const Split s = SplitAny(x);
  const V none = Constant(s.exponent, 0), mantissa = LogOf(none, s.m - 1.0, Constant(x, 0)), k = ToFloat(s.exponent);
  const V low = k * Real(x, 0x1.3509f79fef312p-18, 0x1.9fef311f12b36p-42) + mantissa * kLog10E;
  return LogEdges(x, x, k * Real(x, 0x1.344p-2, 0x1.34413509f6p-2) + low);
}

// log(u) + c / u with u = 1 + x rounded and c what the rounding lost (fdlibm s_log1p.c).
V Log1p(V x) {
  const V u = 1.0 + x, near = (x > -0.2928) & (x < 0.4142);
  const Split s = SplitNumber(u);
  const V lost = Select(s.exponent >= 2, 1.0 - (u - x), x - (u - 1.0));
  V y = 2.0 - s.m;  // of 1 / m, to some bits
  for (int i = 0; i < 2; ++i) y = y + y * (1.0 - s.m * y);
  const V zero = Constant(x, 0), none = Constant(s.exponent, 0);
  const V far_c = Select(s.exponent > x.format().fraction + 2.0, zero, lost * y * PowerOfTwo(none - s.exponent));
  const V value = LogOf(Select(near, none, s.exponent), Select(near, x, s.m - 1.0), Select(near, zero, far_c));
  return Select(x == 0.0, x, LogEdges(x, u, value));
}

}  // namespace agc::expand
