#include "compiler/nn.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/build.h"

namespace agc::nn {
namespace {

Init Fan(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return {.kind = InitKind::kUniform, .a = -bound, .b = bound};
}

bool Check(Tensor x, bool holds, Loc loc, absl::string_view layer, const std::string& expected) {
  if (!x.valid() || holds) return x.valid();
  Poison(*x.builder, loc, absl::StrCat(layer, ": input is ", ToString(x.type()), ", expected ", expected));
  return false;
}

Tensor Poisoned(Tensor x) {
  x.poison = true;
  return x;
}

}  // namespace

Tensor Linear::operator()(Tensor x, Loc loc) const {
  if (!Check(x, x.rank() == 2 && x.dim(1) == in, loc, name, absl::StrCat("[n,", in, "]"))) return Poisoned(x);
  const Tensor w = State(x, absl::StrCat(name, ".weight"), {x.dtype(), {in, out}}, Fan(in), true, loc);
  const Tensor y = Matmul(x, w, loc);
  if (!bias) return y;
  return Add(y, State(x, absl::StrCat(name, ".bias"), {x.dtype(), {out}}, Fan(in), true, loc), loc);
}

Tensor Conv2d::operator()(Tensor x, Loc loc) const {
  if (!Check(x, x.rank() == 4 && x.dim(1) == in, loc, name, absl::StrCat("[n,", in, ",h,w]"))) return Poisoned(x);
  const int64_t fan_in = in * kernel * kernel;
  const Tensor w =
      State(x, absl::StrCat(name, ".weight"), {x.dtype(), {out, in, kernel, kernel}}, Fan(fan_in), true, loc);
  const Tensor y = agc::Conv2d(x, w, {.stride = {stride, stride}, .pad = {pad, pad, pad, pad}}, loc);
  if (!bias) return y;
  const Tensor b = State(x, absl::StrCat(name, ".bias"), {x.dtype(), {out}}, Fan(fan_in), true, loc);
  return Add(y, Reshape(b, {out, 1, 1}, loc), loc);
}

Tensor LayerNorm::operator()(Tensor x, Loc loc) const {
  if (!Check(x, x.rank() >= 1 && x.dim(-1) == size, loc, name, absl::StrCat("[...,", size, "]"))) return Poisoned(x);
  const Tensor scale = State(x, absl::StrCat(name, ".scale"), {x.dtype(), {size}}, {.a = 1}, true, loc);
  const Tensor shift = State(x, absl::StrCat(name, ".shift"), {x.dtype(), {size}}, {}, true, loc);
  return agc::LayerNorm(x, scale, shift, epsilon, loc);
}

}  // namespace agc::nn
