// LABELS: vulkan
// Rows of the lowest values, and gradients of products with zeros, on the device: the bits of the evaluator.
#include <limits>

#include "test/unit/edge_scene.h"

namespace agc::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void ExpectSame(const std::vector<EdgeInput>& inputs, const std::vector<std::string>& lines) {
  const Program p = EdgeProgram(inputs, lines);
  const EvalInputs in = EdgeInputs(p, inputs);
  EXPECT_EQ(Difference(OnDevice(p, "g", in), Evaluated(p, "g", in, EvalMode::kExact), 0), "") << lines[0];
}

TEST(EdgesOnDevice, PositionsInRowsOfTheLowestValue) {
  for (const auto& [type, lowest] :
       {std::pair{"f32", -kInf}, {"f16", -kInf}, {"i32", -2147483648.0}, {"u32", 0.0}, {"i8", -128.0}, {"u8", 0.0}}) {
    for (int n : {4, 1000}) {
      const std::vector<EdgeInput> x = {{absl::StrCat(type, "[3,", n, "]"), {lowest}}};
      ExpectSame(x, {"i32[3] = argmax %x0 {axis = 1}"});
      ExpectSame(x, {"i32[3] = argmax %x0 {axis = 1, select_last_index = true}"});
    }
    const std::vector<EdgeInput> x = {{absl::StrCat(type, "[1,1,8]"), {lowest}}};
    ExpectSame(x, {absl::StrCat("(", type, "[1,1,2], i32[1,1,2]) = adaptive_max_pool_with_index %x0 {size = [2]}"),
                   "i32[1,1,2] = get %0 {index = 1}"});
    ExpectSame(x, {"i32[1,1,4] = max_pool_indices %x0 {window = [3], stride = [2], pad = [1, 0]}"});
  }
}

TEST(EdgesOnDevice, ProductsWithZeros) {
  ExpectSame({{"f32[2,4]", {2, 0, 3, 5, 0, 7, 0, 1}}, {"f32[2]", {1}}},
             {"f32[2] = reduce_prod %x0 {axes = [1]}", "f32[2,4] = vjp %0, %x1, %x0"});
  ExpectSame(
      {{"f32[1,2,1]", {2, 3}}, {"i32[1,5]", {1, 1, 0, 1, 7}}, {"f32[1,5,1]", {0, 5, 4, 7, 9}}, {"f32[1,2,1]", {1}}},
      {"f32[1,2,1] = scatter_rows %x0, %x1, %x2 {mode = \"mul\"}", "f32[1,5,1] = vjp %0, %x3, %x2"});
}

}  // namespace
}  // namespace agc::test
