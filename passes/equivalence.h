// Whether two programs compute the same, by evaluating both on random inputs: what --check-equivalence compares.
//   ManagerOptions options{.check_equivalence = true, .equivalent = SameMeaning};
// Graphs that cannot be evaluated (past the primitive stage, or with `gradient` ops) are not compared.
#pragma once
#include "absl/status/status.h"
#include "ir/program.h"

namespace agc {

// Graphs are matched by name, outputs and states too; floats agree within the rounding of their dtype over a few
// operations. The error names graph, output and element.
absl::Status SameMeaning(const Program& before, const Program& after);

}  // namespace agc
