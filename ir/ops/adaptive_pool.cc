// Pooling to a given size: output o of m takes the inputs from floor(o n / m) to ceil((o + 1) n / m) of n. An input i
// lies in the outputs from floor(i m / n) to ceil((i + 1) m / n): gradients have the same form with n and m exchanged.
#include <algorithm>
#include <limits>
#include <memory>

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

// ---------------------------------------------------------------- regions

int64_t Start(int64_t o, int64_t n, int64_t m) { return o * n / m; }
int64_t End(int64_t o, int64_t n, int64_t m) { return ((o + 1) * n + m - 1) / m; }

// The longest region along one axis.
int64_t Longest(int64_t n, int64_t m) {
  if (n % m == 0) return n / m;
  int64_t longest = 0;
  for (int64_t o = 0; o < m; ++o) longest = std::max(longest, End(o, n, m) - Start(o, n, m));
  return longest;
}

// Element `t` of the region of output `o`.
WindowPlace InRegion(Expr o, Expr t, int64_t n, int64_t m) {
  const Expr index = Div(o * n, m) + t, end = Div(o * n + (n + m - 1), m);
  return {index, And(NonNeg(end - index - 1), InRange(index, n))};
}

// Extents of a loop over the region, for tensors with spatial extents `from` and `to`.
Ints Regions(const Ints& from, const Ints& to) {
  Ints extents;
  for (size_t k = 0; k < from.size(); ++k) extents.push_back(Longest(from[k], to[k]));
  return extents;
}

struct RegionPlace {
  Point index = {};
  Expr inside = {};
};
RegionPlace InRegions(At& s, Index i, Index t, const Ints& from, const Ints& to) {
  RegionPlace place{{i[0], i[1]}, s.pool.Bool(true)};
  for (size_t k = 0; k < from.size(); ++k) {
    const WindowPlace along = InRegion(i[2 + k], t[k], from[k], to[k]);
    place.index.push_back(along.index);
    place.inside = And(place.inside, along.inside);
  }
  return place;
}

Expr RowMajor(Index spatial, const Ints& extents) {
  Expr position = spatial[0];
  for (size_t k = 1; k < extents.size(); ++k) position = position * extents[k] + spatial[k];
  return position;
}

// ---------------------------------------------------------------- types

absl::StatusOr<Types> SizedType(const OpCall& call, absl::string_view attr) {
  const Ints& size = call.ints(attr);
  if (size.empty()) return call.Error(absl::StrCat(attr, " = [] has no numbers, expected one per spatial axis"));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, static_cast<int>(size.size()) + 2));
  AGC_RETURN_IF_ERROR(CheckInts(call, attr, static_cast<int>(size.size()), 1));
  TensorType type = call.type(0);
  AGC_RETURN_IF_ERROR(CheckMost(call, attr, size));
  AGC_RETURN_IF_ERROR(CheckMost(call, "an extent of the input", Spatial(type.dims)));
  for (size_t k = 0; k < size.size(); ++k) {
    if (type.dims[2 + k] == 0) {
      return call.Error(absl::StrCat("the input ", ToString(type.dims), " has nothing to pool along axis ", 2 + k));
    }
    if (type.dims[2 + k] > std::numeric_limits<int32_t>::max() / (size[k] + 1)) {
      return call.Error(absl::StrCat("regions of ", size[k], " of ", type.dims[2 + k], " elements are beyond 32 bits"));
    }
    type.dims[2 + k] = size[k];
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

absl::StatusOr<Types> FloatType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return SizedType(call, "size");
}
absl::StatusOr<Types> NumberType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  return SizedType(call, "size");
}

absl::Status CheckPositions(const OpCall& call, const Dims& dims) {
  int64_t positions = 1;
  for (int64_t n : Spatial(dims)) positions *= n;
  if (positions <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return call.Error(absl::StrCat("the input has ", positions, " positions, too many for i32"));
}

absl::StatusOr<Types> MaxType(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(Types types, NumberType(call));
  AGC_RETURN_IF_ERROR(CheckPositions(call, call.type(0).dims));
  return types;
}

absl::StatusOr<Types> WithIndexType(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(const Types value, MaxType(call));
  return Types{value[0], TensorType{DType::kI32, value[0].dims}};
}

absl::StatusOr<Types> MaxGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kI32));
  if (call.type(1).dims != call.type(0).dims) {
    return call.Error(
        absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(1)), ", expected one shape"));
  }
  return SizedType(call, "input");
}

absl::StatusOr<Types> MaxTakeType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kI32));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, call.type(0).rank()));
  AGC_RETURN_IF_ERROR(CheckPositions(call, call.type(0).dims));
  const Dims &x = call.type(0).dims, &index = call.type(1).dims;
  if (x[0] != index[0] || x[1] != index[1]) {
    return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(1)),
                                   ", expected equal axes 0 and 1"));
  }
  return Types(TensorType{call.type(0).dtype, index});
}

