// Reductions defined by sums, largest elements and products: counts, norms, logarithms of sums, variances.
// Floats are computed in the dtype that sums are kept in and rounded once at the end.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;

constexpr double kInf = std::numeric_limits<double>::infinity();

// ---------------------------------------------------------------- shape rules

absl::StatusOr<Types> Reduced(const OpCall& call, DType dtype) {
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes", call.ints("axes"), x.rank()));
  const Ints axes = PositiveAxes(call.ints("axes"), x.rank());
  return Types(TensorType{dtype, ReducedDims(x.dims, axes, call.flag("keep_dims"))});
}
absl::StatusOr<Types> ReducedNumber(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  return Reduced(call, call.type(0).dtype);
}
absl::StatusOr<Types> ReducedFloat(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return Reduced(call, call.type(0).dtype);
}
absl::StatusOr<Types> CountTypes(const OpCall& call) { return Reduced(call, DType::kI32); }

absl::StatusOr<Types> NormTypes(const OpCall& call) {
  const double p = call.number("p");
  if (std::isnan(p)) return call.Error("p is nan, expected a number or infinity");
  if (std::isinf(p)) {
    for (int64_t axis : PositiveAxes(call.ints("axes"), call.type(0).rank())) {
      if (axis < 0 || axis >= call.type(0).rank() || call.type(0).dims[axis] != 0) continue;
      return call.Error(
          absl::StrCat("axis ", axis, " of ", ToString(call.type(0)), " is empty, expected at least one element"));
    }
  }
  return ReducedFloat(call);
}

// ---------------------------------------------------------------- tools

struct Reduction {
  Ints axes = {};
  bool keep_dims = false;
};
Reduction ReductionOf(const Rule& s) { return {PositiveAxes(s.ints("axes"), s.x[0].rank()), s.flag("keep_dims")}; }

Value Sum(Value x, const Reduction& r) { return ReduceSum(x, r.axes, r.keep_dims); }
// A reduced value at every element it was reduced from.
Value Spread(const Rule& s, Value v) {
  const Dims dims = s.x[0].dims();
  return Broadcast(Reshape(v, ReducedDims(dims, ReductionOf(s).axes, true)), dims);
}
Value IsZero(Value x) { return Equal(x, FullLike(x, 0)); }

// ---------------------------------------------------------------- counts

Value CountDecompose(Rule& s) {
  return Sum(CastTo(NotEqual(s.x[0], FullLike(s.x[0], 0)), DType::kI32), ReductionOf(s));
}

// ---------------------------------------------------------------- norms

Value NormOver(const Rule& s, double p) {
  const Reduction r = ReductionOf(s);
  return CastTo(NormOf(Wide(s.x[0]), p, r.axes, r.keep_dims), s.x[0].dtype());
}
template <int p>
Value FixedNormDecompose(Rule& s) {
  return NormOver(s, p);
}
Value NormDecompose(Rule& s) { return NormOver(s, s.number("p")); }
Value SumSquareDecompose(Rule& s) { return CastTo(Sum(Square(Wide(s.x[0])), ReductionOf(s)), s.x[0].dtype()); }

// ---------------------------------------------------------------- logarithms of sums

Value LogSumDecompose(Rule& s) { return CastTo(Log(Sum(Wide(s.x[0]), ReductionOf(s))), s.x[0].dtype()); }

