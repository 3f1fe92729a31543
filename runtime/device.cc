#include "runtime/device.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "runtime/vulkan_state.h"

namespace agc::rt {
namespace {

int ComputeFamily(VkPhysicalDevice physical, uint32_t* timestamp_bits) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  for (uint32_t i = 0; i < count; ++i) {
    if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) continue;
    *timestamp_bits = families[i].timestampValidBits;
    return static_cast<int>(i);
  }
  return -1;
}

DeviceInfo Describe(VkPhysicalDevice physical) {
  VkPhysicalDeviceProperties p = {};
  vkGetPhysicalDeviceProperties(physical, &p);
  DeviceInfo info = {.name = p.deviceName, .type = DeviceTypeName(p.deviceType), .api = ApiText(p.apiVersion)};
  uint32_t bits = 0;
  if (p.apiVersion < VK_API_VERSION_1_2) info.refusal = "it has Vulkan " + info.api + ", agc needs 1.2";
  if (info.refusal.empty() && ComputeFamily(physical, &bits) < 0) info.refusal = "it has no compute queue";
  return info;
}

std::vector<DeviceInfo> DescribeAll(const std::vector<VkPhysicalDevice>& devices) {
  std::vector<DeviceInfo> infos;
  for (VkPhysicalDevice d : devices) infos.push_back(Describe(d));
  return infos;
}

int Rank(const DeviceInfo& info) {
  const char* order[] = {"discrete", "integrated", "virtual", "software"};
  for (int i = 0; i < 4; ++i) {
    if (info.type == order[i]) return i;
  }
  return 4;
}

std::string Lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return s;
}

bool IsNumber(const std::string& s) {
  return !s.empty() && s.size() < 6 && std::all_of(s.begin(), s.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string ListText(const std::vector<DeviceInfo>& infos) {
  if (infos.empty()) return "there is no Vulkan device";
  std::string text = infos.size() == 1 ? "the only one is" : "there are";
  for (size_t i = 0; i < infos.size(); ++i) {
    text += (i > 0 ? ", " : " ") + std::to_string(i) + ": " + infos[i].name + " (" + infos[i].type + ")";
    if (!infos[i].refusal.empty()) text += " [" + infos[i].refusal + "]";
  }
  return text;
}

StatusOr<size_t> Choose(const std::vector<DeviceInfo>& infos, const std::string& wanted) {
  int best = -1;
  for (size_t i = 0; i < infos.size(); ++i) {
    const bool by_number = IsNumber(wanted) && std::strtoul(wanted.c_str(), nullptr, 10) == i;
    const bool by_name = !IsNumber(wanted) && Lower(infos[i].name).find(Lower(wanted)) != std::string::npos;
    if (!wanted.empty() && !by_number && !by_name) continue;
    if (!wanted.empty() && !infos[i].refusal.empty()) {
      return Status(Code::kUnimplemented, "device " + infos[i].name + ": " + infos[i].refusal);
    }
    if (!infos[i].refusal.empty()) continue;
    if (best < 0 || Rank(infos[i]) < Rank(infos[best])) best = static_cast<int>(i);
  }
  if (best >= 0) return static_cast<size_t>(best);
  return Status(Code::kNotFound, (wanted.empty() ? std::string("no usable device") : "no device \"" + wanted + "\"") +
                                     ": " + ListText(infos));
}

Status CreateDevice(DeviceState* s) {
  Capabilities c;
  QueryCapabilities(s->physical, &c);
  s->limits = c.limits;
  s->max_allocation = c.max_allocation;
  s->max_buffer = c.max_buffer;
  s->pipeline_robustness = c.robustness.pipelineRobustness;
  s->queue_family = static_cast<uint32_t>(ComputeFamily(s->physical, &s->timestamp_bits));
  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue = {};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = s->queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &c.features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(c.extensions.size());
  info.ppEnabledExtensionNames = c.extensions.data();
  AGC_VK(*s, s->name, vkCreateDevice, s->physical, &info, nullptr, &s->device);
  vkGetDeviceQueue(s->device, s->queue_family, 0, &s->queue);
  VkPipelineCacheCreateInfo cache = {};
  cache.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  AGC_VK(*s, s->name, vkCreatePipelineCache, s->device, &cache, nullptr, &s->pipeline_cache);
  return Status();
}

}  // namespace

std::vector<DeviceInfo> ListDevices() {
  DeviceState state;
  if (!CreateInstance({}, &state).ok()) return {};
  return DescribeAll(PhysicalDevices(state.instance));
}

StatusOr<Device> Device::Open(const DeviceOptions& options) {
  if (!options.abi.empty() && options.abi != "bindings" && options.abi != "addresses") {
    return Status(Code::kInvalidArgument, "abi \"" + options.abi + "\" is neither bindings nor addresses");
  }
  auto state = std::make_shared<DeviceState>();
  state->options = options;
  if (Status s = CreateInstance(options, state.get()); !s.ok()) return s;
  const std::vector<VkPhysicalDevice> devices = PhysicalDevices(state->instance);
  const std::vector<DeviceInfo> infos = DescribeAll(devices);
  StatusOr<size_t> chosen = Choose(infos, options.name_or_index);
  if (!chosen.ok()) return chosen.status();
  state->physical = devices[*chosen];
  vkGetPhysicalDeviceProperties(state->physical, &state->properties);
  vkGetPhysicalDeviceMemoryProperties(state->physical, &state->memory);
  state->name = infos[*chosen].name;
  state->description = state->name + ", " + infos[*chosen].type + ", Vulkan " + infos[*chosen].api;
  if (Status s = CreateDevice(state.get()); !s.ok()) return s;
  state->target = TargetText(state->name, state->limits);
  return Device(std::move(state));
}

const std::string& Device::name() const { return state_->name; }
std::string Device::description() const { return state_->description; }
const std::string& Device::target() const { return state_->target; }
int Device::validation_messages() const { return state_->messages; }

}  // namespace agc::rt
