#include <algorithm>
#include <thread>

#include "runtime/vulkan_state.h"

namespace agc::rt {
namespace {

constexpr uint32_t kMostStorageBuffers = 1024;  // drivers without a limit report 2^32 - 1 or 2^20
constexpr uint32_t kGuessedComputeUnits = 128;

// Structs for optional extensions, chained only where the device has them.
struct Optional {
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT subgroup_size = {};
  VkPhysicalDeviceMaintenance4Properties maintenance4 = {};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors = {};
  VkPhysicalDeviceFloatControlsProperties floats = {};  // of Vulkan 1.2, so always there
};

template <typename T>
void Chain(void** head, VkStructureType type, T* link) {
  link->sType = type;
  link->pNext = *head;
  *head = link;
}

void QueryLimits(const VkPhysicalDeviceProperties& properties, Limits* limits) {
  const VkPhysicalDeviceLimits& l = properties.limits;
  limits->cpu = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  limits->shared_bytes = l.maxComputeSharedMemorySize;
  limits->max_invocations = l.maxComputeWorkGroupInvocations;
  for (int d = 0; d < 3; ++d) {
    limits->max_local[d] = l.maxComputeWorkGroupSize[d];
    limits->max_groups[d] = l.maxComputeWorkGroupCount[d];
  }
  limits->storage_buffers = std::min({l.maxPerStageDescriptorStorageBuffers, l.maxDescriptorSetStorageBuffers,
                                      l.maxPerStageResources, kMostStorageBuffers});
  limits->push_constant_bytes = l.maxPushConstantsSize;
  limits->storage_range = l.maxStorageBufferRange;
  limits->offset_align = l.minStorageBufferOffsetAlignment;
  limits->compute_units = limits->cpu ? std::max(1u, std::thread::hardware_concurrency()) : kGuessedComputeUnits;
}

// Keeps of each feature struct what agc uses, and names it.
void ChooseFeatures(Capabilities* c, VkSubgroupFeatureFlags subgroup_operations,
                    const VkPhysicalDeviceFloatControlsProperties& floats) {
  const VkPhysicalDeviceFeatures core = c->features.features;
  const VkPhysicalDeviceVulkan11Features v11 = c->v11;
  const VkPhysicalDeviceVulkan12Features v12 = c->v12;
  c->features.features = {};
  c->features.features.shaderFloat64 = core.shaderFloat64;
  c->features.features.shaderInt64 = core.shaderInt64;
  c->features.features.shaderInt16 = core.shaderInt16;
  c->features.features.robustBufferAccess = c->robustness.pipelineRobustness ? VK_FALSE : core.robustBufferAccess;
  c->v11 = {};
  c->v11.sType = v11.sType;
  c->v11.pNext = v11.pNext;
  c->v11.storageBuffer16BitAccess = v11.storageBuffer16BitAccess;
  c->v12 = {};
  c->v12.sType = v12.sType;
  c->v12.pNext = v12.pNext;
  c->v12.storageBuffer8BitAccess = v12.storageBuffer8BitAccess;
  c->v12.shaderFloat16 = v12.shaderFloat16;
  c->v12.shaderInt8 = v12.shaderInt8;
  c->v12.bufferDeviceAddress = v12.bufferDeviceAddress;
  c->v12.hostQueryReset = v12.hostQueryReset;
  c->v12.shaderSubgroupExtendedTypes = v12.shaderSubgroupExtendedTypes;
  // clang-format off
  const std::pair<const char*, VkBool32> named[] = {
      {"buffer_device_address", v12.bufferDeviceAddress},
      {"denorm_preserve_f32", floats.shaderDenormPreserveFloat32},
      {"denorm_preserve_f64", floats.shaderDenormPreserveFloat64 && core.shaderFloat64},
      {"rounding_rte_f32", floats.shaderRoundingModeRTEFloat32},
      {"rounding_rte_f64", floats.shaderRoundingModeRTEFloat64 && core.shaderFloat64},
      {"shader_float16", v12.shaderFloat16},
      {"shader_float64", core.shaderFloat64},
      {"shader_int16", core.shaderInt16},
      {"shader_int64", core.shaderInt64},
      {"shader_int8", v12.shaderInt8},
      {"signed_zero_inf_nan_preserve_f32", floats.shaderSignedZeroInfNanPreserveFloat32},
      {"signed_zero_inf_nan_preserve_f64", floats.shaderSignedZeroInfNanPreserveFloat64 && core.shaderFloat64},
      {"storage_16bit", v11.storageBuffer16BitAccess},
      {"storage_8bit", v12.storageBuffer8BitAccess},
      {"subgroup_arithmetic", (subgroup_operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0},
      {"subgroup_shuffle", (subgroup_operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0}};
  // clang-format on
  for (const auto& [name, has] : named) {
    if (has) c->limits.features.push_back(name);
  }
}

void QueryFeatures(VkPhysicalDevice physical, bool maintenance4, bool robustness, Capabilities* c) {
  void* chain = nullptr;
  if (maintenance4) Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES, &c->maintenance4);
  if (robustness) Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT, &c->robustness);
  Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &c->v12);
  Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &c->v11);
  Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &c->features);
  vkGetPhysicalDeviceFeatures2(physical, &c->features);
}

