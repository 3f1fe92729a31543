#include "ir/scalar.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_format.h"
#include "ir/base/status.h"

namespace agc {
namespace {
// Rounds to a float format with `mantissa` stored bits and exponents [emin, emax], half to even, through exact scaling.
double RoundToFormat(double v, int mantissa, int emin, int emax) {
  if (v == 0 || std::isnan(v) || std::isinf(v)) return v;
  int exponent = 0;
  std::frexp(v, &exponent);  // v = m * 2^exponent, 0.5 <= |m| < 1
  const int scale = std::max(exponent - 1, emin) - mantissa;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(v, -scale)), scale);
  const double limit = std::ldexp(2.0 - std::ldexp(1.0, -mantissa), emax);
  return std::abs(rounded) > limit ? std::copysign(std::numeric_limits<double>::infinity(), v) : rounded;
}

template <typename T>
T ReadAs(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}
template <typename T>
void WriteAs(void* p, T v) {
  std::memcpy(p, &v, sizeof(T));
}

double HalfToDouble(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double v = 0;
  if (exponent == 31) {
    v = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    v = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (h & 0x8000) != 0 ? -v : v;
}

uint16_t DoubleToHalf(double v) {  // v is a value of f16
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::abs(v);
  if (std::isnan(v)) return sign | 0x7e00;
  if (std::isinf(v)) return sign | 0x7c00;
  if (a < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::ldexp(a, 24));
  int exponent = 0;
  const double m = std::frexp(a, &exponent);
  return sign | static_cast<uint16_t>((exponent + 14) << 10 | (static_cast<int>(std::ldexp(m, 11)) & 1023));
}

// A 64-bit integer as a double from which rounding to a narrower float gives what rounding the integer itself gives:
// where a double has no room for the lowest bits, the lowest that it keeps says whether one of them is set.
double WithStickyBit(Scalar v) {
  const bool negative = v.dtype != DType::kU64 && v.i() < 0;
  uint64_t magnitude = negative ? 0 - v.bits : v.bits;
  if (magnitude >> 53 != 0) magnitude = (magnitude & ~uint64_t{0xfff}) | ((magnitude & 0xfff) != 0 ? 0x800 : 0);
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

int64_t SaturateToInt(DType to, double v) {
  if (std::isnan(v)) return 0;
  const int bits = static_cast<int>(SizeOf(to)) * 8;
  const double lo = IsSigned(to) ? -std::ldexp(1.0, bits - 1) : 0;
  const double hi = IsSigned(to) ? std::ldexp(1.0, bits - 1) : std::ldexp(1.0, bits);
  if (v >= hi)
    return IsSigned(to) ? (bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (bits - 1)) - 1)
                        : (bits == 64 ? -1 : (int64_t{1} << bits) - 1);
  if (v <= lo)
    return IsSigned(to) ? (bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1))) : 0;
  return to == DType::kU64 ? static_cast<int64_t>(static_cast<uint64_t>(v)) : static_cast<int64_t>(v);
}
}  // namespace

double RoundTo(DType dtype, double v) {
  switch (dtype) {
    case DType::kF32:
      return std::isnan(v) ? v : static_cast<double>(static_cast<float>(v));
    case DType::kF16:
      return RoundToFormat(v, 10, -14, 15);
    case DType::kBF16:
      return RoundToFormat(v, 7, -126, 127);
    default:
      return v;
  }
}

int64_t WrapTo(DType dtype, int64_t v) {
  switch (dtype) {
    case DType::kI32:
      return static_cast<int32_t>(v);
    case DType::kI16:
      return static_cast<int16_t>(v);
    case DType::kI8:
      return static_cast<int8_t>(v);
    case DType::kU32:
      return static_cast<uint32_t>(v);
    case DType::kU16:
      return static_cast<uint16_t>(v);
    case DType::kU8:
      return static_cast<uint8_t>(v);
    case DType::kBool:
      return v != 0 ? 1 : 0;
    default:
      return v;
  }
}

Scalar Scalar::Float(DType dtype, double value) { return {dtype, std::bit_cast<uint64_t>(RoundTo(dtype, value))}; }
Scalar Scalar::Int(DType dtype, int64_t value) { return {dtype, static_cast<uint64_t>(WrapTo(dtype, value))}; }
Scalar Scalar::Of(DType dtype, double value) {
  if (IsFloat(dtype)) return Float(dtype, value);
  return Int(dtype,
             dtype == DType::kBool ? value != 0 : SaturateToInt(dtype == DType::kIndex ? DType::kI64 : dtype, value));
}

