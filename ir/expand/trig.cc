// Circular functions and their inverses. Arguments of any size are reduced by the bits of 2/pi that matter (Payne and
// Hanek, "Radian reduction for trigonometric functions", 1983), in integers that wrap.
#include <array>

#include "ir/expand/expand.h"

namespace agc::expand {
namespace {

// 2/pi after a word of zeros, which is where arguments below 2 begin; word by word for either size.
constexpr std::array<uint64_t, 8> kTwoOverPi32 = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                                  0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
constexpr std::array<uint64_t, 20> kTwoOverPi64 = {0,
                                                   0xa2f9836e4e441529,
                                                   0xfc2757d1f534ddc0,
                                                   0xdb6295993c439041,
                                                   0xfe5163abdebbc561,
                                                   0xb7246e3a424dd2e0,
                                                   0x06492eea09d1921c,
                                                   0xfe1deb1cb129a73e,
                                                   0xe88235f52ebb4484,
                                                   0xe99c7026b45f7e41,
                                                   0x3991d639835339f4,
                                                   0x9c845f8bbdf9283b,
                                                   0x1ff897ffde05980f,
                                                   0xef2f118b5a0a6d1f,
                                                   0x6d367ecf27cb09b7,
                                                   0x4f463f669e5fea2d,
                                                   0x7527bac7ebe5f17b,
                                                   0x3d0739f78a5292ea,
                                                   0x6bfb5fb11f8d5d08,
                                                   0x56033046fc7b6bab};

// Minimax polynomials for |x| <= pi/4 in z = x^2, (sin x - x) / x^3 and (cos x - 1 + z/2) / z^2: Cephes sinf.c, fdlibm
// k_sin.c and k_cos.c.
constexpr std::array<double, 3> kSin32 = {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4};
constexpr std::array<double, 3> kCos32 = {4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5};
constexpr std::array<double, 6> kSin64 = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                          -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                          -2.50507602534068634195e-08, 1.58969099521155010221e-10};
constexpr std::array<double, 6> kCos64 = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                          2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                          2.08757232129817482790e-09, -1.13596475577881948265e-11};

// (x - atan x) / x^3 in z, for |x| < 7/16: FreeBSD s_atanf.c and fdlibm s_atan.c, as are the sums below.
constexpr std::array<double, 5> kAtan32 = {3.3333328366e-01, -1.9999158382e-01, 1.4253635705e-01, -1.0648017377e-01,
                                           6.1687607318e-02};
constexpr std::array<double, 11> kAtan64 = {
    3.33333333333329318027e-01, -1.99999999998764832476e-01, 1.42857142725034663711e-01, -1.11111104054623557880e-01,
    9.09088713343650656196e-02, -7.69187620504482999495e-02, 6.66107313738753120669e-02, -5.83357013379057348645e-02,
    4.97687799461593236017e-02, -3.65315727442169155270e-02, 1.62858201153657823623e-02};

// The word at `from + offset`, which depends on the argument's exponent alone.
V TableWord(V index, int offset, V like) {
  const absl::Span<const uint64_t> table =
      like.format().wide() ? absl::Span<const uint64_t>(kTwoOverPi64) : kTwoOverPi32;
  const size_t starts = table.size() - 3;
  V word = Word(like, table[static_cast<size_t>(offset)]);
  for (size_t j = 1; j < starts; ++j) {
    word = Select(index >= Word(like, j), Word(like, table[j + static_cast<size_t>(offset)]), word);
  }
  return word;
}

// The upper half of the product. Devices have it for 32 bits; for 64 from four products of halves.
V HighProduct(V a, V b, V like) {
  if (!like.format().wide()) return Op("mulhi", {a, b});
  const V low = Word(like, 0xffffffff), a1 = a >> 32, a0 = a & low, b1 = b >> 32, b0 = b & low;
  const V cross = a1 * b0 + ((a0 * b0) >> 32), middle = a0 * b1 + (cross & low);
  return a1 * b1 + (cross >> 32) + (middle >> 32);
}

// |x| = quadrant * pi/2 + r, |r| <= pi/4, r as a pair; the quadrant modulo 4.
struct Angle {
  V quadrant = {};
  Pair r = {};
};

