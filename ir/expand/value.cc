#include "ir/expand/value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/status.h"

namespace agc::expand {
namespace {

constexpr Format kFormat32 = {};
constexpr Format kFormat64 = {
    .f = DType::kF64, .i = DType::kI64, .u = DType::kU64, .width = 64, .fraction = 52, .bias = 1023};

// Formats by the size of any of their dtypes.
const Format& Sized(DType t) { return SizeOf(t) == 8 ? kFormat64 : kFormat32; }
Scalar ScalarOf(V v) { return {v.dtype(), static_cast<uint64_t>(v.e.node().payload)}; }
V Of(V like, Scalar s) { return {like.e.pool->Const(s)}; }

// A constant that compares the same with a subnormal number and with the zero it may be taken for.
bool IsNormalConstant(V v) { return v.e.IsConst() && std::abs(ScalarOf(v).f()) >= std::numeric_limits<float>::min(); }

// Integers in the order of the floats; both zeros are 0.
V OrderOf(V x) {
  const V bits = Signed(Bits(x));
  return Select(bits < 0.0, Constant(bits, std::numeric_limits<int32_t>::min()) - bits, bits);
}

// Comparison of f32 by their bits: devices take subnormal operands of comparisons for zeros even where the module
// declares DenormPreserve (NVIDIA's driver 580 does).
V Compare(absl::string_view op, V a, V b) {
  if (a.dtype() != DType::kF32 || IsNormalConstant(a) || IsNormalConstant(b)) return Op(op, {a, b});
  const V ordered = Op(op, {OrderOf(a), OrderOf(b)}), unordered = IsNan(a) | IsNan(b);
  return op == "ne" ? ordered | unordered : ordered & !unordered;
}

}  // namespace

const Format& FormatOf(DType f) {
  AGC_CHECK(f == DType::kF32 || f == DType::kF64);
  return Sized(f);
}

V Op(absl::string_view name, absl::Span<const V> x) {
  const ScalarOp& op = *FindScalarOp(name);
  absl::InlinedVector<Expr, 3> args;
  absl::InlinedVector<Scalar, 3> values;
  for (V v : x) {
    args.push_back(v.e);
    if (v.e.IsConst()) values.push_back(ScalarOf(v));
  }
  if (values.size() == args.size()) return Of(x[0], Apply(op, values));
  return {Alu(op, args)};
}

V Constant(V like, double value) { return Of(like, Scalar::Of(like.dtype(), value)); }
V Word(V like, uint64_t bits) { return Of(like, Scalar::Int(Sized(like.dtype()).u, static_cast<int64_t>(bits))); }
V Real(V like, double value32, double value64) { return Constant(like, like.format().wide() ? value64 : value32); }

V PolynomialIn(V x, absl::Span<const double> from_low) {
  V sum = Constant(x, from_low.back());
  for (size_t i = from_low.size() - 1; i-- > 0;) sum = sum * x + from_low[i];
  return sum;
}

V operator+(V a, V b) { return Op("add", {a, b}); }
V operator-(V a, V b) { return Op("sub", {a, b}); }
V operator*(V a, V b) { return Op("mul", {a, b}); }
V operator+(V a, double b) { return a + Constant(a, b); }
V operator-(V a, double b) { return a - Constant(a, b); }
V operator*(V a, double b) { return a * Constant(a, b); }
V operator+(double a, V b) { return Constant(b, a) + b; }
V operator-(double a, V b) { return Constant(b, a) - b; }
V operator*(double a, V b) { return Constant(b, a) * b; }
V operator-(V a) { return Op("neg", {a}); }
V operator&(V a, V b) { return a.dtype() == DType::kBool ? V{And(a.e, b.e)} : Op("bit_and", {a, b}); }
V operator|(V a, V b) { return a.dtype() == DType::kBool ? V{Or(a.e, b.e)} : Op("bit_or", {a, b}); }
V operator^(V a, V b) { return Op("bit_xor", {a, b}); }
V operator<<(V a, int n) { return Shl(a, Constant(a, n)); }
V operator>>(V a, int n) { return Shr(a, Constant(a, n)); }
V Shl(V a, V n) { return Op("shl", {a, n}); }
V Shr(V a, V n) { return Op("shr", {a, n}); }
V operator<(V a, V b) { return Compare("lt", a, b); }
V operator<=(V a, V b) { return Compare("le", a, b); }
V operator>(V a, V b) { return Compare("gt", a, b); }
V operator>=(V a, V b) { return Compare("ge", a, b); }
V operator==(V a, V b) { return Compare("eq", a, b); }
V operator!=(V a, V b) { return Compare("ne", a, b); }
V operator<(V a, double b) { return a < Constant(a, b); }
V operator<=(V a, double b) { return a <= Constant(a, b); }
V operator>(V a, double b) { return a > Constant(a, b); }
V operator>=(V a, double b) { return a >= Constant(a, b); }
V operator==(V a, double b) { return a == Constant(a, b); }
V operator!=(V a, double b) { return a != Constant(a, b); }
V operator!(V a) { return {Not(a.e)}; }
V Select(V cond, V then, V otherwise) { return {agc::Select(cond.e, then.e, otherwise.e)}; }
V Select(V cond, double then, V otherwise) { return Select(cond, Constant(otherwise, then), otherwise); }
V Select(V cond, V then, double otherwise) { return Select(cond, then, Constant(then, otherwise)); }
V IsNan(V x) { return Op("isnan", {x}); }

V ToFloat(V integer) { return {Cast(integer.e, Sized(integer.dtype()).f)}; }
V Bits(V x) { return {Bitcast(x.e, x.format().u)}; }
V FromBits(V integer) { return {Bitcast(integer.e, Sized(integer.dtype()).f)}; }
V Signed(V word) { return {Bitcast(word.e, Sized(word.dtype()).i)}; }
V Unsigned(V word) { return {Bitcast(word.e, Sized(word.dtype()).u)}; }
V Abs(V x) { return FromBits(Bits(x) & Word(x, x.format().sign() - 1)); }
V WithSign(V magnitude, V sign_of) {
  return FromBits(Bits(magnitude) | (Bits(sign_of) & Word(sign_of, sign_of.format().sign())));
}
V IsTiny(V x) { return Abs(x) < Real(x, 0x1p-25, 0x1p-54); }
V Quiet(V like) { return Constant(like, std::numeric_limits<double>::quiet_NaN()); }
V Infinity(V like) { return Constant(like, std::numeric_limits<double>::infinity()); }

Rounded ToNearest(V x) {
  const V magic = Constant(x, 1.5 * static_cast<double>(x.format().hidden()));
  const V sum = x + magic;
  return {sum - magic, Signed(Bits(sum) - Bits(magic))};
}

V PowerOfTwo(V exponent) {
  const Format& f = Sized(exponent.dtype());
  return FromBits((exponent + static_cast<double>(f.bias)) << f.fraction);
}

V Scale(V x, V exponent) {
  const V half = exponent >> 1;
  return x * PowerOfTwo(half) * PowerOfTwo(exponent - half);
}

Pair TwoSum(V a, V b) {
  const V sum = a + b, from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}

Pair FastTwoSum(V a, V b) {
  const V sum = a + b;
  return {sum, b - (sum - a)};
}

Pair TwoProduct(V a, V b) {
  const int low_bits = a.format().fraction / 2 + 1;  // the upper halves' product has no more bits than the fraction
  const V mask = Word(a, ~uint64_t{0} << low_bits);
  const V a1 = FromBits(Bits(a) & mask), a0 = a - a1, b1 = FromBits(Bits(b) & mask), b0 = b - b1;
  const V product = a * b;
  return {product, ((a1 * b1 - product) + a1 * b0 + a0 * b1) + a0 * b0};
}

}  // namespace agc::expand
