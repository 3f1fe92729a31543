#include "ir/scalar_op.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ir/base/status.h"
#include "ir/expand/expand.h"
#include "ir/expr.h"
#include "ir/scalar_op_glsl.h"
#include "ir/scalar_op_trig.h"

namespace agc {
namespace {

using enum ScalarTyping;
using D = ScalarDomain;
using I = const int64_t*;
using F = const double*;

// Unsigned dtypes compare and divide as such; everything narrower than 64 bits is exact in int64.
bool Less(DType t, int64_t a, int64_t b) { return t == DType::kU64 ? uint64_t(a) < uint64_t(b) : a < b; }
int64_t Quotient(DType t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (t == DType::kU64) return static_cast<int64_t>(uint64_t(a) / uint64_t(b));
  return b == -1 ? static_cast<int64_t>(0 - uint64_t(a)) : a / b;
}
int64_t Remainder(DType t, int64_t a, int64_t b) {
  if (b == 0) return a;
  if (t == DType::kU64) return static_cast<int64_t>(uint64_t(a) % uint64_t(b));
  return b == -1 ? 0 : a % b;
}
int64_t HighProduct(DType t, int64_t a, int64_t b) {
  if (t == DType::kU32) return static_cast<int64_t>((uint64_t(a) * uint64_t(b)) >> 32);
  if (t == DType::kI32) return (a * b) >> 32;
  if (t == DType::kU64) return static_cast<int64_t>((static_cast<unsigned __int128>(uint64_t(a)) * uint64_t(b)) >> 64);
  return static_cast<int64_t>((static_cast<__int128>(a) * b) >> 64);
}
int64_t Shift(DType t, int64_t a, int64_t n, bool left) {
  const int bits = static_cast<int>(SizeOf(t)) * 8;
  if (n < 0 || n >= bits) return !left && IsSigned(t) && a < 0 ? -1 : 0;
  if (left) return static_cast<int64_t>(uint64_t(a) << n);
  return t == DType::kU64 ? static_cast<int64_t>(uint64_t(a) >> n) : a >> n;
}
double Maximum(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double Minimum(double a, double b) { return a < b || std::isnan(a) ? a : b; }
// Of the dtype's own bits: a negative narrow integer is kept sign-extended.
int64_t CountOnes(DType t, int64_t a) {
  const int bits = static_cast<int>(SizeOf(t)) * 8;
  return std::popcount(uint64_t(a) << (64 - bits));
}
double Sign(double a) { return std::isnan(a) ? a : a > 0 ? 1.0 : a < 0 ? -1.0 : a; }

// Helper functions are printed once per type that they are called with: $t is that type, $u its unsigned one, $nan a
// NaN. NaN passes through both: GLSL's own max and min leave it undefined.
constexpr absl::string_view kMaxGlsl = "$t agc_max($t a, $t b) { return mix(b, a, a > b || isnan(a)); }\n";
constexpr absl::string_view kMinGlsl = "$t agc_min($t a, $t b) { return mix(b, a, a < b || isnan(a)); }\n";
constexpr absl::string_view kSignGlsl = "$t agc_sign($t x) { return x > 0.0 ? $t(1) : x < 0.0 ? $t(-1) : x; }\n";
// IEEE pow; GLSL's is undefined for a negative base, so the sign is handled apart and small whole exponents multiply.
constexpr absl::string_view kPowGlsl = R"(float agc_pow(float x, float y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (isnan(x) || isnan(y)) return uintBitsToFloat(0x7fc00000u);
  bool whole = floor(y) == y;
  if (whole && abs(y) <= 64.0) {
    float r = 1.0, b = x;
    for (uint n = uint(abs(y)); n > 0u; n >>= 1) {
      if ((n & 1u) != 0u) r *= b;
      b *= b;
    }
    return y < 0.0 ? 1.0 / r : r;
  }
  if (x == 0.0) return y < 0.0 ? uintBitsToFloat(0x7f800000u) : 0.0;
  if (x < 0.0 && !whole && !isinf(x) && !isinf(y)) return uintBitsToFloat(0x7fc00000u);
  if (x == -1.0 && isinf(y)) return 1.0;
  float p = pow(abs(x), y);
  bool odd = whole && !isinf(y) && abs(y) < 16777216.0 && (uint(abs(y)) & 1u) != 0u;
  return x < 0.0 && odd ? -p : p;
}
)";
constexpr absl::string_view kDivGlsl = R"($t agc_div($t a, $t b) {
  if (b == 0) return $t(0);
  return b == ~$t(0) && ~$t(0) < 0 ? 0 - a : a / b;
}
)";
// Of integers through unsigned ones: % of a negative operand is undefined. Of floats by long division, which is exact:
// a - b * trunc(a / b) is not, once the quotient has more bits than the mantissa.
constexpr absl::string_view kRemIntGlsl = R"($t agc_rem($t a, $t b) {
  if (b == 0) return a;
  $u r = (a < 0 ? 0 - $u(a) : $u(a)) % (b < 0 ? 0 - $u(b) : $u(b));
  return a < 0 ? $t(0 - r) : $t(r);
}
)";
constexpr absl::string_view kRemFloatGlsl = R"($t agc_rem($t a, $t b) {
  $t r = abs(a), d = abs(b), t = d;
  if (isnan(a) || isnan(b) || isinf(a) || d == 0.0) return $nan;
  if (r < d) return a;
  for (uint i = 0u; i < 300u && t <= r * 0.5; ++i) t *= 2.0;
  for (uint i = 0u; i < 300u && t >= d; ++i) {
    if (r >= t) r -= t;
    t *= 0.5;
  }
  return a < 0.0 ? -r : r;
}
)";
constexpr absl::string_view kShlGlsl = "$t agc_shl($t a, $t n) { return n >= 0 && n < $bits ? a << n : $t(0); }\n";
constexpr absl::string_view kShrGlsl = R"($t agc_shr($t a, $t n) {
  return n >= 0 && n < $bits ? a >> n : a < 0 ? ~$t(0) : $t(0);
}
)";
// By halves: a widening multiply exists for 32 bits only.
constexpr absl::string_view kMulhiGlsl = R"($t agc_mulhi($t a, $t b) {
  $u m = ~$u(0) >> $half, x = $u(a), y = $u(b);
  $u low = ((x & m) * (y & m)) >> $half, left = (x >> $half) * (y & m) + low, right = (x & m) * (y >> $half) + (left & m);
  $u high = (x >> $half) * (y >> $half) + (left >> $half) + (right >> $half);
  return $t(high - (a < 0 ? y : $u(0)) - (b < 0 ? x : $u(0)));
}
)";

