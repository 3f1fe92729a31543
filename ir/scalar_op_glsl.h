// GLSL functions behind scalar ops whose built-in is missing, loose or undefined somewhere: exponentials, logarithms,
// the error function and cube roots in f32; trigonometric and hyperbolic ones are in ir/scalar_op_trig.h. Errors are
// the largest found over random arguments, relative to the result in units of 2^-24, on a device that rounds to
// nearest. `precise` keeps drivers from rearranging. Functions that several helpers call stand between #ifndef and
// #endif.
//   kErfcGlsl == Joined<kExpPart, kErfcPart>: agc_exp, then agc_erfc, which calls it
#pragma once
#include <algorithm>
#include <array>

#include "absl/strings/string_view.h"

namespace agc {

// Texts one after another, at compile time.
template <const absl::string_view&... parts>
struct JoinedText {
  static constexpr auto kText = [] {
    std::array<char, (parts.size() + ...)> text = {};
    auto to = text.begin();
    ((to = std::copy(parts.begin(), parts.end(), to)), ...);
    return text;
  }();
  static constexpr absl::string_view kView{kText.data(), kText.size()};
};
template <const absl::string_view&... parts>
inline constexpr absl::string_view Joined = JoinedText<parts...>::kView;

// |x| with the sign of y; NaN and zeros have signs too.
inline constexpr absl::string_view kCopysignGlsl = R"(#ifndef AGC_COPYSIGN
#define AGC_COPYSIGN
float agc_copysign(float x, float y) {
  return uintBitsToFloat((floatBitsToUint(x) & 0x7fffffffu) | (floatBitsToUint(y) & 0x80000000u));
}
#endif
)";

// Cody and Waite's reduction to |r| <= ln(2) / 2 (constants of Cephes' expf), then the Taylor polynomial of degree 7.
// Overflows to inf and underflows to 0 where the result does. Error 1.7.
inline constexpr absl::string_view kExpPart = R"(#ifndef AGC_EXP
#define AGC_EXP
float agc_exp(float x) {
  precise float c = clamp(x, -104.0, 89.0);
  precise float n = roundEven(c * 1.44269504);
  precise float r = (c - n * 0.693359375) + n * 2.12194440e-4;
  precise float p = ((1.98412698e-4 * r + 1.38888889e-3) * r + 8.33333333e-3) * r + 4.16666667e-2;
  p = (((p * r + 1.66666667e-1) * r + 0.5) * r + 1.0) * r + 1.0;
  int k = int(n), h = k >> 1;
  p = p * uintBitsToFloat(uint(127 + h) << 23) * uintBitsToFloat(uint(127 + k - h) << 23);
  return isnan(x) ? x : p;
}
#endif
)";

// Below 1/2 the Taylor polynomial of degree 8. Error 2.2.
inline constexpr absl::string_view kExpm1Part = R"(float agc_expm1(float x) {
  precise float p = ((2.48015873e-5 * x + 1.98412698e-4) * x + 1.38888889e-3) * x + 8.33333333e-3;
  p = ((p * x + 4.16666667e-2) * x + 1.66666667e-1) * x + 0.5;
  precise float small = x + x * x * p, large = agc_exp(x) - 1.0;
  return x == 0.0 ? x : abs(x) < 0.5 ? small : large;
}
)";
inline constexpr absl::string_view kExpm1Glsl = Joined<kExpPart, kExpm1Part>;

// fdlibm's log (FreeBSD's e_logf.c): u = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), s = f / (2 + f), and
// log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R(s^2)). Returns log(1 + f) and k; 1 + f = 1 gives 0 exactly.
inline constexpr absl::string_view kLogPart = R"(#ifndef AGC_LOG
#define AGC_LOG
float agc_log_mantissa(float u, out float k) {
  uint i = floatBitsToUint(u) + (0x3f800000u - 0x3f3504f3u);
  k = float(int(i >> 23) - 127);
  precise float f = uintBitsToFloat((i & 0x7fffffu) + 0x3f3504f3u) - 1.0;
  precise float s = f / (2.0 + f), z = s * s, w = z * z, h = 0.5 * f * f;
  precise float r = z * (w * 0.28498786688 + 0.66666662693) + w * (w * 0.24279078841 + 0.40000972152);
  precise float y = s * (h + r) - h + f;
  return y;
}
float agc_log_scaled(float x, float base, float unit) {
  float k;
  bool tiny = x < 1.17549435e-38;
  precise float m = agc_log_mantissa(tiny ? x * 16777216.0 : x, k);
  precise float y = m * base + (tiny ? k - 24.0 : k) * unit;
  return x > 0.0 ? (isinf(x) ? x : y) : uintBitsToFloat(x == 0.0 ? 0xff800000u : 0x7fc00000u);
}
#endif
)";
// GLSL's log and log2 are loose near 1 (2^-21 absolute) and undefined for 0 and below. Errors 1.9, 2.4
// and 2.7.
inline constexpr absl::string_view kLogOnly =
    "float agc_log(float x) { return agc_log_scaled(x, 1.0, 0.693147181); }\n";
