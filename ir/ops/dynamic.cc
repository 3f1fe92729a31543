// Windows at run-time positions, and positions in sorted rows.
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/index.h"
#include "ir/ops/tables.h"

namespace agc {

Expr Before(Expr a, Expr b) {
  const Expr less = Alu("lt", {a, b});
  if (!IsFloat(a.dtype())) return less;
  return Or(less, And(Alu("isnan", {b}), Not(Alu("isnan", {a}))));
}

namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- windows

absl::Status CheckStart(const OpCall& call, int operand) {
  AGC_RETURN_IF_ERROR(CheckInt(call, operand));
  const int64_t rank = call.type(0).rank();
  if (call.type(operand).dims == Dims{rank}) return absl::OkStatus();
  return call.Error(absl::StrCat("the start is ", ToString(call.type(operand)),
                                 ", expected one number for each axis of ", ToString(call.type(0))));
}

absl::Status CheckWindow(const OpCall& call, absl::Span<const int64_t> sizes) {
  const TensorType& x = call.type(0);
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] >= 0 && sizes[k] <= x.dims[k]) continue;
    return call.Error(absl::StrCat("the window is ", ToString(sizes), ", which does not fit into ", ToString(x)));
  }
  return absl::OkStatus();
}

// Where the window starts along axis k: a negative start counts from the end, then the window is moved inside.
Expr StartOf(At& s, int operand, int k, int64_t size) {
  const int64_t n = s.dim(0, k);
  if (n == size) return s.pool.Int(0);
  const DType wide = WideIndex(s.type(operand).dtype, n);
  Expr v = Cast(s.Read(operand, {s.pool.Int(k)}), wide);
  const Expr zero = Number(s.pool, wide, 0), last = Number(s.pool, wide, static_cast<double>(n - size));
  if (IsSigned(wide)) v = Alu("max", {Select(Alu("lt", {v, zero}), v + n, v), zero});
  return ToIndex(Alu("min", {v, last}), 0, n - size);
}

absl::StatusOr<Types> DynamicSliceType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckStart(call, 1));
  const Ints& sizes = call.ints("sizes");
  AGC_RETURN_IF_ERROR(CheckInts(call, "sizes", call.type(0).rank(), 0));
  AGC_RETURN_IF_ERROR(CheckWindow(call, sizes));
  return Types(TensorType{call.type(0).dtype, sizes});
}

Expr DynamicSliceAt(At& s, Index i) {
  Point point;
  for (int k = 0; k < s.out().rank(); ++k) point.push_back(i[k] + StartOf(s, 1, k, s.out().dims[k]));
  return s.Read(0, point);
}

absl::StatusOr<Types> DynamicUpdateSliceType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckStart(call, 2));
  const TensorType &x = call.type(0), &update = call.type(1);
  if (update.dtype != x.dtype || update.rank() != x.rank()) {
    return call.Error(
        absl::StrCat("the update is ", ToString(update), ", expected the dtype and rank of ", ToString(x)));
  }
  AGC_RETURN_IF_ERROR(CheckWindow(call, update.dims));
  return Types(x);
}

Expr DynamicUpdateSliceAt(At& s, Index i) {
  if (s.type(1).elements() == 0) return s.Read(0, i);
  Point point;
  Expr inside = s.pool.Bool(true);
  for (int k = 0; k < s.out().rank(); ++k) {
    point.push_back(i[k] - StartOf(s, 2, k, s.dim(1, k)));
    inside = And(inside, InRange(point.back(), s.dim(1, k)));
  }
  if (inside.IsTrue()) return s.Read(1, point);
  return s.Guard(
      inside, [&] { return s.Read(1, point); }, s.Read(0, i));
}

void DynamicUpdateSliceVjp(Vjp& s) {
  if (!IsFloat(s.x[0].dtype())) return;
  s.dx[0] = DynamicUpdateSlice(s.g, FullLike(s.x[1], 0), s.x[2]);
  s.dx[1] = DynamicSlice(s.g, s.x[2], s.x[1].dims());
}

// ---------------------------------------------------------------- searchsorted

