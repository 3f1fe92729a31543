// The C++ functions of ir/ops/view.cc.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"

namespace agc {

// A -1 becomes what the other dimensions leave; where that is no whole number, `reshape` itself complains.
Value Reshape(Value x, Ints shape, Loc loc) {
  if (x.valid() && std::count(shape.begin(), shape.end(), -1) == 1) {
    int64_t known = 1;
    for (int64_t dim : shape) {
      if (dim == -1) continue;
      if (dim < 0 || (dim > 0 && known > INT64_MAX / dim)) return Emit("reshape", {x}, {Attr{"shape", shape}}, loc);
      known *= dim;
    }
    const int64_t elements = x.type().elements();
    if (known == 0 || elements % known != 0) {
      return Poison(*x.builder, loc,
                    absl::StrCat("reshape: ", ToString(x.type()), " has ", elements,
                                 " elements, which shape = ", ToString(shape), " does not divide"));
    }
    *std::find(shape.begin(), shape.end(), -1) = elements / known;
  }
  if (x.valid() && x.dims() == shape) return x;
  return Emit("reshape", {x}, {Attr{"shape", shape}}, loc);
}

Value Transpose(Value x, Ints perm, Loc loc) { return Emit("transpose", {x}, {Attr{"perm", perm}}, loc); }

Value T(Value x, Loc loc) {
  if (!x.valid()) return x;
  if (x.rank() < 2)
    return Poison(*x.builder, loc, absl::StrCat("transpose: ", ToString(x.type()), " has no two axes to swap"));
  Ints perm(x.rank(), 0);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[x.rank() - 1], perm[x.rank() - 2]);
  return Transpose(x, perm, loc);
}

Value Broadcast(Value x, Ints shape, Loc loc) {
  if (x.valid() && x.dims() == shape) return x;
  return Emit("broadcast", {x}, {Attr{"shape", shape}}, loc);
}

Value BroadcastAxes(Value x, Ints shape, Ints axes, Loc loc) {
  return Emit("broadcast", {x}, {Attr{"shape", shape}, Attr{"axes", axes}}, loc);
}

Value Slice(Value x, Ints start, Ints limit, Ints stride, Loc loc) {
  if (stride.empty()) stride.assign(start.size(), 1);
  return Emit("slice", {x}, {Attr{"start", start}, Attr{"limit", limit}, Attr{"stride", stride}}, loc);
}

Value Pad(Value x, double value, Ints low, Ints high, Loc loc) {
  return Emit("pad", {x}, {Attr{"low", low}, Attr{"high", high}, Attr{"value", value}}, loc);
}

Value Concat(absl::Span<const Value> xs, int64_t axis, Loc loc) {
  return Emit("concat", xs, {Attr{"axis", axis}}, loc);
}

// The shape with 1 put in at `axes`, which are those of the result.
Value ExpandDims(Value x, Ints axes, Loc loc) {
  if (!x.valid()) return x;
  const int rank = x.rank() + static_cast<int>(axes.size());
  Ints sorted, shape = x.dims();
  for (int64_t axis : axes) sorted.push_back(PositiveAxis(axis, rank));
  std::sort(sorted.begin(), sorted.end());
  for (size_t k = 0; k < sorted.size(); ++k) {
    const bool twice = k > 0 && sorted[k] == sorted[k - 1];
    if (twice || sorted[k] < 0 || sorted[k] >= rank) {
      return Poison(*x.builder, loc,
                    absl::StrCat("reshape: axes ", ToString(axes), " cannot be put into ", ToString(x.type())));
    }
    shape.insert(shape.begin() + sorted[k], 1);
  }
  return Reshape(x, shape, loc);
}

Value Squeeze(Value x, Ints axes, Loc loc) {
  if (!x.valid()) return x;
  Ints sorted, shape;
  for (int64_t axis : axes) sorted.push_back(PositiveAxis(axis, x.rank()));
  for (int64_t axis : sorted) {
    if (axis >= 0 && axis < x.rank() && x.dim(static_cast<int>(axis)) == 1) continue;
    return Poison(*x.builder, loc,
                  absl::StrCat("reshape: axis ", axis, " of ", ToString(x.type()), " is not of size 1 and cannot go"));
  }
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (std::find(sorted.begin(), sorted.end(), axis) == sorted.end()) shape.push_back(x.dim(static_cast<int>(axis)));
  }
  return Reshape(x, shape, loc);
}

}  // namespace agc
