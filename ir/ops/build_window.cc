// Functions of window ops: options are brought to the form that the rows take, and padding by rule is worked out.
#include "ir/build_window.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/ops/resize.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

// One number per axis; other counts are left to the shape rule, which says what is wrong.
Ints PerAxis(Ints ints, size_t rank, int64_t otherwise) {
  if (ints.empty()) return Ints(rank, otherwise);
  if (ints.size() == 1) ints.resize(rank, ints[0]);
  return ints;
}

Ints BothEnds(Ints pad, size_t rank) {
  if (pad.empty()) pad = {0};
  if (pad.size() == 1) return Ints(2 * rank, pad[0]);
  if (pad.size() == rank) pad.insert(pad.end(), pad.begin(), pad.begin() + static_cast<long>(rank));
  return pad;
}

Ints PadOf(AutoPad rule, const Ints& pad, const Ints& input, const Ints& kernel, const Ints& stride,
           const Ints& dilation) {
  const size_t rank = kernel.size();
  const bool usable = input.size() == rank && stride.size() == rank && dilation.size() == rank &&
                      std::all_of(stride.begin(), stride.end(), [](int64_t s) { return s > 0; });
  if (rule == AutoPad::kNone || rule == AutoPad::kValid || !usable)
    return BothEnds(rule == AutoPad::kNone ? pad : Ints{}, rank);
  return SamePad(input, kernel, stride, dilation, rule == AutoPad::kSameUpper);
}

}  // namespace

