// Convolutions and pooling. Tensors are [n, c, spatial...].
#include "compiler/import/ops/convolution.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"
#include "ir/build_window.h"

namespace agc::onnx {

AutoPad AutoPadOf(Call& c) {
  constexpr AutoPad kModes[] = {AutoPad::kNone, AutoPad::kValid, AutoPad::kSameUpper, AutoPad::kSameLower};
  return kModes[c.choice("auto_pad", {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, "NOTSET")];
}

ConvOptions ConvOptionsOf(Call& c, Value x, Value w) {
  ConvOptions o;
  o.auto_pad = AutoPadOf(c);
  o.groups = c.integer("group", 1);
  o.stride = c.ints("strides", Ints());
  o.dilation = c.ints("dilations", Ints());
  const Ints pads = c.ints("pads", Ints());
  if (o.auto_pad == AutoPad::kNone) o.pad = pads;
  const Ints kernel = c.ints("kernel_shape", Ints());
  if (!c.ok()) return o;
  if (x.rank() < 3 || w.rank() != x.rank()) {
    c.Fail(absl::StrCat("operands are ", ToString(x.type()), " and ", ToString(w.type()),
                        ", expected [n,c,spatial...] and [o,c,kernel...]"));
  } else if (!kernel.empty() && !std::equal(kernel.begin(), kernel.end(), w.dims().begin() + 2, w.dims().end())) {
    c.Fail(absl::StrCat("kernel_shape is not that of the weight, ", ToString(w.type())));
  }
  return o;
}

Value AddPerChannel(Value y, Value bias) {
  Ints shape(static_cast<size_t>(std::max(y.rank() - 1, 1)), 1);
  shape[0] = bias.dim(0);
  return Add(y, Reshape(bias, shape));
}

namespace {

void ConvOp(Call& c) {
  const Value x = c.in(0), w = c.in(1), bias = c.opt(2);
  const ConvOptions o = ConvOptionsOf(c, x, w);
  if (!c.ok()) return;
  const Value y = Conv(x, w, o);
  c.out(bias.valid() ? AddPerChannel(y, bias) : y);
}

// What is cut off the result, from the extents it has to have.
void PadTo(Value x, Value w, const Ints& shape, AutoPad mode, ConvTransposeOptions& o) {
  const int n = x.rank() - 2;
  o.pad.assign(static_cast<size_t>(2 * n), 0);
  for (int k = 0; k < n; ++k) {
    const auto at = [&](const Ints& list, int64_t fallback) {
      return list.empty() ? fallback : list[static_cast<size_t>(k)];
    };
    const int64_t total = at(o.stride, 1) * (x.dim(k + 2) - 1) + at(o.output_pad, 0) +
                          (w.dim(k + 2) - 1) * at(o.dilation, 1) + 1 - shape[static_cast<size_t>(k)];
    if (total < 0) {  // elements that no input reaches
      o.output_pad.resize(static_cast<size_t>(n), 0);
      o.output_pad[static_cast<size_t>(k)] -= total;
      continue;
    }
    const int64_t half = total / 2;
    o.pad[static_cast<size_t>(k)] = mode == AutoPad::kSameUpper ? half : total - half;
    o.pad[static_cast<size_t>(k + n)] = total - o.pad[static_cast<size_t>(k)];
  }
}

void ConvTransposeOp(Call& c) {
  const Value x = c.in(0), w = c.in(1), bias = c.opt(2);
  ConvTransposeOptions o;
  const AutoPad mode = AutoPadOf(c);
  o.groups = c.integer("group", 1);
  o.stride = c.ints("strides", Ints());
  o.dilation = c.ints("dilations", Ints());
  o.output_pad = c.ints("output_padding", Ints());
  o.pad = c.ints("pads", Ints());
  c.ignore("kernel_shape");
  Ints shape = c.ints("output_shape", Ints());
  if (!c.ok()) return;
  const auto n = static_cast<size_t>(std::max(x.rank() - 2, 0));
  if (x.rank() < 3 || w.rank() != x.rank())
    return void(c.Fail(absl::StrCat("operands are ", ToString(x.type()), " and ", ToString(w.type()))));
  for (const Ints* list : {&o.stride, &o.dilation, &o.output_pad}) {
    if (!list->empty() && list->size() != n)
      return void(c.Fail(absl::StrCat("an attribute has ", list->size(), " numbers for ", n, " spatial axes")));
  }
  if (shape.size() == n + 2) shape.erase(shape.begin(), shape.begin() + 2);
  if (!shape.empty() && shape.size() != n) return void(c.Fail("output_shape has not the rank of the spatial axes"));
  if (mode == AutoPad::kValid) o.pad = {};
  if (shape.empty() && (mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower)) {
    for (size_t k = 0; k < n; ++k)
      shape.push_back(x.dim(static_cast<int>(k) + 2) * (o.stride.empty() ? 1 : o.stride[k]));
  }
  if (!shape.empty()) PadTo(x, w, shape, mode, o);
  if (!c.ok()) return;
  const Value y = ConvTranspose(x, w, o);
  c.out(bias.valid() ? AddPerChannel(y, bias) : y);
}

// ---------------------------------------------------------------- pooling

WindowOptions WindowOf(Call& c) {
  WindowOptions o;
  o.auto_pad = AutoPadOf(c);
  o.window = c.ints("kernel_shape");
  o.stride = c.ints("strides", Ints(o.window.size(), 1));
  o.dilation = c.ints("dilations", Ints());
  const Ints pads = c.ints("pads", Ints());
  if (o.auto_pad == AutoPad::kNone) o.pad = pads;
  o.ceil_mode = c.flag("ceil_mode", false);
  return o;
}

// Positions among all elements of x, from positions among the spatial axes of each channel.
Value FlatIndices(Value at, Value x, bool column_major) {
  const Ints shape(at.dims().begin(), at.dims().end());
  int64_t spatial = 1;
  for (int k = 2; k < x.rank(); ++k) spatial *= x.dim(k);
  if (column_major) {
    Value left = at, sum = FullLike(at, 0);
    int64_t stride = spatial;
    for (int k = x.rank() - 1; k >= 2; --k) {  // the last axis varies slowest
      const Value extent = ScalarLike(at, static_cast<double>(x.dim(k)), Loc{});
      stride /= x.dim(k);
      sum = Add(sum, Mul(Mod(left, extent), ScalarLike(at, static_cast<double>(stride), Loc{})));
      left = FloorDiv(left, extent);
    }
    at = sum;
  }
  const Value image = Iota(*x.builder, at.dtype(), {x.dim(0), x.dim(1)}, 0) * static_cast<double>(x.dim(1)) +
                      Iota(*x.builder, at.dtype(), {x.dim(0), x.dim(1)}, 1);
  return Add(at, BroadcastAxes(image * static_cast<double>(spatial), shape, {0, 1}));
}

void MaxPoolOp(Call& c) {
  const Value x = c.in(0);
  const WindowOptions o = WindowOf(c);
  const bool column_major = c.integer("storage_order", 0) == 1;
  if (!c.ok()) return;
  c.out(MaxPool(x, o), 0);
  if (c.wants(1)) c.out(FlatIndices(MaxPoolIndices(x, o, DType::kI64), x, column_major), 1);
}

void AveragePoolOp(Call& c) {
  const Value x = c.in(0);
  const WindowOptions o = WindowOf(c);
  const bool padding = c.flag("count_include_pad", false);
  if (!c.ok()) return;
  c.out(AvgPool(x, o, padding));
}

void LpPoolOp(Call& c) {
  const Value x = c.in(0);
  WindowOptions o = WindowOf(c);
  const double p = c.opset() < 2 ? c.number("p", 2) : static_cast<double>(c.integer("p", 2));
  if (!c.ok()) return;
  c.out(LpPool(x, o, p));
}

template <Value (*f)(Value, Loc)>
void Global(Call& c) {
  c.out(f(c.in(0), Loc{}));
}
void GlobalLpPoolOp(Call& c) {
  const double p = c.opset() < 2 ? c.number("p", 2) : static_cast<double>(c.integer("p", 2));
  c.out(GlobalLpPool(c.in(0), p));
}

// Elements go where the indices of MaxPool say, among zeros.
void MaxUnpoolOp(Call& c) {
  const Value x = c.in(0), indices = c.in(1);
  const Ints window = c.ints("kernel_shape");
  const Ints stride = c.ints("strides", Ints(window.size(), 1));
  const Ints pads = c.ints("pads", Ints(2 * window.size(), 0));
  const Ints given = c.has(2) ? c.ints(2, "output_shape") : Ints();
  if (!c.ok()) return;
  const size_t n = window.size();
  if (static_cast<size_t>(x.rank()) != n + 2 || stride.size() != n || pads.size() != 2 * n) {
    return void(c.Fail(absl::StrCat("attributes of ", n, " axes for ", ToString(x.type()))));
  }
  Ints least(x.dims().begin(), x.dims().begin() + 2);
  for (size_t k = 0; k < n; ++k) {
    least.push_back((x.dim(static_cast<int>(k) + 2) - 1) * stride[k] + window[k] - pads[k] - pads[k + n]);
  }
  const auto elements = [](const Ints& shape) {
    int64_t all = 1;
    for (const int64_t d : shape) all *= d;
    return all;
  };
  // The indices count elements of the smallest result that has these windows; a larger one is filled from its corner.
  const int64_t count = x.type().elements(), size = elements(least);
  if (size < 1 || (!given.empty() && given.size() != n + 2)) return void(c.Fail("the result has no such shape"));
  const Value zeros = Full(c.builder(), {x.dtype(), {size}}, 0);
  const Value flat = ScatterElements(zeros, Reshape(indices, {count}), Reshape(x, {count}), 0);
  const Value y = Reshape(flat, least);
  if (given.empty() || given == least) return c.out(y);
  Ints high;
  for (size_t k = 0; k < n + 2; ++k) high.push_back(given[k] - least[k]);
  c.out(Pad(y, 0, Ints(n + 2, 0), high));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"AveragePool", 1, AveragePoolOp}, {"Conv", 1, ConvOp}, {"ConvTranspose", 1, ConvTransposeOp},
    {"GlobalAveragePool", 1, Global<GlobalAvgPool>}, {"GlobalLpPool", 1, GlobalLpPoolOp}, {"GlobalMaxPool", 1, Global<GlobalMaxPool>},
    {"LpPool", 1, LpPoolOp}, {"MaxPool", 1, MaxPoolOp}, {"MaxUnpool", 9, MaxUnpoolOp},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kConvolutionOps(kRows);

}  // namespace agc::onnx
