#include "compiler/import/ops/random.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/import/ops/tables.h"
#include "compiler/module.h"
#include "ir/build.h"
#include "ir/build_index.h"

namespace agc::onnx {

namespace {

constexpr absl::string_view kCounter = "random.run";

// 32 bits of the seed: an integer of Dropout, a float elsewhere.
int64_t SeedOf(Call& c) {
  const auto& attrs = c.node().attrs;
  const bool whole = std::any_of(attrs.begin(), attrs.end(), [](const AttributeProto& a) {
    return a.name == "seed" && a.type == AttributeProto::kInt;
  });
  if (whole) return c.integer("seed", 0) & 0xffffffff;
  const auto seed = static_cast<float>(c.number("seed", 0));
  uint32_t bits = 0;
  std::memcpy(&bits, &seed, sizeof(bits));
  return bits;
}

}  // namespace

// The seed attribute, or 0, folded with the number of the run; the results are other ones with every run, and the same
// ones whenever a session starts.
Value RandomKey(Call& c) {
  Builder& b = c.builder();
  const bool known = b.program->FindState(kCounter) != nullptr && b.graph->FindState(kCounter).valid();
  const Value run = State(b, kCounter, {DType::kI32, {}}, {}, false, b.loc);
  if (!known) Update(b, kCounter, run + 1.0, b.loc);
  const Value key = CastTo(c.Constant(DType::kI64, {SeedOf(c), 0}), DType::kU32);
  return FoldIn(key, run);
}

int64_t NewStream(Call& c) { return c.builder().graph->random_streams++; }

Value UniformDraw(Call& c, Dims dims) { return RandomUniform(RandomKey(c), NewStream(c), std::move(dims)); }

namespace {

Dims ShapeOf(Call& c, bool like) {
  if (like) return c.in(0).dims();
  const Ints shape = c.ints("shape");
  return Dims(shape.begin(), shape.end());
}

template <bool like>
void UniformOp(Call& c) {
  const Dims dims = ShapeOf(c, like);
  const double low = c.number("low", 0), high = c.number("high", 1);
  const DType dtype = c.dtype("dtype", like ? c.in(0).dtype() : DType::kF32);
  c.out(CastTo(UniformDraw(c, dims) * (high - low) + low, dtype));
}

template <bool like>
void NormalOp(Call& c) {
  const Dims dims = ShapeOf(c, like);
  const double mean = c.number("mean", 0), scale = c.number("scale", 1);
  const DType dtype = c.dtype("dtype", like ? c.in(0).dtype() : DType::kF32);
  c.out(CastTo(RandomNormal(RandomKey(c), NewStream(c), dims) * scale + mean, dtype));
}

void BernoulliOp(Call& c) {
  const Value p = c.in(0);
  const DType dtype = c.dtype("dtype", p.dtype());
  c.out(CastTo(Less(UniformDraw(c, p.dims()), CastTo(p, DType::kF32)), dtype));
}

void MultinomialOp(Call& c) {
  const Value logits = c.in(0);
  const DType dtype = c.dtype("dtype", DType::kI32);
  const int64_t n = c.integer("sample_size", 1);
  c.out(CastTo(Multinomial(RandomKey(c), NewStream(c), logits, n, true), dtype));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Bernoulli", 15, BernoulliOp}, {"Multinomial", 7, MultinomialOp}, {"RandomNormal", 1, NormalOp<false>},
    {"RandomNormalLike", 1, NormalOp<true>}, {"RandomUniform", 1, UniformOp<false>}, {"RandomUniformLike", 1, UniformOp<true>},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kRandomOps(kRows);

}  // namespace agc::onnx
