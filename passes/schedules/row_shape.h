// What the families for reductions share: which axes are rows, which columns, and what of a nest may be cut into parts.
//   RowShape s;  if (RowShapeOf(nest, s)) ...     // softmax over j: rows = {i}, columns = {j}
#pragma once
#include <vector>

#include "passes/schedules/tools.h"

namespace agc {

// All stages are functions of the row axes; a store covers these alone (row statistics) or the columns too.
struct RowShape {
  std::vector<VarId> rows = {}, columns = {};
};

bool RowShapeOf(const Nest& nest, RowShape& shape);
// The stores of row statistics, or those that cover the columns too.
std::vector<const NestStore*> StoresOver(const Nest& nest, const RowShape& shape, bool rows_only);
// The longest reduction that looks at all its elements; the others are short, but how short is known at run time only.
int64_t LongestReduction(const Nest& nest);
// Whether workgroups may share the reductions of a row: none needs the result of another one before it starts, nor does
// what is stored along the row, and partial results are words that scratch memory of every device holds.
bool Splittable(const Nest& nest, const RowShape& shape);

}  // namespace agc
