#include "ir/type.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace agc {
namespace {
struct DTypeRow {
  absl::string_view name;
  int64_t bytes;
};
constexpr DTypeRow kRows[] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8}, {"i32", 4},  {"i16", 2},
                              {"i8", 1},  {"u64", 8}, {"u32", 4}, {"u16", 2},  {"u8", 1},  {"bool", 1}, {"index", 8}};
}  // namespace

absl::string_view Name(DType dtype) { return kRows[static_cast<int>(dtype)].name; }
int64_t SizeOf(DType dtype) { return kRows[static_cast<int>(dtype)].bytes; }

std::optional<DType> DTypeNamed(absl::string_view name) {
  for (int i = 0; i < kTensorDTypes; ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

int64_t TensorType::elements() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

std::string ToString(const TensorType& type) {
  return absl::StrCat(Name(type.dtype), "[", absl::StrJoin(type.dims, ","), "]");
}

std::string ToString(const Types& types) {
  if (types.size() == 1) return ToString(types[0]);
  const auto each = [](std::string* out, const TensorType& t) { absl::StrAppend(out, ToString(t)); };
  return absl::StrCat("(", absl::StrJoin(types, ", ", each), ")");
}

}  // namespace agc
