// The C++ functions of the mathematical, bit and activation ops beside those of ir/build.h. Binary functions broadcast.
// Definitions stand beside the rows in ir/ops/.
//   Value y = Log1p(Expm1(x)) + Hypot(x, 3.0);
#pragma once
#include <limits>

#include "ir/value.h"

namespace agc {

// Exponentials, logarithms, roots.
Value Exp2(Value x, Loc loc = Loc::Here());
Value Expm1(Value x, Loc loc = Loc::Here());  // exp(x) - 1
Value Log2(Value x, Loc loc = Loc::Here());
Value Log10(Value x, Loc loc = Loc::Here());
Value Log1p(Value x, Loc loc = Loc::Here());                  // log(1 + x)
Value LogAddExp(Value a, Value b, Loc loc = Loc::Here());     // log(exp(a) + exp(b))
Value Logit(Value x, double eps = 0, Loc loc = Loc::Here());  // log(x / (1 - x)), x first limited to [eps, 1 - eps]
Value Xlogy(Value x, Value y, Loc loc = Loc::Here());         // x log(y), and 0 where x is 0
Value Cbrt(Value x, Loc loc = Loc::Here());
Value Hypot(Value a, Value b, Loc loc = Loc::Here());  // sqrt(a^2 + b^2) without overflow on the way
Value Erf(Value x, Loc loc = Loc::Here());
Value Erfc(Value x, Loc loc = Loc::Here());  // 1 - erf(x)

// Radians.
Value Tan(Value x, Loc loc = Loc::Here());
Value Asin(Value x, Loc loc = Loc::Here());
Value Acos(Value x, Loc loc = Loc::Here());
Value Atan(Value x, Loc loc = Loc::Here());
Value Atan2(Value y, Value x, Loc loc = Loc::Here());  // angle of the point (x, y), in [-pi, pi]
Value Sinh(Value x, Loc loc = Loc::Here());
Value Cosh(Value x, Loc loc = Loc::Here());
Value Asinh(Value x, Loc loc = Loc::Here());
Value Acosh(Value x, Loc loc = Loc::Here());
Value Atanh(Value x, Loc loc = Loc::Here());

// Rounding, signs, extremes. `Rem` has the sign of the dividend (C's fmod), `Mod` that of the divisor (Python's %).
Value Trunc(Value x, Loc loc = Loc::Here());
Value Mod(Value a, Value b, Loc loc = Loc::Here());
Value CopySign(Value x, Value sign, Loc loc = Loc::Here());
Value Fmax(Value a, Value b, Loc loc = Loc::Here());  // the other where one is NaN; ties split the gradient
Value Fmin(Value a, Value b, Loc loc = Loc::Here());
Value ClampMin(Value x, double lo, Loc loc = Loc::Here());  // op `clamp` with one bound
Value ClampMax(Value x, double hi, Loc loc = Loc::Here());
Value Lerp(Value a, Value b, Value t, Loc loc = Loc::Here());  // a + t (b - a); broadcasts all three
// NaN becomes `nan`; infinities the dtype's extremes, or what is given.
struct NanToNumOptions {
  double nan = 0;
  double posinf = std::numeric_limits<double>::infinity();
  double neginf = -std::numeric_limits<double>::infinity();
};
Value NanToNum(Value x, NanToNumOptions options = {}, Loc loc = Loc::Here());

// Bits and classes.
Value BitNot(Value x, Loc loc = Loc::Here());
Value PopulationCount(Value x, Loc loc = Loc::Here());  // how many bits are 1, in the operand's dtype
Value LogicalXor(Value a, Value b, Loc loc = Loc::Here());
Value IsInf(Value x, Loc loc = Loc::Here());
Value IsFinite(Value x, Loc loc = Loc::Here());
Value SignBit(Value x, Loc loc = Loc::Here());  // negative, -0 and NaN with a sign included

// Activations made of pieces of straight lines (and hard_swish, of a parabola).
Value Relu6(Value x, Loc loc = Loc::Here());
Value HardTanh(Value x, double lo = -1, double hi = 1, Loc loc = Loc::Here());
Value HardSigmoid(Value x, double alpha = 1.0 / 6, double beta = 0.5, Loc loc = Loc::Here());
Value HardSwish(Value x, Loc loc = Loc::Here());
Value HardShrink(Value x, double lambd = 0.5, Loc loc = Loc::Here());
Value SoftShrink(Value x, double lambd = 0.5, Loc loc = Loc::Here());
Value ThresholdedRelu(Value x, double alpha = 1, Loc loc = Loc::Here());
Value Prelu(Value x, Value slope, Loc loc = Loc::Here());  // slope broadcasts to x

// Smooth activations.
Value Elu(Value x, double alpha = 1, Loc loc = Loc::Here());
Value Celu(Value x, double alpha = 1, Loc loc = Loc::Here());
Value Selu(Value x, Loc loc = Loc::Here());
Value Glu(Value x, int64_t axis = -1, Loc loc = Loc::Here());  // first half times the sigmoid of the second
Value LogSigmoid(Value x, Loc loc = Loc::Here());
Value Mish(Value x, Loc loc = Loc::Here());
Value Softsign(Value x, Loc loc = Loc::Here());
Value Swish(Value x, double beta = 1, Loc loc = Loc::Here());  // x * sigmoid(beta x)
Value Tanhshrink(Value x, Loc loc = Loc::Here());
Value GeluTanh(Value x, Loc loc = Loc::Here());  // op `gelu` with approximate = "tanh"

// The same with a literal, which takes the tensor's dtype.
inline Value Mod(Value a, double b, Loc loc = Loc::Here()) { return Mod(a, ScalarLike(a, b, loc), loc); }
inline Value Fmax(Value a, double b, Loc loc = Loc::Here()) { return Fmax(a, ScalarLike(a, b, loc), loc); }
inline Value Fmin(Value a, double b, Loc loc = Loc::Here()) { return Fmin(a, ScalarLike(a, b, loc), loc); }
inline Value Hypot(Value a, double b, Loc loc = Loc::Here()) { return Hypot(a, ScalarLike(a, b, loc), loc); }
inline Value Lerp(Value a, Value b, double t, Loc loc = Loc::Here()) { return Lerp(a, b, ScalarLike(a, t, loc), loc); }
inline Value Prelu(Value x, double slope, Loc loc = Loc::Here()) { return Prelu(x, ScalarLike(x, slope, loc), loc); }

}  // namespace agc