// An infinite maximum is not subtracted, so that all -inf give -inf and an inf gives inf; so does nothing at all -inf.
Value LogSumExpDecompose(Rule& s) {
  const TensorType type = s.op.type();
  if (s.x[0].type().elements() == 0) return Full(s.builder, type, -kInf);
  const Ints axes = ReductionOf(s).axes;
  const Value x = Wide(s.x[0]), m = ReduceMax(x, axes, true);
  const Value shift = Where(Less(Abs(m), FullLike(m, kInf)), m, FullLike(m, 0));
  return CastTo(Reshape(shift + Log(ReduceSum(Exp(x - shift), axes, true)), type.dims), type.dtype);
}
// The exponential of a result that was rounded to f16 would be off by the absolute error of that, so a wide one is
// taken again. Rows of -inf have no weights, but none are asked for where the cotangent is 0.
void LogSumExpVjp(Vjp& s) {
  const Value x = Wide(s.x[0]);
  const Value y = x.dtype() == s.y.dtype() ? s.y : ReduceLogSumExp(x, s.ints("axes"), s.flag("keep_dims"));
  s.dx[0] = CastTo(SafeMul(Spread(s, Wide(s.g)), Exp(x - Spread(s, y))), s.x[0].dtype());
}

// ---------------------------------------------------------------- variance

double Count(const Rule& s) {
  double n = 1;
  for (int64_t axis : ReductionOf(s).axes) n *= static_cast<double>(s.x[0].dims()[axis]);
  return n;
}
// What sums of squares are divided by: 0 where there are no more elements than the correction, as numpy has it.
double Divisor(const Rule& s) { return std::max(Count(s) - s.number("correction"), 0.0); }

// x minus its mean.
Value Deviation(const Rule& s) {
  const Value x = Wide(s.x[0]);
  return x - ReduceMean(x, ReductionOf(s).axes, true);
}

// The corrected two-pass algorithm: Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance",
// equation 1.7. The second sum takes out what rounding the mean put in.
Value Variance(const Rule& s) {
  const Reduction r = ReductionOf(s);
  const Value d = Deviation(s), sum = Sum(Square(d), r), rest = Sum(d, r);
  const Value squares = Maximum(sum - Square(rest) / std::max(Count(s), 1.0), FullLike(sum, 0));
  return squares / Divisor(s);
}
Value VarDecompose(Rule& s) { return CastTo(Variance(s), s.x[0].dtype()); }
Value StdDecompose(Rule& s) { return CastTo(Sqrt(Variance(s)), s.x[0].dtype()); }

void VarVjp(Vjp& s) { s.dx[0] = CastTo(Spread(s, Wide(s.g) * (2 / Divisor(s))) * Deviation(s), s.x[0].dtype()); }
// Of equal elements 0, although the root has no derivative there.
void StdVjp(Vjp& s) {
  const Value y = Wide(s.y), zero = IsZero(y);
  const Value slope = Where(zero, FullLike(y, 0), Wide(s.g) / (Where(zero, FullLike(y, 1), y) * Divisor(s)));
  s.dx[0] = CastTo(Spread(s, slope) * Deviation(s), s.x[0].dtype());
}

using A = AttrKind;
constexpr AttrList kAxes = {{"axes", A::kInts, "[]"}, {"keep_dims", A::kBool, "false"}};
constexpr AttrList kNorm = {{"p", A::kFloat}, {"axes", A::kInts, "[]"}, {"keep_dims", A::kBool, "false"}};
constexpr AttrList kMoment = {
    {"axes", A::kInts, "[]"}, {"correction", A::kFloat, "0"}, {"keep_dims", A::kBool, "false"}};
constexpr Sample kRows = {.shapes = {"f32[2,3,4]"}, .attrs = "axes = [0, 2]"};
constexpr Sample kPositive = {.shapes = {"f32[2,3,4]"}, .attrs = "axes = [0, 2]", .lo = 0.1, .hi = 2};
constexpr Sample kCounted = {
    .shapes = {"f32[2,3,4]"}, .attrs = "axes = [1], keep_dims = true", .lo = -1, .hi = 1, .differentiable = false};
