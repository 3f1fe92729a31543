#include "passes/registry.h"

#include "absl/strings/str_cat.h"

namespace agc {

std::string ToString(StageSet set) {
  std::string out;
  for (unsigned i = 0; i <= static_cast<unsigned>(Stage::kPlan); ++i) {
    const Stage stage = static_cast<Stage>(i);
    if ((set & SetOf(stage)) != 0) absl::StrAppend(&out, out.empty() ? "" : ", ", Name(stage));
  }
  return out;
}

Stage PassDef::After(Stage before) const {
  for (unsigned i = 0; i <= static_cast<unsigned>(Stage::kPlan); ++i) {
    if (result == SetOf(static_cast<Stage>(i))) return static_cast<Stage>(i);
  }
  return before;
}

absl::Span<const PassDef> AllPasses() {
  using namespace stages;  // NOLINT: passes.def names stages without a qualifier
  static constexpr PassDef kPasses[] = {
#define AGC_PASS(name, function, accepts, result, doc) {name, &function, accepts, result, doc},
#include "passes/passes.def"
#undef AGC_PASS
  };
  return kPasses;
}

const PassDef* FindPass(absl::string_view name) {
  for (const PassDef& pass : AllPasses()) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace agc