absl::StatusOr<Types> SearchSortedType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType &rows = call.type(0), &values = call.type(1);
  if (rows.dims.back() > INT32_MAX)
    return call.Error(absl::StrCat("rows of ", ToString(rows), " are too long for i32"));
  const bool same =
      rows.rank() == values.rank() && std::equal(rows.dims.begin(), rows.dims.end() - 1, values.dims.begin());
  if (rows.rank() != 1 && !same) {
    return call.Error(absl::StrCat("the rows are ", ToString(rows), " and the values ", ToString(values),
                                   ", expected one row, or the same leading axes"));
  }
  return Types(TensorType{DType::kI32, values.dims});
}

// Binary search without branches: the position grows by falling powers of two while what lies before goes before.
Expr SearchSortedAt(At& s, Index i) {
  const int64_t n = s.type(0).dims.back();
  const bool right = s.flag("right");
  const Expr value = s.Read(1, i);
  const auto number = [&](int64_t v) { return Number(s.pool, DType::kI32, static_cast<double>(v)); };
  Point point;
  if (s.type(0).rank() > 1) point.assign(i.begin(), i.end() - 1);
  point.push_back(s.pool.Int(0));
  int64_t step = 1;
  while (step * 2 <= n) step *= 2;
  Expr found = number(0);
  for (; step > 0 && n > 0; step /= 2) {
    const Expr next = found.IsConst() ? number(found.node().payload + step) : found + number(step);
    point.back() = ClampedIndex(next - number(1), n);
    const Expr x = s.Read(0, point);
    const Expr passes = right ? Not(Before(value, x)) : Before(x, value);
    found = Select(And(Alu("le", {next, number(n)}), passes), next, found);
  }
  return found;
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "dynamic_slice", .cls = OpClass::kGather, .arity = 2, .attrs = {{"sizes", kInts}}, .infer = DynamicSliceType, .at = DynamicSliceAt,
     .vjp = [](Vjp& s) { if (IsFloat(s.x[0].dtype())) s.dx[0] = DynamicUpdateSlice(FullLike(s.x[0], 0), s.g, s.x[1]); },
     .numpy = "dynamic_slice(x0, x1, sizes)", .sample = {.shapes = {"f32[4,5]", "i32[2]"}, .attrs = "sizes = [2, 3]", .lo = -6, .hi = 6},
     .doc = "The window of `sizes` from the start that the second operand holds; a negative start counts from the end, then the window is moved inside."},
    {.name = "dynamic_update_slice", .cls = OpClass::kGather, .arity = 3, .infer = DynamicUpdateSliceType, .at = DynamicUpdateSliceAt, .vjp = DynamicUpdateSliceVjp,
     .numpy = "dynamic_update_slice(x0, x1, x2)", .sample = {.shapes = {"f32[4,5]", "f32[2,3]", "i32[2]"}, .lo = -6, .hi = 6},
     .doc = "The first operand with the window at the start that the third holds replaced by the second; the start is that of `dynamic_slice`."},
    {.name = "searchsorted", .cls = OpClass::kGather, .arity = 2, .attrs = {{"right", kBool, "false"}}, .infer = SearchSortedType, .at = SearchSortedAt,
     .vjp = NoGradient, .numpy = "searchsorted(x0, x1, right)", .sample = {.shapes = {"f32[1]", "f32[2,9]"}, .differentiable = false},
     .doc = "i32 position in a row sorted along the last axis where a value goes, before its equals or, if `right`, behind them; NaN goes behind all numbers."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kDynamicOps(kOps);

Value DynamicSlice(Value x, Value start, Ints sizes, Loc loc) {
  return Emit("dynamic_slice", {x, start}, {Attr{"sizes", sizes}}, loc);
}
Value DynamicUpdateSlice(Value x, Value update, Value start, Loc loc) {
  return Emit("dynamic_update_slice", {x, update, start}, {}, loc);
}
Value SearchSorted(Value sorted, Value values, bool right, Loc loc) {
  return Emit("searchsorted", {sorted, values}, {Attr{"right", right}}, loc);
}
Value Bucketize(Value x, Value boundaries, bool right, Loc loc) { return SearchSorted(boundaries, x, right, loc); }

}  // namespace agc
