// GLSL to SPIR-V, in process: glslang, then the optimiser, then always the validator. The only file that knows glslang
// and SPIRV-Tools. Compute shaders for Vulkan 1.2 (SPIR-V 1.5, so the workgroup size is a literal).
//
//   AGC_ASSIGN_OR_RETURN(std::vector<uint32_t> words, CompileGlsl(text, "k3_matmul", {}));
//
// Functions are thread safe. glslang starts once per process (about 0.1 s): compile many kernels in one process.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace agc {

struct SpirvOptions {
  // 0: as glslang writes it. 1: inlining, load/store elimination, dead code, redundancy; loops stay as written.
  // 2: all performance passes, which also unroll loops marked [[unroll]]. A module of more than
  // kMaxOptimizedWords words is never optimised: the passes would cost ten times the front end.
  int optimize = 1;
  bool precise = false;  // no multiply-add may be fused: Kernel::precise
  bool debug = false;    // keep names and the source text in the module
};
inline constexpr size_t kMaxOptimizedWords = 5000;

// Compiles one shader with the entry point `main`. kInternal where the text does not compile or the module is not
// valid: the generator wrote something wrong. The message has the kernel's name, the log and the line it speaks of.
absl::StatusOr<std::vector<uint32_t>> CompileGlsl(absl::string_view glsl, absl::string_view kernel_name,
                                                  const SpirvOptions& options);

// Ok, or kInternal with the validator's first message.
absl::Status ValidateSpirv(absl::Span<const uint32_t> words, absl::string_view kernel_name);

// Assembly text with one instruction per line; for words that are no module, one line that says so.
std::string DisassembleSpirv(absl::Span<const uint32_t> words);

}  // namespace agc
