#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/family.h"

namespace agc {
namespace {

// Families multiply a few parameters before they compare the product with a limit.
constexpr int64_t kMaxScheduleParam = 1 << 16;

int64_t FallbackOf(const ScheduleFamily& family, absl::string_view param) {
  for (const ScheduleParam& p : family.params) {
    if (p.name == param) return p.fallback;
  }
  return 0;
}

}  // namespace

absl::Status CheckSchedule(const Nest& nest, const Target& target, Numerics numerics) {
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
    const auto* number = std::get_if<int64_t>(&value);
    if (number == nullptr || *number < 0 || *number > kMaxScheduleParam) {
      return ErrorAt(nest.loc, absl::StrCat(nest.name, ": schedule ", family->name, ": ", key,
                                            " is a number from 0 to ", kMaxScheduleParam));
    }
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

}  // namespace agc
