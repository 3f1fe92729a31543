// The C++ functions of ir/ops/rearrange.cc, and those that only combine views.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/build_shape.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

// `count` poisoned tensors after recording what is wrong with x.
std::vector<Value> Poisons(Value x, Loc loc, size_t count, absl::string_view message) {
  return std::vector<Value>(count, x.valid() ? Poison(*x.builder, loc, message) : x);
}
std::string NoAxis(absl::string_view name, Value x, int64_t axis) {
  return absl::StrCat(name, ": ", ToString(x.type()), " has no axis ", axis);
}

std::string OrderName(DepthOrder order) { return order == DepthOrder::kDcr ? "DCR" : "CRD"; }

}  // namespace

Value Flip(Value x, Ints axes, Loc loc) { return Emit("flip", {x}, {Attr{"axes", axes}}, loc); }
Value Roll(Value x, Ints shifts, Ints axes, Loc loc) {
  return Emit("roll", {x}, {Attr{"shifts", shifts}, Attr{"axes", axes}}, loc);
}
Value Tile(Value x, Ints repeats, Loc loc) { return Emit("tile", {x}, {Attr{"repeats", repeats}}, loc); }
Value RepeatInterleave(Value x, int64_t repeats, int64_t axis, Loc loc) {
  return Emit("repeat_interleave", {x}, {Attr{"repeats", repeats}, Attr{"axis", axis}}, loc);
}
Value UpdateSlice(Value x, Value update, Ints start, Loc loc) {
  return Emit("update_slice", {x, update}, {Attr{"start", start}}, loc);
}
Value Stack(absl::Span<const Value> xs, int64_t axis, Loc loc) { return Emit("stack", xs, {Attr{"axis", axis}}, loc); }
Value DepthToSpace(Value x, int64_t block, DepthOrder order, Loc loc) {
  return Emit("depth_to_space", {x}, {Attr{"block", block}, Attr{"mode", OrderName(order)}}, loc);
}
Value SpaceToDepth(Value x, int64_t block, DepthOrder order, Loc loc) {
  return Emit("space_to_depth", {x}, {Attr{"block", block}, Attr{"mode", OrderName(order)}}, loc);
}
Value PixelShuffle(Value x, int64_t factor, Loc loc) { return DepthToSpace(x, factor, DepthOrder::kCrd, loc); }
Value PixelUnshuffle(Value x, int64_t factor, Loc loc) { return SpaceToDepth(x, factor, DepthOrder::kCrd, loc); }

