#include <algorithm>
#include <set>

#include "runtime/session_impl.h"
#include "runtime/spirv_scan.h"

namespace agc::rt {
namespace {

std::string Num(uint64_t n) { return std::to_string(n); }
Status Unmet(std::string message) { return Status(Code::kResourceExhausted, std::move(message)); }

// SPIR-V capabilities that need a device feature; empty: every Vulkan 1.2 device has it.
struct CapabilityRow {
  uint32_t number;
  const char* feature;
};
constexpr CapabilityRow kCapabilities[] = {
    {0, ""},                      // Matrix
    {1, ""},                      // Shader
    {9, "shader_float16"},        // Float16
    {10, "shader_float64"},       // Float64
    {11, "shader_int64"},         // Int64
    {22, "shader_int16"},         // Int16
    {39, "shader_int8"},          // Int8
    {50, ""},                     // ImageQuery, which glslang declares generously
    {61, ""},                     // GroupNonUniform
    {62, ""},                     // GroupNonUniformVote
    {63, "subgroup_arithmetic"},  // GroupNonUniformArithmetic
    {64, ""},                     // GroupNonUniformBallot
    {65, "subgroup_shuffle"},     // GroupNonUniformShuffle
    {66, "subgroup_shuffle"},     // GroupNonUniformShuffleRelative
    {4433, "storage_16bit"},      // StorageBuffer16BitAccess
    {4448, "storage_8bit"},       // StorageBuffer8BitAccess
    // The float controls of any width; which widths, the bundle's requirements say.
    {4464, "denorm_preserve_f32"},               // DenormPreserve
    {4466, "signed_zero_inf_nan_preserve_f32"},  // SignedZeroInfNanPreserve
    {4467, "rounding_rte_f32"},                  // RoundingModeRTE
    {5347, "buffer_device_address"},             // PhysicalStorageBufferAddresses
};

Status CheckCapabilities(const DeviceState& device, const Kernel& kernel, Trust trust) {
  const StatusOr<SpirvFacts> facts = ScanSpirv(kernel.spirv);
  if (!facts.ok()) return facts.status();
  if (trust == Trust::kUntrusted && facts->HasCapability(kCapabilityPhysicalStorageBuffer)) {
    return Status(Code::kFailedPrecondition,
                  "kernel " + kernel.name + " uses raw pointers, which needs a trusted load");
  }
  for (uint32_t number : facts->capabilities) {
    const auto* row = std::find_if(std::begin(kCapabilities), std::end(kCapabilities),
                                   [&](const CapabilityRow& r) { return r.number == number; });
    if (row == std::end(kCapabilities)) {
      return Unmet("kernel " + kernel.name + " declares SPIR-V capability " + Num(number) +
                   ", which agc does not know");
    }
    if (row->feature[0] != 0 && !device.limits.Has(row->feature)) {
      return Unmet("kernel " + kernel.name + " needs the feature " + row->feature);
    }
  }
  return Status();
}

Status CheckDeclared(const DeviceState& device, const Requirements& r) {
  const Limits& l = device.limits;
  for (const std::string& feature : r.features) {
    if (!l.Has(feature)) return Unmet("it needs the feature " + feature);
  }
  struct Row {
    const char* what;
    uint64_t needs, has;
  };
  const bool bindings = r.abi == BufferAbi::kBindings;
  for (const Row& row : {Row{"bytes of shared memory", r.shared_bytes, l.shared_bytes},
                         Row{"invocations per workgroup", r.invocations, l.max_invocations},
                         Row{"storage buffers per stage", bindings ? r.storage_buffers : 0, l.storage_buffers},
                         Row{"bytes of push constants", r.push_constant_bytes, l.push_constant_bytes},
                         Row{"lanes per subgroup", r.min_subgroup_size, l.subgroup_size},
                         Row{"bytes of one storage range", bindings ? r.storage_range : 0, l.storage_range}}) {
    if (row.needs > row.has)
      return Unmet("it needs " + Num(row.needs) + " " + row.what + ", the device has " + Num(row.has));
  }
  return Status();
}

Status CheckKernelLimits(const DeviceState& device, const Kernel& k, BufferAbi abi) {
  const Limits& l = device.limits;
  const std::string where = "kernel " + k.name + ": ";
  uint64_t invocations = 1;
  for (int d = 0; d < 3; ++d) {
    invocations *= k.local_size[d];
    if (k.local_size[d] > l.max_local[d]) {
      return Unmet(where + "workgroup size " + Num(k.local_size[d]) + ", the device allows " + Num(l.max_local[d]));
    }
  }
  if (invocations > l.max_invocations) {
    return Unmet(where + Num(invocations) + " invocations per workgroup, the device allows " + Num(l.max_invocations));
  }
  if (abi == BufferAbi::kBindings && k.params.size() > l.storage_buffers) {
    return Unmet(where + Num(k.params.size()) + " storage buffers, the device allows " + Num(l.storage_buffers));
  }
  if (abi == BufferAbi::kAddresses && 8 * k.params.size() > l.push_constant_bytes) {
    return Unmet(where + Num(8 * k.params.size()) + " bytes of push constants, the device allows " +
                 Num(l.push_constant_bytes));
  }
  return Status();
}

Status CheckDispatch(const DeviceState& device, const Entry& entry, const FlatStep& step, BufferAbi abi) {
  const Limits& l = device.limits;
  const std::string where = "entry " + entry.name + ": " + step.label + ": ";
  for (int d = 0; d < 3; ++d) {
    if (step.groups[d] > l.max_groups[d]) {
      return Unmet(where + Num(step.groups[d]) + " workgroups, the device allows " + Num(l.max_groups[d]));
    }
  }
  if (abi == BufferAbi::kAddresses) return Status();
  for (const FlatArg& arg : step.args) {
    const FlatBuffer& b = entry.plan.buffers[arg.buffer];
    if (arg.size > l.storage_range) {
      return Unmet(where + "buffer " + b.name + " has " + Num(arg.size) + " bytes, one binding may have " +
                   Num(l.storage_range));
    }
    if ((b.offset + arg.offset) % l.offset_align != 0) {
      return Unmet(where + "buffer " + b.name + " is bound at byte " + Num(b.offset + arg.offset) +
                   ", the device wants multiples of " + Num(l.offset_align));
    }
  }
  return Status();
}

}  // namespace

Status MeetsRequirements(const DeviceState& device, const Bundle& bundle, const Variant& variant, Trust trust) {
  const BufferAbi abi = variant.requires_.abi;
  const std::string abi_name = abi == BufferAbi::kBindings ? "bindings" : "addresses";
  if (!device.options.abi.empty() && device.options.abi != abi_name) {
    return Status(Code::kFailedPrecondition, "its ABI is " + abi_name + ", " + device.options.abi + " was asked for");
  }
  if (abi == BufferAbi::kAddresses && trust == Trust::kUntrusted) {
    return Status(Code::kFailedPrecondition, "its ABI is addresses, which needs a trusted load");
  }
  if (abi == BufferAbi::kAddresses && !device.limits.Has("buffer_device_address")) {
    return Unmet("its ABI is addresses, which needs the feature buffer_device_address");
  }
  if (Status s = CheckDeclared(device, variant.requires_); !s.ok()) return s;
  std::set<uint32_t> kernels;
  for (const Entry& entry : variant.entries) {
    for (const FlatStep& step : entry.plan.steps) {
      if (step.kind != StepKind::kDispatch) continue;
      kernels.insert(step.kernel);
      if (Status s = CheckDispatch(device, entry, step, abi); !s.ok()) return s;
    }
  }
  for (uint32_t k : kernels) {
    if (Status s = CheckKernelLimits(device, bundle.kernels[k], abi); !s.ok()) return s;
    if (Status s = CheckCapabilities(device, bundle.kernels[k], trust); !s.ok()) return s;
  }
  return Status();
}

StatusOr<size_t> ChooseVariant(const DeviceState& device, const Bundle& bundle, Trust trust) {
  std::string text = "no variant of bundle " + bundle.module_name + " runs on " + device.name;
  Code code = Code::kOk;
  for (size_t i = 0; i < bundle.variants.size(); ++i) {
    const Status s = MeetsRequirements(device, bundle, bundle.variants[i], trust);
    if (s.ok()) return i;
    text += (i == 0 ? ": variant " : "; variant ") + Num(i) + ": " + s.message();
    if (code == Code::kOk) code = s.code();
  }
  return Status(code, text);
}

}  // namespace agc::rt
