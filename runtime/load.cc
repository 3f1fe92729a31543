// Device::Load: from bytes to a session that can run.
#include <algorithm>

#include "runtime/bundle_check.h"
#include "runtime/session_impl.h"

namespace agc::rt {
namespace {

// Ranges of an arena that must stay in one slab, over all entries.
ByteRanges Ranges(const SessionImpl& s, uint32_t arena) {
  ByteRanges ranges;
  for (const Entry& entry : s.entries()) {
    for (const FlatBuffer& b : entry.plan.buffers) {
      if (b.arena == arena) ranges.push_back({b.offset, b.offset + b.size});
    }
  }
  if (arena != kStateArena) return ranges;
  for (const State& state : s.bundle.states) {
    uint64_t bytes = 0;
    HostBytes(state.dtype, state.dims, &bytes);
    if (bytes > 0) ranges.push_back({state.offset, state.offset + bytes});
  }
  return ranges;
}

uint64_t Largest(const SessionImpl& s, uint32_t arena) {
  uint64_t size = 0;
  for (const Entry& entry : s.entries()) size = std::max(size, entry.plan.arena_sizes[arena]);
  return size;
}

Status CreateArenas(SessionImpl& s, const MappedBundle& mapped) {
  struct Row {
    const char* name;
    uint32_t id;
    MemoryUse use;
    Arena* arena;
    uint64_t* bytes;
  };
  Profile& p = s.profile;
  for (const Row& row : {Row{"state", kStateArena, MemoryUse::kDevice, &s.state, &p.state_bytes},
                         Row{"temporaries", kTempArena, MemoryUse::kDevice, &s.temp, &p.temp_bytes},
                         Row{"constants", kConstArena, MemoryUse::kDevice, &s.constants, &p.const_bytes},
                         Row{"inputs and outputs", kHostArena, MemoryUse::kHost, &s.host, &p.host_bytes}}) {
    *row.bytes = row.id == kStateArena ? s.bundle.state_bytes : Largest(s, row.id);
    Status status = CreateArena(*s.device, row.name, *row.bytes, row.use, Ranges(s, row.id), row.arena);
    if (!status.ok()) return status;
  }
  if (Status status = UploadAll(*s.device, s.stager, s.constants, mapped.const_data); !status.ok()) return status;
  if (Status status = ZeroFill(*s.device, s.stager, s.state); !status.ok()) return status;
  return s.bundle.has_state_values ? UploadAll(*s.device, s.stager, s.state, mapped.state_values) : Status();
}

// One name in several entries is one binding, so it has one type.
Status CheckResidents(const SessionImpl& s) {
  std::map<std::string, const Signature*> seen;
  for (const Entry& entry : s.entries()) {
    for (const Signature& r : entry.residents) {
      const auto [it, fresh] = seen.emplace(r.name, &r);
      if (fresh || (it->second->dtype == r.dtype && it->second->dims == r.dims)) continue;
      return Status(Code::kDataLoss, "bundle: resident " + r.name + " is " + TypeText(r.dtype, r.dims) + " and " +
                                         TypeText(it->second->dtype, it->second->dims));
    }
  }
  return Status();
}

}  // namespace

StatusOr<Session> Device::Load(std::span<const uint8_t> bytes, Trust trust) const {
  if (Status s = state_->Alive(); !s.ok()) return s;
  StatusOr<MappedBundle> mapped = MapBundle(bytes.data(), bytes.size());
  if (!mapped.ok()) return mapped.status();
  StatusOr<size_t> variant = ChooseVariant(*state_, mapped->bundle, trust);
  if (!variant.ok()) return variant.status();
  auto impl = std::make_unique<SessionImpl>(state_);
  impl->trust = trust;
  impl->bundle = std::move(mapped->bundle);
  impl->variant = *variant;
  impl->recordings.resize(impl->entries().size());
  if (Status s = CheckResidents(*impl); !s.ok()) return s;
  if (Status s = CreatePipelines(*impl); !s.ok()) return s;
  if (Status s = CreateCommandPool(*state_, &impl->pool, &impl->fence); !s.ok()) return s;
  if (Status s = CreateArenas(*impl, *mapped); !s.ok()) return s;
  return Session(std::move(impl));
}

SessionImpl::~SessionImpl() {
  const VkDevice d = device->device;
  for (Recording& recording : recordings) DestroyRecording(*this, &recording);
  for (const Pipeline& p : pipelines) vkDestroyPipeline(d, p.pipeline, nullptr);
  for (const auto& [params, layout] : layouts) {
    vkDestroyPipelineLayout(d, layout.layout, nullptr);
    vkDestroyDescriptorSetLayout(d, layout.set_layout, nullptr);
  }
  vkDestroyCommandPool(d, pool, nullptr);
  vkDestroyFence(d, fence, nullptr);
  DestroyStager(*device, &stager);
  for (Arena* arena : {&state, &temp, &constants, &host}) DestroyArena(*device, arena);
  for (auto& [name, arena] : residents) DestroyArena(*device, &arena);
}

}  // namespace agc::rt
