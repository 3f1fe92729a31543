// Resizing. Along one axis (resample) output o stands at (a * o + b) / c of the input, a fraction of whole numbers, so
// positions, ties and weights are exact; several axes are resized one after the other (resize). resample_grad, the
// transpose, sums over the outputs that read an input element: they follow each other.
//   half pixels: x = (o + 0.5) * n / m - 0.5 = (2 n o + n - m) / 2 m
#include "ir/ops/resize.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/integers.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- along one axis

// The input elements floor(x) + first ... that an output reads, and the map of its place.
struct Resample {
  int64_t a = 1, b = 0, c = 1;
  int first = 0, taps = 1;
  int axis = 0;
  int64_t inputs = 0, outputs = 0;
};

// Positions along n elements are computed in 64 bits: (a + c) * n + |b|. What a division leaves is below c, in 32 bits.
absl::Status CheckMap(const OpCall& call, const Ints& map, int64_t n) {
  const double a = static_cast<double>(map[0]), b = static_cast<double>(map[1]), c = static_cast<double>(map[2]);
  const double largest = (a + c) * (static_cast<double>(n) + 8) + std::abs(b);
  if (largest < 0x1p62 && c <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return call.Error(absl::StrCat("map = ", ToString(map), " is too large for ", n, " elements"));
}

absl::StatusOr<Types> ResampledType(const OpCall& call) {
  const bool nearest = call.text("mode") == "nearest";
  if (!nearest) AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), call.type(0).rank()));
  AGC_RETURN_IF_ERROR(CheckInts(call, "map", 3, std::numeric_limits<int64_t>::min()));
  const Ints& map = call.ints("map");
  if (map[0] < 0 || map[2] < 1) {
    return call.Error(absl::StrCat("map = ", ToString(map), ", expected 0 or more first and 1 or more last"));
  }
  const int64_t axis = PositiveAxis(call.integer("axis"), call.type(0).rank());
  TensorType type = call.type(0);
  type.dims[axis] = call.integer("size");
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  if ((type.dims[axis] == 0) != (call.type(0).dims[axis] == 0)) {
    return call.Error(absl::StrCat("axis ", axis, " of ", ToString(call.type(0)), " cannot become ", type.dims[axis]));
  }
  AGC_RETURN_IF_ERROR(CheckMap(call, map, std::max(type.dims[axis], call.type(0).dims[axis])));
  return Types(type);
}

Resample ResampleOf(At& s, bool transposed) {
  const Ints& map = s.ints("map");
  const std::string& mode = s.text("mode");
  Resample r{.a = map[0], .b = map[1], .c = map[2]};
  r.taps = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  r.first = mode == "cubic" ? -1 : 0;
  r.axis = static_cast<int>(PositiveAxis(s.integer("axis"), s.type(0).rank()));
  r.inputs = s.dim(0, r.axis);
  r.outputs = s.out().dims[r.axis];
  if (transposed) std::swap(r.inputs, r.outputs);
  return r;
}

// (index * a + b) / c rounded down, and what is left: computed as an index, or in i64 where that has not the bits.
struct Quotient {
  Expr whole = {}, rest = {};
};
Quotient Divided(Expr index, int64_t a, int64_t b, int64_t c) {
  const int64_t low = index.node().lo * a + b, high = index.node().hi * a + b;
  if (std::max(std::abs(low), std::abs(high)) <= std::numeric_limits<int32_t>::max() - c) {
    return {Div(index * a + b, c), Mod(index * a + b, c)};
  }
  const auto number = [&](int64_t v) { return index.pool->Const(Scalar::Int(DType::kI64, v)); };
  const int64_t lift = std::max<int64_t>(0, -FloorDiv(low, c));  // no negative dividends
  const Expr v = FromIndex(index, DType::kI64) * number(a) + number(b + lift * c);
  return {ToIndex(Alu("div", {v, number(c)}), FloorDiv(low, c) + lift, FloorDiv(high, c) + lift) - lift,
          ToIndex(Alu("rem", {v, number(c)}), 0, c - 1)};
}

Expr Clamped(Expr index, int64_t n) { return Max(Min(index, n - 1), 0); }