constexpr absl::string_view kCountGlsl = R"($t agc_popcount($t a) {
  $u low = $u(a) & (($u(1) << $half) - 1), high = $u(a) >> $half;
  return $t(bitCount(uint(low)) + bitCount(uint(high)));
}
)";

// clang-format off
constexpr ScalarOp kOps[] = {
    {.name = "abs", .f = [](F x) { return std::abs(x[0]); }, .i = [](DType t, I x) { return IsSigned(t) && x[0] < 0 ? int64_t(0 - uint64_t(x[0])) : x[0]; },
     .glsl = "abs($0)", .glsl_int = "$0 < 0 ? 0 - $0 : $0", .expand = expand::Unary<expand::Abs>, .doc = "Absolute value; the smallest integer stays itself."},
    {.name = "acos", .domain = D::kFloat, .f = [](F x) { return std::acos(x[0]); },
     .glsl = "agc_acos($0)", .glsl_helper = kAcosGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Acos>, .doc = "Inverse cosine, in [0, pi]."},
    {.name = "acosh", .domain = D::kFloat, .f = [](F x) { return std::acosh(x[0]); },
     .glsl = "agc_acosh($0)", .glsl_helper = kAcoshGlsl, .glsl_f64 = false, .cost = 24, .expand = expand::Unary<expand::Acosh>, .doc = "Inverse hyperbolic cosine."},
    {.name = "add", .arity = 2, .f = [](F x) { return x[0] + x[1]; }, .i = [](DType, I x) { return int64_t(uint64_t(x[0]) + uint64_t(x[1])); },
     .infix = "+", .glsl = "$0 + $1", .doc = "Sum; integers wrap."},
    {.name = "and", .arity = 2, .typing = kBool, .domain = D::kBits, .i = [](DType, I x) { return x[0] & x[1]; },
     .infix = "&", .glsl = "$0 && $1", .doc = "Both."},
    {.name = "asin", .domain = D::kFloat, .f = [](F x) { return std::asin(x[0]); },
     .glsl = "agc_asin($0)", .glsl_helper = kAsinGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Asin>, .doc = "Inverse sine, in [-pi/2, pi/2]."},
    {.name = "asinh", .domain = D::kFloat, .f = [](F x) { return std::asinh(x[0]); },
     .glsl = "agc_asinh($0)", .glsl_helper = kAsinhGlsl, .glsl_f64 = false, .cost = 24, .expand = expand::Unary<expand::Asinh>, .doc = "Inverse hyperbolic sine."},
    {.name = "atan", .domain = D::kFloat, .f = [](F x) { return std::atan(x[0]); },
     .glsl = "agc_atan($0)", .glsl_helper = kAtanGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Atan>, .doc = "Inverse tangent, in [-pi/2, pi/2]."},
    {.name = "atan2", .arity = 2, .domain = D::kFloat, .f = [](F x) { return std::atan2(x[0], x[1]); },
     .glsl = "agc_atan2($0, $1)", .glsl_helper = kAtan2Glsl, .glsl_f64 = false, .cost = 24, .expand = expand::Binary<expand::Atan2>, .doc = "Angle of the point (second, first), in [-pi, pi]."},
    {.name = "atanh", .domain = D::kFloat, .f = [](F x) { return std::atanh(x[0]); },
     .glsl = "agc_atanh($0)", .glsl_helper = kAtanhGlsl, .glsl_f64 = false, .cost = 24, .expand = expand::Unary<expand::Atanh>, .doc = "Inverse hyperbolic tangent."},
    {.name = "bit_and", .arity = 2, .domain = D::kInt, .i = [](DType, I x) { return x[0] & x[1]; }, .glsl = "$0 & $1", .doc = "Bitwise and."},
    {.name = "bit_not", .domain = D::kInt, .i = [](DType, I x) { return ~x[0]; }, .glsl = "~$0", .doc = "Bitwise complement."},
    {.name = "bit_or", .arity = 2, .domain = D::kInt, .i = [](DType, I x) { return x[0] | x[1]; }, .glsl = "$0 | $1", .doc = "Bitwise or."},
    {.name = "bit_xor", .arity = 2, .domain = D::kInt, .i = [](DType, I x) { return x[0] ^ x[1]; }, .glsl = "$0 ^ $1", .doc = "Bitwise exclusive or."},
    {.name = "cbrt", .domain = D::kFloat, .f = [](F x) { return std::cbrt(x[0]); },
     .glsl = "agc_cbrt($0)", .glsl_helper = kCbrtGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::CubeRoot>, .doc = "Cube root, also of negative numbers."},
    {.name = "ceil", .domain = D::kFloat, .f = [](F x) { return std::ceil(x[0]); }, .glsl = "ceil($0)", .doc = "Smallest whole number not below."},
    {.name = "copysign", .arity = 2, .domain = D::kFloat, .f = [](F x) { return std::copysign(x[0], x[1]); },
     .glsl = "agc_copysign($0, $1)", .glsl_helper = kCopysignGlsl, .glsl_f64 = false, .expand = expand::Binary<expand::Copysign>, .doc = "Magnitude of the first with the sign of the second."},
    {.name = "cos", .domain = D::kFloat, .f = [](F x) { return std::cos(x[0]); },
     .glsl = "agc_cos($0)", .glsl_helper = kCosGlsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Cos>, .doc = "Cosine of radians."},
    {.name = "cosh", .domain = D::kFloat, .f = [](F x) { return std::cosh(x[0]); },
     .glsl = "agc_cosh($0)", .glsl_helper = kCoshGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Cosh>, .doc = "Hyperbolic cosine."},
    {.name = "div", .arity = 2, .f = [](F x) { return x[0] / x[1]; }, .i = [](DType t, I x) { return Quotient(t, x[0], x[1]); },
     .infix = "/", .glsl = "$0 / $1", .glsl_int = "agc_div($0, $1)", .glsl_helper = kDivGlsl, .cost = 4, .expand = expand::Binary<expand::Divide>, .doc = "Quotient; integers truncate, and by 0 give 0."},
    {.name = "eq", .arity = 2, .typing = kCompare, .domain = D::kAny, .i = [](DType, I x) { return int64_t{x[0] == x[1]}; }, .fp = [](F x) { return x[0] == x[1]; },
     .infix = "==", .glsl = "$0 == $1", .expand = expand::Binary<expand::Equal>, .doc = "Equal."},
    {.name = "erf", .domain = D::kFloat, .f = [](F x) { return std::erf(x[0]); },
     .glsl = "agc_erf($0)", .glsl_helper = kErfGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Erf>, .doc = "Error function."},
    {.name = "erfc", .domain = D::kFloat, .f = [](F x) { return std::erfc(x[0]); },
     .glsl = "agc_erfc($0)", .glsl_helper = kErfcGlsl, .glsl_f64 = false, .cost = 24, .expand = expand::Unary<expand::Erfc>, .doc = "1 - erf(x), exact relative to small results too."},
    {.name = "exp", .domain = D::kFloat, .f = [](F x) { return std::exp(x[0]); }, .glsl = "exp($0)", .glsl_f64 = false, .cost = 8, .expand = expand::Unary<expand::Exp>, .doc = "Natural exponential."},
    {.name = "exp2", .domain = D::kFloat, .f = [](F x) { return std::exp2(x[0]); }, .glsl = "exp2($0)", .glsl_f64 = false, .cost = 8, .expand = expand::Unary<expand::Exp2>, .doc = "2 to the power of x."},
    {.name = "expm1", .domain = D::kFloat, .f = [](F x) { return std::expm1(x[0]); },
     .glsl = "agc_expm1($0)", .glsl_helper = kExpm1Glsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Expm1>, .doc = "exp(x) - 1, exact near 0."},
    {.name = "floor", .domain = D::kFloat, .f = [](F x) { return std::floor(x[0]); }, .glsl = "floor($0)", .doc = "Largest whole number not above."},
    {.name = "ge", .arity = 2, .typing = kCompare, .i = [](DType t, I x) { return int64_t{!Less(t, x[0], x[1])}; }, .fp = [](F x) { return x[0] >= x[1]; },
     .infix = ">=", .glsl = "$0 >= $1", .expand = expand::Binary<expand::GreaterEqual>, .doc = "Greater or equal."},
    {.name = "gt", .arity = 2, .typing = kCompare, .i = [](DType t, I x) { return int64_t{Less(t, x[1], x[0])}; }, .fp = [](F x) { return x[0] > x[1]; },
     .infix = ">", .glsl = "$0 > $1", .expand = expand::Binary<expand::Greater>, .doc = "Greater."},
    {.name = "isfinite", .typing = kCompare, .domain = D::kFloat, .fp = [](F x) { return std::isfinite(x[0]); },
     .glsl = "!(isinf($0) || isnan($0))", .doc = "Neither infinite nor NaN."},
    {.name = "isinf", .typing = kCompare, .domain = D::kFloat, .fp = [](F x) { return std::isinf(x[0]); }, .glsl = "isinf($0)", .doc = "Infinite, of either sign."},
    {.name = "isnan", .typing = kCompare, .domain = D::kFloat, .fp = [](F x) { return std::isnan(x[0]); }, .glsl = "isnan($0)", .doc = "Not a number."},
    {.name = "le", .arity = 2, .typing = kCompare, .i = [](DType t, I x) { return int64_t{!Less(t, x[1], x[0])}; }, .fp = [](F x) { return x[0] <= x[1]; },
     .infix = "<=", .glsl = "$0 <= $1", .expand = expand::Binary<expand::LessEqual>, .doc = "Less or equal."},
    {.name = "log", .domain = D::kFloat, .f = [](F x) { return std::log(x[0]); },
     .glsl = "agc_log($0)", .glsl_helper = kLogGlsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Log>, .doc = "Natural logarithm."},
    {.name = "log10", .domain = D::kFloat, .f = [](F x) { return std::log10(x[0]); },
     .glsl = "agc_log10($0)", .glsl_helper = kLog10Glsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Log10>, .doc = "Logarithm to base 10."},
    {.name = "log1p", .domain = D::kFloat, .f = [](F x) { return std::log1p(x[0]); },
     .glsl = "agc_log1p($0)", .glsl_helper = kLog1pGlsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Log1p>, .doc = "log(1 + x), exact near 0."},
    {.name = "log2", .domain = D::kFloat, .f = [](F x) { return std::log2(x[0]); },
     .glsl = "agc_log2($0)", .glsl_helper = kLog2Glsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Log2>, .doc = "Logarithm to base 2."},
    {.name = "lt", .arity = 2, .typing = kCompare, .i = [](DType t, I x) { return int64_t{Less(t, x[0], x[1])}; }, .fp = [](F x) { return x[0] < x[1]; },
     .infix = "<", .glsl = "$0 < $1", .expand = expand::Binary<expand::Less>, .doc = "Less."},
    {.name = "max", .arity = 2, .f = [](F x) { return Maximum(x[0], x[1]); }, .i = [](DType t, I x) { return Less(t, x[0], x[1]) ? x[1] : x[0]; },
     .glsl = "agc_max($0, $1)", .glsl_int = "max($0, $1)", .glsl_helper = kMaxGlsl, .expand = expand::Binary<expand::Larger>, .doc = "Larger; NaN if either is."},
    {.name = "min", .arity = 2, .f = [](F x) { return Minimum(x[0], x[1]); }, .i = [](DType t, I x) { return Less(t, x[1], x[0]) ? x[1] : x[0]; },
     .glsl = "agc_min($0, $1)", .glsl_int = "min($0, $1)", .glsl_helper = kMinGlsl, .expand = expand::Binary<expand::Smaller>, .doc = "Smaller; NaN if either is."},
    {.name = "mul", .arity = 2, .f = [](F x) { return x[0] * x[1]; }, .i = [](DType, I x) { return int64_t(uint64_t(x[0]) * uint64_t(x[1])); },
     .infix = "*", .glsl = "$0 * $1", .doc = "Product; integers wrap."},
    {.name = "mulhi", .arity = 2, .domain = D::kInt, .i = [](DType t, I x) { return HighProduct(t, x[0], x[1]); },
     .glsl = "agc_mulhi($0, $1)", .glsl_helper = kMulhiGlsl, .cost = 3, .doc = "Upper half of the double-width product."},
    {.name = "ne", .arity = 2, .typing = kCompare, .domain = D::kAny, .i = [](DType, I x) { return int64_t{x[0] != x[1]}; }, .fp = [](F x) { return x[0] != x[1]; },
     .infix = "!=", .glsl = "$0 != $1", .expand = expand::Binary<expand::NotEqual>, .doc = "Not equal."},
    {.name = "neg", .f = [](F x) { return -x[0]; }, .i = [](DType, I x) { return int64_t(0 - uint64_t(x[0])); },
     .glsl = "-$0", .glsl_int = "0 - $0", .doc = "Negation; integers wrap."},
    {.name = "not", .typing = kBool, .domain = D::kBits, .i = [](DType, I x) { return int64_t{x[0] == 0}; }, .glsl = "!$0", .doc = "Negation of a bool."},
    {.name = "or", .arity = 2, .typing = kBool, .domain = D::kBits, .i = [](DType, I x) { return x[0] | x[1]; },
     .infix = "|", .glsl = "$0 || $1", .doc = "Either."},
    {.name = "popcount", .domain = D::kInt, .i = [](DType t, I x) { return CountOnes(t, x[0]); },
     .glsl = "agc_popcount($0)", .glsl_helper = kCountGlsl, .doc = "Number of bits that are 1, of the width of the dtype; narrow operands have to be unsigned."},
    {.name = "pow", .arity = 2, .domain = D::kFloat, .f = [](F x) { return std::pow(x[0], x[1]); },
     .glsl = "agc_pow($0, $1)", .glsl_helper = kPowGlsl, .glsl_f64 = false, .cost = 20, .expand = expand::Binary<expand::Pow>, .doc = "IEEE 754 power."},
    {.name = "rem", .arity = 2, .f = [](F x) { return std::fmod(x[0], x[1]); }, .i = [](DType t, I x) { return Remainder(t, x[0], x[1]); },
     .glsl = "agc_rem($0, $1)", .glsl_int = "agc_rem($0, $1)", .glsl_helper = kRemFloatGlsl, .glsl_int_helper = kRemIntGlsl, .glsl_f64 = false, .cost = 4, .expand = expand::Binary<expand::Remainder>, .doc = "Remainder with the dividend's sign; by integer 0 the dividend."},
    {.name = "round", .domain = D::kFloat, .f = [](F x) { return std::nearbyint(x[0]); }, .glsl = "roundEven($0)", .doc = "Nearest whole number, halves to even."},
    {.name = "rsqrt", .domain = D::kFloat, .f = [](F x) { return 1 / std::sqrt(x[0]); }, .glsl = "inversesqrt($0)", .cost = 4, .expand = expand::Unary<expand::ReciprocalSquareRoot>, .doc = "Reciprocal square root."},
    {.name = "select", .arity = 3, .typing = kSelect, .domain = D::kAny, .f = [](F x) { return x[0] != 0 ? x[1] : x[2]; }, .i = [](DType, I x) { return x[0] != 0 ? x[1] : x[2]; },
     .glsl = "mix($2, $1, $0)", .doc = "Second where the first holds, else third."},
    {.name = "shl", .arity = 2, .domain = D::kInt, .i = [](DType t, I x) { return Shift(t, x[0], x[1], true); },
     .glsl = "agc_shl($0, $1)", .glsl_helper = kShlGlsl, .doc = "Left shift; by the width or more gives 0."},
    {.name = "shr", .arity = 2, .domain = D::kInt, .i = [](DType t, I x) { return Shift(t, x[0], x[1], false); },
     .glsl = "agc_shr($0, $1)", .glsl_helper = kShrGlsl, .doc = "Right shift, arithmetic for signed."},
    {.name = "sign", .f = [](F x) { return Sign(x[0]); }, .i = [](DType t, I x) { return IsSigned(t) ? int64_t{x[0] > 0} - int64_t{x[0] < 0} : int64_t{x[0] != 0}; },
     .glsl = "agc_sign($0)", .glsl_int = "$t($0 > 0) - $t($0 < 0)", .glsl_helper = kSignGlsl, .expand = expand::Unary<expand::Sign>, .doc = "-1, 0 or 1; NaN stays."},
    {.name = "sin", .domain = D::kFloat, .f = [](F x) { return std::sin(x[0]); },
     .glsl = "agc_sin($0)", .glsl_helper = kSinGlsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Sin>, .doc = "Sine of radians."},
    {.name = "sinh", .domain = D::kFloat, .f = [](F x) { return std::sinh(x[0]); },
     .glsl = "agc_sinh($0)", .glsl_helper = kSinhGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Sinh>, .doc = "Hyperbolic sine."},
    {.name = "sqrt", .domain = D::kFloat, .f = [](F x) { return std::sqrt(x[0]); }, .glsl = "sqrt($0)", .cost = 4, .expand = expand::Unary<expand::SquareRoot>, .doc = "Square root."},
    {.name = "sub", .arity = 2, .f = [](F x) { return x[0] - x[1]; }, .i = [](DType, I x) { return int64_t(uint64_t(x[0]) - uint64_t(x[1])); },
     .infix = "-", .glsl = "$0 - $1", .doc = "Difference; integers wrap."},
    {.name = "tan", .domain = D::kFloat, .f = [](F x) { return std::tan(x[0]); },
     .glsl = "agc_tan($0)", .glsl_helper = kTanGlsl, .glsl_f64 = false, .cost = 16, .expand = expand::Unary<expand::Tan>, .doc = "Tangent of radians."},
    {.name = "tanh", .domain = D::kFloat, .f = [](F x) { return std::tanh(x[0]); },
     .glsl = "agc_tanh($0)", .glsl_helper = kTanhGlsl, .glsl_f64 = false, .cost = 12, .expand = expand::Unary<expand::Tanh>, .doc = "Hyperbolic tangent."},
    {.name = "trunc", .domain = D::kFloat, .f = [](F x) { return std::trunc(x[0]); }, .glsl = "trunc($0)", .doc = "Whole number towards 0."},
};
// clang-format on

}  // namespace

