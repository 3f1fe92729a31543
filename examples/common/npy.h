// The two .npy files that the quickstart passes between lenet5 and `agc run`: u8 images out, i32 digits in.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace examples {

absl::Status WriteNpy(const std::string& path, const uint8_t* data, const std::vector<int64_t>& dims);
// Only one-dimensional little-endian i32; errors name the file.
absl::StatusOr<std::vector<int32_t>> ReadNpyI32(const std::string& path);
absl::StatusOr<std::vector<uint8_t>> ReadNpyU8(const std::string& path);

}  // namespace examples
