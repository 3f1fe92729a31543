// The table of passes, generated from passes/passes.def, and the declarations of their functions.
//   const PassDef* cse = FindPass("cse");   cse->accepts == (stages::kTensor | stages::kPrimitive), cse->result ==
//   stages::kSame
// Adding a pass is one file, one line in passes.def and one folder of tests.
#pragma once
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "passes/pass.h"

namespace agc {

// Sets of stages as bits.
using StageSet = uint8_t;
namespace stages {
inline constexpr StageSet kSame = 0;  // as a result: the stage stays as it is
inline constexpr StageSet kTensor = 1, kPrimitive = 2, kNest = 4, kScheduled = 8, kLoop = 16, kPlan = 32;
}  // namespace stages
constexpr StageSet SetOf(Stage stage) { return static_cast<StageSet>(1u << static_cast<unsigned>(stage)); }
std::string ToString(StageSet set);  // "tensor, primitive"

struct PassDef {
  absl::string_view name = {};
  PassFn fn = nullptr;
  StageSet accepts = 0;
  StageSet result = stages::kSame;  // one stage, or kSame
  absl::string_view doc = {};
  Stage After(Stage before) const;  // the stage a program has afterwards
};

absl::Span<const PassDef> AllPasses();            // in the order of passes.def
const PassDef* FindPass(absl::string_view name);  // nullptr if unknown

#define AGC_PASS(name, function, accepts, result, doc) \
  absl::StatusOr<bool> function(Program& program, PassContext& context);
#include "passes/passes.def"
#undef AGC_PASS

}  // namespace agc
