// A module back to readable GLSL, by SPIRV-Cross: what `agc dump` shows of a bundle whose source was stripped.
//
//   AGC_ASSIGN_OR_RETURN(std::string text, SpirvToGlsl(kernel.spirv));
#pragma once
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace agc {

// Vulkan GLSL 4.60 with names made up where the module has none. kUnimplemented where SPIRV-Cross cannot parse it.
absl::StatusOr<std::string> SpirvToGlsl(absl::Span<const uint32_t> words);

}  // namespace agc
