// Bits of integers, classes of floats, and logic beyond compare.cc.
#include <limits>

#include "ir/base/status.h"
#include "ir/build_math.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;

constexpr double kInf = std::numeric_limits<double>::infinity();

Expr IsInfAt(At& s, Index i) {
  const Expr x = s.Read(0, i);
  const bool up = s.flag("positive"), down = s.flag("negative");
  if (up && down) return Alu("isinf", {x});
  if (!up && !down) return s.pool.Bool(false);
  return Alu("eq", {x, Number(s.pool, x.dtype(), up ? kInf : -kInf)});
}

Expr SignBitAt(At& s, Index i) {
  const Expr x = s.Read(0, i);
  return Alu("lt", {Alu("copysign", {Number(s.pool, x.dtype(), 1), x}), Number(s.pool, x.dtype(), 0)});
}

// Of the unsigned dtype of the same width: devices keep narrow signed numbers sign-extended.
Expr PopulationCountAt(At& s, Index i) {
  const Expr x = s.Read(0, i);
  const DType t = x.dtype();
  const DType bits = t == DType::kI8    ? DType::kU8
                     : t == DType::kI16 ? DType::kU16
                     : t == DType::kI32 ? DType::kU32
                     : t == DType::kI64 ? DType::kU64
                                        : t;
  return Cast(Alu("popcount", {Cast(x, bits)}), t);
}

Expr ExclusiveOrAt(At& s, Index i) {
  const Expr a = s.Read(0, i), b = s.Read(1, i);
  return Alu("ne", {a, b});
}

constexpr Sample kClasses = {.differentiable = false};
constexpr Sample kInts = {.shapes = {"i32[2,3]"}, .lo = -9, .hi = 9, .differentiable = false};
constexpr Sample kBools = {.shapes = {"bool[2,3]", "bool[2,3]"}, .lo = 0, .hi = 1, .differentiable = false};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "bit_not", .cls = kElementwise, .arity = 1, .infer = SameInt, .at = Map<"bit_not">,
     .numpy = "~x0", .sample = kInts, .doc = "Bitwise complement."},
    {.name = "isfinite", .cls = kElementwise, .arity = 1, .infer = FloatClassTypes, .at = Map<"isfinite">, .vjp = NoGradient,
     .numpy = "np.isfinite(x0)", .sample = kClasses, .doc = "Neither infinite nor NaN."},
    {.name = "isinf", .cls = kElementwise, .arity = 1,
     .attrs = {{"negative", AttrKind::kBool, "true"}, {"positive", AttrKind::kBool, "true"}}, .infer = FloatClassTypes, .at = IsInfAt,
     .vjp = NoGradient, .numpy = "np.isinf(x0)", .sample = kClasses, .doc = "Infinite, of the signs that are asked for."},
    {.name = "logical_xor", .cls = kElementwise, .arity = 2, .infer = SameBool, .at = ExclusiveOrAt,
     .numpy = "np.logical_xor(x0, x1)", .sample = kBools, .doc = "Exactly one holds."},
    {.name = "population_count", .cls = kElementwise, .arity = 1, .infer = SameInt, .at = PopulationCountAt,
     .numpy = "population_count(x0)", .sample = kInts, .doc = "How many bits are 1, in the operand's dtype."},
    {.name = "signbit", .cls = kElementwise, .arity = 1, .infer = FloatClassTypes, .at = SignBitAt, .vjp = NoGradient,
     .numpy = "np.signbit(x0)", .sample = kClasses, .doc = "Has a minus sign, as -0 and some NaN do."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kBitOps(kOps);

Value BitNot(Value x, Loc loc) { return Emit("bit_not", {x}, {}, loc); }
Value PopulationCount(Value x, Loc loc) { return Emit("population_count", {x}, {}, loc); }
Value LogicalXor(Value a, Value b, Loc loc) { return EmitBinary("logical_xor", a, b, loc); }
Value IsInf(Value x, Loc loc) { return Emit("isinf", {x}, {}, loc); }
Value IsFinite(Value x, Loc loc) { return Emit("isfinite", {x}, {}, loc); }
Value SignBit(Value x, Loc loc) { return Emit("signbit", {x}, {}, loc); }

}  // namespace agc
