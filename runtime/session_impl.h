// Internal to the runtime: what a session holds. session_load.cc fills it, record.cc records entries into command
// buffers, session.cc moves values in and out and replays.
#pragma once
#include <map>

#include "runtime/bundle_reader.h"
#include "runtime/memory.h"

namespace agc::rt {

struct Pipeline {
  VkPipelineLayout layout = VK_NULL_HANDLE;  // owned by SessionImpl::layouts
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
};

// Layouts depend on the number of parameters only.
struct Layout {
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;  // bindings only
  VkPipelineLayout layout = VK_NULL_HANDLE;
};

// One entry's recording.
struct Recording {
  bool dirty = true;
  VkDescriptorPool descriptors = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets = {};  // by dispatch, in plan order
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkCommandBuffer reset_index = VK_NULL_HANDLE;  // sets run.index to 0; null without one
  VkQueryPool queries = VK_NULL_HANDLE;          // two per step that is no barrier; null unless step times are on
  std::vector<StepTime> times = {};
  uint64_t dispatches = 0;  // per step of Run
};

struct SessionImpl {
  explicit SessionImpl(std::shared_ptr<DeviceState> d) : device(std::move(d)) {}
  SessionImpl(const SessionImpl&) = delete;
  SessionImpl& operator=(const SessionImpl&) = delete;
  ~SessionImpl();

  std::shared_ptr<DeviceState> device;
  Trust trust = Trust::kUntrusted;
  Bundle bundle = {};
  size_t variant = 0;
  Arena state = {}, temp = {}, constants = {}, host = {};
  std::map<std::string, Arena> residents = {};  // by name; those that were bound
  std::map<uint32_t, Layout> layouts = {};      // by number of parameters
  std::vector<Pipeline> pipelines = {};         // by kernel of the bundle; null handles where the variant has no use
  std::vector<Recording> recordings = {};       // by entry
  VkCommandPool pool = VK_NULL_HANDLE;
  VkFence fence = VK_NULL_HANDLE;
  Stager stager = {};
  Profile profile = {};
  bool step_times = false;

  const Variant& chosen() const { return bundle.variants[variant]; }
  BufferAbi abi() const { return chosen().requires_.abi; }
  const std::vector<Entry>& entries() const { return chosen().entries; }
};

// select.cc. Ok, or the first requirement of the variant that the device does not meet: declared ones, and those that
// follow from its kernels and plans.
Status MeetsRequirements(const DeviceState& device, const Bundle& bundle, const Variant& variant, Trust trust);
StatusOr<size_t> ChooseVariant(const DeviceState& device, const Bundle& bundle, Trust trust);

// pipelines.cc. Creates s.layouts and s.pipelines for the kernels that the variant uses, on several threads.
Status CreatePipelines(SessionImpl& s);

// record.cc. (Re)records an entry; all its residents must be bound.
Status RecordEntry(SessionImpl& s, size_t entry);
void DestroyRecording(SessionImpl& s, Recording* recording);

// The place of a plan buffer's byte in a session.
Place FindPlace(const SessionImpl& s, const Entry& entry, const FlatBuffer& buffer, uint64_t offset);

}  // namespace agc::rt
