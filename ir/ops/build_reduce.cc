// The C++ functions of ir/ops/reduce.cc. They write the axes out, sorted and positive, so that equal calls are equal
// text.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

Value Reduced(absl::string_view op, Value x, Ints axes, bool keep_dims, Loc loc) {
  const int rank = x.rank();
  const bool legal = std::all_of(axes.begin(), axes.end(), [&](int64_t a) { return a >= -rank && a < rank; });
  const Ints sorted = legal ? PositiveAxes(axes, rank) : axes;
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end())
    axes = sorted;  // else the message shows them as given
  return Emit(op, {x}, {Attr{"axes", axes}, Attr{"keep_dims", keep_dims}}, loc);
}

Value Arg(absl::string_view op, Value x, int64_t axis, bool keep_dims, Loc loc) {
  if (axis >= -x.rank() && axis < 0) axis += x.rank();
  return Emit(op, {x}, {Attr{"axis", axis}, Attr{"keep_dims", keep_dims}}, loc);
}

}  // namespace

Value ReduceSum(Value x, Ints axes, bool keep_dims, Loc loc) { return Reduced("reduce_sum", x, axes, keep_dims, loc); }
Value ReduceMean(Value x, Ints axes, bool keep_dims, Loc loc) {
  return Reduced("reduce_mean", x, axes, keep_dims, loc);
}
Value ReduceMax(Value x, Ints axes, bool keep_dims, Loc loc) { return Reduced("reduce_max", x, axes, keep_dims, loc); }
Value ReduceMin(Value x, Ints axes, bool keep_dims, Loc loc) { return Reduced("reduce_min", x, axes, keep_dims, loc); }
Value ReduceProd(Value x, Ints axes, bool keep_dims, Loc loc) {
  return Reduced("reduce_prod", x, axes, keep_dims, loc);
}
Value ArgMax(Value x, int64_t axis, bool keep_dims, Loc loc) { return Arg("argmax", x, axis, keep_dims, loc); }
Value ArgMin(Value x, int64_t axis, bool keep_dims, Loc loc) { return Arg("argmin", x, axis, keep_dims, loc); }

Value SumTo(Value x, const Dims& dims, Loc loc) {
  if (!x.valid() || x.dims() == dims) return x;
  const Dims from = x.dims();
  Dims common;
  if (dims.size() > from.size() || !CommonDims(from, dims, common) || common != from) {
    return Poison(*x.builder, loc,
                  absl::StrCat("reduce_sum: ", ToString(x.type()), " is not broadcast from ", ToString(dims)));
  }
  const size_t leading = from.size() - dims.size();
  Ints axes;
  for (size_t k = 0; k < from.size(); ++k) {
    if (k < leading || from[k] != dims[k - leading]) axes.push_back(static_cast<int64_t>(k));
  }
  return Reshape(ReduceSum(x, axes, false, loc), dims, loc);
}

}  // namespace agc
