// choose-schedule: nest -> scheduled. Every nest gets a family of the schedule table and its parameters: pinned text
// first, else the first legal candidate of the first family that fits.
//   nest @k0_exp(...) { store ... }   =>   nest @k0_exp(...) { store ...  schedule pointwise {local = 64} }
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

absl::Status Choose(Nest& nest, const Target& target, Numerics numerics) {
  absl::Status refusal;
  for (const ScheduleFamily* family : ScheduleFamilies()) {
    if (!family->matches(nest)) continue;
    for (Schedule& candidate : family->candidates(nest, target)) {
      if (numerics == Numerics::kPortable) family->in_order(candidate);
      const absl::Status legal = family->legal(nest, candidate, target);
      if (legal.ok()) {
        nest.schedule = std::move(candidate);
        return absl::OkStatus();
      }
      if (refusal.ok()) refusal = legal;
    }
  }
  return Unschedulable(nest, refusal);
}

int64_t FallbackOf(const ScheduleFamily& family, absl::string_view param) {
  for (const ScheduleParam& p : family.params) {
    if (p.name == param) return p.fallback;
  }
  return 0;
}

// A schedule that came with the text: its family must exist, fit and be legal.
absl::Status CheckPinned(const Nest& nest, const Target& target, Numerics numerics) {
  const ScheduleFamily* family = FindFamily(nest.schedule.family);
  if (family == nullptr)
    return ErrorAt(nest.loc, absl::StrCat(nest.name, ": unknown schedule family ", nest.schedule.family));
  if (!family->matches(nest))
    return ErrorAt(nest.loc, absl::StrCat(nest.name, ": schedule ", family->name, " does not fit this nest"));
  for (const auto& [key, value] : nest.schedule.params) {
    bool known = false;
    for (const ScheduleParam& p : family->params) known = known || p.name == key;
    if (!known)
      return ErrorAt(nest.loc, absl::StrCat(nest.name, ": schedule ", family->name, " has no parameter ", key));
  }
  Schedule ordered = nest.schedule;
  if (numerics == Numerics::kPortable) family->in_order(ordered);
  for (const auto& [key, value] : ordered.params) {
    const auto* wanted = std::get_if<int64_t>(&value);
    if (wanted == nullptr || nest.schedule.Int(key, FallbackOf(*family, key)) == *wanted) continue;
    return ErrorAt(nest.loc, absl::StrCat(nest.name, ": portable results need schedule ", family->name, " with ", key,
                                          " = ", *wanted));
  }
  const absl::Status legal = family->legal(nest, nest.schedule, target);
  return legal.ok() ? legal : ErrorAt(nest.loc, legal.message(), legal.code());
}

}  // namespace

absl::StatusOr<bool> ChooseSchedule(Program& program, PassContext& context) {
  for (Nest& nest : program.nests) {
    AGC_RETURN_IF_ERROR(nest.schedule.family.empty() ? Choose(nest, context.target, context.numerics)
                                                     : CheckPinned(nest, context.target, context.numerics));
  }
  program.stage = Stage::kScheduled;
  return true;
}

}  // namespace agc