// With x = m * 2^e, the bits of 2/pi before the one of weight 2^(1 - e) make multiples of 4. The next three words w
// give x * 2/pi modulo 4 as m * w * 2^(2 - 3 * width).
Angle Reduce(V magnitude) {
  const Format& f = magnitude.format();
  const int width = f.width, digits = f.fraction + 1;
  const V bits = Bits(magnitude), m = (bits & Word(bits, f.hidden() - 1)) | Word(bits, f.hidden());
  const V start = (bits >> f.fraction) - Word(bits, static_cast<uint64_t>(f.bias + f.fraction + 2 - width));
  const V shift = start & Word(bits, static_cast<uint64_t>(width) - 1), index = start >> (f.wide() ? 6 : 5);
  V t[4], w[3];
  for (int i = 0; i < 4; ++i) t[i] = TableWord(index, i, magnitude);
  for (int i = 0; i < 3; ++i) w[i] = Shl(t[i], shift) | Shr(t[i + 1], Word(bits, static_cast<uint64_t>(width)) - shift);
  const V middle = m * w[1], low = middle + HighProduct(m, w[2], magnitude);
  const V carry = Select(low < middle, Word(bits, 1), Word(bits, 0));
  const V high = m * w[0] + HighProduct(m, w[1], magnitude) + carry;
  const V quadrant = (high + Word(bits, uint64_t{1} << (width - 3))) >> (width - 2);
  // The fraction, as a sign and two words.
  const V high2 = (high << 2) | (low >> (width - 2)), low2 = low << 2, zero = Word(bits, 0);
  const V negative = high2 >= Word(bits, f.sign()), borrow = Select(low2 != zero, Word(bits, 1), zero);
  const V high3 = Select(negative, zero - high2 - borrow, high2), low3 = Select(negative, zero - low2, low2);
  const int over = width - digits, under = digits - over;
  const double unit = 1.0 / static_cast<double>(f.hidden()) * 0.5;
  const V upper = ToFloat(high3 >> over) * unit;
  const V lower = ToFloat(((high3 & Word(bits, (uint64_t{1} << over) - 1)) << under) | (low3 >> (width - under)));
  const Pair turn = FastTwoSum(upper, lower * (unit * unit));
  const V half_pi = Real(magnitude, 0x1.921fb6p+0, 0x1.921fb54442d18p+0);
  const V half_pi_low = Real(magnitude, -0x1.777a5cf72cecep-25, 0x1.1a62633145c07p-54);
  const Pair product = TwoProduct(turn.high, half_pi);
  const Pair r = FastTwoSum(product.high, product.low + (turn.high * half_pi_low + turn.low * half_pi));
  const V near = magnitude <= Real(magnitude, 0x1.921fb4p-1, 0x1.921fb54442d18p-1);
  const V none = Constant(magnitude, 0);
  return {Select(near, zero, quadrant),
          {Select(near, magnitude, Select(negative, -r.high, r.high)),
           Select(near, none, Select(negative, -r.low, r.low))}};
}

V SinNear(Pair r) {
  const V z = r.high * r.high;
  const V tail = r.high.format().wide() ? PolynomialIn(z, kSin64) : PolynomialIn(z, kSin32);
  return r.high + (r.high * z * tail + r.low);
}
// 1 - z/2 is kept with its rounding error, as in fdlibm.
V CosNear(Pair r) {
  const V z = r.high * r.high, half = z * 0.5, w = 1.0 - half;
  const V tail = r.high.format().wide() ? PolynomialIn(z, kCos64) : PolynomialIn(z, kCos32);
  return w + (((1.0 - w) - half) + (z * z * tail - r.high * r.low));
}

V Bit(V quadrant, uint64_t mask) { return (quadrant & Word(quadrant, mask)) != Word(quadrant, 0); }
V NegatedIf(V condition, V x) { return Select(condition, -x, x); }
V Finite(V x, V value) { return Select(Abs(x) < Infinity(x), value, Quiet(x)); }

}  // namespace

V Sin(V x) {
  const Angle a = Reduce(Abs(x));
  const V value = NegatedIf(Bit(a.quadrant, 2), Select(Bit(a.quadrant, 1), CosNear(a.r), SinNear(a.r)));
  return Finite(x, Select(x == 0.0, x, NegatedIf(x < 0.0, value)));
}

V Cos(V x) {
  const Angle a = Reduce(Abs(x));
  const V negative = Bit(a.quadrant, 1) != Bit(a.quadrant, 2);
  return Finite(x, NegatedIf(negative, Select(Bit(a.quadrant, 1), SinNear(a.r), CosNear(a.r))));
}

V Tan(V x) {
  const Angle a = Reduce(Abs(x));
  const V odd = Bit(a.quadrant, 1), s = SinNear(a.r), c = CosNear(a.r);
  const V value = Divide(Select(odd, -c, s), Select(odd, s, c));
  return Finite(x, Select(x == 0.0, x, NegatedIf(x < 0.0, value)));
}