constexpr Sample kVariance = {.shapes = {"f32[2,3,4]"}, .attrs = "axes = [0, 2]"};
constexpr Tolerance kLoose = {.f32 = 4e-6};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "count_nonzero", .cls = kComposite, .arity = 1, .attrs = kAxes, .infer = CountTypes, .decompose = CountDecompose, .vjp = NoGradient,
     .numpy = "reduced(np.sum, (x0 != 0).astype(np.int32), axes, keep_dims)", .sample = kCounted,
     .doc = "i32 number of elements that are not 0, over axes (none given: all); NaN counts."},
    {.name = "reduce_l1", .cls = kComposite, .arity = 1, .attrs = kAxes, .infer = ReducedNumber, .decompose = FixedNormDecompose<1>,
     .numpy = "reduced(np.sum, np.abs(x0), axes, keep_dims)", .sample = kRows, .doc = "Sum of absolute values over axes (none given: all)."},
    {.name = "reduce_l2", .cls = kComposite, .arity = 1, .attrs = kAxes, .infer = ReducedFloat, .decompose = FixedNormDecompose<2>, .tol = kLoose,
     .numpy = "np.sqrt(reduced(np.sum, x0 * x0, axes, keep_dims))", .sample = kRows,
     .doc = "Root of the sum of squares over axes (none given: all); its gradient at 0 is 0."},
    {.name = "reduce_log_sum", .cls = kComposite, .arity = 1, .attrs = kAxes, .infer = ReducedFloat, .decompose = LogSumDecompose, .tol = kLoose,
     .numpy = "np.log(reduced(np.sum, x0, axes, keep_dims))", .sample = kPositive, .doc = "Logarithm of the sum over axes (none given: all)."},
    {.name = "reduce_log_sum_exp", .cls = kComposite, .arity = 1, .attrs = kAxes, .infer = ReducedFloat, .decompose = LogSumExpDecompose, .vjp = LogSumExpVjp,
     .tol = kLoose, .numpy = "reduced(np.logaddexp.reduce, x0, axes, keep_dims)", .sample = {.shapes = {"f32[2,3,4]"}, .attrs = "axes = [0, 2]", .lo = -4, .hi = 4},
     .doc = "Logarithm of the sum of exponentials over axes (none given: all); of nothing -inf."},
    {.name = "reduce_norm", .cls = kComposite, .arity = 1, .attrs = kNorm, .infer = NormTypes, .decompose = NormDecompose,
     .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2}, .numpy = "norm(x0, p, axes, keep_dims)", .sample = {.shapes = {"f32[2,3,4]"}, .attrs = "p = 3, axes = [0, 2]"},
     .doc = "(sum of |x|^p)^(1/p) over axes (none given: all); p = 0 counts what is not 0, inf is the largest, -inf the smallest. The gradient at 0 is 0."},
    {.name = "reduce_std", .cls = kComposite, .arity = 1, .attrs = kMoment, .infer = ReducedFloat, .decompose = StdDecompose, .vjp = StdVjp, .tol = kLoose,
     .numpy = "np.sqrt(variance(x0, axes, correction, keep_dims))", .sample = kVariance, .doc = "Root of reduce_var; the gradient where it is 0 is 0."},
    {.name = "reduce_sum_square", .cls = kComposite, .arity = 1, .attrs = kAxes, .infer = ReducedNumber, .decompose = SumSquareDecompose, .tol = kLoose,
     .numpy = "reduced(np.sum, x0 * x0, axes, keep_dims)", .sample = kRows, .doc = "Sum of squares over axes (none given: all)."},
    {.name = "reduce_var", .cls = kComposite, .arity = 1, .attrs = kMoment, .infer = ReducedFloat, .decompose = VarDecompose, .vjp = VarVjp, .tol = kLoose,
     .numpy = "variance(x0, axes, correction, keep_dims)", .sample = kVariance,
     .doc = "Sum of squared deviations from the mean over axes (none given: all), divided by the number of elements less `correction`; where that is 0 or less, by 0: inf, or NaN if there are no deviations."},
};
// clang-format on
static_assert(CheckOps(kOps));

