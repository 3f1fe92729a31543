// Internal to the runtime: device memory. An Arena is a linear range of bytes as plans see it, held by one VkBuffer, or
// by several slabs where it is larger than one allocation may be; no plan buffer crosses a slab. A Stager moves bytes
// between host and arenas, directly where the memory is mapped.
//   Arena arena;
//   AGC_RETURN_IF_ERROR(CreateArena(device, "state", bytes, MemoryUse::kDevice, ranges, &arena));
//   Place place = arena.At(offset);  // place.buffer, place.offset in it, place.address
#pragma once
#include <utility>

#include "runtime/vulkan_state.h"

namespace agc::rt {

enum class MemoryUse : uint8_t {
  kDevice,  // fastest for kernels; mapped where the device shares memory with the host
  kHost,    // mapped; kernels read inputs and write outputs there
};

struct Slab {
  uint64_t begin = 0, base = 0,
           end = 0;  // the arena's bytes [begin, end); byte `base` <= begin is byte 0 of the buffer
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkDeviceAddress address = 0;  // 0 without bufferDeviceAddress
  uint8_t* mapped = nullptr;    // coherent; null if not host-visible
};

struct Place {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t offset = 0, room = 0;  // in the buffer; bytes from there to its end
  VkDeviceAddress address = 0;
  uint8_t* mapped = nullptr;
};

struct Arena {
  std::vector<Slab> slabs = {};
  uint64_t size = 0;
  Place At(uint64_t offset) const;  // offset < size
};

using ByteRanges = std::vector<std::pair<uint64_t, uint64_t>>;  // [begin, end)

// Cuts [0, size) into pieces of at most `limit` bytes without cutting any of `ranges`; where overlapping ranges span
// more than that, the piece is larger. Bytes outside all ranges may be in no piece.
ByteRanges CutArena(uint64_t size, ByteRanges ranges, uint64_t limit);

// ResourceExhausted with sizes where memory is not to be had; then *arena is empty. Size 0 makes an empty arena.
Status CreateArena(DeviceState& device, const std::string& what, uint64_t size, MemoryUse use, const ByteRanges& ranges,
                   Arena* arena);
void DestroyArena(DeviceState& device, Arena* arena);

// Copies through a mapped buffer, synchronously; created on first need.
struct Stager {
  Arena buffer = {};
  VkCommandPool pool = VK_NULL_HANDLE;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
};
Status Upload(DeviceState& device, Stager& stager, const Arena& arena, uint64_t offset, const void* data,
              uint64_t size);
Status Download(DeviceState& device, Stager& stager, const Arena& arena, uint64_t offset, void* data, uint64_t size);
// All bytes that lie in slabs, from `data` of the arena's size.
Status UploadAll(DeviceState& device, Stager& stager, const Arena& arena, const uint8_t* data);
Status ZeroFill(DeviceState& device, Stager& stager, const Arena& arena);
void DestroyStager(DeviceState& device, Stager* stager);

// Command buffers from such a pool may be begun again. BeginCommands allocates *commands where it is null.
Status CreateCommandPool(DeviceState& device, VkCommandPool* pool, VkFence* fence);
Status BeginCommands(DeviceState& device, VkCommandPool pool, const std::string& context, VkCommandBuffer* commands);

// Submits and waits. `context` says what ran, for the error.
Status SubmitAndWait(DeviceState& device, const std::vector<VkCommandBuffer>& commands, VkFence fence,
                     const std::string& context);

}  // namespace agc::rt
