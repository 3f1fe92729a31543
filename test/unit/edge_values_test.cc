// Values and gradients where arithmetic leaves the numbers: rows of minus infinity, norms to the power of infinity,
// zeros among factors, positions and counts beyond 16 and 32 bits, padding of many periods.
#include <limits>

#include "ir/build_index.h"
#include "ir/build_nn.h"
#include "ir/build_window.h"
#include "test/unit/edge_scene.h"
#include "test/unit/value_scene.h"

namespace agc::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::NanSensitiveDoubleEq;

constexpr double kInf = std::numeric_limits<double>::infinity();

auto Near(const Doubles& expected) { return testing::Pointwise(testing::DoubleNear(1e-6), expected); }

// ---------------------------------------------------------------- logarithms of sums, softmax

// exp(x - y) of a y that was rounded to f16 is not.
TEST(EdgeValues, WeightsOfNarrowLogSumExpAreExact) {
  for (const char* op : {"logsumexp %x0 {axis = 0}", "reduce_log_sum_exp %x0"}) {
    EXPECT_THAT(
        EdgesOf({{"f16[1024]", {0}}, {"f16[]", {1}}}, {absl::StrCat("f16[] = ", op), "f16[1024] = vjp %0, %x1, %x0"}),
        Each(1.0 / 1024))
        << op;
  }
}

