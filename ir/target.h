// What passes may know of a device: limits and cost constants, with a text form. Nothing is hard-coded elsewhere.
//   AGC_ASSIGN_OR_RETURN(Target target, ParseTarget(device.target()));
// Text: one `key = value` per line, as rt::Device::target() writes it; missing keys keep the defaults below, which are
// the Vulkan minimum of a small GPU. `--target=FILE` reads the same.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/type.h"

namespace agc {

enum class DeviceKind : uint8_t { kCpu, kGpu };

struct Target {
  std::string name = "generic";
  DeviceKind kind = DeviceKind::kGpu;
  int64_t shared_bytes = 16384;
  int64_t max_invocations = 128;
  int64_t max_local_x = 128, max_local_y = 128, max_local_z = 64;
  int64_t max_groups_x = 65535, max_groups_y = 65535, max_groups_z = 65535;
  int64_t storage_buffers = 4;               // per shader stage
  int64_t storage_range = int64_t{1} << 27;  // bytes of one binding
  int64_t offset_align = 256;                // bytes, of a binding's offset
  int64_t push_constant_bytes = 128;
  int64_t subgroup_size = 1, subgroup_min = 1, subgroup_max = 1;
  int64_t compute_units = 1;               // hardware threads of a CPU, multiprocessors of a GPU
  std::vector<std::string> features = {};  // sorted; see docs/architecture.md
  // Scalar ops whose spelling is too loose here for the tolerance of their rows, sorted: expand-math replaces them. By
  // default those that what the Vulkan specification guarantees is not enough for.
  std::vector<std::string> expand = {"pow"};

  bool has(absl::string_view feature) const;
  bool expands(absl::string_view scalar_op) const;
  bool cpu() const { return kind == DeviceKind::kCpu; }
};

// The feature that buffers of a dtype need of a device, "storage_8bit" or "storage_16bit"; empty: none.
absl::string_view StorageFeature(DType stored);

absl::StatusOr<Target> ParseTarget(absl::string_view text);  // errors name the line
std::string ToString(const Target& target);
// Built-in descriptions for tests and for compiling without a device: "lavapipe", "h200", "tiny" (the defaults above).
absl::StatusOr<Target> FakeTarget(absl::string_view name);

}  // namespace agc
