// Schedules of learning rates, which compiler/optim.h declares.
#include <algorithm>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "compiler/optim.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/trace.h"

namespace agc::optim {
namespace {

Tensor Times(Tensor x, double factor, Loc loc) { return Mul(x, ScalarLike(x, factor, loc), loc); }

// The step as f32[], or poison.
Tensor Counted(Tensor step, Loc loc) {
  Builder* b = Live(step, "schedule: the step", loc);
  if (b == nullptr) return Poisoned(step);
  if (step.rank() != 0 || !IsInt(step.dtype())) {
    return Poison(*b, loc,
                  absl::StrCat("schedule: the step is ", ToString(step.type()), ", expected an integer scalar"));
  }
  return CastTo(step, DType::kF32, loc);
}

// The part of the warmup that is done behind this step, at most 1; then `after`, times peak.
Tensor Warmed(Tensor t, double peak, int64_t warmup, Tensor after, Loc loc) {
  const Tensor rate = Times(after, peak, loc);
  if (warmup <= 0) return rate;
  const Tensor rising = Times(Add(t, ScalarLike(t, 1, loc), loc), peak / static_cast<double>(warmup), loc);
  return Where(Less(t, ScalarLike(t, static_cast<double>(warmup), loc), loc), rising, rate, loc);
}

// How far the steps behind the warmup are, 0 to 1.
Tensor Progress(Tensor t, const ScheduleOptions& o, Loc loc) {
  const double rest = static_cast<double>(std::max<int64_t>(o.steps - o.warmup, 1));
  const Tensor behind = Sub(t, ScalarLike(t, static_cast<double>(o.warmup), loc), loc);
  return Clamp(DivOf(behind, ScalarLike(t, rest, loc), loc), 0, 1, loc);
}

// From 1 to last / peak as `share` falls from 1 to 0.
Tensor Between(Tensor share, const ScheduleOptions& o, Loc loc) {
  const double last = o.peak == 0 ? 0 : o.last / o.peak;
  return Add(Times(share, 1 - last, loc), ScalarLike(share, last, loc), loc);
}

}  // namespace

Tensor Constant(Tensor step, ScheduleOptions o, Loc loc) {
  const Tensor t = Counted(step, loc);
  return Warmed(t, o.peak, o.warmup, ScalarLike(t, 1, loc), loc);
}

Tensor Linear(Tensor step, ScheduleOptions o, Loc loc) {
  const Tensor t = Counted(step, loc), progress = Progress(t, o, loc);
  return Warmed(t, o.peak, o.warmup, Between(Sub(ScalarLike(t, 1, loc), progress, loc), o, loc), loc);
}

Tensor Cosine(Tensor step, ScheduleOptions o, Loc loc) {
  const Tensor t = Counted(step, loc), angle = Times(Progress(t, o, loc), std::numbers::pi, loc);
  const Tensor share = Times(Add(Cos(angle, loc), ScalarLike(t, 1, loc), loc), 0.5, loc);
  return Warmed(t, o.peak, o.warmup, Between(share, o, loc), loc);
}

Tensor StepDecay(Tensor step, StepDecayOptions o, Loc loc) {
  const Tensor t = Counted(step, loc);
  const Tensor behind =
      Maximum(Sub(t, ScalarLike(t, static_cast<double>(o.warmup), loc), loc), ScalarLike(t, 0, loc), loc);
  const Tensor times =
      Floor(DivOf(behind, ScalarLike(t, static_cast<double>(std::max<int64_t>(o.every, 1)), loc), loc), loc);
  return Warmed(t, o.peak, o.warmup, Pow(ScalarLike(t, o.factor, loc), times, loc), loc);
}

}  // namespace agc::optim
