#include "passes/schedules/family.h"

namespace agc {
namespace {
constexpr const ScheduleFamily* kFamilies[] = {&kProductRowsFamily, &kTilesFamily, &kContractFamily,
                                               &kColumnsFamily,     &kRowsFamily,  &kTransposeFamily,
                                               &kPointwiseFamily};
}

absl::Span<const ScheduleFamily* const> ScheduleFamilies() { return kFamilies; }

const ScheduleFamily* FindFamily(absl::string_view name) {
  for (const ScheduleFamily* family : kFamilies) {
    if (family->name == name) return family;
  }
  return nullptr;
}

}  // namespace agc
