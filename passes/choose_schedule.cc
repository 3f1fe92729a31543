// choose-schedule: nest -> scheduled. Every nest gets a family of the schedule table and its parameters: pinned text
// first, else the first legal candidate of the first family that fits; on a GPU the cheapest of those of families with
// measured costs.
//   nest @k0_exp(...) { store ... }   =>   nest @k0_exp(...) { store ...  schedule pointwise {local = 64} }
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/pass.h"
#include "passes/schedules/family.h"

namespace agc {
namespace {

absl::Status Unschedulable(const Nest& nest, const absl::Status& why) {
  const std::string reason = why.ok() ? "no schedule family fits its stages" : std::string(why.message());
  return ErrorAt(nest.loc, absl::StrCat(nest.name, ": ", reason),
                 why.ok() ? absl::StatusCode::kUnimplemented : why.code());
}

// The first legal candidate; nothing where the family has none, and then `refusal` says why unless it says so already.
std::optional<Schedule> FirstLegal(const ScheduleFamily& family, const Nest& nest, const Target& target,
                                   Numerics numerics, absl::Status& refusal) {
  std::vector<Schedule> candidates = family.candidates(nest, target);
  if (numerics == Numerics::kPortable) {
    for (Schedule& s : candidates) family.in_order(s);
    if (family.measured && !target.cpu()) {  // the order of those that are left
      std::stable_sort(candidates.begin(), candidates.end(), [&](const Schedule& a, const Schedule& b) {
        return family.cost(nest, a, target) < family.cost(nest, b, target);
      });
    }
  }
  for (Schedule& candidate : candidates) {
    const absl::Status legal = family.legal(nest, candidate, target);
    if (legal.ok()) return std::move(candidate);
    if (refusal.ok()) refusal = legal;
  }
  return std::nullopt;
}

absl::Status Choose(Nest& nest, const Target& target, Numerics numerics) {
  absl::Status refusal;
  std::optional<Schedule> best;
  double cost = 0;
  for (const ScheduleFamily* family : ScheduleFamilies()) {
    const bool compared = !target.cpu() && family->measured;
    if ((best.has_value() && !compared) || !family->matches(nest)) continue;
    std::optional<Schedule> schedule = FirstLegal(*family, nest, target, numerics, refusal);
    if (!schedule.has_value()) continue;
    const double own = compared ? family->cost(nest, *schedule, target) : 0;
    if (best.has_value() && own >= cost) continue;
    best = std::move(schedule);
    cost = own;
    if (!compared) break;
  }
  if (!best.has_value()) return Unschedulable(nest, refusal);
  nest.schedule = *std::move(best);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ChooseSchedule(Program& program, PassContext& context) {
  for (Nest& nest : program.nests) {
    AGC_RETURN_IF_ERROR(nest.schedule.family.empty() ? Choose(nest, context.target, context.numerics)
                                                     : CheckSchedule(nest, context.target, context.numerics));
  }
  program.stage = Stage::kScheduled;
  return true;
}

}  // namespace agc
