// Reductions, positions of extremes, sums along an axis, and products of tensors.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

// Axes are an attribute, or an operand from opset `operand_since` on. No axes: all, or none if noop_with_empty_axes,
// where the element-wise part of the reduction is still done.
template <Value (*f)(Value, Ints, bool, Loc), int64_t operand_since>
void Reduce(Call& c) {
  Value x = c.in(0);
  const bool keep = c.flag("keepdims", true);
  Ints axes;
  if (c.opset() >= operand_since) {
    const bool noop = c.flag("noop_with_empty_axes", false);
    if (c.has(1)) axes = c.ints(1, "axes");
    c.ignore_operand(1);
    if (axes.empty() && noop && c.ok()) {  // over an axis of one element
      Ints shape(x.dims().begin(), x.dims().end());
      shape.push_back(1);
      return c.out(f(Reshape(x, shape), {-1}, false, Loc{}));
    }
  } else {
    axes = c.ints("axes", Ints());
  }
  if (!c.ok()) return;
  if (x.rank() == 0) {
    for (const int64_t a : axes) {
      if (a != 0 && a != -1) return void(c.Fail(absl::StrCat("axis ", a, " of a scalar")));
    }
    return c.out(f(Reshape(x, {1}), {0}, false, Loc{}));
  }
  c.out(f(x, axes, keep, Loc{}));
}

// A reduction over nothing: `value` in the shape that the sum has.
Value OfNothing(Value x, Ints axes, bool keep, double value) {
  const Value zero = Full(*x.builder, {DType::kF32, x.dims()}, 0);
  return Full(*x.builder, {x.dtype(), ReduceSum(zero, std::move(axes), keep).dims()}, value);
}

// The least and the greatest value of a dtype.
double Extreme(DType dtype, bool least) {
  if (IsFloat(dtype)) return least ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const double top = std::ldexp(1.0, static_cast<int>(8 * SizeOf(dtype)) - (IsSigned(dtype) ? 1 : 0));
  return least ? (IsSigned(dtype) ? -top : 0) : top - 1;
}

Value MaxOf(Value x, Ints axes, bool keep, Loc) {
  if (x.dtype() == DType::kBool) return ReduceAny(x, axes, keep);
  if (x.valid() && x.type().elements() == 0) return OfNothing(x, axes, keep, Extreme(x.dtype(), true));
  return ReduceMax(x, axes, keep);
}
Value MinOf(Value x, Ints axes, bool keep, Loc) {
  if (x.dtype() == DType::kBool) return ReduceAll(x, axes, keep);
  if (x.valid() && x.type().elements() == 0) return OfNothing(x, axes, keep, Extreme(x.dtype(), false));
  return ReduceMin(x, axes, keep);
}
// Floats of integers are rounded towards zero again.
template <Value (*f)(Value, Ints, bool, Loc)>
Value ThroughFloat(Value x, Ints axes, bool keep, Loc loc) {
  if (IsFloat(x.dtype())) return f(x, axes, keep, loc);
  return CastTo(f(CastTo(x, DType::kF64), axes, keep, loc), x.dtype());
}

template <bool largest>
void ArgExtreme(Call& c) {
  const int64_t axis = c.integer("axis", 0);
  const bool keep = c.flag("keepdims", true), last = c.flag("select_last_index", false);
  const Value x = c.in(0);
  if (!c.ok()) return;
  const Value at = largest ? (last ? ArgMaxLast(x, axis, keep) : ArgMax(x, axis, keep))
                           : (last ? ArgMinLast(x, axis, keep) : ArgMin(x, axis, keep));
  c.out(CastTo(at, DType::kI64));
}

template <Value (*f)(Value, int64_t, CumulativeOptions, Loc)>
void Cumulative(Call& c) {
  const Value x = c.in(0);
  const int64_t axis = c.integer(1, "axis");
  c.out(f(x, axis, {.reverse = c.flag("reverse", false), .exclusive = c.flag("exclusive", false)}, Loc{}));
}

void MatMul(Call& c) {
  const Value a = c.in(0), b = c.in(1);
  c.out(Matmul(a, b));
}

// alpha A' B' + beta C.
void Gemm(Call& c) {
  Value a = c.in(0), b = c.in(1);
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  if (c.flag("transA", false)) a = T(a);
  if (c.flag("transB", false)) b = T(b);
  const Value bias = c.opt(2);
  if (c.opset() < 7) c.ignore("broadcast");
  if (!c.ok()) return;
  if (a.rank() != 2 || b.rank() != 2) {
    return void(
        c.Fail(absl::StrCat("operands are ", ToString(a.type()), " and ", ToString(b.type()), ", expected matrices")));
  }
  Value y = Matmul(a, b);
  if (alpha != 1) y = IsFloat(y.dtype()) ? y * alpha : CastTo(CastTo(y, DType::kF64) * alpha, y.dtype());
  if (!bias.valid() || beta == 0) return c.out(y);
  const Value scaled = beta == 1               ? bias
                       : IsFloat(bias.dtype()) ? bias * beta
                                               : CastTo(CastTo(bias, DType::kF64) * beta, bias.dtype());
  c.out(Add(y, scaled));
}

