#include "compiler/nn.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/build_window.h"
#include "ir/combiner.h"
#include "ir/trace.h"

namespace agc::nn {
namespace {

Init Fan(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return {.kind = InitKind::kUniform, .a = -bound, .b = bound};
}

bool Check(Tensor x, bool holds, Loc loc, absl::string_view layer, const std::string& expected) {
  Builder* b = Live(x, absl::StrCat(layer, ": input"), loc);
  if (b == nullptr || holds) return b != nullptr;
  Poison(*b, loc, absl::StrCat(layer, ": input is ", ToString(x.type()), ", expected ", expected));
  return false;
}

// Scale 1 and shift 0.
struct Affine {
  Tensor scale = {}, shift = {};
};
template <typename Layer>
Affine AffineOf(const Layer& l, Tensor x, DType dtype, int64_t size, Loc loc) {
  return {State(x, absl::StrCat(l.name, ".scale"), {dtype, {size}}, {.a = 1}, l.trainable, loc),
          State(x, absl::StrCat(l.name, ".shift"), {dtype, {size}}, {}, l.trainable, loc)};
}

bool CheckChannels(Tensor x, int rank, int64_t in, const std::string& name, Loc loc) {
  static constexpr const char* kSpatial[] = {"", ",l]", ",h,w]", ",d,h,w]"};
  const bool holds = x.rank() == rank + 2 && x.dim(1) == in;
  return Check(x, holds, loc, name, absl::StrCat("[n,", in, kSpatial[rank]));
}

// One number per channel.
template <typename Layer>
Tensor PlusBias(const Layer& l, Tensor y, int64_t fan_in, Loc loc) {
  const int64_t channels = l.out;
  const Tensor b = State(y, absl::StrCat(l.name, ".bias"), {y.dtype(), {channels}}, Fan(fan_in), l.trainable, loc);
  Ints shape(static_cast<size_t>(std::max(1, y.rank() - 1)), 1);
  shape[0] = channels;
  return Add(y, Reshape(b, shape, loc), loc);
}

template <typename Layer>
Tensor Convolve(const Layer& l, Tensor x, int rank, Loc loc) {
  if (!CheckChannels(x, rank, l.in, l.name, loc)) return Poisoned(x);
  const int64_t per_group = l.in / std::max<int64_t>(l.groups, 1);
  TensorType type{x.dtype(), {l.out, per_group}};
  int64_t fan_in = per_group;
  for (int axis = 0; axis < rank; ++axis) {
    type.dims.push_back(l.kernel);
    fan_in *= l.kernel;
  }
  const Tensor w = State(x, absl::StrCat(l.name, ".weight"), type, Fan(fan_in), l.trainable, loc);
  const Tensor y =
      Conv(x, w, {.stride = {l.stride}, .pad = {l.pad}, .dilation = {l.dilation}, .groups = l.groups}, loc);
  return l.bias ? PlusBias(l, y, fan_in, loc) : y;
}

}  // namespace

Tensor Linear::operator()(Tensor x, Loc loc) const {
  if (!Check(x, x.rank() >= 2 && x.dim(-1) == in, loc, name, absl::StrCat("[n,...,", in, "]"))) return Poisoned(x);
  const Tensor w = State(x, absl::StrCat(name, ".weight"), {x.dtype(), {in, out}}, Fan(in), trainable, loc);
  const Tensor y = Matmul(x, w, loc);
  if (!bias) return y;
  return Add(y, State(x, absl::StrCat(name, ".bias"), {x.dtype(), {out}}, Fan(in), trainable, loc), loc);
}

Tensor Conv1d::operator()(Tensor x, Loc loc) const { return Convolve(*this, x, 1, loc); }
Tensor Conv2d::operator()(Tensor x, Loc loc) const { return Convolve(*this, x, 2, loc); }
Tensor Conv3d::operator()(Tensor x, Loc loc) const { return Convolve(*this, x, 3, loc); }

Tensor ConvTranspose2d::operator()(Tensor x, Loc loc) const {
  if (!CheckChannels(x, 2, in, name, loc)) return Poisoned(x);
  const int64_t per_group = out / std::max<int64_t>(groups, 1), fan_in = per_group * kernel * kernel;
  const Tensor w = State(x, absl::StrCat(name, ".weight"), {x.dtype(), {in, per_group, kernel, kernel}}, Fan(fan_in),
                         trainable, loc);
  const Tensor y = ConvTranspose(
      x, w, {.stride = {stride}, .pad = {pad}, .dilation = {dilation}, .output_pad = {output_pad}, .groups = groups},
      loc);
  return bias ? PlusBias(*this, y, fan_in, loc) : y;
}

Tensor Embedding::operator()(Tensor ids, Loc loc) const {
  if (!Check(ids, IsInt(ids.dtype()), loc, name, "integers")) return Poisoned(ids);
  const Init init{.kind = InitKind::kNormal, .a = 0, .b = deviation};
  return Take(State(ids, absl::StrCat(name, ".weight"), {dtype, {count, size}}, init, trainable, loc), ids, 0, loc);
}

Tensor Dropout::operator()(Tensor x, Tensor key, bool train, Loc loc) const {
  if (!train || rate == 0) return x;
  Builder* b = Live(x, "dropout: input", loc);
  return b == nullptr ? Poisoned(x) : agc::Dropout(x, key, b->graph->random_streams++, rate, loc);
}

// ---------------------------------------------------------------- normalisation

Tensor LayerNorm::operator()(Tensor x, Loc loc) const {
  if (!Check(x, x.rank() >= 1 && x.dim(-1) == size, loc, name, absl::StrCat("[...,", size, "]"))) return Poisoned(x);
  const Affine a = AffineOf(*this, x, x.dtype(), size, loc);
  return agc::LayerNorm(x, a.scale, a.shift, epsilon, loc);
}

Tensor RmsNorm::operator()(Tensor x, Loc loc) const {
  if (!Check(x, x.rank() >= 1 && x.dim(-1) == size, loc, name, absl::StrCat("[...,", size, "]"))) return Poisoned(x);
  return agc::RmsNorm(x, State(x, absl::StrCat(name, ".scale"), {x.dtype(), {size}}, {.a = 1}, trainable, loc), epsilon,
                      loc);
}

Tensor GroupNorm::operator()(Tensor x, Loc loc) const {
  const std::string expected = absl::StrCat("[n,", channels, ",...]");
  if (!Check(x, x.rank() >= 2 && x.dim(1) == channels, loc, name, expected)) return Poisoned(x);
  const Affine a = AffineOf(*this, x, x.dtype(), channels, loc);
  return agc::GroupNorm(x, a.scale, a.shift, groups, epsilon, loc);
}

Tensor BatchNorm::operator()(Tensor x, bool train, Loc loc) const {
  const std::string expected = absl::StrCat("[n,", channels, ",...]");
  if (!Check(x, x.rank() >= 2 && x.dim(1) == channels, loc, name, expected)) return Poisoned(x);
  const TensorType type{AccumulatorOf(x.dtype()), {channels}};
  const Affine a = AffineOf(*this, x, type.dtype, channels, loc);
  const std::string mean_name = absl::StrCat(name, ".running_mean"),
                    variance_name = absl::StrCat(name, ".running_variance");
  const Tensor mean = State(x, mean_name, type, {}, false, loc);
  const Tensor variance = State(x, variance_name, type, {.a = 1}, false, loc);
  if (!train) return agc::BatchNorm(x, mean, variance, a.scale, a.shift, epsilon, loc);
  const BatchNormResult batch = BatchNormTrain(x, a.scale, a.shift, epsilon, loc);
  const double n = static_cast<double>(x.type().elements()) / static_cast<double>(channels);
  const auto moved = [&](Tensor old, Tensor now, double factor) {
    const Tensor kept = Mul(old, ScalarLike(old, 1 - momentum, loc), loc);
    return Add(kept, Mul(now, ScalarLike(now, momentum * factor, loc), loc), loc);
  };
  Update(x, mean_name, moved(mean, batch.mean, 1), loc);
  Update(x, variance_name, moved(variance, batch.variance, n > 1 ? n / (n - 1) : 1), loc);
  return batch.y;
}

// ---------------------------------------------------------------- attention

namespace {

// [batch, rows, heads * depth] -> [batch, heads, rows, depth]
Tensor SplitHeads(Tensor x, int64_t heads, Loc loc) {
  const Tensor split = Reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}, loc);
  return Transpose(split, {0, 2, 1, 3}, loc);
}

