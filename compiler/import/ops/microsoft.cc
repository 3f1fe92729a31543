// com.microsoft: what ONNX Runtime's own optimisations leave in files.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/convolution.h"
#include "compiler/import/ops/quantised.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/build_nn.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

void GeluOp(Call& c) { c.out(Gelu(c.in(0))); }
void BiasGelu(Call& c) {
  const Value x = c.in(0), bias = c.in(1);
  c.out(Gelu(Add(x, bias)));
}
void FastGelu(Call& c) {
  const Value x = c.in(0), bias = c.opt(1);
  c.out(GeluTanh(bias.valid() ? Add(x, bias) : x));
}
void QuickGelu(Call& c) {
  const double alpha = c.number("alpha", 1.702);
  c.out(Swish(c.in(0), alpha));
}

// alpha A' B', with the last two axes of either turned, or its batch axes moved behind the rows.
void FusedMatMul(Call& c) {
  Value a = c.in(0), b = c.in(1);
  if (c.flag("transBatchA", false) || c.flag("transBatchB", false))
    return void(c.Fail("transBatchA and transBatchB are not supported"));
  if (c.flag("transA", false)) a = T(a);
  if (c.flag("transB", false)) b = T(b);
  const double alpha = c.number("alpha", 1);
  const Value y = Matmul(a, b);
  c.out(alpha == 1 ? y : y * alpha);
}

Value Activated(Call& c, Value y) {
  const std::string name = c.text("activation", "");
  if (name.empty()) return y;
  const std::vector<double> p = c.numbers("activation_params");
  const auto at = [&](size_t k, double fallback) { return k < p.size() ? p[k] : fallback; };
  if (name == "Relu") return Relu(y);
  if (name == "Tanh") return Tanh(y);
  if (name == "Sigmoid") return Sigmoid(y);
  if (name == "LeakyRelu") return LeakyRelu(y, at(0, 0.01));
  if (name == "Clip") return Clamp(y, at(0, -INFINITY), at(1, INFINITY));
  if (name == "HardSigmoid") return HardSigmoid(y, at(0, 0.2), at(1, 0.5));
  return c.Fail(absl::StrCat("activation ", name, " is not supported"));
}

// Conv, then a sum with Z, then an activation.
void FusedConv(Call& c) {
  const Value x = c.in(0), w = c.in(1), bias = c.opt(2), z = c.opt(3);
  const ConvOptions o = ConvOptionsOf(c, x, w);
  if (!c.ok()) return;
  Value y = Conv(x, w, o);
  if (bias.valid()) y = AddPerChannel(y, bias);
  if (z.valid()) y = Add(y, z);
  c.out(Activated(c, y));
}

// (input + skip + bias) normalised over the last axis; also the statistics' place and the sum.
template <bool rms>
void SkipNorm(Call& c) {
  const Value x = c.in(0), skip = c.in(1), scale = c.in(2);
  const Value shift = rms ? Value() : c.opt(3), bias = c.opt(rms ? 3 : 4);
  const double epsilon = c.number("epsilon", 1e-12);
  if (!c.ok()) return;
  Value sum = Add(x, skip);
  if (bias.valid()) sum = Add(sum, bias);
  c.out(rms             ? RmsNorm(sum, scale, epsilon)
        : shift.valid() ? LayerNorm(sum, scale, shift, epsilon)
                        : LayerNorm(sum, scale, epsilon),
        0);
  c.out(sum, 3);
}

template <Value (*f)(Value, Value, Loc)>
void QLinearBinary(Call& c) {
  const Value a = c.in(0), a_scale = c.in(1), a_zero = c.opt(2), b = c.in(3), b_scale = c.in(4), b_zero = c.opt(5);
  const Value y_scale = c.in(6), y_zero = c.opt(7);
  if (!c.ok()) return;
  c.out(Quantise(f(Dequantise(a, a_zero, a_scale), Dequantise(b, b_zero, b_scale), Loc{}), y_zero, y_scale, a.dtype()));
}

// A function of one quantised operand: x, its scale and zero point, those of the result.
void QLinearUnary(Call& c, Value (*f)(Call&, Value)) {
  const Value x = c.in(0), x_scale = c.in(1), x_zero = c.opt(2), y_scale = c.in(3), y_zero = c.opt(4);
  if (!c.ok()) return;
  c.out(Quantise(f(c, Dequantise(x, x_zero, x_scale)), y_zero, y_scale, x.dtype()));
}
void QLinearSigmoid(Call& c) {
  QLinearUnary(c, [](Call&, Value x) { return Sigmoid(x); });
}
void QLinearLeakyRelu(Call& c) {
  QLinearUnary(c, [](Call& call, Value x) { return LeakyRelu(x, call.number("alpha", 0.01)); });
}
void QLinearGlobalAveragePool(Call& c) {
  if (c.integer("channels_last", 0) != 0) return void(c.Fail("channels_last = 1 is not supported"));
  QLinearUnary(c, [](Call&, Value x) { return GlobalAvgPool(x); });
}

// Scale and zero point of the result, then x, scale and zero point of each operand.
void QLinearConcat(Call& c) {
  const Value y_scale = c.in(0), y_zero = c.in(1);
  const int64_t axis = c.integer("axis");
  std::vector<Value> xs;
  for (int k = 2; k + 2 < c.inputs(); k += 3) {
    const Value x = c.in(k), scale = c.in(k + 1), zero = c.in(k + 2);
    xs.push_back(Dequantise(x, zero, scale));
  }
  if (!c.ok() || xs.empty()) return;
  c.out(Quantise(xs.size() == 1 ? xs[0] : Concat(xs, axis), y_zero, y_scale, y_zero.dtype()));
}

// (A - a_zero)(B - b_zero) a_scale b_scale + bias.
void MatMulIntegerToFloat(Call& c) {
  const Value a = c.in(0), b = c.in(1), a_scale = c.in(2), b_scale = c.in(3), a_zero = c.opt(4), b_zero = c.opt(5),
              bias = c.opt(6);
  if (!c.ok()) return;
  Value y = Mul(CastTo(Matmul(Centred(a, a_zero), Centred(b, b_zero)), DType::kF32), Mul(a_scale, b_scale));
  if (bias.valid()) y = Add(y, bias);
  c.out(y);
}

// clang-format off
constexpr OpRow kRows[] = {
    {"BiasGelu", 1, BiasGelu}, {"FastGelu", 1, FastGelu}, {"FusedConv", 1, FusedConv}, {"FusedMatMul", 1, FusedMatMul, "transBatchA, transBatchB"},
    {"Gelu", 1, GeluOp}, {"MatMulIntegerToFloat", 1, MatMulIntegerToFloat}, {"QLinearAdd", 1, QLinearBinary<Add>},
    {"QLinearConcat", 1, QLinearConcat}, {"QLinearGlobalAveragePool", 1, QLinearGlobalAveragePool, "channels_last"},
    {"QLinearLeakyRelu", 1, QLinearLeakyRelu}, {"QLinearMul", 1, QLinearBinary<Mul>}, {"QLinearSigmoid", 1, QLinearSigmoid},
    {"QuickGelu", 1, QuickGelu}, {"SkipLayerNormalization", 1, SkipNorm<false>},
    {"SkipSimplifiedLayerNormalization", 1, SkipNorm<true>},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kMicrosoftOps(kRows);

}  // namespace agc::onnx