Ints SamePad(const Ints& input, const Ints& kernel, const Ints& stride, const Ints& dilation, bool upper) {
  Ints before, after;
  for (size_t k = 0; k < kernel.size(); ++k) {
    const int64_t reach = (kernel[k] - 1) * dilation[k] + 1, outputs = (input[k] + stride[k] - 1) / stride[k];
    const int64_t total = std::max<int64_t>(0, (outputs - 1) * stride[k] + reach - input[k]);
    before.push_back(upper ? total / 2 : total - total / 2);
    after.push_back(total - before.back());
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

// ---------------------------------------------------------------- convolution

Value Conv(Value x, Value w, ConvOptions o, Loc loc) {
  if (!x.valid() || !w.valid()) return Emit("conv2d", {x, w}, {}, loc);
  const size_t rank = static_cast<size_t>(std::clamp(w.rank() - 2, 1, 3));
  const Ints stride = PerAxis(o.stride, rank, 1), dilation = PerAxis(o.dilation, rank, 1);
  const Ints pad = PadOf(o.auto_pad, o.pad, Spatial(x.dims()), Spatial(w.dims()), stride, dilation);
  return Emit(absl::StrCat("conv", rank, "d"), {x, w},
              {Attr{"stride", stride}, Attr{"pad", pad}, Attr{"dilation", dilation}, Attr{"groups", o.groups}}, loc);
}

Value Conv2d(Value x, Value w, Conv2dOptions options, Loc loc) {
  return Emit("conv2d", {x, w}, {Attr{"stride", options.stride}, Attr{"pad", options.pad}}, loc);
}

Value Conv2dInputGrad(Value g, Value w, Ints input, Conv2dOptions options, Loc loc) {
  return Emit("conv2d_input_grad", {g, w},
              {Attr{"input", input}, Attr{"stride", options.stride}, Attr{"pad", options.pad}}, loc);
}

Value Conv2dWeightGrad(Value x, Value g, Ints weight, Conv2dOptions options, Loc loc) {
  return Emit("conv2d_weight_grad", {x, g},
              {Attr{"weight", weight}, Attr{"stride", options.stride}, Attr{"pad", options.pad}}, loc);
}

Value ConvTranspose(Value x, Value w, ConvTransposeOptions o, Loc loc) {
  const size_t rank = static_cast<size_t>(std::clamp(w.rank() - 2, 1, 3));
  const Attr attrs[] = {{"stride", PerAxis(o.stride, rank, 1)},
                        {"pad", BothEnds(o.pad, rank)},
                        {"output_pad", PerAxis(o.output_pad, rank, 0)},
                        {"dilation", PerAxis(o.dilation, rank, 1)},
                        {"groups", o.groups}};
  return Emit(absl::StrCat("conv_transpose", rank, "d"), {x, w}, attrs, loc);
}

// ---------------------------------------------------------------- pooling

namespace {

using Attrs = absl::InlinedVector<Attr, 6>;

bool All(const Ints& ints, int64_t value) {
  return std::all_of(ints.begin(), ints.end(), [&](int64_t v) { return v == value; });
}

// The attributes of a window over axes of extents `input`, without those that have their default; `stride` is complete.
template <typename Options>
Attrs WindowAttrs(const Options& o, const Ints& input, const Ints& stride) {
  const size_t rank = input.size();
  const Ints window = PerAxis(o.window, rank, 1), dilation = PerAxis(o.dilation, rank, 1);
  const Ints pad = PadOf(o.auto_pad, o.pad, input, window, stride, dilation);
  Attrs attrs = {{"window", window}};
  if (stride != window) attrs.push_back({"stride", stride});  // which is the ops' own default
  if (pad.size() != 2 * rank || !All(pad, 0)) attrs.push_back({"pad", pad});
  if (!All(dilation, 1)) attrs.push_back({"dilation", dilation});
  return attrs;
}

Attrs PoolAttrs(const WindowOptions& o, const Ints& input) {
  const Ints window = PerAxis(o.window, input.size(), 1);
  Ints stride = PerAxis(o.stride, input.size(), 0);
  for (size_t k = 0; k < stride.size() && k < window.size(); ++k) stride[k] = stride[k] == 0 ? window[k] : stride[k];
  return WindowAttrs(o, input, stride);
}

Attrs SlidingAttrs(const SlidingOptions& o, const Ints& input) {
  return WindowAttrs(o, input, PerAxis(o.stride, input.size(), 1));
}

// "max_pool2d" and its like, for the operand's rank.
Value Pooling(absl::string_view kind, Value x, const WindowOptions& o, absl::Span<const Attr> more, Loc loc) {
  const size_t rank = static_cast<size_t>(std::clamp(x.rank() - 2, 1, 3));
  Ints input = Spatial(x.dims());
  input.resize(rank, 1);
  Attrs attrs = PoolAttrs(o, input);
  attrs.push_back({"ceil_mode", o.ceil_mode});
  attrs.insert(attrs.end(), more.begin(), more.end());
  return Emit(absl::StrCat(kind, rank, "d"), {x}, attrs, loc);
}

WindowOptions Options2d(const PoolOptions& o) { return {.window = o.window, .stride = o.stride, .pad = o.pad}; }

}  // namespace

Value MaxPool(Value x, WindowOptions o, Loc loc) { return Pooling("max_pool", x, o, {}, loc); }
Value AvgPool(Value x, WindowOptions o, bool count_include_pad, Loc loc) {
  return Pooling("avg_pool", x, o, {Attr{"count_include_pad", count_include_pad}}, loc);
}
Value LpPool(Value x, WindowOptions o, double p, Loc loc) { return Pooling("lp_pool", x, o, {Attr{"p", p}}, loc); }

Value MaxPoolIndices(Value x, WindowOptions o, DType dtype, Loc loc) {
  Attrs attrs = PoolAttrs(o, Spatial(x.dims()));
  attrs.push_back({"ceil_mode", o.ceil_mode});
  attrs.push_back({"dtype", dtype});
  return Emit("max_pool_indices", {x}, attrs, loc);
}

Value MaxPool2d(Value x, PoolOptions options, Loc loc) {
  return Emit("max_pool2d", {x}, PoolAttrs(Options2d(options), {1, 1}), loc);
}
Value MaxPool2dWithIndex(Value x, PoolOptions options, Loc loc) {
  return Emit("max_pool_with_index", {x}, PoolAttrs(Options2d(options), {1, 1}), loc);
}
Value AvgPool2d(Value x, PoolOptions options, Loc loc) {
  return Emit("avg_pool2d", {x}, PoolAttrs(Options2d(options), {1, 1}), loc);
}

Value MaxUnpool(Value x, Value indices, Ints input, WindowOptions o, Loc loc) {
  Attrs attrs = PoolAttrs(o, input);
  attrs.push_back({"input", input});
  return Emit("max_unpool", {x, indices}, attrs, loc);
}

namespace {
Value Adaptive(absl::string_view op, Value x, Ints size, Loc loc) {
  const size_t rank = static_cast<size_t>(std::max(x.rank() - 2, 1));
  return Emit(op, {x}, {Attr{"size", PerAxis(std::move(size), rank, 1)}}, loc);
}
}  // namespace

Value AdaptiveAvgPool(Value x, Ints size, Loc loc) { return Adaptive("adaptive_avg_pool", x, std::move(size), loc); }
Value AdaptiveMaxPool(Value x, Ints size, Loc loc) { return Adaptive("adaptive_max_pool", x, std::move(size), loc); }
Value AdaptiveMaxPoolWithIndex(Value x, Ints size, Loc loc) {
  return Adaptive("adaptive_max_pool_with_index", x, std::move(size), loc);
}

Value GlobalMaxPool(Value x, Loc loc) { return Emit("global_max_pool", {x}, {}, loc); }
Value GlobalAvgPool(Value x, Loc loc) { return Emit("global_avg_pool", {x}, {}, loc); }
Value GlobalLpPool(Value x, double p, Loc loc) { return Emit("global_lp_pool", {x}, {Attr{"p", p}}, loc); }

// ---------------------------------------------------------------- windows

Value SlidingWindows(Value x, SlidingOptions o, Loc loc) {
  const Ints input = Spatial(x.dims());
  return Emit("sliding_windows", {x}, SlidingAttrs(o, input), loc);
}
Value Unfold(Value x, SlidingOptions o, Loc loc) {
  const Ints input = Spatial(x.dims());
  return Emit("unfold", {x}, SlidingAttrs(o, input), loc);
}
Value OverlapAdd(Value windows, Ints input, SlidingOptions o, Loc loc) {
  Attrs attrs = SlidingAttrs(o, input);
  attrs.push_back({"input", input});
  return Emit("overlap_add", {windows}, attrs, loc);
}
Value Fold(Value columns, Ints input, SlidingOptions o, Loc loc) {
  Attrs attrs = SlidingAttrs(o, input);
  attrs.push_back({"input", input});
  return Emit("fold", {columns}, attrs, loc);
}

// ---------------------------------------------------------------- resizing

namespace {

ResampleRule RuleOf(const ResizeOptions& o) {
  static constexpr const char* kModes[] = {"nearest", "linear", "cubic"};
  static constexpr const char* kCoordinates[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"};
  static constexpr const char* kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  return {kModes[static_cast<int>(o.mode)], kCoordinates[static_cast<int>(o.coordinates)],
          kRoundings[static_cast<int>(o.rounding)], o.cubic_a, o.exclude_outside};
}

// The first convergent of the continued fraction that is within 1e-7 of the scale: what was meant where the scale came
// as a rounded decimal.
Ratio RatioOf(double scale) {
  int64_t over = 1, under = 0, over_before = 0, under_before = 1;
  double rest = scale;
  for (int k = 0; k < 20; ++k) {
    const double whole = std::floor(rest);
    over_before = std::exchange(over, static_cast<int64_t>(whole) * over + over_before);
    under_before = std::exchange(under, static_cast<int64_t>(whole) * under + under_before);
    if (std::abs(static_cast<double>(over) / static_cast<double>(under) - scale) <= 1e-7 * scale) break;
    rest = 1 / (rest - whole);
  }
  return {over, under};
}

}  // namespace

Value Resize(Value x, Ints size, ResizeOptions options, Loc loc) {
  const ResampleRule rule = RuleOf(options);
  return Emit(
      "resize", {x},
      {Attr{"size", std::move(size)}, Attr{"mode", rule.mode}, Attr{"coordinates", rule.coordinates},
       Attr{"rounding", rule.rounding}, Attr{"cubic_a", rule.cubic_a}, Attr{"exclude_outside", rule.exclude_outside}},
      loc);
}

Value ResizeBy(Value x, absl::Span<const double> scales, ResizeOptions options, Loc loc) {
  if (!x.valid()) return x;
  const int leading = x.rank() - static_cast<int>(scales.size());
  std::vector<ResampledAxis> axes;
  for (size_t k = 0; k < scales.size(); ++k) {
    const bool usable = leading >= 0 && scales[k] > 0 && scales[k] < 1e6;
    const Ratio scale = usable ? RatioOf(scales[k]) : Ratio{};
    const int axis = leading + static_cast<int>(k);
    const int64_t size = usable ? x.dim(axis) * scale.over / scale.under : 0;
    if (!usable || (size == 0 && x.dim(axis) > 0)) {
      return Poison(*x.builder, loc,
                    absl::StrCat("resize: scale ", scales[k], " of axis ", axis, " of ", ToString(x.type()),
                                 " leaves no elements"));
    }
    axes.push_back({axis, size, scale});
  }
  return ResampleAxes(x, axes, RuleOf(options), loc);
}

// ---------------------------------------------------------------- sampling

Value GridSample(Value x, Value grid, GridSampleOptions o, Loc loc) {
  static constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  return Emit(
      "grid_sample", {x, grid},
      {Attr{"mode", RuleOf({.mode = o.mode}).mode},
       Attr{"padding", std::string(kPaddings[static_cast<int>(o.padding)])}, Attr{"align_corners", o.align_corners}},
      loc);
}

Value AffineGrid(Value theta, Ints size, bool align_corners, Loc loc) {
  return Emit("affine_grid", {theta}, {Attr{"size", std::move(size)}, Attr{"align_corners", align_corners}}, loc);
}

}  // namespace agc
