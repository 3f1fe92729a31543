// How many neighbouring elements an invocation may take so that each of its loads and stores is one aligned access.
//   VectorWidth(nest, {}, {{store.value, axes}, ...})   // pointwise: all axes run
#pragma once
#include <vector>

#include "passes/schedules/tools.h"

namespace agc {

// An expression of the nest, and the axes whose flattened position runs over the neighbours there.
struct RunningExpr {
  ExprId value = {};
  std::vector<VarId> axes = {};
};

// The expressions of stores and of reductions, over the given axes and their own.
std::vector<RunningExpr> RunningStores(const std::vector<const NestStore*>& stores, const std::vector<VarId>& axes);
std::vector<RunningExpr> RunningStages(const Nest& nest);

// 4, 2 or 1: the widest for which every load below the expressions, and every store among `stores`, takes neighbours at
// an aligned address or the same element for all. `fixed` axes stay.
int64_t VectorWidth(const Nest& nest, const std::vector<VarId>& fixed, const std::vector<RunningExpr>& values,
                    const std::vector<const NestStore*>& stores, const std::vector<VarId>& store_axes);

}  // namespace agc
