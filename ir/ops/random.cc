// Random numbers: words of Philox-4x32-10 under a key, and distributions made of them. Keys split into keys.
#include <array>
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_index.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum OpClass;
using A = AttrKind;

absl::Status CheckKey(const OpCall& call) {
  if (call.type(0) == TensorType{DType::kU32, {2}}) return absl::OkStatus();
  return call.Error(absl::StrCat("the key is ", ToString(call.type(0)), ", expected u32[2]"));
}

// Counters are 32 bits wide and each gives four words.
absl::Status CheckDraws(const OpCall& call, DType dtype, int64_t words, const Dims& shape) {
  AGC_RETURN_IF_ERROR(CheckKey(call));
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", dtype, shape));
  const int64_t stream = call.integer("stream"), most = (int64_t{1} << 34) / words;
  if (stream < 0 || stream > UINT32_MAX)
    return call.Error(absl::StrCat("stream is ", stream, ", expected 0 to ", UINT32_MAX));
  const int64_t n = TensorType{dtype, shape}.elements();
  if (n > most) return call.Error(absl::StrCat("shape has ", n, " elements, one stream gives ", most));
  return absl::OkStatus();
}
absl::Status CheckRandom(const OpCall& call, DType dtype, int64_t words) {
  return CheckDraws(call, dtype, words, call.ints("shape"));
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

// ---------------------------------------------------------------- words

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

Expr Word(At& s, int64_t v) { return s.pool.Const(Scalar::Int(DType::kU32, v)); }
std::array<Expr, 2> KeyOf(At& s) { return {s.Read(0, {s.pool.Int(0)}), s.Read(0, {s.pool.Int(1)})}; }
Expr LinearElement(At& s, Index i) {
  Expr e = s.pool.Int(0);
  for (int axis = 0; axis < s.out().rank(); ++axis) e = e * s.out().dims[axis] + i[axis];
  return e;
}

// Element e takes word e % 4 of counter (e / 4, stream, 0, 0).
Expr RandomBitsAt(At& s, Index i) {
  const Expr e = LinearElement(s, i), word = Mod(e, 4);
  const std::array<Expr, 4> words =
      Philox({FromIndex(Div(e, 4), DType::kU32), Word(s, s.integer("stream")), Word(s, 0), Word(s, 0)}, KeyOf(s));
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

// ---------------------------------------------------------------- whole numbers

absl::StatusOr<Types> RandomIntTypes(const OpCall& call) {
  const DType dtype = call.dtype("dtype");
  const int64_t lo = call.integer("lo"), hi = call.integer("hi");
  if (!IsInt(dtype)) return call.Error(absl::StrCat("dtype is ", Name(dtype), ", expected an integer type"));
  AGC_RETURN_IF_ERROR(CheckRandom(call, dtype, 2));
  const auto is_value = [&](int64_t v) { return dtype == DType::kU64 ? v >= 0 : WrapTo(dtype, v) == v; };
  const bool few = lo < hi && (lo >= 0 || hi <= INT64_MAX + lo) && hi - lo <= (int64_t{1} << 32);
  if (!few || !is_value(lo) || !is_value(hi - 1)) {
    return call.Error(absl::StrCat("lo is ", lo, " and hi is ", hi, ", expected lo below hi, values of ", Name(dtype),
                                   " and at most 2^32 of them"));
  }
  return Types(TensorType{dtype, call.ints("shape")});
}

// The upper part of a 64-bit word times the number of values (Lemire 2019, "Fast random integer generation in an
// interval", without the rejection): no value is more likely than another by more than 1 in 2^31.
Expr RandomIntAt(At& s, Index i) {
  const Expr e = LinearElement(s, i), odd = Not(EqZero(Mod(e, 2)));
  const std::array<Expr, 4> words =
      Philox({FromIndex(Div(e, 2), DType::kU32), Word(s, s.integer("stream")), Word(s, 0), Word(s, 0)}, KeyOf(s));
  const Expr high = Select(odd, words[2], words[0]), low = Select(odd, words[3], words[1]);
  const int64_t lo = s.integer("lo"), span = s.integer("hi") - lo;
  Expr v = high;  // 2^32 values: the word itself
  if (span < (int64_t{1} << 32)) {
    const Expr n = Word(s, span), part = Alu("mul", {high, n}), sum = part + Alu("mulhi", {low, n});
    v = Alu("mulhi", {high, n}) + Select(Alu("lt", {sum, part}), Word(s, 1), Word(s, 0));
  }
  const DType dtype = s.out().dtype, wide = SizeOf(dtype) == 8 ? dtype : DType::kI32;
  return Cast(Cast(v, wide) + s.pool.Const(Scalar::Int(wide, lo)), dtype);
}

// ---------------------------------------------------------------- keys

absl::StatusOr<Types> FoldInTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckKey(call));
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  TensorType type{DType::kU32, call.type(1).dims};
  type.dims.push_back(2);
  return Types(type);
}

