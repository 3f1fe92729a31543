// How resizing places its outputs, for the row `resize` and for functions that give scales instead of sizes.
#pragma once
#include <string>

#include "ir/op_def.h"

namespace agc {

struct ResampleRule {
  std::string mode = "linear", coordinates = "half_pixel", rounding = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
};
struct Ratio {
  int64_t over = 1, under = 1;
};
// An axis that gets `size` elements, `scale` times as dense.
struct ResampledAxis {
  int axis = 0;
  int64_t size = 0;
  Ratio scale = {};
};

// What is wrong with the rule, or "".
std::string ProblemOf(const ResampleRule& rule);
// [a, b, c]: output o stands at (a o + b) / c; for nearest, the floor of that is the element it takes.
Ints ResampleMap(const ResampleRule& rule, int64_t inputs, int64_t outputs, Ratio scale);
// One `resample` per axis that changes; f16 and bf16 are interpolated in f32.
Value ResampleAxes(Value x, absl::Span<const ResampledAxis> axes, const ResampleRule& rule, Loc loc);

}  // namespace agc
