// Views that move elements: reversed, rotated, repeated, stacked, blocks of pixels, and a part written over.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- flip, roll

absl::StatusOr<Types> FlipTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes", call.ints("axes"), call.type(0).rank()));
  return Types(call.type(0));
}

Expr FlipAt(At& s, Index i) {
  Point point(i.begin(), i.end());
  for (int64_t axis : PositiveAxes(s.ints("axes"), s.out().rank()))
    point[axis] = i[axis] * -1 + (s.out().dims[axis] - 1);
  return s.Read(0, point);
}

absl::StatusOr<Types> RollTypes(const OpCall& call) {
  const Ints &shifts = call.ints("shifts"), &axes = call.ints("axes");
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes", axes, call.type(0).rank()));
  if (shifts.size() != axes.size()) {
    return call.Error(absl::StrCat("shifts = ", ToString(shifts), " and axes = ", ToString(axes),
                                   " differ in length, expected one shift per axis"));
  }
  return Types(call.type(0));
}

Expr RollAt(At& s, Index i) {
  const Ints &shifts = s.ints("shifts"), &axes = s.ints("axes");
  Point point(i.begin(), i.end());
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = PositiveAxis(axes[k], s.out().rank()), n = s.out().dims[axis];
    point[axis] = Mod(i[axis] + (n - shifts[k] % n) % n, n);
  }
  return s.Read(0, point);
}

void RollVjp(Vjp& s) {
  Ints back;
  const Dims dims = s.g.dims();
  for (size_t k = 0; k < s.ints("shifts").size(); ++k) {
    const int64_t n = std::max<int64_t>(dims[PositiveAxis(s.ints("axes")[k], s.g.rank())], 1);
    back.push_back(-(s.ints("shifts")[k] % n));
  }
  s.dx[0] = Roll(s.g, back, s.ints("axes"));
}

// ---------------------------------------------------------------- tile, repeat_interleave, stack

// x's dimensions and the repeats, filled up with leading ones to one length.
void Align(Ints& dims, Ints& repeats) {
  const size_t rank = std::max(dims.size(), repeats.size());
  dims.insert(dims.begin(), rank - dims.size(), 1);
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
}

absl::StatusOr<Types> TileTypes(const OpCall& call) {
  Ints dims = call.type(0).dims, repeats = call.ints("repeats");
  AGC_RETURN_IF_ERROR(CheckInts(call, "repeats", static_cast<int>(repeats.size()), 0));
  AGC_RETURN_IF_ERROR(CheckDims(call, "repeats", call.type(0).dtype, repeats));
  Align(dims, repeats);
  for (size_t k = 0; k < dims.size(); ++k) {
    const Ints both = {dims[k], repeats[k]};
    AGC_RETURN_IF_ERROR(CheckDims(call, "an axis and its repeats", call.type(0).dtype, both));
    dims[k] *= repeats[k];
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", call.type(0).dtype, dims));
  return Types(TensorType{call.type(0).dtype, dims});
}

Value TileDecompose(Rule& s) {
  Ints dims = s.x[0].dims(), repeats = s.ints("repeats"), apart, wide;
  Align(dims, repeats);
  for (size_t k = 0; k < dims.size(); ++k) {
    apart.insert(apart.end(), {1, dims[k]});
    wide.insert(wide.end(), {repeats[k], dims[k]});
  }
  return Reshape(Broadcast(Reshape(s.x[0], apart), wide), s.op.type().dims);
}

absl::StatusOr<Types> RepeatTypes(const OpCall& call) {
  TensorType type = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), type.rank()));
  const Ints both = {type.dims[PositiveAxis(call.integer("axis"), type.rank())], call.integer("repeats")};
  if (both[1] < 0) return call.Error(absl::StrCat("repeats is ", both[1], ", expected 0 or more"));
  AGC_RETURN_IF_ERROR(CheckDims(call, "the axis and its repeats", type.dtype, both));
  type.dims[PositiveAxis(call.integer("axis"), type.rank())] = both[0] * both[1];
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

Value RepeatDecompose(Rule& s) {
  Ints apart = s.x[0].dims(), wide;
  apart.insert(apart.begin() + PositiveAxis(s.integer("axis"), s.x[0].rank()) + 1, 1);
  wide = apart;
  wide[PositiveAxis(s.integer("axis"), s.x[0].rank()) + 1] = s.integer("repeats");
  return Reshape(Broadcast(Reshape(s.x[0], apart), wide), s.op.type().dims);
}

absl::StatusOr<Types> StackTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  TensorType type = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), type.rank() + 1));
  type.dims.insert(type.dims.begin() + PositiveAxis(call.integer("axis"), type.rank() + 1), call.arity());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