namespace {

// Of x >= 0.
V AtanOf(V x) {
  struct Interval {
    double below, top_x, top_1, bottom_1, bottom_x;  // t = (top_x x + top_1) / (bottom_1 + bottom_x x)
    double high32, low32, high64, low64;             // atan x = high + low + atan t
  };
  constexpr Interval kIntervals[] = {{39.0 / 16, 1, -1.5, 1, 1.5, 9.8279368877e-01, 3.4473217170e-08,
                                      9.82793723247329054082e-01, 1.39033110312309984516e-17},
                                     {19.0 / 16, 1, -1, 1, 1, 7.8539812565e-01, 3.7748947079e-08,
                                      7.85398163397448278999e-01, 3.06161699786838301793e-17},
                                     {11.0 / 16, 2, -1, 2, 1, 4.6364760399e-01, 5.0121582440e-09,
                                      4.63647609000806093515e-01, 2.26987774529616870924e-17}};
  V top = Constant(x, -1), bottom = x;
  V high = Real(x, 1.5707962513e+00, 1.57079632679489655800e+00);
  V low = Real(x, 7.5497894159e-08, 6.12323399573676603587e-17);
  for (const Interval& i : kIntervals) {
    const V here = x < i.below;
    top = Select(here, (i.top_x == 1 ? x : x * i.top_x) + i.top_1, top);
    bottom = Select(here, i.bottom_1 + (i.bottom_x == 1 ? x : x * i.bottom_x), bottom);
    high = Select(here, Real(x, i.high32, i.high64), high);
    low = Select(here, Real(x, i.low32, i.low64), low);
  }
  const V plain = x < 7.0 / 16, t = Select(plain, x, Divide(top, bottom)), z = t * t;
  const V tail = t * z * (x.format().wide() ? PolynomialIn(z, kAtan64) : PolynomialIn(z, kAtan32));
  return Select(plain, x - tail, high - ((tail - low) - t));
}

}  // namespace

namespace {

// (asin x - x) / x^3 in x^2 on [0, 1/4], interpolated at Chebyshev nodes, computed in 120 digits; off by less than
// 2^-26 and 2^-54.
constexpr std::array<double, 6> kAsin32 = {0.16666666337430908, 0.07500094543497424,  0.04459940152851218,
                                           0.03110066273549457, 0.017149238357677253, 0.03369084720283012};
constexpr std::array<double, 13> kAsin64 = {
    0.16666666666666669,  0.07499999999998433,   0.04464285714635543,  0.030381944138531247, 0.02237217294214989,
    0.017352392720869973, 0.013971212973552933,  0.011479177415184906, 0.01032281435018578,  0.005457506718640358,
    0.01740087944269402,  -0.014851887071247204, 0.028757851367421566};

// asin x = near for |x| < 1/2, else pi/2 - 2 far, which is asin sqrt((1 - |x|) / 2).
struct Arc {
  V inner = {}, value = {};
};
Arc ArcOf(V a) {
  const V inner = a < 0.5, z = Select(inner, a * a, (1.0 - a) * 0.5);
  const V x = Select(inner, a, SquareRoot(z));
  return {inner, x + x * z * (a.format().wide() ? PolynomialIn(z, kAsin64) : PolynomialIn(z, kAsin32))};
}
V HalfPi(V x) { return Real(x, 0x1.921fb6p+0, 0x1.921fb54442d18p+0); }
V HalfPiLow(V x) { return Real(x, -0x1.777a5cf72cecep-25, 0x1.1a62633145c07p-54); }

}  // namespace

V Asin(V x) {
  const Arc arc = ArcOf(Abs(x));
  const V value = Select(arc.inner, arc.value, HalfPi(x) - (arc.value * 2.0 - HalfPiLow(x)));
  return Select(Abs(x) <= 1.0, WithSign(value, x), Quiet(x));
}

V Acos(V x) {
  const Arc arc = ArcOf(Abs(x));
  const V twice = arc.value * 2.0, signed_arc = WithSign(arc.value, x);
  const V outer = Select(x < 0.0, HalfPi(x) * 2.0 - (twice - HalfPiLow(x) * 2.0), twice);
  const V value = Select(arc.inner, HalfPi(x) - (signed_arc - HalfPiLow(x)), outer);
  return Select(Abs(x) <= 1.0, value, Quiet(x));
}

V Atan(V x) { return Select(IsNan(x), x, WithSign(AtanOf(Abs(x)), x)); }

V Atan2(V y, V x) {
  const V a = Abs(y), b = Abs(x);
  const V zeros = (a == 0.0) & (b == 0.0), infinities = (a == Infinity(x)) & (b == Infinity(x));
  const V ratio = Select(zeros, 0, Select(infinities, 1, Divide(a, b)));
  const V near = AtanOf(ratio);
  const V pi = Real(x, 0x1.921fb6p+1, 0x1.921fb54442d18p+1);
  const V pi_low = Real(x, -0x1.777a5cf72cecep-24, 0x1.1a62633145c07p-53);
  const V left = (Bits(x) & Word(x, x.format().sign())) != Word(x, 0);
  const V angle = Select(left, pi - (near - pi_low), near);
  return Select(IsNan(x) | IsNan(y), Quiet(x), WithSign(angle, y));
}

}  // namespace agc::expand