void EinsumOp(Call& c) {
  const std::string equation = c.text("equation");
  c.out(Einsum(equation, c.rest(0)));
}

// By elimination with the largest pivot of the column, unrolled.
void Det(Call& c) {
  const Value x = c.in(0);
  if (!c.ok()) return;
  const int64_t n = x.dim(-1), rank = x.rank();
  if (rank < 2 || x.dim(-2) != n)
    return void(c.Fail(absl::StrCat("operand is ", ToString(x.type()), ", expected square matrices")));
  if (n > 64) return void(c.Fail(absl::StrCat("matrices of ", n, " rows; up to 64 are supported")));
  Ints batch(x.dims().begin(), x.dims().end() - 2);
  int64_t count = 1;
  for (const int64_t d : batch) count *= d;
  Value m = Reshape(x, {count, n, n});
  Value det = Full(c.builder(), {x.dtype(), {count}}, 1);
  const auto part = [](Value v, int axis, int64_t from, int64_t to) {
    Ints start(static_cast<size_t>(v.rank()), 0), limit(v.dims().begin(), v.dims().end()),
        one(static_cast<size_t>(v.rank()), 1);
    start[axis] = from;
    limit[axis] = to;
    return Slice(v, start, limit, one);
  };
  for (int64_t k = n; k > 0; --k) {  // m is [count, k, k]
    const Value column = Reshape(part(m, 2, 0, 1), {count, k});
    const Value pivot = ArgMax(Abs(column), 1, true);  // [count, 1]
    const Value rows = Iota(c.builder(), pivot.dtype(), {count, k}, 1);
    const Value is_pivot = Equal(rows, Broadcast(pivot, {count, k})), is_first = Equal(rows, FullLike(rows, 0));
    const Value zero = FullLike(m, 0);
    const auto wide = [&](Value mask) { return Broadcast(Reshape(mask, {count, k, 1}), {count, k, k}); };
    const Value pivot_row = ReduceSum(Where(wide(is_pivot), m, zero), {1}, true);  // [count, 1, k]
    const Value first_row = part(m, 1, 0, 1);
    m = Where(wide(is_pivot), Broadcast(first_row, {count, k, k}), m);
    m = Where(wide(is_first), Broadcast(pivot_row, {count, k, k}), m);
    const Value p = Reshape(part(pivot_row, 2, 0, 1), {count});
    const Value swapped = NotEqual(Reshape(pivot, {count}), ScalarLike(Reshape(pivot, {count}), 0, Loc{}));
    det = Mul(det, Where(swapped, Neg(p), p));
    if (k == 1) break;
    const Value zero_pivot = Equal(p, FullLike(p, 0));
    const Value factor =
        DivOf(part(part(m, 1, 1, k), 2, 0, 1),
              Broadcast(Reshape(Where(zero_pivot, FullLike(p, 1), p), {count, 1, 1}), {count, k - 1, 1}));
    m = Sub(part(part(m, 1, 1, k), 2, 1, k), Mul(Broadcast(factor, {count, k - 1, k - 1}),
                                                 Broadcast(part(part(m, 1, 0, 1), 2, 1, k), {count, k - 1, k - 1})));
  }
  c.out(Reshape(det, batch));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"ArgMax", 1, ArgExtreme<true>}, {"ArgMin", 1, ArgExtreme<false>}, 
    {"CumSum", 11, Cumulative<CumSum>}, {"Det", 11, Det}, {"Einsum", 12, EinsumOp}, {"Gemm", 1, Gemm},
    {"MatMul", 1, MatMul}, {"ReduceL1", 1, Reduce<ReduceL1, 18>}, {"ReduceL2", 1, Reduce<ThroughFloat<ReduceL2>, 18>},
    {"ReduceLogSum", 1, Reduce<ThroughFloat<ReduceLogSum>, 18>}, {"ReduceLogSumExp", 1, Reduce<ThroughFloat<ReduceLogSumExp>, 18>},
    {"ReduceMax", 1, Reduce<MaxOf, 18>}, {"ReduceMean", 1, Reduce<ThroughFloat<ReduceMean>, 18>},
    {"ReduceMin", 1, Reduce<MinOf, 18>}, {"ReduceProd", 1, Reduce<ReduceProd, 18>}, {"ReduceSum", 1, Reduce<ReduceSum, 13>},
    {"ReduceSumSquare", 1, Reduce<ReduceSumSquare, 18>},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kReduceOps(kRows);

}  // namespace agc::onnx
