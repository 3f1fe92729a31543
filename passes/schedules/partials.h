// Partial results of a reduction that several workgroups share: scratch memory that they write, and a counter by which
// the last of them to arrive knows that it has to finish. The parts are merged in their order, so the bits do not
// depend on which one that is.
//   Partials p = AddPartials(b, nest, {split, outputs}, outputs, built.kernels[0].args, built.scratch);
//   StorePartials(...);   body.push_back(IfLastStmt(p.counter, {output}, split, finish));
#pragma once
#include <vector>

#include "passes/schedules/tools.h"

namespace agc {

struct Partials {
  std::vector<uint32_t> params = {};  // parameter of the kernel, by component of the nest; none for maps
  uint32_t counter = 0;               // parameter of the kernel
};

// Adds the parameters, one of shape `dims` for every component of a reduction, and what they are bound to.
Partials AddPartials(KernelBuilder& b, const Nest& nest, const std::vector<int64_t>& dims, int64_t counters,
                     Built& built, std::vector<int32_t>& args);
// How many parameters AddPartials adds.
int64_t PartialParams(const Nest& nest);
// Stores and reads the components of a stage.
void StorePartials(const Partials& p, const NestStage& stage, absl::Span<const Expr> values, Index index,
                   std::vector<Stmt>& body);
std::vector<Expr> LoadPartials(KernelBuilder& b, const Nest& nest, const Partials& p, const NestStage& stage,
                               Index index);

}  // namespace agc
