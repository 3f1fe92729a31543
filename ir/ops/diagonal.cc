// Parts of matrices: triangles of the last two axes, and diagonals of any two.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- tril, triu

absl::StatusOr<Types> TriangleTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 2));
  return Types(call.type(0));
}

// The element where row - column + diagonal >= 0, or where it is <= 0.
Expr TriangleAt(At& s, Index i, bool lower) {
  const size_t rank = i.size();
  const int64_t rows = s.out().dims[rank - 2], columns = s.out().dims[rank - 1];
  const int64_t k = std::clamp(s.integer("diagonal"), -rows - 1, columns + 1);  // beyond that nothing changes
  const Expr above = i[rank - 1] - i[rank - 2];
  return s.Guard(
      NonNeg(lower ? above * -1 + k : above - k), [&] { return s.Read(0, i); }, s.Number(0));
}

// ---------------------------------------------------------------- diagonals

struct Axes {
  int64_t row = 0, column = 1, offset = 0;
};
Axes AxesOf(const AttrReader& a, int rank) {
  return {PositiveAxis(a.integer("axis1"), rank), PositiveAxis(a.integer("axis2"), rank), a.integer("offset")};
}

// The two axes of a tensor of `rank` axes.
absl::StatusOr<Axes> CheckedAxes(const OpCall& call, int rank) {
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis1", call.integer("axis1"), rank));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis2", call.integer("axis2"), rank));
  const Axes axes = AxesOf(call, rank);
  if (axes.row == axes.column) return call.Error(absl::StrCat("axis1 and axis2 both are axis ", axes.row));
  if (axes.offset < -INT32_MAX || axes.offset > INT32_MAX) {
    return call.Error(absl::StrCat("offset is too large (", axes.offset, ")"));
  }
  return axes;
}

int64_t DiagonalLength(const Dims& dims, const Axes& a) {
  const int64_t rows = dims[a.row] + std::min<int64_t>(a.offset, 0);
  return std::max<int64_t>(0, std::min(rows, dims[a.column] - std::max<int64_t>(a.offset, 0)));
}

// The shape without the two axes, which become a last one.
TensorType DiagonalType(const TensorType& x, const Axes& axes) {
  TensorType type{x.dtype, {}};
  for (int64_t k = 0; k < x.rank(); ++k) {
    if (k != axes.row && k != axes.column) type.dims.push_back(x.dims[k]);
  }
  type.dims.push_back(DiagonalLength(x.dims, axes));
  return type;
}

absl::StatusOr<Types> DiagonalTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 2));
  AGC_ASSIGN_OR_RETURN(const Axes axes, CheckedAxes(call, call.type(0).rank()));
  return Types(DiagonalType(call.type(0), axes));
}

Expr DiagonalAt(At& s, Index i) {
  const int rank = s.type(0).rank();
  const Axes axes = AxesOf(s, rank);
  Point point;
  size_t next = 0;
  for (int64_t k = 0; k < rank; ++k) {
    if (k == axes.row) point.push_back(i.back() + std::max<int64_t>(-axes.offset, 0));
    if (k == axes.column) point.push_back(i.back() + std::max<int64_t>(axes.offset, 0));
    if (k != axes.row && k != axes.column) point.push_back(i[next++]);
  }
  return s.Read(0, point);
}

// The embedded diagonal is a square, which is cut or filled up to the operand's shape.
void DiagonalVjp(Vjp& s) {
  const Dims dims = s.x[0].dims();
  const Axes axes = AxesOf(s, s.x[0].rank());
  if (s.g.type().elements() == 0) {
    s.dx[0] = FullLike(s.x[0], 0);
    return;
  }
  Ints high(dims.size(), 0);
  const int64_t side = s.g.dim(-1) + std::abs(axes.offset);
  high[axes.row] = dims[axes.row] - side;
  high[axes.column] = dims[axes.column] - side;
  s.dx[0] = Pad(DiagEmbed(s.g, axes.offset, axes.row, axes.column), 0, Ints(dims.size(), 0), high);
}

absl::StatusOr<Types> EmbedTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  AGC_ASSIGN_OR_RETURN(const Axes axes, CheckedAxes(call, call.type(0).rank() + 1));
  TensorType type = call.type(0);
  const int64_t side = type.dims.back() + std::abs(axes.offset);
  type.dims.pop_back();
  for (int64_t axis : {std::min(axes.row, axes.column), std::max(axes.row, axes.column)}) {
    type.dims.insert(type.dims.begin() + axis, side);
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

Expr EmbedAt(At& s, Index i) {
  if (s.type(0).elements() == 0) return s.Number(0);
  const Axes axes = AxesOf(s, s.out().rank());
  Point point;
  for (int64_t k = 0; k < s.out().rank(); ++k) {
    if (k != axes.row && k != axes.column) point.push_back(i[k]);
  }
  point.push_back(i[axes.row] - std::max<int64_t>(-axes.offset, 0));
  const Expr on = EqZero(i[axes.column] - i[axes.row] - axes.offset);
  return s.Guard(
      And(on, InRange(point.back(), s.type(0).dims.back())), [&] { return s.Read(0, point); }, s.Number(0));
}

void EmbedVjp(Vjp& s) {
  const Axes axes = AxesOf(s, s.g.rank());
  s.dx[0] = Diagonal(s.g, axes.offset, axes.row, axes.column);
}

absl::StatusOr<Types> TraceTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_ASSIGN_OR_RETURN(Types types, DiagonalTypes(call));
  types[0].dims.pop_back();
  return types;
}