// Draws have counters (n, stream, 0, 0), so keys have others: (data, upper data, 0, 1) and (n, 0, 0, 2).
Expr KeyWord(At& s, Index i, Expr first, Expr second, int64_t use) {
  const std::array<Expr, 4> words = Philox({first, second, Word(s, 0), Word(s, use)}, KeyOf(s));
  return Select(EqZero(i.back()), words[0], words[1]);
}

Expr FoldInAt(At& s, Index i) {
  const Expr v = s.Read(1, i.first(i.size() - 1));
  const bool wide = SizeOf(v.dtype()) == 8;
  const Expr upper = wide ? Cast(Alu("shr", {v, Number(s.pool, v.dtype(), 32)}), DType::kU32) : Word(s, 0);
  return KeyWord(s, i, Cast(v, DType::kU32), upper, 1);
}

absl::StatusOr<Types> SplitTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckKey(call));
  const int64_t n = call.integer("n");
  if (n < 0 || n > UINT32_MAX) return call.Error(absl::StrCat("n is ", n, ", expected 0 to ", UINT32_MAX));
  return Types(TensorType{DType::kU32, {n, 2}});
}
Expr SplitAt(At& s, Index i) { return KeyWord(s, i, FromIndex(i[0], DType::kU32), Word(s, 0), 2); }

// ---------------------------------------------------------------- distributions

// In (0, 1): 23 bits and a half, exact in f32, so that logarithms of it and of 1 minus it are finite.
Value OpenFraction(Value bits) { return (CastTo(ShiftRight(bits, FullLike(bits, 9)), DType::kF32) + 0.5) * 0x1p-23; }
Value Bits(Rule& s, const Dims& shape) { return RandomBits(s.x[0], s.integer("stream"), shape); }

Value GumbelOf(Rule& s) { return -Log(-Log(OpenFraction(Bits(s, s.op.type().dims)))); }
Value ExponentialOf(Rule& s) { return -Log(1.0 - UniformOf(s)); }

Value Polynomial(Value x, absl::Span<const double> coefficients) {
  Value sum = FullLike(x, coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = sum * x + c;
  return sum;
}

// The inverse error function in single precision: Giles (2010), "Approximating the erfinv function", table 5.
Value InverseErf(Value x) {
  static constexpr double kCentre[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                       -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  static constexpr double kTail[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                     -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
  const Value w = -Log((1.0 - x) * (x + 1.0)), centre = Less(w, FullLike(w, 5));
  return Where(centre, Polynomial(w - 2.5, kCentre), Polynomial(Sqrt(w) - 3.0, kTail)) * x;
}

absl::StatusOr<Types> TruncatedTypes(const OpCall& call) {
  const double lo = call.number("lo"), hi = call.number("hi");
  if (!(lo < hi) || !(lo <= 4) || !(hi >= -4)) {
    return call.Error(
        absl::StrCat("lo is ", lo, " and hi is ", hi, ", expected lo below hi, and some of it within 4 of 0"));
  }
  return RandomUniformTypes(call);
}

// By the inverse of the distribution function on the part that lies between lo and hi.
Value TruncatedOf(Rule& s) {
  const double lo = s.number("lo"), hi = s.number("hi"), a = std::erf(lo / std::numbers::sqrt2),
               b = std::erf(hi / std::numbers::sqrt2);
  const Value u = OpenFraction(Bits(s, s.ints("shape"))) * (b - a) + a;
  const Value z = InverseErf(Clamp(u, -1 + 0x1p-23, 1 - 0x1p-23)) * std::numbers::sqrt2;
  return Clamp(z, lo, hi);
}

absl::StatusOr<Types> BernoulliTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kF32));
  AGC_RETURN_IF_ERROR(CheckDraws(call, DType::kF32, 1, call.type(1).dims));
  return Types(TensorType{DType::kBool, call.type(1).dims});
}
Value BernoulliOf(Rule& s) { return Less(Fraction(Bits(s, s.op.type().dims)), s.x[1]); }

absl::StatusOr<Types> CategoricalTypes(const OpCall& call) {
  const TensorType& logits = call.type(1);
  AGC_RETURN_IF_ERROR(CheckFloat(call, 1));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), logits.rank()));
  AGC_RETURN_IF_ERROR(CheckDraws(call, DType::kF32, 1, logits.dims));
  const Ints axes = {PositiveAxis(call.integer("axis"), logits.rank())};
  if (logits.dims[axes[0]] == 0)
    return call.Error(absl::StrCat("logits are ", ToString(logits), ", which has no class"));
  return Types(TensorType{DType::kI32, ReducedDims(logits.dims, axes, false)});
}

// The largest of logits with Gumbel noise: Maddison, Tarlow and Minka (2014), "A* sampling", section 2.
Value CategoricalOf(Rule& s) {
  const Value logits = CastTo(s.x[1], DType::kF32);
  return ArgMax(logits + RandomGumbel(s.x[0], s.integer("stream"), logits.dims()), s.integer("axis"));
}