TEST(EdgeValues, LogSumExpOfNothing) {
  EXPECT_THAT(EdgesOf({{"f32[2,0]", {}}}, {"f32[2] = logsumexp %x0"}), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(EdgesOf({{"f32[2,0]", {}}}, {"f32[2] = reduce_log_sum_exp %x0 {axes = [1]}"}), ElementsAre(-kInf, -kInf));
}

// Rows of -inf have no softmax; a branch that was not taken asks for none.
TEST(EdgeValues, DeadRowsOfMinusInfinityPassNothing) {
  const std::vector<EdgeInput> x = {{"f32[2,3]", {-kInf, -kInf, -kInf, 0, 0, 0}}, {"f32[2,3]", {0, 0, 0, 3, 0, 0}}};
  EXPECT_THAT(EdgesOf({x[0], {"f32[2]", {0, 3}}}, {"f32[2] = logsumexp %x0", "f32[2,3] = vjp %0, %x1, %x0"}, 1e-6),
              Near({0, 0, 0, 1, 1, 1}));
  EXPECT_THAT(EdgesOf(x, {"f32[2,3] = softmax %x0", "f32[2,3] = vjp %0, %x1, %x0"}, 1e-6),
              Near({0, 0, 0, 2.0 / 3, -1.0 / 3, -1.0 / 3}));
  EXPECT_THAT(EdgesOf(x, {"f32[2,3] = log_softmax %x0", "f32[2,3] = vjp %0, %x1, %x0"}, 1e-6),
              Near({0, 0, 0, 2, -1, -1}));
}

// ---------------------------------------------------------------- norms, losses, normalisation

TEST(EdgeValues, PoolingByTheInfiniteNormTakesTheLargest) {
  const std::vector<EdgeInput> x = {{"f32[1,1,4]", {1, -3, 0, 0}}, {"f32[1,1,2]", {5, 0}}};
  EXPECT_THAT(EdgesOf(x, {"f32[1,1,2] = lp_pool1d %x0 {window = [2], p = inf}"}), ElementsAre(3, 0));
  EXPECT_THAT(EdgesOf(x, {"f32[1,1,1] = global_lp_pool %x0 {p = inf}"}), ElementsAre(3));
  EXPECT_THAT(EdgesOf(x, {"f32[1,1,2] = lp_pool1d %x0 {window = [2], p = inf}", "f32[1,1,4] = vjp %0, %x1, %x0"}),
              ElementsAre(0, -5, 0, 0));
}

TEST(EdgeValues, KlDivOfImpossibleTargetsIsZero) {
  EXPECT_THAT(EdgesOf({{"f32[3]", {-1, -kInf, 0}}, {"f32[3]", {-kInf, -kInf, 0}}},
                      {"f32[3] = kl_div %x0, %x1 {log_target = true, reduction = \"none\"}"}),
              ElementsAre(0, 0, 0));
}

TEST(EdgeValues, EqualRowsNormaliseToZeroWithoutEpsilon) {
  const std::vector<EdgeInput> x = {{"f32[2,2]", {7, 7, 1, 3}}, {"f32[2,2]", {1, 2, 0, 0}}};
  EXPECT_THAT(EdgesOf(x, {"f32[2,2] = mean_variance_norm %x0 {axes = [1], epsilon = 0}"}), ElementsAre(0, 0, -1, 1));
  EXPECT_THAT(
      EdgesOf(x, {"f32[2,2] = mean_variance_norm %x0 {axes = [1], epsilon = 0}", "f32[2,2] = vjp %0, %x1, %x0"}),
      ElementsAre(0, 0, 0, 0));
}

TEST(EdgeValues, SharedDropoutDropsInfinity) {
  ValueScene s;
  const Value x = s.Input({DType::kF32, {4, 64}}, {kInf}), key = s.Input({DType::kU32, {2}}, {3});
  int dropped = 0;
  for (double v : s.Run(DropoutShared(x, key, 1, 0.5, {0}))) {
    EXPECT_TRUE(v == 0 || v == kInf) << v;
    dropped += v == 0;
  }
  EXPECT_GT(dropped, 0);
}

// A side of 9,999 channels reaches no further than the channels go.
TEST(EdgeValues, NormalisationOverMoreChannelsThanThereAre) {
  const std::vector<EdgeInput> x = {{"f32[1,3,1]", {1, 2, 3}}};
  EXPECT_THAT(EdgesOf(x, {"f32[1,3,1] = lrn %x0 {size = 10000, alpha = 10000, beta = 1}"}, 1e-6),
              Near({1.0 / 15, 2.0 / 15, 3.0 / 15}));
}

// ---------------------------------------------------------------- products

// Updates 0, 1 and 3 fall on row 1, update 2 on row 0, the last is dropped.
TEST(EdgeValues, GradientOfAScatteredProductDividesNothing) {
  const std::vector<EdgeInput> x = {
      {"f32[1,2,1]", {2, 3}}, {"i32[1,5]", {1, 1, 0, 1, 7}}, {"f32[1,5,1]", {0, 5, 4, 7, 9}}, {"f32[1,2,1]", {1, 1}}};
  const std::string product = "f32[1,2,1] = scatter_rows %x0, %x1, %x2 {mode = \"mul\"}";
  EXPECT_THAT(EdgesOf(x, {product, "f32[1,5,1] = vjp %0, %x3, %x2"}), ElementsAre(105, 0, 2, 0, 0));
  EXPECT_THAT(EdgesOf(x, {product, "f32[1,2,1] = vjp %0, %x3, %x0"}), ElementsAre(4, 0));
  // The row of the Hessian that belongs to update 1: only the factor 0 of update 0 is left to differentiate by.
  EXPECT_THAT(EdgesOf({x[0], x[1], x[2], {"f32[1,5,1]", {0, 1, 0, 0, 0}}},
                      {product, "f32[] = reduce_sum %0", "f32[1,5,1] = gradient %1, %x2", "f32[1,5,1] = mul %2, %x3",
                       "f32[] = reduce_sum %3", "f32[1,5,1] = gradient %4, %x2"}),
              ElementsAre(21, 0, 0, 0, 0));
  EXPECT_THAT(
      EdgesOf(
          {{"f16[1,1,1]", {1024}}, {"i32[1,2]", {0, 0}}, {"f16[1,2,1]", {0.00006103515625}}, {"f16[1,1,1]", {1024}}},
          {"f16[1,1,1] = scatter_rows %x0, %x1, %x2 {mode = \"mul\"}", "f16[1,2,1] = vjp %0, %x3, %x2"}),
      ElementsAre(64, 64));
}

// ---------------------------------------------------------------- sizes

TEST(EdgeValues, PaddingOfManyPeriodsHasAGradient) {
  for (const char* mode : {"reflect", "wrap"}) {
    const std::string pad = absl::StrCat("f32[20003] = pad %x0 {low = [20000], high = [1], mode = \"", mode, "\"}");
    EXPECT_THAT(EdgesOf({{"f32[2]", {1, 2}}, {"f32[20003]", {1}}}, {pad, "f32[2] = vjp %0, %x1, %x0"}),
                ElementsAre(10002, 10001))
        << mode;
  }
  EXPECT_THAT(EdgesOf({{"f32[3]", {0}}, {"f32[4]", {1, 2, 4, 8}}},
                      {"f32[4] = pad %x0 {low = [-2], high = [3], mode = \"reflect\"}", "f32[3] = vjp %0, %x1, %x0"}),
              ElementsAre(4, 10, 1));
  EXPECT_THAT(EdgesOf({{"f32[3]", {0}}, {"f32[2]", {1, 2}}},
                      {"f32[2] = pad %x0 {low = [-4], high = [3], mode = \"edge\"}", "f32[3] = vjp %0, %x1, %x0"}),
              ElementsAre(0, 0, 3));
}

// 40,000 * 80,002 is beyond 32 bits: the last outputs stand where the last inputs do.
TEST(EdgeValues, ResizingOfLongAxesPlacesItsOutputs) {
  Doubles ramp(40000);
  for (size_t k = 0; k < ramp.size(); ++k) ramp[k] = static_cast<double>(k);
  const std::vector<std::string> up = {"f32[1,1,40001] = resize %x0 {size = [40001]}"};
  const Doubles y = EdgesOf({{"f32[1,1,40000]", ramp}}, up, 1e-6);
  ASSERT_EQ(y.size(), 40001u);
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[20000], 19999.5, 1e-2);
  EXPECT_EQ(y[40000], 39999);
  const Doubles dx =
      EdgesOf({{"f32[1,1,40000]", {0}}, {"f32[1,1,40001]", {1}}}, {up[0], "f32[1,1,40000] = vjp %0, %x1, %x0"}, 1e-4);
  double sum = 0;
  for (double v : dx) sum += v;
  EXPECT_NEAR(sum, 40001, 0.5);
}

