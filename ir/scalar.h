// One element's value, as constants hold it and evaluators compute it: floats as double bits (rounded to their own
// dtype), integers and bool as a 64-bit integer (sign- or zero-extended). -0 and NaN payloads survive.
#pragma once
#include <bit>
#include <cstdint>
#include <string>

#include "ir/type.h"

namespace agc {

struct Scalar {
  DType dtype = DType::kF32;
  uint64_t bits = 0;
  double f() const { return std::bit_cast<double>(bits); }
  int64_t i() const { return static_cast<int64_t>(bits); }
  static Scalar Float(DType dtype, double value);  // rounds to dtype, half to even
  static Scalar Int(DType dtype, int64_t value);   // wraps to dtype; any dtype but a float
  static Scalar Of(DType dtype, double value);     // Float, or Int of the truncated value
  double AsDouble() const { return IsFloat(dtype) ? f() : dtype == DType::kU64 ? double(bits) : double(i()); }
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

double RoundTo(DType dtype, double value);   // the nearest value of a float dtype, half to even
int64_t WrapTo(DType dtype, int64_t value);  // two's complement; bool becomes 0 or 1
Scalar Convert(Scalar value, DType to);      // `cast`: docs/numerics.md; float to integer truncates and saturates
bool CanBitcast(DType from, DType to);       // elements of the same size, neither bool nor index
Scalar BitsAs(Scalar value, DType to);       // `bitcast`: the element's bits read as another dtype of that size
Scalar LoadElement(DType dtype, const void* element);  // host-visible bytes
void StoreElement(Scalar value, void* element);
// Shortest text that reads back exactly: "0.5", "-0", "inf", "nan", "true"; odd NaNs as "0x7ff8..." bits.
std::string ToString(Scalar value);

}  // namespace agc
