// Attention as operators of several domains describe it.
#pragma once
#include "compiler/import/onnx_call.h"

namespace agc::onnx {

// [batch, steps, heads * depth] to [batch, heads, steps, depth], and back.
Value SplitHeads(Call& c, Value x, int64_t heads);
Value MergeHeads(Value x);

// Everything that an attention may ask for. q [b, heads, queries, depth], k and v [b, kv_heads, keys, depth].
struct AttentionCall {
  Value q = {}, k = {}, v = {};
  Value mask = {};  // bool (true: seen) or added; broadcasts to [b, heads, queries, keys]
  bool causal = false;
  int64_t past = 0;               // keys before the first query, for causal ones
  Value lengths = {};             // [b]: keys from there on are padding
  bool align_to_lengths = false;  // causal: the last query is the last key of its length
  double scale = 0, softcap = 0;  // 0: 1 / sqrt(depth); none
};
struct AttentionParts {
  Value y = {}, scores = {}, masked = {}, capped = {}, probabilities = {};
};
Value Attend(Call& c, const AttentionCall& a);
// The same step by step, with what is on the way.
AttentionParts AttendInSteps(Call& c, const AttentionCall& a);

// Pairs of the last axis of x [b, heads, steps, depth] turned by angles given as cos and sin [b or 1, 1, steps, pairs].
Value Rotate(Value x, Value cosine, Value sine, bool interleaved);

}  // namespace agc::onnx