TEST(EdgeValues, TransposedConvolutionBeyondItsTapsIsZero) {
  EXPECT_THAT(EdgesOf({{"f32[1,1,1]", {5}}, {"f32[1,1,1]", {7}}},
                      {"f32[1,1,2] = conv_transpose1d %x0, %x1 {pad = [3, 0], output_pad = [4], dilation = [5]}"}),
              ElementsAre(0, 0));
}

// The price of the form in which each side of a product is read by itself: docs/numerics.md.
TEST(EdgeValues, ATapThatIsMissingIsZeroTimesItsWeight) {
  EXPECT_THAT(EdgesOf({{"f32[1,1,2]", {1, 1}}, {"f32[1,1,2]", {kInf, 1}}}, {"f32[1,1,3] = conv_transpose1d %x0, %x1"}),
              ElementsAre(kInf, kInf, NanSensitiveDoubleEq(std::nan(""))));
}

TEST(EdgeValues, LiteralsAreValuesOfTheDType) {
  ValueScene s;
  const Value x = s.Input({DType::kU8, {2}}, {1});
  EXPECT_TRUE((x + 255.0).valid());
  EXPECT_FALSE((x + 300.0).valid());
  EXPECT_THAT(s.builder.status().message(), HasSubstr("literal 300 is not a value of u8; cast the tensor first"));
  ValueScene t;
  Full(t.builder, {DType::kI8, {2}}, 200);
  EXPECT_THAT(t.builder.status().message(), HasSubstr("constant: 200 is not a value of i8"));
}

TEST(EdgeValues, RangesOfRandomIntegersAreChecked) {
  ValueScene s;
  const Value key = s.Input({DType::kU32, {2}}, {3});
  EXPECT_FALSE(RandomInt(key, 0, {1}, 0, INT64_MIN, DType::kI64).valid());
  EXPECT_FALSE(RandomInt(key, 0, {1}, INT64_MIN, INT64_MAX, DType::kI64).valid());
  EXPECT_TRUE(RandomInt(key, 0, {1}, INT64_MIN, INT64_MIN + 2, DType::kI64).valid());
}

TEST(EdgeValues, ScalesOfResizingAreBounded) {
  for (double scale : {1e300, 1e-300, 0.0, std::nan("")}) {
    ValueScene s;
    const Value x = s.Input({DType::kF32, {1, 1, 4}}, {1});
    EXPECT_FALSE(ResizeBy(x, {scale}).valid()) << scale;
  }
}

}  // namespace
}  // namespace agc::test