Value StackDecompose(Rule& s) {
  std::vector<Value> parts;
  for (const Value& x : s.x) parts.push_back(ExpandDims(x, {s.integer("axis")}));
  return Concat(parts, s.integer("axis"));
}

// ---------------------------------------------------------------- depth_to_space, space_to_depth

// The block, if channels, height and width are multiples of what they have to be.
absl::StatusOr<int64_t> CheckedBlock(const OpCall& call, bool to_space) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  const TensorType& x = call.type(0);
  const int64_t block = call.integer("block"), rank = x.rank();
  if (block < 1 || block > INT32_MAX) return call.Error(absl::StrCat("block is ", block, ", expected 1 or more"));
  if (to_space && x.dims[rank - 3] % (block * block) != 0) {
    return call.Error(
        absl::StrCat("the ", x.dims[rank - 3], " channels of ", ToString(x), " are no multiple of ", block * block));
  }
  if (!to_space && (x.dims[rank - 2] % block != 0 || x.dims[rank - 1] % block != 0)) {
    return call.Error(absl::StrCat("height and width of ", ToString(x), " are no multiples of ", block));
  }
  return block;
}

absl::StatusOr<Types> DepthToSpaceTypes(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(const int64_t block, CheckedBlock(call, true));
  TensorType type = call.type(0);
  int64_t* chw = type.dims.data() + type.rank() - 3;
  chw[0] /= block * block;
  AGC_RETURN_IF_ERROR(CheckDims(call, "an axis and the block", type.dtype, {std::max(chw[1], chw[2]), block}));
  chw[1] *= block;
  chw[2] *= block;
  return Types(type);
}

absl::StatusOr<Types> SpaceToDepthTypes(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(const int64_t block, CheckedBlock(call, false));
  TensorType type = call.type(0);
  int64_t* chw = type.dims.data() + type.rank() - 3;
  AGC_RETURN_IF_ERROR(CheckDims(call, "the channels and the block", type.dtype, {chw[0], block, block}));
  chw[0] *= block * block;
  chw[1] /= block;
  chw[2] /= block;
  return Types(type);
}

// [leading..., last...] with its last five axes reordered by `order`.
Value Reordered(Value x, const Dims& leading, const Ints& last, const Ints& order) {
  Ints shape(leading.begin(), leading.end()), perm(leading.size(), 0);
  std::iota(perm.begin(), perm.end(), 0);
  shape.insert(shape.end(), last.begin(), last.end());
  for (int64_t axis : order) perm.push_back(static_cast<int64_t>(leading.size()) + axis);
  return Transpose(Reshape(x, shape), perm);
}

Value DepthToSpaceDecompose(Rule& s) {
  const Value x = s.x[0];
  const int64_t r = s.integer("block"), c = x.dim(-3) / (r * r), h = x.dim(-2), w = x.dim(-1);
  const Dims leading(x.dims().begin(), x.dims().end() - 3);
  const bool fast = s.text("mode") == "CRD";
  const Value y = fast ? Reordered(x, leading, {c, r, r, h, w}, {0, 3, 1, 4, 2})
                       : Reordered(x, leading, {r, r, c, h, w}, {2, 3, 0, 4, 1});
  return Reshape(y, s.op.type().dims);
}

Value SpaceToDepthDecompose(Rule& s) {
  const Value x = s.x[0];
  const int64_t r = s.integer("block"), c = x.dim(-3), h = x.dim(-2) / r, w = x.dim(-1) / r;
  const Dims leading(x.dims().begin(), x.dims().end() - 3);
  const bool fast = s.text("mode") == "CRD";
  const Value y = Reordered(x, leading, {c, h, r, w, r}, fast ? Ints{0, 2, 4, 1, 3} : Ints{2, 4, 0, 1, 3});
  return Reshape(y, s.op.type().dims);
}

// ---------------------------------------------------------------- update_slice

absl::StatusOr<Types> UpdateTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  const TensorType &x = call.type(0), &u = call.type(1);
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, x.rank()));
  AGC_RETURN_IF_ERROR(CheckInts(call, "start", x.rank(), 0));
  for (int k = 0; k < x.rank(); ++k) {
    const int64_t start = call.ints("start")[k];
    if (u.dims[k] <= x.dims[k] && start <= x.dims[k] - u.dims[k]) continue;
    return call.Error(absl::StrCat("the update ", ToString(u), " at ", ToString(call.ints("start")), " leaves axis ", k,
                                   " of ", ToString(x)));
  }
  return Types(x);
}

