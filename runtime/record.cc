#include "runtime/session_impl.h"

namespace agc::rt {
namespace {

constexpr VkPipelineStageFlags kWork = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

void Barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkAccessFlags from_access, VkPipelineStageFlags to,
             VkAccessFlags to_access) {
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = from_access;
  barrier.dstAccessMask = to_access;
  vkCmdPipelineBarrier(commands, from, to, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void BeginBarrier(VkCommandBuffer commands) {  // after the previous replay and after uploads
  Barrier(commands, kWork | VK_PIPELINE_STAGE_HOST_BIT, kWrites | VK_ACCESS_HOST_WRITE_BIT, kWork, kWrites | kReads);
}

void StepBarrier(VkCommandBuffer commands, bool transfers) {
  const VkPipelineStageFlags stages = transfers ? kWork : VkPipelineStageFlags{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT};
  const VkAccessFlags writes = transfers ? kWrites : VkAccessFlags{VK_ACCESS_SHADER_WRITE_BIT};
  const VkAccessFlags reads = transfers ? kReads : VkAccessFlags{VK_ACCESS_SHADER_READ_BIT};
  Barrier(commands, stages, writes, stages, writes | reads);
}

// One descriptor set per dispatch, from a pool that holds exactly those.
Status AllocateSets(SessionImpl& s, const Entry& entry, Recording& rec) {
  if (s.abi() != BufferAbi::kBindings || rec.descriptors != VK_NULL_HANDLE) return Status();
  std::vector<VkDescriptorSetLayout> layouts;
  uint32_t descriptors = 0;
  for (const FlatStep& step : entry.plan.steps) {
    if (step.kind != StepKind::kDispatch) continue;
    layouts.push_back(s.pipelines[step.kernel].set_layout);
    descriptors += static_cast<uint32_t>(step.args.size());
  }
  if (layouts.empty()) return Status();
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptors > 0 ? descriptors : 1};
  VkDescriptorPoolCreateInfo pool = {};
  pool.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool.maxSets = static_cast<uint32_t>(layouts.size());
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  const std::string context = "entry " + entry.name;
  AGC_VK(*s.device, context, vkCreateDescriptorPool, s.device->device, &pool, nullptr, &rec.descriptors);
  rec.sets.resize(layouts.size());
  VkDescriptorSetAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = rec.descriptors;
  info.descriptorSetCount = static_cast<uint32_t>(layouts.size());
  info.pSetLayouts = layouts.data();
  const VkResult r = vkAllocateDescriptorSets(s.device->device, &info, rec.sets.data());
  if (r == VK_SUCCESS) return Status();
  vkDestroyDescriptorPool(s.device->device, rec.descriptors, nullptr);  // the next try starts anew
  rec.descriptors = VK_NULL_HANDLE;
  rec.sets.clear();
  return s.device->Error(r, "vkAllocateDescriptorSets", context);
}

// Ranges are those of the arguments, rounded up to whole words: kernels may read the last bytes of a buffer of small
// elements as a word. Buffers start at multiples of 16, so the word holds nothing else.
void WriteSet(SessionImpl& s, const Entry& entry, const FlatStep& step, VkDescriptorSet set) {
  std::vector<VkDescriptorBufferInfo> infos(step.args.size());
  std::vector<VkWriteDescriptorSet> writes(step.args.size());
  for (size_t i = 0; i < step.args.size(); ++i) {
    const FlatArg& arg = step.args[i];
    const Place place = FindPlace(s, entry, entry.plan.buffers[arg.buffer], arg.offset);
    infos[i] = {place.buffer, place.offset, (arg.size + 3) / 4 * 4};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = static_cast<uint32_t>(i);
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &infos[i];
  }
  vkUpdateDescriptorSets(s.device->device, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
}

void RecordDispatch(SessionImpl& s, const Entry& entry, const FlatStep& step, VkDescriptorSet set,
                    VkCommandBuffer commands) {
  const Pipeline& pipeline = s.pipelines[step.kernel];
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
  if (s.abi() == BufferAbi::kBindings) {
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set, 0, nullptr);
  } else {
    std::vector<uint64_t> addresses;
    for (const FlatArg& arg : step.args) {
      addresses.push_back(FindPlace(s, entry, entry.plan.buffers[arg.buffer], arg.offset).address);
    }
    const uint32_t bytes = static_cast<uint32_t>(addresses.size() * 8);
    if (bytes > 0) {
      vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, bytes, addresses.data());
    }
  }
  vkCmdDispatch(commands, step.groups[0], step.groups[1], step.groups[2]);
}

void RecordTransfer(SessionImpl& s, const Entry& entry, const FlatStep& step, VkCommandBuffer commands) {
  const auto place = [&](size_t i) {
    return FindPlace(s, entry, entry.plan.buffers[step.args[i].buffer], step.args[i].offset);
  };
  if (step.kind == StepKind::kFill) {
    vkCmdFillBuffer(commands, place(0).buffer, place(0).offset, step.args[0].size, step.fill_word);
    return;
  }
  const VkBufferCopy region = {place(0).offset, place(1).offset, step.args[0].size};
  vkCmdCopyBuffer(commands, place(0).buffer, place(1).buffer, 1, &region);
}

// Two time stamps per step that is no barrier.
Status PrepareQueries(SessionImpl& s, const Entry& entry, Recording& rec) {
  vkDestroyQueryPool(s.device->device, rec.queries, nullptr);
  rec.queries = VK_NULL_HANDLE;
  rec.times.clear();
  if (!s.step_times) return Status();
  for (const FlatStep& step : entry.plan.steps) {
    if (step.kind == StepKind::kBarrier) continue;
    const char* kind = step.kind == StepKind::kFill ? "fill" : "copy";
    rec.times.push_back({.label = step.label.empty() ? kind : step.label, .origin = step.origin});
  }
  if (rec.times.empty()) return Status();
  VkQueryPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = static_cast<uint32_t>(2 * rec.times.size());
  AGC_VK(*s.device, "entry " + entry.name, vkCreateQueryPool, s.device->device, &info, nullptr, &rec.queries);
  return Status();
}

void RecordSteps(SessionImpl& s, const Entry& entry, Recording& rec) {
  const VkCommandBuffer commands = rec.commands;
  bool transfers = false;
  for (const FlatStep& step : entry.plan.steps) {
    transfers = transfers || step.kind == StepKind::kCopy || step.kind == StepKind::kFill;
  }
  uint32_t query = 0;
  size_t dispatch = 0;
  const auto stamp = [&](VkPipelineStageFlagBits stage) {
    if (rec.queries != VK_NULL_HANDLE) vkCmdWriteTimestamp(commands, stage, rec.queries, query++);
  };
  if (rec.queries != VK_NULL_HANDLE) {
    vkCmdResetQueryPool(commands, rec.queries, 0, static_cast<uint32_t>(2 * rec.times.size()));
  }
  BeginBarrier(commands);
  for (const FlatStep& step : entry.plan.steps) {
    if (step.kind == StepKind::kBarrier) {
      StepBarrier(commands, transfers);
      continue;
    }
    stamp(VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT);
    if (step.kind == StepKind::kDispatch) {
      RecordDispatch(s, entry, step, rec.sets.empty() ? VK_NULL_HANDLE : rec.sets[dispatch], commands);
      ++dispatch;
    } else {
      RecordTransfer(s, entry, step, commands);
    }
    stamp(VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT);
  }
  Barrier(commands, kWork, kWrites, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  rec.dispatches = dispatch;
}

Status RecordReset(SessionImpl& s, const Entry& entry, Recording& rec) {
  if (entry.run_index_state < 0 || rec.reset_index != VK_NULL_HANDLE) return Status();
  const std::string context = "entry " + entry.name;
  if (Status st = BeginCommands(*s.device, s.pool, context, &rec.reset_index); !st.ok()) return st;
  const Place index = s.state.At(s.bundle.states[entry.run_index_state].offset);
  BeginBarrier(rec.reset_index);
  vkCmdFillBuffer(rec.reset_index, index.buffer, index.offset, 4, 0);
  AGC_VK(*s.device, context, vkEndCommandBuffer, rec.reset_index);
  return Status();
}

}  // namespace

Place FindPlace(const SessionImpl& s, const Entry& entry, const FlatBuffer& buffer, uint64_t offset) {
  const uint64_t at = buffer.offset + offset;
  switch (buffer.arena) {
    case kStateArena:
      return s.state.At(at);
    case kTempArena:
      return s.temp.At(at);
    case kConstArena:
      return s.constants.At(at);
    case kHostArena:
      return s.host.At(at);
    default:
      return s.residents.at(entry.residents[buffer.arena - kFirstResidentArena].name).At(at);
  }
}

Status RecordEntry(SessionImpl& s, size_t index) {
  const Entry& entry = s.entries()[index];
  Recording& rec = s.recordings[index];
  const std::string context = "entry " + entry.name;
  if (Status status = AllocateSets(s, entry, rec); !status.ok()) return status;
  if (Status status = PrepareQueries(s, entry, rec); !status.ok()) return status;
  size_t dispatch = 0;
  for (const FlatStep& step : entry.plan.steps) {
    if (step.kind == StepKind::kDispatch && !rec.sets.empty()) WriteSet(s, entry, step, rec.sets[dispatch++]);
  }
  if (Status status = BeginCommands(*s.device, s.pool, context, &rec.commands); !status.ok()) return status;
  RecordSteps(s, entry, rec);
  AGC_VK(*s.device, context, vkEndCommandBuffer, rec.commands);
  if (Status status = RecordReset(s, entry, rec); !status.ok()) return status;
  rec.dirty = false;
  ++s.profile.recordings;
  return Status();
}

void DestroyRecording(SessionImpl& s, Recording* recording) {  // its command buffers go with the pool
  vkDestroyDescriptorPool(s.device->device, recording->descriptors, nullptr);
  vkDestroyQueryPool(s.device->device, recording->queries, nullptr);
  *recording = {};
}

}  // namespace agc::rt
