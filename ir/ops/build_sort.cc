// The C++ functions of ir/ops/sort.cc, and what follows from a sort.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/ops/index.h"

namespace agc {
namespace {

// The first `size` elements of a row, with `fill` behind the first `count` of them.
Value FirstOf(Value row, Value count, int64_t size, double fill, Loc loc) {
  const int64_t n = row.dim(0);
  if (size > n) row = Pad(row, 0, {0}, {size - n}, loc);
  if (size < n) row = Slice(row, {0}, {size}, {}, loc);
  const Value there = Less(Iota(*row.builder, DType::kI32, {size}, 0, loc), count, loc);
  return Where(there, row, FullLike(row, fill, loc), loc);
}

// The positions [n] at which a mask [n] holds, in increasing order; behind them come the others.
Value HoldingFirst(Value mask, Loc loc) { return ArgSort(LogicalNot(mask, loc), 0, false, loc); }

Value CountOf(Value mask, Loc loc) { return ReduceSum(CastTo(mask, DType::kI32, loc), {}, false, loc); }

}  // namespace

Value Sort(Value x, int64_t axis, bool descending, Loc loc) {
  return Emit("sort", {x}, {Attr{"axis", axis}, Attr{"descending", descending}}, loc);
}
Value ArgSort(Value x, int64_t axis, bool descending, Loc loc) {
  return Emit("argsort", {x}, {Attr{"axis", axis}, Attr{"descending", descending}}, loc);
}
// Sorting a permutation finds where each number stands.
Value InversePermutation(Value order, Loc loc) {
  if (!order.valid() || order.rank() == 0 || order.dim(-1) > 2048) return ArgSort(order, -1, false, loc);
  return Emit("invert_permutation", {order}, {}, loc);
}

TopKResult TopK(Value x, int64_t k, int64_t axis, bool largest, Loc loc) {
  const Value both = Emit("top_k", {x}, {Attr{"k", k}, Attr{"axis", axis}, Attr{"largest", largest}}, loc);
  if (!both.valid()) return {both, both};
  return {Get(both, 0, loc), Get(both, 1, loc)};
}

Value KthValue(Value x, int64_t k, int64_t axis, Loc loc) {
  const Value sorted = Sort(x, axis, false, loc);
  if (!sorted.valid()) return sorted;
  axis = PositiveAxis(axis, x.rank());
  if (k < 1 || k > x.dim(static_cast<int>(axis))) {
    return Poison(*x.builder, loc,
                  absl::StrCat("kth_value: k is ", k, ", expected 1 to ", x.dim(static_cast<int>(axis))));
  }
  return Squeeze(PartOf(sorted, axis, k - 1, k, loc), {axis}, loc);
}

Value Median(Value x, int64_t axis, Loc loc) {
  if (!x.valid()) return x;
  if (!IsFloat(x.dtype()) || !HasAxis(x, axis) || x.dim(static_cast<int>(PositiveAxis(axis, x.rank()))) == 0) {
    return Poison(*x.builder, loc,
                  absl::StrCat("median: of ", ToString(x.type()), " along axis ", axis,
                               ", expected a float type and an "
                               "axis with elements"));
  }
  axis = PositiveAxis(axis, x.rank());
  const int64_t n = x.dim(static_cast<int>(axis));
  const Value sorted = Sort(x, axis, false, loc);
  const auto at = [&](int64_t k) { return Squeeze(PartOf(sorted, axis, k, k + 1, loc), {axis}, loc); };
  const Value middle = n % 2 == 1 ? at(n / 2)
                                  : Add(Mul(at(n / 2 - 1), ScalarLike(x, 0.5, loc), loc),
                                        Mul(at(n / 2), ScalarLike(x, 0.5, loc), loc), loc);
  const Value last = at(n - 1);
  return Where(IsNan(last, loc), last, middle, loc);
}

UniqueResult Unique(Value x, int64_t size, double fill, Loc loc) {
  if (!x.valid()) return {x, x, x, x};
  Builder& b = *x.builder;
  const int64_t n = x.type().elements();
  if (size < 0 || n == 0 || x.dtype() == DType::kBool) {
    const Value bad = Poison(b, loc,
                             absl::StrCat("unique: of ", ToString(x.type()), " cut to ", size,
                                          ", expected numbers and a size of 0 or more"));
    return {bad, bad, bad, bad};
  }
  const Value flat = Reshape(x, {n}, loc), order = ArgSort(flat, 0, false, loc), sorted = Take(flat, order, 0, loc);
  const Value number = Iota(b, DType::kI32, {n}, 0, loc);
  const Value before = Take(sorted, number - 1.0, 0, loc);  // of the first one the last; it begins a run anyhow
  Value fresh = NotEqual(sorted, before, loc);
  if (IsFloat(x.dtype())) fresh = LogicalAnd(fresh, LogicalNot(LogicalAnd(IsNan(sorted), IsNan(before)), loc), loc);
  fresh = LogicalOr(fresh, Equal(number, FullLike(number, 0)), loc);
  UniqueResult r;
  r.count = CountOf(fresh, loc);
  // Where every run begins, and n behind the last.
  const Value begins = FirstOf(HoldingFirst(fresh, loc), r.count, n + 1, static_cast<double>(n), loc);
  const Value rank = SearchSorted(begins, number, /*right=*/true, loc) - 1.0;  // of every sorted element
  r.inverse = Reshape(Take(rank, InversePermutation(order, loc), 0, loc), x.dims(), loc);
  const Value next = Slice(begins, {1}, {n + 1}, {}, loc), from = Slice(begins, {0}, {n}, {}, loc);
  r.counts = FirstOf(Sub(next, from, loc), r.count, size, 0, loc);
  r.values = FirstOf(Take(sorted, from, 0, loc), r.count, size, fill, loc);
  return r;
}

Value NonZero(Value x, int64_t size, int64_t fill, Loc loc) {
  if (!x.valid()) return x;
  const int64_t n = x.type().elements(), rank = x.rank();
  if (size < 0 || rank == 0 || n == 0 || n > INT32_MAX) {
    return Poison(*x.builder, loc,
                  absl::StrCat("nonzero: of ", ToString(x.type()), " cut to ", size,
                               ", expected one axis or more, elements, and a size of 0 or more"));
  }
  const Value mask = Reshape(CastTo(x, DType::kBool, loc), {n}, loc), count = CountOf(mask, loc);
  const Value flat = HoldingFirst(mask, loc);
  std::vector<Value> columns;
  int64_t stride = n;
  for (int64_t dim : Dims(x.dims())) {
    stride /= dim;
    Value at = stride == 1 ? flat : DivOf(flat, ScalarLike(flat, static_cast<double>(stride), loc), loc);
    at = Rem(at, ScalarLike(at, static_cast<double>(dim), loc), loc);
    columns.push_back(Reshape(FirstOf(at, count, size, static_cast<double>(fill), loc), {size, 1}, loc));
  }
  return columns.size() == 1 ? columns[0] : Concat(columns, 1, loc);
}

Value BinCount(Value x, int64_t bins, Loc loc) {
  if (!x.valid()) return x;
  if (!IsInt(x.dtype()) || bins < 0) {
    return Poison(*x.builder, loc,
                  absl::StrCat("bincount: of ", ToString(x.type()), " into ", bins,
                               " bins, expected an integer type and 0 bins or more"));
  }
  Value at = WrapIndex(Reshape(x, {-1}, loc), bins, /*drop=*/true, loc);
  if (IsSigned(x.dtype())) {  // negative numbers do not count from the end here
    const Value flat = Reshape(x, {-1}, loc);
    at = Where(Less(flat, FullLike(flat, 0, loc), loc), FullLike(at, -1, loc), at, loc);
  }
  const int64_t n = at.type().elements();
  const Value none = Full(*x.builder, {DType::kI32, {1, bins, 1}}, 0, loc),
              ones = Full(*x.builder, {DType::kI32, {1, n, 1}}, 1, loc);
  return Reshape(ScatterRows(none, Reshape(at, {1, n}, loc), ones, ScatterMode::kAdd, loc), {bins}, loc);
}

Value Histogram(Value x, int64_t bins, double lo, double hi, Loc loc) {
  if (!x.valid()) return x;
  if (!IsFloat(x.dtype()) || bins < 1 || !(lo < hi)) {
    return Poison(*x.builder, loc,
                  absl::StrCat("histogram: of ", ToString(x.type()), " into ", bins, " bins from ", lo, " to ", hi,
                               ", expected a float type, 1 bin or more and lo below hi"));
  }
  const DType wide = AccumulatorOf(x.dtype());
  const Value v = CastTo(x, wide, loc);
  const double scale = static_cast<double>(bins) / (hi - lo);
  const Value bin =
      CastTo(Floor(Mul(Sub(v, ScalarLike(v, lo, loc), loc), ScalarLike(v, scale, loc), loc), loc), DType::kI32, loc);
  const Value top = Minimum(bin, FullLike(bin, static_cast<double>(bins - 1), loc), loc);
  const Value inside =
      LogicalAnd(GreaterEqual(v, FullLike(v, lo, loc), loc), LessEqual(v, FullLike(v, hi, loc), loc), loc);
  return BinCount(Where(inside, top, FullLike(top, -1, loc), loc), bins, loc);
}

}  // namespace agc
