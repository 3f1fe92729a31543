// Merges kernels that are equal as text once names, labels and locations are left out: twelve equal layers are one
// kernel. The first of equals stays; kernels keep their order.
//   shader @k1(%x: ..) ..  shader @k2(%y: ..) ..   ->   shader @k1(%x: ..) ..
//   dispatch @k1 (%a, %b)  dispatch @k2 (%b, %c)        dispatch @k1 (%a, %b)  dispatch @k1 (%b, %c)
#include <map>
#include <string>
#include <utility>

#include "ir/text/text.h"
#include "passes/registry.h"

namespace agc {

absl::StatusOr<bool> DedupeKernels(Program& program, PassContext&) {
  std::map<std::string, uint32_t> seen;
  std::vector<uint32_t> renamed(program.kernels.size());
  std::vector<Kernel> kept;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    Kernel& kernel = program.kernels[k];
    const auto [it, inserted] = seen.try_emplace(Print(kernel, {.labels = false, .names = false}), kept.size());
    renamed[k] = it->second;
    if (inserted) kept.push_back(std::move(kernel));
  }
  const bool changed = kept.size() != program.kernels.size();
  program.kernels = std::move(kept);
  for (Graph& graph : program.graphs) {
    for (Step& step : graph.steps) {
      if (step.kind == StepKind::kDispatch) step.callee = renamed[step.callee];
    }
  }
  return changed;
}

}  // namespace agc
