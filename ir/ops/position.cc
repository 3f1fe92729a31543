// What attention knows of positions: rotations of queries and keys, encodings that are added, biases of scores.
#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- rotary_embedding

absl::StatusOr<Types> RotaryType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType &x = call.type(0), &cosine = call.type(1);
  Dims pairs = x.dims, common;
  pairs.back() = cosine.dims.empty() ? 0 : cosine.dims.back();
  if (cosine.dims.empty() || 2 * pairs.back() > x.dims.back() || !CommonDims(cosine.dims, pairs, common) ||
      common != pairs) {
    return call.Error(absl::StrCat("cosines are ", ToString(cosine),
                                   ", expected one for each pair of the last axis of ", ToString(x)));
  }
  AGC_RETURN_IF_ERROR(CheckParamDType(call, 1, "cosine"));
  AGC_RETURN_IF_ERROR(CheckParam(call, 2, "sine", cosine.dims));
  return Types(x);
}

// Elements [from, to) of the last axis, every `stride`th.
Value Last(Value x, int64_t from, int64_t to, int64_t stride = 1) {
  Ints start(x.rank(), 0), limit = x.dims(), step(x.rank(), 1);
  start.back() = from;
  limit.back() = to;
  step.back() = stride;
  return Slice(x, start, limit, step);
}

// The two halves of the pairs that the first 2 * `pairs` elements make.
struct Halves {
  Value first = {}, second = {};
};
Halves Split(Value x, int64_t pairs, bool interleaved) {
  if (!interleaved) return {Last(x, 0, pairs), Last(x, pairs, 2 * pairs)};
  return {Last(x, 0, 2 * pairs, 2), Last(x, 1, 2 * pairs, 2)};
}
Value Join(Halves h, bool interleaved) {
  if (!interleaved) return Concat({h.first, h.second}, -1);
  Ints dims = h.first.dims();
  dims.back() *= 2;
  return Reshape(Concat({ExpandDims(h.first, {-1}), ExpandDims(h.second, {-1})}, -1), dims);
}

// Su and others (2021), "RoFormer", equation 34 for interleaved pairs. The rest of the last axis stays.
Value RotaryDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  const Value x = Wide(s.x[0]), c = Wide(s.x[1]), n = Wide(s.x[2]);
  const int64_t pairs = c.dim(-1), size = x.dim(-1);
  const bool interleaved = s.flag("interleaved");
  if (pairs == 0) return s.x[0];
  const Halves h = Split(x, pairs, interleaved);
  const Value turned = Join({h.first * c - h.second * n, h.second * c + h.first * n}, interleaved);
  if (2 * pairs == size) return CastTo(turned, s.x[0].dtype());
  return CastTo(Concat({turned, Last(x, 2 * pairs, size)}, -1), s.x[0].dtype());
}

// The rotation back, and products of pairs.
void RotaryVjp(Vjp& s) {
  const bool interleaved = s.flag("interleaved");
  const int64_t pairs = s.x[1].dim(-1);
  const Dims dims = s.x[1].dims();
  s.dx[0] = RotaryEmbedding(s.g, s.x[1], -s.x[2], interleaved);
  if (s.x[0].type().elements() == 0 || pairs == 0) {
    s.dx[1] = FullLike(s.x[1], 0);
    s.dx[2] = FullLike(s.x[2], 0);
    return;
  }
  const Halves x = Split(Wide(s.x[0]), pairs, interleaved), g = Split(Wide(s.g), pairs, interleaved);
  s.dx[1] = CastTo(SumTo(g.first * x.first + g.second * x.second, dims), s.x[1].dtype());
  s.dx[2] = CastTo(SumTo(g.second * x.first - g.first * x.second, dims), s.x[2].dtype());
}

// ---------------------------------------------------------------- sinusoidal_positions

absl::StatusOr<Types> SinusoidalType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  const int64_t dim = call.integer("dim");
  if (dim < 2 || dim % 2 != 0) return call.Error(absl::StrCat("dim is ", dim, ", expected an even number from 2"));
  const double base = call.number("base");
  if (!(base > 0)) return call.Error(absl::StrCat("base is ", base, ", expected more than 0"));
  TensorType type{DType::kF32, call.type(0).dims};
  type.dims.push_back(dim);
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

// Vaswani and others (2017), "Attention is all you need", section 3.5.
Value SinusoidalDecompose(Rule& s) {
  const Value angle = RotaryAngles(s.x[0], s.integer("dim"), s.number("base"));
  return CastTo(Join({Sin(angle), Cos(angle)}, true), DType::kF32);
}

// ---------------------------------------------------------------- alibi

