// Convolutions of [n, c, spatial...] with [o, c / groups, taps...] over one, two or three spatial axes, and their
// gradients: one implementation for every rank. Every value is a sum of products with one factor per operand, widened
// to the dtype that sums are kept in; a guard stands around the one factor it is about. All rows are linear in both
// operands and closed under differentiation, so every order of gradient works.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

// ---------------------------------------------------------------- types

// The type of a convolution of an input of shape `x` with a weight of shape `w`.
absl::StatusOr<TensorType> Convolved(const OpCall& call, const Dims& x, const Dims& w) {
  AGC_ASSIGN_OR_RETURN(const Window window, CheckedWindow(call, Spatial(w)));
  const int64_t groups = call.integer("groups");
  if (groups < 1) return call.Error(absl::StrCat("groups is ", groups, ", expected 1 or more"));
  if (w[0] % groups != 0) {
    return call.Error(absl::StrCat("groups = ", groups, " does not divide the weight's ", w[0], " output channels"));
  }
  if (x[1] % groups != 0 || x[1] / groups != w[1]) {
    const std::string per = groups == 1 ? "" : absl::StrCat(" in each of ", groups, " groups");
    return call.Error(absl::StrCat("the input has ", x[1], " channels and the weight takes ", w[1], per));
  }
  AGC_ASSIGN_OR_RETURN(const Ints out, WindowedExtents(call, window, Spatial(x)));
  TensorType type{call.type(0).dtype, {x[0], w[0]}};
  type.dims.insert(type.dims.end(), out.begin(), out.end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return type;
}

template <int rank>
absl::Status CheckOperands(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, rank + 2));
  return CheckRank(call, 1, rank + 2);
}

template <int rank>
absl::StatusOr<Types> ConvType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckOperands<rank>(call));
  AGC_ASSIGN_OR_RETURN(const TensorType type, Convolved(call, call.type(0).dims, call.type(1).dims));
  return Types(type);
}

// The gradient operand must have the shape that the convolution gives.
absl::StatusOr<Types> GradType(const OpCall& call, absl::string_view attr, const TensorType& g, const Dims& x,
                               const Dims& w) {
  AGC_ASSIGN_OR_RETURN(const TensorType expected, Convolved(call, x, w));
  if (g != expected) {
    return call.Error(absl::StrCat("the gradient is ", ToString(g), ", but a convolution with ", attr, " = ",
                                   ToString(call.ints(attr)), " gives ", ToString(expected)));
  }
  return Types(TensorType{g.dtype, call.ints(attr)});
}

template <int rank>
absl::StatusOr<Types> InputGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckOperands<rank>(call));
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", rank + 2, 0));
  AGC_RETURN_IF_ERROR(CheckDims(call, "input", call.type(0).dtype, call.ints("input")));
  return GradType(call, "input", call.type(0), call.ints("input"), call.type(1).dims);
}

template <int rank>
absl::StatusOr<Types> WeightGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckOperands<rank>(call));
  AGC_RETURN_IF_ERROR(CheckInts(call, "weight", rank + 2, 0));
  AGC_RETURN_IF_ERROR(CheckDims(call, "weight", call.type(0).dtype, call.ints("weight")));
  return GradType(call, "weight", call.type(1), call.type(0).dims, call.ints("weight"));
}

// ---------------------------------------------------------------- values

// The read of `operand`, 0 outside, in the dtype of the sum.
Expr Factor(At& s, int operand, Index index, Expr inside) {
  const Expr read = s.Guard(
      inside, [&] { return s.Read(operand, index); }, s.Number(0));
  return Cast(read, AccumulatorOf(s.out().dtype));
}

// Channels of one group; 1 where there are none, since tensors without elements are never asked for a value.
int64_t PerGroup(At& s, int64_t channels) { return std::max<int64_t>(1, channels / s.integer("groups")); }