Value TraceDecompose(Rule& s) {
  const Axes axes = AxesOf(s, s.x[0].rank());
  return ReduceSum(Diagonal(s.x[0], axes.offset, axes.row, axes.column), {-1});
}

using A = AttrKind;
constexpr AttrList kOffset = {{"diagonal", A::kInt, "0"}};
constexpr AttrList kFirstAxes = {{"offset", A::kInt, "0"}, {"axis1", A::kInt, "0"}, {"axis2", A::kInt, "1"}};
constexpr AttrList kLastAxes = {{"offset", A::kInt, "0"}, {"axis1", A::kInt, "-2"}, {"axis2", A::kInt, "-1"}};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "diag_embed", .cls = kView, .arity = 1, .attrs = kLastAxes, .infer = EmbedTypes, .at = EmbedAt, .vjp = EmbedVjp,
     .numpy = "diag_embed(x0, offset, axis1, axis2)", .sample = {.shapes = {"f32[2,3]"}, .attrs = "offset = 1, axis1 = 0, axis2 = 2"},
     .doc = "Puts the last axis on a diagonal of two new axes, 0 elsewhere."},
    {.name = "diagonal", .cls = kView, .arity = 1, .attrs = kFirstAxes, .infer = DiagonalTypes, .at = DiagonalAt, .vjp = DiagonalVjp,
     .numpy = "np.diagonal(x0, offset, axis1, axis2)", .sample = {.shapes = {"f32[4,2,3]"}, .attrs = "offset = -1, axis1 = 0, axis2 = 2"},
     .doc = "Elements [i, i + offset] of two axes, as a new last axis."},
    {.name = "trace", .cls = kComposite, .arity = 1, .attrs = kFirstAxes, .infer = TraceTypes, .decompose = TraceDecompose,
     .numpy = "np.trace(x0, offset, axis1, axis2, dtype=x0.dtype)", .sample = {.shapes = {"f32[3,4,2]"}, .attrs = "offset = 1"},
     .doc = "Sum of a diagonal of two axes."},
    {.name = "tril", .cls = kView, .arity = 1, .attrs = kOffset, .infer = TriangleTypes, .at = [](At& s, Index i) { return TriangleAt(s, i, true); },
     .vjp = [](Vjp& s) { s.dx[0] = Tril(s.g, s.integer("diagonal")); }, .numpy = "np.tril(x0, diagonal)",
     .sample = {.shapes = {"f32[2,3,4]"}, .attrs = "diagonal = 1"}, .doc = "The last two axes with 0 above a diagonal."},
    {.name = "triu", .cls = kView, .arity = 1, .attrs = kOffset, .infer = TriangleTypes, .at = [](At& s, Index i) { return TriangleAt(s, i, false); },
     .vjp = [](Vjp& s) { s.dx[0] = Triu(s.g, s.integer("diagonal")); }, .numpy = "np.triu(x0, diagonal)",
     .sample = {.shapes = {"f32[2,4,3]"}, .attrs = "diagonal = -1"}, .doc = "The last two axes with 0 below a diagonal."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kDiagonalOps(kOps);

Value Tril(Value x, int64_t diagonal, Loc loc) { return Emit("tril", {x}, {Attr{"diagonal", diagonal}}, loc); }
Value Triu(Value x, int64_t diagonal, Loc loc) { return Emit("triu", {x}, {Attr{"diagonal", diagonal}}, loc); }

Value Diagonal(Value x, int64_t offset, int64_t axis1, int64_t axis2, Loc loc) {
  return Emit("diagonal", {x}, {Attr{"offset", offset}, Attr{"axis1", axis1}, Attr{"axis2", axis2}}, loc);
}
Value DiagEmbed(Value x, int64_t offset, int64_t axis1, int64_t axis2, Loc loc) {
  return Emit("diag_embed", {x}, {Attr{"offset", offset}, Attr{"axis1", axis1}, Attr{"axis2", axis2}}, loc);
}
Value TraceOf(Value x, int64_t offset, int64_t axis1, int64_t axis2, Loc loc) {
  return Emit("trace", {x}, {Attr{"offset", offset}, Attr{"axis1", axis1}, Attr{"axis2", axis2}}, loc);
}
Value Diag(Value x, int64_t offset, Loc loc) {
  if (!x.valid()) return x;
  if (x.rank() == 1) return DiagEmbed(x, offset, 0, 1, loc);
  if (x.rank() == 2) return Diagonal(x, offset, 0, 1, loc);
  return Poison(*x.builder, loc, absl::StrCat("diag: operand 0 is ", ToString(x.type()), ", expected rank 1 or 2"));
}

Value Eye(Builder& b, DType dtype, int64_t rows, int64_t columns, int64_t offset, Loc loc) {
  if (columns == -1) columns = rows;
  const int64_t most = std::max({rows, columns, offset, offset == INT64_MIN ? INT64_MAX : -offset});
  const DType wide = most > INT32_MAX / 2 ? DType::kI64 : DType::kI32;
  const Value row = Iota(b, wide, {rows, columns}, 0, loc), column = Iota(b, wide, {rows, columns}, 1, loc);
  return CastTo(Equal(Sub(column, row, loc), FullLike(row, static_cast<double>(offset), loc), loc), dtype, loc);
}

}  // namespace agc
