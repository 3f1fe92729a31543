// Expansion of composite ops, for the pass `decompose` and for autograd, which differentiates composites without a
// gradient rule through their decomposition.
//   AGC_ASSIGN_OR_RETURN(bool changed, ExpandComposites(program, graph, [](OpId) { return true; }));
#pragma once
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "ir/program.h"

namespace agc {

// Replaces the composites of `graph` for which `which` holds by their decompositions, one level deep where `deep` is
// false; else until what they expand to is primitive. Locations and roles are inherited.
absl::StatusOr<bool> ExpandComposites(Program& program, Graph& graph, absl::FunctionRef<bool(OpId)> which, bool deep);

}  // namespace agc