Expr ConvAt(At& s, Index i) {
  const Window window = WindowOf(s, Spatial(s.type(1).dims));
  const int64_t inputs = s.dim(1, 1), outputs = PerGroup(s, s.dim(1, 0));
  Ints extents = {inputs};
  extents.insert(extents.end(), window.kernel.begin(), window.kernel.end());
  return s.Sum(extents, [&](Index k) {
    Point x = {i[0], Div(i[1], outputs) * inputs + k[0]}, w = {i[1], k[0]};
    Expr inside = s.pool.Bool(true);
    for (int axis = 0; axis < window.rank(); ++axis) {
      const WindowPlace place = InputAt(window, axis, i[2 + axis], k[1 + axis], s.dim(0, 2 + axis));
      inside = And(inside, place.inside);
      x.push_back(place.index);
      w.push_back(k[1 + axis]);
    }
    const Expr a = Factor(s, 0, x, inside), b = Factor(s, 1, w, s.pool.Bool(true));  // in one order with every compiler
    return a * b;
  });
}

// Phases serve a contraction where the stride divides the extent: then the axis is cut in two (ir/split_axes.h), and
// the tap depends on one of them alone.
ReaderForm FormFor(const Window& window, int axis, int64_t extent) {
  return extent % window.stride[axis] == 0 ? FormOf(window, axis) : ReaderForm::kTaps;
}

Expr InputGradAt(At& s, Index i) {
  const Window window = WindowOf(s, Spatial(s.type(1).dims));
  const int64_t inputs = std::max<int64_t>(1, s.dim(1, 1)), outputs = s.dim(1, 0) / s.integer("groups");
  std::array<ReaderForm, 3> forms = {};
  Ints extents = {outputs};
  for (int axis = 0; axis < window.rank(); ++axis) {
    forms[axis] = FormFor(window, axis, s.out().dims[2 + axis]);
    extents.push_back(Readers(window, axis, forms[axis]));
  }
  return s.Sum(extents, [&](Index k) {
    const Expr channel = Div(i[1], inputs) * outputs + k[0];
    Point g = {i[0], channel}, w = {channel, Mod(i[1], inputs)};
    Expr inside = s.pool.Bool(true), is_tap = s.pool.Bool(true);
    for (int axis = 0; axis < window.rank(); ++axis) {
      const Reader reader = OutputAt(window, axis, i[2 + axis], k[1 + axis], s.dim(0, 2 + axis), forms[axis]);
      inside = And(inside, reader.inside);
      is_tap = And(is_tap, reader.is_tap);
      g.push_back(reader.index);
      w.push_back(reader.tap);
    }
    const Expr a = Factor(s, 0, g, inside), b = Factor(s, 1, w, is_tap);
    return a * b;
  });
}

Expr WeightGradAt(At& s, Index i) {
  const Window window = WindowOf(s, Spatial(s.out().dims));
  const int64_t inputs = s.out().dims[1], outputs = PerGroup(s, s.out().dims[0]);
  Ints extents = {s.dim(1, 0)};
  for (int axis = 0; axis < window.rank(); ++axis) extents.push_back(s.dim(1, 2 + axis));
  return s.Sum(extents, [&](Index k) {
    Point x = {k[0], Div(i[0], outputs) * inputs + i[1]}, g = {k[0], i[0]};
    Expr inside = s.pool.Bool(true);
    for (int axis = 0; axis < window.rank(); ++axis) {
      const WindowPlace place = InputAt(window, axis, k[1 + axis], i[2 + axis], s.dim(0, 2 + axis));
      inside = And(inside, place.inside);
      x.push_back(place.index);
      g.push_back(k[1 + axis]);
    }
    const Expr a = Factor(s, 0, x, inside), b = Factor(s, 1, g, s.pool.Bool(true));
    return a * b;
  });
}

// ---------------------------------------------------------------- gradients

