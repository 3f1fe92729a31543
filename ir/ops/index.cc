// Reads with an index per element or per row: take_along_axis, gather_nd, gather_rows, embedding; and the positions
// that indices stand for.
#include "ir/ops/index.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/tables.h"

namespace agc {

Expr ClampedIndex(Expr v, int64_t n) {
  const Expr zero = Number(*v.pool, v.dtype(), 0), last = Number(*v.pool, v.dtype(), static_cast<double>(n - 1));
  return ToIndex(Alu("min", {Alu("max", {v, zero}), last}), 0, n - 1);
}

Expr I32(const At& s, int64_t v) { return Number(s.pool, DType::kI32, static_cast<double>(v)); }

int64_t Product(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- wrap_index

absl::StatusOr<Types> WrapIndexType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 0));
  const int64_t size = call.integer("size"), most = std::numeric_limits<int32_t>::max();
  const bool drop = call.text("outside") == "drop";
  if (size < 0 || size > most) return call.Error(absl::StrCat("size is ", size, ", expected 0 to ", most));
  if (size == 0 && !drop && call.type(0).elements() > 0)
    return call.Error("an axis of 0 elements has none to clamp an index to; use outside = \"drop\"");
  return Types(TensorType{DType::kI32, call.type(0).dims});
}

Expr WrapIndexAt(At& s, Index i) {
  const int64_t n = s.integer("size");
  if (s.text("outside") == "clamp") return FromIndex(Position(s.Read(0, i), n), DType::kI32);
  const DType wide = WideIndex(s.type(0).dtype, n);
  Expr v = Cast(s.Read(0, i), wide);
  const Expr zero = Number(s.pool, wide, 0), size = Number(s.pool, wide, static_cast<double>(n));
  if (IsSigned(wide)) v = Select(Alu("lt", {v, zero}), v + size, v);
  const Expr below = Alu("lt", {v, size});
  const Expr inside = IsSigned(wide) ? And(below, Alu("ge", {v, zero})) : below;
  return Select(inside, Cast(v, DType::kI32), s.Number(-1));
}

// ---------------------------------------------------------------- take_along_axis

absl::StatusOr<Types> TakeAlongAxisType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType &x = call.type(0), &indices = call.type(1);
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, x.rank()));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const int64_t axis = PositiveAxis(call.integer("axis"), x.rank());
  for (int64_t k = 0; k < x.rank(); ++k) {
    if (k == axis || indices.dims[k] <= x.dims[k]) continue;
    return call.Error(absl::StrCat("axis ", k, " of the indices has ", indices.dims[k], " elements, ", ToString(x),
                                   " has ", x.dims[k]));
  }
  const TensorType type{x.dtype, indices.dims};
  AGC_RETURN_IF_ERROR(CheckTaken(call, type, axis));
  return Types(type);
}

Expr TakeAlongAxisAt(At& s, Index i) {
  const size_t axis = static_cast<size_t>(PositiveAxis(s.integer("axis"), s.type(0).rank()));
  Point point(i.begin(), i.end());
  point[axis] = Position(s.Read(1, i), s.dim(0, static_cast<int>(axis)));
  return s.Read(0, point);
}

void TakeAlongAxisVjp(Vjp& s) {
  if (!IsFloat(s.x[0].dtype())) return;
  s.dx[0] = FullLike(s.x[0], 0);
  if (s.g.type().elements() == 0) return;
  const int64_t axis = PositiveAxis(s.integer("axis"), s.x[0].rank());
  const Value positions = WrapIndex(s.x[1], s.x[0].dim(static_cast<int>(axis)), /*drop=*/false);
  s.dx[0] = ScatterElements(s.dx[0], positions, s.g, axis, ScatterMode::kAdd);
}

// ---------------------------------------------------------------- gather_nd

