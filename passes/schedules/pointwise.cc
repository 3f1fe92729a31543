// pointwise: one output position per invocation; reductions, if any, run serially inside it. Fits every nest whose
// stores share one set of axes and whose stages are functions of exactly those axes, so nothing is computed twice.
//   for workgroup g, local t:  flat = g*local + t;  axes from flat;  stages;  stores
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/tools.h"

namespace agc {
namespace {

// The axes of the stores: those of the first, if all others have the same set.
bool CommonAxes(const Nest& nest, std::vector<VarId>& axes) {
  axes = StoreAxes(nest, nest.stores[0]);
  std::vector<VarId> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  for (const NestStore& store : nest.stores) {
    std::vector<VarId> other = StoreAxes(nest, store);
    std::sort(other.begin(), other.end());
    if (other != sorted) return false;
  }
  return true;
}

bool Matches(const Nest& nest) {
  std::vector<VarId> axes;
  if (nest.stores.empty() || !CommonAxes(nest, axes) || !ReadsStagesPlainly(nest)) return false;
  std::sort(axes.begin(), axes.end());
  for (const Component& c : nest.components) {
    std::vector<VarId> own = c.axes;
    std::sort(own.begin(), own.end());
    if (own != axes) return false;
  }
  return std::none_of(nest.stages.begin(), nest.stages.end(),
                      [](const NestStage& s) { return s.kind == StageKind::kScan; });
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const int64_t local = s.Int("local", 64);
  if (local < 1 || local > target.max_invocations || local > target.max_local_x) {
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": local is ", local, ", the target allows ",
                                                     std::min(target.max_invocations, target.max_local_x)));
  }
  return absl::OkStatus();
}

std::vector<Schedule> Candidates(const Nest&, const Target& target) {
  std::vector<Schedule> all;
  for (int64_t local : target.cpu() ? std::vector<int64_t>{64, 128, 32} : std::vector<int64_t>{256, 128, 64}) {
    Schedule s{.family = "pointwise"};
    s.Set("local", std::min({local, target.max_invocations, target.max_local_x}));
    all.push_back(std::move(s));
  }
  return all;
}

// Elements times operations, spread over the device; a rough figure, to be compared within one nest only.
double Cost(const Nest& nest, const Schedule&, const Target& target) {
  double work = 0;
  for (const NestStage& stage : nest.stages) {
    std::vector<VarId> axes = nest.components[stage.first_component].axes;
    axes.insert(axes.end(), stage.over.begin(), stage.over.end());
    work += static_cast<double>(Extent(nest, axes));
  }
  const std::vector<VarId> axes = StoreAxes(nest, nest.stores[0]);
  const double positions = static_cast<double>(Extent(nest, axes));
  const double lanes = static_cast<double>(target.compute_units * std::max<int64_t>(target.subgroup_size, 1));
  return (work + positions) / std::min(positions, lanes) * 1e-3;
}

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  KernelBuilder b(nest);
  std::vector<VarId> axes;
  CommonAxes(nest, axes);
  const auto make = [&](Expr flat) {
    AxisMap map;
    Unflatten(nest, axes, flat, map);
    StageMap stages;
    std::vector<Stmt> body;
    for (const NestStage& stage : nest.stages) b.EmitStage(stage, map, stages, body);
    b.EmitStores(StoresOf(nest), map, stages, body);
    return body;
  };
  AGC_RETURN_IF_ERROR(b.OverFlat(Extent(nest, axes), nest.schedule.Int("local", 64), target, make));
  Built built;
  built.kernels.push_back({b.Take(), SameArgs(nest)});
  return built;
}

constexpr ScheduleParam kParams[] = {{"local", 64, "invocations of a workgroup"}};

}  // namespace

const ScheduleFamily kPointwiseFamily = {.name = "pointwise",
                                         .params = kParams,
                                         .matches = Matches,
                                         .legal = Legal,
                                         .candidates = Candidates,
                                         .in_order = [](Schedule&) {},
                                         .cost = Cost,
                                         .build = Build,
                                         .doc = "one output position per invocation, reductions serial inside"};

}  // namespace agc
