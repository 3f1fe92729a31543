// GLSL functions of the trigonometric and hyperbolic scalar ops in f32: the built-ins are loose (sin and cos may be off
// by 2^-11), take no care of large arguments, or are undefined outside their domain. Conventions as in
// ir/scalar_op_glsl.h. Polynomials are those of S. Moshier's Cephes library (sinf, tanf, asinf, atanf, tanhf) or
// Taylor's.
#pragma once
#include "ir/scalar_op_glsl.h"

namespace agc {

// x - n pi/2 in [-pi/4, pi/4], and n modulo 4. Up to 8192 by Cody and Waite: pi/2 in three parts, the first two so
// short that their products with n are exact. Beyond, the mantissa times the bits of 2/pi around its exponent, after
// Payne and Hanek ("Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983): the quotient in 2.62
// fixed point.
inline constexpr absl::string_view kQuarterPart = R"(#ifndef AGC_QUARTER
#define AGC_QUARTER
float agc_quarter_far(float x, out uint n) {
  const uint bits[7] = uint[7](0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0x7f9458eau);
  uint m = (floatBitsToUint(x) << 8) | 0x80000000u, e = min(((floatBitsToUint(x) >> 23) & 255u) - 126u, 128u);
  uint i = e >> 5, s = e & 31u;
  uint a = i == 0u ? 0u : bits[i - 1u], b = bits[i], c = bits[i + 1u], d = bits[i + 2u];
  if (s != 0u) {
    a = (a << s) | (b >> (32u - s));
    b = (b << s) | (c >> (32u - s));
    c = (c << s) | (d >> (32u - s));
  }
  uint unused, low, high, carry, up;
  umulExtended(m, c, carry, unused);
  umulExtended(m, b, high, low);
  low = uaddCarry(low, carry, up);
  high += up + m * a;
  n = high >> 30;
  high &= 0x3fffffffu;
  bool above = (high & 0x20000000u) != 0u;  // of 1/2: the next quarter, from below
  if (above) {
    ++n;
    high = 0x3fffffffu - high + (low == 0u ? 1u : 0u);
    low = 0u - low;
  }
  precise float r = (float(high) * 4294967296.0 + float(low)) * 3.40612158e-19;
  bool minus = x < 0.0;
  if (minus) n = 0u - n;
  return above != minus ? -r : r;
}
float agc_quarter(float x, out uint n) {
  if (abs(x) > 8192.0) return agc_quarter_far(x, n);
  precise float k = roundEven(x * 0.636619772);
  precise float r = ((x - k * 1.5703125) - k * 4.837512969970703125e-4) - k * 7.54978995489188216e-8;
  n = uint(int(k));
  return k == 0.0 ? x : r;
}
float agc_wave(float r, uint n) {
  precise float z = r * r;
  precise float s = ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
  precise float c = (2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2;
  c = c * z * z - 0.5 * z + 1.0;
  float y = (n & 1u) != 0u ? c : s;
  return (n & 2u) != 0u ? -y : y;
}
#endif
)";
// Within 1e-7 absolute for every argument; error 2 for |x| <= 4. Infinite arguments give NaN.
inline constexpr absl::string_view kSinPart = R"(float agc_sin(float x) {
  uint n;
  float r = agc_quarter(x, n), y = agc_wave(r, n);
  return x == 0.0 ? x : isinf(x) || isnan(x) ? uintBitsToFloat(0x7fc00000u) : y;
}
)";
inline constexpr absl::string_view kCosPart = R"(float agc_cos(float x) {
  uint n;
  float r = agc_quarter(x, n), y = agc_wave(r, n + 1u);
  return isinf(x) || isnan(x) ? uintBitsToFloat(0x7fc00000u) : y;
}
)";
// Error 2.5 for |x| <= 4; near its poles it grows with |x| as that of the reduction does.
inline constexpr absl::string_view kTanPart = R"(float agc_tan(float x) {
  uint n;
  precise float r = agc_quarter(x, n), z = r * r;
  precise float p = ((9.38540185543e-3 * z + 3.11992232697e-3) * z + 2.44301354525e-2) * z + 5.34112807005e-2;
  p = ((p * z + 1.33387994085e-1) * z + 3.33331568548e-1) * z * r + r;
  float y = (n & 1u) != 0u ? -1.0 / p : p;
  return x == 0.0 ? x : isinf(x) || isnan(x) ? uintBitsToFloat(0x7fc00000u) : y;
}
)";
inline constexpr absl::string_view kSinGlsl = Joined<kQuarterPart, kSinPart>;
inline constexpr absl::string_view kCosGlsl = Joined<kQuarterPart, kCosPart>;
inline constexpr absl::string_view kTanGlsl = Joined<kQuarterPart, kTanPart>;