absl::StatusOr<Types> GatherNdType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 1, 1));
  const TensorType &x = call.type(0), &indices = call.type(1);
  const int64_t batch = call.integer("batch_dims"), last = indices.rank() - 1;
  if (batch < 0 || batch > last || batch > x.rank())
    return call.Error(absl::StrCat("batch_dims is ", batch, ", expected 0 to ", std::min<int64_t>(last, x.rank())));
  for (int64_t k = 0; k < batch; ++k) {
    if (x.dims[k] == indices.dims[k]) continue;
    return call.Error(absl::StrCat("batch axis ", k, " of ", ToString(x), " and ", ToString(indices), " differs"));
  }
  const int64_t depth = indices.dims[last];
  if (depth > x.rank() - batch) {
    return call.Error(absl::StrCat("indices of ", depth, " numbers address ", ToString(x), ", which has ",
                                   x.rank() - batch, " axes after ", batch, " batch axes"));
  }
  TensorType type{x.dtype, Dims(indices.dims.begin(), indices.dims.end() - 1)};
  type.dims.insert(type.dims.end(), x.dims.begin() + batch + depth, x.dims.end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  for (int64_t k = batch; k < batch + depth; ++k) AGC_RETURN_IF_ERROR(CheckTaken(call, type, k));
  // The gradient adds up by linear positions.
  if (IsFloat(x.dtype)) AGC_RETURN_IF_ERROR(CheckPositionCount(call, absl::MakeSpan(x.dims).subspan(batch, depth)));
  return Types(type);
}

Expr GatherNdAt(At& s, Index i) {
  const size_t batch = static_cast<size_t>(s.integer("batch_dims")), m = static_cast<size_t>(s.type(1).rank()) - 1;
  const int64_t depth = s.type(1).dims[m];
  Point at(i.begin(), i.begin() + m), point(i.begin(), i.begin() + batch);
  at.push_back(s.pool.Int(0));
  for (int64_t k = 0; k < depth; ++k) {
    at.back() = s.pool.Int(k);
    point.push_back(Position(s.Read(1, at), s.dim(0, static_cast<int>(batch) + static_cast<int>(k))));
  }
  point.insert(point.end(), i.begin() + m, i.end());
  return s.Read(0, point);
}

void GatherNdVjp(Vjp& s) {
  const Value x = s.x[0];
  if (!IsFloat(x.dtype())) return;
  s.dx[0] = FullLike(x, 0);
  if (s.g.type().elements() == 0) return;
  const int64_t batch = s.integer("batch_dims"), depth = s.x[1].dim(-1);
  const Dims dims = x.dims();
  const int64_t b = Product(absl::MakeSpan(dims).first(batch)), r = Product(absl::MakeSpan(dims).subspan(batch, depth)),
                d = Product(absl::MakeSpan(dims).subspan(batch + depth)), n = s.g.type().elements() / (b * d);
  const Value positions = Reshape(LinearPositions(s.x[1], absl::MakeSpan(dims).subspan(batch, depth), false), {b, n});
  const Value zeros = Reshape(s.dx[0], {b, r, d});
  s.dx[0] = Reshape(ScatterRows(zeros, positions, Reshape(s.g, {b, n, d}), ScatterMode::kAdd), dims);
}

// ---------------------------------------------------------------- gather_rows

absl::StatusOr<Types> GatherRowsType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 3));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kI32));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, 2));
  const Dims &x = call.type(0).dims, &p = call.type(1).dims;
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {x[1]}));
  if (p[0] != 1 && p[0] != x[0]) {
    return call.Error(absl::StrCat("the positions are ", ToString(call.type(1)), ", expected 1 or ", x[0], " rows"));
  }
  return Types(TensorType{call.type(0).dtype, {x[0], p[1], x[2]}});
}

Expr GatherRowsAt(At& s, Index i) {
  const int64_t rows = s.dim(0, 1);
  if (rows == 0) return s.Number(0);
  const Expr p = s.Read(1, {s.dim(1, 0) == 1 ? s.pool.Int(0) : i[0], i[1]});
  const Expr inside = And(Alu("ge", {p, Number(s.pool, DType::kI32, 0)}),
                          Alu("lt", {p, Number(s.pool, DType::kI32, static_cast<double>(rows))}));
  return Select(inside, s.Read(0, {i[0], ClampedIndex(p, rows), i[2]}), s.Number(0));
}