absl::Span<const ScalarOp> ScalarOps() { return kOps; }

const ScalarOp* FindScalarOp(absl::string_view name) {
  const auto* it = std::lower_bound(std::begin(kOps), std::end(kOps), name,
                                    [](const ScalarOp& op, absl::string_view n) { return op.name < n; });
  return it != std::end(kOps) && it->name == name ? it : nullptr;
}

int ScalarOpIndex(const ScalarOp& op) { return static_cast<int>(&op - kOps); }

Scalar Apply(const ScalarOp& op, absl::Span<const Scalar> x) {
  const Scalar typed = x[op.typing == kSelect ? 1 : 0];
  const bool is_float = IsFloat(typed.dtype);
  double f[3] = {};
  int64_t i[3] = {};
  for (size_t k = 0; k < x.size(); ++k) {
    f[k] = IsFloat(x[k].dtype) ? x[k].f() : static_cast<double>(x[k].i());
    i[k] = x[k].i();
  }
  if (op.typing == kCompare) return Scalar::Int(DType::kBool, is_float ? op.fp(f) : op.i(typed.dtype, i));
  if (op.typing == kSelect) return i[0] != 0 ? x[1] : x[2];
  return is_float ? Scalar::Float(typed.dtype, op.f(f)) : Scalar::Int(typed.dtype, op.i(typed.dtype, i));
}

}  // namespace agc
