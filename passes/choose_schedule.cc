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