// The cubic kernel at distance d of at most 1, and of 1 to 2, by Horner: Keys (1981), "Cubic convolution interpolation
// for digital image processing", equation 4, with a free in place of -1/2.
Expr CubicNear(Expr d, double a) {
  const auto number = [&](double v) { return Number(*d.pool, d.dtype(), v); };
  return (d * number(a + 2) - number(a + 3)) * d * d + number(1);
}
Expr CubicFar(Expr d, double a) {
  const auto number = [&](double v) { return Number(*d.pool, d.dtype(), v); };
  return ((d * number(a) - number(5 * a)) * d + number(8 * a)) * d - number(4 * a);
}

// Weights of the elements floor + first, ..., floor being where the fraction `rest` / c lies behind.
std::vector<Expr> WeightsOf(At& s, const Resample& r, Expr floor, Expr rest) {
  const DType wide = AccumulatorOf(s.out().dtype);
  const auto number = [&](double v) { return Number(s.pool, wide, v); };
  const Expr t = Alu("div", {Cast(FromIndex(rest, DType::kI32), wide), number(static_cast<double>(r.c))});
  if (r.taps == 2) return {number(1) - t, t};
  const double a = s.number("cubic_a");
  std::vector<Expr> w = {CubicFar(t + number(1), a), CubicNear(t, a), CubicNear(number(1) - t, a),
                         CubicFar(number(2) - t, a)};
  if (!s.flag("exclude_outside")) return w;
  Expr sum = number(0);
  for (int k = 0; k < r.taps; ++k) {
    w[k] = Select(InRange(floor + (r.first + k), r.inputs), w[k], number(0));
    sum = sum + w[k];
  }
  for (Expr& e : w) e = Alu("div", {e, sum});
  return w;
}

Expr ResampleAt(At& s, Index i) {
  const Resample r = ResampleOf(s, false);
  const Quotient place = Divided(i[r.axis], r.a, r.b, r.c);
  const Expr floor = place.whole;
  const auto read = [&](int tap) {
    Point x(i.begin(), i.end());
    x[r.axis] = Clamped(floor + (r.first + tap), r.inputs);
    return s.Read(0, x);
  };
  if (r.taps == 1) return read(0);
  const std::vector<Expr> weights = WeightsOf(s, r, floor, place.rest);
  const DType wide = AccumulatorOf(s.out().dtype);
  Expr sum;
  for (int k = 0; k < r.taps; ++k) {
    const Expr term = Cast(read(k), wide) * weights[k];
    sum = k == 0 ? term : sum + term;
  }
  return Cast(sum, s.out().dtype);
}

// The outputs that may read input element `i`: `count` of them from `first` on.
struct Outputs {
  Expr first = {};
  int64_t count = 0;
};
Outputs OutputsOf(const Resample& r, Expr i) {
  const int64_t lowest = FloorDiv(r.b, r.c), highest = FloorDiv(r.a * (r.outputs - 1) + r.b, r.c);
  const int64_t last = r.first + r.taps - 1;
  // Outputs whose elements lie outside read the first or the last one.
  const int64_t below = std::max<int64_t>(0, -last - lowest);
  const int64_t above = std::max<int64_t>(0, highest + r.first - (r.inputs - 1));
  const int64_t width = r.taps + below + above;  // of the interval that floor lies in
  if (r.a == 0 || width * r.c >= r.a * r.outputs) return {i.pool->Int(0), r.outputs};
  const Expr first = Divided(i, r.c, r.c * (-last - below) - r.b + r.a - 1, r.a).whole;
  return {first, (width * r.c + r.a - 1) / r.a};
}

Expr ResampleGradAt(At& s, Index i) {
  const Resample r = ResampleOf(s, true);
  const Outputs outputs = OutputsOf(r, i[r.axis]);
  return s.Sum(outputs.count, [&](Expr k) {
    const Expr out = outputs.first + k;
    const Quotient place = Divided(out, r.a, r.b, r.c);
    const Expr floor = place.whole;
    const auto reads = [&](int tap) { return EqZero(Clamped(floor + (r.first + tap), r.inputs) - i[r.axis]); };
    Point g(i.begin(), i.end());
    g[r.axis] = out;
    if (r.taps == 1) {
      return s.Guard(
          And(InRange(out, r.outputs), reads(0)), [&] { return s.Read(0, g); }, s.Number(0));
    }
    const DType wide = AccumulatorOf(s.out().dtype);
    const std::vector<Expr> weights = WeightsOf(s, r, floor, place.rest);
    Expr weight;
    for (int tap = 0; tap < r.taps; ++tap) {
      const Expr w = Select(reads(tap), weights[tap], Number(s.pool, wide, 0));
      weight = tap == 0 ? w : weight + w;
    }
    const Expr read = s.Guard(
        InRange(out, r.outputs), [&] { return s.Read(0, g); }, s.Number(0));
    return Cast(read, wide) * weight;
  });
}

