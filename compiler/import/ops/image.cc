// Reads at fractional positions: grids, regions, deformed kernels.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/convolution.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_shape.h"
#include "ir/build_window.h"

namespace agc::onnx {
namespace {

void GridSampleOp(Call& c) {
  const Value x = c.in(0), grid = c.in(1);
  GridSampleOptions o;
  constexpr Interpolation kModes[] = {Interpolation::kLinear, Interpolation::kLinear, Interpolation::kNearest,
                                      Interpolation::kCubic, Interpolation::kCubic};
  constexpr SamplePadding kPaddings[] = {SamplePadding::kZeros, SamplePadding::kBorder, SamplePadding::kReflection};
  o.mode = kModes[c.choice("mode", {"bilinear", "linear", "nearest", "bicubic", "cubic"},
                           c.opset() < 20 ? "bilinear" : "linear")];
  o.padding = kPaddings[c.choice("padding_mode", {"zeros", "border", "reflection"}, "zeros")];
  o.align_corners = c.flag("align_corners", false);
  c.out(GridSample(x, grid, o));
}

void AffineGridOp(Call& c) {
  const Value theta = c.in(0);
  const Ints size = c.ints(1, "size");
  if (!c.ok()) return;
  if (size.size() < 4)
    return void(c.Fail(absl::StrCat("size has ", size.size(), " numbers, expected [n,c,spatial...]")));
  c.out(AffineGrid(theta, Ints(size.begin() + 2, size.end()), c.flag("align_corners", false)));
}

// ---------------------------------------------------------------- regions

struct RoiOptions {
  int64_t height = 1, width = 1, samples = 0;
  double scale = 1;
  bool half_pixel = false, max = false;
};

Value Column(Value rois, int64_t k) {
  return Reshape(Slice(rois, {0, k}, {rois.dim(0), k + 1}, {1, 1}), {rois.dim(0)});
}

// How much elements 0 to extent - 1 count at sample points [r, n]: the lower and the upper neighbour, [r, n, extent].
struct Neighbours {
  Value low = {}, high = {};
};
Neighbours WeightsAt(Call& c, Value points, int64_t extent) {
  const int64_t r = points.dim(0), n = points.dim(1);
  const auto last = static_cast<double>(extent - 1);
  const Value inside = LogicalAnd(GreaterEqual(points, FullLike(points, -1)),
                                  LessEqual(points, FullLike(points, static_cast<double>(extent))));
  const Value at = Clamp(points, 0, last), low = Floor(at), part = Sub(at, low);
  const Value k = Iota(c.builder(), points.dtype(), {r, n, extent}, 2);
  const auto wide = [&](Value v) { return Broadcast(Reshape(v, {r, n, 1}), {r, n, extent}); };
  const Value zero = FullLike(k, 0);
  const auto pick = [&](Value where, Value weight) {
    return Where(LogicalAnd(Equal(k, wide(where)), wide(inside)), wide(weight), zero);
  };
  return {pick(low, 1.0 - part), pick(Minimum(low + 1.0, FullLike(low, last)), part)};
}

// Sample points of bins along one axis, [r, bins * samples].
Value PointsOf(Call& c, Value start, Value end, int64_t bins, const RoiOptions& o) {
  const int64_t r = start.dim(0), n = bins * o.samples;
  const double shift = o.half_pixel ? 0.5 : 0;
  const Value from = start * o.scale - shift;
  Value size = end * o.scale - shift - from;
  if (!o.half_pixel) size = Maximum(size, FullLike(size, 1));
  const Value step = (Iota(c.builder(), start.dtype(), {r, n}, 1) + 0.5) / static_cast<double>(o.samples);
  const auto wide = [&](Value v) { return Broadcast(Reshape(v, {r, 1}), {r, n}); };
  return Add(wide(from), Mul(step, wide(size / static_cast<double>(bins))));
}

// The mean, or ONNX's maximum of weighted neighbours, over the samples of each bin.
Value RegionsOf(Call& c, Value x, Value rois, Value batches, const RoiOptions& o) {
  const int64_t r = rois.dim(0), channels = x.dim(1);
  const Neighbours y = WeightsAt(c, PointsOf(c, Column(rois, 1), Column(rois, 3), o.height, o), x.dim(2));
  const Neighbours z = WeightsAt(c, PointsOf(c, Column(rois, 0), Column(rois, 2), o.width, o), x.dim(3));
  const Value images = Take(x, batches, 0);
  const auto mean = [&](const Neighbours& n, int64_t bins) {
    const Value both = Add(n.low, n.high);
    return ReduceMean(Reshape(both, {r, bins, o.samples, both.dim(2)}), {2});
  };
  if (!o.max) return Einsum("rph,rchw,rqw->rcpq", {mean(y, o.height), images, mean(z, o.width)});
  Value best;
  for (const Value& rows : {y.low, y.high}) {
    for (const Value& columns : {z.low, z.high}) {
      const Value v = Einsum("rph,rchw,rqw->rcpq", {rows, images, columns});
      best = best.valid() ? Maximum(best, v) : v;
    }
  }
  const Value bins = Reshape(best, {r, channels, o.height, o.samples, o.width, o.samples});
  return ReduceMax(bins, {3, 5});
}

// With sampling_ratio 0 the number of samples follows from each region, which has to be known then.
void RoiAlign(Call& c) {
  const Value x = c.in(0), rois = c.in(1), batches = c.in(2);
  RoiOptions o;
  o.max = c.choice("mode", {"avg", "max"}, "avg") == 1;
  o.height = c.integer("output_height", 1);
  o.width = c.integer("output_width", 1);
  o.samples = c.integer("sampling_ratio", 0);
  o.scale = c.number("spatial_scale", 1);
  o.half_pixel = c.opset() >= 16 &&
                 c.choice("coordinate_transformation_mode", {"half_pixel", "output_half_pixel"}, "half_pixel") == 0;
  if (!c.ok()) return;
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4 || o.height < 1 || o.width < 1) {
    return void(c.Fail(absl::StrCat("operands are ", ToString(x.type()), " and ", ToString(rois.type()),
                                    ", expected [n,c,h,w] and [r,4]")));
  }
  if (o.samples > 0) return c.out(RegionsOf(c, x, rois, batches, o));
  const HostTensor known = c.constant(1, "rois, with sampling_ratio 0,");
  if (!c.ok()) return;
  std::vector<Value> regions;
  for (int64_t k = 0; k < rois.dim(0); ++k) {
    const auto side = [&](int64_t a, int64_t bins) {
      const double size = (known.at(4 * k + a + 2).AsDouble() - known.at(4 * k + a).AsDouble()) * o.scale;
      return static_cast<int64_t>(std::ceil((o.half_pixel ? size : std::max(size, 1.0)) / static_cast<double>(bins)));
    };
    const int64_t high = side(1, o.height), wide = side(0, o.width);
    if (high != wide)
      return void(
          c.Fail("sampling_ratio 0 with a region that needs different numbers of samples along both axes; set "
                 "sampling_ratio"));
    RoiOptions one = o;
    one.samples = std::max<int64_t>(1, high);
    regions.push_back(RegionsOf(c, x, Slice(rois, {k, 0}, {k + 1, 4}, {1, 1}), Slice(batches, {k}, {k + 1}, {1}), one));
  }
  c.out(regions.size() == 1 ? regions[0] : Concat(regions, 0));
}

// ---------------------------------------------------------------- deformable convolution

// x [n, c, h, w] at rows and columns [n, p]: bilinear, 0 outside. [n, c, p].
Value SampleAt(Value x, Value rows, Value columns) {
  const int64_t n = x.dim(0), channels = x.dim(1), h = x.dim(2), w = x.dim(3), points = rows.dim(1);
  const Value flat = Reshape(x, {n, channels, h * w});
  Value sum;
  for (const bool down : {false, true}) {
    for (const bool right : {false, true}) {
      const Value row = Floor(rows) + (down ? 1.0 : 0.0), column = Floor(columns) + (right ? 1.0 : 0.0);
      const Value weight = Mul(1.0 - Abs(Sub(rows, row)), 1.0 - Abs(Sub(columns, column)));
      const auto within = [](Value v, int64_t extent) {
        return LogicalAnd(GreaterEqual(v, FullLike(v, 0)), LessEqual(v, FullLike(v, static_cast<double>(extent - 1))));
      };
      const Value inside = LogicalAnd(within(row, h), within(column, w));
      const Value place = CastTo(Clamp(row, 0, static_cast<double>(h - 1)), DType::kI32) * static_cast<double>(w) +
                          CastTo(Clamp(column, 0, static_cast<double>(w - 1)), DType::kI32);
      const auto wide = [&](Value v) { return Broadcast(Reshape(v, {n, 1, points}), {n, channels, points}); };
      const Value part = Mul(TakeAlongAxis(flat, wide(place), 2), wide(Where(inside, weight, FullLike(weight, 0))));
      sum = sum.valid() ? Add(sum, part) : part;
    }
  }
  return sum;
}

struct Deform {
  Ints pads = {0, 0, 0, 0}, strides = {1, 1}, dilations = {1, 1};
  int64_t kh = 1, kw = 1, oh = 1, ow = 1;
};

// Where the kernel's elements read along one axis, [n, kh * kw * oh * ow], moved by offsets [n, kh * kw, oh, ow].
Value Positions(Call& c, Value offset, const Deform& d, int axis) {
  const DType t = offset.dtype();
  const Ints shape = {offset.dim(0), d.kh, d.kw, d.oh, d.ow};
  const Dims dims(shape.begin(), shape.end());
  const Value kernel =
      Iota(c.builder(), t, dims, 1 + axis) * static_cast<double>(d.dilations[static_cast<size_t>(axis)]);
  const Value start = Iota(c.builder(), t, dims, 3 + axis) * static_cast<double>(d.strides[static_cast<size_t>(axis)]);
  const Value place =
      Add(Add(kernel, start), Reshape(offset, shape)) - static_cast<double>(d.pads[static_cast<size_t>(axis)]);
  return Reshape(place, {offset.dim(0), d.kh * d.kw * d.oh * d.ow});
}

void DeformConv(Call& c) {
  const Value x = c.in(0), w = c.in(1), offset = c.in(2), bias = c.opt(3), mask = c.opt(4);
  const int64_t groups = c.integer("group", 1), parts = c.integer("offset_group", 1);
  Deform d;
  d.pads = c.ints("pads", d.pads);
  d.strides = c.ints("strides", d.strides);
  d.dilations = c.ints("dilations", d.dilations);
  c.ignore("kernel_shape");
  if (!c.ok()) return;
  if (x.rank() != 4 || w.rank() != 4 || offset.rank() != 4 || d.pads.size() != 4 || d.strides.size() != 2 ||
      d.dilations.size() != 2) {
    return void(c.Fail(absl::StrCat("operands are ", ToString(x.type()), " and ", ToString(w.type()),
                                    "; two spatial axes are supported")));
  }
  d.kh = w.dim(2), d.kw = w.dim(3), d.oh = offset.dim(2), d.ow = offset.dim(3);
  const int64_t n = x.dim(0), channels = x.dim(1), taps = d.kh * d.kw, out = d.oh * d.ow;
  if (groups < 1 || parts < 1 || channels % parts != 0 || channels != w.dim(1) * groups || w.dim(0) % groups != 0 ||
      offset.dim(1) != 2 * parts * taps) {
    return void(c.Fail(absl::StrCat("group ", groups, " and offset_group ", parts, " do not fit ", ToString(x.type()),
                                    ", ", ToString(w.type()), " and ", ToString(offset.type()))));
  }
  const Value moves = Reshape(offset, {n, parts, taps, 2, d.oh, d.ow});
  std::vector<Value> columns;
  for (int64_t g = 0; g < parts; ++g) {
    const auto moved = [&](int64_t axis) {
      return Positions(
          c,
          Reshape(Slice(moves, {0, g, 0, axis, 0, 0}, {n, g + 1, taps, axis + 1, d.oh, d.ow}, {1, 1, 1, 1, 1, 1}),
                  {n, taps, d.oh, d.ow}),
          d, static_cast<int>(axis));
    };
    const int64_t each = channels / parts;
    const Value image = Slice(x, {0, g * each, 0, 0}, {n, (g + 1) * each, x.dim(2), x.dim(3)}, {1, 1, 1, 1});
    Value v = Reshape(SampleAt(image, moved(0), moved(1)), {n, each, taps, out});
    if (mask.valid()) {
      const Value part =
          Reshape(Slice(Reshape(mask, {n, parts, taps, out}), {0, g, 0, 0}, {n, g + 1, taps, out}, {1, 1, 1, 1}),
                  {n, 1, taps, out});
      v = Mul(v, part);
    }
    columns.push_back(v);
  }
  const Value all = columns.size() == 1 ? columns[0] : Concat(columns, 1);
  const Value grouped = Reshape(all, {n, groups, w.dim(1) * taps, out}),
              weight = Reshape(w, {groups, w.dim(0) / groups, w.dim(1) * taps});
  const Value y = Reshape(Einsum("gok,ngkp->ngop", {weight, grouped}), {n, w.dim(0), d.oh, d.ow});
  c.out(bias.valid() ? AddPerChannel(y, bias) : y);
}

// clang-format off
constexpr OpRow kRows[] = {
    {"AffineGrid", 20, AffineGridOp}, {"DeformConv", 19, DeformConv, "other than two spatial axes"}, {"GridSample", 16, GridSampleOp},
    {"RoiAlign", 10, RoiAlign, "sampling_ratio 0 with regions that are not known when compiling"},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kImageOps(kRows);

}  // namespace agc::onnx
