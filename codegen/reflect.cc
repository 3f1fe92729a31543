#include "codegen/reflect.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "codegen/spirv_access.h"
#include "ir/base/status.h"
#include "spirv_cross/spirv_cross_c.h"

namespace agc {
namespace {

using Context = std::unique_ptr<spvc_context_s, void (*)(spvc_context)>;

absl::Status Failed(spvc_context context) {
  return absl::UnimplementedError(
      absl::StrCat("SPIRV-Cross cannot read the module: ", spvc_context_get_last_error_string(context)));
}

void ReadBindings(spvc_compiler compiler, absl::Span<const spvc_reflected_resource> buffers, Reflection& out) {
  for (const spvc_reflected_resource& buffer : buffers) {
    ReflectedBinding entry;
    entry.set = spvc_compiler_get_decoration(compiler, buffer.id, SpvDecorationDescriptorSet);
    entry.binding = spvc_compiler_get_decoration(compiler, buffer.id, SpvDecorationBinding);
    const SpvDecoration* flags = nullptr;
    size_t count = 0;
    spvc_compiler_get_buffer_block_decorations(compiler, buffer.id, &flags, &count);
    entry.readonly = std::count(flags, flags + count, SpvDecorationNonWritable) > 0;
    entry.writeonly = std::count(flags, flags + count, SpvDecorationNonReadable) > 0;
    out.bindings.push_back(entry);
  }
  std::ranges::sort(out.bindings, {}, [](const ReflectedBinding& b) { return std::pair(b.set, b.binding); });
}

void ReadPushConstants(spvc_compiler compiler, const spvc_reflected_resource& block, Reflection& out) {
  const spvc_type type = spvc_compiler_get_type_handle(compiler, block.base_type_id);
  size_t bytes = 0;
  spvc_compiler_get_declared_struct_size(compiler, type, &bytes);
  out.push_constant_bytes = static_cast<uint32_t>(bytes);
  for (unsigned i = 0; i < spvc_type_get_num_member_types(type); ++i) {
    unsigned offset = 0, stride = 0;
    size_t size = 0;
    spvc_compiler_type_struct_member_offset(compiler, type, i, &offset);
    spvc_compiler_get_declared_struct_member_size(compiler, type, i, &size);
    const spvc_type member = spvc_compiler_get_type_handle(compiler, spvc_type_get_member_type(type, i));
    if (spvc_type_get_num_array_dimensions(member) > 0) {
      spvc_compiler_type_struct_member_array_stride(compiler, type, i, &stride);
    }
    const size_t count = stride > 0 ? size / stride : 1;
    for (size_t k = 0; k < count; ++k) out.push_constant_offsets.push_back(static_cast<uint32_t>(offset + k * stride));
  }
}

absl::Status Differs(const rt::Kernel& kernel, absl::string_view what, absl::string_view module,
                     absl::string_view record) {
  return absl::InternalError(absl::StrCat("kernel ", kernel.name, ": ", what, " is ", module, " in the module and ",
                                          record, " in the record"));
}

absl::Status CheckBindings(const rt::Kernel& kernel, const Reflection& found) {
  if (found.bindings.size() != kernel.params.size()) {
    return Differs(kernel, "the number of storage buffers", absl::StrCat(found.bindings.size()),
                   absl::StrCat(kernel.params.size()));
  }
  for (uint32_t i = 0; i < kernel.params.size(); ++i) {
    const ReflectedBinding& b = found.bindings[i];
    if (b.set != 0 || b.binding != i) {
      return Differs(kernel, absl::StrCat("the place of parameter ", i),
                     absl::StrCat("set ", b.set, " binding ", b.binding), absl::StrCat("set 0 binding ", i));
    }
    const bool reads = kernel.params[i] != rt::Access::kWrite, writes = kernel.params[i] != rt::Access::kRead;
    if (b.readonly && writes) return Differs(kernel, absl::StrCat("parameter ", i), "readonly", "written");
    if (b.writeonly && reads) return Differs(kernel, absl::StrCat("parameter ", i), "writeonly", "read");
  }
  return absl::OkStatus();
}

absl::Status CheckPushConstants(const rt::Kernel& kernel, rt::BufferAbi abi, const Reflection& found) {
  if (found.push_constant_bytes != kernel.push_constant_bytes) {
    return Differs(kernel, "the size of the push constants", absl::StrCat(found.push_constant_bytes, " bytes"),
                   absl::StrCat(kernel.push_constant_bytes, " bytes"));
  }
  if (abi != rt::BufferAbi::kAddresses) return absl::OkStatus();
  if (!found.bindings.empty()) {
    return Differs(kernel, "the number of storage buffers", absl::StrCat(found.bindings.size()),
                   "0 (its parameters are addresses)");
  }
  std::vector<uint32_t> expected;
  for (uint32_t i = 0; i < kernel.params.size(); ++i) expected.push_back(8 * i);
  if (found.push_constant_offsets == expected) return absl::OkStatus();
  return Differs(kernel, "the list of address offsets",
                 absl::StrCat("[", absl::StrJoin(found.push_constant_offsets, ", "), "]"),
                 absl::StrCat("[", absl::StrJoin(expected, ", "), "]"));
}

const char* AccessName(uint8_t bits) {
  constexpr const char* kNames[] = {"not used", "read", "written", "read and written"};
  return kNames[bits & 3];
}

// The hazards of a plan follow from the record: an access that it does not name would miss its barrier.
absl::Status CheckAccess(const rt::Kernel& kernel, rt::BufferAbi abi) {
  const ModuleAccess found = ScanAccess(kernel.spirv);
  const bool addresses = abi == rt::BufferAbi::kAddresses;
  const std::map<uint32_t, uint8_t>& used = addresses ? found.addresses : found.bindings;
  for (const auto& [place, bits] : used) {
    const uint32_t i = addresses ? place / 8 : place;
    if (i >= kernel.params.size()) {
      return Differs(kernel, absl::StrCat("parameter ", i), AccessName(bits), "not there");
    }
    const auto recorded = static_cast<uint8_t>(kernel.params[i]);
    if ((bits & ~recorded) != 0) {
      return Differs(kernel, absl::StrCat("parameter ", i), AccessName(bits), AccessName(recorded));
    }
  }
  constexpr auto kWrites = static_cast<uint8_t>(rt::Access::kWrite);
  for (uint32_t i = 0; i < kernel.params.size() && found.complete; ++i) {
    auto it = used.find(addresses ? 8 * i : i);
    const uint8_t bits = it == used.end() ? 0 : it->second;
    if ((static_cast<uint8_t>(kernel.params[i]) & kWrites) != 0 && (bits & kWrites) == 0) {
      return Differs(kernel, absl::StrCat("parameter ", i), AccessName(bits), "written");
    }
  }
  return absl::OkStatus();
}

std::string SizeText(const std::array<uint32_t, 3>& size) { return absl::StrJoin(size, "x"); }

}  // namespace

absl::StatusOr<Reflection> ReflectSpirv(absl::Span<const uint32_t> words) {
  spvc_context raw = nullptr;
  if (spvc_context_create(&raw) != SPVC_SUCCESS) return absl::ResourceExhaustedError("out of memory");
  const Context context(raw, spvc_context_destroy);
  spvc_parsed_ir parsed = nullptr;
  spvc_compiler compiler = nullptr;
  spvc_resources resources = nullptr;
  if (spvc_context_parse_spirv(raw, words.data(), words.size(), &parsed) != SPVC_SUCCESS ||
      spvc_context_create_compiler(raw, SPVC_BACKEND_NONE, parsed, SPVC_CAPTURE_MODE_TAKE_OWNERSHIP, &compiler) !=
          SPVC_SUCCESS ||
      spvc_compiler_create_shader_resources(compiler, &resources) != SPVC_SUCCESS) {
    return Failed(raw);
  }
  Reflection out;
  const spvc_reflected_resource* list = nullptr;
  size_t count = 0;
  if (spvc_resources_get_resource_list_for_type(resources, SPVC_RESOURCE_TYPE_STORAGE_BUFFER, &list, &count) !=
      SPVC_SUCCESS) {
    return Failed(raw);
  }
  ReadBindings(compiler, {list, count}, out);
  if (spvc_resources_get_resource_list_for_type(resources, SPVC_RESOURCE_TYPE_PUSH_CONSTANT, &list, &count) !=
      SPVC_SUCCESS) {
    return Failed(raw);
  }
  if (count > 0) ReadPushConstants(compiler, list[0], out);
  for (unsigned i = 0; i < 3; ++i) {
    out.local_size[i] = spvc_compiler_get_execution_mode_argument_by_index(compiler, SpvExecutionModeLocalSize, i);
  }
  return out;
}

absl::Status CheckReflection(const rt::Kernel& kernel, rt::BufferAbi abi, bool* parsed) {
  const absl::StatusOr<Reflection> found = ReflectSpirv(kernel.spirv);
  if (parsed != nullptr) *parsed = found.ok();
  if (found.ok()) {
    if (found->local_size != kernel.local_size) {
      return Differs(kernel, "the workgroup size", SizeText(found->local_size), SizeText(kernel.local_size));
    }
    if (abi == rt::BufferAbi::kBindings) AGC_RETURN_IF_ERROR(CheckBindings(kernel, *found));
    AGC_RETURN_IF_ERROR(CheckPushConstants(kernel, abi, *found));
  }
  return CheckAccess(kernel, abi);
}

}  // namespace agc