void GatherRowsVjp(Vjp& s) {
  if (IsFloat(s.x[0].dtype())) s.dx[0] = ScatterRows(FullLike(s.x[0], 0), s.x[1], s.g, ScatterMode::kAdd);
}

// ---------------------------------------------------------------- embedding

absl::StatusOr<Types> EmbeddingType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 2));
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  const TensorType& table = call.type(0);
  const int64_t padding = call.integer("padding_idx");
  if (padding < -1 || padding >= std::max<int64_t>(table.dims[0], 1))
    return call.Error(absl::StrCat("padding_idx is ", padding, ", expected -1 to ", table.dims[0] - 1));
  TensorType type{table.dtype, call.type(1).dims};
  type.dims.push_back(table.dims[1]);
  AGC_RETURN_IF_ERROR(CheckTaken(call, type, 0));
  return Types(type);
}

void EmbeddingVjp(Vjp& s) {
  if (!IsFloat(s.x[0].dtype())) return;
  s.dx[0] = FullLike(s.x[0], 0);
  if (s.g.type().elements() == 0) return;
  Value ids = WrapIndex(s.x[1], s.x[0].dim(0), /*drop=*/false);
  const double padding = static_cast<double>(s.integer("padding_idx"));
  if (padding >= 0) ids = Where(Equal(ids, FullLike(ids, padding)), FullLike(ids, -1), ids);
  const int64_t n = ids.type().elements(), v = s.x[0].dim(0), d = s.x[0].dim(1);
  const Value rows =
      ScatterRows(Reshape(s.dx[0], {1, v, d}), Reshape(ids, {1, n}), Reshape(s.g, {1, n, d}), ScatterMode::kAdd);
  s.dx[0] = Reshape(rows, {v, d});
}

// ---------------------------------------------------------------- masked_fill

