// x^y = e^(y log x), with log x and the product as pairs of floats, since their absolute error becomes the relative
// error of the result. IEEE 754-2019 says the values at zero, infinity and NaN (section 9.2.1).
#include <array>
#include <cmath>

#include "ir/expand/expand.h"

namespace agc::expand {
namespace {

Pair Add(Pair a, Pair b) {
  const Pair s = TwoSum(a.high, b.high);
  return FastTwoSum(s.high, s.low + (a.low + b.low));
}
Pair Multiply(Pair a, Pair b) {
  const Pair p = TwoProduct(a.high, b.high);
  return FastTwoSum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
// A constant as a pair of the dtype's floats.
Pair PairOf(V like, double high64, double low64) {
  const double high = like.format().wide() ? high64 : static_cast<double>(static_cast<float>(high64));
  return {Constant(like, high), Constant(like, like.format().wide() ? low64 : high64 - high)};
}

// log(m) / 2 = s + s^3/3 + s^5/5 + ... with s = (m - 1) / (m + 1), for m between sqrt(1/2) and sqrt(2). From s^5 on
// plain floats do: s^4 is below 0.001. The tail in z = s^2 starts with 1/5.
constexpr std::array<double, 5> kTail32 = {1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13};
constexpr std::array<double, 10> kTail64 = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                            1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};

// Of x > 0, finite.
Pair LogPair(V x) {
  const Format& f = x.format();
  const V subnormal = x < std::ldexp(1.0, 1 - f.bias);
  const V scaled = Select(subnormal, x * std::ldexp(1.0, f.fraction + 2), x);
  const uint64_t root = f.wide() ? 0x3fe6a09e667f3bcd : 0x3f3504f3;  // sqrt(1/2)
  const V shifted = Bits(scaled) + Word(x, (static_cast<uint64_t>(f.bias) << f.fraction) - root);
  const V m = FromBits((shifted & Word(x, f.hidden() - 1)) + Word(x, root));
  const V biased = Signed(shifted >> f.fraction);
  const V k =
      ToFloat(biased - Select(subnormal, Constant(biased, f.bias + f.fraction + 2.0), Constant(biased, f.bias)));
  const V top = m - 1.0;  // exact
  const Pair bottom = TwoSum(m, Constant(x, 1));
  V y = 1.0 - top * 0.5;  // of 2 / (m + 1)
  for (int i = 0; i < (f.wide() ? 4 : 3); ++i) y = y + y * (1.0 - bottom.high * 0.5 * y);
  y = y * 0.5;
  const V s0 = top * y;
  const Pair product = TwoProduct(s0, bottom.high);
  const Pair s = FastTwoSum(s0, (((top - product.high) - product.low) - s0 * bottom.low) * y);
  const Pair z = Multiply(s, s);
  const V tail = z.high * z.high * (f.wide() ? PolynomialIn(z.high, kTail64) : PolynomialIn(z.high, kTail32));
  const Pair third = Multiply(z, PairOf(x, 1.0 / 3, 0x1.5555555555555p-56));
  const Pair rest = Multiply(s, FastTwoSum(third.high, third.low + tail));
  const Pair half = Add(s, rest);
  // ln 2 in two parts, the first short enough that k times it is exact.
  const Pair scale =
      TwoSum(k * Real(x, 0x1.62e4p-1, 0x1.62e42fefa38p-1), k * Real(x, 0x1.7f7d1cf8p-20, 0x1.ef35793c7673p-45));
  return Add({half.high * 2.0, half.low * 2.0}, scale);
}

V IsWhole(V y) {  // of |y| clamped to what may have a fraction
  const V limit = Constant(y, static_cast<double>(y.format().hidden()) * 2);
  const V a = Abs(y);
  return (a >= limit) | (Op("floor", {a}) == a);
}
V IsOdd(V y) {
  const V a = Abs(y), limit = Constant(y, static_cast<double>(y.format().hidden()) * 2);
  return (a < limit) & IsWhole(y) & (Op("floor", {a * 0.5}) * 2.0 != a);
}

}  // namespace

V Pow(V x, V y) {
  const V magnitude = Abs(x), infinity = Infinity(x), one = Constant(x, 1), zero = Constant(x, 0);
  // Beyond these bounds every x but 1 over- or underflows.
  const V bound = Constant(y, std::ldexp(1.0, x.format().wide() ? 64 : 32));
  const V exponent = Select(y > bound, bound, Select(y < -bound, -bound, y));
  const V ordinary = (magnitude > 0.0) & (magnitude < infinity);
  const Pair log = LogPair(Select(ordinary, magnitude, one));
  const Pair product = TwoProduct(exponent, log.high);
  const Pair power = FastTwoSum(product.high, product.low + exponent * log.low);
  const V lowest = Real(x, -105, -747), highest = Real(x, 90, 711);
  const V inside = (power.high > lowest) & (power.high < highest);
  const V main = Select(inside, power.high, Select(power.high < 0.0, lowest, highest));
  const V value = ExpOfSum(main, Select(inside, power.low, zero));
  const V odd = IsOdd(y), sign = Select(odd, x, one);
  const V vanishes = (y < 0.0) == (magnitude > 1.0);  // at zero and infinity, and for infinite y
  const V edge = Select(vanishes, zero, infinity);
  const V from_edge = (magnitude == 0.0) | (magnitude == infinity) | (Abs(y) == infinity);
  const V result = WithSign(Select(from_edge, Select(magnitude == 1.0, one, edge), value), sign);
  const V invalid = IsNan(x) | IsNan(y) | ((x < 0.0) & (magnitude < infinity) & !IsWhole(y));
  return Select((y == 0.0) | (x == 1.0), one, Select(invalid, Quiet(x), result));
}

}  // namespace agc::expand
