// Resize and Upsample. What agc's own resize has goes there; the rest (crops, symmetric and old coordinates, axes that
// are not the last) is worked out here, one axis after the other, as weighted elements at positions known in advance.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_shape.h"
#include "ir/build_window.h"

namespace agc::onnx {
namespace {

enum Mode { kNearest, kLinear, kCubic };
enum Coordinate { kHalfPixel, kPytorch, kAlign, kAsymmetric, kCrop, kSymmetric, kOldNearest };

// One axis of a resize.
struct AxisResize {
  int64_t from = 1, to = 1;
  double scale = 1;
  double start = 0, end = 1;  // the crop
};

struct Plan {
  Mode mode = kNearest;
  Coordinate coordinate = kHalfPixel;
  int rounding = 0;  // round_prefer_floor, round_prefer_ceil, floor, ceil
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
  double extrapolation = 0;
  std::vector<AxisResize> axes = {};  // of every axis of the operand
  bool by_scales = false;
};

// Where output k stands among the input's elements.
double Place(const Plan& p, const AxisResize& a, int64_t k) {
  const auto x = static_cast<double>(k), from = static_cast<double>(a.from), length = a.scale * from;
  switch (p.coordinate) {
    case kHalfPixel:
      return (x + 0.5) / a.scale - 0.5;
    case kPytorch:
      return a.to > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
    case kAlign:
      return length == 1 ? 0 : x * (from - 1) / (length - 1);
    case kAsymmetric:
      return x / a.scale;
    case kCrop:
      return a.to > 1 ? a.start * (from - 1) + x * (a.end - a.start) * (from - 1) / static_cast<double>(a.to - 1)
                      : 0.5 * (a.start + a.end) * (from - 1);
    case kSymmetric:
      return from / 2 * (1 - static_cast<double>(a.to) / length) + (x + 0.5) / a.scale - 0.5;
    case kOldNearest:
      return (x + 0.5) / a.scale;
  }
  return 0;
}

double Kernel(const Plan& p, double x) {
  x = std::abs(x);
  const double a = p.cubic_a;
  if (p.mode == kLinear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

int64_t Nearest(const Plan& p, double x) {
  const double low = std::floor(x);
  switch (p.rounding) {
    case 0:
      return static_cast<int64_t>(x - low <= 0.5 ? low : low + 1);
    case 1:
      return static_cast<int64_t>(x - low < 0.5 ? low : low + 1);
    case 2:
      return static_cast<int64_t>(low);
    default:
      return static_cast<int64_t>(std::ceil(x));
  }
}

// The elements that an output is made of, and their weights.
std::vector<std::pair<int64_t, double>> Taps(const Plan& p, const AxisResize& a, int64_t k) {
  const double x = Place(p, a, k);
  const auto edge = [&](int64_t i) { return std::min(std::max<int64_t>(i, 0), a.from - 1); };
  if (p.mode == kNearest) return {{edge(Nearest(p, x)), 1}};
  const double shrink = p.antialias ? std::min(a.scale, 1.0) : 1, reach = (p.mode == kLinear ? 1 : 2) / shrink;
  std::vector<std::pair<int64_t, double>> taps;
  double sum = 0;
  for (auto i = static_cast<int64_t>(std::floor(x - reach)) + 1; static_cast<double>(i) < x + reach; ++i) {
    const bool outside = i < 0 || i >= a.from;
    const double w = outside && p.exclude_outside ? 0 : Kernel(p, (static_cast<double>(i) - x) * shrink);
    if (w != 0) taps.emplace_back(edge(i), w);
    sum += w;
  }
  for (auto& tap : taps) tap.second /= p.exclude_outside || p.antialias ? sum : 1;
  return taps;
}

// Along one axis: the sum over taps of elements times weights.
Value ResizeAxis(Call& c, Value x, int axis, const Plan& p, const AxisResize& a) {
  std::vector<std::vector<std::pair<int64_t, double>>> taps;
  size_t most = 0;
  for (int64_t k = 0; k < a.to; ++k) {
    taps.push_back(Taps(p, a, k));
    most = std::max(most, taps.back().size());
  }
  Value sum;
  for (size_t t = 0; t < most; ++t) {
    std::vector<int64_t> at;
    HostTensor weights = HostTensor::Zeros({p.mode == kNearest ? DType::kF32 : x.dtype(), {a.to}});
    for (int64_t k = 0; k < a.to; ++k) {
      const auto& mine = taps[static_cast<size_t>(k)];
      at.push_back(t < mine.size() ? mine[t].first : 0);
      weights.set(k, Scalar::Of(DType::kF64, t < mine.size() ? mine[t].second : 0));
    }
    Value part = Take(x, c.Constant(DType::kI32, at), axis);
    if (p.mode == kNearest) return part;
    Ints shape(static_cast<size_t>(x.rank()), 1);
    shape[static_cast<size_t>(axis)] = a.to;
    part = Mul(part, Reshape(c.Constant(weights), shape));
    sum = sum.valid() ? Add(sum, part) : part;
  }
  return sum;
}

// Positions outside of the operand have the value of extrapolation, along any axis.
Value Extrapolated(Call& c, Value y, const Plan& p) {
  for (size_t axis = 0; axis < p.axes.size(); ++axis) {
    const AxisResize& a = p.axes[axis];
    HostTensor outside = HostTensor::Zeros({DType::kBool, {a.to}});
    bool any = false;
    for (int64_t k = 0; k < a.to; ++k) {
      const double x = Place(p, a, k);
      if (x >= 0 && x <= static_cast<double>(a.from - 1)) continue;
      any = true;
      outside.set(k, Scalar::Int(DType::kBool, 1));
    }
    if (!any) continue;
    Ints shape(p.axes.size(), 1);
    shape[axis] = a.to;
    y = Where(Broadcast(Reshape(c.Constant(outside), shape), Ints(y.dims().begin(), y.dims().end())),
              FullLike(y, p.extrapolation), y);
  }
  return y;
}

// agc's own resize over the last axes, where it has the mode.
bool Native(Value x, const Plan& p, Value& y) {
  size_t first = 0;
  const auto still = [&](const AxisResize& a) { return a.from == a.to && a.scale == 1; };
  while (first < p.axes.size() && still(p.axes[first])) ++first;
  if (first == p.axes.size()) return y = x, true;
  const bool own = p.coordinate == kCrop || p.coordinate == kSymmetric || p.coordinate == kOldNearest;
  const bool fraction =
      p.by_scales && p.coordinate == kAlign && std::any_of(p.axes.begin(), p.axes.end(), [](const AxisResize& a) {
        return a.scale * static_cast<double>(a.from) != static_cast<double>(a.to);
      });
  const bool plain = !fraction && !p.antialias && IsFloat(x.dtype()) && x.dtype() != DType::kF64;
  if (own || !plain || p.axes.size() - first > 3) return false;
  ResizeOptions o;
  o.mode = p.mode == kNearest  ? Interpolation::kNearest
           : p.mode == kLinear ? Interpolation::kLinear
                               : Interpolation::kCubic;
  constexpr Coordinates kNames[] = {Coordinates::kHalfPixel, Coordinates::kPytorchHalfPixel, Coordinates::kAlignCorners,
                                    Coordinates::kAsymmetric};
  o.coordinates = kNames[p.coordinate];
  o.rounding = static_cast<Rounding>(p.rounding);
  o.cubic_a = p.cubic_a;
  o.exclude_outside = p.exclude_outside;
  Ints size;
  std::vector<double> scales;
  for (size_t k = first; k < p.axes.size(); ++k) {
    size.push_back(p.axes[k].to);
    scales.push_back(p.axes[k].scale);
  }
  y = p.by_scales ? ResizeBy(x, scales, o) : Resize(x, size, o);
  return true;
}

Value Apply(Call& c, Value x, const Plan& p) {
  Value y;
  if (Native(x, p, y)) return y;
  const DType dtype = x.dtype();
  y = p.mode == kNearest || IsFloat(dtype) ? x : CastTo(x, DType::kF32);
  for (size_t axis = 0; axis < p.axes.size(); ++axis) {
    const AxisResize& a = p.axes[axis];
    if (a.from == a.to && a.scale == 1 && p.coordinate != kCrop) continue;
    y = ResizeAxis(c, y, static_cast<int>(axis), p, a);
  }
  if (p.coordinate == kCrop) y = Extrapolated(c, y, p);
  return CastTo(y, dtype);
}

// Extents from sizes or scales of `axes`.
void Extents(Call& c, Value x, const Ints& axes, const std::vector<double>& scales, const Ints& sizes, int policy,
             Plan& p) {
  for (int k = 0; k < x.rank(); ++k) p.axes.push_back({x.dim(k), x.dim(k), 1, 0, 1});
  const size_t given = scales.empty() ? sizes.size() : scales.size();
  if (given != axes.size()) return void(c.Fail(absl::StrCat(given, " scales or sizes for ", axes.size(), " axes")));
  p.by_scales = !scales.empty();
  double common = 0;
  for (size_t k = 0; k < axes.size() && policy != 0; ++k) {
    const double s =
        static_cast<double>(sizes.empty() ? 0 : sizes[k]) / static_cast<double>(x.dim(static_cast<int>(axes[k])));
    common = k == 0 ? s : policy == 1 ? std::min(common, s) : std::max(common, s);
  }
  for (size_t k = 0; k < axes.size(); ++k) {
    AxisResize& a = p.axes[static_cast<size_t>(axes[k])];
    const auto from = static_cast<double>(a.from);
    if (p.by_scales) {
      a.scale = scales[k];
      a.to = a.scale > 0 && a.scale * from < 1e9 ? static_cast<int64_t>(std::floor(from * a.scale)) : 0;
    } else if (policy != 0) {
      a.scale = common;
      a.to = common * from < 1e9 ? static_cast<int64_t>(std::floor(common * from + 0.5)) : 0;
    } else {
      a.to = sizes[k];
      a.scale = static_cast<double>(sizes[k]) / from;
    }
    if (a.to < 1 || a.from < 1)
      return void(c.Fail(absl::StrCat("axis ", axes[k], " of ", ToString(x.type()), " gets ", a.to, " elements")));
  }
  if (policy != 0) p.by_scales = true;  // one scale, which the extents follow by rounding
}

Mode ModeOf(Call& c) {
  const int mode = c.choice("mode", {"nearest", "linear", "cubic", "bilinear"}, "nearest");
  return mode == 3 ? kLinear : static_cast<Mode>(mode);
}

// Opset 10 and Upsample: scales alone, x / scale.
void UpsampleOp(Call& c) {
  const Value x = c.in(0);
  Plan p{.mode = ModeOf(c), .coordinate = kAsymmetric, .rounding = 2};
  const std::vector<double> scales = c.opset() >= 9 ? c.numbers(1, "scales") : c.numbers("scales");
  if (!c.ok()) return;
  Ints axes;
  for (int64_t k = 0; k < x.rank(); ++k) axes.push_back(k);
  Extents(c, x, axes, scales, {}, 0, p);
  if (c.ok()) c.out(Apply(c, x, p));
}

void ResizeOp(Call& c) {
  if (c.opset() < 11) return UpsampleOp(c);
  const Value x = c.in(0);
  Plan p{.mode = ModeOf(c)};
  p.coordinate =
      static_cast<Coordinate>(c.choice("coordinate_transformation_mode",
                                       {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                        "tf_crop_and_resize", "half_pixel_symmetric", "tf_half_pixel_for_nn"},
                                       "half_pixel"));
  p.rounding =
      c.choice("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, "round_prefer_floor");
  p.cubic_a = c.number("cubic_coeff_a", -0.75);
  p.exclude_outside = c.flag("exclude_outside", false);
  p.extrapolation = c.number("extrapolation_value", 0);
  p.antialias = c.opset() >= 18 && c.flag("antialias", false);
  const int policy =
      c.opset() < 18 ? 0 : c.choice("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"}, "stretch");
  Ints axes;
  for (int64_t k = 0; k < x.rank(); ++k) axes.push_back(k);
  if (c.opset() >= 18) axes = c.ints("axes", axes);
  for (int64_t& a : axes) {
    a += a < 0 ? x.rank() : 0;
    if (a < 0 || a >= x.rank()) return void(c.Fail(absl::StrCat("axis ", a, " of rank ", x.rank())));
  }
  const std::vector<double> scales = c.has(2) ? c.numbers(2, "scales") : std::vector<double>();
  const Ints sizes = c.has(3) ? c.ints(3, "sizes") : Ints();
  std::vector<double> roi;
  if (p.coordinate == kCrop) roi = c.numbers(1, "roi");
  c.ignore_operand(1);
  if (!c.ok()) return;
  Extents(c, x, axes, scales, sizes, sizes.empty() ? 0 : policy, p);
  if (!c.ok()) return;
  if (p.coordinate == kCrop && roi.size() != 2 * axes.size())
    return void(c.Fail(absl::StrCat("roi has ", roi.size(), " numbers for ", axes.size(), " axes")));
  for (size_t k = 0; k < axes.size() && !roi.empty(); ++k) {
    p.axes[static_cast<size_t>(axes[k])].start = roi[k];
    p.axes[static_cast<size_t>(axes[k])].end = roi[k + axes.size()];
  }
  c.out(Apply(c, x, p));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Resize", 10, ResizeOp}, {"Upsample", 7, UpsampleOp},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kResizeOps(kRows);

}  // namespace agc::onnx
