// Internal to the runtime: the Vulkan objects that a device's sessions share, and errors of Vulkan calls.
#pragma once
#include <vulkan/vulkan.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace agc::rt {

// Calls a Vulkan function that returns a VkResult; returns a typed error from the caller unless it succeeds.
//   AGC_VK(device, "session", vkCreateFence, device.device, &info, nullptr, &fence);
#define AGC_VK(state, context, function, ...)                                        \
  if (const VkResult agc_result = function(__VA_ARGS__); agc_result != VK_SUCCESS) { \
    return (state).Error(agc_result, #function, context);                            \
  }                                                                                  \
  static_assert(true)

// "VK_ERROR_DEVICE_LOST".
const char* VkResultName(VkResult result);

// What the target description says, as numbers.
struct Limits {
  bool cpu = false;
  uint32_t shared_bytes = 0, max_invocations = 0, storage_buffers = 0, push_constant_bytes = 0;
  uint32_t max_local[3] = {}, max_groups[3] = {};
  uint64_t storage_range = 0, offset_align = 0;
  uint32_t subgroup_size = 1, subgroup_min = 1, subgroup_max = 1, compute_units = 1;
  std::vector<std::string> features = {};  // sorted
  bool Has(const std::string& feature) const;
};

struct DeviceState {
  DeviceState() = default;
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
  ~DeviceState();

  // A typed error: ResourceExhausted for memory, else Internal. A lost device is remembered.
  Status Error(VkResult result, const char* call, const std::string& context);
  // Ok, or the error with which the device was lost.
  Status Alive();
  uint64_t MaxAllocation() const;

  DeviceOptions options = {};
  std::string name = {}, description = {}, target = {};
  Limits limits = {};
  VkInstance instance = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  std::atomic<int> messages = 0;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties = {};
  VkPhysicalDeviceMemoryProperties memory = {};
  uint64_t max_allocation = 0, max_buffer = 0;
  VkDevice device = VK_NULL_HANDLE;
  uint32_t queue_family = 0, timestamp_bits = 0;
  VkQueue queue = VK_NULL_HANDLE;
  std::mutex queue_mutex = {};  // submissions of several sessions
  VkPipelineCache pipeline_cache = VK_NULL_HANDLE;
  bool pipeline_robustness = false;  // bounds checks per pipeline; else robustBufferAccess is on for all

 private:
  std::mutex lost_mutex_ = {};
  Status lost_ = {};
};

// instance.cc. With validation, the layer's messages are printed and counted in *messages.
Status CreateInstance(const DeviceOptions& options, DeviceState* state);
std::vector<VkPhysicalDevice> PhysicalDevices(VkInstance instance);
std::vector<std::string> DeviceExtensions(VkPhysicalDevice physical);

// capabilities.cc. What agc uses of a physical device: the feature chain to enable, limits, and the target's text.
struct Capabilities {
  VkPhysicalDeviceFeatures2 features = {};
  VkPhysicalDeviceVulkan11Features v11 = {};
  VkPhysicalDeviceVulkan12Features v12 = {};
  VkPhysicalDevicePipelineRobustnessFeaturesEXT robustness = {};
  VkPhysicalDeviceMaintenance4Features maintenance4 = {};
  std::vector<const char*> extensions = {};
  Limits limits = {};
  uint64_t max_allocation = 0, max_buffer = 0;
};
// Fills *c; its structs point at each other, so it must not be moved afterwards.
void QueryCapabilities(VkPhysicalDevice physical, Capabilities* c);
std::string TargetText(const std::string& name, const Limits& limits);
const char* DeviceTypeName(VkPhysicalDeviceType type);
std::string ApiText(uint32_t version);

}  // namespace agc::rt
