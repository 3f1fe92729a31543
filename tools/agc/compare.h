// Compares tensors element by element: |got - want| <= atol + rtol * |want|; integers and bool exactly, NaN equals NaN.
//   const Difference d = Compare("y", got, want, Limits{});
//   d.equal; DifferenceText(d);   // "y: f32[2]: largest error 0.5 at [1]: 2.5, evaluator 2"
#pragma once
#include <string>
#include <vector>

#include "ir/eval/tensor.h"
#include "tools/agc/flags.h"
#include "tools/agc/json.h"

namespace agc::tool {

struct Limits {
  double rtol = -1, atol = -1;  // negative: by dtype
  double scale = 0;             // adds this share of the largest magnitude to atol
};
std::vector<Option> LimitTable();
Limits LimitsOf(const Flags& flags);

struct Difference {
  std::string name = {};     // "y", "state w"
  std::string against = {};  // "evaluator", "expectation"
  TensorType type = {};
  bool equal = true;
  double max_abs = 0, max_rel = 0;  // over all elements; inf where only one side is finite
  int64_t element = 0;              // the worst one, measured by the limits
  Scalar got = {}, want = {};
};
// Types must have equally many elements and one dtype.
Difference Compare(std::string name, std::string against, const HostTensor& got, const HostTensor& want,
                   const Limits& limits);
std::string DifferenceText(const Difference& d);
Json DifferenceJson(const Difference& d);

}  // namespace agc::tool
