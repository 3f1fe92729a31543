// Arithmetic, comparisons, logic, bits, casts: one element at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_math.h"

namespace agc::onnx {
namespace {

template <Value (*f)(Value, Loc)>
void Unary(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  c.out(f(c.in(0), Loc{}));
}

// Before opset 7 the second operand was aligned by attributes: with axis, its axes are those of the first from there
// on.
Value OldBroadcast(Call& c, Value a, Value b) {
  c.ignore("consumed_inputs");
  const bool broadcast = c.flag("broadcast", false);
  if (!c.has_attr("axis") || !broadcast || !c.ok()) return b;
  const int64_t axis = c.integer("axis");
  const int64_t first = axis < 0 ? axis + a.rank() : axis;
  Ints shape(b.dims().begin(), b.dims().end());
  for (int64_t k = first + b.rank(); k < a.rank(); ++k) shape.push_back(1);
  return Reshape(b, shape, Loc{});
}

template <Value (*f)(Value, Value, Loc)>
void Binary(Call& c) {
  const Value a = c.in(0);
  Value b = c.in(1);
  if (c.opset() < 7) b = OldBroadcast(c, a, b);
  c.out(f(a, b, Loc{}));
}

template <Value (*f)(Value, Value, Loc)>
void Fold(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  const std::vector<Value> xs = c.rest(0);
  if (xs.empty()) return void(c.Fail("it has no operand"));
  Value y = xs[0];
  for (size_t k = 1; k < xs.size(); ++k) y = f(y, xs[k], Loc{});
  c.out(y);
}

void Mean(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  const std::vector<Value> xs = c.rest(0);
  if (xs.empty()) return void(c.Fail("it has no operand"));
  Value y = xs[0];
  for (size_t k = 1; k < xs.size(); ++k) y = Add(y, xs[k], Loc{});
  c.out(y / static_cast<double>(xs.size()));
}

// Integers divide towards zero.
void Div(Call& c) {
  const Value a = c.in(0);
  Value b = c.in(1);
  if (c.opset() < 7) b = OldBroadcast(c, a, b);
  if (!IsSigned(a.dtype())) return c.out(DivOf(a, b));
  c.out(DivOf(Sub(a, Rem(a, b)), b));
}

// By squaring, for exponents from 0 to 63.
Value IntegerPower(Value x, Value exponent) {
  exponent = CastTo(exponent, x.dtype());
  Value y = Add(FullLike(exponent, 0), FullLike(x, 1));
  for (int bit = 0; bit < 6; ++bit) {
    const Value set = BitAnd(ShiftRight(exponent, ScalarLike(exponent, bit, Loc{})), ScalarLike(exponent, 1, Loc{}));
    y = Where(NotEqual(set, ScalarLike(set, 0, Loc{})), Mul(y, x), y);
    x = Mul(x, x);
  }
  return y;
}

// The type of the base, whatever the exponent has.
void Pow(Call& c) {
  const Value x = c.in(0);
  Value y = c.in(1);
  if (c.opset() < 7) y = OldBroadcast(c, x, y);
  if (!c.ok()) return;
  if (!IsFloat(x.dtype()) && !IsFloat(y.dtype())) return c.out(IntegerPower(x, y));
  if (!IsFloat(x.dtype())) return c.out(CastTo(agc::Pow(CastTo(x, y.dtype()), y), x.dtype()));
  c.out(agc::Pow(x, y.dtype() == x.dtype() ? y : CastTo(y, x.dtype())));
}

void ModOp(Call& c) {
  const bool fmod = c.flag("fmod", false);
  const Value a = c.in(0), b = c.in(1);
  if (!fmod && c.ok() && IsFloat(a.dtype())) c.Fail("fmod is 0 and the operands are floats: set fmod = 1");
  c.out(fmod ? Rem(a, b) : Mod(a, b));
}

void BitShift(Call& c) {
  const int right = c.choice("direction", {"LEFT", "RIGHT"}, "");
  const Value a = c.in(0), b = c.in(1);
  c.out(right == 1 ? ShiftRight(a, b) : ShiftLeft(a, b));
}

void IsInfOp(Call& c) {
  const bool negative = c.flag("detect_negative", true), positive = c.flag("detect_positive", true);
  const Value x = c.in(0);
  const Value inf = IsInf(x), minus = SignBit(x);
  if (!negative && !positive) return c.out(LogicalAnd(inf, LogicalNot(inf)));
  c.out(negative && positive ? inf : LogicalAnd(inf, negative ? minus : LogicalNot(minus)));
}

// Bounds are attributes, or scalars from opset 11 on. A bound that is not there is none.
void Clip(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  Value x = c.in(0);
  if (c.opset() < 11) {
    const double lo = c.number("min", -std::numeric_limits<double>::infinity());
    const double hi = c.number("max", std::numeric_limits<double>::infinity());
    return c.out(std::isinf(lo) && std::isinf(hi) ? x
                 : std::isinf(hi)                 ? ClampMin(x, lo)
                 : std::isinf(lo)                 ? ClampMax(x, hi)
                                                  : Clamp(x, lo, hi));
  }
  const Value lo = c.opt(1), hi = c.opt(2);
  if (lo.valid()) x = Maximum(x, Reshape(lo, {}));
  if (hi.valid()) x = Minimum(x, Reshape(hi, {}));
  c.out(x);
}

DType OldTypeName(Call& c, const std::string& name) {
  for (int64_t t = 1; t <= kBfloat16; ++t) {
    std::string upper = DataTypeName(t);
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char x) { return static_cast<char>(std::toupper(x)); });
    const absl::StatusOr<DType> dtype = DTypeOf(t);
    if (upper == name && dtype.ok()) return *dtype;
  }
  c.Fail(absl::StrCat("attribute to is '", name, "', which is no element type that agc has"));
  return DType::kF32;
}