// asin of s in [0, 1/2] with z = s^2; beyond 1/2 asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)). NaN outside [-1, 1].
inline constexpr absl::string_view kArcPart = R"(#ifndef AGC_ARC
#define AGC_ARC
float agc_arc(float a) {
  precise float z = a > 0.5 ? 0.5 * (1.0 - a) : a * a, s = a > 0.5 ? sqrt(z) : a;
  precise float p = ((4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2) * z + 7.4953002686e-2;
  p = (p * z + 1.6666752422e-1) * z * s + s;
  return p;
}
#endif
)";
// Errors 4.1 and 2.4.
inline constexpr absl::string_view kAsinPart = R"(float agc_asin(float x) {
  float a = abs(x), p = agc_arc(min(a, 1.0));
  precise float y = a > 0.5 ? 1.57079637 - (2.0 * p + 4.37113883e-8) : p;
  return a <= 1.0 ? agc_copysign(y, x) : uintBitsToFloat(0x7fc00000u);
}
)";
inline constexpr absl::string_view kAcosPart = R"(float agc_acos(float x) {
  float a = abs(x), p = agc_arc(min(a, 1.0));
  precise float near = x < 0.0 ? 3.14159274 - (2.0 * p + 8.74227766e-8) : 2.0 * p;
  precise float y = a > 0.5 ? near : 1.57079637 - ((x < 0.0 ? -p : p) + 4.37113883e-8);
  return a <= 1.0 ? y : uintBitsToFloat(0x7fc00000u);
}
)";
inline constexpr absl::string_view kAsinGlsl = Joined<kCopysignGlsl, kArcPart, kAsinPart>;
inline constexpr absl::string_view kAcosGlsl = Joined<kArcPart, kAcosPart>;

// atan of a in [0, 1]: above tan(pi/8) it is pi/4 + atan((a - 1) / (a + 1)). Error 3.3.
inline constexpr absl::string_view kAtanUnitPart = R"(#ifndef AGC_ATAN_UNIT
#define AGC_ATAN_UNIT
float agc_atan_unit(float a) {
  bool upper = a > 0.414213562;
  precise float t = upper ? (a - 1.0) / (a + 1.0) : a, z = t * t;
  precise float p = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1;
  p = p * z * t + t;
  return upper ? 0.785398163 + p : p;
}
#endif
)";
inline constexpr absl::string_view kAtanPart = R"(float agc_atan(float x) {
  precise float a = abs(x), y = agc_atan_unit(a > 1.0 ? 1.0 / a : a);
  y = a > 1.0 ? 1.57079633 - y : y;
  return isnan(x) ? x : agc_copysign(y, x);
}
)";
// IEEE 754: every pair of zeros and infinities has its angle, by their signs.
inline constexpr absl::string_view kAtan2Part = R"(float agc_atan2(float y, float x) {
  if (isnan(x) || isnan(y)) return uintBitsToFloat(0x7fc00000u);
  float a = abs(x), b = abs(y), high = max(a, b), low = min(a, b);
  float scale = high > 1e30 ? 5.42101086e-20 : high < 1e-30 ? 18446744073709551616.0 : 1.0;
  precise float q = high == 0.0 ? 0.0 : isinf(low) ? 1.0 : isinf(high) ? 0.0 : (low * scale) / (high * scale);
  precise float r = agc_atan_unit(q);
  r = b > a ? 1.57079633 - r : r;
  r = (floatBitsToUint(x) & 0x80000000u) != 0u ? 3.14159265 - r : r;
  return agc_copysign(r, y);
}
)";
inline constexpr absl::string_view kAtanGlsl = Joined<kCopysignGlsl, kAtanUnitPart, kAtanPart>;
inline constexpr absl::string_view kAtan2Glsl = Joined<kCopysignGlsl, kAtanUnitPart, kAtan2Part>;

