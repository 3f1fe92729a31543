#include "runtime/bundle_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/plan_check.h"
#include "runtime/spirv_scan.h"

namespace agc::rt {
namespace {

Status Bad(std::string message) { return Status(Code::kDataLoss, "bundle: " + std::move(message)); }
std::string Num(uint64_t n) { return std::to_string(n); }

Status CheckState(const Bundle& bundle, const State& s) {
  uint64_t bytes = 0;
  if (static_cast<int>(s.dtype) >= kDTypeCount || !HostBytes(s.dtype, s.dims, &bytes)) {
    return Bad("state " + s.name + ": impossible type");
  }
  if (s.offset % 16 != 0 || s.offset > bundle.state_bytes || bytes > bundle.state_bytes - s.offset) {
    return Bad("state " + s.name + ": bytes [" + Num(s.offset) + ", +" + Num(bytes) + ") of " +
               Num(bundle.state_bytes));
  }
  return Status();
}

Status CheckStates(const Bundle& bundle) {
  std::set<std::string> names;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const State& s : bundle.states) {
    if (Status status = CheckState(bundle, s); !status.ok()) return status;
    if (!names.insert(s.name).second) return Bad("two states are named " + s.name);
    uint64_t bytes = 0;
    HostBytes(s.dtype, s.dims, &bytes);
    if (bytes > 0) ranges.push_back({s.offset, s.offset + bytes});
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return Bad("two states share byte " + Num(ranges[i].first));
  }
  return Status();
}

Status CheckKernel(const Kernel& k) {
  const std::string where = "kernel " + k.name + ": ";
  StatusOr<SpirvFacts> facts = ScanSpirv(k.spirv);
  if (!facts.ok()) return Bad(where + facts.status().message());
  if (facts->other_sets || (!facts->bindings.empty() && facts->bindings.back() >= k.params.size())) {
    return Bad(where + "its module binds more than " + Num(k.params.size()) + " parameters in set 0");
  }
  for (Access a : k.params) {
    if (static_cast<int>(a) < 1 || static_cast<int>(a) > 3) return Bad(where + "unknown access");
  }
  if (k.push_constant_bytes % 4 != 0 || k.push_constant_bytes > 65536) return Bad(where + "push constant size");
  for (int d = 0; d < 3; ++d) {
    if (k.local_size[d] == 0 || k.local_size[d] > 65536) return Bad(where + "impossible workgroup size");
    if (facts->local_size[0] != 0 && facts->local_size[d] != k.local_size[d]) {
      return Bad(where + "workgroup size differs from its module's");
    }
  }
  return Status();
}

struct SignatureRules {
  const char* role = "";
  BufferKind kind = BufferKind::kInput;
  uint64_t slots = 1;  // values stored
};

Status CheckSignature(const Entry& entry, const Signature& s, const SignatureRules& rules) {
  const std::string where = "entry " + entry.name + ": " + rules.role + " " + s.name + ": ";
  uint64_t bytes = 0;
  if (static_cast<int>(s.dtype) >= kDTypeCount || !HostBytes(s.dtype, s.dims, &bytes)) {
    return Bad(where + "impossible type");
  }
  if (s.buffer >= entry.plan.buffers.size()) return Bad(where + "no buffer " + Num(s.buffer));
  const FlatBuffer& b = entry.plan.buffers[s.buffer];
  if (b.kind != rules.kind) return Bad(where + "its buffer is of kind " + BufferKindName(b.kind));
  if (bytes > 0 && rules.slots > b.size / bytes) {
    return Bad(where + Num(rules.slots) + " values of " + TypeText(s.dtype, s.dims) + " in a buffer of " + Num(b.size) +
               " bytes");
  }
  return Status();
}

// Bytes that no step writes would reach the user from an earlier run.
Status CheckWritten(const Entry& entry, const Signature& s) {
  uint64_t bytes = 0;
  HostBytes(s.dtype, s.dims, &bytes);
  if (bytes == 0) return Status();
  for (const FlatStep& step : entry.plan.steps) {
    for (const FlatArg& arg : step.args) {
      if (arg.buffer == s.buffer && arg.access != Access::kRead) return Status();
    }
  }
  return Bad("entry " + entry.name + ": output " + s.name + " is never written");
}

Status CheckSignatures(const Entry& entry) {
  std::set<std::string> names;
  std::set<uint32_t> buffers;
  const auto check = [&](const std::vector<Signature>& list, SignatureRules rules) {
    for (const Signature& s : list) {
      if (rules.kind == BufferKind::kOutput) rules.slots = s.each_step ? entry.ring : 1;
      if (Status status = CheckSignature(entry, s, rules); !status.ok()) return status;
      if (!buffers.insert(s.buffer).second) return Bad("entry " + entry.name + ": " + s.name + " shares its buffer");
      if (rules.kind == BufferKind::kOutput) continue;
      if (!names.insert(s.name).second) return Bad("entry " + entry.name + ": two arguments are named " + s.name);
    }
    return Status();
  };
  if (Status status = check(entry.inputs, {"input", BufferKind::kInput, 1}); !status.ok()) return status;
  if (Status status = check(entry.residents, {"resident", BufferKind::kResident, 1}); !status.ok()) return status;
  if (Status status = check(entry.params, {"param", BufferKind::kParam, entry.ring}); !status.ok()) return status;
  if (Status status = check(entry.outputs, {"output", BufferKind::kOutput, 1}); !status.ok()) return status;
  names.clear();
  for (const Signature& s : entry.outputs) {
    if (!names.insert(s.name).second) return Bad("entry " + entry.name + ": two outputs are named " + s.name);
    if (Status status = CheckWritten(entry, s); !status.ok()) return status;
  }
  return Status();
}

Status CheckRing(const Bundle& bundle, const Entry& entry) {
  const std::string where = "entry " + entry.name + ": ";
  if (entry.ring == 0) return Bad(where + "its ring has no slots");
  bool rings = !entry.params.empty();
  for (const Signature& s : entry.outputs) rings = rings || s.each_step;
  if (entry.run_index_state < 0) {
    return rings && entry.ring > 1 ? Bad(where + "a ring of " + Num(entry.ring) + " slots without a run index")
                                   : Status();
  }
  if (static_cast<size_t>(entry.run_index_state) >= bundle.states.size()) return Bad(where + "no such run index state");
  const State& index = bundle.states[entry.run_index_state];
  uint64_t bytes = 0;
  HostBytes(index.dtype, index.dims, &bytes);
  const bool integer = index.dtype == DType::kU32 || index.dtype == DType::kI32;
  if (!integer || bytes != 4 || !index.hidden) return Bad(where + "its run index is no hidden 32-bit integer");
  return Status();
}

Status CheckArenas(const Bundle& bundle, const Entry& entry, uint64_t const_bytes) {
  const std::string where = "entry " + entry.name + ": ";
  const std::vector<uint64_t>& sizes = entry.plan.arena_sizes;
  if (sizes.size() != kFirstResidentArena + entry.residents.size()) return Bad(where + "wrong number of arenas");
  if (sizes[kStateArena] > bundle.state_bytes) return Bad(where + "its state arena is larger than the states");
  if (sizes[kConstArena] > const_bytes) return Bad(where + "its constants are not in the file");
  for (uint64_t size : sizes) {
    if (size > uint64_t{1} << 48) return Bad(where + "an arena of " + Num(size) + " bytes");
  }
  for (size_t i = 0; i < entry.residents.size(); ++i) {
    const FlatBuffer& b = entry.plan.buffers[entry.residents[i].buffer];
    if (b.arena != kFirstResidentArena + i || b.offset != 0) {
      return Bad(where + "resident " + entry.residents[i].name + " does not start its own arena");
    }
  }
  return Status();
}

Status CheckEntry(const Bundle& bundle, const Variant& variant, const Entry& entry, uint64_t const_bytes) {
  if (Status status = CheckSignatures(entry); !status.ok()) return status;
  if (Status status = CheckRing(bundle, entry); !status.ok()) return status;
  if (Status status = CheckArenas(bundle, entry, const_bytes); !status.ok()) return status;
  if (Status status = CheckPlan(entry.plan, {.kernels = &bundle.kernels}); !status.ok()) {
    return Bad("entry " + entry.name + ": " + status.message());
  }
  for (const FlatStep& step : entry.plan.steps) {
    if (step.kind != StepKind::kDispatch || variant.requires_.abi == BufferAbi::kBindings) continue;
    const Kernel& k = bundle.kernels[step.kernel];
    if (k.push_constant_bytes != 8 * k.params.size()) {
      return Bad("kernel " + k.name + ": " + Num(k.push_constant_bytes) + " bytes of push constants for " +
                 Num(k.params.size()) + " addresses");
    }
  }
  return Status();
}

}  // namespace

