#include <cstdio>
#include <cstring>

#include "runtime/vulkan_state.h"

namespace agc::rt {
namespace {

constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";

VKAPI_ATTR VkBool32 VKAPI_CALL OnMessage(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                         const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  ++*static_cast<std::atomic<int>*>(user);
  fprintf(stderr, "validation: %s\n", data->pMessage);
  return VK_FALSE;
}

bool HasValidationLayer() {
  uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  for (const VkLayerProperties& layer : layers) {
    if (std::strcmp(layer.layerName, kValidationLayer) == 0) return true;
  }
  return false;
}

// Messages of type VALIDATION only: the loader speaks through the same callback as GENERAL.
VkDebugUtilsMessengerCreateInfoEXT MessengerInfo(DeviceState* state) {
  VkDebugUtilsMessengerCreateInfoEXT info = {};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = OnMessage;
  info.pUserData = &state->messages;
  return info;
}

Status CreateMessenger(const VkDebugUtilsMessengerCreateInfoEXT& info, DeviceState* state) {
  const auto create = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      vkGetInstanceProcAddr(state->instance, "vkCreateDebugUtilsMessengerEXT"));
  if (create == nullptr) return Status(Code::kNotFound, "validation: the instance has no VK_EXT_debug_utils");
  const VkResult result = create(state->instance, &info, nullptr, &state->messenger);
  return result == VK_SUCCESS ? Status() : state->Error(result, "vkCreateDebugUtilsMessengerEXT", "");
}

}  // namespace

Status CreateInstance(const DeviceOptions& options, DeviceState* state) {
  VkApplicationInfo app = {};
  app.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  app.pApplicationName = "agc";
  app.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pApplicationInfo = &app;
  const char* layer = kValidationLayer;
  const char* extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features = {};
  VkDebugUtilsMessengerCreateInfoEXT messenger = MessengerInfo(state);
  if (options.validation) {
    if (!HasValidationLayer()) {
      return Status(Code::kNotFound, std::string("validation: the layer ") + kValidationLayer + " is not installed");
    }
    features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
    features.pNext = &messenger;  // so that creating and destroying the instance is watched too
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = &enable;
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &layer;
    info.enabledExtensionCount = 2;
    info.ppEnabledExtensionNames = extensions;
  }
  if (VkResult result = vkCreateInstance(&info, nullptr, &state->instance); result != VK_SUCCESS) {
    return Status(Code::kNotFound, std::string("no Vulkan: vkCreateInstance returned ") + VkResultName(result));
  }
  return options.validation ? CreateMessenger(messenger, state) : Status();
}

std::vector<VkPhysicalDevice> PhysicalDevices(VkInstance instance) {
  uint32_t count = 0;
  if (vkEnumeratePhysicalDevices(instance, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkPhysicalDevice> devices(count);
  const VkResult result = vkEnumeratePhysicalDevices(instance, &count, devices.data());
  devices.resize(result == VK_SUCCESS || result == VK_INCOMPLETE ? count : 0);
  return devices;
}

std::vector<std::string> DeviceExtensions(VkPhysicalDevice physical) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> properties(count);
  vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, properties.data());
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) names.push_back(properties[i].extensionName);
  return names;
}

}  // namespace agc::rt