absl::StatusOr<Types> AlibiType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInts(call, "shape", 3, 0));
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", DType::kF32, call.ints("shape")));
  return Types(TensorType{DType::kF32, call.ints("shape")});
}

// Press, Smith and Lewis (2022), "Train short, test long", section 3 and, for numbers of heads that are no power of
// two, their implementation: the slopes of the power below, then every other one of twice as many.
std::vector<double> AlibiSlopes(int64_t heads) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto slope = [](int64_t i, int64_t n) {
    return std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(n));
  };
  std::vector<double> slopes;
  for (int64_t i = 0; i < heads; ++i) {
    slopes.push_back(i < power ? slope(i + 1, power) : slope(2 * (i - power) + 1, 2 * power));
  }
  return slopes;
}

Value F32s(Builder& b, Dims dims, const std::vector<double>& values) {
  auto literal = std::make_shared<Literal>();
  literal->splat = false;
  for (double v : values) literal->values.push_back(Scalar::Float(DType::kF32, v));
  return Constant(b, {DType::kF32, std::move(dims)}, std::move(literal));
}

Value AlibiDecompose(Rule& s) {
  const Ints shape = s.ints("shape");
  if (s.op.type().elements() == 0) return Full(s.builder, s.op.type(), 0);
  const Value query = Iota(s.builder, DType::kI32, {shape[1], shape[2]}, 0),
              key = Iota(s.builder, DType::kI32, {shape[1], shape[2]}, 1);
  const Value behind = key - query - FullLike(query, static_cast<double>(shape[2] - shape[1]));
  return F32s(s.builder, {shape[0], 1, 1}, AlibiSlopes(shape[0])) * CastTo(behind, DType::kF32);
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "alibi", .cls = OpClass::kComposite, .arity = 0, .attrs = {{"shape", kInts}}, .infer = AlibiType, .decompose = AlibiDecompose,
     .numpy = "alibi(shape)", .sample = {.attrs = "shape = [6, 3, 5]", .differentiable = false},
     .doc = "Biases of attention scores, f32 of shape [heads, queries, keys]: minus the distance of key and query, which end together, times the head's slope."},
    {.name = "rotary_embedding", .cls = OpClass::kComposite, .arity = 3, .attrs = {{"interleaved", kBool, "false"}}, .infer = RotaryType,
     .decompose = RotaryDecompose, .vjp = RotaryVjp, .tol = {.f32 = 2e-6, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "rotary_embedding(x0, x1, x2, interleaved=interleaved)", .sample = {.shapes = {"f32[2,3,6]", "f32[3,2]", "f32[3,2]"}},
     .doc = "Rotates pairs of the last axis by angles whose cosines and sines are given, [..., pairs]: element k with k + pairs or, interleaved, 2k with 2k + 1."},
    {.name = "sinusoidal_positions", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"dim", kInt}, {"base", kFloat, "10000"}},
     .infer = SinusoidalType, .decompose = SinusoidalDecompose, .tol = {.f32 = 1e-5}, .numpy = "sinusoidal_positions(x0, dim=dim, base=base)",
     .sample = {.shapes = {"i32[2,3]"}, .attrs = "dim = 6", .lo = 0, .hi = 9, .differentiable = false},
     .doc = "f32 encoding of positions along a new last axis: sine and cosine of position / base^(2k / dim), in turn."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kPositionOps(kOps);

Value RotaryEmbedding(Value x, Value cosine, Value sine, bool interleaved, Loc loc) {
  return Emit("rotary_embedding", {x, cosine, sine}, {Attr{"interleaved", interleaved}}, loc);
}

// The frequencies are rounded once, from f64.
Value RotaryAngles(Value positions, int64_t dim, double base, Loc loc) {
  if (!positions.valid()) return positions;
  std::vector<double> frequencies;
  for (int64_t k = 0; k < dim / 2; ++k) {
    frequencies.push_back(std::pow(base, -2 * static_cast<double>(k) / static_cast<double>(dim)));
  }
  const Value p = ExpandDims(CastTo(positions, DType::kF32, loc), {-1}, loc);
  return Mul(p, F32s(*positions.builder, {dim / 2}, frequencies), loc);
}

Value SinusoidalPositions(Value positions, int64_t dim, double base, Loc loc) {
  return Emit("sinusoidal_positions", {positions}, {Attr{"dim", dim}, Attr{"base", base}}, loc);
}

Value Alibi(Builder& b, int64_t heads, int64_t queries, int64_t keys, Loc loc) {
  return Emit(b, "alibi", {}, {Attr{"shape", Ints{heads, queries, keys}}}, loc);
}

}  // namespace agc
