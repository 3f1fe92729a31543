#include "runtime/memory.h"

#include <algorithm>
#include <cstring>

namespace agc::rt {
namespace {

constexpr uint64_t kSlabAlignment = 256;       // no device asks for a larger minStorageBufferOffsetAlignment
constexpr uint64_t kPadding = 16;              // after the last byte, so that ranges may be rounded up
constexpr uint64_t kStagingBytes = 16u << 20;  // per copy

uint64_t AlignUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// The first memory type among `allowed` that has one of the wanted sets of properties, tried in order; -1: none.
int FindMemoryType(const DeviceState& device, uint32_t allowed, const std::vector<VkMemoryPropertyFlags>& wanted) {
  for (VkMemoryPropertyFlags flags : wanted) {
    for (uint32_t i = 0; i < device.memory.memoryTypeCount; ++i) {
      const VkMemoryPropertyFlags has = device.memory.memoryTypes[i].propertyFlags;
      if ((allowed & (1u << i)) != 0 && (has & flags) == flags) return static_cast<int>(i);
    }
  }
  return -1;
}

std::vector<VkMemoryPropertyFlags> Wanted(const DeviceState& device, MemoryUse use) {
  const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  if (use == MemoryUse::kHost) return {mapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, mapped};
  const VkPhysicalDeviceType type = device.properties.deviceType;
  const bool shared = type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
  if (shared && !device.options.never_map) {
    return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | mapped, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
  }
  return {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
}

Status CreateBuffer(DeviceState& device, const std::string& context, Slab* slab) {
  VkBufferCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = AlignUp(slab->end - slab->base, kPadding) + kPadding;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (device.limits.Has("buffer_device_address")) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  if (info.size > device.max_buffer) {
    return Status(Code::kResourceExhausted, context + ": a buffer of " + std::to_string(info.size) + " bytes, " +
                                                device.name + " allows " + std::to_string(device.max_buffer));
  }
  AGC_VK(device, context, vkCreateBuffer, device.device, &info, nullptr, &slab->buffer);
  return Status();
}

Status AllocateMemory(DeviceState& device, const std::string& context, MemoryUse use, Slab* slab) {
  VkMemoryRequirements needs = {};
  vkGetBufferMemoryRequirements(device.device, slab->buffer, &needs);
  const int type = FindMemoryType(device, needs.memoryTypeBits, Wanted(device, use));
  if (type < 0) return Status(Code::kResourceExhausted, context + ": no suitable memory type");
  const VkMemoryType& memory_type = device.memory.memoryTypes[type];
  const uint64_t heap = device.memory.memoryHeaps[memory_type.heapIndex].size;
  const std::string sizes = context + ": " + std::to_string(needs.size) + " bytes from a heap of " +
                            std::to_string(heap) + ", single allocations up to " +
                            std::to_string(device.max_allocation);
  if (needs.size > heap) return Status(Code::kResourceExhausted, sizes);
  VkMemoryAllocateFlagsInfo flags = {};
  flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  VkMemoryAllocateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = device.limits.Has("buffer_device_address") ? &flags : nullptr;
  info.allocationSize = needs.size;
  info.memoryTypeIndex = static_cast<uint32_t>(type);
  AGC_VK(device, sizes, vkAllocateMemory, device.device, &info, nullptr, &slab->memory);
  AGC_VK(device, sizes, vkBindBufferMemory, device.device, slab->buffer, slab->memory, 0);
  const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const std::vector<VkMemoryPropertyFlags> wanted = Wanted(device, use);
  const bool map = (wanted[0] & mapped) == mapped && (memory_type.propertyFlags & mapped) == mapped;
  if (!map) return Status();
  void* pointer = nullptr;
  AGC_VK(device, sizes, vkMapMemory, device.device, slab->memory, 0, VK_WHOLE_SIZE, 0, &pointer);
  slab->mapped = static_cast<uint8_t*>(pointer);
  return Status();
}

Status EnsureStager(DeviceState& device, Stager& s) {
  if (s.fence != VK_NULL_HANDLE) return Status();
  if (Status st = CreateArena(device, "staging", kStagingBytes, MemoryUse::kHost, {}, &s.buffer); !st.ok()) return st;
  return CreateCommandPool(device, &s.pool, &s.fence);
}

void FullBarrier(VkCommandBuffer commands) {
  VkMemoryBarrier barrier = {};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
  vkCmdPipelineBarrier(commands, all, all, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// Records with `record` between full barriers, submits, waits.
template <typename F>
Status RunOnce(DeviceState& device, Stager& s, const char* context, F record) {
  if (Status st = EnsureStager(device, s); !st.ok()) return st;
  if (Status st = BeginCommands(device, s.pool, context, &s.commands); !st.ok()) return st;
  FullBarrier(s.commands);
  record(s.commands);
  FullBarrier(s.commands);
  AGC_VK(device, context, vkEndCommandBuffer, s.commands);
  return SubmitAndWait(device, {s.commands}, s.fence, context);
}

void CopyOnce(VkCommandBuffer commands, VkBuffer from, uint64_t from_at, VkBuffer to, uint64_t to_at, uint64_t size) {
  const VkBufferCopy region = {from_at, to_at, size};
  vkCmdCopyBuffer(commands, from, to, 1, &region);
}

}  // namespace

Place Arena::At(uint64_t offset) const {
  auto it = std::upper_bound(slabs.begin(), slabs.end(), offset,
                             [](uint64_t value, const Slab& slab) { return value < slab.begin; });
  const Slab& slab = *std::prev(it);
  const uint64_t at = offset - slab.base;
  return {.buffer = slab.buffer,
          .offset = at,
          .room = slab.end - slab.base - at,
          .address = slab.address == 0 ? 0 : slab.address + at,
          .mapped = slab.mapped == nullptr ? nullptr : slab.mapped + at};
}

ByteRanges CutArena(uint64_t size, ByteRanges ranges, uint64_t limit) {
  if (size <= limit) return {{0, size}};
  std::sort(ranges.begin(), ranges.end());
  ByteRanges whole;  // connected: nothing may be cut inside one of them
  for (const auto& [begin, end] : ranges) {
    if (whole.empty() || begin >= whole.back().second) {
      whole.push_back({begin, end});
    } else {
      whole.back().second = std::max(whole.back().second, end);
    }
  }
  ByteRanges pieces;
  for (const auto& [begin, end] : whole) {
    const bool fits = !pieces.empty() && end - pieces.back().first / kSlabAlignment * kSlabAlignment <= limit;
    if (fits) {
      pieces.back().second = end;
    } else {
      pieces.push_back({begin, end});
    }
  }
  if (pieces.empty()) return {{0, size}};
  return pieces;
}

Status CreateArena(DeviceState& device, const std::string& what, uint64_t size, MemoryUse use, const ByteRanges& ranges,
                   Arena* arena) {
  arena->size = size;
  if (size == 0) return Status();
  Status status;
  for (const auto& [begin, end] : CutArena(size, ranges, device.MaxAllocation())) {
    arena->slabs.push_back({.begin = begin, .base = begin / kSlabAlignment * kSlabAlignment, .end = end});
    Slab* slab = &arena->slabs.back();
    const std::string context = what + " arena of " + std::to_string(size) + " bytes";
    status = CreateBuffer(device, context, slab);
    if (status.ok()) status = AllocateMemory(device, context, use, slab);
    if (!status.ok()) break;
    if (!device.limits.Has("buffer_device_address")) continue;
    VkBufferDeviceAddressInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
    info.buffer = slab->buffer;
    slab->address = vkGetBufferDeviceAddress(device.device, &info);
  }
  if (!status.ok()) DestroyArena(device, arena);
  return status;
}

void DestroyArena(DeviceState& device, Arena* arena) {
  for (const Slab& slab : arena->slabs) {
    vkDestroyBuffer(device.device, slab.buffer, nullptr);
    vkFreeMemory(device.device, slab.memory, nullptr);
  }
  *arena = {};
}

Status Upload(DeviceState& device, Stager& stager, const Arena& arena, uint64_t offset, const void* data,
              uint64_t size) {
  const uint8_t* bytes = static_cast<const uint8_t*>(data);
  while (size > 0) {
    const Place to = arena.At(offset);
    const uint64_t part = std::min({size, to.room, to.mapped != nullptr ? UINT64_MAX : kStagingBytes});
    if (to.mapped != nullptr) {
      std::memcpy(to.mapped, bytes, part);
    } else {
      if (Status st = EnsureStager(device, stager); !st.ok()) return st;
      const Place from = stager.buffer.At(0);
      std::memcpy(from.mapped, bytes, part);
      Status st = RunOnce(device, stager, "upload", [&](VkCommandBuffer commands) {
        CopyOnce(commands, from.buffer, 0, to.buffer, to.offset, part);
      });
      if (!st.ok()) return st;
    }
    bytes += part, offset += part, size -= part;
  }
  return Status();
}

Status Download(DeviceState& device, Stager& stager, const Arena& arena, uint64_t offset, void* data, uint64_t size) {
  uint8_t* bytes = static_cast<uint8_t*>(data);
  while (size > 0) {
    const Place from = arena.At(offset);
    const uint64_t part = std::min({size, from.room, from.mapped != nullptr ? UINT64_MAX : kStagingBytes});
    if (from.mapped != nullptr) {
      std::memcpy(bytes, from.mapped, part);
    } else {
      if (Status st = EnsureStager(device, stager); !st.ok()) return st;
      const Place to = stager.buffer.At(0);
      Status st = RunOnce(device, stager, "download", [&](VkCommandBuffer commands) {
        CopyOnce(commands, from.buffer, from.offset, to.buffer, 0, part);
      });
      if (!st.ok()) return st;
      std::memcpy(bytes, to.mapped, part);
    }
    bytes += part, offset += part, size -= part;
  }
  return Status();
}

Status UploadAll(DeviceState& device, Stager& stager, const Arena& arena, const uint8_t* data) {
  for (const Slab& slab : arena.slabs) {
    Status st = Upload(device, stager, arena, slab.begin, data + slab.begin, slab.end - slab.begin);
    if (!st.ok()) return st;
  }
  return Status();
}

Status ZeroFill(DeviceState& device, Stager& stager, const Arena& arena) {
  for (const Slab& slab : arena.slabs) {
    if (slab.mapped != nullptr) {
      std::memset(slab.mapped, 0, slab.end - slab.base);
      continue;
    }
    Status st = RunOnce(device, stager, "clearing states",
                        [&](VkCommandBuffer commands) { vkCmdFillBuffer(commands, slab.buffer, 0, VK_WHOLE_SIZE, 0); });
    if (!st.ok()) return st;
  }
  return Status();
}

void DestroyStager(DeviceState& device, Stager* stager) {
  vkDestroyFence(device.device, stager->fence, nullptr);
  vkDestroyCommandPool(device.device, stager->pool, nullptr);
  DestroyArena(device, &stager->buffer);
  *stager = {};
}

Status CreateCommandPool(DeviceState& device, VkCommandPool* pool, VkFence* fence) {
  VkCommandPoolCreateInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  info.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  info.queueFamilyIndex = device.queue_family;
  AGC_VK(device, "", vkCreateCommandPool, device.device, &info, nullptr, pool);
  VkFenceCreateInfo fence_info = {};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  AGC_VK(device, "", vkCreateFence, device.device, &fence_info, nullptr, fence);
  return Status();
}

Status BeginCommands(DeviceState& device, VkCommandPool pool, const std::string& context, VkCommandBuffer* commands) {
  if (*commands == VK_NULL_HANDLE) {
    VkCommandBufferAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool;
    info.commandBufferCount = 1;
    AGC_VK(device, context, vkAllocateCommandBuffers, device.device, &info, commands);
  }
  VkCommandBufferBeginInfo begin = {};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // one submission holds it many times
  AGC_VK(device, context, vkBeginCommandBuffer, *commands, &begin);
  return Status();
}

Status SubmitAndWait(DeviceState& device, const std::vector<VkCommandBuffer>& commands, VkFence fence,
                     const std::string& context) {
  VkSubmitInfo info = {};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = static_cast<uint32_t>(commands.size());
  info.pCommandBuffers = commands.data();
  {
    const std::lock_guard<std::mutex> lock(device.queue_mutex);
    AGC_VK(device, context, vkQueueSubmit, device.queue, 1, &info, fence);
  }
  AGC_VK(device, context, vkWaitForFences, device.device, 1, &fence, VK_TRUE, UINT64_MAX);
  AGC_VK(device, context, vkResetFences, device.device, 1, &fence);
  return Status();
}

}  // namespace agc::rt
