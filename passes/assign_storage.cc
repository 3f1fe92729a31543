// assign-storage: how the elements of every buffer lie in memory. Row-major throughout; a temporary whose elements the
// device cannot store (8 or 16 bits without the storage feature) is kept in 32 bits, unless it is copied bytewise. What
// the host sees keeps its form: legalize packs it.
//   buffer %b0: bool[8] kind temp   =>   buffer %b0: bool[8] kind temp stored u32     (no storage_8bit)
#include <set>

#include "passes/pass.h"

namespace agc {
namespace {

std::set<int32_t> Copied(const Graph& graph) {
  std::set<int32_t> buffers;
  for (const Step& step : graph.steps) {
    if (step.kind == StepKind::kCopy) buffers.insert(step.args.begin(), step.args.end());
  }
  return buffers;
}

}  // namespace

absl::StatusOr<bool> AssignStorage(Program& program, PassContext& context) {
  bool changed = false;
  for (Graph& graph : program.graphs) {
    const std::set<int32_t> copied = Copied(graph);
    for (size_t i = 0; i < graph.buffers.size(); ++i) {
      Buffer& row = graph.buffers[i];
      const bool temporary = row.kind == BufferKind::kTemp || row.kind == BufferKind::kScratch;
      if (!temporary || copied.count(static_cast<int32_t>(i)) != 0) continue;
      if (StorageFeature(row.stored).empty() || context.target.has(StorageFeature(row.stored))) continue;
      row.stored = IsFloat(row.stored) ? DType::kF32 : IsSigned(row.stored) ? DType::kI32 : DType::kU32;
      changed = true;
    }
  }
  return changed;
}

}  // namespace agc
