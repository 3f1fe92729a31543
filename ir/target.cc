#include "ir/target.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "ir/base/file.h"
#include "ir/scalar_op.h"

namespace agc {
namespace {

struct Field {
  absl::string_view key;
  int64_t Target::*member;
};
constexpr Field kFields[] = {
    {"shared_bytes", &Target::shared_bytes},       {"max_invocations", &Target::max_invocations},
    {"max_local_x", &Target::max_local_x},         {"max_local_y", &Target::max_local_y},
    {"max_local_z", &Target::max_local_z},         {"max_groups_x", &Target::max_groups_x},
    {"max_groups_y", &Target::max_groups_y},       {"max_groups_z", &Target::max_groups_z},
    {"storage_buffers", &Target::storage_buffers}, {"storage_range", &Target::storage_range},
    {"offset_align", &Target::offset_align},       {"push_constant_bytes", &Target::push_constant_bytes},
    {"subgroup_size", &Target::subgroup_size},     {"subgroup_min", &Target::subgroup_min},
    {"subgroup_max", &Target::subgroup_max},       {"compute_units", &Target::compute_units},
};

constexpr absl::string_view kLavapipe = R"(name = "lavapipe"
kind = cpu
shared_bytes = 32768
max_invocations = 1024
max_local_x = 1024
max_local_y = 1024
max_local_z = 1024
storage_buffers = 1024
storage_range = 134217728
offset_align = 16
push_constant_bytes = 256
subgroup_size = 8
subgroup_min = 8
subgroup_max = 8
compute_units = 2
features = buffer_device_address, rounding_rte_f32, rounding_rte_f64, shader_float16, shader_float64, shader_int16, shader_int64, shader_int8, signed_zero_inf_nan_preserve_f32, signed_zero_inf_nan_preserve_f64, storage_16bit, storage_8bit, subgroup_arithmetic, subgroup_shuffle
)";
constexpr absl::string_view kH200 = R"(name = "NVIDIA H200"
kind = gpu
shared_bytes = 49152
max_invocations = 1024
max_local_x = 1024
max_local_y = 1024
max_local_z = 64
max_groups_x = 2147483647
storage_buffers = 1024
storage_range = 4294967295
offset_align = 16
push_constant_bytes = 256
subgroup_size = 32
subgroup_min = 32
subgroup_max = 32
compute_units = 132
features = buffer_device_address, denorm_preserve_f32, denorm_preserve_f64, rounding_rte_f32, rounding_rte_f64, shader_float16, shader_float64, shader_int16, shader_int64, shader_int8, signed_zero_inf_nan_preserve_f32, signed_zero_inf_nan_preserve_f64, storage_16bit, storage_8bit, subgroup_arithmetic, subgroup_shuffle
)";

absl::Status CheckExpand(const Target& t) {
  for (const std::string& name : t.expand) {
    const ScalarOp* op = FindScalarOp(name);
    if (op != nullptr && op->expand != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("expand has ", name, op == nullptr ? ", which is no scalar op" : ", which has no expansion"));
  }
  return absl::OkStatus();
}

absl::Status SetField(Target& t, absl::string_view key, absl::string_view value) {
  if (key == "name") {
    t.name = std::string(absl::StripSuffix(absl::StripPrefix(value, "\""), "\""));
    return absl::OkStatus();
  }
  if (key == "kind") {
    if (value != "cpu" && value != "gpu")
      return absl::InvalidArgumentError(absl::StrCat("kind is ", value, ", expected cpu or gpu"));
    t.kind = value == "cpu" ? DeviceKind::kCpu : DeviceKind::kGpu;
    return absl::OkStatus();
  }
  if (key == "features" || key == "expand") {
    std::vector<std::string>& list = key == "expand" ? t.expand : t.features;
    list.clear();
    for (absl::string_view f : absl::StrSplit(value, ',', absl::SkipWhitespace()))
      list.emplace_back(absl::StripAsciiWhitespace(f));
    std::sort(list.begin(), list.end());
    return CheckExpand(t);
  }
  const auto* field =
      std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) { return f.key == key; });
  if (field == std::end(kFields)) return absl::InvalidArgumentError(absl::StrCat("unknown key ", key));
  int64_t number = 0;
  if (!absl::SimpleAtoi(value, &number) || number < 0) {
    return absl::InvalidArgumentError(absl::StrCat(key, " is \"", value, "\", expected a whole number"));
  }
  t.*(field->member) = number;
  return absl::OkStatus();
}

}  // namespace

bool Target::has(absl::string_view feature) const {
  return std::binary_search(features.begin(), features.end(), feature);
}

absl::string_view StorageFeature(DType stored) {
  const int64_t bytes = SizeOf(stored);
  return bytes == 1 ? "storage_8bit" : bytes == 2 ? "storage_16bit" : "";
}

bool Target::expands(absl::string_view scalar_op) const {
  return std::binary_search(expand.begin(), expand.end(), scalar_op);
}

absl::StatusOr<Target> ParseTarget(absl::string_view text) {
  Target target;
  absl::ConsumePrefix(&text, kByteOrderMark);
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    const std::pair<absl::string_view, absl::string_view> kv = absl::StrSplit(line, absl::MaxSplits('=', 1));
    const absl::Status s =
        SetField(target, absl::StripAsciiWhitespace(kv.first), absl::StripAsciiWhitespace(kv.second));
    if (!s.ok()) return absl::InvalidArgumentError(absl::StrCat("target:", line_number, ": error: ", s.message()));
  }
  return target;
}

std::string ToString(const Target& t) {
  std::string out = absl::StrCat("name = \"", t.name, "\"\nkind = ", t.cpu() ? "cpu" : "gpu", "\n");
  for (const Field& f : kFields) absl::StrAppend(&out, f.key, " = ", t.*(f.member), "\n");
  absl::StrAppend(&out, "features = ", absl::StrJoin(t.features, ", "), "\n");
  absl::StrAppend(&out, "expand = ", absl::StrJoin(t.expand, ", "), "\n");
  return out;
}

absl::StatusOr<Target> FakeTarget(absl::string_view name) {
  if (name == "lavapipe") return ParseTarget(kLavapipe);
  if (name == "h200") return ParseTarget(kH200);
  if (name == "tiny") return Target{};
  return absl::NotFoundError(absl::StrCat("no built-in target ", name, ", expected lavapipe, h200 or tiny"));
}

}  // namespace agc
