// Pooling as users call it, built of windows (ir/ops/unfold.cc) and of maximum pooling with positions
// (ir/ops/max_pool.cc). Means and norms of f16 and bf16 are taken in f32.
#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/pool.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- types

absl::StatusOr<Types> PooledType(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(const Dims dims, Pooled(call, call.type(0).dims));
  return Types(TensorType{call.type(0).dtype, dims});
}

template <int rank>
absl::StatusOr<Types> MaxPoolType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, rank + 2));
  AGC_ASSIGN_OR_RETURN(Types types, PooledType(call));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  return types;
}

template <int rank>
absl::StatusOr<Types> AvgPoolType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, rank + 2));
  return PooledType(call);
}

absl::Status CheckNorm(const OpCall& call) {
  if (call.number("p") >= 1) return absl::OkStatus();
  return call.Error(absl::StrCat("p is ", call.number("p"), ", expected 1 or more"));
}

template <int rank>
absl::StatusOr<Types> LpPoolType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNorm(call));
  return AvgPoolType<rank>(call);
}

int64_t PositionsOf(const Dims& dims) {
  int64_t positions = 1;
  for (int64_t n : Spatial(dims)) positions *= n;
  return positions;
}

absl::StatusOr<Types> OneEach(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  TensorType type = call.type(0);
  for (int axis = 2; axis < type.rank(); ++axis) {
    if (type.dims[axis] == 0) {
      return call.Error(absl::StrCat("the input ", ToString(type.dims), " has nothing to pool along axis ", axis));
    }
    type.dims[axis] = 1;
  }
  return Types(type);
}

absl::StatusOr<Types> GlobalType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return OneEach(call);
}
absl::StatusOr<Types> GlobalLpType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNorm(call));
  return GlobalType(call);
}
absl::StatusOr<Types> GlobalMaxType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_ASSIGN_OR_RETURN(Types types, OneEach(call));
  const int64_t positions = PositionsOf(call.type(0).dims);
  if (positions <= std::numeric_limits<int32_t>::max()) return types;
  return call.Error(absl::StrCat("the input has ", positions, " positions, too many for i32"));
}

absl::StatusOr<Types> IndicesType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckPoolRank(call));
  const DType dtype = call.dtype("dtype");
  if (dtype != DType::kI32 && dtype != DType::kI64) {
    return call.Error(absl::StrCat("dtype is ", Name(dtype), ", expected i32 or i64"));
  }
  AGC_ASSIGN_OR_RETURN(const Dims dims, Pooled(call, call.type(0).dims));
  AGC_RETURN_IF_ERROR(CheckTaps(call));
  const int64_t positions = PositionsOf(call.type(0).dims);
  if (dtype == DType::kI32 && positions > std::numeric_limits<int32_t>::max()) {
    return call.Error(absl::StrCat("the input has ", positions, " positions, too many for i32; ask for i64"));
  }
  return Types(TensorType{dtype, dims});
}

// ---------------------------------------------------------------- definitions

Value Windows(Value x, const Window& w, Loc loc) { return Emit("sliding_windows", {x}, AttrsOf(w), loc); }

// The axes of the taps of sliding windows.
Ints TapAxes(int rank) {
  Ints axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(2 + rank + axis);
  return axes;
}

