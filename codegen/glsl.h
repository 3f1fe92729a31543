// Loop trees as GLSL. The printer writes what is in the tree and decides nothing: names, hoisting, addresses and guards
// are those of the IR.
//   std::string source = *PrintGlsl(kernel, GlslAbi::kBindings);
// bindings: parameter i is the storage buffer at set 0, binding i. addresses: push constants hold one 64-bit reference
// per parameter, in order.
#pragma once
#include <string>

#include "absl/status/statusor.h"
#include "ir/kernel.h"

namespace agc {

enum class GlslAbi : uint8_t { kBindings, kAddresses };

// The kernel must be legalized: linear indices, no arithmetic narrower than 32 bits. Unimplemented for statements that
// have no spelling yet (Tile), naming them.
absl::StatusOr<std::string> PrintGlsl(const Kernel& kernel, GlslAbi abi);

}  // namespace agc
