// pointwise: one output position per invocation; reductions, if any, run serially inside it. Fits every nest whose
// stores share one set of axes and whose stages are functions of exactly those axes, so nothing is computed twice.
//   for workgroup g, local t:  flat = g*local + t;  axes from flat;  stages;  stores
// vec > 1 gives an invocation that many neighbours, whose loads and stores `vectorize` merges.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/tools.h"
#include "passes/schedules/vector_width.h"

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
  const int64_t vec = s.Int("vec", 1);
  const bool divides = vec >= 1 && vec <= 8 && Extent(nest, StoreAxes(nest, nest.stores[0])) % vec == 0;
  if (divides && (vec == 1 || nest.stages.empty())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      nest.name, ": vec is ", vec, ", expected 1 to 8, a divisor of the positions, and 1 where stages are computed"));
}

// Neighbours that an invocation takes. A software device does better with one; so does a GPU that is not full.
int64_t VecOf(const Nest& nest, const Target& target) {
  constexpr int64_t kFull = 1024;  // invocations of a multiprocessor
  const std::vector<VarId> axes = StoreAxes(nest, nest.stores[0]);
  if (target.cpu() || !nest.stages.empty() || Extent(nest, axes) < 4 * kFull * target.compute_units) return 1;
  return VectorWidth(nest, {}, RunningStores(StoresOf(nest), axes), StoresOf(nest), axes);
}

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  std::vector<Schedule> all;
  const int64_t vec = VecOf(nest, target);
  for (int64_t local : target.cpu() ? std::vector<int64_t>{64, 128, 32} : std::vector<int64_t>{256, 128, 64}) {
    Schedule s{.family = "pointwise"};
    s.Set("local", std::min({local, target.max_invocations, target.max_local_x}));
    if (vec > 1) s.Set("vec", vec);
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
  const int64_t vec = nest.schedule.Int("vec", 1);
  const auto make = [&](Expr flat) {
    std::vector<AxisMap> maps(static_cast<size_t>(vec));
    for (int64_t e = 0; e < vec; ++e) Unflatten(nest, axes, flat * vec + e, maps[e]);
    StageMap stages;
    std::vector<Stmt> body;
    for (const NestStage& stage : nest.stages) b.EmitStage(stage, maps[0], stages, body);
    b.EmitStores(StoresOf(nest), maps, {stages}, body);
    return body;
  };
  AGC_RETURN_IF_ERROR(b.OverFlat(Extent(nest, axes) / vec, nest.schedule.Int("local", 64), target, make));
  Built built;
  built.kernels.push_back({b.Take(), SameArgs(nest)});
  return built;
}

constexpr ScheduleParam kParams[] = {{"local", 64, "invocations of a workgroup"},
                                     {"vec", 1, "neighbouring positions of an invocation"}};

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
