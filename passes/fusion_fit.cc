#include "passes/fusion_fit.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "ir/recompute.h"
#include "passes/fusion_cost.h"
#include "passes/schedules/tools.h"

namespace agc {
namespace {

constexpr size_t kMostOps = 64;  // of a group: bounds the work of checking one

// Every output axis stands in one dimension of each input, wherever that is read.
bool ReadsAlike(const Nest& nest) {
  std::set<VarId> outputs;
  for (const NestStore& store : nest.stores) {
    const std::vector<VarId> axes = StoreAxes(nest, store);
    outputs.insert(axes.begin(), axes.end());
  }
  std::map<std::pair<uint32_t, VarId>, size_t> dimension;
  const auto alike = [&](ExprId id) {
    for (Expr e : PostOrder(nest.at(id))) {
      for (size_t d = 0; e.is(ExprKind::kLoad) && d + 1 < e.node().args.size(); ++d) {
        for (VarId v : FreeVars(e.arg(static_cast<int>(d)))) {
          if (outputs.count(v) != 0 && dimension.try_emplace({e.node().ref, v}, d).first->second != d) return false;
        }
      }
    }
    return true;
  };
  for (const NestStage& stage : nest.stages) {
    for (ExprId id : stage.values) {
      if (!alike(id)) return false;
    }
  }
  for (const NestStore& store : nest.stores) {
    if (!alike(store.value)) return false;
  }
  return true;
}

// Why no family computes the nest, and what would.
std::string NoFamily(const Nest& nest) {
  int64_t products = 0, reductions = 0;
  for (const NestStage& stage : nest.stages) ++(stage.kind == StageKind::kContract ? products : reductions);
  if (products > 1) return "two matrix products; a family that keeps the tile of the first would compute both";
  if (products == 1 && reductions > 0)
    return "a matrix product and a reduction; a family that reduces the product's tile would compute both";
  if (products == 1) return "a product would compute its operand over and over; a family that stages it could";
  if (reductions > 1) return "reductions of different rows; a family that exchanges sums of workgroups could";
  return reductions == 1 ? "a reduction whose result other workgroups need, too" : "results of different shapes";
}

}  // namespace

Fit FitOf(const FusionGraph& graph, const OpSet& ops, const PassContext& context, double most_work, bool alike) {
  if (ops.size() > kMostOps) return {.refused = absl::StrCat("together they have more than ", kMostOps, " ops")};
  const std::vector<ValueRef> outputs = graph.OutputsOf(ops);
  if (outputs.empty()) return {.refused = "nothing of them is used"};
  absl::StatusOr<LoweredNest> low = LowerToNest(graph.graph(), outputs, [&](OpId id) { return ops.count(id) != 0; });
  if (!low.ok()) return {.refused = std::string(low.status().message())};
  const auto inputs = static_cast<int64_t>(low->inputs.size());
  const int64_t buffers = inputs + graph.BuffersOf(ops, outputs) + 1;  // one is kept for run.index
  if (buffers > context.target.storage_buffers) {
    return {.refused = absl::StrCat("one kernel would need ", buffers, " buffers, the target has ",
                                    context.target.storage_buffers, "; fewer values between kernels would do")};
  }
  if (alike && !ReadsAlike(low->nest))
    return {.refused = "they read the same values along different axes; storing them transposed would align them"};
  // Stages that turn out to be one count once, so work is counted last.
  const bool fits = FormFittingContractions(low->nest, context.target);
  const double work = WorkOf(low->nest, context.target);
  if (work > most_work) {
    return {.refused = absl::StrCat("one kernel would do ", static_cast<int64_t>(work), " operations, ",
                                    static_cast<int64_t>(most_work),
                                    " pay at most; a family that keeps what is read again would do fewer")};
  }
  if (!fits) return {.refused = NoFamily(low->nest)};
  for (const NestStage& stage : low->nest.stages) {
    const double times = stage.kind == StageKind::kMap ? 1 : RecomputeFactor(low->nest, stage);
    if (times > 1) {
      return {.refused = absl::StrCat("a reduction would be computed ", times,
                                      " times per element; a family that keeps its results would not")};
    }
  }
  return {.work = work};
}

}  // namespace agc
