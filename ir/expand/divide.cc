// Division and square roots, rounded correctly, and remainders, exact; subnormal numbers included: an estimate from
// Newton's iteration in floats, then what is left in integers that wrap. Devices' own are only within 2.5 ulp (Vulkan
// specification, "Precision and Operation of SPIR-V Instructions").
#include "ir/expand/expand.h"

namespace agc::expand {
namespace {

// A finite number without its sign: mantissa with the leading bit, biased exponent, and mantissa as a float in [1, 2).
struct Normal {
  V mantissa = {}, exponent = {}, one = {};
};

// `magnitude`: bits without the sign. A subnormal number is normalised by converting its bits, a small integer,
// exactly.
Normal Normalise(V magnitude) {
  const Format& f = FormatOf(FromBits(magnitude).dtype());
  const V hidden = Word(magnitude, f.hidden()), subnormal = magnitude < hidden;
  const V bits = Select(subnormal, Bits(ToFloat(magnitude)), magnitude);
  const V fraction = bits & Word(bits, f.hidden() - 1);
  const V field = Signed(bits >> f.fraction);
  const V exponent = Select(subnormal, field - (f.bias + f.fraction - 1.0), field);
  return {fraction | hidden, exponent, FromBits(fraction | Word(bits, static_cast<uint64_t>(f.bias) << f.fraction))};
}

// sign, and q * 2^(exponent - bias - fraction - 2), rounded half to even; q has fraction + 3 bits, the lowest one set
// where anything was lost below it.
V Pack(V sign, V exponent, V q) {
  const Format& f = FormatOf(FromBits(q).dtype());
  const V below = 1.0 - exponent;  // by how much the result is subnormal
  const double most = f.fraction + 4;
  const V shift = Unsigned(Select(below < 0, 0, Select(below > most, most, below)));
  const V kept = Shr(q, shift), lost = Shl(kept, shift) != q;
  const V shifted = kept | Select(lost, Word(q, 1), Word(q, 0));
  const V mantissa = shifted >> 2, rest = (shifted & Word(q, 3)) + (mantissa & Word(q, 1));
  const V rounded = mantissa + Select(rest > 2, Word(q, 1), Word(q, 0));
  const V field = Unsigned(Select(exponent < 1, 0, exponent - 1.0)) << f.fraction;
  const V overflow = exponent > 2.0 * f.bias;
  return FromBits(sign | Select(overflow, Word(q, f.infinity()), field + rounded));
}

}  // namespace

// The start errs by 1/17 at most, and each step squares that.
V ReciprocalNearOne(V x) {
  V y = 24.0 / 17.0 - x * (8.0 / 17.0);
  for (int i = 0; i < (x.format().wide() ? 4 : 3); ++i) y = y + y * (1.0 - x * y);
  return y;
}

V Divide(V a, V b) {
  const Format& f = a.format();
  const V sign_mask = Word(a, f.sign()), sign = (Bits(a) ^ Bits(b)) & sign_mask;
  const V am = Bits(a) & Word(a, f.sign() - 1), bm = Bits(b) & Word(b, f.sign() - 1);
  const Normal x = Normalise(am), d = Normalise(bm);
  const V y = ReciprocalNearOne(d.one), estimate = Bits(x.one * y);
  // q is near x / d * 2^(fraction + 2), off by less than 32.
  const V q0 = Shl((estimate & Word(a, f.hidden() - 1)) | Word(a, f.hidden()),
                   (estimate >> f.fraction) - Word(a, static_cast<uint64_t>(f.bias) - 2));
  const V r0 = (x.mantissa << (f.fraction + 2)) - q0 * d.mantissa;
  const V correction = ToNearest(ToFloat(Signed(r0)) * y * (1.0 / static_cast<double>(f.hidden()))).integer;
  const V r = Signed(r0 - Unsigned(correction) * d.mantissa);  // within half of the divisor
  const V q = q0 + Unsigned(correction) - Select(r < 0, Word(a, 1), Word(a, 0));
  const V small = q < Word(a, f.hidden() << 2);
  const V sticky = Select(r != 0, Word(a, 1), Word(a, 0));
  const V exponent = x.exponent - d.exponent + Select(small, f.bias - 1.0, Constant(x.exponent, f.bias));
  const V quotient = Pack(sign, exponent, Select(small, q << 1, q) | sticky);
  const V infinity = Word(a, f.infinity()), zero = Word(a, 0);
  const V invalid =
      (am > infinity) | (bm > infinity) | ((am == zero) & (bm == zero)) | ((am == infinity) & (bm == infinity));
  return Select(invalid, Quiet(a),
                Select((am == infinity) | (bm == zero), FromBits(sign | infinity),
                       Select((am == zero) | (bm == infinity), FromBits(sign), quotient)));
}

// The start by halving the exponent errs by 3.5% at most (the constant is Lomont's, "Fast inverse square root", 2003);
// each step leaves 1.5 times the square.
V SquareRoot(V a) {
  const Format& f = a.format();
  const V bits = Bits(a);
  const Normal x = Normalise(bits & Word(a, f.sign() - 1));
  const V odd = (Unsigned(x.exponent) & Word(a, 1)) == Word(a, 0);  // the bias is odd: the exponent itself then is, too
  const V m = Select(odd, x.one * 2.0, x.one);                      // in [1, 4)
  V y = FromBits(Word(a, f.wide() ? 0x5fe6eb50c7b537a9 : 0x5f375a86) - (Bits(m) >> 1));
  const V half = m * 0.5;
  for (int i = 0; i < (f.wide() ? 4 : 3); ++i) y = y * (1.5 - half * y * y);
  const V estimate = Bits(m * y);
  // s is near sqrt(m) * 2^(fraction + 1), off by less than 16.
  const V s0 = Shl((estimate & Word(a, f.hidden() - 1)) | Word(a, f.hidden()),
                   (estimate >> f.fraction) - Word(a, static_cast<uint64_t>(f.bias) - 1));
  const V square = Select(odd, x.mantissa << (f.fraction + 3), x.mantissa << (f.fraction + 2));
  const V r0 = square - s0 * s0;
  const V correction = ToNearest(ToFloat(Signed(r0)) * y * (0.25 / static_cast<double>(f.hidden()))).integer;
  const V c = Unsigned(correction), r = Signed(r0 - c * ((s0 << 1) + c));
  const V s = s0 + c - Select(r < 0, Word(a, 1), Word(a, 0));
  // A square root is never half-way between two numbers: its last bit alone says how to round.
  const V rounded = (s >> 1) + (s & Word(a, 1));
  const V exponent = (x.exponent + (f.bias - 2.0)) >> 1;
  const V root = FromBits((Unsigned(exponent) << f.fraction) + rounded);
  const V special = (bits & Word(a, f.sign() - 1)) == Word(a, 0);
  return Select(special | (bits == Word(a, f.infinity())), a,
                Select((bits >= Word(a, f.sign())) | (bits > Word(a, f.infinity())), Quiet(a), root));
}

// a = m * 8^k with m in [1, 8). The start, a line times a power of two, errs by 1% at most; each step of Newton's for
// m^(-1/3) leaves twice the square. The last step takes the remainder a - r^3 from products without rounding.
V CubeRoot(V a) {
  const Format& f = a.format();
  const V magnitude = Bits(a) & Word(a, f.sign() - 1);
  const Normal x = Normalise(magnitude);
  const double offset = f.wide() ? 1077 : 150;  // a multiple of 3 that makes every exponent positive
  const V shifted = Unsigned(x.exponent + (offset - f.bias)), third = Op("div", {shifted, Word(a, 3)});
  const V rest = shifted - third * Word(a, 3);
  const V two = rest == Word(a, 2), one = rest == Word(a, 1);
  const V m = x.one * Select(two, 4.0, Select(one, 2.0, Constant(a, 1)));
  const V scale = Select(two, 0.62996052494743658, Select(one, 0.79370052598409974, Constant(a, 1)));
  V y = (1.199 - x.one * 0.2059) * scale;
  for (int i = 0; i < (f.wide() ? 4 : 3); ++i) y = y + y * (1.0 - m * (y * y) * y) * (1.0 / 3);
  const V r = m * (y * y);
  const Pair square = TwoProduct(r, r), cube = TwoProduct(square.high, r);
  const V remainder = ((m - cube.high) - cube.low) - square.low * r;
  const V root = r + remainder * (y * y) * (1.0 / 3);
  const V value = root * PowerOfTwo(Signed(third) - offset / 3);
  return Select((magnitude == Word(a, 0)) | (magnitude >= Word(a, f.infinity())), a, WithSign(value, a));
}

V ReciprocalSquareRoot(V a) { return Divide(Constant(a, 1), SquareRoot(a)); }

namespace {

// A mantissa to divide by, and its reciprocal to a few ulp.
struct Modulus {
  V d = {}, inverse = {};
};

V LessOne(const Modulus& m, V r) { return Select(r >= m.d, r - m.d, r); }  // of r < 2d

// p q mod d of p, q < d. The quotient from floats is even and off by less than 9, which leaves a remainder that fits a
// word; the words of p q and of the quotient times d may wrap.
V ProductModulo(const Modulus& m, V p, V q) {
  const V quotient = ToFloat(p) * ToFloat(q) * m.inverse;
  const V top = Constant(quotient, 2 * static_cast<double>(quotient.format().hidden()));
  const V near = (Bits(quotient + top) - Bits(top)) << 1;
  const V rest = p * q - near * m.d;
  const V r = rest - Unsigned(ToNearest(ToFloat(Signed(rest)) * m.inverse).integer) * m.d;
  return Select(Signed(r) < 0, r + m.d, r);
}

// 2^n mod d: of the bits of n, all but the last ones make a power of two below d, and each of these squares it.
V PowerModulo(const Modulus& m, V n, bool wide) {
  const int last = wide ? 6 : 4;
  V power = Shl(Word(n, 1), n >> last);
  for (int i = last - 1; i >= 0; --i) {
    const V square = ProductModulo(m, power, power), odd = ((n >> i) & Word(n, 1)) != Word(n, 0);
    power = Select(odd, LessOne(m, square << 1), square);
  }
  return power;
}

}  // namespace

// With mantissas x and d as integers and n the difference of the exponents, the remainder is x 2^n mod d, in units of
// the divisor's last place: exact, whatever the quotient's size.
V Remainder(V a, V b) {
  const Format& f = a.format();
  const V sign = Bits(a) & Word(a, f.sign()), am = Bits(a) & Word(a, f.sign() - 1),
          bm = Bits(b) & Word(a, f.sign() - 1);
  const Normal x = Normalise(am), d = Normalise(bm);
  const Modulus m{d.mantissa, ReciprocalNearOne(d.one) * (1.0 / static_cast<double>(f.hidden()))};
  const V power = PowerModulo(m, Unsigned(x.exponent - d.exponent), f.wide());
  const V r = ProductModulo(m, LessOne(m, x.mantissa), power), zero = Word(a, 0);
  const V leading = Signed(Bits(ToFloat(r)) >> f.fraction) - static_cast<double>(f.bias);  // place of the highest bit
  const V q = Shl(r, Unsigned(f.fraction + 2.0 - leading));
  const V value =
      Select(r == zero, FromBits(sign), Pack(sign, d.exponent - static_cast<double>(f.fraction) + leading, q));
  const V infinity = Word(a, f.infinity());
  return Select((am >= infinity) | (bm > infinity) | (bm == zero), Quiet(a), Select(am < bm, a, value));
}

}  // namespace agc::expand