Ints SpatialAxes(Value x) {
  Ints axes;
  for (int axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return axes;
}

// Elements of each window along one axis that lie in [low, high): the taps from `first` to `end`.
Ints TapsInside(const Window& w, int axis, int64_t outputs, int64_t low, int64_t high) {
  const int64_t kernel = w.kernel[axis], dilation = w.dilation[axis];
  const auto taps_before = [&](int64_t distance) {
    return distance <= 0 ? 0 : std::min((distance + dilation - 1) / dilation, kernel);
  };
  Ints counts;
  for (int64_t p = 0; p < outputs; ++p) {
    const int64_t start = p * w.stride[axis] - w.before[axis];
    const int64_t first = taps_before(low - start), end = taps_before(high - start);
    counts.push_back(std::max<int64_t>(end - first, 1));  // a window without elements has sum 0
  }
  return counts;
}

// A vector along `axis` of rank `rank`.
Value Along(Value like, DType dtype, const Ints& numbers, int rank, int axis) {
  auto literal = std::make_shared<Literal>();
  literal->splat = false;
  for (int64_t n : numbers) literal->values.push_back(Scalar::Of(dtype, static_cast<double>(n)));
  TensorType type{dtype, Dims(static_cast<size_t>(rank), 1)};
  type.dims[axis] = static_cast<int64_t>(numbers.size());
  return Constant(*like.builder, type, std::move(literal));
}

// How many elements each window has, broadcast against the pooled tensor.
Value Counts(const Rule& s, DType dtype) {
  const Ints input = Spatial(s.x[0].dims());
  const Window w = PoolWindow(s, input), given = WindowOf(s, s.ints("window"));
  const Dims& out = s.op.type().dims;
  const bool padding = s.flag("count_include_pad");
  Value counts;
  double uniform = 1;
  for (int axis = 0; axis < w.rank(); ++axis) {
    const int64_t low = padding ? -given.before[axis] : 0, high = input[axis] + (padding ? given.after[axis] : 0);
    const Ints n = TapsInside(w, axis, out[2 + axis], low, high);
    if (std::all_of(n.begin(), n.end(), [&](int64_t c) { return c == n[0]; })) {
      uniform *= static_cast<double>(n[0]);
      continue;
    }
    const Value along = Along(s.x[0], dtype, n, static_cast<int>(out.size()), 2 + axis);
    counts = counts.valid() ? counts * along : along;
  }
  if (!counts.valid()) return Full(s.builder, {dtype, {}}, uniform);
  return uniform == 1 ? counts : counts * uniform;
}

Value Narrow(Value x, DType dtype) { return x.dtype() == dtype ? x : CastTo(x, dtype); }

Value AvgPoolDecompose(Rule& s) {
  const Window w = PoolWindow(s, Spatial(s.x[0].dims()));
  const Value sum = ReduceSum(Wide(Windows(s.x[0], w, s.op.loc)), TapAxes(w.rank()));
  return Narrow(sum / Counts(s, sum.dtype()), s.x[0].dtype());
}

// Each window hands its share to its elements.
void AvgPoolVjp(Vjp& s) {
  const Ints input = Spatial(s.x[0].dims());
  const Window w = PoolWindow(s, input);
  const Value g = Wide(s.g), share = Narrow(g / Counts(s, g.dtype()), s.g.dtype());
  Ints shape = share.dims(), axes;
  for (int64_t axis = 0; axis < share.rank(); ++axis) axes.push_back(axis);
  shape.insert(shape.end(), w.kernel.begin(), w.kernel.end());
  PoolAttrs attrs = AttrsOf(w);
  attrs.push_back({"input", input});
  s.dx[0] = Emit("overlap_add", {BroadcastAxes(share, shape, axes)}, attrs, s.op.loc);
}

Value LpPoolDecompose(Rule& s) {
  const Window w = PoolWindow(s, Spatial(s.x[0].dims()));
  const Value norm = NormOf(Wide(Windows(s.x[0], w, s.op.loc)), s.number("p"), TapAxes(w.rank()), false);
  return Narrow(norm, s.x[0].dtype());
}

Value GlobalAvgDecompose(Rule& s) { return ReduceMean(s.x[0], SpatialAxes(s.x[0]), true); }
Value GlobalLpDecompose(Rule& s) {
  return Narrow(NormOf(Wide(s.x[0]), s.number("p"), SpatialAxes(s.x[0]), true), s.x[0].dtype());
}

Value MaxPoolWith(const Rule& s, const Window& w) {
  return Emit("max_pool_with_index", {s.x[0]}, AttrsOf(w), s.op.loc);
}
Value MaxPoolDecompose(Rule& s) { return Get(MaxPoolWith(s, PoolWindow(s, Spatial(s.x[0].dims()))), 0); }
Value GlobalMaxDecompose(Rule& s) {
  const Ints all = Spatial(s.x[0].dims()), zero(all.size(), 0), one(all.size(), 1);
  return Get(MaxPoolWith(s, {.kernel = all, .stride = all, .before = zero, .after = zero, .dilation = one}), 0);
}

// Row-major position = sum over axes of (output * stride - before + tap * dilation) * elements behind the axis.
Value IndicesDecompose(Rule& s) {
  const Ints input = Spatial(s.x[0].dims());
  const Window w = PoolWindow(s, input);
  const TensorType& type = s.op.type();
  const Value tap = CastTo(Get(MaxPoolWith(s, w), 1), type.dtype);
  Value position;
  int64_t behind = 1, taps_behind = 1;
  for (int axis = w.rank() - 1; axis >= 0; --axis) {
    const auto number = [](int64_t v) { return static_cast<double>(v); };
    Value along = taps_behind == 1 ? tap : FloorDiv(tap, ScalarLike(tap, number(taps_behind), s.op.loc));
    if (axis > 0) along = Rem(along, ScalarLike(tap, number(w.kernel[axis]), s.op.loc));
    if (w.dilation[axis] != 1) along = along * number(w.dilation[axis]);
    const Value start = Iota(s.builder, type.dtype, type.dims, 2 + axis) * number(w.stride[axis]);
    Value at = along + start - number(w.before[axis]);
    if (w.dilation[axis] != 1) at = Minimum(Maximum(at, FullLike(at, 0)), FullLike(at, number(input[axis] - 1)));
    if (behind != 1) at = at * number(behind);
    position = position.valid() ? position + at : at;
    behind *= input[axis];
    taps_behind *= w.kernel[axis];
  }
  return position;
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "avg_pool1d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"count_include_pad", kBool, "true"}},
     .infer = AvgPoolType<1>, .decompose = AvgPoolDecompose, .vjp = AvgPoolVjp,
     .numpy = "avg_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode, count_include_pad=count_include_pad)",
     .sample = {.shapes = {"f32[2,2,9]"}, .attrs = "window = [3], stride = [2], pad = [1, 1], ceil_mode = true, count_include_pad = false"},
     .doc = "Mean of each window of [n,c,l]; as avg_pool2d."},
    {.name = "avg_pool2d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"count_include_pad", kBool, "true"}},
     .infer = AvgPoolType<2>, .decompose = AvgPoolDecompose, .vjp = AvgPoolVjp,
     .numpy = "avg_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode, count_include_pad=count_include_pad)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Mean of each window of [n,c,h,w]. Padding is 0 and counts as elements, unless count_include_pad is off; what ceil_mode adds never counts. An empty stride is the window. ceil_mode: windows that reach beyond the padding count if they start before it."},
    {.name = "avg_pool3d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0, 0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"count_include_pad", kBool, "true"}},
     .infer = AvgPoolType<3>, .decompose = AvgPoolDecompose, .vjp = AvgPoolVjp,
     .numpy = "avg_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode, count_include_pad=count_include_pad)",
     .sample = {.shapes = {"f32[1,2,4,3,5]"}, .attrs = "window = [2, 2, 3], stride = [2, 1, 2], pad = [0, 1, 1, 0, 0, 1], ceil_mode = true, count_include_pad = false"},
     .doc = "Mean of each window of [n,c,d,h,w]; as avg_pool2d."},
    {.name = "global_avg_pool", .cls = OpClass::kComposite, .arity = 1, .infer = GlobalType, .decompose = GlobalAvgDecompose,
     .numpy = "np.mean(x0, axis=tuple(range(2, x0.ndim)), keepdims=True)", .sample = {.shapes = {"f32[2,3,4,5]"}},
     .doc = "Mean over all spatial axes of [n,c,spatial...], which become 1."},
    {.name = "global_lp_pool", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"p", kFloat, "2"}}, .infer = GlobalLpType, .decompose = GlobalLpDecompose,
     .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2}, .numpy = "np.sum(np.abs(x0) ** p, axis=tuple(range(2, x0.ndim)), keepdims=True) ** (1 / p)",
     .sample = {.shapes = {"f32[2,3,4,5]"}, .attrs = "p = 3"},
     .doc = "(sum of |x|^p)^(1/p) over all spatial axes of [n,c,spatial...], which become 1."},
    {.name = "global_max_pool", .cls = OpClass::kComposite, .arity = 1, .infer = GlobalMaxType, .decompose = GlobalMaxDecompose,
     .numpy = "np.max(x0, axis=tuple(range(2, x0.ndim)), keepdims=True)", .sample = {.shapes = {"f32[2,3,4,5]"}},
     .doc = "Largest element over all spatial axes of [n,c,spatial...], which become 1; as one window of max_pool2d."},
    {.name = "lp_pool1d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"p", kFloat, "2"}},
     .infer = LpPoolType<1>, .decompose = LpPoolDecompose, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "lp_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode, p=p)",
     .sample = {.shapes = {"f32[2,2,9]"}, .attrs = "window = [3], stride = [2], pad = [1, 1], p = 3"},
     .doc = "(sum of |x|^p)^(1/p) of each window of [n,c,l]; as lp_pool2d."},
    {.name = "lp_pool2d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"p", kFloat, "2"}},
     .infer = LpPoolType<2>, .decompose = LpPoolDecompose, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "lp_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode, p=p)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "(sum of |x|^p)^(1/p) of each window of [n,c,h,w], padding being 0, p = inf the largest |x|; windows as in avg_pool2d. The gradient of a window of zeros is 0."},
    {.name = "lp_pool3d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0, 0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"p", kFloat, "2"}},
     .infer = LpPoolType<3>, .decompose = LpPoolDecompose, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "lp_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode, p=p)",
     .sample = {.shapes = {"f32[1,2,4,3,5]"}, .attrs = "window = [2, 2, 3], stride = [2, 1, 2], pad = [0, 1, 1, 0, 0, 1], p = 1", .lo = 0.1, .hi = 1},
     .doc = "(sum of |x|^p)^(1/p) of each window of [n,c,d,h,w]; as lp_pool2d."},
    {.name = "max_pool1d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}},
     .infer = MaxPoolType<1>, .decompose = MaxPoolDecompose,
     .numpy = "max_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode)",
     .sample = {.shapes = {"f32[2,2,9]"}, .attrs = "window = [3], stride = [2], pad = [1, 1], dilation = [2], ceil_mode = true"},
     .doc = "Largest element of each window of [n,c,l]; as max_pool2d."},
    {.name = "max_pool2d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}},
     .infer = MaxPoolType<2>, .decompose = MaxPoolDecompose,
     .numpy = "max_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Largest element of each window of [n,c,h,w], NaN if any is; padding never wins. The first of equals gets the gradient. An empty stride is the window. ceil_mode: windows that reach beyond the padding count if they start before it."},
    {.name = "max_pool3d", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[0, 0, 0, 0, 0, 0]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}},
     .infer = MaxPoolType<3>, .decompose = MaxPoolDecompose,
     .numpy = "max_pool(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode)",
     .sample = {.shapes = {"f32[1,2,4,3,5]"}, .attrs = "window = [2, 2, 3], stride = [2, 1, 2], pad = [0, 1, 1, 0, 0, 1], ceil_mode = true"},
     .doc = "Largest element of each window of [n,c,d,h,w]; as max_pool2d."},
    {.name = "max_pool_indices", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"window", kInts}, {"stride", kInts, "[]"}, {"pad", kInts, "[]"}, {"dilation", kInts, "[]"}, {"ceil_mode", kBool, "false"}, {"dtype", kDType, "i32"}},
     .infer = IndicesType, .decompose = IndicesDecompose,
     .numpy = "max_pool_indices(x0, window=window, stride=stride, pad=pad, dilation=dilation, ceil_mode=ceil_mode)",
     .sample = {.shapes = {"f32[2,2,5,6]"}, .attrs = "window = [3, 2], stride = [2, 1], pad = [1, 0, 1, 1]", .differentiable = false},
     .doc = "Where max_pool finds each window's largest element: its row-major position among the spatial axes of [n,c,spatial...]."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kPoolOps(kOps);

}  // namespace agc
