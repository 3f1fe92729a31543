#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;
using Point = absl::InlinedVector<Expr, 6>;

absl::StatusOr<Types> OverAxes(const OpCall& call) {
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxes(call, "axes", call.ints("axes"), x.rank()));
  return Types(
      TensorType{x.dtype, ReducedDims(x.dims, PositiveAxes(call.ints("axes"), x.rank()), call.flag("keep_dims"))});
}

absl::StatusOr<Types> ReducedTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  return OverAxes(call);
}

absl::StatusOr<Types> LogicTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckDType(call, 0, DType::kBool));
  return OverAxes(call);
}

absl::StatusOr<Types> MeanTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return ReducedTypes(call);
}

// What has no identity needs an element.
absl::Status CheckNotEmpty(const OpCall& call, const Ints& axes) {
  for (int64_t axis : axes) {
    if (call.type(0).dims[axis] != 0) continue;
    return call.Error(
        absl::StrCat("axis ", axis, " of ", ToString(call.type(0)), " is empty, expected at least one element"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> ExtremumTypes(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(Types types, ReducedTypes(call));
  AGC_RETURN_IF_ERROR(CheckNotEmpty(call, PositiveAxes(call.ints("axes"), call.type(0).rank())));
  return types;
}

absl::StatusOr<Types> ArgTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const Ints axes = {PositiveAxis(call.integer("axis"), x.rank())};
  AGC_RETURN_IF_ERROR(CheckNotEmpty(call, axes));
  if (x.dims[axes[0]] > INT32_MAX) {
    return call.Error(absl::StrCat("axis ", axes[0], " of ", ToString(x), " is too long for positions of i32"));
  }
  return Types(TensorType{DType::kI32, ReducedDims(x.dims, axes, call.flag("keep_dims"))});
}

// The operand's index from the output's index `i` and the reduction's `k` over `axes`.
Point JoinIndex(At& s, Index i, const Ints& axes, bool keep_dims, Index k) {
  Point point;
  size_t next = 0, done = 0;
  for (int64_t axis = 0; axis < s.type(0).rank(); ++axis) {
    const bool reduced = done < axes.size() && axes[done] == axis;
    point.push_back(reduced ? k[done] : i[next]);
    if (reduced) ++done;
    if (!reduced || keep_dims) ++next;
  }
  return point;
}

// Reduces with a one-component combiner; the result is in the dtype that sums of the operand are kept in.
// Merged in the accumulator's dtype, truth values as they are.
Expr ReduceAt(At& s, Index i, absl::string_view combiner) {
  const bool logic = combiner == "and" || combiner == "or";
  const DType acc = logic ? DType::kBool : AccumulatorOf(s.type(0).dtype);
  const Ints axes = PositiveAxes(s.ints("axes"), s.type(0).rank());
  absl::InlinedVector<int64_t, 6> extents;
  for (int64_t axis : axes) extents.push_back(s.dim(0, static_cast<int>(axis)));
  if (extents.empty()) return Cast(s.Read(0, i), acc);  // a scalar
  const auto body = [&](Index k) {
    return std::vector<Expr>{Cast(s.Read(0, JoinIndex(s, i, axes, s.flag("keep_dims"), k)), acc)};
  };
  return s.Reduce(combiner, extents, body)[0];
}

template <StaticName combiner>
Expr ReduceWith(At& s, Index i) {
  return Cast(ReduceAt(s, i, absl::string_view(combiner.text, sizeof(combiner.text) - 1)), s.out().dtype);
}

// Elements that one output element reduces.
int64_t ReducedCount(const Dims& dims, const Ints& axes) {
  int64_t n = 1;
  for (int64_t axis : PositiveAxes(axes, static_cast<int>(dims.size()))) n *= dims[axis];
  return n;
}

// Divides the sum in the accumulator's dtype: f16 sums may leave its range, and a reciprocal would round once more.
Expr MeanAt(At& s, Index i) {
  const Expr sum = ReduceAt(s, i, "add");
  const Expr n = Number(s.pool, sum.dtype(), static_cast<double>(ReducedCount(s.type(0).dims, s.ints("axes"))));
  return Cast(Alu("div", {sum, n}), s.out().dtype);
}

template <StaticName combiner>
Expr ArgAt(At& s, Index i) {
  const Ints axes = {PositiveAxis(s.integer("axis"), s.type(0).rank())};
  const DType acc = AccumulatorOf(s.type(0).dtype);
  const int64_t n = s.dim(0, static_cast<int>(axes[0]));
  const bool last = s.flag("select_last_index");  // the first from the end
  const auto body = [&](Index k) {
    const Expr at = last ? k[0] * -1 + (n - 1) : k[0];
    return std::vector<Expr>{Cast(s.Read(0, JoinIndex(s, i, axes, s.flag("keep_dims"), {at})), acc),
                             FromIndex(at, DType::kI32)};
  };
  return s.Reduce(absl::string_view(combiner.text, sizeof(combiner.text) - 1), {n}, body)[1];
}

// A value of the result's shape at every element that it was reduced from.
Value Spread(Vjp& s, Value v) {
  const Dims dims = s.x[0].dims();
  const Ints axes = PositiveAxes(s.ints("axes"), static_cast<int>(dims.size()));
  return Broadcast(Reshape(v, ReducedDims(dims, axes, true)), dims);
}

// Divides in the accumulator's dtype, as MeanAt does: the count may be beyond f16.
void MeanVjp(Vjp& s) {
  const double n = static_cast<double>(ReducedCount(s.x[0].dims(), s.ints("axes")));
  s.dx[0] = Spread(s, NarrowTo(Wide(s.g) / n, s.g));
}

// Equal winners share the cotangent; they are counted in f32 at least, so that the share of many does not vanish.
void ExtremumVjp(Vjp& s) {
  const DType dtype = s.x[0].dtype(), acc = AccumulatorOf(dtype);
  const Value wins = Equal(s.x[0], Spread(s, s.y));
  const Value count = ReduceSum(CastTo(wins, acc), s.ints("axes"), s.flag("keep_dims"));
  const Value share = Spread(s, CastTo(DivOf(CastTo(s.g, acc), count), dtype));
  s.dx[0] = Where(wins, share, FullLike(share, 0));
}

// An element's derivative is the product of those before it and those behind it. Nothing is divided, so zeros are no
// special case, to every order.
void ProdVjp(Vjp& s) {
  const Value x = s.x[0];
  if (x.type().elements() == 0 || x.rank() == 0) {
    s.dx[0] = x.rank() == 0 ? s.g : FullLike(x, 0);
    return;
  }
  const Ints axes = PositiveAxes(s.ints("axes"), x.rank());
  Ints perm, back(static_cast<size_t>(x.rank()), 0);  // the reduced axes go last and become one
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) perm.push_back(axis);
  }
  perm.insert(perm.end(), axes.begin(), axes.end());
  for (size_t k = 0; k < perm.size(); ++k) back[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
  const Value moved = Transpose(Wide(x), perm);
  const int64_t n = ReducedCount(x.dims(), s.ints("axes"));
  const Value rows = Reshape(moved, {x.type().elements() / n, n});
  const Value others = CumProd(rows, 1, {.exclusive = true}) * CumProd(rows, 1, {.reverse = true, .exclusive = true});
  const Value slope = Transpose(Reshape(others, moved.dims()), back);
  s.dx[0] = NarrowTo(Spread(s, Wide(s.g)) * slope, x);
}

constexpr AttrList kAxes = {{"axes", AttrKind::kInts, "[]"}, {"keep_dims", AttrKind::kBool, "false"}};
constexpr AttrList kAxis = {
    {"axis", AttrKind::kInt}, {"keep_dims", AttrKind::kBool, "false"}, {"select_last_index", AttrKind::kBool, "false"}};
constexpr Sample kRows = {.shapes = {"f32[2,3,4]"}, .attrs = "axes = [0, 2]"};
constexpr Sample kBools = {.shapes = {"bool[2,3,4]"}, .attrs = "axes = [0, 2]", .differentiable = false};
constexpr Sample kArg = {.shapes = {"f32[2,5,3]"}, .attrs = "axis = 1", .differentiable = false};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "argmax", .cls = kReduce, .arity = 1, .attrs = kAxis, .infer = ArgTypes, .at = ArgAt<"argmax">, .vjp = NoGradient,
     .numpy = "arg_extremum(np.argmax, x0, axis, keep_dims, select_last_index)", .sample = kArg,
     .doc = "i32 position of the largest along an axis: the first of equals, the first NaN; with select_last_index the last."},
    {.name = "argmin", .cls = kReduce, .arity = 1, .attrs = kAxis, .infer = ArgTypes, .at = ArgAt<"argmin">, .vjp = NoGradient,
     .numpy = "arg_extremum(np.argmin, x0, axis, keep_dims, select_last_index)", .sample = kArg,
     .doc = "i32 position of the smallest along an axis: the first of equals, the first NaN; with select_last_index the last."},
    {.name = "reduce_all", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = LogicTypes, .at = ReduceWith<"and">, .vjp = NoGradient,
     .numpy = "reduced(np.all, x0, axes, keep_dims)", .sample = kBools, .doc = "Whether all hold, over axes (none given: all); of nothing true."},
    {.name = "reduce_any", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = LogicTypes, .at = ReduceWith<"or">, .vjp = NoGradient,
     .numpy = "reduced(np.any, x0, axes, keep_dims)", .sample = kBools, .doc = "Whether any holds, over axes (none given: all); of nothing false."},
    {.name = "reduce_max", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = ExtremumTypes, .at = ReduceWith<"max">, .vjp = ExtremumVjp,
     .numpy = "reduced(np.max, x0, axes, keep_dims)", .sample = kRows, .doc = "Largest over axes (none given: all), NaN if any is; equals share the gradient evenly."},
    {.name = "reduce_mean", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = MeanTypes, .at = MeanAt, .vjp = MeanVjp,
     .numpy = "reduced(np.mean, x0, axes, keep_dims)", .sample = kRows, .doc = "Mean over axes (none given: all); of nothing NaN."},
    {.name = "reduce_min", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = ExtremumTypes, .at = ReduceWith<"min">, .vjp = ExtremumVjp,
     .numpy = "reduced(np.min, x0, axes, keep_dims)", .sample = kRows, .doc = "Smallest over axes (none given: all), NaN if any is; equals share the gradient evenly."},
    {.name = "reduce_prod", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = ReducedTypes, .at = ReduceWith<"mul">, .vjp = ProdVjp, .tol = {.f32 = 4e-6},
     .numpy = "reduced(np.prod, x0, axes, keep_dims)", .sample = kRows, .doc = "Product over axes (none given: all); of nothing 1; integers wrap."},
    {.name = "reduce_sum", .cls = kReduce, .arity = 1, .attrs = kAxes, .infer = ReducedTypes, .at = ReduceWith<"add">,
     .vjp = [](Vjp& s) { s.dx[0] = Spread(s, s.g); },
     .numpy = "reduced(np.sum, x0, axes, keep_dims)", .sample = kRows, .doc = "Sum over axes (none given: all); of nothing 0; integers wrap."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kReduceOps(kOps);

}  // namespace agc
