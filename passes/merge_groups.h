// The second half of form-groups: groups beside each other become one kernel where a family computes both. They are
// producer and consumer, or siblings that read the same data:
//   %0 = reduce_sum %g {axes = [0]}   %1 = mul %g, %x   %2 = reduce_sum %1 {axes = [0]}    =>   all three: group 0
#pragma once
#include <string>
#include <vector>

#include "passes/fusion_graph.h"
#include "passes/pass.h"

namespace agc {

// Why a group does not share a kernel with one whose values it reads, by group number.
struct NotFused {
  int producer = 0, consumer = 0;
  std::string why = {};
};

// `work` of every group, updated.
std::vector<NotFused> MergeGroups(FusionGraph& graph, const PassContext& context, std::vector<double>& work);

}  // namespace agc
