// Transposed convolutions: each input element adds its multiple of the weight to the result, `stride` apart. That is
// the gradient of a convolution from the result's shape, and so they are built.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

using enum AttrKind;

// The result of an input of extents `in`: (in - 1) * stride + reach - padding + output_pad.
Ints TransposedExtents(const Window& window, const Ints& in, const Ints& output_pad) {
  Ints out;
  for (int axis = 0; axis < window.rank(); ++axis) {
    out.push_back((in[axis] - 1) * window.stride[axis] + window.reach(axis) - window.before[axis] - window.after[axis] +
                  output_pad[axis]);
  }
  return out;
}

absl::Status CheckOutputPad(const OpCall& call, const Window& window) {
  AGC_RETURN_IF_ERROR(CheckInts(call, "output_pad", window.rank(), 0));
  for (int axis = 0; axis < window.rank(); ++axis) {
    const int64_t pad = call.ints("output_pad")[axis], most = std::max(window.stride[axis], window.dilation[axis]);
    if (pad >= most) {
      return call.Error(absl::StrCat("output_pad[", axis, "] is ", pad, ", expected less than ", most,
                                     ", the larger of stride and dilation"));
    }
  }
  return absl::OkStatus();
}

template <int rank>
absl::StatusOr<Types> ConvTransposeType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, rank + 2));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, rank + 2));
  const Dims &x = call.type(0).dims, &w = call.type(1).dims;
  AGC_ASSIGN_OR_RETURN(const Window window, CheckedWindow(call, Spatial(w)));
  const int64_t groups = call.integer("groups");
  if (groups < 1) return call.Error(absl::StrCat("groups is ", groups, ", expected 1 or more"));
  if (x[1] != w[0]) {
    return call.Error(absl::StrCat("the input has ", x[1], " channels and the weight takes ", w[0]));
  }
  if (w[0] % groups != 0) {
    return call.Error(absl::StrCat("groups = ", groups, " does not divide the input's ", w[0], " channels"));
  }
  AGC_RETURN_IF_ERROR(CheckMost(call, "an extent of the input", Spatial(x)));
  for (int axis = 2; axis < rank + 2; ++axis) {
    if (x[axis] == 0) return call.Error(absl::StrCat("the input ", ToString(x), " has no element along axis ", axis));
  }
  AGC_RETURN_IF_ERROR(CheckOutputPad(call, window));
  const Ints out = TransposedExtents(window, Spatial(x), call.ints("output_pad"));
  if (std::any_of(out.begin(), out.end(), [](int64_t n) { return n < 1; })) {
    return call.Error(absl::StrCat("the result would be ", ExtentsText(out), ", expected 1 or more along every axis"));
  }
  TensorType type{call.type(0).dtype, {x[0], w[1] * groups}};
  type.dims.insert(type.dims.end(), out.begin(), out.end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

// A convolution from the result would give the input. output_pad cuts less off the end; what it adds beyond the last
// tap is below the stride and gives no further element of the input, or lies out of reach and is 0.
Value ConvTransposeDecompose(Rule& s) {
  const Window window = WindowOf(s, Spatial(s.x[1].dims()));
  Ints shape = s.op.type().dims, pad = s.ints("pad"), beyond(shape.size(), 0);
  for (int axis = 0; axis < window.rank(); ++axis) {
    const int64_t added = s.ints("output_pad")[axis] - window.after[axis];
    pad[window.rank() + axis] = std::max<int64_t>(0, -added);
    beyond[2 + axis] = std::max<int64_t>(0, added - (window.stride[axis] - 1));
    shape[2 + axis] -= beyond[2 + axis];
    // The padding before took every element that a tap reaches.
    if (shape[2 + axis] < 1) return Full(s.builder, s.op.type(), 0);
  }
  const Attr attrs[] = {{"input", shape},
                        {"stride", s.ints("stride")},
                        {"pad", pad},
                        {"dilation", s.ints("dilation")},
                        {"groups", s.integer("groups")}};
  const std::string name = absl::StrCat("conv", window.rank(), "d_input_grad");
  const Value y = Emit(name, {s.x[0], s.x[1]}, attrs, s.op.loc);
  const bool whole = std::all_of(beyond.begin(), beyond.end(), [](int64_t n) { return n == 0; });
  return whole ? y : Pad(y, 0, Ints(beyond.size(), 0), beyond);
}

constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "conv_transpose1d", .cls = OpClass::kComposite, .arity = 2,
     .attrs = {{"stride", kInts, "[1]"}, {"pad", kInts, "[0, 0]"}, {"output_pad", kInts, "[0]"}, {"dilation", kInts, "[1]"}, {"groups", kInt, "1"}},
     .infer = ConvTransposeType<1>, .decompose = ConvTransposeDecompose, .tol = kTolerance,
     .numpy = "conv_transpose(x0, x1, stride=stride, pad=pad, output_pad=output_pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,4,5]", "f32[4,3,4]"}, .attrs = "stride = [2], pad = [1, 1], groups = 2"},
     .doc = "Transposed convolution of an input [n,c,l] with a weight [c,o/groups,k]; as conv_transpose2d."},
    {.name = "conv_transpose2d", .cls = OpClass::kComposite, .arity = 2,
     .attrs = {{"stride", kInts, "[1, 1]"}, {"pad", kInts, "[0, 0, 0, 0]"}, {"output_pad", kInts, "[0, 0]"}, {"dilation", kInts, "[1, 1]"}, {"groups", kInt, "1"}},
     .infer = ConvTransposeType<2>, .decompose = ConvTransposeDecompose, .tol = kTolerance,
     .numpy = "conv_transpose(x0, x1, stride=stride, pad=pad, output_pad=output_pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[2,2,3,4]", "f32[2,3,3,2]"}, .attrs = "stride = [2, 1], pad = [1, 1, 1, 0], output_pad = [1, 1], dilation = [1, 2]"},
     .doc = "Transposed convolution of an input [n,c,h,w] with a weight [c,o/groups,kh,kw]: element p adds its multiple of the weight from p * stride - pad on. `pad` is cut off the result, output_pad added after its end."},
    {.name = "conv_transpose3d", .cls = OpClass::kComposite, .arity = 2,
     .attrs = {{"stride", kInts, "[1, 1, 1]"}, {"pad", kInts, "[0, 0, 0, 0, 0, 0]"}, {"output_pad", kInts, "[0, 0, 0]"}, {"dilation", kInts, "[1, 1, 1]"}, {"groups", kInt, "1"}},
     .infer = ConvTransposeType<3>, .decompose = ConvTransposeDecompose, .tol = kTolerance,
     .numpy = "conv_transpose(x0, x1, stride=stride, pad=pad, output_pad=output_pad, dilation=dilation, groups=groups)",
     .sample = {.shapes = {"f32[1,2,2,2,3]", "f32[2,1,2,3,2]"}, .attrs = "stride = [2, 1, 2], pad = [0, 1, 0, 0, 1, 1], output_pad = [1, 0, 0]"},
     .doc = "Transposed convolution of an input [n,c,d,h,w] with a weight [c,o/groups,kd,kh,kw]; as conv_transpose2d."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kConvTransposeOps(kOps);

}  // namespace agc
