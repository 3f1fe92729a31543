// What definitions and gradient rules of mathematical functions and activations share: f16 and bf16 are computed in
// f32, and slopes enter a product that stays silent where the cotangent is 0.
//   s.dx[0] = Along(s, Cosh(Wide(s.x[0])));
#pragma once
#include "ir/build.h"
#include "ir/ops/infer.h"

namespace agc {

inline Value NarrowTo(Value y, Value like) { return CastTo(y, like.dtype()); }
inline Value Filled(Value like, double value) { return FullLike(like, value); }

// The cotangent times a slope, or divided by `d`, in the wide dtype of the second and cast back.
inline Value Along(const Vjp& s, Value slope) { return NarrowTo(SafeMul(Wide(s.g), slope), s.g); }
inline Value Across(const Vjp& s, Value d) { return NarrowTo(SafeDiv(Wide(s.g), d), s.g); }

// f(x), and where x is 0 the value 0 with the derivative 0.
template <typename F>
Value ZeroAtZero(Value x, F f) {
  const Value zero = Equal(x, Filled(x, 0));
  return Where(zero, Filled(x, 0), f(Where(zero, Filled(x, 1), x)));
}
inline Value RootOf(Value sum) {
  return ZeroAtZero(sum, [](Value v) { return Sqrt(v); });
}
// (sum of |x|^p)^(1/p) over axes; p = 0 counts what is not 0, inf is the largest, -inf the smallest. The gradient at 0
// is 0.
Value NormOf(Value x, double p, const Ints& axes, bool keep_dims);

// x where it is not positive, else 0: an argument for exp that cannot overflow, with a derivative of 1 at 0.
inline Value NotPositive(Value x) { return Where(Greater(x, Filled(x, 0)), Filled(x, 0), x); }
// Of a remainder y: (a - y) / b is the whole number that was taken out, but for rounding.
void RemainderVjp(Vjp& s);
// 1 - x^2 without cancellation. At -1 and 1 another form of the same value takes over, whose derivative is no product
// of an infinite factor with 0 where slopes have a pole there.
Value OneMinusSquare(Value x);

}  // namespace agc