Value Along(const Rule& s, absl::string_view op, Value x, int64_t size) {
  const Attr attrs[] = {{"axis", s.integer("axis")},      {"size", size},
                        {"map", s.ints("map")},           {"mode", s.text("mode")},
                        {"cubic_a", s.number("cubic_a")}, {"exclude_outside", s.flag("exclude_outside")}};
  return Emit(op, {x}, attrs, s.op.loc);
}
int64_t ExtentAlong(const Rule& s) { return s.x[0].dims()[PositiveAxis(s.integer("axis"), s.x[0].rank())]; }
void ResampleVjp(Vjp& s) {
  if (IsFloat(s.x[0].dtype())) s.dx[0] = Along(s, "resample_grad", s.g, ExtentAlong(s));
}
void ResampleGradVjp(Vjp& s) {
  if (IsFloat(s.x[0].dtype())) s.dx[0] = Along(s, "resample", s.g, ExtentAlong(s));
}

// ---------------------------------------------------------------- several axes

absl::StatusOr<Types> ResizeType(const OpCall& call) {
  if (call.text("mode") != "nearest") AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  const Ints& size = call.ints("size");
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, static_cast<int>(size.size())));
  TensorType type = call.type(0);
  const size_t leading = type.dims.size() - size.size();
  const ResampleRule rule{
      .mode = call.text("mode"), .coordinates = call.text("coordinates"), .rounding = call.text("rounding")};
  for (size_t k = 0; k < size.size(); ++k) {
    if (size[k] < 0 || (size[k] == 0) != (type.dims[leading + k] == 0)) {
      return call.Error(absl::StrCat("axis ", leading + k, " of ", ToString(call.type(0)), " cannot become ", size[k]));
    }
    const int64_t n = std::exchange(type.dims[leading + k], size[k]);
    if (n == size[k]) continue;
    AGC_RETURN_IF_ERROR(CheckMost(call, "size", size));
    AGC_RETURN_IF_ERROR(CheckMost(call, "an extent of the input", {n}));
    AGC_RETURN_IF_ERROR(
        CheckMap(call, ResampleMap(rule, n, size[k], {size[k], std::max<int64_t>(n, 1)}), std::max(n, size[k])));
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

Value ResizeDecompose(Rule& s) {
  const Ints& size = s.ints("size");
  const int leading = s.x[0].rank() - static_cast<int>(size.size());
  const ResampleRule rule{s.text("mode"), s.text("coordinates"), s.text("rounding"), s.number("cubic_a"),
                          s.flag("exclude_outside")};
  std::vector<ResampledAxis> axes;
  for (size_t k = 0; k < size.size(); ++k) {
    const int axis = leading + static_cast<int>(k);
    const int64_t n = s.x[0].dims()[axis];
    axes.push_back({axis, size[k], {size[k], std::max<int64_t>(n, 1)}});
  }
  return ResampleAxes(s.x[0], axes, rule, s.op.loc);
}

constexpr AttrDef kAxis = {"axis", kInt}, kSize = {"size", kInt}, kMap = {"map", kInts},
                  kMode = {"mode", kString, "linear", "nearest|linear|cubic"}, kCubic = {"cubic_a", kFloat, "-0.75"},
                  kExclude = {"exclude_outside", kBool, "false"};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "resample", .cls = OpClass::kGather, .arity = 1, .attrs = {kAxis, kSize, kMap, kMode, kCubic, kExclude}, .infer = ResampledType, .at = ResampleAt, .vjp = ResampleVjp,
     .tol = {.f32 = 1e-5}, .numpy = "resample(x0, axis, size, map, mode, cubic_a, exclude_outside)",
     .sample = {.shapes = {"f32[2,5,3]"}, .attrs = "axis = 1, size = 7, map = [10, -2, 14], mode = \"cubic\""},
     .doc = "Resizes one axis to `size`: element o is read at (a o + b) / c, map being [a, b, c]; nearest: at its floor. Elements outside are those at the edge."},
    {.name = "resample_grad", .cls = OpClass::kReduce, .arity = 1, .attrs = {kAxis, kSize, kMap, kMode, kCubic, kExclude}, .infer = ResampledType, .at = ResampleGradAt, .vjp = ResampleGradVjp,
     .tol = {.f32 = 1e-5}, .numpy = "resample_grad(x0, axis, size, map, mode, cubic_a, exclude_outside)",
     .sample = {.shapes = {"f32[2,7,3]"}, .attrs = "axis = 1, size = 5, map = [10, -2, 14], mode = \"cubic\""},
     .doc = "Gradient of resample with respect to its operand, whose axis has `size` elements."},
    {.name = "resize", .cls = OpClass::kComposite, .arity = 1,
     .attrs = {{"size", kInts}, kMode, {"coordinates", kString, "half_pixel", "half_pixel|pytorch_half_pixel|align_corners|asymmetric"},
               {"rounding", kString, "round_prefer_floor", "round_prefer_floor|round_prefer_ceil|floor|ceil"}, kCubic, kExclude},
     .infer = ResizeType, .decompose = ResizeDecompose, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "resize(x0, size, mode, coordinates, rounding, cubic_a, exclude_outside)",
     .sample = {.shapes = {"f32[1,2,3,4]"}, .attrs = "size = [5, 6]"},
     .doc = "Resizes the last axes to `size`. Elements lie where ONNX's coordinate_transformation_mode says; nearest rounds as its nearest_mode says."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kResizeOps(kOps);

// ---------------------------------------------------------------- maps

// The place of output o as (a o + b) / c, for `scale` = outputs / inputs.
Ints ResampleMap(const ResampleRule& rule, int64_t inputs, int64_t outputs, Ratio scale) {
  const int64_t p = scale.over, q = scale.under;
  Ints map = {2 * q, q - p, 2 * p};  // half_pixel
  if (rule.coordinates == "asymmetric") map = {q, 0, p};
  const bool corners = rule.coordinates == "align_corners",
             at_start = corners || rule.coordinates == "pytorch_half_pixel";
  if (corners && outputs > 1) map = {inputs - 1, 0, outputs - 1};
  if (at_start && outputs == 1) map = {0, 0, 1};
  const int64_t divisor = std::gcd(std::gcd(map[0], map[1]), map[2]);
  for (int64_t& v : map) v /= divisor;
  if (rule.mode != "nearest") return map;
  const int64_t a = map[0], b = map[1], c = map[2];
  if (rule.rounding == "ceil") return {a, b + c - 1, c};
  if (rule.rounding == "round_prefer_floor") return {2 * a, 2 * b + c - 1, 2 * c};
  if (rule.rounding == "round_prefer_ceil") return {2 * a, 2 * b + c, 2 * c};
  return map;
}

Value ResampleAxes(Value x, absl::Span<const ResampledAxis> axes, const ResampleRule& rule, Loc loc) {
  const DType dtype = x.dtype();
  const DType wide = rule.mode == "nearest" ? dtype : AccumulatorOf(dtype);
  Value y = x;
  for (const ResampledAxis& axis : axes) {
    const int64_t n = x.dim(axis.axis);
    if (n == axis.size && axis.scale.over == axis.scale.under) continue;  // every output is an input
    if (y.dtype() != wide) y = CastTo(y, wide, loc);
    const Attr attrs[] = {
        {"axis", int64_t{axis.axis}}, {"size", axis.size},       {"map", ResampleMap(rule, n, axis.size, axis.scale)},
        {"mode", rule.mode},          {"cubic_a", rule.cubic_a}, {"exclude_outside", rule.exclude_outside}};
    y = Emit("resample", {y}, attrs, loc);
  }
  return y.valid() && y.dtype() != dtype ? CastTo(y, dtype, loc) : y;
}

}  // namespace agc
