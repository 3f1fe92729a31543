// What expansions are written with: numbers of one dtype as expressions of exact ops, those that IEEE 754 or the
// definition of the integer op leaves one result for. Ops on constants fold at once.
//   V Square(V x) { return x * x + 1.0; }         // constants take the dtype of the operand beside them
//   V SignOf(V x) { return Bits(x) & Word(x, 0x80000000); }
// Nothing here may rely on how a device contracts, approximates or treats NaN bits; subnormal numbers are kept as far
// as the device keeps them (docs/numerics.md).
#pragma once
#include <cstdint>

#include "absl/types/span.h"
#include "ir/expr.h"

namespace agc::expand {

// A float format with the integers of its size.
struct Format {
  DType f = DType::kF32, i = DType::kI32, u = DType::kU32;
  int width = 32, fraction = 23, bias = 127;
  uint64_t hidden() const { return uint64_t{1} << fraction; }
  uint64_t sign() const { return uint64_t{1} << (width - 1); }
  uint64_t infinity() const { return sign() - hidden(); }  // the bits of it
  bool wide() const { return width == 64; }
};
const Format& FormatOf(DType f);  // f32 and f64

struct V {
  Expr e = {};
  DType dtype() const { return e.dtype(); }
  const Format& format() const { return FormatOf(dtype()); }
};

V Op(absl::string_view op, absl::Span<const V> x);
V Constant(V like, double value);                        // of like's dtype
V Word(V like, uint64_t bits);                           // an unsigned integer of like's size
V Real(V like, double value32, double value64);          // of like's float dtype, the value for that dtype
V PolynomialIn(V x, absl::Span<const double> from_low);  // Horner's scheme

V operator+(V a, V b);
V operator-(V a, V b);
V operator*(V a, V b);
V operator+(V a, double b);
V operator-(V a, double b);
V operator*(V a, double b);
V operator+(double a, V b);
V operator-(double a, V b);
V operator*(double a, V b);
V operator-(V a);
V operator&(V a, V b);  // integers bitwise, bools both
V operator|(V a, V b);
V operator^(V a, V b);
V operator<<(V a, int n);
V operator>>(V a, int n);
V Shl(V a, V n);
V Shr(V a, V n);
V operator<(V a, V b);  // comparisons of f32 see subnormal numbers, also where the device's own do not
V operator<=(V a, V b);
V operator>(V a, V b);
V operator>=(V a, V b);
V operator==(V a, V b);
V operator!=(V a, V b);
V operator<(V a, double b);
V operator<=(V a, double b);
V operator>(V a, double b);
V operator>=(V a, double b);
V operator==(V a, double b);
V operator!=(V a, double b);
V operator!(V a);
V Select(V cond, V then, V otherwise);
V Select(V cond, double then, V otherwise);
V Select(V cond, V then, double otherwise);
V IsNan(V x);

V ToFloat(V integer);       // of its size; exact where it has no more bits than the fraction and one
V Bits(V x);                // a float as an unsigned integer
V FromBits(V integer);      // and back
V Signed(V unsigned_word);  // the same bits
V Unsigned(V signed_word);
V Abs(V x);                          // by the sign bit, as the two that follow
V WithSign(V magnitude, V sign_of);  // magnitude is not negative
V IsTiny(V x);                       // so small that x + x^2 rounds to x
V Quiet(V like);                     // NaN
V Infinity(V like);

// The nearest whole number, halves to even, for |x| < 2^(fraction - 2), as a float and as a signed integer: by adding
// and taking off 1.5 * 2^fraction.
struct Rounded {
  V real = {}, integer = {};
};
Rounded ToNearest(V x);
V PowerOfTwo(V exponent);  // from a signed integer, in the normal range
V Scale(V x, V exponent);  // x * 2^exponent, rounded once where the result is subnormal; x of size about 1
// a + b and a * b without rounding, as value and rest. The product splits its operands by masks (Dekker's scheme with
// truncation instead of Veltkamp's rounding), so it neither overflows nor depends on contraction.
struct Pair {
  V high = {}, low = {};
};
Pair TwoSum(V a, V b);      // Knuth, TAOCP volume 2, section 4.2.2, theorem B
Pair FastTwoSum(V a, V b);  // |a| >= |b| or a = 0 (Dekker 1971)
Pair TwoProduct(V a, V b);

}  // namespace agc::expand
