// Every gradient rule of the op table in f64, on each row's sample: first and second order against finite differences,
// forward against reverse, and the symmetry of second derivatives.
#include "gtest/gtest.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "test/unit/gradients_match.h"

namespace agc::test {
namespace {

std::vector<TensorType> OperandTypes(const OpDef& def) {
  std::vector<TensorType> types;
  for (absl::string_view shape : def.sample.shapes) {
    if (!shape.empty()) types.push_back(*ParseType(shape));
  }
  while (static_cast<int>(types.size()) < def.arity.min) types.push_back({DType::kF32, {2, 3}});
  return types;
}

HostTensor Random(TensorType type, double lo, double hi, std::mt19937_64& rng) {
  const bool real = IsFloat(type.dtype);
  if (real) type.dtype = DType::kF64;
  HostTensor t = HostTensor::Zeros(type);
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double u = std::generate_canonical<double, 53>(rng);
    t.set(i, Scalar::Of(type.dtype, real ? lo + u * (hi - lo) : std::floor(lo + u * (hi - lo + 1))));
  }
  return t;
}

// The elements of a tuple, or the value itself.
Tensors Parts(Tensor y) {
  if (!y.valid()) return {y};
  const size_t n = y.builder->graph->op(y.id).types.size();
  if (n == 1) return {y};
  Tensors parts;
  for (size_t k = 0; k < n; ++k) parts.push_back(Get(y, static_cast<int64_t>(k)));
  return parts;
}

Derivatives Of(const OpDef& def, const MatchOptions& options) {
  const std::vector<TensorType> types = OperandTypes(def);
  std::mt19937_64 rng(options.seed);
  std::vector<HostTensor> inputs;
  for (const TensorType& type : types) inputs.push_back(Random(type, def.sample.lo, def.sample.hi, rng));
  const auto call = [&def](TensorSpan x) {
    const absl::StatusOr<std::vector<Attr>> attrs = ParseAttrs(def, def.sample.attrs);
    EXPECT_TRUE(attrs.ok()) << attrs.status();
    return Parts(x.empty() ? Tensor() : Emit(def.name, x, *attrs, {}));
  };
  return {call, types, inputs, options};
}

std::vector<const OpDef*> DifferentiableOps() {
  std::vector<const OpDef*> ops;
  for (const OpDef* def : AllOps()) {
    if (def->sample.differentiable && !def->numpy.empty()) ops.push_back(def);
  }
  return ops;
}

class EveryOp : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EveryOp, FirstOrderMatchesFiniteDifferences) {
  Derivatives d = Of(*GetParam(), {.order = 1, .difference = 1e-7, .seed = 1});
  ASSERT_EQ(d.Build(), absl::OkStatus());
  EXPECT_EQ(d.CheckFirst(), "");
}

TEST_P(EveryOp, ForwardMatchesReverseAndFiniteDifferences) {
  Derivatives d = Of(*GetParam(), {.order = 1, .difference = 1e-7, .seed = 2});
  ASSERT_EQ(d.Build(), absl::OkStatus());
  EXPECT_EQ(d.CheckTangents(), "");
}

TEST_P(EveryOp, SecondOrderMatchesFiniteDifferences) {
  Derivatives d = Of(*GetParam(), {.order = 2, .difference = 1e-6, .seed = 2});
  ASSERT_EQ(d.Build(), absl::OkStatus());
  EXPECT_EQ(d.CheckSecond(), "");
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOp, ::testing::ValuesIn(DifferentiableOps()),
                         [](const ::testing::TestParamInfo<const OpDef*>& info) {
                           return std::string(info.param->name);
                         });

}  // namespace
}  // namespace agc::test
