// Maximum pooling over any number of spatial axes, with the gradients. It remembers which tap of its window won;
// scattering along that (max_pool_grad) and gathering along it (max_pool_take) are each other's gradient.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/index.h"
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
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
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
  const int64_t elements = Product(input);
  if (elements <= std::numeric_limits<int32_t>::max()) return Types(type);
  return call.Error(absl::StrCat("the result is ", ToString(type), ", expected less than 2^31 spatial elements"));
}

// The window that comes last in row-major order among those whose position names the element.
Expr UnpoolAt(At& s, Index i) {
  const Window w = PoolWindow(s, {});
  const Ints &input = s.ints("input"), outputs = Spatial(s.type(0).dims);
  Ints readers;
  Expr own = i[2];
  for (int axis = 0; axis < w.rank(); ++axis) {
    readers.push_back(Readers(w, axis, FormOf(w, axis)));
    if (axis > 0) own = own * input[axis] + i[2 + axis];
  }
  const DType wide = WideIndex(s.type(1).dtype, Product(input));
  const Expr position = FromIndex(own, wide), none = Number(s.pool, DType::kI32, -1);
  const Expr last = s.Reduce("max", readers, [&](Index k) -> std::vector<Expr> {
    Point at = {i[0], i[1]};
    Expr inside = s.pool.Bool(true), number = s.pool.Int(0);
    for (int axis = 0; axis < w.rank(); ++axis) {
      const Reader r = OutputAt(w, axis, i[2 + axis], k[axis], outputs[axis], FormOf(w, axis));
      inside = And(And(inside, r.inside), r.is_tap);
      number = number * outputs[axis] + r.index;
      at.push_back(r.index);
    }
    const auto named = [&] { return Alu("eq", {Cast(s.Read(1, at), wide), position}); };
    return {s.Guard(
        inside, [&] { return Select(named(), FromIndex(number, DType::kI32), none); }, none)};
  })[0];
  Expr rest = ClampedIndex(last, Product(outputs));
  Point from(i.begin(), i.end());
  for (int axis = w.rank() - 1; axis > 0; --axis) {
    from[2 + axis] = Mod(rest, outputs[axis]);
    rest = Div(rest, outputs[axis]);
  }
  from[2] = rest;
  return Select(Alu("lt", {last, Number(s.pool, DType::kI32, 0)}), s.Number(0), s.Read(0, from));
}

// i32 [b, n]: positions among the elements of each of b planes; -1 for what is none.
Value PositionsOf(Value indices, int64_t b, int64_t n, int64_t elements) {
  const Value wide = SizeOf(indices.dtype()) < 4 ? CastTo(indices, DType::kI32) : indices, zero = FullLike(wide, 0);
  const Value end = FullLike(wide, static_cast<double>(elements));
  const Value inside = LogicalAnd(GreaterEqual(wide, zero), Less(wide, end));
  const Value positions = CastTo(Where(inside, wide, zero), DType::kI32);
  return Reshape(Where(inside, positions, FullLike(positions, -1)), {b, n});
}

// An element that another was put over gets nothing. Which was put last is read off the windows' numbers, unpooled.
void UnpoolVjp(Vjp& s) {
  if (!IsFloat(s.x[0].dtype())) return;
  const Dims pooled = s.x[0].dims();
  const int64_t b = pooled[0] * pooled[1], n = Product(Spatial(pooled)), elements = Product(s.ints("input"));
  const Value numbers = Iota(s.builder, DType::kI32, {b, n, 1}, 1) + 1.0;
  const Value last = Emit("max_unpool", {Reshape(numbers, pooled), s.x[1]}, s.op.attrs, s.op.loc);
  const Value positions = PositionsOf(s.x[1], b, n, elements);
  const auto at = [&](Value plane) { return GatherRows(Reshape(plane, {b, elements, 1}), positions); };
  const Value g = at(s.g);
  s.dx[0] = Reshape(Where(Equal(at(last), numbers), g, FullLike(g, 0)), pooled);
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
    {.name = "max_unpool", .cls = OpClass::kScatter, .arity = 2, .attrs = {kInput, kWindow, kStride, kPad, kDilation}, .infer = UnpoolType, .at = UnpoolAt, .vjp = UnpoolVjp,
     .numpy = "max_unpool(x0, x1, input=input, window=window, stride=stride, pad=pad, dilation=dilation)",
     .sample = {.shapes = {"f32[1,2,2,3]", "i32[1,2,2,3]"}, .attrs = "input = [4, 6], window = [2, 2]", .lo = 0, .hi = 23},
     .doc = "Puts each element of the first operand where the second, from max_pool_indices, says, among zeros of spatial extents `input`. A position outside the element's window is dropped; of elements at one position the last in row-major order stays, and gets the gradient."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kMaxPoolOps(kOps);

}  // namespace agc
