// What a module declares about its interface, read back by SPIRV-Cross, and the check that it is what the compiler
// recorded in rt::Kernel: the host binds buffers and sizes dispatches by the record alone.
//
//   AGC_RETURN_IF_ERROR(CheckReflection(kernel, rt::BufferAbi::kBindings));
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/format.h"

namespace agc {

struct ReflectedBinding {
  uint32_t set = 0, binding = 0;
  bool readonly = false, writeonly = false;  // as declared
};

struct Reflection {
  std::vector<ReflectedBinding> bindings = {};       // storage buffers, by (set, binding)
  uint32_t push_constant_bytes = 0;                  // 0: none
  std::vector<uint32_t> push_constant_offsets = {};  // of each member; an array member gives one per element
  std::array<uint32_t, 3> local_size = {0, 0, 0};
};

// kUnimplemented where SPIRV-Cross cannot parse the module (cooperative matrices need a newer one).
absl::StatusOr<Reflection> ReflectSpirv(absl::Span<const uint32_t> words);

// Compares bindings or push-constant addresses, local size, and which buffers are read and written (as declared, and
// as the instructions do) with the record. kInternal with the kernel's name and both values where they differ. Where
// SPIRV-Cross cannot parse the module only the instructions are compared, and *parsed (optional) becomes false.
absl::Status CheckReflection(const rt::Kernel& kernel, rt::BufferAbi abi, bool* parsed = nullptr);

}  // namespace agc
