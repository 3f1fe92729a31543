// What form-groups decided, read back: which ops share a kernel, and which values leave one.
#pragma once
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "ir/lowering.h"

namespace agc {

struct Group {
  std::vector<OpId> ops = {};          // ascending
  std::vector<ValueRef> outputs = {};  // values used outside the group, ascending
};

// True for ops that a kernel computes; false for what a graph is given (input, state, constant, blob) and for `get`.
bool IsComputed(const Op& op);

// The groups in an order in which each comes after those it reads. Ops without a group (-1) are one each. Fails if
// groups depend on each other in a circle.
absl::StatusOr<std::vector<Group>> GroupsOf(const Graph& graph);

}  // namespace agc
