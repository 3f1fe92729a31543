// assign-storage: how the elements of every buffer lie in memory. Row-major throughout; a temporary whose elements the
// device cannot store (8 or 16 bits without the storage feature) is kept in 32 bits.
//   buffer %b0: bool[8] kind temp   =>   buffer %b0: bool[8] kind temp stored u32     (no storage_8bit)
#include "absl/strings/str_cat.h"
#include "passes/pass.h"

namespace agc {
namespace {

// The storage feature that buffers of a dtype need; empty: none.
absl::string_view StorageFeature(DType t) {
  switch (SizeOf(t)) {
    case 1:
      return "storage_8bit";
    case 2:
      return "storage_16bit";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<bool> AssignStorage(Program& program, PassContext& context) {
  bool changed = false;
  for (Graph& graph : program.graphs) {
    for (Buffer& row : graph.buffers) {
      const absl::string_view feature = StorageFeature(row.stored);
      if (feature.empty() || context.target.has(feature)) continue;
      if (row.kind != BufferKind::kTemp && row.kind != BufferKind::kScratch) {
        return ErrorAt(row.loc,
                       absl::StrCat("%", row.name, " is ", Name(row.type.dtype), ", and ", context.target.name,
                                    " has no ", feature, "; cast it to a 32-bit type outside the graph"),
                       absl::StatusCode::kUnimplemented);
      }
      row.stored = IsFloat(row.stored) ? DType::kF32 : IsSigned(row.stored) ? DType::kI32 : DType::kU32;
      changed = true;
    }
  }
  return changed;
}

}  // namespace agc
