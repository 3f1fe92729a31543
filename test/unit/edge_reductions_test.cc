// Reductions where elements equal what a reduction starts from, where sums and products leave a narrow type's range,
// and their gradients there.
#include <limits>

#include "test/unit/edge_scene.h"

namespace agc::test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Ends {
  const char* dtype;
  double lowest, highest;
};
constexpr Ends kEnds[] = {{"f64", -kInf, kInf},
                          {"f32", -kInf, kInf},
                          {"f16", -kInf, kInf},
                          {"bf16", -kInf, kInf},
                          {"i64", -9223372036854775808.0, 9223372036854775807.0},
                          {"i32", -2147483648.0, 2147483647},
                          {"i16", -32768, 32767},
                          {"i8", -128, 127},
                          {"u64", 0, 18446744073709551615.0},
                          {"u32", 0, 4294967295.0},
                          {"u16", 0, 65535},
                          {"u8", 0, 255}};

// The lowest value equals what argmax starts from, and still is an element.
TEST(EdgeReductions, ArgOfRowsOfTheLowestValue) {
  for (const Ends& e : kEnds) {
    const auto row = [&](double v) { return std::vector<EdgeInput>{{absl::StrCat(e.dtype, "[2,4]"), {v}}}; };
    EXPECT_THAT(EdgesOf(row(e.lowest), {"i32[2] = argmax %x0 {axis = 1}"}), ElementsAre(0, 0)) << e.dtype;
    EXPECT_THAT(EdgesOf(row(e.lowest), {"i32[2] = argmax %x0 {axis = 1, select_last_index = true}"}), ElementsAre(3, 3))
        << e.dtype;
    EXPECT_THAT(EdgesOf(row(e.highest), {"i32[2] = argmin %x0 {axis = 1, select_last_index = true}"}),
                ElementsAre(3, 3))
        << e.dtype;
    EXPECT_THAT(EdgesOf(row(e.highest), {"i32[4] = argmin %x0 {axis = 0}"}), ElementsAre(0, 0, 0, 0)) << e.dtype;
  }
}

// Long enough for a workgroup per row, whose idle lanes start from nothing.
TEST(EdgeReductions, ArgOfLongRowsOfTheLowestValue) {
  EXPECT_THAT(EdgesOf({{"f32[3,1000]", {-kInf}}}, {"i32[3] = argmax %x0 {axis = 1, select_last_index = true}"}),
              ElementsAre(999, 999, 999));
  EXPECT_THAT(EdgesOf({{"u8[3,1000]", {0}}}, {"i32[3] = argmax %x0 {axis = 1}"}), ElementsAre(0, 0, 0));
}

TEST(EdgeReductions, PoolingOfTheLowestValueNamesAnElement) {
  for (const Ends& e : kEnds) {
    const std::vector<EdgeInput> x = {{absl::StrCat(e.dtype, "[1,1,8]"), {e.lowest}}};
    const std::string t = e.dtype;
    EXPECT_THAT(EdgesOf(x, {"(" + t + "[1,1,2], i32[1,1,2]) = adaptive_max_pool_with_index %x0 {size = [2]}",
                            "i32[1,1,2] = get %0 {index = 1}"}),
                ElementsAre(0, 4))
        << e.dtype;
    EXPECT_THAT(EdgesOf(x, {"i32[1,1,4] = max_pool_indices %x0 {window = [3], stride = [2], pad = [1, 0]}"}),
                ElementsAre(0, 1, 3, 5))
        << e.dtype;
  }
}

TEST(EdgeReductions, PoolingOfTheLowestValuePassesItsGradient) {
  const std::vector<EdgeInput> x = {{"f32[1,1,8]", {-kInf}}, {"f32[1,1,2]", {2, 3}}};
  EXPECT_THAT(EdgesOf(x, {"f32[1,1,2] = adaptive_max_pool %x0 {size = [2]}", "f32[1,1,8] = vjp %0, %x1, %x0"}),
              ElementsAre(2, 0, 0, 0, 3, 0, 0, 0));
  EXPECT_THAT(EdgesOf(x, {"f32[1,1,2] = max_pool1d %x0 {window = [4]}", "f32[1,1,8] = vjp %0, %x1, %x0"}),
              ElementsAre(2, 0, 0, 0, 3, 0, 0, 0));
}

// 65536 is beyond f16, but a part of 65536 is not.
TEST(EdgeReductions, MeanOfManyHalvesHasAGradient) {
  const Doubles g = EdgesOf({{"f16[1,1,256,256]", {1}}, {"f16[]", {16384}}},
                            {"f16[] = reduce_mean %x0", "f16[1,1,256,256] = vjp %0, %x1, %x0"});
  EXPECT_THAT(g, testing::Each(0.25));
}

// The product of the others, not the product over the element.
TEST(EdgeReductions, GradientOfAProductDividesNothing) {
  EXPECT_THAT(EdgesOf({{"f16[3]", {0.0001, 0.0001, 16384}}, {"f16[]", {16384}}},
                      {"f16[] = reduce_prod %x0", "f16[3] = vjp %0, %x1, %x0"}, 1e-3),
              testing::Pointwise(testing::DoubleNear(30), Doubles{26843, 26843, 0}));
  EXPECT_THAT(EdgesOf({{"f32[2,4]", {2, 0, 3, 5, 0, 7, 0, 1}}, {"f32[2]", {1, 1}}},
                      {"f32[2] = reduce_prod %x0 {axes = [1]}", "f32[2,4] = vjp %0, %x1, %x0"}),
              ElementsAre(0, 30, 0, 0, 0, 0, 0, 0));
}

// Row i of the Hessian is the product of all but i and another one, whichever elements are 0.
TEST(EdgeReductions, SecondDerivativesOfAProductAtZeros) {
  const Doubles expected[] = {{0, 15, 0}, {15, 0, 0}, {0, 0, 0}};
  for (int i = 0; i < 3; ++i) {
    Doubles unit(3, 0.0);
    unit[static_cast<size_t>(i)] = 1;
    EXPECT_THAT(EdgesOf({{"f32[4]", {0, 0, 5, 3}}, {"f32[4]", {unit[0], unit[1], unit[2], 0}}},
                        {"f32[] = reduce_prod %x0", "f32[4] = gradient %0, %x0", "f32[4] = mul %1, %x1",
                         "f32[] = reduce_sum %2", "f32[4] = gradient %3, %x0",
                         "f32[3] = slice %4 {start = [0], limit = [3], stride = [1]}"}),
                ElementsAreArray(expected[i]));
  }
}

}  // namespace
}  // namespace agc::test
