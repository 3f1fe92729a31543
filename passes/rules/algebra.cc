// Cheaper forms of the same value: exact in every dtype, bit for bit.
#include <cmath>

#include "ir/build.h"
#include "passes/rules/rules.h"

namespace agc {
namespace {

// a + (-b) = a - b, either side.
Value AddOfNeg(Rule& r) {
  if (const Op* right = Producer(r, 1, "neg")) return Sub(r.x[0], Operand(r, *right, 0));
  if (const Op* left = Producer(r, 0, "neg")) return Sub(r.x[1], Operand(r, *left, 0));
  return {};
}

// a - (-b) = a + b.
Value SubOfNeg(Rule& r) {
  const Op* right = Producer(r, 1, "neg");
  return right != nullptr ? Add(r.x[0], Operand(r, *right, 0)) : Value();
}

// a * -1 = -a.
Value MulMinusOne(Rule& r) {
  if (IsUnsigned(r.op.type().dtype)) return {};
  if (IsSplat(r, 1, -1)) return Neg(r.x[0]);
  return IsSplat(r, 0, -1) ? Neg(r.x[1]) : Value();
}

// (-x) * c = x * (-c) for a constant c.
Value MulOfNeg(Rule& r) {
  for (int k : {0, 1}) {
    const Op* inner = Producer(r, k, "neg");
    const std::optional<Scalar> splat = Splat(r, 1 - k);
    if (inner == nullptr || !splat.has_value() || !IsFloat(splat->dtype)) continue;
    const Value x = Operand(r, *inner, 0);
    return Mul(x, SplatOf(r, Scalar::Float(splat->dtype, -splat->f())));
  }
  return {};
}

// Division by a power of two is a product with its reciprocal, which is exact as long as that is a normal number.
Value DivByPowerOfTwo(Rule& r) {
  const std::optional<Scalar> splat = Splat(r, 1);
  if (!splat.has_value() || !IsFloat(r.op.type().dtype)) return {};
  int exponent = 0;
  const double d = splat->f();
  if (!std::isfinite(d) || d == 0 || std::abs(std::frexp(d, &exponent)) != 0.5 || std::abs(exponent) > 14) return {};
  return Mul(r.x[0], SplatOf(r, Scalar::Float(splat->dtype, 1 / d)));
}

// A reduction over axes of extent 1 reduces nothing.
Value ReduceOfOnes(Rule& r) {
  return r.x[0].type().elements() == r.op.type().elements() ? Reshape(r.x[0], Ints(r.op.type().dims)) : Value();
}

constexpr RewriteRule kRules[] = {
    {"add", AddOfNeg},
    {"div", DivByPowerOfTwo},
    {"mul", MulMinusOne},
    {"mul", MulOfNeg},
    {"reduce_max", ReduceOfOnes},
    {"reduce_mean", ReduceOfOnes},
    {"reduce_min", ReduceOfOnes},
    {"reduce_prod", ReduceOfOnes},
    {"reduce_sum", ReduceOfOnes},
    {"sub", SubOfNeg},
};

}  // namespace

constinit const RuleTable kAlgebraRules(kRules);

}  // namespace agc
