// com.microsoft: the attention operators of ONNX Runtime, and what surrounds them in exported language models.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/attention.h"
#include "compiler/import/ops/quantised.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/build_nn.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

// Columns from to to - 1 of the last axis.
Value Columns(Value x, int64_t from, int64_t to) { return StridedSlice(x, {from}, {to}, {1}, {x.rank() - 1}); }

// Masks of MultiHeadAttention and Attention: true or 1 per key that is seen, [batch, keys] or broadcast to the scores;
// or the number of keys, [batch].
void TakeMask(Call& c, Value mask, AttentionCall& a) {
  if (!mask.valid() || !c.ok()) return;
  const int64_t batch = a.q.dim(0), keys = a.k.dim(2);
  if (mask.rank() == 1 && mask.dim(0) == batch) {
    a.lengths = mask;
  } else if (mask.rank() == 2 && mask.dim(0) == batch && mask.dim(1) == keys) {
    a.mask = CastTo(Reshape(mask, {batch, 1, 1, keys}), DType::kBool);
  } else if (mask.rank() == 3 && mask.dim(2) == keys) {
    a.mask = CastTo(Reshape(mask, {mask.dim(0), 1, mask.dim(1), keys}), DType::kBool);
  } else {
    c.Fail(absl::StrCat("a mask of ", ToString(mask.type()), " for ", batch, " x ", keys, " keys"));
  }
}

// The additive bias joins a mask of truth values.
void TakeBias(Value bias, AttentionCall& a) {
  if (!bias.valid()) return;
  if (!a.mask.valid()) {
    a.mask = bias;
  } else {
    const Value hidden = Where(a.mask, Full(*bias.builder, {bias.dtype(), a.mask.dims()}, 0),
                               Full(*bias.builder, {bias.dtype(), a.mask.dims()}, -INFINITY));
    a.mask = Add(bias, hidden);
  }
}

void GiveAttention(Call& c, const AttentionCall& a) {
  if (!c.ok()) return;
  c.out(MergeHeads(Attend(c, a)), 0);
  c.out(a.k, 1);
  c.out(a.v, 2);
}

void MultiHeadAttention(Call& c) {
  const int64_t heads = c.integer("num_heads");
  c.ignore("mask_filter_value");
  const Value q = c.in(0), k = c.opt(1), v = c.opt(2), bias = c.opt(3), mask = c.opt(4), scores = c.opt(5);
  const Value past_k = c.opt(6), past_v = c.opt(7);
  if (!c.ok()) return;
  if (!k.valid() || !v.valid() || q.rank() != 3)
    return void(c.Fail("packed queries, keys and values are not supported"));
  const int64_t n = q.dim(2);
  const auto biased = [&](Value x, int64_t from) {
    return bias.valid() && x.rank() == 3 ? Add(x, Columns(bias, from, from + x.dim(2))) : x;
  };
  AttentionCall a;
  a.q = SplitHeads(c, biased(q, 0), heads);
  a.k = SplitHeads(c, biased(k, n), heads);
  a.v = SplitHeads(c, biased(v, 2 * n), heads);
  a.causal = c.flag("unidirectional", false);
  a.scale = c.number("scale", 0);
  if (!c.ok()) return;
  if (past_k.valid()) a.k = Concat({past_k, a.k}, 2);
  if (past_v.valid()) a.v = Concat({past_v, a.v}, 2);
  a.past = past_k.valid() ? past_k.dim(2) : 0;
  TakeMask(c, mask, a);
  TakeBias(scores, a);
  GiveAttention(c, a);
}

