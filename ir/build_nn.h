// The C++ functions of normalisation, attention, recurrence and losses; see ir/build.h. Optional operands are empty
// tensors.
//   Value y = Attention(q, k, v, {.causal = Causal::kUpperLeft});
//   Value loss = CrossEntropy(logits, labels, {.label_smoothing = 0.1});
#pragma once
#include <optional>

#include "ir/build.h"

namespace agc {

// ---------------------------------------------------------------- normalisation; `scale` and `shift` may be f32

// (x - mean) / sqrt(variance + epsilon) over axes (none: all). Weight standardisation is this over all axes but the
// first of a weight [out, ...].
Value MeanVarianceNorm(Value x, Ints axes, double epsilon = 1e-5, Loc loc = Loc::Here());
// LayerNorm and RmsNorm normalise the last axes, as many as `scale` has.
Value LayerNorm(Value x, Value scale, double epsilon = 1e-5, Loc loc = Loc::Here());
Value RmsNorm(Value x, Value scale, double epsilon = 1e-5, Loc loc = Loc::Here());
// Per channel, which is axis 1: all other operands are [channels].
Value BatchNorm(Value x, Value mean, Value variance, Value scale, Value shift, double epsilon = 1e-5,
                Loc loc = Loc::Here());
struct BatchNormResult {
  Value y = {}, mean = {}, variance = {};  // the batch's statistics; the variance is biased
};
BatchNormResult BatchNormTrain(Value x, Value scale, Value shift, double epsilon = 1e-5, Loc loc = Loc::Here());
Value GroupNorm(Value x, Value scale, Value shift, int64_t groups, double epsilon = 1e-5, Loc loc = Loc::Here());
Value InstanceNorm(Value x, Value scale, Value shift, double epsilon = 1e-5, Loc loc = Loc::Here());
Value LpNormalize(Value x, int64_t axis = -1, int64_t p = 2, double epsilon = 1e-12, Loc loc = Loc::Here());
struct LrnOptions {
  int64_t size = 5;
  double alpha = 1e-4, beta = 0.75, bias = 1;
};
Value Lrn(Value x, LrnOptions options = {}, Loc loc = Loc::Here());

// ---------------------------------------------------------------- attention

// softmax over the elements where the mask holds; an empty mask: all. Rows without an element give 0.
Value MaskedSoftmax(Value x, Value mask, int64_t axis = -1, Loc loc = Loc::Here());
// A query sees the keys up to its own position, counted from the start or from the end.
enum class Causal : uint8_t { kNone, kUpperLeft, kLowerRight };
struct AttentionOptions {
  Value mask = {};  // bool (true: seen), or added to the scores; broadcasts to [..., heads, queries, keys]
  Causal causal = Causal::kNone;
  double scale = 0;    // 0: 1 / sqrt(depth)
  double softcap = 0;  // 0: none
};
// [..., heads, queries, depth], [..., kv_heads, keys, depth], [..., kv_heads, keys, out] -> [..., heads, queries, out]
Value Attention(Value q, Value k, Value v, AttentionOptions options = {}, Loc loc = Loc::Here());

// f32 [..., dim / 2]: positions times base^(-2k / dim), for Cos and Sin and RotaryEmbedding.
Value RotaryAngles(Value positions, int64_t dim, double base = 10000, Loc loc = Loc::Here());
Value RotaryEmbedding(Value x, Value cosine, Value sine, bool interleaved = false, Loc loc = Loc::Here());
Value SinusoidalPositions(Value positions, int64_t dim, double base = 10000, Loc loc = Loc::Here());  // f32 [..., dim]
Value Alibi(Builder& b, int64_t heads, int64_t queries, int64_t keys, Loc loc = Loc::Here());         // f32 biases

// ---------------------------------------------------------------- recurrence

// Operands and results are those of ONNX: x [steps, batch, in], w [directions, gates * hidden, in], r [directions,
// gates * hidden, hidden], bias [directions, 2 * gates * hidden], states [directions, batch, hidden]. Gates are in the
// order i, o, f, c of an LSTM and z, r, h of a GRU.
enum class Direction : uint8_t { kForward, kReverse, kBidirectional };
struct RecurrentOptions {
  Value bias = {}, h0 = {};
  Value c0 = {}, peepholes = {};  // LSTM; peepholes [directions, 3 * hidden] of i, o, f
  Value lengths = {};             // integers [batch]; steps from there on give 0 and keep the state
  Direction direction = Direction::kForward;
  bool batch_first = false;          // x [batch, steps, in], y [batch, steps, directions, hidden], states [batch, ...]
  bool relu = false;                 // RNN: instead of tanh
  bool linear_before_reset = false;  // GRU: the reset gate scales h R + bias instead of h
};
struct RecurrentResult {
  Value y = {}, h = {}, c = {};  // y [steps, directions, batch, hidden]; the last states; c: of an LSTM
};
RecurrentResult Rnn(Value x, Value w, Value r, RecurrentOptions options = {}, Loc loc = Loc::Here());
RecurrentResult Gru(Value x, Value w, Value r, RecurrentOptions options = {}, Loc loc = Loc::Here());
RecurrentResult Lstm(Value x, Value w, Value r, RecurrentOptions options = {}, Loc loc = Loc::Here());

// ---------------------------------------------------------------- losses

enum class Reduction : uint8_t { kNone, kMean, kSum };

struct CrossEntropyOptions {
  Value weight = {};  // [classes]
  double label_smoothing = 0;
  std::optional<int64_t> ignore_index = {};  // rows with this label count neither in the sum nor in the mean
  Reduction reduction = Reduction::kMean;
};
// Logits [n, classes, ...]; labels are integers [n, ...] or probabilities of the logits' type.
Value CrossEntropy(Value logits, Value labels, CrossEntropyOptions options, Loc loc = Loc::Here());
Value Nll(Value log_probabilities, Value labels, CrossEntropyOptions options = {}, Loc loc = Loc::Here());

struct CtcOptions {
  int64_t blank = 0;           // the class that stands between labels
  bool zero_infinity = false;  // examples without an alignment cost 0 instead of infinity
  Reduction reduction = Reduction::kMean;
};
// Connectionist temporal classification: log-probabilities [steps, n, classes], labels [n, most], and the numbers of
// steps and labels of each example [n]. The steps are unrolled, about 20 ops each.
Value Ctc(Value log_probabilities, Value labels, Value steps, Value lengths, CtcOptions options = {},
          Loc loc = Loc::Here());

Value Mse(Value x, Value y, Reduction reduction, Loc loc = Loc::Here());
Value Mae(Value x, Value y, Reduction reduction = Reduction::kMean, Loc loc = Loc::Here());
Value Huber(Value x, Value y, double delta = 1, Reduction reduction = Reduction::kMean, Loc loc = Loc::Here());
Value SmoothL1(Value x, Value y, double beta = 1, Reduction reduction = Reduction::kMean, Loc loc = Loc::Here());
struct PoissonNllOptions {
  bool log_input = true, full = false;
  double epsilon = 1e-8;
  Reduction reduction = Reduction::kMean;
};
Value PoissonNll(Value x, Value target, PoissonNllOptions options = {}, Loc loc = Loc::Here());
struct GaussianNllOptions {
  bool full = false;
  double epsilon = 1e-6;
  Reduction reduction = Reduction::kMean;
};
Value GaussianNll(Value x, Value target, Value variance, GaussianNllOptions options = {}, Loc loc = Loc::Here());
// Of log-probabilities and probabilities (or their logarithms); the sum over all elements divided by axis 0 is the
// divergence of a batch.
Value KlDiv(Value log_q, Value p, bool log_target = false, Reduction reduction = Reduction::kMean,
            Loc loc = Loc::Here());

Value Bce(Value p, Value target, Reduction reduction = Reduction::kMean, Loc loc = Loc::Here());
// `pos_weight`, empty or broadcast to x, multiplies the loss of positive targets.
Value BceWithLogits(Value x, Value target, Value pos_weight = {}, Reduction reduction = Reduction::kMean,
                    Loc loc = Loc::Here());
Value SigmoidFocal(Value x, Value target, double alpha = 0.25, double gamma = 2, Reduction reduction = Reduction::kMean,
                   Loc loc = Loc::Here());
Value SoftMargin(Value x, Value y, Reduction reduction = Reduction::kMean, Loc loc = Loc::Here());

// y is positive or negative, its size counts in hinge and margin_ranking.
Value Hinge(Value x, Value y, double margin = 1, Reduction reduction = Reduction::kMean, Loc loc = Loc::Here());
Value HingeEmbedding(Value x, Value y, double margin = 1, Reduction reduction = Reduction::kMean,
                     Loc loc = Loc::Here());
Value MarginRanking(Value a, Value b, Value y, double margin = 0, Reduction reduction = Reduction::kMean,
                    Loc loc = Loc::Here());
Value MultiMargin(Value x, Value labels, int64_t p = 1, double margin = 1, Reduction reduction = Reduction::kMean,
                  Loc loc = Loc::Here());
Value CosineSimilarity(Value a, Value b, int64_t axis = -1, double epsilon = 1e-8, Loc loc = Loc::Here());
Value CosineEmbedding(Value a, Value b, Value y, double margin = 0, Reduction reduction = Reduction::kMean,
                      Loc loc = Loc::Here());
struct TripletMarginOptions {
  double margin = 1;
  int64_t p = 2;
  double epsilon = 1e-6;
  Reduction reduction = Reduction::kMean;
};
Value TripletMargin(Value anchor, Value positive, Value negative, TripletMarginOptions options = {},
                    Loc loc = Loc::Here());

}  // namespace agc
