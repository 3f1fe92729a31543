// Schedule families: the fourth table. A family says which nests it fits, which parameters it takes, when they are
// legal on a target, which to try first, and builds loop trees from them. One file each in passes/schedules/.
#pragma once
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/kernel.h"
#include "ir/nest.h"
#include "ir/target.h"
#include "passes/pass.h"

namespace agc {

// What `build` returns: kernels in the order they run, each parameter bound to a parameter of the nest or to scratch.
struct ScratchBuffer {
  std::string name = {};
  TensorType type = {};
  bool counter = false;  // holds 0 before and after every run of its kernel
};
struct BuiltKernel {
  Kernel kernel;
  std::vector<int32_t> args = {};  // >= 0: parameter of the nest; < 0: scratch -1 - arg
};
struct Built {
  std::vector<BuiltKernel> kernels = {};
  std::vector<ScratchBuffer> scratch = {};
};

struct ScheduleParam {
  absl::string_view name = {};
  int64_t fallback = 1;
  absl::string_view doc = {};
};

struct ScheduleFamily {
  absl::string_view name = {};
  absl::Span<const ScheduleParam> params = {};
  bool (*matches)(const Nest&) = nullptr;
  absl::Status (*legal)(const Nest&, const Schedule&, const Target&) = nullptr;  // the error says limit and value
  std::vector<Schedule> (*candidates)(const Nest&,
                                      const Target&) = nullptr;  // best first; empty: none suits the target
  // Turns a schedule into the one like it that merges every reduction in increasing order of its axes.
  void (*in_order)(Schedule&) = nullptr;
  double (*cost)(const Nest&, const Schedule&, const Target&) = nullptr;  // estimated microseconds
  bool measured = false;  // cost was fitted to kernels of GPUs: families that say so are compared by it there
  absl::StatusOr<Built> (*build)(const Nest&, const Target&) = nullptr;  // reads nest.schedule
  absl::string_view doc = {};
};

extern const ScheduleFamily kPointwiseFamily, kTransposeFamily, kRowsFamily, kColumnsFamily, kContractFamily,
    kTilesFamily, kProductRowsFamily;
absl::Span<const ScheduleFamily* const> ScheduleFamilies();  // in order of preference
const ScheduleFamily* FindFamily(absl::string_view name);    // nullptr if unknown

// Whether a schedule that a text may have given can be built: the family exists, fits the nest, has these parameters,
// and they are legal on the target and, where results are portable, in order.
absl::Status CheckSchedule(const Nest& nest, const Target& target, Numerics numerics);

}  // namespace agc
