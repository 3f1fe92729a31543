// What must hold in a bundle beyond the structure of its file: the part of reading that works on rt structs.
//   Status status = CheckBundle(bundle, const_bytes, state_value_bytes);
#pragma once
#include "runtime/format.h"
#include "runtime/status.h"

namespace agc::rt {

// Bytes of a row-major value as the host sees it; false if a dimension is negative or the product leaves 2^48.
bool HostBytes(DType dtype, const std::vector<int64_t>& dims, uint64_t* bytes);

// "f32[2,3]".
std::string TypeText(DType dtype, const std::vector<int64_t>& dims);

// DataLoss naming the first thing that does not hold. The sizes are those of the constant and state value segments.
Status CheckBundle(const Bundle& bundle, uint64_t const_bytes, uint64_t state_value_bytes);

}  // namespace agc::rt
