// Reads a bundle file from memory. Nothing in it is believed: bounds, alignment, checksums, indexes, sizes of
// signatures against their buffers, SPIR-V word streams, and the plan of every entry (CheckPlan) are verified first.
// What holds after a successful read is what the rest of the runtime relies on.
//   StatusOr<Bundle> bundle = ReadBundle(bytes.data(), bytes.size());
//   // "DATA_LOSS: bundle: file of 4096 bytes, its header says 9216"
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/format.h"
#include "runtime/status.h"

namespace agc::rt {

// A bundle whose two large segments stay in the caller's memory (const_data and state_values of `bundle` are empty).
struct MappedBundle {
  Bundle bundle = {};
  const uint8_t* const_data = nullptr;
  size_t const_bytes = 0;
  const uint8_t* state_values = nullptr;  // null: the bundle has none
  size_t state_value_bytes = 0;
};

// DataLoss for anything that is wrong with the bytes.
StatusOr<MappedBundle> MapBundle(const uint8_t* data, size_t size);
StatusOr<Bundle> ReadBundle(const uint8_t* data, size_t size);

}  // namespace agc::rt
