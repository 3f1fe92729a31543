// Ops that move elements and compute nothing: shapes, slices, joins, padding.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_shape.h"
#include "ir/build_window.h"

namespace agc::onnx {
namespace {

Ints Shape(Value x) { return Ints(x.dims().begin(), x.dims().end()); }

// Axes of a result of that rank, as 0 to rank - 1; others are an error.
Ints Positive(Call& c, Ints axes, int64_t rank) {
  for (int64_t& a : axes) {
    if (a < -rank || a >= rank) {
      c.Fail(absl::StrCat("axis ", a, " of rank ", rank));
      return {};
    }
    a += a < 0 ? rank : 0;
  }
  return axes;
}

// An attribute before opset `since`, an operand from there on.
Ints AttrOrOperand(Call& c, absl::string_view name, int k, int64_t since) {
  if (c.opset() >= since) return c.has(k) ? c.ints(k, name) : Ints();
  return c.ints(name, Ints());
}

// 0 keeps the extent at its place, unless allowzero; -1 is what is left.
void ReshapeOp(Call& c) {
  const Value x = c.in(0);
  if (c.opset() < 5) c.ignore("consumed_inputs");
  Ints shape = c.opset() < 5 ? c.ints("shape") : c.ints(1, "shape");
  const bool zero = c.flag("allowzero", false);
  for (size_t k = 0; k < shape.size() && !zero; ++k) {
    if (shape[k] == 0 && static_cast<int>(k) < x.rank()) shape[k] = x.dim(static_cast<int>(k));
  }
  const auto rest = std::find(shape.begin(), shape.end(), -1);
  if (c.ok() && rest != shape.end() && x.type().elements() == 0) {  // what is left of nothing
    int64_t others = 1;
    for (const int64_t d : shape) others *= d == -1 ? 1 : d;
    if (others != 0) *rest = 0;
  }
  c.out(Reshape(x, shape));
}

void TransposeOp(Call& c) {
  const Value x = c.in(0);
  Ints reversed;
  for (int64_t k = x.rank(); k > 0; --k) reversed.push_back(k - 1);
  c.out(Transpose(x, c.ints("perm", reversed)));
}

void FlattenOp(Call& c) {
  const Value x = c.in(0);
  int64_t axis = c.integer("axis", 1);
  axis += axis < 0 ? x.rank() : 0;
  if (c.ok() && (axis < 0 || axis > x.rank())) return void(c.Fail(absl::StrCat("axis ", axis, " of rank ", x.rank())));
  int64_t rows = 1, columns = 1;
  for (int k = 0; k < x.rank(); ++k) (k < axis ? rows : columns) *= x.dim(k);
  c.out(Reshape(x, {rows, columns}));
}

void SqueezeOp(Call& c) {
  const Value x = c.in(0);
  Ints axes = Positive(c, AttrOrOperand(c, "axes", 1, 13), x.rank());
  if (!c.ok()) return;
  Ints shape;
  for (int k = 0; k < x.rank(); ++k) {
    const bool named = std::find(axes.begin(), axes.end(), k) != axes.end();
    if (named && x.dim(k) != 1) return void(c.Fail(absl::StrCat("axis ", k, " of ", ToString(x.type()), " is not 1")));
    if (!(named || (axes.empty() && x.dim(k) == 1))) shape.push_back(x.dim(k));
  }
  c.out(Reshape(x, shape));
}

void UnsqueezeOp(Call& c) {
  const Value x = c.in(0);
  const Ints given = AttrOrOperand(c, "axes", 1, 13);
  const int64_t rank = x.rank() + static_cast<int64_t>(given.size());
  const Ints axes = Positive(c, given, rank);
  if (!c.ok()) return;
  Ints shape;
  int next = 0;
  for (int64_t k = 0; k < rank; ++k) {
    const auto times = std::count(axes.begin(), axes.end(), k);
    if (times > 1) return void(c.Fail(absl::StrCat("axis ", k, " is named twice")));
    shape.push_back(times == 1 ? 1 : x.dim(next++));
  }
  c.out(Reshape(x, shape));
}

void ConcatOp(Call& c) {
  const int64_t axis = c.opset() < 4 ? c.integer("axis", 1) : c.integer("axis");
  const std::vector<Value> xs = c.rest(0);
  if (xs.empty()) return void(c.Fail("it has no operand"));
  c.out(xs.size() == 1 ? xs[0] : Concat(xs, axis));
}

// Sizes are an attribute before opset 13; without them the pieces are equal, but the last.
void SplitOp(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.integer("axis", 0);
  Ints sizes;
  if (c.opset() >= 13 || (c.opset() < 2 && c.has(1))) {
    if (c.has(1)) sizes = c.ints(1, "split");
  } else {
    sizes = c.ints("split", Ints());
  }
  const int64_t n = c.opset() >= 18 ? c.integer("num_outputs", c.outputs()) : c.outputs();
  if (!c.ok()) return;
  if (axis < -x.rank() || axis >= x.rank()) return void(c.Fail(absl::StrCat("axis ", axis, " of rank ", x.rank())));
  if (sizes.empty()) {
    int64_t left = x.dim(static_cast<int>(axis));
    const int64_t each = n < 1 ? 0 : (left + n - 1) / n;
    for (int64_t k = 0; k < n; ++k, left -= each) sizes.push_back(std::max<int64_t>(0, std::min(each, left)));
  }
  const std::vector<Value> parts = Split(x, sizes, axis);
  for (size_t k = 0; k < parts.size(); ++k) c.out(parts[k], static_cast<int>(k));
}

void SliceOp(Call& c) {
  const Value x = c.in(0);
  Ints start, limit, axes, steps;
  if (c.opset() < 10) {
    start = c.ints("starts");
    limit = c.ints("ends");
    axes = c.ints("axes", Ints());
  } else {
    start = c.ints(1, "starts");
    limit = c.ints(2, "ends");
    if (c.has(3)) axes = c.ints(3, "axes");
    if (c.has(4)) steps = c.ints(4, "steps");
  }
  if (!c.ok()) return;
  if (start.size() != limit.size() || (!axes.empty() && axes.size() != start.size()) ||
      (!steps.empty() && steps.size() != start.size())) {
    return void(c.Fail("starts, ends, axes and steps differ in length"));
  }
  for (size_t k = 0; k < limit.size(); ++k) {  // limits of 32 bits mean the end too
    const bool back = k < steps.size() && steps[k] < 0;
    if (limit[k] >= INT32_MAX) limit[k] = INT64_MAX;
    if (back && limit[k] <= INT32_MIN) limit[k] = INT64_MIN;
    if (start[k] > INT32_MAX) start[k] = INT32_MAX;
    if (start[k] < INT32_MIN) start[k] = INT32_MIN;
  }
  c.out(start.empty() ? x : StridedSlice(x, start, limit, steps, axes));
}

void ExpandOp(Call& c) {
  const Value x = c.in(0);
  c.out(Expand(x, c.ints(1, "shape")));
}

void TileOp(Call& c) {
  const Value x = c.in(0);
  if (c.opset() < 6) {
    const int64_t tiles = c.integer(1, "tiles"), axis = c.integer(2, "axis");
    if (!c.ok()) return;
    Ints repeats(static_cast<size_t>(x.rank()), 1);
    const Ints at = Positive(c, {axis}, x.rank());
    if (!c.ok()) return;
    repeats[static_cast<size_t>(at[0])] = tiles;
    return c.out(Tile(x, repeats));
  }
  const Ints repeats = c.ints(1, "repeats");
  if (c.ok() && static_cast<int>(repeats.size()) != x.rank()) {
    return void(c.Fail(absl::StrCat(repeats.size(), " repeats for rank ", x.rank())));
  }
  c.out(Tile(x, repeats));
}

// Amounts before all axes, then after all axes, of `axes` (none given: all).
Ints PadsOf(Call& c, int64_t rank) {
  Ints pads = c.opset() < 2 ? c.ints("paddings") : c.opset() < 11 ? c.ints("pads") : c.ints(1, "pads");
  if (c.opset() < 18 || !c.has(3)) {
    if (c.ok() && static_cast<int64_t>(pads.size()) != 2 * rank) {
      c.Fail(absl::StrCat(pads.size(), " pads for rank ", rank));
    }
    return pads;
  }
  const Ints axes = Positive(c, c.ints(3, "axes"), rank);
  Ints all(static_cast<size_t>(2 * rank), 0);
  if (c.ok() && pads.size() != 2 * axes.size()) {
    c.Fail(absl::StrCat(pads.size(), " pads for ", axes.size(), " axes"));
    return all;
  }
  for (size_t k = 0; k < axes.size() && c.ok(); ++k) {
    all[static_cast<size_t>(axes[k])] = pads[k];
    all[static_cast<size_t>(axes[k] + rank)] = pads[k + axes.size()];
  }
  return all;
}

void PadOp(Call& c) {
  const Value x = c.in(0);
  const int mode = c.choice("mode", {"constant", "reflect", "edge", "wrap"}, "constant");
  const Ints pads = PadsOf(c, x.rank());
  double value = c.opset() < 11 ? c.number("value", 0) : 0;
  if (c.opset() >= 11 && c.has(2)) {
    if (mode == 0) value = c.number(2, "constant_value");
    c.ignore_operand(2);
  }
  if (!c.ok()) return;
  const auto half = pads.begin() + x.rank();
  const Ints low(pads.begin(), half), high(half, pads.end());
  constexpr PadMode kModes[] = {PadMode::kReflect, PadMode::kReflect, PadMode::kEdge, PadMode::kWrap};
  c.out(mode == 0 ? Pad(x, value, low, high) : Pad(x, kModes[mode], low, high));
}

// Cut or padded with 0 on both sides of each axis; the odd element goes behind.
void CenterCropPad(Call& c) {
  const Value x = c.in(0);
  const Ints shape = c.ints(1, "shape");
  Ints every;
  for (int64_t k = 0; k < x.rank(); ++k) every.push_back(k);
  const Ints axes = Positive(c, c.ints("axes", every), x.rank());
  if (!c.ok()) return;
  if (axes.size() != shape.size())
    return void(c.Fail(absl::StrCat(shape.size(), " extents for ", axes.size(), " axes")));
  Ints low(static_cast<size_t>(x.rank()), 0), high = low;
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t more = shape[k] - x.dim(static_cast<int>(axes[k]));
    const int64_t before = more >= 0 ? more / 2 : -(-more / 2);
    low[static_cast<size_t>(axes[k])] = before;
    high[static_cast<size_t>(axes[k])] = more - before;
  }
  c.out(Pad(x, 0, low, high));
}

void DepthToSpaceOp(Call& c) {
  const int crd = c.choice("mode", {"DCR", "CRD"}, "DCR");
  const Value x = c.in(0);
  c.out(DepthToSpace(x, c.integer("blocksize"), crd == 1 ? DepthOrder::kCrd : DepthOrder::kDcr));
}
void SpaceToDepthOp(Call& c) {
  const Value x = c.in(0);
  c.out(SpaceToDepth(x, c.integer("blocksize")));
}

void TriluOp(Call& c) {
  const bool upper = c.flag("upper", true);
  const Value x = c.in(0);
  const int64_t k = c.has(1) ? c.integer(1, "k") : 0;
  if (!c.ok()) return;
  c.out(upper ? Triu(x, k) : Tril(x, k));
}

void ColumnsToImage(Call& c) {
  const Value x = c.in(0);
  const Ints image = c.ints(1, "image_shape"), block = c.ints(2, "block_shape");
  SlidingOptions o{.window = block};
  o.stride = c.ints("strides", Ints());
  o.dilation = c.ints("dilations", Ints());
  o.pad = c.ints("pads", Ints());
  c.out(Fold(x, image, o));
}

// The first lengths[b] elements along the time axis turn round.
void ReverseSequence(Call& c) {
  const Value x = c.in(0), lengths = c.in(1);
  const int64_t batch = c.integer("batch_axis", 1), time = c.integer("time_axis", 0);
  if (!c.ok()) return;
  const Ints at = Positive(c, {batch, time}, x.rank());
  if (!c.ok()) return;
  const int64_t n = x.dim(static_cast<int>(at[0])), steps = x.dim(static_cast<int>(at[1]));
  const Value t = Iota(c.builder(), DType::kI64, {n, steps}, 1);
  const Value length = Broadcast(Reshape(CastTo(lengths, DType::kI64), {n, 1}), {n, steps});
  Value index = Where(Less(t, length), Sub(Sub(length, t), ScalarLike(length, 1, Loc{})), t);
  if (at[0] > at[1]) index = T(index);
  index = BroadcastAxes(index, Shape(x), {std::min(at[0], at[1]), std::max(at[0], at[1])});
  c.out(TakeAlongAxis(x, index, at[1]));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"CenterCropPad", 18, CenterCropPad}, {"Col2Im", 18, ColumnsToImage}, {"Concat", 1, ConcatOp},
    {"DepthToSpace", 1, DepthToSpaceOp}, {"Expand", 8, ExpandOp}, {"Flatten", 1, FlattenOp}, {"Pad", 1, PadOp},
    {"Reshape", 1, ReshapeOp}, {"ReverseSequence", 10, ReverseSequence}, {"Slice", 1, SliceOp},
    {"SpaceToDepth", 1, SpaceToDepthOp}, {"Split", 1, SplitOp}, {"Squeeze", 1, SqueezeOp}, {"Tile", 1, TileOp},
    {"Transpose", 1, TransposeOp}, {"Trilu", 14, TriluOp}, {"Unsqueeze", 1, UnsqueezeOp},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kShapeOps(kRows);

}  // namespace agc::onnx
