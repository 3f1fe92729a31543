// Layers: aggregates with a name. Calling one declares its states (`<name>.weight`, `<name>.bias`) on first use in a
// module and shares them afterwards.
//   agc::nn::Linear f1{.name = "f1", .in = 400, .out = 120};
//   agc::Tensor y = Relu(f1(x));                         // [n,400] -> [n,120]
// Weights start uniform in +-1/sqrt(fan_in), as LeCun et al. (1998), "Efficient BackProp", section 4.6, up to its
// factor.
#pragma once
#include <string>

#include "compiler/module.h"

namespace agc::nn {

struct Linear {
  std::string name = {};
  int64_t in = 0, out = 0;
  bool bias = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,in] -> [n,out]
};

struct Conv2d {
  std::string name = {};
  int64_t in = 0, out = 0;
  int64_t kernel = 3, stride = 1, pad = 0;
  bool bias = true;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // [n,in,h,w] -> [n,out,h',w']
};

struct LayerNorm {
  std::string name = {};
  int64_t size = 0;
  double epsilon = 1e-5;
  Tensor operator()(Tensor x, Loc loc = Loc::Here()) const;  // normalises the last axis, of `size`
};

}  // namespace agc::nn
