// Functions of window ops: convolution and pooling over one, two or three spatial axes, windows as tensors, resizing
// and sampling. Tensors are [n, c, spatial...]; the operand's rank says how many spatial axes there are. Lists with one
// number per axis may have a single number for all axes, or none for the default; `pad` may also have one number per
// axis (the same before and after), or all of them: before along every axis, then after along every axis.
//   Value y = Conv(x, w, {.stride = {2}, .groups = 4, .auto_pad = AutoPad::kSameUpper});
//   Value z = MaxPool(y, {.window = {3}, .stride = {2}, .pad = {1}});
#pragma once
#include "ir/value.h"

namespace agc {

// Padding by rule instead of by numbers: SAME gives ceil(input / stride) outputs, the odd element of padding at the end
// (upper) or at the start (lower).
enum class AutoPad { kNone, kValid, kSameUpper, kSameLower };
// The padding (before..., after...) that SAME asks for.
Ints SamePad(const Ints& input, const Ints& kernel, const Ints& stride, const Ints& dilation, bool upper);

// ---------------------------------------------------------------- convolution

struct ConvOptions {
  Ints stride = {};    // default 1
  Ints pad = {};       // default 0
  Ints dilation = {};  // default 1
  int64_t groups = 1;  // channels in this many groups, each convolved alone; as many as channels: depthwise
  AutoPad auto_pad = AutoPad::kNone;
};
// x [n, c, spatial...] with w [o, c / groups, taps...]: ops conv1d, conv2d, conv3d.
Value Conv(Value x, Value w, ConvOptions options = {}, Loc loc = Loc::Here());

struct ConvTransposeOptions {
  Ints stride = {};
  Ints pad = {};  // cut off the result
  Ints dilation = {};
  Ints output_pad = {};  // added after the result's end, less than stride or dilation
  int64_t groups = 1;
};
// x [n, c, spatial...] with w [c, o / groups, taps...]: ops conv_transpose1d, conv_transpose2d, conv_transpose3d.
Value ConvTranspose(Value x, Value w, ConvTransposeOptions options = {}, Loc loc = Loc::Here());

// ---------------------------------------------------------------- pooling

struct WindowOptions {
  Ints window = {2};
  Ints stride = {};        // default, and where it is 0: the window
  Ints pad = {};           // default 0
  Ints dilation = {};      // default 1
  bool ceil_mode = false;  // windows that reach beyond the padding count if they start before it
  AutoPad auto_pad = AutoPad::kNone;
};
Value MaxPool(Value x, WindowOptions options = {}, Loc loc = Loc::Here());
// Row-major position of each window's largest element among the spatial axes, i32 or i64.
Value MaxPoolIndices(Value x, WindowOptions options = {}, DType dtype = DType::kI32, Loc loc = Loc::Here());
Value AvgPool(Value x, WindowOptions options = {}, bool count_include_pad = true, Loc loc = Loc::Here());
Value LpPool(Value x, WindowOptions options = {}, double p = 2, Loc loc = Loc::Here());
// The other way round: x at `indices` of MaxPoolIndices, among zeros of spatial extents `input`.
Value MaxUnpool(Value x, Value indices, Ints input, WindowOptions options = {}, Loc loc = Loc::Here());
// `size` regions that cover the spatial axes; one number stands for all axes.
Value AdaptiveAvgPool(Value x, Ints size, Loc loc = Loc::Here());
Value AdaptiveMaxPool(Value x, Ints size, Loc loc = Loc::Here());
Value AdaptiveMaxPoolWithIndex(Value x, Ints size, Loc loc = Loc::Here());  // (value, i32 position)
// Over all spatial axes, which become 1.
Value GlobalMaxPool(Value x, Loc loc = Loc::Here());
Value GlobalAvgPool(Value x, Loc loc = Loc::Here());
Value GlobalLpPool(Value x, double p = 2, Loc loc = Loc::Here());

// ---------------------------------------------------------------- windows

struct SlidingOptions {
  Ints window = {2};
  Ints stride = {};    // default 1
  Ints pad = {};       // default 0
  Ints dilation = {};  // default 1
  AutoPad auto_pad = AutoPad::kNone;
};
// Every window beside the next, [n, c, outputs..., taps...], padded with 0; and windows added up over a tensor of
// spatial extents `input`.
Value SlidingWindows(Value x, SlidingOptions options, Loc loc = Loc::Here());
Value OverlapAdd(Value windows, Ints input, SlidingOptions options, Loc loc = Loc::Here());
// The same with windows as columns: [n, c * taps, outputs] (im2col, col2im).
Value Unfold(Value x, SlidingOptions options, Loc loc = Loc::Here());
Value Fold(Value columns, Ints input, SlidingOptions options, Loc loc = Loc::Here());

// ---------------------------------------------------------------- resizing

enum class Interpolation : uint8_t { kNearest, kLinear, kCubic };
// Where output o of m stands among n inputs, as ONNX's coordinate_transformation_mode has it.
enum class Coordinates : uint8_t { kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric };
enum class Rounding : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };  // nearest
struct ResizeOptions {
  Interpolation mode = Interpolation::kLinear;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Rounding rounding = Rounding::kRoundPreferFloor;
  double cubic_a = -0.75;
  bool exclude_outside = false;  // cubic: elements beyond the edge have no weight, instead of repeating the edge
};
Value Resize(Value x, Ints size, ResizeOptions options = {}, Loc loc = Loc::Here());  // the last axes
// The last axes, to floor(extent * scale); positions follow the scale, not the extents. Scales are taken as the
// simplest fraction within 1e-7.
Value ResizeBy(Value x, absl::Span<const double> scales, ResizeOptions options = {}, Loc loc = Loc::Here());

// ---------------------------------------------------------------- sampling

enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };
struct GridSampleOptions {
  Interpolation mode = Interpolation::kLinear;
  SamplePadding padding = SamplePadding::kZeros;
  bool align_corners = false;
};
// x [n, c, spatial...] at grid [n, places..., k], coordinates from -1 to 1, the last spatial axis first.
Value GridSample(Value x, Value grid, GridSampleOptions options = {}, Loc loc = Loc::Here());
// The grid [n, size..., k] of the affine maps theta [n, k, k + 1].
Value AffineGrid(Value theta, Ints size, bool align_corners = false, Loc loc = Loc::Here());

}  // namespace agc
