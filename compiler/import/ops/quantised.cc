// Quantised ops: y = (q - zero_point) * scale. Sums are exact in i32; scales multiply in floats once, at the end.
#include "compiler/import/ops/quantised.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/convolution.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_shape.h"

namespace agc::onnx {

Value Dequantise(Value q, Value zero, Value scale) {
  Value x = CastTo(q, DType::kI32);
  if (zero.valid()) x = Sub(x, CastTo(zero, DType::kI32));
  return Mul(CastTo(x, DType::kF32), CastTo(scale, DType::kF32));
}

Value Quantise(Value x, Value zero, Value scale, DType dtype) {
  Value y = Round(DivOf(x, CastTo(scale, x.dtype())));
  if (zero.valid()) y = Add(y, CastTo(zero, x.dtype()));
  return CastTo(y, dtype);  // a cast saturates
}

Value Centred(Value q, Value zero) {
  const Value x = CastTo(q, DType::kI32);
  return zero.valid() ? Sub(x, CastTo(zero, DType::kI32)) : x;
}

namespace {

// A scale or zero point beside x: one number; one per element of `axis`; or one per block of elements along it.
Value Beside(Call& c, Value p, Value x, int64_t axis, int64_t block) {
  if (!p.valid() || !c.ok()) return p;
  if (p.rank() == 0 || (p.rank() == 1 && p.dim(0) == 1)) return Reshape(p, {});
  const int64_t k = axis < 0 ? axis + x.rank() : axis;
  if (k < 0 || k >= x.rank()) return c.Fail(absl::StrCat("axis ", axis, " of ", ToString(x.type())));
  if (p.rank() == 1 && block == 0) {
    Ints shape(static_cast<size_t>(x.rank()), 1);
    shape[static_cast<size_t>(k)] = p.dim(0);
    return Reshape(p, shape);
  }
  if (p.rank() != x.rank() || block < 1) {
    return c.Fail(
        absl::StrCat("scale is ", ToString(p.type()), " for ", ToString(x.type()), " and block_size ", block));
  }
  const Value all = RepeatInterleave(p, block, k);
  Ints start(static_cast<size_t>(x.rank()), 0), limit(all.dims().begin(), all.dims().end()), one(start.size(), 1);
  limit[static_cast<size_t>(k)] = std::min(limit[static_cast<size_t>(k)], x.dim(static_cast<int>(k)));
  return Slice(all, start, limit, one);
}

DType TypeOfQuantised(Call& c, Value zero) {
  const bool said = c.has_attr("output_dtype") && c.integer("output_dtype") != 0;
  if (said) return c.dtype("output_dtype");
  return zero.valid() ? zero.dtype() : DType::kU8;
}

void QuantizeLinear(Call& c) {
  const Value x = c.in(0), scale = c.in(1), zero = c.opt(2);
  const int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  c.ignore("saturate");  // of 8-bit floats
  const DType dtype = TypeOfQuantised(c, zero);
  const DType precision = c.has_attr("precision") && c.integer("precision") != 0 ? c.dtype("precision")
                          : IsFloat(scale.dtype())                               ? scale.dtype()
                                                                                 : DType::kF32;
  if (!c.ok()) return;
  const Value wide = CastTo(x, precision == DType::kF16 || precision == DType::kBF16 ? DType::kF32 : precision);
  c.out(Quantise(wide, Beside(c, zero, x, axis, block), Beside(c, scale, x, axis, block), dtype));
}

void DequantizeLinear(Call& c) {
  const Value q = c.in(0), scale = c.in(1), zero = c.opt(2);
  const int64_t axis = c.integer("axis", 1), block = c.integer("block_size", 0);
  const DType dtype =
      c.has_attr("output_dtype") && c.integer("output_dtype") != 0 ? c.dtype("output_dtype") : scale.dtype();
  if (!c.ok()) return;
  c.out(CastTo(Dequantise(q, Beside(c, zero, q, axis, block), Beside(c, scale, q, axis, block)), dtype));
}

// To u8, over the range of the operand and 0.
void DynamicQuantizeLinear(Call& c) {
  const Value x = c.in(0);
  if (!c.ok()) return;
  const Value zero = ScalarLike(x, 0, Loc{});
  const Value low = Minimum(ReduceMin(x), zero), high = Maximum(ReduceMax(x), zero);
  const Value range = DivOf(Sub(high, low), ScalarLike(x, 255, Loc{}));
  const Value scale = Where(Equal(range, zero), ScalarLike(x, 1, Loc{}), range);
  const Value point = CastTo(Round(Clamp(DivOf(Neg(low), scale), 0, 255)), DType::kU8);
  c.out(Quantise(x, point, scale, DType::kU8), 0);
  c.out(range, 1);
  c.out(point, 2);
}

// A zero point per row of a left matrix stands in a column.
Value PerRow(Value zero) {
  return zero.valid() && zero.rank() == 1 && zero.dim(0) != 1 ? Reshape(zero, {zero.dim(0), 1}) : zero;
}

void MatMulInteger(Call& c) {
  const Value a = c.in(0), b = c.in(1), a_zero = c.opt(2), b_zero = c.opt(3);
  c.out(Matmul(Centred(a, PerRow(a_zero)), Centred(b, b_zero)));
}

// A zero point per output channel stands on axis 0 of the weight.
Value PerChannel(Value p, int rank) {
  if (!p.valid() || p.rank() != 1 || p.dim(0) == 1) return p.valid() ? Reshape(p, {}) : p;
  Ints shape(static_cast<size_t>(rank), 1);
  shape[0] = p.dim(0);
  return Reshape(p, shape);
}

void ConvInteger(Call& c) {
  const Value x = c.in(0), w = c.in(1), x_zero = c.opt(2), w_zero = c.opt(3);
  const ConvOptions o = ConvOptionsOf(c, x, w);
  if (!c.ok()) return;
  c.out(Conv(Centred(x, PerChannel(x_zero, 1)), Centred(w, PerChannel(w_zero, w.rank())), o));
}

void QLinearConv(Call& c) {
  const Value x = c.in(0), x_scale = c.in(1), x_zero = c.in(2), w = c.in(3), w_scale = c.in(4), w_zero = c.in(5);
  const Value y_scale = c.in(6), y_zero = c.in(7), bias = c.opt(8);
  const ConvOptions o = ConvOptionsOf(c, x, w);
  if (!c.ok()) return;
  Value sum = Conv(Centred(x, Reshape(x_zero, {})), Centred(w, PerChannel(w_zero, w.rank())), o);
  if (bias.valid()) sum = AddPerChannel(sum, bias);
  const Value scale = DivOf(Mul(Reshape(x_scale, {}), PerChannel(w_scale, w.rank() - 1)), Reshape(y_scale, {}));
  const Value y = Round(Mul(CastTo(sum, DType::kF32), scale));
  c.out(CastTo(Add(y, CastTo(Reshape(y_zero, {}), DType::kF32)), y_zero.dtype()));
}

void QLinearMatMul(Call& c) {
  const Value a = c.in(0), a_scale = c.in(1), a_zero = c.in(2), b = c.in(3), b_scale = c.in(4), b_zero = c.in(5);
  const Value y_scale = c.in(6), y_zero = c.in(7);
  if (!c.ok()) return;
  const Value sum = Matmul(Centred(a, PerRow(a_zero)), Centred(b, b_zero));
  const Value scale =
      DivOf(Mul(CastTo(PerRow(a_scale), DType::kF32), CastTo(b_scale, DType::kF32)), CastTo(y_scale, DType::kF32));
  const Value y = Round(Mul(CastTo(sum, DType::kF32), scale));
  c.out(CastTo(Add(y, CastTo(y_zero, DType::kF32)), y_zero.dtype()));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"ConvInteger", 10, ConvInteger}, {"DequantizeLinear", 10, DequantizeLinear, "4-bit and 8-bit float types"},
    {"DynamicQuantizeLinear", 11, DynamicQuantizeLinear}, {"MatMulInteger", 10, MatMulInteger}, {"QLinearConv", 10, QLinearConv},
    {"QLinearMatMul", 10, QLinearMatMul}, {"QuantizeLinear", 10, QuantizeLinear, "4-bit and 8-bit float types"},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kQuantisedOps(kRows);

}  // namespace agc::onnx
