// What a graph is given and what it makes from nothing. `input`, `state`, `blob` and `constant` are appended by their
// own functions of ir/graph.h, which know the type; asking for one by name is an error.
#include <algorithm>
#include <array>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/tuple.h"

namespace agc {
namespace {

using enum OpClass;

absl::StatusOr<Types> Declared(const OpCall& call) {
  return call.Error("is declared with its type, it cannot be called");
}

absl::StatusOr<Types> GetTypes(const OpCall& call) {
  const int64_t index = call.integer("index"), n = static_cast<int64_t>(call.operands[0].size());
  if (n < 2) return call.Error(absl::StrCat("operand 0 is ", ToString(call.type(0)), ", expected a tuple"));
  if (index < 0 || index >= n) return call.Error(absl::StrCat("index is ", index, ", expected 0 to ", n - 1));
  return Types(call.operands[0][index]);
}

absl::StatusOr<Types> TupleTypes(const OpCall& call) {
  Types types;
  for (const Types& operand : call.operands) types.push_back(operand[0]);
  return types;
}

absl::StatusOr<Types> GradientTypes(const OpCall& call) {
  const TensorType& loss = call.type(0);
  if (!IsFloat(loss.dtype) || loss.rank() != 0) {
    return call.Error(absl::StrCat("the loss is ", ToString(loss), ", expected a float scalar; reduce it first"));
  }
  if (!IsFloat(call.type(1).dtype)) {
    return call.Error(
        absl::StrCat("the gradient with respect to ", ToString(call.type(1)), " is asked for, expected a float type"));
  }
  return Types(call.type(1));
}

absl::StatusOr<Types> IotaTypes(const OpCall& call) {
  const Ints& shape = call.ints("shape");
  const DType dtype = call.dtype("dtype");
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", dtype, shape));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), static_cast<int>(shape.size())));
  if (dtype == DType::kBool) return call.Error("dtype is bool, expected a number type");
  return Types(TensorType{dtype, shape});
}

Expr IotaAt(At& s, Index i) {
  const Expr position = i[PositiveAxis(s.integer("axis"), s.out().rank())];
  const DType dtype = s.out().dtype;
  const bool wide = dtype == DType::kI64 || dtype == DType::kU64 || dtype == DType::kU32;
  return Cast(FromIndex(position, wide ? dtype : DType::kI32), dtype);
}

absl::Status CheckKey(const OpCall& call) {
  if (call.type(0) == TensorType{DType::kU32, {2}}) return absl::OkStatus();
  return call.Error(absl::StrCat("the key is ", ToString(call.type(0)), ", expected u32[2]"));
}

// Counters are 32 bits wide and each gives four words.
absl::Status CheckRandom(const OpCall& call, DType dtype, int64_t words) {
  AGC_RETURN_IF_ERROR(CheckKey(call));
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", dtype, call.ints("shape")));
  const int64_t stream = call.integer("stream"), most = (int64_t{1} << 34) / words;
  if (stream < 0 || stream > UINT32_MAX)
    return call.Error(absl::StrCat("stream is ", stream, ", expected 0 to ", UINT32_MAX));
  const int64_t n = TensorType{dtype, call.ints("shape")}.elements();
  if (n > most) return call.Error(absl::StrCat("shape has ", n, " elements, one stream gives ", most));
  return absl::OkStatus();
}

absl::StatusOr<Types> RandomBitsTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRandom(call, DType::kU32, 1));
  return Types(TensorType{DType::kU32, call.ints("shape")});
}
absl::StatusOr<Types> RandomUniformTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRandom(call, DType::kF32, 1));
  return Types(TensorType{DType::kF32, call.ints("shape")});
}
absl::StatusOr<Types> RandomNormalTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRandom(call, DType::kF32, 2));
  return Types(TensorType{DType::kF32, call.ints("shape")});
}

// Alu on u32 that folds constants: the first rounds have constant counter words.
Expr U32(absl::string_view op, Expr a, Expr b) {
  if (!a.IsConst() || !b.IsConst()) return Alu(op, {a, b});
  const Scalar x[] = {{a.dtype(), static_cast<uint64_t>(a.node().payload)},
                      {b.dtype(), static_cast<uint64_t>(b.node().payload)}};
  return a.pool->Const(Apply(*FindScalarOp(op), x));
}

// Philox-4x32-10: Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
std::array<Expr, 4> Philox(std::array<Expr, 4> c, std::array<Expr, 2> key) {
  ExprPool& pool = *c[0].pool;
  const auto constant = [&](int64_t v) { return pool.Const(Scalar::Int(DType::kU32, v)); };
  const Expr m0 = constant(0xD2511F53), m1 = constant(0xCD9E8D57), w0 = constant(0x9E3779B9), w1 = constant(0xBB67AE85);
  for (int round = 0; round < 10; ++round) {
    const Expr hi0 = U32("mulhi", m0, c[0]), lo0 = U32("mul", m0, c[0]);
    const Expr hi1 = U32("mulhi", m1, c[2]), lo1 = U32("mul", m1, c[2]);
    const Expr first = U32("bit_xor", U32("bit_xor", hi1, c[1]), key[0]);
    const Expr third = U32("bit_xor", U32("bit_xor", hi0, c[3]), key[1]);
    c = {first, lo1, third, lo0};
    key = {U32("add", key[0], w0), U32("add", key[1], w1)};
  }
  return c;
}