Value Emitted(absl::string_view op, Value x, const Ints& axes, bool keep_dims, Loc loc) {
  return Emit(op, {x}, {Attr{"axes", axes}, Attr{"keep_dims", keep_dims}}, loc);
}
Value Moment(absl::string_view op, Value x, const Ints& axes, double correction, bool keep_dims, Loc loc) {
  return Emit(op, {x}, {Attr{"axes", axes}, Attr{"correction", correction}, Attr{"keep_dims", keep_dims}}, loc);
}
Value LastArg(absl::string_view op, Value x, int64_t axis, bool keep_dims, Loc loc) {
  return Emit(op, {x}, {Attr{"axis", axis}, Attr{"keep_dims", keep_dims}, Attr{"select_last_index", true}}, loc);
}

}  // namespace

constinit const absl::Span<const OpDef> kReduceStatsOps(kOps);

Value NormOf(Value x, double p, const Ints& axes, bool keep_dims) {
  const Value size = Abs(x);
  const auto sum = [&](Value v) { return ReduceSum(v, axes, keep_dims); };
  if (std::isinf(p)) return p > 0 ? ReduceMax(size, axes, keep_dims) : ReduceMin(size, axes, keep_dims);
  if (p == 0) return sum(CastTo(NotEqual(x, FullLike(x, 0)), x.dtype()));
  if (p == 1) return sum(size);
  if (p == 2) return RootOf(sum(Square(x)));
  const auto power = [](double e) { return [e](Value v) { return Pow(v, FullLike(v, e)); }; };
  if (p < 0) return power(1 / p)(sum(power(p)(size)));  // an element that is 0 makes the norm 0
  return ZeroAtZero(sum(ZeroAtZero(size, power(p))), power(1 / p));
}

Value ReduceAny(Value x, Ints axes, bool keep_dims, Loc loc) { return Emitted("reduce_any", x, axes, keep_dims, loc); }
Value ReduceAll(Value x, Ints axes, bool keep_dims, Loc loc) { return Emitted("reduce_all", x, axes, keep_dims, loc); }
Value CountNonzero(Value x, Ints axes, bool keep_dims, Loc loc) {
  return Emitted("count_nonzero", x, axes, keep_dims, loc);
}
Value ReduceL1(Value x, Ints axes, bool keep_dims, Loc loc) { return Emitted("reduce_l1", x, axes, keep_dims, loc); }
Value ReduceL2(Value x, Ints axes, bool keep_dims, Loc loc) { return Emitted("reduce_l2", x, axes, keep_dims, loc); }
Value ReduceSumSquare(Value x, Ints axes, bool keep_dims, Loc loc) {
  return Emitted("reduce_sum_square", x, axes, keep_dims, loc);
}
Value ReduceLogSum(Value x, Ints axes, bool keep_dims, Loc loc) {
  return Emitted("reduce_log_sum", x, axes, keep_dims, loc);
}
Value ReduceLogSumExp(Value x, Ints axes, bool keep_dims, Loc loc) {
  return Emitted("reduce_log_sum_exp", x, axes, keep_dims, loc);
}
Value ReduceNorm(Value x, double p, Ints axes, bool keep_dims, Loc loc) {
  return Emit("reduce_norm", {x}, {Attr{"p", p}, Attr{"axes", axes}, Attr{"keep_dims", keep_dims}}, loc);
}
Value ReduceVar(Value x, Ints axes, double correction, bool keep_dims, Loc loc) {
  return Moment("reduce_var", x, axes, correction, keep_dims, loc);
}
Value ReduceStd(Value x, Ints axes, double correction, bool keep_dims, Loc loc) {
  return Moment("reduce_std", x, axes, correction, keep_dims, loc);
}
Value ArgMaxLast(Value x, int64_t axis, bool keep_dims, Loc loc) { return LastArg("argmax", x, axis, keep_dims, loc); }
Value ArgMinLast(Value x, int64_t axis, bool keep_dims, Loc loc) { return LastArg("argmin", x, axis, keep_dims, loc); }

}  // namespace agc