// ---------------------------------------------------------------- values

Expr SumAt(At& s, Index i) {
  const Ints from = Spatial(s.type(0).dims), to = Spatial(s.out().dims);
  return s.Sum(Regions(from, to), [&](Index t) {
    const RegionPlace place = InRegions(s, i, t, from, to);
    return s.Guard(
        place.inside, [&] { return s.Read(0, place.index); }, s.Number(0));
  });
}

Expr MaxAt(At& s, Index i) {
  const Ints from = Spatial(s.type(0).dims), to = Spatial(s.out().dims);
  const Combiner& argmax = *FindCombiner("argmax");
  const Expr lowest = s.pool.Const(argmax.identity(0, s.type(0).dtype));
  const Expr none = s.pool.Const(argmax.identity(1, DType::kI32));
  const std::vector<Expr> best = s.Reduce("argmax", Regions(from, to), [&](Index t) {
    const RegionPlace place = InRegions(s, i, t, from, to);
    const Expr value = s.Guard(
        place.inside, [&] { return s.Read(0, place.index); }, lowest);
    const Expr position = FromIndex(RowMajor(Index(place.index).subspan(2), from), DType::kI32);
    return std::vector<Expr>{value, Select(place.inside, position, none)};
  });
  return Cast(best[s.part], s.out().dtype);
}

Expr MaxGradAt(At& s, Index i) {
  const Ints from = Spatial(s.type(0).dims), to = Spatial(s.out().dims);
  const Expr here = FromIndex(RowMajor(i.subspan(2), to), DType::kI32);
  return s.Sum(Regions(from, to), [&](Index t) {
    const RegionPlace place = InRegions(s, i, t, from, to);
    return s.Guard(
        place.inside,
        [&] {
          return Select(Alu("eq", {s.Read(1, place.index), here}), s.Read(0, place.index), s.Number(0));
        },
        s.Number(0));
  });
}

// 0 for a position outside the region, as adaptive_max_pool_grad drops it.
Expr MaxTakeAt(At& s, Index i) {
  const Ints from = Spatial(s.type(0).dims), to = Spatial(s.out().dims);
  if (std::find(from.begin(), from.end(), 0) != from.end()) return s.Number(0);  // no position is inside
  const Expr none = Number(s.pool, DType::kI32, -1);
  int64_t elements = 1;
  for (int64_t n : from) elements *= n;
  const Expr beyond = Number(s.pool, DType::kI32, static_cast<double>(elements));
  Expr rest = ToIndex(Alu("min", {Alu("max", {s.Read(1, i), none}), beyond}), -1, elements);
  Point x(i.begin(), i.end());
  Expr inside = s.pool.Bool(true);
  for (size_t k = from.size(); k-- > 0;) {
    const Expr index = k == 0 ? rest : Mod(rest, from[k]), start = Div(i[2 + k] * from[k], to[k]);
    const WindowPlace end = InRegion(i[2 + k], index - start, from[k], to[k]);
    inside = And(And(inside, end.inside), NonNeg(index - start));
    x[2 + k] = index;
    rest = Div(rest, from[k]);
  }
  return s.Guard(
      inside, [&] { return s.Read(0, x); }, s.Number(0));
}

// ---------------------------------------------------------------- gradients and definitions

Value Sized(const Rule& s, absl::string_view op, absl::Span<const Value> x, absl::string_view attr, Ints size) {
  return Emit(op, x, {Attr{attr, std::move(size)}}, s.op.loc);
}

void SumVjp(Vjp& s) {
  if (IsFloat(s.x[0].dtype())) s.dx[0] = Sized(s, "adaptive_sum_pool", {s.g}, "size", Spatial(s.x[0].dims()));
}
void MaxVjp(Vjp& s) {
  if (!s.g.valid()) return;
  const Value index = Get(s.y, 1);
  s.dx[0] = Sized(s, "adaptive_max_pool_grad", {s.g, index}, "input", Spatial(s.x[0].dims()));
}
void MaxGradVjp(Vjp& s) { s.dx[0] = Emit("adaptive_max_pool_take", {s.g, s.x[1]}, {}, s.op.loc); }
void MaxTakeVjp(Vjp& s) {
  s.dx[0] = Sized(s, "adaptive_max_pool_grad", {s.g, s.x[1]}, "input", Spatial(s.x[0].dims()));
}

// Elements of each region along one axis, broadcast against the pooled tensor.
Value Lengths(const Rule& s, int64_t n, int64_t m, int rank, int axis, DType dtype) {
  auto literal = std::make_shared<Literal>();
  literal->splat = n % m == 0;
  for (int64_t o = 0; o < (literal->splat ? 1 : m); ++o) {
    literal->values.push_back(Scalar::Of(dtype, static_cast<double>(End(o, n, m) - Start(o, n, m))));
  }
  TensorType type{dtype, Dims(static_cast<size_t>(rank), 1)};
  type.dims[axis] = literal->splat ? 1 : m;
  return Constant(s.builder, type, std::move(literal));
}