// x W + b split into queries, keys and values; past and present are stacked keys and values [2, b, heads, keys, depth].
void PackedAttention(Call& c) {
  const int64_t heads = c.integer("num_heads");
  c.ignore("mask_filter_value");
  const Value x = c.in(0), w = c.in(1), bias = c.opt(2), mask = c.opt(3), past = c.opt(4), scores = c.opt(5);
  Ints sizes = c.ints("qkv_hidden_sizes", Ints());
  if (c.flag("do_rotary", false)) c.Fail("do_rotary = 1 is not supported");
  if (!c.ok()) return;
  if (sizes.empty()) sizes = Ints(3, w.dim(1) / 3);
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != w.dim(1))
    return void(c.Fail("qkv_hidden_sizes do not fit the weight"));
  const Value all = bias.valid() ? Add(Matmul(x, w), bias) : Matmul(x, w);
  AttentionCall a;
  a.q = SplitHeads(c, Columns(all, 0, sizes[0]), heads);
  a.k = SplitHeads(c, Columns(all, sizes[0], sizes[0] + sizes[1]), heads);
  a.v = SplitHeads(c, Columns(all, sizes[0] + sizes[1], w.dim(1)), heads);
  a.causal = c.flag("unidirectional", false);
  a.scale = c.number("scale", 0);
  if (!c.ok()) return;
  if (past.valid()) {
    const std::vector<Value> both = Unstack(past, 0);
    if (both.size() != 2) return void(c.Fail("past is not keys and values"));
    a.past = both[0].dim(2);
    a.k = Concat({both[0], a.k}, 2);
    a.v = Concat({both[1], a.v}, 2);
  }
  TakeMask(c, mask, a);
  TakeBias(scores, a);
  if (!c.ok()) return;
  c.out(MergeHeads(Attend(c, a)), 0);
  if (c.wants(1)) c.out(Stack({a.k, a.v}, 0), 1);
}

// Positions [b, steps], or the first of them [1]; x [b, steps, hidden] or [b, heads, steps, depth].
void RotaryEmbeddingOp(Call& c) {
  const Value x = c.in(0), positions = c.in(1), cosine = c.in(2), sine = c.in(3);
  const bool interleaved = c.flag("interleaved", false);
  int64_t heads = c.integer("num_heads", 0);
  const int64_t turned = c.integer("rotary_embedding_dim", 0);
  c.ignore("is_packed_batching");
  c.ignore("scale");
  if (!c.ok()) return;
  const int64_t depth = turned != 0 ? 0 : 2 * cosine.dim(1);
  if (heads == 0 && x.rank() == 3 && depth > 0) heads = x.dim(2) / depth;
  const Value split = SplitHeads(c, x, heads);
  if (!c.ok()) return;
  const int64_t batch = split.dim(0), steps = split.dim(2);
  Value at = positions;
  if (positions.type().elements() == 1 && steps != 1) {
    at = Add(Reshape(positions, {1, 1}), Iota(c.builder(), positions.dtype(), {1, steps}, 1));
  }
  const auto angles = [&](Value cache) {
    const Value rows = Take(cache, at, 0);
    return Reshape(rows, {rows.dim(0), 1, steps, cache.dim(1)});
  };
  if (at.rank() != 2 || (at.dim(0) != 1 && at.dim(0) != batch) || at.dim(1) != steps) {
    return void(c.Fail(absl::StrCat("position_ids are ", ToString(positions.type()), " for ", batch, " x ", steps)));
  }
  const Value y = Rotate(split, angles(cosine), angles(sine), interleaved);
  c.out(x.rank() == 3 ? MergeHeads(y) : y);
}

// Words, positions and segments added up and normalised.
void EmbedLayerNormalization(Call& c) {
  const Value ids = c.in(0), segments = c.opt(1), words = c.in(2), places = c.in(3), segment_table = c.opt(4);
  const Value scale = c.in(5), shift = c.in(6), mask = c.opt(7), positions = c.opt(8);
  const double epsilon = c.number("epsilon", 1e-12);
  if (c.integer("mask_index_type", 0) != 0) c.Fail("mask_index_type other than 0 is not supported");
  if (!c.ok()) return;
  const int64_t batch = ids.dim(0), steps = ids.dim(1);
  const Value at = positions.valid() ? positions : Iota(c.builder(), DType::kI32, {1, steps}, 1);
  Value sum = Add(Take(words, ids, 0), Take(places, at, 0));
  if (segments.valid() && segment_table.valid()) sum = Add(sum, Take(segment_table, segments, 0));
  c.out(LayerNorm(sum, scale, shift, epsilon), 0);
  const Value count =
      mask.valid() ? ReduceSum(CastTo(mask, DType::kI32), {1}) : Full(c.builder(), {DType::kI32, {batch}}, 0);
  c.out(count, 1);
  c.out(sum, 2);
}