std::string Text(uint64_t n) { return std::to_string(n); }

}  // namespace

void QueryCapabilities(VkPhysicalDevice physical, Capabilities* c) {
  const std::vector<std::string> extensions = DeviceExtensions(physical);
  const auto has = [&](const char* name) {
    return std::find(extensions.begin(), extensions.end(), name) != extensions.end();
  };
  const bool maintenance4 = has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
  const bool robustness = has(VK_EXT_PIPELINE_ROBUSTNESS_EXTENSION_NAME);
  const bool subgroup_size = has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  const bool multiprocessors = has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
  if (maintenance4) c->extensions.push_back(VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
  if (robustness) c->extensions.push_back(VK_EXT_PIPELINE_ROBUSTNESS_EXTENSION_NAME);
  Optional o;
  void* chain = nullptr;
  const VkStructureType subgroup_type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT;
  const VkStructureType sm_type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
  if (maintenance4) Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES, &o.maintenance4);
  if (subgroup_size) Chain(&chain, subgroup_type, &o.subgroup_size);
  if (multiprocessors) Chain(&chain, sm_type, &o.multiprocessors);
  Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, &o.floats);
  VkPhysicalDeviceVulkan11Properties v11 = {};
  Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, &v11);
  VkPhysicalDeviceProperties2 properties = {};
  Chain(&chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &properties);
  vkGetPhysicalDeviceProperties2(physical, &properties);
  QueryFeatures(physical, maintenance4, robustness, c);
  QueryLimits(properties.properties, &c->limits);
  const bool in_compute = (v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  ChooseFeatures(c, in_compute ? v11.subgroupSupportedOperations : 0, o.floats);
  c->limits.subgroup_size = c->limits.subgroup_min = c->limits.subgroup_max = std::max(1u, v11.subgroupSize);
  if (subgroup_size) {
    c->limits.subgroup_min = o.subgroup_size.minSubgroupSize;
    c->limits.subgroup_max = o.subgroup_size.maxSubgroupSize;
  }
  if (multiprocessors && o.multiprocessors.shaderSMCount > 0) {
    c->limits.compute_units = o.multiprocessors.shaderSMCount;
  }
  c->max_allocation = v11.maxMemoryAllocationSize;
  c->max_buffer = maintenance4 ? o.maintenance4.maxBufferSize : UINT64_MAX;
}

std::string TargetText(const std::string& name, const Limits& l) {
  std::string quoted;
  for (char c : name) quoted += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32 ? '_' : c;
  std::string text = "name = \"" + quoted + "\"\nkind = " + (l.cpu ? "cpu" : "gpu") + "\n";
  // clang-format off
  const std::pair<const char*, uint64_t> rows[] = {
      {"shared_bytes", l.shared_bytes}, {"max_invocations", l.max_invocations}, {"max_local_x", l.max_local[0]},
      {"max_local_y", l.max_local[1]}, {"max_local_z", l.max_local[2]}, {"max_groups_x", l.max_groups[0]},
      {"max_groups_y", l.max_groups[1]}, {"max_groups_z", l.max_groups[2]}, {"storage_buffers", l.storage_buffers},
      {"storage_range", l.storage_range}, {"offset_align", l.offset_align},
      {"push_constant_bytes", l.push_constant_bytes}, {"subgroup_size", l.subgroup_size},
      {"subgroup_min", l.subgroup_min}, {"subgroup_max", l.subgroup_max}, {"compute_units", l.compute_units}};
  // clang-format on
  for (const auto& [key, value] : rows) text += std::string(key) + " = " + Text(value) + "\n";
  text += "features = ";
  for (size_t i = 0; i < l.features.size(); ++i) text += (i > 0 ? ", " : "") + l.features[i];
  return text + "\n";
}

const char* DeviceTypeName(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "software";
    default:
      return "other";
  }
}

std::string ApiText(uint32_t version) {
  return Text(VK_API_VERSION_MAJOR(version)) + "." + Text(VK_API_VERSION_MINOR(version)) + "." +
         Text(VK_API_VERSION_PATCH(version));
}

}  // namespace agc::rt
