// Whether ops make one kernel: what form-groups asks before it puts them together, with the reason where they do not.
//   const Fit fit = FitOf(graph, ops, context, /*most_work=*/1e6);   // fit.refused: "no schedule family ..."
#pragma once
#include <string>

#include "passes/fusion_graph.h"
#include "passes/pass.h"

namespace agc {

struct Fit {
  std::string refused = {};  // empty: they do
  double work = 0;           // scalar operations
  bool ok() const { return refused.empty(); }
};

// Some schedule family computes `ops` in one kernel with the bindings that the target has, and no more than
// `most_work`. `alike`: and every input is read at the same place by all of them, so that one workgroup finds it in its
// cache.
Fit FitOf(const FusionGraph& graph, const OpSet& ops, const PassContext& context, double most_work, bool alike = false);

}  // namespace agc
