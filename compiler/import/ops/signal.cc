// Fourier transforms as products with cosines and sines, windows, and filter banks.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kLongest = 1 << 15;  // of a transform, whose angles are worked out in 32 bits

// [n, k]: cos or sin of 2 pi n k / length. The product is reduced first, so that the angle is exact to its dtype.
Value Wave(Call& c, DType dtype, int64_t n, int64_t k, int64_t length, bool sine) {
  const Value row = Iota(c.builder(), DType::kI32, {n, k}, 0), column = Iota(c.builder(), DType::kI32, {n, k}, 1);
  const Value turn = Rem(Mul(row, column), FullLike(row, static_cast<double>(length)));
  const DType wide = dtype == DType::kF64 ? dtype : DType::kF32;
  const Value angle = CastTo(turn, wide) * (2 * kPi / static_cast<double>(length));
  return CastTo(sine ? Sin(angle) : Cos(angle), dtype);
}

Value Element(Value x, int64_t from, int64_t to, int axis) {
  Ints start(static_cast<size_t>(x.rank()), 0), limit(x.dims().begin(), x.dims().end()), one(start.size(), 1);
  start[static_cast<size_t>(axis)] = from;
  limit[static_cast<size_t>(axis)] = to;
  return Slice(x, start, limit, one);
}

// x [..., n, 1 or 2] along its last axis but one to [..., bins, 2]; cut or padded with 0 to `length` first.
Value Transform(Call& c, Value x, int64_t length, int64_t bins, bool inverse) {
  const int rank = x.rank();
  const int64_t n = std::min(length, x.dim(-2));
  if (n != x.dim(-2)) x = Element(x, 0, n, rank - 2);
  Ints flat(x.dims().begin(), x.dims().end() - 1);
  const auto part = [&](int64_t k) { return Reshape(Element(x, k, k + 1, rank - 1), flat); };
  const Value cosine = Wave(c, x.dtype(), n, bins, length, false), sine = Wave(c, x.dtype(), n, bins, length, true);
  const Value re = part(0);
  Value out_re = Matmul(re, cosine), out_im = Matmul(re, sine);
  if (!inverse) out_im = Neg(out_im);
  if (x.dim(-1) == 2) {
    const Value im = part(1), by_sine = Matmul(im, sine), by_cosine = Matmul(im, cosine);
    out_re = inverse ? Sub(out_re, by_sine) : Add(out_re, by_sine);
    out_im = Add(out_im, by_cosine);
  }
  const Value y = Stack({out_re, out_im}, -1);
  return inverse ? y / static_cast<double>(length) : y;
}

bool CheckLength(Call& c, Value x, int64_t length) {
  if (!c.ok()) return false;
  if (x.rank() < 3 || (x.dim(-1) != 1 && x.dim(-1) != 2)) {
    c.Fail(absl::StrCat("operand is ", ToString(x.type()), ", expected [batch,signal...,1 or 2]"));
  } else if (length < 1 || length > kLongest) {
    c.Fail(absl::StrCat("a transform of ", length, " elements, 1 to ", kLongest, " are supported"));
  }
  return c.ok();
}

// The axis is an attribute before opset 20, an operand from there on.
void Dft(Call& c) {
  Value x = c.in(0);
  const bool inverse = c.flag("inverse", false), onesided = c.flag("onesided", false);
  int64_t axis = c.opset() < 20 ? c.integer("axis", 1) : c.has(2) ? c.integer(2, "axis") : -2;
  axis += axis < 0 ? x.rank() : 0;
  if (c.ok() && (axis < 0 || axis >= x.rank() - 1))
    return void(c.Fail(absl::StrCat("axis ", axis, " of ", ToString(x.type()))));
  const int64_t length = c.has(1) ? c.integer(1, "dft_length") : x.dim(static_cast<int>(axis));
  if (!CheckLength(c, x, length)) return;
  const int64_t last = x.rank() - 2;
  x = axis == last ? x : MoveAxis(x, {axis}, {last});
  const Value y = Transform(c, x, length, onesided ? length / 2 + 1 : length, inverse);
  c.out(axis == last ? y : MoveAxis(y, {last}, {axis}));
}

