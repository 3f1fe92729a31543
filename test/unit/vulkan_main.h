// The main of tests that use a Vulkan device (label `vulkan`): one device per process, with core and synchronization
// validation. A test during which the layer speaks fails, and so does a program that cannot open the device.
//   // LABELS: vulkan
//   #include "test/unit/vulkan_main.h"
//   TEST(E2e, Runs) { rt::StatusOr<rt::Session> s = test::TheDevice().Load(bytes, rt::Trust::kTrusted); ... }
#pragma once
#include <string>

#include "absl/strings/string_view.h"
#include "ir/target.h"
#include "runtime/device.h"

namespace agc::test {

extern bool layers;  // whether the device is opened with the validation layer

// Opened on first use; where there is no device, or no validation layer, the program ends with status 1.
rt::Device& TheDevice();
// What the device says of itself, parsed.
const Target& TheTarget();
// What the command line says as --name=value, or the fallback.
std::string Argument(absl::string_view name, absl::string_view fallback);

}  // namespace agc::test