// "conv2d" with a suffix, for the rank of the op being differentiated.
Value Like(const Rule& s, absl::string_view suffix, Value a, Value b, absl::string_view shape_name = {},
           const Dims& shape = {}) {
  absl::InlinedVector<Attr, 5> attrs;
  if (!shape_name.empty()) attrs.push_back({shape_name, Ints(shape)});
  for (absl::string_view name : {"stride", "pad", "dilation"}) attrs.push_back({name, s.ints(name)});
  attrs.push_back({"groups", s.integer("groups")});
  return Emit(absl::StrCat("conv", a.rank() - 2, "d", suffix), {a, b}, attrs, s.op.loc);
}
Value InputGrad(const Rule& s, Value g, Value w, const Dims& input) {
  return Like(s, "_input_grad", g, w, "input", input);
}
Value WeightGrad(const Rule& s, Value x, Value g, const Dims& weight) {
  return Like(s, "_weight_grad", x, g, "weight", weight);
}

void ConvVjp(Vjp& s) {
  s.dx[0] = InputGrad(s, s.g, s.x[1], s.x[0].dims());
  s.dx[1] = WeightGrad(s, s.x[0], s.g, s.x[1].dims());
}
void InputGradVjp(Vjp& s) {
  s.dx[0] = Like(s, "", s.g, s.x[1]);
  s.dx[1] = WeightGrad(s, s.g, s.x[0], s.x[1].dims());
}
void WeightGradVjp(Vjp& s) {
  s.dx[0] = InputGrad(s, s.x[1], s.g, s.x[0].dims());
  s.dx[1] = Like(s, "", s.x[0], s.g);
}

constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};
constexpr AttrDef kGroups = {"groups", kInt, "1"};
constexpr AttrDef kStride[] = {{"stride", kInts, "[1]"}, {"stride", kInts, "[1, 1]"}, {"stride", kInts, "[1, 1, 1]"}};
constexpr AttrDef kPad[] = {
    {"pad", kInts, "[0, 0]"}, {"pad", kInts, "[0, 0, 0, 0]"}, {"pad", kInts, "[0, 0, 0, 0, 0, 0]"}};
constexpr AttrDef kDilation[] = {
    {"dilation", kInts, "[1]"}, {"dilation", kInts, "[1, 1]"}, {"dilation", kInts, "[1, 1, 1]"}};
constexpr AttrDef kInput = {"input", kInts}, kWeight = {"weight", kInts};