bool HostBytes(DType dtype, const std::vector<int64_t>& dims, uint64_t* bytes) {
  constexpr uint64_t kMost = uint64_t{1} << 48;
  *bytes = DTypeSize(dtype);
  for (int64_t d : dims) {
    if (d < 0) return false;
  }
  for (int64_t d : dims) {
    if (d == 0) *bytes = 0;
  }
  for (int64_t d : dims) {
    if (*bytes > 0 && static_cast<uint64_t>(d) > kMost / *bytes) return false;
    *bytes *= static_cast<uint64_t>(d);
  }
  return true;
}

std::string TypeText(DType dtype, const std::vector<int64_t>& dims) {
  std::string text = DTypeName(dtype);
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "[" : ",") + std::to_string(dims[i]);
  return text + (dims.empty() ? "[]" : "]");
}

Status CheckBundle(const Bundle& bundle, uint64_t const_bytes, uint64_t state_value_bytes) {
  if (bundle.state_bytes > uint64_t{1} << 48) return Bad("states of " + Num(bundle.state_bytes) + " bytes");
  if (state_value_bytes != (bundle.has_state_values ? bundle.state_bytes : 0)) {
    return Bad(Num(state_value_bytes) + " bytes of state values for states of " + Num(bundle.state_bytes));
  }
  if (Status status = CheckStates(bundle); !status.ok()) return status;
  for (const Kernel& k : bundle.kernels) {
    if (Status status = CheckKernel(k); !status.ok()) return status;
  }
  if (bundle.variants.empty()) return Bad("no variants");
  for (const Variant& variant : bundle.variants) {
    if (static_cast<int>(variant.requires_.abi) > 1) return Bad("unknown buffer ABI");
    std::set<std::string> names;
    std::map<std::string, const Signature*> residents;  // bound once for all entries
    for (const Entry& entry : variant.entries) {
      if (!names.insert(entry.name).second) return Bad("two entries are named " + entry.name);
      if (Status status = CheckEntry(bundle, variant, entry, const_bytes); !status.ok()) return status;
      for (const Signature& r : entry.residents) {
        const Signature& first = *residents.emplace(r.name, &r).first->second;
        if (r.dtype == first.dtype && r.dims == first.dims) continue;
        return Bad("resident " + r.name + " is " + TypeText(first.dtype, first.dims) + " in one entry and " +
                   TypeText(r.dtype, r.dims) + " in another");
      }
    }
  }
  return Status();
}

}  // namespace agc::rt