absl::StatusOr<Types> MaskedFillType(const OpCall& call) {
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kBool));
  if (call.type(1).dims != x.dims)
    return call.Error(absl::StrCat("the mask is ", ToString(call.type(1)), ", expected the shape of ", ToString(x)));
  AGC_RETURN_IF_ERROR(CheckValueOf(call, "value", call.number("value"), x.dtype));
  return Types(x);
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "embedding", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"padding_idx", kInt, "-1"}}, .infer = EmbeddingType,
     .decompose = [](Rule& s) { return Take(s.x[0], s.x[1], 0); }, .vjp = EmbeddingVjp, .numpy = "take(x0, x1, axis=0)",
     .sample = {.shapes = {"f32[5,3]", "i32[2,3]"}, .lo = -6, .hi = 6},
     .doc = "Rows of a table at ids, as `take`; id `padding_idx` passes no gradient (-1: none)."},
    {.name = "gather_nd", .cls = OpClass::kGather, .arity = 2, .attrs = {{"batch_dims", kInt, "0"}}, .infer = GatherNdType, .at = GatherNdAt, .vjp = GatherNdVjp,
     .numpy = "gather_nd(x0, x1, batch_dims)", .sample = {.shapes = {"f32[2,3,4,2]", "i32[2,5,2]"}, .attrs = "batch_dims = 1", .lo = -5, .hi = 5},
     .doc = "Slices at positions along several axes: the last axis of the indices addresses the first axes behind `batch_dims` shared ones. Negative indices count from the end, then indices are clamped."},
    {.name = "gather_rows", .cls = OpClass::kGather, .arity = 2, .infer = GatherRowsType, .at = GatherRowsAt, .vjp = GatherRowsVjp,
     .numpy = "gather_rows(x0, x1)", .sample = {.shapes = {"f32[2,3,4]", "i32[1,5]"}, .lo = -1, .hi = 3},
     .doc = "Rows of [b,r,d] at i32 positions [b,n] or [1,n]: [b,n,d], zeros where the position is no row."},
    {.name = "masked_fill", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"value", kFloat}}, .infer = MaskedFillType,
     .decompose = [](Rule& s) { return Where(s.x[1], FullLike(s.x[0], s.number("value")), s.x[0]); },
     .numpy = "np.where(x1, np.asarray(value, x0.dtype), x0)", .sample = {.shapes = {"f32[2,3]", "bool[2,3]"}, .attrs = "value = -2"},
     .doc = "`value` where the mask holds, else the first operand."},
    {.name = "take_along_axis", .cls = OpClass::kGather, .arity = 2, .attrs = {{"axis", kInt, "-1"}}, .infer = TakeAlongAxisType, .at = TakeAlongAxisAt,
     .vjp = TakeAlongAxisVjp, .numpy = "take_along_axis(x0, x1, axis)",
     .sample = {.shapes = {"f32[2,4,3]", "i32[2,5,2]"}, .attrs = "axis = 1", .lo = -5, .hi = 5},
     .doc = "Elements along `axis` at the position that the index at the same place holds; off the axis the indices may be smaller. A negative index counts from the end, then indices are clamped."},
    {.name = "wrap_index", .cls = OpClass::kElementwise, .arity = 1, .attrs = {{"size", kInt}, {"outside", kString, "clamp", "clamp|drop"}},
     .infer = WrapIndexType, .at = WrapIndexAt, .vjp = NoGradient, .numpy = "wrap_index(x0, size, outside)",
     .sample = {.shapes = {"i32[2,7]"}, .attrs = "size = 3, outside = \"drop\"", .lo = -5, .hi = 5, .differentiable = false},
     .doc = "The i32 position along an axis of `size` elements that an index stands for: a negative one counts from the end; one that is no element is clamped, or becomes -1."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kIndexOps(kOps);

Value LinearPositions(Value indices, absl::Span<const int64_t> dims, bool drop) {
  const int last = indices.rank() - 1;
  Ints from(indices.rank(), 0), to = indices.dims(), shape(indices.dims().begin(), indices.dims().end() - 1);
  if (dims.empty()) return Full(*indices.builder, {DType::kI32, shape}, 0);
  Value all, inside;
  for (size_t k = 0; k < dims.size(); ++k) {
    from[last] = static_cast<int64_t>(k);
    to[last] = from[last] + 1;
    const Value p = WrapIndex(Reshape(Slice(indices, from, to, {}), shape), dims[k], drop);
    all = all.valid() ? all * static_cast<double>(dims[k]) + p : p;
    if (!drop || dims.size() == 1) continue;
    const Value in = GreaterEqual(p, FullLike(p, 0));
    inside = inside.valid() ? LogicalAnd(inside, in) : in;
  }
  return inside.valid() ? Where(inside, all, FullLike(all, -1)) : all;
}

Value TakeAlongAxis(Value x, Value indices, int64_t axis, Loc loc) {
  return Emit("take_along_axis", {x, indices}, {Attr{"axis", axis}}, loc);
}
Value GatherNd(Value x, Value indices, int64_t batch_dims, Loc loc) {
  return Emit("gather_nd", {x, indices}, {Attr{"batch_dims", batch_dims}}, loc);
}
Value GatherRows(Value x, Value positions, Loc loc) { return Emit("gather_rows", {x, positions}, {}, loc); }
Value Embedding(Value table, Value ids, int64_t padding_idx, Loc loc) {
  return Emit("embedding", {table, ids}, {Attr{"padding_idx", padding_idx}}, loc);
}
Value MaskedFill(Value x, Value mask, double value, Loc loc) {
  if (x.valid() && mask.valid() && mask.dims() != x.dims()) mask = Broadcast(mask, x.dims(), loc);
  return Emit("masked_fill", {x, mask}, {Attr{"value", value}}, loc);
}
Value WrapIndex(Value indices, int64_t size, bool drop, Loc loc) {
  return Emit("wrap_index", {indices}, {Attr{"size", size}, Attr{"outside", std::string(drop ? "drop" : "clamp")}},
              loc);
}

}  // namespace agc
