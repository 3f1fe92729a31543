// From ops to a nest, by asking each op for its value at an output index. Used by lower-to-nests for groups and by the
// graph evaluator for single ops.
//   const auto in_group = [&](OpId id) { return id == relu || id == add; };
//   AGC_ASSIGN_OR_RETURN(LoweredNest low, LowerToNest(graph, {{relu, 0}}, in_group));
#pragma once
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/graph.h"
#include "ir/nest.h"

namespace agc {

// One tensor of the graph: an op's result, or one element of a tuple op's.
struct ValueRef {
  OpId op = {};
  int part = 0;
  friend bool operator==(const ValueRef&, const ValueRef&) = default;
  friend auto operator<=>(const ValueRef&, const ValueRef&) = default;
};
// The tensor that an operand stands for: looks through `get`.
ValueRef Resolve(const Graph& graph, OpId id);
const TensorType& TypeOf(const Graph& graph, ValueRef value);

struct LoweredNest {
  Nest nest;                          // parameters: inputs, then outputs as requested
  std::vector<ValueRef> inputs = {};  // what the input parameters stand for, in order of first use
};

// The nest that computes `outputs`. Ops for which `inlined` holds are evaluated where they are read; all others are
// buffer parameters, but for splat constants, which become literals. Fails on ops without `at`, naming them.
// A stage is made for every reduction (key: op, index, guard). Outputs that another output reads at plain axes share
// those axes, the rest those of an output with the same leading extents, if any; else they get axes of their own.
absl::StatusOr<LoweredNest> LowerToNest(const Graph& graph, absl::Span<const ValueRef> outputs,
                                        absl::FunctionRef<bool(OpId)> inlined);

// The factors of a product. A cast of a product has none: the product rounds or wraps before the cast.
bool SplitProduct(Expr value, Expr& left, Expr& right);

// Turns sums of products whose two sides mention different axes into contract stages. Returns whether any was.
bool FormContractions(Nest& nest);

}  // namespace agc
