// Maximum pooling over any number of spatial axes, with the gradients. It remembers which tap of its window won;
// scattering along that (max_pool_grad) and gathering along it (max_pool_take) are each other's gradient.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/pool.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- types

int64_t Taps(const OpCall& call) {
  int64_t taps = 1;
  for (int64_t k : call.ints("window")) taps *= k;
  return taps;
}

absl::StatusOr<Types> WithIndexType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  AGC_ASSIGN_OR_RETURN(const Dims dims, Pooled(call, call.type(0).dims));
  return Types{TensorType{call.type(0).dtype, dims}, TensorType{TapDType(Taps(call)), dims}};
}

// `operand` must have the shape that pooling `x` gives.
absl::Status CheckPooled(const OpCall& call, int operand, const Dims& x) {
  AGC_ASSIGN_OR_RETURN(const Dims expected, Pooled(call, x));
  if (call.type(operand).dims == expected) return absl::OkStatus();
  return call.Error(absl::StrCat("operand ", operand, " is ", ToString(call.type(operand)), ", but pooling ",
                                 ToString(x), " gives ", ToString(expected)));
}

absl::StatusOr<Types> GradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, TapDType(Taps(call))));
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", call.type(0).rank(), 0));
  const TensorType type{call.type(0).dtype, call.ints("input")};
  AGC_RETURN_IF_ERROR(CheckDims(call, "input", type.dtype, type.dims));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 0, type.dims));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 1, type.dims));
  return Types(type);
}

absl::StatusOr<Types> TakeType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, TapDType(Taps(call))));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 1, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, call.type(1).dims});
}

// ---------------------------------------------------------------- values

// Row-major position of a tap.
Expr Position(const Window& w, Index tap) {
  Expr position = tap[0];
  for (int axis = 1; axis < w.rank(); ++axis) position = position * w.kernel[axis] + tap[axis];
  return position;
}

// The operand's element that output `i` has at `tap`, and whether there is one.
struct TapPlace {
  Point index = {};
  Expr inside = {};
};
TapPlace PlaceOf(At& s, const Window& w, Index i, Index tap) {
  TapPlace all{{i[0], i[1]}, s.pool.Bool(true)};
  for (int axis = 0; axis < w.rank(); ++axis) {
    const WindowPlace place = InputAt(w, axis, i[2 + axis], tap[axis], s.dim(0, 2 + axis));
    all.index.push_back(place.index);
    all.inside = And(all.inside, place.inside);
  }
  return all;
}

// Padding is no element: it never wins.
Expr WithIndexAt(At& s, Index i) {
  const Window w = PoolWindow(s, {});
  const Combiner& argmax = *FindCombiner("argmax");
  const Expr lowest = s.pool.Const(argmax.identity(0, s.type(0).dtype));
  const Expr none = s.pool.Const(argmax.identity(1, DType::kI32));
  const std::vector<Expr> best = s.Reduce("argmax", w.kernel, [&](Index k) {
    const TapPlace place = PlaceOf(s, w, i, k);
    const Expr value = s.Guard(
        place.inside, [&] { return s.Read(0, place.index); }, lowest);
    return std::vector<Expr>{value, Select(place.inside, FromIndex(Position(w, k), DType::kI32), none)};
  });
  return Cast(best[s.part], s.out().dtype);
}

Expr GradAt(At& s, Index i) {
  const Window w = PoolWindow(s, {});
  Ints readers;
  for (int axis = 0; axis < w.rank(); ++axis) readers.push_back(Readers(w, axis, FormOf(w, axis)));
  return s.Sum(readers, [&](Index k) {
    Point out = {i[0], i[1]}, tap;
    Expr inside = s.pool.Bool(true);
    for (int axis = 0; axis < w.rank(); ++axis) {
      const Reader r = OutputAt(w, axis, i[2 + axis], k[axis], s.dim(0, 2 + axis), FormOf(w, axis));
      inside = And(And(inside, r.inside), r.is_tap);
      out.push_back(r.index);
      tap.push_back(r.tap);
    }
    return s.Guard(
        inside,
        [&] {
          const Expr winner = Cast(s.Read(1, out), DType::kI32), position = FromIndex(Position(w, tap), DType::kI32);
          return Select(Alu("eq", {winner, position}), s.Read(0, out), s.Number(0));
        },
        s.Number(0));
  });
}

// A position beyond the window names no element: 0, as max_pool_grad drops it.
Expr TakeAt(At& s, Index i) {
  const Window w = PoolWindow(s, {});
  const int64_t most = s.type(1).dtype == DType::kU8 ? 255 : std::numeric_limits<int32_t>::max();
  Expr winner = Cast(s.Read(1, i), DType::kI32);
  if (most > 255) winner = Alu("max", {winner, Number(s.pool, DType::kI32, -1)});
  const Expr position = ToIndex(winner, most > 255 ? -1 : 0, most);
  Expr rest = position;
  Point tap(static_cast<size_t>(w.rank()));
  for (int axis = w.rank() - 1; axis > 0; --axis) {
    tap[axis] = Mod(rest, w.kernel[axis]);
    rest = Div(rest, w.kernel[axis]);
  }
  tap[0] = rest;
  const TapPlace place = PlaceOf(s, w, i, tap);
  return s.Guard(
      And(InRange(position, w.taps()), place.inside), [&] { return s.Read(0, place.index); }, s.Number(0));
}

// ---------------------------------------------------------------- gradients

