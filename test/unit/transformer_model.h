// A transformer that is small in every dimension: token and position embeddings, two pre-norm blocks of causal
// attention with shared keys and a GELU layer, cross entropy of the next token.
//   Module m("transformer");   TraceTransformer(m);
#pragma once
#include "compiler/agc.h"

namespace agc::test {

// Xiong et al. (2020), "On layer normalization in the transformer architecture", figure 1b.
struct TransformerBlock {
  std::string name = {};
  int64_t size = 0, heads = 1;
  Tensor operator()(Tensor x) const {
    const nn::LayerNorm first{.name = name + ".norm1", .size = size}, second{.name = name + ".norm2", .size = size};
    const nn::MultiHeadAttention attention{.name = name + ".attn", .size = size, .heads = heads, .kv_heads = 1};
    const nn::Linear up{.name = name + ".up", .in = size, .out = 2 * size},
        down{.name = name + ".down", .in = 2 * size, .out = size};
    x = x + attention(first(x), {.causal = Causal::kUpperLeft});
    return x + down(Gelu(up(second(x))));
  }
};

inline constexpr int64_t kBatch = 2, kLength = 6, kVocabulary = 7, kModel = 8;

inline Tensor TransformerLoss(Tensor tokens, Tensor next) {
  const nn::Embedding embedding{.name = "tokens", .count = kVocabulary, .size = kModel, .deviation = 0.5};
  const Tensor positions = SinusoidalPositions(Iota(*tokens.builder, kI32, {kLength}), kModel);
  Tensor x = embedding(tokens) + positions;
  for (const char* name : {"block1", "block2"}) x = TransformerBlock{.name = name, .size = kModel, .heads = 2}(x);
  x = nn::LayerNorm{.name = "norm", .size = kModel}(x);
  const Tensor logits = nn::Linear{.name = "head", .in = kModel, .out = kVocabulary, .bias = false}(x);
  return CrossEntropy(Reshape(logits, {kBatch * kLength, kVocabulary}), Reshape(next, {kBatch * kLength}));
}

inline void TraceTransformer(Module& m) {
  m.Graph("step", [&](Trace& t) {
    const Tensor tokens = t.Input("tokens", kI32, {kBatch, kLength}), next = t.Input("next", kI32, {kBatch, kLength});
    const Tensor loss = TransformerLoss(tokens, next);
    optim::AdamW({.lr = t.Param("lr", kF32), .clip = {.norm = 1}}).Minimize(loss);
    t.OutputEachStep("loss", loss);
  });
}

// loss, and d<state> for every weight.
inline void TraceTransformerGradients(Module& m) {
  m.Graph("gradients", [&](Trace& t) {
    const Tensor tokens = t.Input("tokens", kI32, {kBatch, kLength}), next = t.Input("next", kI32, {kBatch, kLength});
    const Tensor loss = TransformerLoss(tokens, next);
    t.Output("loss", loss);
    for (const StateDef& s : m.program().states) {
      t.Output("d" + s.name, Gradient(loss, State(loss, s.name, s.type, s.init, true)));
    }
  });
}

}  // namespace agc::test
