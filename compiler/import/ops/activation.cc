// Activations, and what is computed along one axis: softmax and its relatives.
#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

template <Value (*f)(Value, Loc)>
void Unary(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.out(f(c.in(0), Loc{}));
}

void EluOp(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.out(Elu(c.in(0), c.number("alpha", 1)));
}
void CeluOp(Call& c) { c.out(Celu(c.in(0), c.number("alpha", 1))); }

// gamma (x if x > 0, else alpha (exp(x) - 1)); the defaults are those of self-normalising networks.
void SeluOp(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  const bool old = c.opset() < 6;
  const double alpha = c.number("alpha", old ? 1.6732 : 1.67326319217681884765625);
  const double gamma = c.number("gamma", old ? 1.0507 : 1.05070102214813232421875);
  c.out(Elu(c.in(0), alpha) * gamma);
}
void GeluOp(Call& c) {
  const int tanh = c.choice("approximate", {"none", "tanh"}, "none");
  const Value x = c.in(0);
  c.out(tanh == 1 ? GeluTanh(x) : Gelu(x));
}
void HardSigmoidOp(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.out(HardSigmoid(c.in(0), c.number("alpha", 0.2), c.number("beta", 0.5)));
}
void LeakyReluOp(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.out(LeakyRelu(c.in(0), c.number("alpha", 0.01)));
}
void SwishOp(Call& c) { c.out(Swish(c.in(0), c.number("alpha", 1))); }
void ThresholdedReluOp(Call& c) { c.out(ThresholdedRelu(c.in(0), c.number("alpha", 1))); }

// The slope broadcasts to x; before opset 7 a slope of one axis belonged to axis 1.
void PReluOp(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  const Value x = c.in(0);
  Value slope = c.in(1);
  if (c.opset() < 7 && slope.rank() == 1 && slope.dim(0) != 1 && x.rank() > 2) {
    Ints shape(static_cast<size_t>(x.rank()) - 1, 1);
    shape[0] = slope.dim(0);
    slope = Reshape(slope, shape);
  }
  const Value zero = ScalarLike(x, 0, Loc{});
  c.out(IsFloat(x.dtype()) ? Prelu(x, slope) : Where(Less(x, zero), Mul(x, slope), x));
}

void ShrinkOp(Call& c) {
  const double bias = c.number("bias", 0), lambd = c.number("lambd", 0.5);
  const Value x = c.in(0);
  if (!c.ok()) return;
  const DType dtype = x.dtype();
  const Value f = IsFloat(dtype) ? x : CastTo(x, DType::kF32);
  const Value zero = FullLike(f, 0);
  const Value y = Where(Less(f, FullLike(f, -lambd)), f + bias, Where(Greater(f, FullLike(f, lambd)), f - bias, zero));
  c.out(IsFloat(dtype) ? y : CastTo(y, dtype));
}

// Applied to one axis from opset 13 on; before, to all axes from `axis` (1) on as one.
template <Value (*f)(Value, int64_t, Loc)>
void AlongAxis(Call& c) {
  const bool one = c.opset() >= 13;
  const int64_t axis = c.integer("axis", one ? -1 : 1);
  const Value x = c.in(0);
  if (!c.ok()) return;
  if (one) return c.out(f(x, axis, Loc{}));
  const int64_t first = axis < 0 ? axis + x.rank() : axis;
  if (first < 0 || first > x.rank()) return void(c.Fail(absl::StrCat("axis is ", axis, " of rank ", x.rank())));
  Ints rows;
  int64_t n = 1;
  for (int64_t k = 0; k < x.rank(); ++k)
    (k < first ? void(rows.push_back(x.dim(static_cast<int>(k)))) : void(n *= x.dim(static_cast<int>(k))));
  rows.push_back(n);
  const Ints shape(x.dims().begin(), x.dims().end());
  c.out(Reshape(f(Reshape(x, rows), -1, Loc{}), shape));
}

// 1 at the first of the largest elements, else 0.
Value Hardmax(Value x, int64_t axis, Loc) {
  const int64_t k = axis < 0 ? axis + x.rank() : axis;
  const Value at = ArgMax(x, k);
  return OneHot(at, x.dim(static_cast<int>(k)), OneHotOptions{.dtype = x.dtype(), .axis = k});
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Celu", 12, CeluOp}, {"Elu", 1, EluOp}, {"Gelu", 20, GeluOp}, {"HardSigmoid", 1, HardSigmoidOp},
    {"HardSwish", 14, Unary<HardSwish>}, {"Hardmax", 1, AlongAxis<Hardmax>}, {"LeakyRelu", 1, LeakyReluOp},
    {"LogSoftmax", 1, AlongAxis<LogSoftmax>}, {"Mish", 18, Unary<Mish>}, {"PRelu", 1, PReluOp},
    {"Relu", 1, Unary<Relu>}, {"Selu", 1, SeluOp}, {"Shrink", 9, ShrinkOp}, {"Sigmoid", 1, Unary<Sigmoid>},
    {"Softmax", 1, AlongAxis<Softmax>}, {"Softplus", 1, Unary<Softplus>}, {"Softsign", 1, Unary<Softsign>},
    {"Swish", 24, SwishOp}, {"ThresholdedRelu", 10, ThresholdedReluOp},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kActivationOps(kRows);

}  // namespace agc::onnx