Tensor Rotated(Tensor x, double base, Loc loc) {
  if (!x.valid()) return x;
  const Tensor angles = RotaryAngles(Iota(*x.builder, DType::kI32, {x.dim(2)}, 0, loc), x.dim(3), base, loc);
  return RotaryEmbedding(x, CastTo(Cos(angles, loc), x.dtype(), loc), CastTo(Sin(angles, loc), x.dtype(), loc), false,
                         loc);
}

}  // namespace

Tensor MultiHeadAttention::operator()(Tensor x, AttentionOptions options, Loc loc) const {
  return (*this)(x, x, options, loc);
}

Tensor MultiHeadAttention::operator()(Tensor x, Tensor memory, AttentionOptions options, Loc loc) const {
  const std::string expected = absl::StrCat("[batch,rows,", size, "]");
  for (Tensor t : {x, memory}) {
    if (!Check(t, t.rank() == 3 && t.dim(2) == size, loc, name, expected)) return Poisoned(t);
  }
  const int64_t shared = kv_heads == 0 ? heads : kv_heads;
  if (heads < 1 || size % heads != 0 || heads % shared != 0) {
    return Poison(
        *x.builder, loc,
        absl::StrCat(name, ": size ", size, ", heads ", heads, " and kv_heads ", shared, " do not divide each other"));
  }
  const auto projected = [&](absl::string_view part, Tensor from, int64_t parts) {
    const Linear linear{.name = absl::StrCat(name, part),
                        .in = size,
                        .out = size / heads * parts,
                        .bias = bias,
                        .trainable = trainable};
    return SplitHeads(linear(from, loc), parts, loc);
  };
  Tensor q = projected(".q", x, heads), k = projected(".k", memory, shared);
  if (rotary_base > 0) {
    q = Rotated(q, rotary_base, loc);
    k = Rotated(k, rotary_base, loc);
  }
  const Tensor y = Attention(q, k, projected(".v", memory, shared), options, loc);
  if (!y.valid()) return y;
  const Tensor joined = Reshape(Transpose(y, {0, 2, 1, 3}, loc), {x.dim(0), x.dim(1), size}, loc);
  return Linear{.name = absl::StrCat(name, ".out"), .in = size, .out = size, .bias = bias, .trainable = trainable}(
      joined, loc);
}

