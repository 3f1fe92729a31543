#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "runtime/session_impl.h"

namespace agc::rt {
namespace {

Status CreateLayout(DeviceState& device, BufferAbi abi, uint32_t params, Layout* layout) {
  VkPipelineLayoutCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 8 * params};
  if (abi == BufferAbi::kAddresses) {
    info.pushConstantRangeCount = params > 0 ? 1 : 0;
    info.pPushConstantRanges = &range;
  } else {
    std::vector<VkDescriptorSetLayoutBinding> bindings(params);
    for (uint32_t i = 0; i < params; ++i) {
      bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
    }
    VkDescriptorSetLayoutCreateInfo set = {};
    set.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    set.bindingCount = params;
    set.pBindings = bindings.data();
    AGC_VK(device, "", vkCreateDescriptorSetLayout, device.device, &set, nullptr, &layout->set_layout);
    info.setLayoutCount = 1;
    info.pSetLayouts = &layout->set_layout;
  }
  AGC_VK(device, "", vkCreatePipelineLayout, device.device, &info, nullptr, &layout->layout);
  return Status();
}

Status CreatePipeline(SessionImpl& s, const Kernel& kernel, Pipeline* pipeline) {
  DeviceState& device = *s.device;
  VkShaderModuleCreateInfo code = {};
  code.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  code.codeSize = kernel.spirv.size() * 4;
  code.pCode = kernel.spirv.data();
  VkShaderModule module = VK_NULL_HANDLE;
  const std::string context = "kernel " + kernel.name;
  AGC_VK(device, context, vkCreateShaderModule, device.device, &code, nullptr, &module);
  VkPipelineRobustnessCreateInfoEXT robust = {};
  robust.sType = VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT;
  robust.storageBuffers = s.trust == Trust::kUntrusted ? VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_EXT
                                                       : VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DEVICE_DEFAULT_EXT;
  VkComputePipelineCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.pNext = device.pipeline_robustness ? &robust : nullptr;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = "main";
  info.layout = pipeline->layout;
  const VkResult r =
      vkCreateComputePipelines(device.device, device.pipeline_cache, 1, &info, nullptr, &pipeline->pipeline);
  vkDestroyShaderModule(device.device, module, nullptr);
  return r == VK_SUCCESS ? Status() : device.Error(r, "vkCreateComputePipelines", context);
}

std::vector<uint32_t> UsedKernels(const Variant& variant) {
  std::set<uint32_t> used;
  for (const Entry& entry : variant.entries) {
    for (const FlatStep& step : entry.plan.steps) {
      if (step.kind == StepKind::kDispatch) used.insert(step.kernel);
    }
  }
  return std::vector<uint32_t>(used.begin(), used.end());
}

}  // namespace

Status CreatePipelines(SessionImpl& s) {
  const std::vector<uint32_t> used = UsedKernels(s.chosen());
  s.pipelines.resize(s.bundle.kernels.size());
  for (uint32_t k : used) {
    const uint32_t params = static_cast<uint32_t>(s.bundle.kernels[k].params.size());
    const auto [it, fresh] = s.layouts.emplace(params, Layout{});
    if (fresh) {
      if (Status status = CreateLayout(*s.device, s.abi(), params, &it->second); !status.ok()) return status;
    }
    s.pipelines[k] = {.layout = it->second.layout, .set_layout = it->second.set_layout};
  }
  std::vector<Status> results(used.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < used.size(); i = next++) {
      results[i] = CreatePipeline(s, s.bundle.kernels[used[i]], &s.pipelines[used[i]]);
    }
  };
  std::vector<std::thread> threads;
  const size_t most = std::min<size_t>(std::max(1u, std::thread::hardware_concurrency()), 16);
  for (size_t t = 1; t < std::min(most, used.size()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  s.profile.pipelines = used.size();
  for (const Status& result : results) {
    if (!result.ok()) return result;
  }
  return Status();
}

}  // namespace agc::rt