Scalar Convert(Scalar value, DType to) {
  if (value.dtype == to) return value;
  if (to == DType::kBool) return Scalar::Int(to, IsFloat(value.dtype) ? value.f() != 0 : value.i() != 0);
  if (IsFloat(to)) {
    const bool twice = !IsFloat(value.dtype) && to != DType::kF64;  // rounded to a double and then to the dtype
    return Scalar::Float(to, twice ? WithStickyBit(value) : value.AsDouble());
  }
  return IsFloat(value.dtype) ? Scalar::Int(to, SaturateToInt(to, value.f())) : Scalar::Int(to, value.i());
}

bool CanBitcast(DType from, DType to) {
  const auto plain = [](DType t) { return t != DType::kBool && t != DType::kIndex; };
  return plain(from) && plain(to) && SizeOf(from) == SizeOf(to);
}

Scalar BitsAs(Scalar value, DType to) {
  uint64_t element = 0;
  StoreElement(value, &element);
  return LoadElement(to, &element);
}

Scalar LoadElement(DType dtype, const void* p) {
  switch (dtype) {
    case DType::kF64:
      return {dtype, ReadAs<uint64_t>(p)};
    case DType::kF32:
      return {dtype, std::bit_cast<uint64_t>(static_cast<double>(ReadAs<float>(p)))};
    case DType::kF16:
      return {dtype, std::bit_cast<uint64_t>(HalfToDouble(ReadAs<uint16_t>(p)))};
    case DType::kBF16: {
      const uint32_t wide = static_cast<uint32_t>(ReadAs<uint16_t>(p)) << 16;
      return {dtype, std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(wide)))};
    }
    case DType::kI64:
    case DType::kU64:
    case DType::kIndex:
      return {dtype, ReadAs<uint64_t>(p)};
    case DType::kI32:
      return Scalar::Int(dtype, ReadAs<int32_t>(p));
    case DType::kI16:
      return Scalar::Int(dtype, ReadAs<int16_t>(p));
    case DType::kI8:
      return Scalar::Int(dtype, ReadAs<int8_t>(p));
    case DType::kU32:
      return Scalar::Int(dtype, ReadAs<uint32_t>(p));
    case DType::kU16:
      return Scalar::Int(dtype, ReadAs<uint16_t>(p));
    case DType::kU8:
    case DType::kBool:
      return Scalar::Int(dtype, ReadAs<uint8_t>(p));
  }
  return {};
}

void StoreElement(Scalar v, void* p) {
  switch (v.dtype) {
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
    case DType::kIndex:
      return WriteAs(p, v.bits);
    case DType::kF32:
      return WriteAs(p, static_cast<float>(v.f()));
    case DType::kF16:
      return WriteAs(p, DoubleToHalf(v.f()));
    case DType::kBF16:
      return WriteAs(p, static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(v.f())) >> 16));
    case DType::kI32:
    case DType::kU32:
      return WriteAs(p, static_cast<uint32_t>(v.bits));
    case DType::kI16:
    case DType::kU16:
      return WriteAs(p, static_cast<uint16_t>(v.bits));
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return WriteAs(p, static_cast<uint8_t>(v.bits));
  }
}

std::string ToString(Scalar v) {
  if (v.dtype == DType::kBool) return v.i() != 0 ? "true" : "false";
  if (!IsFloat(v.dtype)) return v.dtype == DType::kU64 ? absl::StrFormat("%u", v.bits) : absl::StrFormat("%d", v.i());
  const double d = v.f();
  if (std::isnan(d)) {
    return v.bits == std::bit_cast<uint64_t>(std::numeric_limits<double>::quiet_NaN())
               ? "nan"
               : absl::StrFormat("0x%016x", v.bits);
  }
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char text[64];
  // The shortest digits of the dtype itself: 0.1 for the f32 nearest to 0.1.
  const std::to_chars_result r = v.dtype == DType::kF64
                                     ? std::to_chars(text, text + sizeof text, d)
                                     : std::to_chars(text, text + sizeof text, static_cast<float>(d));
  return std::string(text, r.ptr);
}

}  // namespace agc
