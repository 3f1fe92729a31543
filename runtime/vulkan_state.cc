#include "runtime/vulkan_state.h"

#include <algorithm>

namespace agc::rt {

const char* VkResultName(VkResult result) {
  struct Row {
    VkResult result;
    const char* name;
  };
  // clang-format off
#define AGC_ROW(name) {name, #name}
  static constexpr Row kRows[] = {
      AGC_ROW(VK_SUCCESS), AGC_ROW(VK_NOT_READY), AGC_ROW(VK_TIMEOUT), AGC_ROW(VK_INCOMPLETE),
      AGC_ROW(VK_ERROR_OUT_OF_HOST_MEMORY), AGC_ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY), AGC_ROW(VK_ERROR_DEVICE_LOST),
      AGC_ROW(VK_ERROR_INITIALIZATION_FAILED), AGC_ROW(VK_ERROR_MEMORY_MAP_FAILED), AGC_ROW(VK_ERROR_UNKNOWN),
      AGC_ROW(VK_ERROR_LAYER_NOT_PRESENT), AGC_ROW(VK_ERROR_EXTENSION_NOT_PRESENT), AGC_ROW(VK_ERROR_FRAGMENTATION),
      AGC_ROW(VK_ERROR_FEATURE_NOT_PRESENT), AGC_ROW(VK_ERROR_INCOMPATIBLE_DRIVER), AGC_ROW(VK_ERROR_TOO_MANY_OBJECTS),
      AGC_ROW(VK_ERROR_FRAGMENTED_POOL), AGC_ROW(VK_ERROR_OUT_OF_POOL_MEMORY), AGC_ROW(VK_ERROR_INVALID_SHADER_NV)};
#undef AGC_ROW
  // clang-format on
  for (const Row& row : kRows) {
    if (row.result == result) return row.name;
  }
  return "an unknown VkResult";
}

bool Limits::Has(const std::string& feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

DeviceState::~DeviceState() {
  if (pipeline_cache != VK_NULL_HANDLE) vkDestroyPipelineCache(device, pipeline_cache, nullptr);
  if (device != VK_NULL_HANDLE) vkDestroyDevice(device, nullptr);
  if (messenger != VK_NULL_HANDLE) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
        vkGetInstanceProcAddr(instance, "vkDestroyDebugUtilsMessengerEXT"));
    destroy(instance, messenger, nullptr);
  }
  if (instance != VK_NULL_HANDLE) vkDestroyInstance(instance, nullptr);
}

Status DeviceState::Error(VkResult result, const char* call, const std::string& context) {
  std::string message = std::string(call) + " returned " + VkResultName(result) + " (" + std::to_string(result) + ")";
  if (!context.empty()) message += ": " + context;
  const bool memory = result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY;
  if (result == VK_ERROR_DEVICE_LOST) message += "; the device is lost: open it again and load the states";
  Status status(memory ? Code::kResourceExhausted : Code::kInternal, message);
  const std::lock_guard<std::mutex> lock(lost_mutex_);
  if (result == VK_ERROR_DEVICE_LOST && lost_.ok()) lost_ = status;
  return status;
}

Status DeviceState::Alive() {
  const std::lock_guard<std::mutex> lock(lost_mutex_);
  return lost_;
}

uint64_t DeviceState::MaxAllocation() const {
  return options.max_allocation_bytes != 0 ? std::min(options.max_allocation_bytes, max_allocation) : max_allocation;
}

}  // namespace agc::rt
