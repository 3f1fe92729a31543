// Tensor types `f32[32,784]`: shapes are constants. kIndex is the type of index expressions, a mathematical integer
// that never is a tensor's dtype.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

namespace agc {

// The first thirteen have the order of rt::DType.
enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kIndex,
};
inline constexpr int kTensorDTypes = 13;

absl::string_view Name(DType dtype);                      // "f32", "index"
std::optional<DType> DTypeNamed(absl::string_view name);  // of the thirteen
int64_t SizeOf(DType dtype);                              // bytes in host-visible form; bool is one byte
constexpr bool IsFloat(DType t) { return t <= DType::kBF16; }
constexpr bool IsSigned(DType t) { return t >= DType::kI64 && t <= DType::kI8; }
constexpr bool IsUnsigned(DType t) { return t >= DType::kU64 && t <= DType::kU8; }
constexpr bool IsInt(DType t) { return t >= DType::kI64 && t <= DType::kU8; }

using Dims = absl::InlinedVector<int64_t, 6>;

struct TensorType {
  DType dtype = DType::kF32;
  Dims dims = {};
  int rank() const { return static_cast<int>(dims.size()); }
  int64_t elements() const;  // product of dims; 1 for a scalar
  int64_t bytes() const { return elements() * SizeOf(dtype); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};
std::string ToString(const TensorType& type);  // "f32[2,3]"

// What an op yields: one tensor, or a tuple of two and more, of which only `get` may take an element.
struct Types : absl::InlinedVector<TensorType, 1> {
  Types() = default;
  Types(TensorType type) { push_back(std::move(type)); }  // NOLINT: shape rules return one type as it is
  Types(std::initializer_list<TensorType> types) : absl::InlinedVector<TensorType, 1>(types) {}
};
std::string ToString(const Types& types);  // "f32[2]" or "(f32[2], u8[2])"

}  // namespace agc
