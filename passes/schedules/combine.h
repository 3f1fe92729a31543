// Combining one partial result per invocation into one for the workgroup, in a tree fixed by the invocation number: the
// bits are the same whatever the subgroup width. Groups of eight neighbours merge by butterflies (1, 2, 4), through
// subgroup shuffles where every subgroup has eight lanes and through shared memory elsewhere: same tree, same bits.
// Then every invocation merges the group results in order.
#pragma once
#include <vector>

#include "ir/target.h"
#include "passes/schedules/tools.h"

namespace agc {

inline constexpr int64_t kCombineGroup = 8;

// Whether the butterflies use shuffles on this target.
bool CombinesByShuffle(const Target& target, int64_t threads);
// Shared memory that combining the stages of a nest takes.
int64_t CombineBytes(const Nest& nest, int64_t threads, const Target& target);
// Appends the combination of `acc`, thread t of `threads`, and returns the stage's components, uniform in the
// workgroup.
std::vector<Expr> EmitCombine(KernelBuilder& b, const NestStage& stage, absl::Span<const uint32_t> acc, Expr t,
                              int64_t threads, const Target& target, std::vector<Stmt>& body);

}  // namespace agc
