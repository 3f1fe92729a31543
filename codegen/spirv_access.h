// Which parameters a kernel's module reads and writes, found from its instructions rather than from what the shader
// declares. It reads the words itself, so it works where SPIRV-Cross does not (cooperative matrices).
//
//   ModuleAccess found = ScanAccess(kernel.spirv);
//   found.bindings[2]     // bits of rt::Access for binding 2, 0 when nothing touches it
//   found.addresses[8]    // the same for the address at byte 8 of the push constants
#pragma once
#include <cstdint>
#include <map>

#include "absl/types/span.h"

namespace agc {

struct ModuleAccess {
  std::map<uint32_t, uint8_t> bindings = {};   // binding number of set 0 -> bits of rt::Access
  std::map<uint32_t, uint8_t> addresses = {};  // byte offset in the push constants -> bits of rt::Access
  bool complete = true;  // false: some pointer could not be followed, so an absent bit proves nothing
};

// Words that are no module give an incomplete, empty answer.
ModuleAccess ScanAccess(absl::Span<const uint32_t> words);

}  // namespace agc