inline constexpr absl::string_view kLog2Only =
    "float agc_log2(float x) { return agc_log_scaled(x, 1.44269504, 1.0); }\n";
inline constexpr absl::string_view kLog10Only =
    "float agc_log10(float x) { return agc_log_scaled(x, 0.434294482, 0.301029996); }\n";
inline constexpr absl::string_view kLogGlsl = Joined<kLogPart, kLogOnly>;
inline constexpr absl::string_view kLog2Glsl = Joined<kLogPart, kLog2Only>;
inline constexpr absl::string_view kLog10Glsl = Joined<kLogPart, kLog10Only>;

// log(u) with u = 1 + x rounded, plus (x - (u - 1)) / u for what rounding lost (FreeBSD's s_log1pf.c). Error 2.3.
inline constexpr absl::string_view kLog1pPart = R"(#ifndef AGC_LOG1P
#define AGC_LOG1P
float agc_log1p(float x) {
  float k;
  precise float u = 1.0 + x;
  precise float c = (u >= 2.0 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
  precise float y = agc_log_mantissa(u, k) + (k * 9.05800061e-6 + c) + k * 0.693138123;
  return x > -1.0 ? (x == 0.0 || isinf(x) ? x : y) : uintBitsToFloat(x == -1.0 ? 0xff800000u : 0x7fc00000u);
}
#endif
)";
inline constexpr absl::string_view kLog1pGlsl = Joined<kLogPart, kLog1pPart>;

// Minimax polynomials after N. Juffa's erff (posted at forums.developer.nvidia.com): of erf below 0.9277, of
// log(1 - erf) above. Error 1.8.
inline constexpr absl::string_view kErfGlsl = R"(float agc_erf(float x) {
  precise float t = min(abs(x), 4.0), s = t * t, p, y;
  if (t > 0.927734375) {
    p = (-1.72853470e-5 * t + 3.83197126e-4) * s + (-3.88396438e-3 * t + 2.42546219e-2);
    p = ((p * t - 1.06777877e-1) * t - 6.34846687e-1) * t - 1.28717512e-1;
    p = p * t - t;
    y = 1.0 - exp(p);
    y = x < 0.0 ? -y : y;
  } else {
    p = ((-5.96761703e-4 * s + 4.99119423e-3) * s - 2.67681349e-2) * s + 1.12819925e-1;
    p = (p * s - 3.76125336e-1) * s + 1.28379166e-1;
    y = p * x + x;
  }
  return isnan(x) || x == 0.0 ? x : y;
}
)";

// (1 + 2a) exp(a^2) erfc(a) - 1 as a polynomial in (a - 2) / (a + 2) (M. Shepherd and J. Laframboise, "Chebyshev
// approximation of (1 + 2x) exp(x^2) erfc x", Math. Comp. 36, 1981; coefficients by N. Juffa). exp(-a^2) is taken in
// two parts, of which the square of the first is exact, as in fdlibm. Error 5, also in the tail.
inline constexpr absl::string_view kErfcPart = R"(float agc_erfc(float x) {
  precise float a = min(abs(x), 11.0), q = (a - 2.0) / (a + 2.0);
  precise float p = ((-4.01139259e-4 * q - 1.23075210e-3) * q + 1.31355342e-3) * q + 8.63227434e-3;
  p = ((p * q - 8.05991981e-3) * q - 5.42046614e-2) * q + 1.64055392e-1;
  p = ((p * q - 1.66031361e-1) * q - 9.27639827e-2) * q + 2.76978403e-1;
  precise float h = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u);
  precise float y = (p + 1.0) / (1.0 + 2.0 * a) * agc_exp(-h * h) * agc_exp((h - a) * (h + a));
  return isnan(x) ? x : x < 0.0 ? 2.0 - y : y;
}
)";
inline constexpr absl::string_view kErfcGlsl = Joined<kExpPart, kErfcPart>;

// The exponent by a third of the bits (FreeBSD's s_cbrtf.c), 5 bits, and three Newton steps. Subnormal numbers have no
// exponent and are taken times 2^24. Error 1.4.
inline constexpr absl::string_view kCbrtPart = R"(float agc_cbrt(float x) {
  bool tiny = abs(x) < 1.17549435e-38;
  precise float a = tiny ? abs(x) * 16777216.0 : abs(x), t = uintBitsToFloat(floatBitsToUint(a) / 3u + 709958130u);
  for (int i = 0; i < 3; ++i) t = t - (t - a / (t * t)) * 0.333333333;
  return x == 0.0 || isnan(x) || isinf(x) ? x : agc_copysign(tiny ? t * 0.00390625 : t, x);
}
)";
inline constexpr absl::string_view kCbrtGlsl = Joined<kCopysignGlsl, kCbrtPart>;

}  // namespace agc