// ---------------------------------------------------------------- recurrence

namespace {

using RecurrentFunction = RecurrentResult (*)(Tensor x, Tensor w, Tensor r, RecurrentOptions options, Loc loc);

// The layer's states, the op, and its outputs with directions side by side.
template <typename Layer>
RecurrentResult Run(const Layer& layer, int64_t gates, RecurrentFunction function, Tensor x, RecurrentOptions o,
                    Loc loc) {
  const std::string expected = absl::StrCat(o.batch_first ? "[batch,steps," : "[steps,batch,", layer.in, "]");
  if (!Check(x, x.rank() == 3 && x.dim(2) == layer.in, loc, layer.name, expected)) return {Poisoned(x)};
  const int64_t d = o.direction == Direction::kBidirectional ? 2 : 1, rows = gates * layer.hidden;
  const auto weight = [&](absl::string_view part, Dims dims) {
    return State(x, absl::StrCat(layer.name, part), {x.dtype(), std::move(dims)}, Fan(layer.hidden), layer.trainable,
                 loc);
  };
  const Tensor w = weight(".w", {d, rows, layer.in}), r = weight(".r", {d, rows, layer.hidden});
  if (layer.bias && o.bias.builder == nullptr) o.bias = weight(".bias", {d, 2 * rows});
  RecurrentResult result = function(x, w, r, o, loc);
  if (!result.y.valid()) return result;
  const Tensor y = o.batch_first ? result.y : Transpose(result.y, {0, 2, 1, 3}, loc);
  result.y = Reshape(y, {x.dim(0), x.dim(1), d * layer.hidden}, loc);
  return result;
}

}  // namespace

RecurrentResult Rnn::operator()(Tensor x, RecurrentOptions options, Loc loc) const {
  return Run(*this, 1, agc::Rnn, x, options, loc);
}
RecurrentResult Gru::operator()(Tensor x, RecurrentOptions options, Loc loc) const {
  return Run(*this, 3, agc::Gru, x, options, loc);
}
RecurrentResult Lstm::operator()(Tensor x, RecurrentOptions options, Loc loc) const {
  return Run(*this, 4, agc::Lstm, x, options, loc);
}

}  // namespace agc::nn