Value PoolGrad(const Rule& s, Value g, Value index, Ints input) {
  PoolAttrs attrs = AttrsOf(PoolWindow(s, {}));
  attrs.push_back({"input", std::move(input)});
  return Emit("max_pool_grad", {g, index}, attrs, s.op.loc);
}
void WithIndexVjp(Vjp& s) {
  if (s.g.valid()) s.dx[0] = PoolGrad(s, s.g, Get(s.y, 1), s.x[0].dims());
}
void GradVjp(Vjp& s) { s.dx[0] = Emit("max_pool_take", {s.g, s.x[1]}, AttrsOf(PoolWindow(s, {})), s.op.loc); }
void TakeVjp(Vjp& s) { s.dx[0] = PoolGrad(s, s.g, s.x[1], s.x[0].dims()); }

// ---------------------------------------------------------------- max_unpool

absl::StatusOr<Types> UnpoolType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  const Ints& input = call.ints("input");
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", static_cast<int>(call.ints("window").size()), 0));
  TensorType type{call.type(0).dtype, {call.type(0).dims[0], call.type(0).dims[1]}};
  type.dims.insert(type.dims.end(), input.begin(), input.end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 0, type.dims));
  AGC_RETURN_IF_ERROR(CheckPooled(call, 1, type.dims));
  return Types(type);
}

// Which tap of its window each position is; `known` becomes false where it is none.
Value TapOf(Rule& s, const Window& w, Value positions, Value& known) {
  const auto number = [](int64_t v) { return static_cast<double>(v); };
  const Ints& input = s.ints("input");
  const Value zero = FullLike(positions, 0);
  Value tap, rest = positions;
  known = GreaterEqual(positions, zero);
  int64_t taps_behind = 1;
  for (int axis = w.rank() - 1; axis >= 0; --axis) {
    const Value extent = ScalarLike(positions, number(input[axis]), s.op.loc);
    const Value start = Iota(s.builder, positions.dtype(), positions.dims(), 2 + axis) * number(w.stride[axis]);
    const Value offset = (axis == 0 ? rest : Rem(rest, extent)) - start + number(w.before[axis]);
    const Value step = ScalarLike(positions, number(w.dilation[axis]), s.op.loc), along = FloorDiv(offset, step);
    const Value end = FullLike(positions, number(w.kernel[axis]));
    known = LogicalAnd(known, LogicalAnd(GreaterEqual(along, zero), Less(along, end)));
    if (w.dilation[axis] != 1) known = LogicalAnd(known, Equal(along * step, offset));
    const Value term = taps_behind == 1 ? along : along * number(taps_behind);
    tap = tap.valid() ? tap + term : term;
    rest = FloorDiv(rest, extent);
    taps_behind *= w.kernel[axis];
  }
  return Where(known, tap, zero);
}

Value UnpoolDecompose(Rule& s) {
  const Window w = PoolWindow(s, {});
  Value known;
  const Value wide = SizeOf(s.x[1].dtype()) < 4 ? CastTo(s.x[1], DType::kI32) : s.x[1];
  const Value tap = CastTo(TapOf(s, w, wide, known), TapDType(w.taps()));
  const Value kept = Where(known, s.x[0], FullLike(s.x[0], 0));
  Ints input = s.op.type().dims;
  return PoolGrad(s, kept, tap, std::move(input));
}

constexpr AttrDef kWindow = {"window", kInts}, kStride = {"stride", kInts, "[]"}, kPad = {"pad", kInts, "[]"},
                  kDilation = {"dilation", kInts, "[]"}, kInput = {"input", kInts};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "max_pool_grad", .cls = OpClass::kReduce, .arity = 2, .attrs = {kInput, kWindow, kStride, kPad, kDilation}, .infer = GradType, .at = GradAt, .vjp = GradVjp,
     .numpy = "max_pool_grad(x0, x1, input=input, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,3,6]", "u8[1,2,3,6]"}, .attrs = "input = [1, 2, 5, 6], window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]", .lo = 0, .hi = 5},
     .doc = "Adds each element of the first operand to the input element that the second, from max_pool_with_index, names."},
    {.name = "max_pool_take", .cls = OpClass::kGather, .arity = 2, .attrs = {kWindow, kStride, kPad, kDilation}, .infer = TakeType, .at = TakeAt, .vjp = TakeVjp,
     .numpy = "max_pool_take(x0, x1, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,5,6]", "u8[1,2,3,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]", .lo = 0, .hi = 5},
     .doc = "The element of each window that the second operand, from max_pool_with_index, names; 0 in the padding."},
    {.name = "max_pool_with_index", .cls = OpClass::kReduce, .arity = 1, .attrs = {kWindow, kStride, kPad, kDilation}, .infer = WithIndexType, .at = WithIndexAt, .vjp = WithIndexVjp,
     .numpy = "max_pool_with_index(x0, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "A tuple: the largest element of each window, and its row-major position in the window, that of the first of equals or of the first NaN, as u8 (i32 for windows of more than 256 elements). An empty stride is the window, an empty pad 0, an empty dilation 1."},
    {.name = "max_unpool", .cls = OpClass::kComposite, .arity = 2, .attrs = {kInput, kWindow, kStride, kPad, kDilation}, .infer = UnpoolType, .decompose = UnpoolDecompose,
     .numpy = "max_unpool(x0, x1, input=input, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,2,3]", "i32[1,2,2,3]"}, .attrs = "input = [4, 6], window = [2, 2]", .lo = 0, .hi = 23},
     .doc = "Puts each element of the first operand where the second, from max_pool_indices, says, among zeros of spatial extents `input`. A position outside the element's window is dropped; elements at one position add up."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kMaxPoolOps(kOps);

}  // namespace agc
