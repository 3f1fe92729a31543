// What a SPIR-V module says about itself, read without trusting it: enough to refuse a module that does not fit the
// kernel it is listed as, or the device. It proves the shape of the word stream and nothing about the instructions in
// it.
//   StatusOr<SpirvFacts> facts = ScanSpirv(kernel.spirv);
//   facts->bindings  // {0, 1, 2}
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/status.h"

namespace agc::rt {

struct SpirvFacts {
  std::vector<uint32_t> capabilities = {};  // SPIR-V capability numbers, in the order declared
  std::vector<uint32_t> bindings = {};      // bindings of descriptor set 0, sorted, each once
  bool other_sets = false;                  // some variable lies in another descriptor set
  std::array<uint32_t, 3> local_size = {0, 0, 0};
  bool literal_local_size = false;  // given once, by literals, and by nothing that could be specialised
  bool push_constants = false;      // some variable lies in the push constants
  bool other_resources = false;     // some variable is an image, a uniform, an array of buffers or the like
  bool HasCapability(uint32_t number) const;
};

inline constexpr uint32_t kCapabilityPhysicalStorageBuffer = 5347;

// InvalidArgument for a module whose header or instruction lengths are wrong, or without a compute entry point "main".
StatusOr<SpirvFacts> ScanSpirv(const std::vector<uint32_t>& words);

}  // namespace agc::rt
