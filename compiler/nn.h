// Layers: aggregates with a name. Calling one declares its states (`<name>.weight`, `<name>.bias`) on first use in a
// module and shares them afterwards.
//   agc::nn::Linear f1{.name = "f1", .in = 400, .out = 120};
//   agc::Tensor y = Relu(f1(x));                         // [n,400] -> [n,120]
// Weights start uniform in +-1/sqrt(fan_in), as LeCun et al. (1998), "Efficient BackProp", section 4.6, up to its
// factor. `train` chooses between what a layer does in a training step and in inference. Optimisers leave layers with
// `trainable = false` alone; the first use of a layer in a module says which it is.
#pragma once
#include <string>

#include "compiler/module.h"
#include "ir/build_nn.h"

namespace agc::nn {

struct Linear {
  std::string name = {};
  int64_t in = 0, out = 0;
  bool bias = true;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [...,in] -> [...,out]
};

// Convolutions with one kernel extent, stride, padding and dilation for all spatial axes.
struct Conv1d {
  std::string name = {};
  int64_t in = 0, out = 0;
  int64_t kernel = 3, stride = 1, pad = 0, dilation = 1, groups = 1;
  bool bias = true;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,in,l] -> [n,out,l']
};

struct Conv2d {
  std::string name = {};
  int64_t in = 0, out = 0;
  int64_t kernel = 3, stride = 1, pad = 0, dilation = 1, groups = 1;
  bool bias = true;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,in,h,w] -> [n,out,h',w']
};

struct Conv3d {
  std::string name = {};
  int64_t in = 0, out = 0;
  int64_t kernel = 3, stride = 1, pad = 0, dilation = 1, groups = 1;
  bool bias = true;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,in,d,h,w] -> [n,out,d',h',w']
};

struct ConvTranspose2d {
  std::string name = {};
  int64_t in = 0, out = 0;
  int64_t kernel = 3, stride = 1, pad = 0, output_pad = 0, dilation = 1, groups = 1;
  bool bias = true;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,in,h,w] -> [n,out,h',w']
};

// A table of vectors: integers [...] -> [..., size]. Weights start normal with the given deviation.
struct Embedding {
  std::string name = {};
  int64_t count = 0, size = 0;
  DType dtype = DType::kF32;
  double deviation = 0.02;
  bool trainable = true;
  Tensor operator()(Tensor ids, Loc loc = Loc::Here()) const;
};

// Zeroes elements with probability `rate` while training. The key u32[2] must differ from step to step; every call has
// a random stream of its own.
struct Dropout {
  double rate = 0.5;
  Tensor operator()(Tensor x, Tensor key, bool train, Loc loc = Loc::Here()) const;
};

// ---------------------------------------------------------------- normalisation; states `.scale` and `.shift`

struct LayerNorm {
  std::string name = {};
  int64_t size = 0;
  double epsilon = 1e-5;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // normalises the last axis, of `size`
};

struct RmsNorm {
  std::string name = {};
  int64_t size = 0;
  double epsilon = 1e-5;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // the last axis, of `size`
};

struct GroupNorm {
  std::string name = {};
  int64_t groups = 1, channels = 0;
  double epsilon = 1e-5;
  bool trainable = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,channels,...]
};

// Ioffe and Szegedy (2015), "Batch normalization". Training uses the batch's statistics and moves the states
// `.running_mean` and `.running_variance` by `momentum` towards its mean and unbiased variance; inference uses them.
// All four states are f32 for f16 and bf16.
struct BatchNorm {
  std::string name = {};
  int64_t channels = 0;
  double momentum = 0.1, epsilon = 1e-5;
  bool trainable = true;
  Tensor operator()(Tensor x, bool train, Loc loc = Loc::Here()) const;  // [n,channels,...]
};

// ---------------------------------------------------------------- attention

// Linear layers `.q`, `.k`, `.v` and `.out` around attention, [batch, rows, size] -> [batch, rows, size]. With fewer
// kv_heads than heads several queries share keys and values; with rotary_base > 0 queries and keys are rotated by their
// positions.
struct MultiHeadAttention {
  std::string name = {};
  int64_t size = 0, heads = 1, kv_heads = 0;  // kv_heads 0: as many as heads
  bool bias = true;
  double rotary_base = 0;
  bool trainable = true;
  Tensor operator()(Tensor x, AttentionOptions options = {}, Loc loc = Loc::Here()) const;
  // Keys and values from `memory` [batch, other rows, size].
  Tensor operator()(Tensor x, Tensor memory, AttentionOptions options = {}, Loc loc = Loc::Here()) const;
};

// ---------------------------------------------------------------- recurrence

// Layers over [steps, batch, in], whose results are [steps, batch, directions * hidden] and the last states
// [directions, batch, hidden]; states `.w`, `.r` and `.bias` as ops rnn, gru and lstm have them. Options give start
// states and lengths.
struct Rnn {
  std::string name = {};
  int64_t in = 0, hidden = 0;
  bool bias = true;
  bool trainable = true;
  RecurrentResult operator()(Tensor x, RecurrentOptions options = {}, Loc loc = Loc::Here()) const;
};
struct Gru {
  std::string name = {};
  int64_t in = 0, hidden = 0;
  bool bias = true;
  bool trainable = true;
  RecurrentResult operator()(Tensor x, RecurrentOptions options = {}, Loc loc = Loc::Here()) const;
};
struct Lstm {
  std::string name = {};
  int64_t in = 0, hidden = 0;
  bool bias = true;
  bool trainable = true;
  RecurrentResult operator()(Tensor x, RecurrentOptions options = {}, Loc loc = Loc::Here()) const;
};

}  // namespace agc::nn
