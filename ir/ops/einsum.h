// Einstein summation: an equation taken apart, and its operands contracted pair by pair.
//   ParseEinsum("bij,bjk->bik", types)->output       // labels b, i, k
#pragma once
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/build_shape.h"

namespace agc {

// What an axis is called: a letter, or -1, -2, ... for the axes of an ellipsis, counted from its end.
using Labels = absl::InlinedVector<int, 6>;

struct EinsumPlan {
  std::vector<Labels> operands = {};
  Labels output = {};
  std::map<int, int64_t> extents = {};  // by label; axes of 1 broadcast
  Dims OutputDims() const;
};

// The equation against the operands' types. Without "->" the output has the ellipsis and then, sorted, the letters that
// occur once, as in numpy; an ellipsis that an explicit output leaves out is summed over, as in torch. The error says
// what is wrong, without the op's name.
absl::StatusOr<EinsumPlan> ParseEinsum(absl::string_view equation, absl::Span<const TensorType> types);

// The value, built of diagonals, reductions, products and matrix products. Operands are numbers of one dtype. Pairs are
// chosen greedily, the one that grows least first; sums of f16 and bf16 over several steps are kept in f32.
Value BuildEinsum(const EinsumPlan& plan, absl::Span<const Value> xs);

}  // namespace agc