// A of floats quantised to u8 on the way, times a quantised B.
void DynamicQuantizeMatMul(Call& c) {
  const Value a = c.in(0), b = c.in(1), b_scale = c.in(2), b_zero = c.opt(3), bias = c.opt(4);
  if (!c.ok()) return;
  const Value zero = ScalarLike(a, 0, Loc{});
  const Value low = Minimum(ReduceMin(a), zero), high = Maximum(ReduceMax(a), zero);
  const Value range = Sub(high, low) / 255.0;
  const Value scale = Where(Equal(range, zero), ScalarLike(a, 1, Loc{}), range);
  const Value point = CastTo(Round(Clamp(DivOf(Neg(low), scale), 0, 255)), DType::kU8);
  const Value q = Quantise(a, point, scale, DType::kU8);
  const Value product = Matmul(Centred(q, point), Centred(b, b_zero));
  const Value y = Mul(CastTo(product, DType::kF32), Mul(scale, b_scale));
  c.out(bias.valid() ? Add(y, bias) : y);
}

// B of 4 or 8 bits in blocks along K, [n, blocks, bytes], scales [n, blocks], zero points packed likewise.
void MatMulNBits(Call& c) {
  const Value a = c.in(0), b = c.in(1), zeros = c.opt(3), bias = c.opt(5);
  Value scales = c.in(2);
  const int64_t k = c.integer("K"), n = c.integer("N"), bits = c.integer("bits", 4), block = c.integer("block_size");
  c.ignore("accuracy_level");
  if (c.has(4)) c.Fail("g_idx: reordered weights are not supported");
  if (!c.ok()) return;
  if ((bits != 4 && bits != 8) || block < 1 || k < 1 || n < 1)
    return void(c.Fail(absl::StrCat(bits, " bits in blocks of ", block)));
  const int64_t blocks = (k + block - 1) / block;
  // Bytes to numbers along the last axis, the low half first.
  const auto unpacked = [&](Value packed, const Ints& shape) {
    if (bits == 8) return Reshape(packed, shape);
    const Value low = BitAnd(packed, FullLike(packed, 15)), high = ShiftRight(packed, FullLike(packed, 4));
    Ints flat(packed.dims().begin(), packed.dims().end());
    flat.back() *= 2;
    return Reshape(Reshape(Stack({low, high}, -1), flat), shape);
  };
  if (b.type().elements() * 8 != n * blocks * block * bits) {
    return void(c.Fail(absl::StrCat("B is ", ToString(b.type()), " for ", n, " x ", blocks, " blocks of ", block)));
  }
  Value w = CastTo(unpacked(b, {n, blocks, block}), a.dtype());
  Value point = Full(c.builder(), {a.dtype(), {n, blocks, 1}}, bits == 4 ? 8 : 128);
  if (zeros.valid() && IsFloat(zeros.dtype())) {
    point = CastTo(Reshape(zeros, {n, blocks, 1}), a.dtype());
  } else if (zeros.valid()) {
    const int64_t padded = zeros.type().elements() * 8 / bits / n;
    const Value all = unpacked(Reshape(zeros, {n, zeros.type().elements() / n}), {n, padded});
    point = CastTo(Reshape(Slice(all, {0, 0}, {n, blocks}, {1, 1}), {n, blocks, 1}), a.dtype());
  }
  scales = CastTo(Reshape(scales, {n, blocks, 1}), a.dtype());
  w = Slice(Reshape(Mul(Sub(w, point), scales), {n, blocks * block}), {0, 0}, {n, k}, {1, 1});
  const Value y = Matmul(a, T(w));
  c.out(bias.valid() ? Add(y, bias) : y);
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Attention", 1, PackedAttention, "do_rotary"}, {"DynamicQuantizeMatMul", 1, DynamicQuantizeMatMul},
    {"EmbedLayerNormalization", 1, EmbedLayerNormalization, "mask_index_type"}, {"MatMulNBits", 1, MatMulNBits, "g_idx"},
    {"MultiHeadAttention", 1, MultiHeadAttention, "packed operands"}, {"RotaryEmbedding", 1, RotaryEmbeddingOp},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kTransformerOps(kRows);

}  // namespace agc::onnx
