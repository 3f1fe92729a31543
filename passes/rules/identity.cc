// Arithmetic that changes nothing. x + 0 is taken for x although it turns -0 into 0, by a table of its own; products
// with 0 stay, for the sake of NaN and infinity.
#include "ir/build.h"
#include "passes/rules/rules.h"

namespace agc {
namespace {

// The other operand where operand `k` is splat(value).
Value OtherIf(Rule& r, int k, double value) { return IsSplat(r, k, value) ? r.x[1 - k] : Value(); }
Value Neutral(Rule& r, double value) {
  const Value left = OtherIf(r, 1, value);
  return left.valid() ? left : OtherIf(r, 0, value);
}

Value AddZero(Rule& r) { return Neutral(r, 0); }
Value MulOne(Rule& r) { return Neutral(r, 1); }

// x - (+0) is x for every x; x - (-0) is x + 0, which turns -0 into 0.
Value SubZero(Rule& r) {
  const std::optional<Scalar> splat = Splat(r, 1);
  return splat.has_value() && splat->bits == 0 ? r.x[0] : Value();
}

Value DivOne(Rule& r) { return OtherIf(r, 1, 1); }

// x and true = x, x and false = false; the other way round for or, whose neutral element is false.
Value Logic(Rule& r) {
  const double neutral = r.op.def->name == "logical_and" ? 1 : 0;
  const Value other = Neutral(r, neutral);
  if (other.valid()) return other;
  return IsSplat(r, 0, 1 - neutral) || IsSplat(r, 1, 1 - neutral)
             ? SplatOf(r, Scalar::Int(DType::kBool, neutral == 0 ? 1 : 0))
             : Value();
}

// Integers have neither NaN nor infinity.
Value MulZeroInt(Rule& r) {
  if (!IsInt(r.op.type().dtype) || (!IsSplat(r, 0, 0) && !IsSplat(r, 1, 0))) return {};
  return SplatOf(r, Scalar::Int(r.op.type().dtype, 0));
}

Value Involution(Rule& r) {
  const Op* inner = Producer(r, 0, r.op.def->name);
  return inner != nullptr ? Operand(r, *inner, 0) : Value();
}

// Twice is the same as once.
Value Idempotent(Rule& r) { return Producer(r, 0, r.op.def->name) != nullptr ? r.x[0] : Value(); }

Value NoCast(Rule& r) { return SameType(r, 0) ? r.x[0] : Value(); }

Value SelectConstant(Rule& r) {
  if (r.x[1].id == r.x[2].id) return r.x[1];
  const std::optional<Scalar> cond = Splat(r, 0);
  if (!cond.has_value()) return {};
  return r.x[cond->i() != 0 ? 1 : 2];
}

Value TupleElement(Rule& r) {
  const Op* tuple = Producer(r, 0, "tuple");
  return tuple != nullptr ? Operand(r, *tuple, static_cast<int>(r.integer("index"))) : Value();
}

// Gradients are gone at the primitive stage, and with them the reason to stop one.
Value NothingToStop(Rule& r) { return r.builder.program->stage == Stage::kTensor ? Value() : r.x[0]; }

constexpr RewriteRule kRules[] = {
    {"abs", Idempotent},   {"cast", NoCast},      {"ceil", Idempotent},       {"div", DivOne},
    {"floor", Idempotent}, {"get", TupleElement}, {"logical_and", Logic},     {"logical_not", Involution},
    {"logical_or", Logic}, {"mul", MulOne},       {"mul", MulZeroInt},        {"neg", Involution},
    {"relu", Idempotent},  {"round", Idempotent}, {"select", SelectConstant}, {"stop_gradient", NothingToStop},
    {"sub", SubZero},
};
constexpr RewriteRule kAddRules[] = {{"add", AddZero}};

}  // namespace

constinit const RuleTable kIdentityRules(kRules);
constinit const RuleTable kZeroRules(kAddRules);

}  // namespace agc