absl::StatusOr<Types> PermutationTypes(const OpCall& call) {
  const int64_t n = call.integer("n");
  if (n < 0 || n > INT32_MAX) return call.Error(absl::StrCat("n is ", n, ", expected 0 to ", INT32_MAX));
  AGC_RETURN_IF_ERROR(CheckDraws(call, DType::kU32, 1, {n}));
  return Types(TensorType{DType::kI32, {n}});
}
// Sorts random words; equal words, of which n elements have about n^2 / 2^33 pairs, keep their order.
Value PermutationOf(Rule& s) { return ArgSort(Bits(s, s.op.type().dims), 0); }

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "random_bernoulli", .cls = kComposite, .arity = 2, .attrs = {{"stream", A::kInt}}, .infer = BernoulliTypes,
     .decompose = BernoulliOf, .vjp = NoGradient, .numpy = "random_bernoulli(x0, x1, stream)",
     .sample = {.shapes = {"u32[2]", "f32[3,5]"}, .attrs = "stream = 3", .lo = 0, .hi = 1, .differentiable = false},
     .doc = "bool of the second operand's shape, true with the probability that it holds."},
    {.name = "random_bits", .cls = kData, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomBitsTypes,
     .at = RandomBitsAt, .numpy = "random_bits(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "Words of Philox-4x32-10 under a key, by element index; streams under one key are independent."},
    {.name = "random_categorical", .cls = kComposite, .arity = 2, .attrs = {{"stream", A::kInt}, {"axis", A::kInt, "-1"}}, .infer = CategoricalTypes,
     .decompose = CategoricalOf, .vjp = NoGradient, .numpy = "random_categorical(x0, x1, stream, axis)",
     .sample = {.shapes = {"u32[2]", "f32[3,4]"}, .attrs = "stream = 3", .lo = 0, .hi = 4, .differentiable = false},
     .doc = "i32 classes drawn with probability softmax(logits) along an axis, which goes."},
    {.name = "random_exponential", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomUniformTypes,
     .decompose = ExponentialOf, .vjp = NoGradient, .tol = {.f32 = 1e-5}, .numpy = "-np.log(1 - random_uniform(x0, stream, shape))",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 of an exponential distribution with mean 1."},
    {.name = "random_fold_in", .cls = kData, .arity = 2, .attrs = {}, .infer = FoldInTypes,
     .at = FoldInAt, .vjp = NoGradient, .numpy = "random_fold_in(x0, x1)",
     .sample = {.shapes = {"u32[2]", "i32[3]"}, .attrs = "", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "A key for every number of the second operand, in a new last axis of 2."},
    {.name = "random_gumbel", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomUniformTypes,
     .decompose = GumbelOf, .vjp = NoGradient, .tol = {.f32 = 1e-5}, .numpy = "random_gumbel(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 of a Gumbel distribution: -log(-log(u))."},
    {.name = "random_int", .cls = kData, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}, {"lo", A::kInt}, {"hi", A::kInt}, {"dtype", A::kDType, "i32"}}, .infer = RandomIntTypes,
     .at = RandomIntAt, .vjp = NoGradient, .numpy = "random_int(x0, stream, shape, lo, hi)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5], lo = -7, hi = 1000", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "Whole numbers from lo to hi - 1, each as likely as any other."},
    {.name = "random_normal", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomNormalTypes,
     .decompose = NormalOf, .vjp = NoGradient, .tol = {.f32 = 1e-5}, .numpy = "random_normal(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 of a normal distribution with mean 0 and deviation 1, by Box and Muller on random_bits."},
    {.name = "random_permutation", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"n", A::kInt}}, .infer = PermutationTypes,
     .decompose = PermutationOf, .vjp = NoGradient, .numpy = "random_permutation(x0, stream, n)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, n = 20", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "The i32 numbers 0 to n - 1 in random order."},
    {.name = "random_split", .cls = kData, .arity = 1, .attrs = {{"n", A::kInt}}, .infer = SplitTypes,
     .at = SplitAt, .vjp = NoGradient, .numpy = "random_split(x0, n)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "n = 5", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "n keys u32[n,2] made from one."},
    {.name = "random_truncated_normal", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}, {"lo", A::kFloat, "-2"}, {"hi", A::kFloat, "2"}}, .infer = TruncatedTypes,
     .decompose = TruncatedOf, .vjp = NoGradient, .tol = {.f32 = 2e-5}, .numpy = "random_truncated_normal(x0, stream, shape, lo, hi)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5], lo = -1", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 of a normal distribution with mean 0 and deviation 1 cut to [lo, hi]."},
    {.name = "random_uniform", .cls = kComposite, .arity = 1, .attrs = {{"stream", A::kInt}, {"shape", A::kInts}}, .infer = RandomUniformTypes,
     .decompose = UniformOf, .vjp = NoGradient, .numpy = "random_uniform(x0, stream, shape)",
     .sample = {.shapes = {"u32[2]"}, .attrs = "stream = 3, shape = [3, 5]", .lo = 0, .hi = 1e9, .differentiable = false},
     .doc = "f32 in [0, 1), a multiple of 2^-24, from random_bits."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kRandomOps(kOps);

}  // namespace agc