// Axes with a negative stride are flipped first; positions count from the other end then.
Value StridedSlice(Value x, Ints start, Ints limit, Ints stride, Ints axes, Loc loc) {
  if (!x.valid()) return x;
  const auto fail = [&](absl::string_view what) { return Poison(*x.builder, loc, absl::StrCat("slice: ", what)); };
  if (axes.empty()) {
    axes.resize(start.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (stride.empty()) stride.assign(start.size(), 1);
  if (limit.size() != start.size() || stride.size() != start.size() || axes.size() != start.size()) {
    return fail(absl::StrCat("start, limit, stride and axes have ", start.size(), ", ", limit.size(), ", ",
                             stride.size(), " and ", axes.size(), " numbers, expected equally many"));
  }
  Ints from(x.rank(), 0), to = x.dims(), by(x.rank(), 1), flipped;
  for (size_t k = 0; k < axes.size(); ++k) {
    if (!HasAxis(x, axes[k])) return fail(absl::StrCat(ToString(x.type()), " has no axis ", axes[k]));
    if (stride[k] == 0 || stride[k] == INT64_MIN) return fail(absl::StrCat("stride[", k, "] is ", stride[k]));
    const int64_t axis = PositiveAxis(axes[k], x.rank()), n = x.dims()[axis];
    const bool back = stride[k] < 0;
    const auto place = [&](int64_t p) {  // numpy's rule, then from the end that the slice starts at
      const int64_t in = std::clamp<int64_t>(p < 0 ? p + n : p, back ? -1 : 0, back ? n - 1 : n);
      return back ? n - 1 - in : in;
    };
    if (back) flipped.push_back(axis);
    from[axis] = place(start[k]);
    to[axis] = std::max(from[axis], place(limit[k]));
    by[axis] = std::abs(stride[k]);
  }
  return Slice(flipped.empty() ? x : Flip(x, flipped, loc), from, to, by, loc);
}

std::vector<Value> Split(Value x, Ints sizes, int64_t axis, Loc loc) {
  if (!x.valid()) return Poisons(x, loc, sizes.size(), "");
  if (!HasAxis(x, axis)) return Poisons(x, loc, sizes.size(), NoAxis("split", x, axis));
  axis = PositiveAxis(axis, x.rank());
  const bool whole = std::all_of(sizes.begin(), sizes.end(), [&](int64_t n) { return n >= 0 && n <= x.dims()[axis]; });
  if (!whole || std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != x.dims()[axis]) {
    return Poisons(x, loc, sizes.size(),
                   absl::StrCat("split: sizes = ", ToString(sizes), " do not add up to the ", x.dims()[axis],
                                " elements of axis ", axis, " of ", ToString(x.type())));
  }
  std::vector<Value> parts;
  int64_t begin = 0;
  for (int64_t n : sizes) {
    parts.push_back(PartOf(x, axis, begin, begin + n, loc));
    begin += n;
  }
  return parts;
}

std::vector<Value> Chunk(Value x, int64_t count, int64_t axis, Loc loc) {
  if (!x.valid()) return {x};
  if (!HasAxis(x, axis)) return Poisons(x, loc, 1, NoAxis("chunk", x, axis));
  if (count < 1) return Poisons(x, loc, 1, absl::StrCat("chunk: count is ", count, ", expected 1 or more"));
  const int64_t n = x.dims()[PositiveAxis(axis, x.rank())], size = n / count + (n % count != 0 ? 1 : 0);
  Ints sizes;
  for (int64_t begin = 0; begin < n; begin += size) sizes.push_back(std::min(size, n - begin));
  if (n == 0) sizes = {0};
  return Split(x, sizes, axis, loc);
}

std::vector<Value> Unstack(Value x, int64_t axis, Loc loc) {
  if (!x.valid()) return {x};
  if (!HasAxis(x, axis)) return Poisons(x, loc, 1, NoAxis("unstack", x, axis));
  axis = PositiveAxis(axis, x.rank());
  std::vector<Value> parts;
  for (int64_t k = 0; k < x.dims()[axis]; ++k) parts.push_back(Squeeze(PartOf(x, axis, k, k + 1, loc), {axis}, loc));
  return parts;
}

Value MoveAxis(Value x, Ints from, Ints to, Loc loc) {
  if (!x.valid()) return x;
  const auto fail = [&] {
    return Poison(
        *x.builder, loc,
        absl::StrCat("transpose: axes ", ToString(from), " of ", ToString(x.type()), " cannot move to ", ToString(to)));
  };
  if (from.size() != to.size()) return fail();
  Ints perm(x.rank(), -1), rest(x.rank(), 0);
  std::iota(rest.begin(), rest.end(), 0);
  for (size_t k = 0; k < from.size(); ++k) {
    if (!HasAxis(x, from[k]) || !HasAxis(x, to[k])) return fail();
    const int64_t axis = PositiveAxis(from[k], x.rank());
    auto* left = std::find(rest.begin(), rest.end(), axis);
    int64_t& place = perm[PositiveAxis(to[k], x.rank())];
    if (left == rest.end() || place != -1) return fail();
    rest.erase(left);
    place = axis;
  }
  auto next = rest.begin();
  for (int64_t& axis : perm) {
    if (axis == -1) axis = *next++;
  }
  return Transpose(x, perm, loc);
}

Value SwapAxes(Value x, int64_t a, int64_t b, Loc loc) {
  const bool same = HasAxis(x, a) && PositiveAxis(a, x.rank()) == PositiveAxis(b, x.rank());
  return same ? x : MoveAxis(x, {a, b}, {b, a}, loc);
}

Value Flatten(Value x, int64_t first, int64_t last, Loc loc) {
  if (!x.valid()) return x;
  if (x.rank() == 0) return Reshape(x, {1}, loc);
  if (!HasAxis(x, first) || !HasAxis(x, last) || PositiveAxis(first, x.rank()) > PositiveAxis(last, x.rank())) {
    return Poison(*x.builder, loc,
                  absl::StrCat("reshape: ", ToString(x.type()), " has no axes from ", first, " to ", last));
  }
  Ints shape;
  for (int64_t k = 0; k < x.rank(); ++k) {
    const bool joins = k > PositiveAxis(first, x.rank()) && k <= PositiveAxis(last, x.rank());
    if (joins) shape.back() *= x.dims()[k];
    if (!joins) shape.push_back(x.dims()[k]);
  }
  return Reshape(x, shape, loc);
}

Value Expand(Value x, Ints shape, Loc loc) {
  if (!x.valid()) return x;
  Dims common;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == -1) shape[k] = x.dim(static_cast<int>(k) - static_cast<int>(shape.size()));
  }
  if (CommonDims(x.dims(), shape, common)) return Broadcast(x, common, loc);
  return Poison(*x.builder, loc,
                absl::StrCat("broadcast: ", ToString(x.type()), " does not broadcast with ", ToString(shape)));
}

std::vector<Value> Meshgrid(absl::Span<const Value> xs, bool xy, Loc loc) {
  const size_t n = xs.size();
  const auto place = [&](size_t k) { return xy && n >= 2 && k < 2 ? 1 - k : k; };
  Ints shape(n, 1);
  for (size_t k = 0; k < n; ++k) {
    if (!xs[k].valid()) return std::vector<Value>(n, xs[k]);
    if (xs[k].rank() != 1) {
      return Poisons(xs[k], loc, n,
                     absl::StrCat("meshgrid: operand ", k, " is ", ToString(xs[k].type()), ", expected rank 1"));
    }
    shape[place(k)] = xs[k].dim(0);
  }
  std::vector<Value> grids;
  for (size_t k = 0; k < n; ++k) grids.push_back(BroadcastAxes(xs[k], shape, {static_cast<int64_t>(place(k))}, loc));
  return grids;
}

}  // namespace agc
