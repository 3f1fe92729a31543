// The C++ functions of ir/ops/random.cc beside those of ir/build.h, and what is made of random numbers.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/build_index.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"

namespace agc {

Value FoldIn(Value key, Value data, Loc loc) { return Emit("random_fold_in", {key, data}, {}, loc); }
Value SplitKey(Value key, int64_t n, Loc loc) { return Emit("random_split", {key}, {Attr{"n", n}}, loc); }
Value KeyAt(Value keys, int64_t index, Loc loc) {
  return Reshape(Slice(keys, {index, 0}, {index + 1, 2}, {}, loc), {2}, loc);
}

// Rounding may reach hi: the largest f32 below it stands for that.
Value RandomUniform(Value key, int64_t stream, Dims dims, double lo, double hi, Loc loc) {
  if (key.valid() && !(lo < hi))
    return Poison(*key.builder, loc,
                  absl::StrCat("random_uniform: lo is ", lo, " and hi is ", hi, ", expected lo below hi"));
  const Value u = RandomUniform(key, stream, dims, loc);
  const Value v = Add(Mul(u, ScalarLike(u, hi - lo, loc), loc), ScalarLike(u, lo, loc), loc);
  return Minimum(v, ScalarLike(v, std::nextafter(static_cast<float>(hi), -HUGE_VALF), loc), loc);
}
Value RandomNormal(Value key, int64_t stream, Dims dims, double mean, double stddev, Loc loc) {
  const Value z = RandomNormal(key, stream, dims, loc);
  return Add(Mul(z, ScalarLike(z, stddev, loc), loc), ScalarLike(z, mean, loc), loc);
}
Value TruncatedNormal(Value key, int64_t stream, Dims dims, double lo, double hi, Loc loc) {
  return Emit("random_truncated_normal", {key},
              {Attr{"stream", stream}, Attr{"shape", dims}, Attr{"lo", lo}, Attr{"hi", hi}}, loc);
}
Value RandomExponential(Value key, int64_t stream, Dims dims, Loc loc) {
  return Emit("random_exponential", {key}, {Attr{"stream", stream}, Attr{"shape", dims}}, loc);
}
Value RandomGumbel(Value key, int64_t stream, Dims dims, Loc loc) {
  return Emit("random_gumbel", {key}, {Attr{"stream", stream}, Attr{"shape", dims}}, loc);
}
Value RandomInt(Value key, int64_t stream, Dims dims, int64_t lo, int64_t hi, DType dtype, Loc loc) {
  return Emit("random_int", {key},
              {Attr{"stream", stream}, Attr{"shape", dims}, Attr{"lo", lo}, Attr{"hi", hi}, Attr{"dtype", dtype}}, loc);
}
Value Bernoulli(Value key, int64_t stream, Value p, Loc loc) {
  return Emit("random_bernoulli", {key, p}, {Attr{"stream", stream}}, loc);
}
Value Permutation(Value key, int64_t stream, int64_t n, Loc loc) {
  return Emit("random_permutation", {key}, {Attr{"stream", stream}, Attr{"n", n}}, loc);
}
Value Shuffle(Value x, Value key, int64_t stream, int64_t axis, Loc loc) {
  if (!x.valid()) return x;
  if (axis < -x.rank() || axis >= x.rank())
    return Poison(*x.builder, loc,
                  absl::StrCat("shuffle: axis is ", axis, ", and the operand is ", ToString(x.type())));
  const int64_t n = x.dim(static_cast<int>(PositiveAxis(axis, x.rank())));
  return Take(x, Permutation(key, stream, n, loc), axis, loc);
}
Value Categorical(Value key, int64_t stream, Value logits, int64_t axis, Loc loc) {
  return Emit("random_categorical", {key, logits}, {Attr{"stream", stream}, Attr{"axis", axis}}, loc);
}
Value Multinomial(Value key, int64_t stream, Value logits, int64_t n, bool replacement, Loc loc) {
  if (!logits.valid()) return logits;
  if (logits.rank() == 0)
    return Poison(*logits.builder, loc,
                  absl::StrCat("multinomial: logits are ", ToString(logits.type()), ", expected rank 1 or more"));
  if (!replacement) {
    const Value noisy = Add(CastTo(logits, DType::kF32, loc), RandomGumbel(key, stream, logits.dims(), loc), loc);
    return TopK(noisy, n, -1, true, loc).indices;
  }
  Ints shape = logits.dims();
  shape.insert(shape.end() - 1, n);
  return Categorical(key, stream, Broadcast(ExpandDims(logits, {logits.rank() - 1}, loc), shape, loc), -1, loc);
}

Value DropoutShared(Value x, Value key, int64_t stream, double rate, Ints shared, Loc loc) {
  if (!x.valid()) return x;
  Ints shape = x.dims();
  for (int64_t axis : shared) {
    if (axis < -x.rank() || axis >= x.rank())
      return Poison(*x.builder, loc,
                    absl::StrCat("dropout: axis is ", axis, ", and the operand is ", ToString(x.type())));
    shape[PositiveAxis(axis, x.rank())] = 1;
  }
  const Value ones = Full(*x.builder, {x.dtype(), shape}, 1, loc);
  const Value factor = Broadcast(Dropout(ones, key, stream, rate, loc), x.dims(), loc);
  const Value kept = NotEqual(factor, FullLike(factor, 0, loc), loc);  // what is dropped may be infinite
  return Where(kept, Mul(x, factor, loc), FullLike(x, 0, loc), loc);
}

Value AlphaDropout(Value x, Value key, int64_t stream, double rate, Loc loc) {
  if (!x.valid()) return x;
  if (!(rate >= 0 && rate < 1))
    return Poison(*x.builder, loc, absl::StrCat("dropout: rate is ", rate, ", expected 0 or more and less than 1"));
  constexpr double kLow = -1.7580993408473766;  // the limit of selu at minus infinity
  const double keep = 1 - rate, a = 1 / std::sqrt(keep + kLow * kLow * keep * rate), b = -a * rate * kLow;
  const Value u = RandomUniform(key, stream, x.dims(), loc);
  const Value kept = GreaterEqual(u, FullLike(u, rate, loc), loc);
  const Value scaled = Add(Mul(x, ScalarLike(x, a, loc), loc), ScalarLike(x, b, loc), loc);
  return Where(kept, scaled, FullLike(x, a * kLow + b, loc), loc);
}

}  // namespace agc
