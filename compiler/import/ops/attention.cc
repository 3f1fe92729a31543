#include "compiler/import/ops/attention.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/build_nn.h"
#include "ir/build_shape.h"

namespace agc::onnx {

Value SplitHeads(Call& c, Value x, int64_t heads) {
  if (!c.ok() || x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    return c.Fail(absl::StrCat(heads, " heads of ", ToString(x.type()), ", expected [batch,steps,heads * depth]"));
  }
  return Transpose(Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Value MergeHeads(Value x) { return Reshape(Transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}); }

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value AsBias(Value mask, DType dtype) {
  if (mask.dtype() != DType::kBool) return CastTo(mask, dtype);
  const Value zero = Full(*mask.builder, {dtype, mask.dims()}, 0);
  return Where(mask, zero, FullLike(zero, -kInfinity));
}

// Masks that follow from positions: true where a query sees a key.
Value SeenByPosition(Call& c, const AttentionCall& a) {
  const int64_t batch = a.q.dim(0), queries = a.q.dim(2), keys = a.k.dim(2);
  const auto n = [&](Value lengths) { return Reshape(CastTo(lengths, DType::kI32), {batch, 1, 1, 1}); };
  const Dims full = {a.lengths.valid() ? batch : 1, 1, queries, keys};
  const Ints shape(full.begin(), full.end());
  const Value key = Iota(c.builder(), DType::kI32, full, 3);
  Value seen;
  if (a.causal) {
    Value last = Iota(c.builder(), DType::kI32, full, 2) + static_cast<double>(a.past);
    if (a.lengths.valid() && a.align_to_lengths)
      last = Add(last, Broadcast(n(a.lengths) - static_cast<double>(queries), shape));
    seen = LessEqual(key, last);
  }
  if (!a.lengths.valid()) return seen;
  const Value there = Less(key, Broadcast(n(a.lengths), shape));
  return seen.valid() ? LogicalAnd(seen, there) : there;
}

}  // namespace

AttentionParts AttendInSteps(Call& c, const AttentionCall& a) {
  AttentionParts parts;
  const int64_t repeats = a.q.dim(1) / std::max<int64_t>(1, a.k.dim(1));
  const Value k = repeats > 1 ? RepeatInterleave(a.k, repeats, 1) : a.k,
              v = repeats > 1 ? RepeatInterleave(a.v, repeats, 1) : a.v;
  const double scale = a.scale != 0 ? a.scale : 1 / std::sqrt(static_cast<double>(a.q.dim(3)));
  parts.scores = Matmul(a.q, T(k)) * scale;
  const Value seen = SeenByPosition(c, a);
  parts.masked = parts.scores;
  if (a.mask.valid()) parts.masked = Add(parts.masked, AsBias(a.mask, a.q.dtype()));
  if (seen.valid()) parts.masked = Add(parts.masked, AsBias(seen, a.q.dtype()));
  parts.capped = a.softcap > 0 ? Tanh(parts.masked / a.softcap) * a.softcap : parts.masked;
  parts.probabilities = Softmax(parts.capped);
  parts.y = Matmul(parts.probabilities, v);
  return parts;
}

// agc's own attention, whose mask comes after the cap; a cap beside a mask goes step by step.
Value Attend(Call& c, const AttentionCall& a) {
  if (!c.ok()) return a.q;
  if (a.softcap > 0 && (a.mask.valid() || a.causal || a.lengths.valid())) return AttendInSteps(c, a).y;
  AttentionOptions o{.mask = a.mask, .scale = a.scale, .softcap = a.softcap};
  const bool upper = a.causal && !a.lengths.valid() && a.past == 0;
  const bool lower = a.causal && !a.lengths.valid() && a.past == a.k.dim(2) - a.q.dim(2);
  if (upper || lower) {
    o.causal = upper ? Causal::kUpperLeft : Causal::kLowerRight;
  } else if (a.causal || a.lengths.valid()) {
    const Value seen = SeenByPosition(c, a);
    o.mask = !a.mask.valid()                  ? seen
             : a.mask.dtype() == DType::kBool ? LogicalAnd(a.mask, seen)
                                              : Add(a.mask, AsBias(seen, a.mask.dtype()));
  }
  return agc::Attention(a.q, a.k, a.v, o);
}

Value Rotate(Value x, Value cosine, Value sine, bool interleaved) {
  const int64_t pairs = cosine.dim(-1), depth = x.dim(3);
  const auto part = [&](int64_t from, int64_t to) { return StridedSlice(x, {from}, {to}, {1}, {3}); };
  const Value turned = agc::RotaryEmbedding(2 * pairs == depth ? x : part(0, 2 * pairs), cosine, sine, interleaved);
  return 2 * pairs == depth ? turned : Concat({turned, part(2 * pairs, depth)}, 3);
}

namespace {

// Masks shorter than the keys hide the rest.
Value PaddedMask(Value mask, int64_t keys) {
  const int64_t more = keys - mask.dim(-1);
  if (more <= 0 || mask.dim(-1) == 1) return mask;
  Ints low(static_cast<size_t>(mask.rank()), 0), high = low;
  high.back() = more;
  if (mask.dtype() != DType::kBool) return Pad(mask, -kInfinity, low, high);
  return Pad(mask, 0, low, high);
}

void AttentionOp(Call& c) {
  AttentionCall a;
  const int64_t q_heads = c.integer("q_num_heads", 0), kv_heads = c.integer("kv_num_heads", 0);
  const Value q = c.in(0);
  a.q = SplitHeads(c, q, q_heads);
  a.k = SplitHeads(c, c.in(1), kv_heads);
  a.v = SplitHeads(c, c.in(2), kv_heads);
  a.mask = c.opt(3);
  const Value past_key = c.opt(4), past_value = c.opt(5);
  a.lengths = c.opt(6);
  a.align_to_lengths = !past_key.valid();
  a.causal = c.flag("is_causal", false);
  a.scale = c.number("scale", 0);
  a.softcap = c.number("softcap", 0);
  const int64_t mode = c.integer("qk_matmul_output_mode", 0);
  c.ignore("softmax_precision");  // never less than f32
  if (!c.ok()) return;
  if (past_key.valid()) {
    a.past = past_key.dim(2);
    a.k = Concat({past_key, a.k}, 2);
  }
  if (past_value.valid()) a.v = Concat({past_value, a.v}, 2);
  if (a.mask.valid()) a.mask = PaddedMask(a.mask, a.k.dim(2));
  if (c.wants(3)) {
    const AttentionParts parts = AttendInSteps(c, a);
    const Value stages[] = {parts.scores, parts.masked, parts.capped, parts.probabilities};
    if (mode < 0 || mode > 3) return void(c.Fail(absl::StrCat("qk_matmul_output_mode is ", mode)));
    c.out(q.rank() == 3 ? MergeHeads(parts.y) : parts.y, 0);
    c.out(stages[mode], 3);
  } else {
    const Value y = Attend(c, a);
    c.out(q.rank() == 3 ? MergeHeads(y) : y, 0);
  }
  c.out(a.k, 1);
  c.out(a.v, 2);
}

void RotaryEmbeddingOp(Call& c) {
  const Value x = c.in(0), cosine = c.in(1), sine = c.in(2), positions = c.opt(3);
  const bool interleaved = c.flag("interleaved", false);
  const int64_t heads = c.integer("num_heads", 0), turned = c.integer("rotary_embedding_dim", 0);
  const Value split = SplitHeads(c, x, heads);
  if (!c.ok()) return;
  const int64_t pairs = (turned == 0 ? split.dim(3) : turned) / 2;
  const auto angles = [&](Value cache) {
    const Value rows = positions.valid() ? Take(cache, positions, 0) : cache;  // [b or 1, steps, pairs]
    return Reshape(rows, {rows.rank() == 2 ? 1 : rows.dim(0), 1, rows.dim(-2), rows.dim(-1)});
  };
  if (cosine.dim(-1) != pairs || sine.dim(-1) != pairs) {
    return void(c.Fail(absl::StrCat("caches are ", ToString(cosine.type()), " and ", ToString(sine.type()), " for ",
                                    pairs, " pairs")));
  }
  const Value y = Rotate(split, angles(cosine), angles(sine), interleaved);
  c.out(x.rank() == 3 ? MergeHeads(y) : y);
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Attention", 23, AttentionOp}, {"RotaryEmbedding", 23, RotaryEmbeddingOp},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kAttentionOps(kRows);

}  // namespace agc::onnx