// Below 1 the Taylor polynomial of degree 11; else from h = exp(|x| / 2), so that h^2 / 2 overflows where the result
// does. Error 4.5 of both.
inline constexpr absl::string_view kSinhPart = R"(float agc_sinh(float x) {
  precise float z = x * x, h = agc_exp(0.5 * abs(x));
  precise float p = ((2.50521084e-8 * z + 2.75573192e-6) * z + 1.98412698e-4) * z + 8.33333333e-3;
  precise float small = (p * z + 1.66666667e-1) * z * x + x, large = (0.5 * h) * h - (0.5 / h) / h;
  return x == 0.0 || isinf(x) ? x : abs(x) < 1.0 ? small : x < 0.0 ? -large : large;
}
)";
inline constexpr absl::string_view kCoshPart = R"(float agc_cosh(float x) {
  precise float h = agc_exp(0.5 * abs(x)), y = (0.5 * h) * h + (0.5 / h) / h;
  return y;
}
)";
inline constexpr absl::string_view kSinhGlsl = Joined<kExpPart, kSinhPart>;
inline constexpr absl::string_view kCoshGlsl = Joined<kExpPart, kCoshPart>;

// Finite for every finite argument, and close relative to small ones. Error 3.1.
inline constexpr absl::string_view kTanhGlsl = R"(float agc_tanh(float x) {
  precise float z = x * x, large = 1.0 - 2.0 / (exp(2.0 * min(abs(x), 15.0)) + 1.0);
  precise float p = ((-5.70498872745e-3 * z + 2.06390887954e-2) * z - 5.37397155531e-2) * z + 1.33314422036e-1;
  precise float small = (p * z - 3.33332819422e-1) * z * x + x;
  return x == 0.0 || isnan(x) ? x : abs(x) < 0.625 ? small : x < 0.0 ? -large : large;
}
)";

// log(|x| + sqrt(x^2 + 1)) and log(x + sqrt(x^2 - 1)) through log1p; from 2^24 on log(2 |x|). Errors 2.8
// and 3.4.
inline constexpr absl::string_view kAsinhPart = R"(float agc_asinh(float x) {
  precise float a = abs(x), b = min(a, 16777216.0);
  precise float y = agc_log1p(a > b ? a : b + b * b / (1.0 + sqrt(b * b + 1.0)));
  y = a > b ? y + 0.693147181 : y;
  return x == 0.0 || isnan(x) ? x : agc_copysign(y, x);
}
)";
inline constexpr absl::string_view kAcoshPart = R"(float agc_acosh(float x) {
  precise float t = min(x, 16777216.0) - 1.0, y = agc_log1p(x > 16777216.0 ? x : t + sqrt(t * (t + 2.0)));
  y = x > 16777216.0 ? y + 0.693147181 : y;
  return x >= 1.0 ? y : uintBitsToFloat(0x7fc00000u);
}
)";
// log1p(2a / (1 - a)) / 2. Error 2.7; infinite at 1 and -1, NaN beyond.
inline constexpr absl::string_view kAtanhPart = R"(float agc_atanh(float x) {
  precise float a = abs(x), y = 0.5 * agc_log1p(2.0 * a / (1.0 - a));
  y = a < 1.0 ? y : uintBitsToFloat(a == 1.0 ? 0x7f800000u : 0x7fc00000u);
  return x == 0.0 ? x : agc_copysign(y, x);
}
)";
inline constexpr absl::string_view kAsinhGlsl = Joined<kCopysignGlsl, kLogPart, kLog1pPart, kAsinhPart>;
inline constexpr absl::string_view kAcoshGlsl = Joined<kLogPart, kLog1pPart, kAcoshPart>;
inline constexpr absl::string_view kAtanhGlsl = Joined<kCopysignGlsl, kLogPart, kLog1pPart, kAtanhPart>;

}  // namespace agc