Value AverageOf(const Rule& s, Value sum) {
  const Dims in = s.x[0].dims(), &out = s.op.type().dims;
  const int rank = static_cast<int>(in.size());
  Value count;
  for (int axis = 2; axis < rank; ++axis) {
    const Value along = Lengths(s, in[axis], out[axis], rank, axis, sum.dtype());
    count = count.valid() ? count * along : along;
  }
  return sum / count;
}

Value AvgDecompose(Rule& s) {
  const DType dtype = s.x[0].dtype(), wide = AccumulatorOf(dtype);
  const Value x = wide == dtype ? s.x[0] : CastTo(s.x[0], wide);
  const Value mean = AverageOf(s, Sized(s, "adaptive_sum_pool", {x}, "size", s.ints("size")));
  return wide == dtype ? mean : CastTo(mean, dtype);
}
void AvgVjp(Vjp& s) {
  const DType dtype = s.g.dtype(), wide = AccumulatorOf(dtype);
  const Value share = AverageOf(s, wide == dtype ? s.g : CastTo(s.g, wide));
  const Value dx = Sized(s, "adaptive_sum_pool", {share}, "size", Spatial(s.x[0].dims()));
  s.dx[0] = wide == dtype ? dx : CastTo(dx, dtype);
}
Value MaxDecompose(Rule& s) {
  return Get(Sized(s, "adaptive_max_pool_with_index", {s.x[0]}, "size", s.ints("size")), 0);
}

constexpr AttrDef kSize = {"size", kInts}, kInput = {"input", kInts};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "adaptive_avg_pool", .cls = OpClass::kComposite, .arity = 1, .attrs = {kSize}, .infer = FloatType, .decompose = AvgDecompose, .vjp = AvgVjp,
     .numpy = "adaptive_avg_pool(x0, size)", .sample = {.shapes = {"f32[2,2,5,7]"}, .attrs = "size = [3, 2]"},
     .doc = "Means of the spatial axes of [n,c,spatial...] in `size` regions: output o of m takes inputs floor(o n / m) to ceil((o + 1) n / m)."},
    {.name = "adaptive_max_pool", .cls = OpClass::kComposite, .arity = 1, .attrs = {kSize}, .infer = MaxType, .decompose = MaxDecompose,
     .numpy = "adaptive_max_pool_with_index(x0, size)[0]", .sample = {.shapes = {"f32[2,2,5,7]"}, .attrs = "size = [3, 2]"},
     .doc = "Largest elements of the regions of adaptive_avg_pool, NaN if any is. The first of equals gets the gradient."},
    {.name = "adaptive_max_pool_grad", .cls = OpClass::kReduce, .arity = 2, .attrs = {kInput}, .infer = MaxGradType, .at = MaxGradAt, .vjp = MaxGradVjp,
     .numpy = "adaptive_max_pool_grad(x0, x1, input)", .sample = {.shapes = {"f32[1,2,3]", "i32[1,2,3]"}, .attrs = "input = [5]", .lo = 0, .hi = 4},
     .doc = "Adds each element of the first operand to the input element at the position that the second, from adaptive_max_pool_with_index, names, where that lies in its region."},
    {.name = "adaptive_max_pool_take", .cls = OpClass::kGather, .arity = 2, .infer = MaxTakeType, .at = MaxTakeAt, .vjp = MaxTakeVjp,
     .numpy = "adaptive_max_pool_take(x0, x1)", .sample = {.shapes = {"f32[1,2,5]", "i32[1,2,3]"}, .lo = 0, .hi = 4},
     .doc = "The elements of the first operand at the row-major positions that the second, from adaptive_max_pool_with_index, names; 0 for one outside the region."},
    {.name = "adaptive_max_pool_with_index", .cls = OpClass::kReduce, .arity = 1, .attrs = {kSize}, .infer = WithIndexType, .at = MaxAt, .vjp = MaxVjp,
     .numpy = "adaptive_max_pool_with_index(x0, size)", .sample = {.shapes = {"f32[2,2,5,7]"}, .attrs = "size = [3, 2]"},
     .doc = "A tuple: adaptive_max_pool, and the i32 row-major position of each largest element among the spatial axes."},
    {.name = "adaptive_sum_pool", .cls = OpClass::kReduce, .arity = 1, .attrs = {kSize}, .infer = NumberType, .at = SumAt, .vjp = SumVjp,
     .numpy = "adaptive_sum_pool(x0, size)", .sample = {.shapes = {"f32[2,2,5,3]"}, .attrs = "size = [3, 4]"},
     .doc = "Sums of the regions of adaptive_avg_pool; its own gradient, with the sizes exchanged."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kAdaptivePoolOps(kOps);

}  // namespace agc