Expr UpdateAt(At& s, Index i) {
  if (s.type(1).elements() == 0) return s.Read(0, i);
  Point point;
  Expr inside = s.pool.Bool(true);
  for (size_t k = 0; k < i.size(); ++k) {
    point.push_back(i[k] - s.ints("start")[k]);
    inside = And(inside, InRange(point[k], s.dim(1, static_cast<int>(k))));
  }
  if (inside.IsTrue()) return s.Read(1, point);
  const Expr old = s.Read(0, i);
  return s.Guard(
      inside, [&] { return s.Read(1, point); }, old);
}

void UpdateVjp(Vjp& s) {
  Ints start = s.ints("start"), limit = s.x[1].dims();
  for (size_t k = 0; k < start.size(); ++k) limit[k] += start[k];
  s.dx[0] = UpdateSlice(s.g, FullLike(s.x[1], 0), start);
  s.dx[1] = Slice(s.g, start, limit, {});
}

using A = AttrKind;
constexpr AttrList kBlock = {{"block", A::kInt}, {"mode", A::kString, "DCR", "DCR|CRD"}};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "depth_to_space", .cls = kComposite, .arity = 1, .attrs = kBlock, .infer = DepthToSpaceTypes, .decompose = DepthToSpaceDecompose,
     .numpy = "depth_to_space(x0, block, mode)", .sample = {.shapes = {"f32[1,8,2,3]"}, .attrs = "block = 2"},
     .doc = "Blocks of channels of [..., c, h, w] become squares of pixels; in mode DCR the block is the slow part of the channel, in CRD the fast one."},
    {.name = "flip", .cls = kView, .arity = 1, .attrs = {{"axes", A::kInts, "[]"}}, .infer = FlipTypes, .at = FlipAt,
     .vjp = [](Vjp& s) { s.dx[0] = Flip(s.g, s.ints("axes")); }, .numpy = "np.flip(x0, tuple(axes) or None)",
     .sample = {.shapes = {"f32[2,3,4]"}, .attrs = "axes = [0, -1]"}, .doc = "Reverses axes (none given: all)."},
    {.name = "repeat_interleave", .cls = kComposite, .arity = 1, .attrs = {{"repeats", A::kInt}, {"axis", A::kInt}}, .infer = RepeatTypes,
     .decompose = RepeatDecompose, .numpy = "np.repeat(x0, repeats, axis)", .sample = {.shapes = {"f32[2,3]"}, .attrs = "repeats = 3, axis = 1"},
     .doc = "Repeats each element along an axis."},
    {.name = "roll", .cls = kView, .arity = 1, .attrs = {{"shifts", A::kInts}, {"axes", A::kInts}}, .infer = RollTypes, .at = RollAt, .vjp = RollVjp,
     .numpy = "np.roll(x0, shifts, axes)", .sample = {.shapes = {"f32[3,5]"}, .attrs = "shifts = [1, -7], axes = [0, 1]"},
     .doc = "Moves elements towards the end of axes; what leaves comes in at the start."},
    {.name = "space_to_depth", .cls = kComposite, .arity = 1, .attrs = kBlock, .infer = SpaceToDepthTypes, .decompose = SpaceToDepthDecompose,
     .numpy = "space_to_depth(x0, block, mode)", .sample = {.shapes = {"f32[1,2,4,6]"}, .attrs = "block = 2, mode = \"CRD\""},
     .doc = "Squares of pixels of [..., c, h, w] become blocks of channels, the reverse of depth_to_space in the same mode."},
    {.name = "stack", .cls = kComposite, .arity = {1, 65535}, .attrs = {{"axis", A::kInt, "0"}}, .infer = StackTypes, .decompose = StackDecompose,
     .numpy = "np.stack([x0, x1, x2], axis)", .sample = {.shapes = {"f32[2,3]", "f32[2,3]", "f32[2,3]"}, .attrs = "axis = 1"},
     .doc = "Joins along a new axis."},
    {.name = "tile", .cls = kComposite, .arity = 1, .attrs = {{"repeats", A::kInts}}, .infer = TileTypes, .decompose = TileDecompose,
     .numpy = "np.tile(x0, repeats)", .sample = {.shapes = {"f32[2,3]"}, .attrs = "repeats = [2, 1, 3]"},
     .doc = "Repeats the whole along axes, numpy's way: leading repeats or axes that are missing are 1."},
    {.name = "update_slice", .cls = kView, .arity = 2, .attrs = {{"start", A::kInts}}, .infer = UpdateTypes, .at = UpdateAt, .vjp = UpdateVjp,
     .numpy = "update_slice(x0, x1, start)", .sample = {.shapes = {"f32[4,5]", "f32[2,3]"}, .attrs = "start = [1, 2]"},
     .doc = "The first operand with the second written over it from `start` on."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kRearrangeOps(kOps);

}  // namespace agc