void Cast(Call& c) {
  const Value x = c.in(0);
  c.ignore("saturate");  // of 8-bit floats
  c.ignore("round_mode");
  const DType to = c.opset() < 6 ? OldTypeName(c, c.text("to")) : c.dtype("to");
  c.out(CastTo(x, to));
}

void CastLike(Call& c) {
  c.ignore("saturate");
  c.ignore("round_mode");
  const Value x = c.in(0), like = c.in(1);
  c.out(CastTo(x, like.dtype()));
}

void WhereOp(Call& c) {
  const Value cond = c.in(0), a = c.in(1), b = c.in(2);
  c.out(Where(cond, a, b));
}

void Identity(Call& c) { c.out_item(c.item(0)); }

// clang-format off
constexpr OpRow kRows[] = {
    {"Abs", 1, Unary<Abs>}, {"Acos", 7, Unary<Acos>}, {"Acosh", 9, Unary<Acosh>}, {"Add", 1, Binary<Add>},
    {"And", 1, Binary<LogicalAnd>}, {"Asin", 7, Unary<Asin>}, {"Asinh", 9, Unary<Asinh>}, {"Atan", 7, Unary<Atan>},
    {"Atanh", 9, Unary<Atanh>}, {"BitShift", 11, BitShift}, {"BitwiseAnd", 18, Binary<BitAnd>},
    {"BitwiseNot", 18, Unary<BitNot>}, {"BitwiseOr", 18, Binary<BitOr>}, {"BitwiseXor", 18, Binary<BitXor>},
    {"Cast", 1, Cast}, {"CastLike", 15, CastLike}, {"Ceil", 1, Unary<Ceil>}, {"Clip", 1, Clip},
    {"Cos", 7, Unary<Cos>}, {"Cosh", 9, Unary<Cosh>}, {"Div", 1, Div}, {"Equal", 1, Binary<Equal>},
    {"Erf", 9, Unary<Erf>}, {"Exp", 1, Unary<Exp>}, {"Floor", 1, Unary<Floor>}, {"Greater", 1, Binary<Greater>},
    {"GreaterOrEqual", 12, Binary<GreaterEqual>}, {"Identity", 1, Identity}, {"IsInf", 10, IsInfOp},
    {"IsNaN", 9, Unary<IsNan>}, {"Less", 1, Binary<Less>}, {"LessOrEqual", 12, Binary<LessEqual>},
    {"Log", 1, Unary<Log>}, {"Max", 1, Fold<Maximum>}, {"Mean", 1, Mean}, {"Min", 1, Fold<Minimum>},
    {"Mod", 10, ModOp}, {"Mul", 1, Binary<Mul>}, {"Neg", 1, Unary<Neg>}, {"Not", 1, Unary<LogicalNot>},
    {"Or", 1, Binary<LogicalOr>}, {"Pow", 1, Pow}, {"Reciprocal", 1, Unary<Reciprocal>}, {"Round", 11, Unary<Round>},
    {"Sign", 9, Unary<Sign>}, {"Sin", 7, Unary<Sin>}, {"Sinh", 9, Unary<Sinh>}, {"Sqrt", 1, Unary<Sqrt>},
    {"Sub", 1, Binary<Sub>}, {"Sum", 1, Fold<Add>}, {"Tan", 7, Unary<Tan>}, {"Tanh", 1, Unary<Tanh>},
    {"Where", 9, WhereOp}, {"Xor", 1, Binary<LogicalXor>},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kElementwiseOps(kRows);

}  // namespace agc::onnx