// Element e takes word e % 4 of counter (e / 4, stream, 0, 0).
Expr RandomBitsAt(At& s, Index i) {
  Expr e = s.pool.Int(0);
  for (int axis = 0; axis < s.out().rank(); ++axis) e = e * s.out().dims[axis] + i[axis];
  const auto constant = [&](int64_t v) { return s.pool.Const(Scalar::Int(DType::kU32, v)); };
  const Expr block = FromIndex(Div(e, 4), DType::kU32), word = Mod(e, 4);
  const std::array<Expr, 2> key = {s.Read(0, {s.pool.Int(0)}), s.Read(0, {s.pool.Int(1)})};
  const std::array<Expr, 4> words = Philox({block, constant(s.integer("stream")), constant(0), constant(0)}, key);
  Expr out = words[3];
  for (int k = 2; k >= 0; --k) out = Select(EqZero(word - k), words[k], out);
  return out;
}

// The upper 24 bits of a word as a fraction: every value is exact in f32.
Value Fraction(Value bits) {
  const Value eight = FullLike(bits, 8);
  return CastTo(ShiftRight(bits, eight), DType::kF32) * 0x1p-24;
}

Value UniformOf(Rule& s) { return Fraction(RandomBits(s.x[0], s.integer("stream"), s.ints("shape"))); }

// Box and Muller (1958) on pairs of words; 1 - u keeps the logarithm finite.
Value NormalOf(Rule& s) {
  const Ints shape = s.ints("shape");
  Ints pairs = shape, from(shape.size() + 1, 0), to = shape;
  pairs.push_back(2);
  to.push_back(1);
  const Value u = Fraction(RandomBits(s.x[0], s.integer("stream"), pairs));
  const Value radius = Reshape(Slice(u, from, to, {}), shape);
  from.back() = 1;
  to.back() = 2;
  const Value angle = Reshape(Slice(u, from, to, {}), shape);
  return Sqrt(Log(1.0 - radius) * -2.0) * Cos(angle * (2 * std::numbers::pi));
}

using A = AttrKind;

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "blob", .cls = kData, .infer = Declared, .doc = "Bytes of a file, named by its symbol."},
    {.name = "constant", .cls = kData, .attrs = {{"value", A::kLiteral}}, .infer = Declared, .doc = "A literal: splat(v) or dense[...]."},
    {.name = "get", .cls = kData, .arity = 1, .attrs = {{"index", A::kInt}}, .infer = GetTypes, .doc = "One element of a tuple; owns no storage."},
    {.name = "gradient", .cls = kData, .arity = 2, .infer = GradientTypes,
     .doc = "Derivative of a scalar with respect to a value; pass autograd expands it."},
    {.name = "input", .cls = kData, .infer = Declared, .doc = "A parameter of the graph, named by its symbol."},
    {.name = "iota", .cls = kData, .attrs = {{"dtype", A::kDType}, {"shape", A::kInts}, {"axis", A::kInt, "0"}}, .infer = IotaTypes,
     .at = IotaAt, .numpy = "iota(dtype, shape, axis)", .sample = {.attrs = "dtype = i32, shape = [2, 3], axis = 1", .differentiable = false},
     .doc = "Position along an axis."},
    {.name = "random_bits", .cls = kData, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomBitsTypes,
     .at = RandomBitsAt, .numpy = "random_bits(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "Words of Philox-4x32-10 under a key, by element index; streams under one key are independent."},
    {.name = "random_normal", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomNormalTypes,
     .decompose = NormalOf, .vjp = NoGradient, .tol = {.f32 = 1e-5}, .numpy = "random_normal(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 of a normal distribution with mean 0 and deviation 1, by Box and Muller on random_bits."},
    {.name = "random_uniform", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomUniformTypes,
     .decompose = UniformOf, .vjp = NoGradient, .numpy = "random_uniform(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 in [0, 1), a multiple of 2^-24, from random_bits."},
    {.name = "state", .cls = kData, .infer = Declared, .doc = "A state of the module as it was when the step began."},
    {.name = "stop_gradient", .cls = kView, .arity = 1, .infer = SameTypes, .at = [](At& s, Index i) { return s.Read(0, i); },
     .vjp = NoGradient, .numpy = "x0", .sample = {.differentiable = false}, .doc = "The operand; passes no gradient."},
    {.name = "tuple", .cls = kData, .arity = {2, 64}, .infer = TupleTypes,
     .vjp = [](Vjp& s) { std::copy(s.gs.begin(), s.gs.end(), s.dx.begin()); },
     .doc = "Several values as one, for get to take apart; what composites with several results are defined by."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kDataOps(kOps);

Value Tuple(absl::Span<const Value> elements, Loc loc) { return Emit("tuple", elements, {}, loc); }
const OpDef& TupleOp() {
  static const OpDef& op = *FindOp("tuple");
  return op;
}

}  // namespace agc