// The rows of one rank: the samples are strided, padded unevenly, dilated and grouped.
// clang-format off
constexpr OpDef kOps[] = {
    {.name = "conv1d", .cls = OpClass::kContract, .arity = 2, .attrs = {kStride[0], kPad[0], kDilation[0], kGroups},
     .infer = ConvType<1>, .at = ConvAt, .vjp = ConvVjp, .tol = kTolerance,
     .numpy = "conv(x0, x1, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,4,9]", "f32[6,2,3]"}, .attrs = "stride = [2], pad = [2, 1], dilation = [2], groups = 2"},
     .doc = "Cross-correlation of an input [n,c,l] with a weight [o,c/groups,k]; as conv2d."},
    {.name = "conv1d_input_grad", .cls = OpClass::kContract, .arity = 2, .attrs = {kInput, kStride[0], kPad[0], kDilation[0], kGroups},
     .infer = InputGradType<1>, .at = InputGradAt, .vjp = InputGradVjp, .tol = kTolerance,
     .numpy = "conv_input_grad(x0, x1, input=input, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,6,4]", "f32[6,2,3]"}, .attrs = "input = [2, 4, 9], stride = [2], pad = [2, 1], dilation = [2], groups = 2"},
     .doc = "Gradient of conv1d with respect to its input of shape `input`."},
    {.name = "conv1d_weight_grad", .cls = OpClass::kContract, .arity = 2, .attrs = {kWeight, kStride[0], kPad[0], kDilation[0], kGroups},
     .infer = WeightGradType<1>, .at = WeightGradAt, .vjp = WeightGradVjp, .tol = kTolerance,
     .numpy = "conv_weight_grad(x0, x1, weight=weight, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,4,9]", "f32[2,6,4]"}, .attrs = "weight = [6, 2, 3], stride = [2], pad = [2, 1], dilation = [2], groups = 2"},
     .doc = "Gradient of conv1d with respect to its weight of shape `weight`."},
    {.name = "conv2d", .cls = OpClass::kContract, .arity = 2, .attrs = {kStride[1], kPad[1], kDilation[1], kGroups},
     .infer = ConvType<2>, .at = ConvAt, .vjp = ConvVjp, .tol = kTolerance,
     .numpy = "conv(x0, x1, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,2,5,6]", "f32[3,2,3,2]"}, .attrs = "stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Cross-correlation of an input [n,c,h,w] with a weight [o,c/groups,kh,kw], without flipping it; pad is top, left, bottom, right, filled with 0. Taps are `dilation` apart. Group k of the output channels sees group k of the input's."},
    {.name = "conv2d_input_grad", .cls = OpClass::kContract, .arity = 2, .attrs = {kInput, kStride[1], kPad[1], kDilation[1], kGroups},
     .infer = InputGradType<2>, .at = InputGradAt, .vjp = InputGradVjp, .tol = kTolerance,
     .numpy = "conv_input_grad(x0, x1, input=input, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,3,3,6]", "f32[3,2,3,2]"}, .attrs = "input = [2, 2, 5, 6], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Gradient of conv2d with respect to its input of shape `input`, from the gradient of its result and the weight; a transposed convolution."},
    {.name = "conv2d_weight_grad", .cls = OpClass::kContract, .arity = 2, .attrs = {kWeight, kStride[1], kPad[1], kDilation[1], kGroups},
     .infer = WeightGradType<2>, .at = WeightGradAt, .vjp = WeightGradVjp, .tol = kTolerance,
     .numpy = "conv_weight_grad(x0, x1, weight=weight, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,2,5,6]", "f32[2,3,3,6]"}, .attrs = "weight = [3, 2, 3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Gradient of conv2d with respect to its weight of shape `weight`, from the input and the gradient of its result."},
    {.name = "conv3d", .cls = OpClass::kContract, .arity = 2, .attrs = {kStride[2], kPad[2], kDilation[2], kGroups},
     .infer = ConvType<3>, .at = ConvAt, .vjp = ConvVjp, .tol = kTolerance,
     .numpy = "conv(x0, x1, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[1,2,4,4,5]", "f32[2,1,2,3,2]"}, .attrs = "stride = [2, 1, 2], pad = [0, 1, 1, 1, 0, 0], dilation = [1, 1, 2], groups = 2"},
     .doc = "Cross-correlation of an input [n,c,d,h,w] with a weight [o,c/groups,kd,kh,kw]; as conv2d."},
    {.name = "conv3d_input_grad", .cls = OpClass::kContract, .arity = 2, .attrs = {kInput, kStride[2], kPad[2], kDilation[2], kGroups},
     .infer = InputGradType<3>, .at = InputGradAt, .vjp = InputGradVjp, .tol = kTolerance,
     .numpy = "conv_input_grad(x0, x1, input=input, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[1,2,2,3,2]", "f32[2,1,2,3,2]"}, .attrs = "input = [1, 2, 4, 4, 5], stride = [2, 1, 2], pad = [0, 1, 1, 1, 0, 0], dilation = [1, 1, 2], groups = 2"},
     .doc = "Gradient of conv3d with respect to its input of shape `input`."},
    {.name = "conv3d_weight_grad", .cls = OpClass::kContract, .arity = 2, .attrs = {kWeight, kStride[2], kPad[2], kDilation[2], kGroups},
     .infer = WeightGradType<3>, .at = WeightGradAt, .vjp = WeightGradVjp, .tol = kTolerance,
     .numpy = "conv_weight_grad(x0, x1, weight=weight, stride=stride, pad=pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[1,2,4,4,5]", "f32[1,2,2,3,2]"}, .attrs = "weight = [2, 1, 2, 3, 2], stride = [2, 1, 2], pad = [0, 1, 1, 1, 0, 0], dilation = [1, 1, 2], groups = 2"},
     .doc = "Gradient of conv3d with respect to its weight of shape `weight`."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kConvOps(kOps);

}  // namespace agc
