// A tensor in host memory, as evaluators take and give it: row-major elements in host-visible form (bool one byte).
//   HostTensor x = HostTensor::Zeros({DType::kF32, {2, 3}});
//   x.set(4, Scalar::Float(DType::kF32, 0.5));   x.at(4).f() == 0.5
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/scalar.h"
#include "ir/type.h"

namespace agc {

// kExact rounds every operation to its dtype, as devices do. kDouble computes all float arithmetic in f64, the
// reference that tolerances are measured against: float tensors are then accepted as f64 and always returned as f64.
// kPortable is kExact with scalar ops in the form of their `expand`: the bits that portable kernels give.
enum class EvalMode : uint8_t { kExact, kDouble, kPortable };

struct HostTensor {
  TensorType type = {};
  std::vector<uint8_t> bytes = {};  // type.bytes() of them

  static HostTensor Zeros(TensorType type) {
    HostTensor t{std::move(type), {}};
    t.bytes.resize(static_cast<size_t>(t.type.bytes()));
    return t;
  }
  Scalar at(int64_t element) const { return LoadElement(type.dtype, bytes.data() + element * SizeOf(type.dtype)); }
  // Stores `value` after conversion to the tensor's dtype.
  void set(int64_t element, Scalar value) {
    StoreElement(Convert(value, type.dtype), bytes.data() + element * SizeOf(type.dtype));
  }
  friend bool operator==(const HostTensor&, const HostTensor&) = default;  // by bits
};

// The type in which `mode` keeps a value of `type`: f64 for floats under kDouble, else itself.
inline TensorType EvalType(TensorType type, EvalMode mode) {
  if (mode == EvalMode::kDouble && IsFloat(type.dtype)) type.dtype = DType::kF64;
  return type;
}
// The same values as another dtype.
inline HostTensor ConvertTo(const HostTensor& t, DType dtype) {
  if (t.type.dtype == dtype) return t;
  HostTensor out = HostTensor::Zeros({dtype, t.type.dims});
  for (int64_t i = 0; i < t.type.elements(); ++i) out.set(i, t.at(i));
  return out;
}

}  // namespace agc