// Frames of the signal [batch, samples, 1 or 2] times the window: [batch, frames, bins, 2].
void Stft(Call& c) {
  Value x = c.in(0);
  const int64_t step = c.integer(1, "frame_step");
  const Value window = c.opt(2);
  const int64_t length = c.has(3) ? c.integer(3, "frame_length") : window.valid() ? window.dim(0) : x.dim(1);
  const bool onesided = c.flag("onesided", true);
  if (c.ok() && x.rank() == 2) x = Reshape(x, {x.dim(0), x.dim(1), 1});
  if (!CheckLength(c, x, length)) return;
  if (step < 1 || length > x.dim(1))
    return void(c.Fail(absl::StrCat("frames of ", length, " every ", step, " of ", x.dim(1), " samples")));
  const int64_t frames = (x.dim(1) - length) / step + 1;
  const Value at = Iota(c.builder(), DType::kI32, {frames, length}, 0) * static_cast<double>(step) +
                   Iota(c.builder(), DType::kI32, {frames, length}, 1);
  Value framed = Take(x, at, 1);
  if (window.valid()) framed = Mul(framed, Reshape(CastTo(window, x.dtype()), {length, 1}));
  c.out(Transform(c, framed, length, onesided ? length / 2 + 1 : length, false));
}

// a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N being the size, or one less where the window is symmetric.
void Window(Call& c, double a0, double a1, double a2) {
  const int64_t size = c.integer(0, "size");
  const bool periodic = c.flag("periodic", true);
  const DType dtype = c.dtype("output_datatype", DType::kF32);
  if (!c.ok()) return;
  if (size < 0 || size > (int64_t{1} << 24)) return void(c.Fail(absl::StrCat("a window of ", size)));
  HostTensor t = HostTensor::Zeros({dtype, {size}});
  const double step = 2 * kPi / static_cast<double>(periodic ? size : size - 1);
  for (int64_t k = 0; k < size; ++k) {
    const double angle = step * static_cast<double>(k);
    t.set(k, Scalar::Of(DType::kF64, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle)));
  }
  c.out(c.Constant(t));
}
void HannWindow(Call& c) { Window(c, 0.5, 0.5, 0); }
void HammingWindow(Call& c) { Window(c, 25.0 / 46, 1 - 25.0 / 46, 0); }
void BlackmanWindow(Call& c) { Window(c, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, equally wide on the mel scale 2595 log10(1 + f / 700).
void MelWeightMatrix(Call& c) {
  const int64_t filters = c.integer(0, "num_mel_bins"), length = c.integer(1, "dft_length"),
                rate = c.integer(2, "sample_rate");
  const double low = c.number(3, "lower_edge_hertz"), high = c.number(4, "upper_edge_hertz");
  const DType dtype = c.dtype("output_datatype", DType::kF32);
  if (!c.ok()) return;
  if (filters < 1 || length < 1 || rate < 1 || filters > kLongest || length > kLongest || low < 0) {
    return void(c.Fail(absl::StrCat(filters, " filters of ", length, " bins at ", rate, " Hz")));
  }
  const int64_t bins = length / 2 + 1;
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  std::vector<int64_t> edges;
  for (int64_t k = 0; k < filters + 2; ++k) {
    const double m = mel(low) + static_cast<double>(k) * (mel(high) - mel(low)) / static_cast<double>(filters + 2);
    const double f = 700 * (std::pow(10.0, m / 2595) - 1);
    edges.push_back(static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate))));
  }
  HostTensor t = HostTensor::Zeros({dtype, {bins, filters}});
  const auto set = [&](int64_t bin, int64_t filter, double v) {
    if (bin >= 0 && bin < bins) t.set(bin * filters + filter, Scalar::Of(DType::kF64, v));
  };
  for (int64_t k = 0; k < filters; ++k) {
    const int64_t from = edges[static_cast<size_t>(k)], top = edges[static_cast<size_t>(k) + 1],
                  to = edges[static_cast<size_t>(k) + 2];
    if (top == from) set(top, k, 1);
    for (int64_t j = from; top > from && j <= top; ++j)
      set(j, k, static_cast<double>(j - from) / static_cast<double>(top - from));
    for (int64_t j = top; j < to; ++j) set(j, k, static_cast<double>(to - j) / static_cast<double>(to - top));
  }
  c.out(c.Constant(t));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"BlackmanWindow", 17, BlackmanWindow}, {"DFT", 17, Dft}, {"HammingWindow", 17, HammingWindow}, {"HannWindow", 17, HannWindow},
    {"MelWeightMatrix", 17, MelWeightMatrix}, {"STFT", 17, Stft},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kSignalOps(kRows);

}  // namespace agc::onnx
