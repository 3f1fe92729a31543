// Forbids a module to fuse multiply-adds: NoContraction on the result of every float operation, those under casts,
// comparisons, indices and in helper functions too. (GLSL's `precise` belongs to variables: glslang passes it on to
// what is assigned to them, not into indices, conditions or functions.)
//   words = ForbidContraction(std::move(words));   // before the optimiser, which keeps to it, and after it
#pragma once
#include <cstdint>
#include <vector>

namespace agc {

// Results that are decorated already stay as they are; words that are no module come back unchanged.
std::vector<uint32_t> ForbidContraction(std::vector<uint32_t> words);

}  // namespace agc
