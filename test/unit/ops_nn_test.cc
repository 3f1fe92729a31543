// Shape rules and messages of contractions, pooling, gather, activations and losses.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/build.h"
#include "test/unit/op_calls.h"

namespace agc {
namespace {

std::string Outcome(const Case& c) {
  Scene scene;
  const Value y = Emit(c.op, scene.Inputs(c.operands), c.attrs, {});
  if (scene.builder.status().ok()) return ToString(scene.graph.op(y.id).types);
  const std::string message(scene.builder.status().message());
  return message.substr(0, 7) == "error: " ? message.substr(7) : message;
}

void CheckAll(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_EQ(Outcome(c), c.expected) << c.op;
}

TEST(Contract, ProductTypes) {
  CheckAll({
      {"matmul", {{F32, {2, 3}}, {F32, {3, 5}}}, {}, "f32[2,5]"},
      {"matmul", {{I8, {2, 3}}, {I8, {3, 5}}}, {}, "i8[2,5]"},
      {"matmul", {{F32, {2, 0}}, {F32, {0, 5}}}, {}, "f32[2,5]"},
      {"matmul", {{F32, {2, 784}}, {F32, {512, 10}}}, {}, "matmul: inner dimensions differ (784 and 512)"},
      {"matmul", {{F32, {3}}, {F32, {3, 5}}}, {}, "matmul: operand 0 is f32[3], expected rank 2"},
      {"matmul", {{F32, {2, 3}}, {F32, {3, 5, 1}}}, {}, "matmul: operand 1 is f32[3,5,1], expected rank 2"},
      {"matmul", {{F32, {2, 3}}, {F16, {3, 5}}}, {}, "matmul: operands are f32[2,3] and f16[3,5], cast one of them"},
      {"matmul",
       {{Bool, {2, 3}}, {Bool, {3, 5}}},
       {},
       "matmul: operand 0 is bool[2,3], expected a number type; cast it first"},
      {"matmul",
       {{F32, {int64_t{1} << 31, 1}}, {F32, {1, int64_t{1} << 31}}},
       {},
       "matmul: the result = [2147483648, 2147483648] is too large"},
      {"matmul", {{F32, {2, 3}}}, {}, "matmul: 1 operands given, 2 expected"},
      {"batch_matmul", {{F32, {7, 2, 3}}, {F32, {7, 3, 5}}}, {}, "f32[7,2,5]"},
      {"batch_matmul", {{F16, {6, 7, 2, 3}}, {F16, {6, 7, 3, 5}}}, {}, "f16[6,7,2,5]"},
      {"batch_matmul",
       {{F32, {7, 2, 3}}, {F32, {6, 3, 5}}},
       {},
       "batch_matmul: leading dimensions differ (f32[7,2,3] and f32[6,3,5])"},
      {"batch_matmul", {{F32, {7, 2, 3}}, {F32, {7, 4, 5}}}, {}, "batch_matmul: inner dimensions differ (3 and 4)"},
      {"batch_matmul",
       {{F32, {2, 3}}, {F32, {3, 5}}},
       {},
       "batch_matmul: operand 0 is f32[2,3], expected rank 3 or more"},
      {"batch_matmul", {{F32, {7, 2, 3}}, {F32, {3, 5}}}, {}, "batch_matmul: operand 1 is f32[3,5], expected rank 3"},
  });
}

TEST(Contract, ConvolutionTypes) {
  const TensorType x{F32, {2, 3, 8, 9}}, w{F32, {4, 3, 3, 2}};
  CheckAll({
      {"conv2d", {x, w}, {}, "f32[2,4,6,8]"},
      {"conv2d", {x, w}, {{"stride", Ints{2, 3}}, {"pad", Ints{1, 0, 2, 1}}}, "f32[2,4,5,3]"},
      {"conv2d", {{F32, {0, 3, 8, 9}}, w}, {}, "f32[0,4,6,8]"},
      {"conv2d", {{F32, {3, 8, 9}}, w}, {}, "conv2d: operand 0 is f32[3,8,9], expected rank 4"},
      {"conv2d", {x, {F32, {4, 2, 3, 2}}}, {}, "conv2d: the input has 3 channels and the weight takes 2"},
      {"conv2d", {x, {F32, {4, 3, 0, 2}}}, {}, "conv2d: the window is 0x2, expected 1 or more along every axis"},
      {"conv2d",
       {x, {F32, {4, 3, 9, 2}}},
       {},
       "conv2d: the window 9x2 does not fit into the input 8x9 with pad [0, 0, 0, 0]"},
      {"conv2d", {x, w}, {{"stride", Ints{0, 1}}}, "conv2d: stride[0] is 0, expected 1 or more"},
      {"conv2d", {x, w}, {{"stride", Ints{1}}}, "conv2d: stride = [1] has 1 numbers, expected 2"},
      {"conv2d", {x, w}, {{"pad", Ints{1, 1}}}, "conv2d: pad = [1, 1] has 2 numbers, expected 4"},
      {"conv2d", {x, w}, {{"pad", Ints{0, -1, 0, 0}}}, "conv2d: pad[1] is -1, expected 0 or more"},
      {"conv2d", {x, w}, {{"pad", Ints{0, 0, INT64_MAX, 0}}}, "conv2d: pad is too large (9223372036854775807)"},
      {"conv2d", {x, {F16, w.dims}}, {}, "conv2d: operands are f32[2,3,8,9] and f16[4,3,3,2], cast one of them"},
      {"conv2d_input_grad", {{F32, {2, 4, 6, 8}}, w}, {{"input", Ints{2, 3, 8, 9}}}, "f32[2,3,8,9]"},
      {"conv2d_input_grad",
       {{F32, {2, 4, 6, 7}}, w},
       {{"input", Ints{2, 3, 8, 9}}},
       "conv2d_input_grad: the gradient is f32[2,4,6,7], but a convolution with input = [2, 3, 8, 9] gives "
       "f32[2,4,6,8]"},
      {"conv2d_input_grad",
       {{F32, {2, 4, 6, 8}}, w},
       {{"input", Ints{2, 3, 8}}},
       "conv2d_input_grad: input = [2, 3, 8] has 3 numbers, expected 4"},
      {"conv2d_input_grad", {{F32, {2, 4, 6, 8}}, w}, {}, "conv2d_input_grad: attribute input is missing"},
      {"conv2d_weight_grad", {x, {F32, {2, 4, 6, 8}}}, {{"weight", Ints{4, 3, 3, 2}}}, "f32[4,3,3,2]"},
      {"conv2d_weight_grad",
       {x, {F32, {2, 5, 6, 8}}},
       {{"weight", Ints{4, 3, 3, 2}}},
       "conv2d_weight_grad: the gradient is f32[2,5,6,8], but a convolution with weight = [4, 3, 3, 2] gives "
       "f32[2,4,6,8]"},
      {"conv2d_weight_grad",
       {x, {F32, {2, 4, 6, 8}}},
       {{"weight", Ints{4, 3, -3, 2}}},
       "conv2d_weight_grad: weight[2] is -3, expected 0 or more"},
  });
}

// Products of higher rank: a shared right side is one product, other leading axes broadcast.
TEST(Contract, MatmulOfAnyRank) {
  const auto product = [](TensorType a, TensorType b) {
    Scene scene;
    const std::vector<Value> x = scene.Inputs({a, b});
    const Value y = Matmul(x[0], x[1]);
    std::vector<absl::string_view> ops;
    for (const Op& op : scene.graph.ops) ops.push_back(op.def->name);
    return scene.builder.status().ok() ? absl::StrCat(ToString(y.type()), " ", absl::StrJoin(ops, " "))
                                       : std::string(scene.builder.status().message());
  };
  EXPECT_EQ(product({F32, {2, 3}}, {F32, {3, 4}}), "f32[2,4] input input matmul");
  EXPECT_EQ(product({F32, {5, 2, 3}}, {F32, {3, 4}}), "f32[5,2,4] input input reshape matmul reshape");
  EXPECT_EQ(product({F32, {5, 2, 3}}, {F32, {5, 3, 4}}), "f32[5,2,4] input input batch_matmul");
  EXPECT_EQ(product({F32, {2, 3}}, {F32, {5, 3, 4}}), "f32[5,2,4] input input broadcast batch_matmul");
  EXPECT_EQ(product({F32, {5, 1, 2, 3}}, {F32, {1, 6, 3, 4}}),
            "f32[5,6,2,4] input input broadcast broadcast batch_matmul");
  EXPECT_NE(product({F32, {5, 2, 3}}, {F32, {6, 3, 4}}).find("leading dimensions differ"), std::string::npos);
  EXPECT_EQ(product({F32, {3}}, {F32, {6, 3, 4}}).substr(0, 8), "f32[6,4]");  // a vector: a row that goes again
}

TEST(Pool, Types) {
  const TensorType x{F32, {2, 3, 8, 9}};
  const Ints none = {0, 0, 0, 0};
  CheckAll({
      {"max_pool2d", {x}, Window({2, 2}, {}, none), "f32[2,3,4,4]"},
      {"max_pool2d", {x}, Window({3, 2}, {1, 2}, {1, 0, 1, 1}), "f32[2,3,8,5]"},
      {"max_pool2d", {{U8, {2, 3, 8, 9}}}, Window({2, 2}, {}, none), "u8[2,3,4,4]"},
      {"max_pool_with_index", {x}, Window({2, 2}, {}, none), "(f32[2,3,4,4], u8[2,3,4,4])"},
      {"max_pool_with_index", {{F32, {1, 1, 99, 99}}}, Window({16, 17}, {}, none), "(f32[1,1,6,5], i32[1,1,6,5])"},
      {"max_pool2d",
       {{F32, {1, 1, 99, 99}}},
       Window({INT64_MAX, 2}, {}, none),
       absl::StrCat("max_pool2d: the window is too large (", INT64_MAX, ")")},
      {"max_pool2d",
       {x},
       Window({2, 2}, {}, {2, 0, 0, 0}),
       "max_pool2d: pad = [2, 0, 0, 0] reaches the window [2, 2], a window could lie in the padding"},
      {"max_pool2d", {x}, Window({2, 0}, {}, none), "max_pool2d: window[1] is 0, expected 1 or more"},
      {"max_pool2d", {x}, Window({2}, {}, none), "max_pool2d: window = [2] has 1 numbers, expected 2"},
      {"max_pool2d", {x}, Window({2, 2}, {1, -1}, none), "max_pool2d: stride[1] is -1, expected 1 or more"},
      {"max_pool2d",
       {x},
       Window({9, 2}, {}, none),
       "max_pool2d: the window 9x2 does not fit into the input 8x9 with pad [0, 0, 0, 0]"},
      {"max_pool2d", {{F32, {8, 9}}}, Window({2, 2}, {}, none), "max_pool2d: operand 0 is f32[8,9], expected rank 4"},
      {"max_pool2d",
       {{F32, {1, 1, 0, 9}}},
       Window({2, 2}, {}, {1, 1, 1, 1}),
       "max_pool2d: the input [1, 1, 0, 9] has nothing to pool along axis 2"},
      {"max_pool2d",
       {{Bool, {1, 1, 8, 9}}},
       Window({2, 2}, {}, none),
       "max_pool2d: operand 0 is bool[1,1,8,9], expected a number type; cast it first"},
      {"avg_pool2d", {{F32, {1, 1, 99, 99}}}, Window({16, 17}, {}, none), "f32[1,1,6,5]"},
      {"avg_pool2d",
       {{I32, {1, 1, 8, 9}}},
       Window({2, 2}, {}, none),
       "avg_pool2d: operand 0 is i32[1,1,8,9], expected a float type; cast it first"},
  });
}

TEST(Pool, GradientTypes) {
  const TensorType g{F32, {2, 3, 4, 4}}, index{U8, {2, 3, 4, 4}};
  const Attr input{"input", Ints{2, 3, 8, 9}};
  const Ints none = {0, 0, 0, 0};
  CheckAll({
      {"max_pool_grad", {g, index}, With(input, Window({2, 2}, {}, none)), "f32[2,3,8,9]"},
      {"max_pool_grad",
       {{F32, {2, 3, 4, 5}}, index},
       With(input, Window({2, 2}, {}, none)),
       "max_pool_grad: operand 0 is f32[2,3,4,5], but pooling [2, 3, 8, 9] gives [2, 3, 4, 4]"},
      {"max_pool_grad",
       {g, {U8, {2, 3, 5, 4}}},
       With(input, Window({2, 2}, {}, none)),
       "max_pool_grad: operand 1 is u8[2,3,5,4], but pooling [2, 3, 8, 9] gives [2, 3, 4, 4]"},
      {"max_pool_grad",
       {g, {I32, {2, 3, 4, 4}}},
       With(input, Window({2, 2}, {}, none)),
       "max_pool_grad: operand 1 is i32[2,3,4,4], expected u8; cast it first"},
      {"max_pool_take", {{F32, {2, 3, 8, 9}}, index}, Window({2, 2}, {}, none), "f32[2,3,4,4]"},
      {"max_pool_take",
       {{F32, {2, 3, 6, 9}}, index},
       Window({2, 2}, {}, none),
       "max_pool_take: operand 1 is u8[2,3,4,4], but pooling [2, 3, 6, 9] gives [2, 3, 3, 4]"},
  });
}

// One number stands for both axes, a missing or zero stride for the window.
TEST(Pool, Options) {
  Scene scene;
  const Value x = scene.Input({F32, {1, 1, 12, 12}});
  EXPECT_EQ(ToString(MaxPool2d(x, {.window = {3}}).type()), "f32[1,1,4,4]");
  EXPECT_EQ(ToString(AvgPool2d(x, {.window = {3, 4}, .stride = {0, 0}}).type()), "f32[1,1,4,3]");
  EXPECT_EQ(ToString(AvgPool2d(x, {.window = {3, 4}, .stride = {1}}).type()), "f32[1,1,10,9]");
  EXPECT_TRUE(scene.builder.status().ok());
}

TEST(Gather, Types) {
  const Attr axis0{"axis", int64_t{0}}, axis1{"axis", int64_t{1}}, last{"axis", int64_t{-1}}, three{"axis", int64_t{3}};
  CheckAll({
      {"take", {{F32, {5, 6, 7}}, {I32, {2, 3}}}, {axis0}, "f32[2,3,6,7]"},
      {"take", {{U8, {5, 6, 7}}, {U32, {2, 3}}}, {axis1}, "u8[5,2,3,7]"},
      {"take", {{F32, {5, 6, 7}}, {I8, {}}}, {last}, "f32[5,6]"},
      {"take", {{F32, {0, 6}}, {I32, {0}}}, {axis0}, "f32[0,6]"},
      {"take", {{F32, {0, 6}}, {I32, {2}}}, {axis0}, "take: axis 0 of f32[0,6] has no element to take"},
      {"take", {{F32, {5, 6, 7}}, {I32, {2}}}, {three}, "take: axis is 3, expected -3 to 2"},
      {"take", {{F32, {}}, {I32, {2}}}, {axis0}, "take: operand 0 is f32[], expected rank 1 or more"},
      {"take", {{F32, {5}}, {F32, {2}}}, {axis0}, "take: operand 1 is f32[2], expected an integer type; cast it first"},
      {"one_hot", {{I32, {2, 3}}}, {{"depth", int64_t{4}}}, "f32[2,3,4]"},
      {"one_hot", {{U8, {}}}, {{"depth", int64_t{4}}, {"dtype", Bool}}, "bool[4]"},
      {"one_hot", {{I32, {2}}}, {{"depth", int64_t{-1}}}, "one_hot: depth is -1, expected 0 or more"},
      {"one_hot",
       {{F32, {2}}},
       {{"depth", int64_t{4}}},
       "one_hot: operand 0 is f32[2], expected an integer type; cast it first"},
      {"one_hot", {{I32, {2}}}, {}, "one_hot: attribute depth is missing"},
  });
}

TEST(Activation, Types) {
  CheckAll({
      {"relu", {{I32, {2, 3}}}, {}, "i32[2,3]"},
      {"relu", {{Bool, {2}}}, {}, "relu: operand 0 is bool[2], expected a number type; cast it first"},
      {"leaky_relu", {{F32, {2, 3}}}, {}, "f32[2,3]"},
      {"softmax", {{F16, {2, 3}}}, {}, "f16[2,3]"},
      {"softmax", {{F32, {2, 0}}}, {}, "f32[2,0]"},
      {"softmax", {{F32, {}}}, {}, "softmax: axis is -1, but a scalar has no axes"},
      {"log_softmax", {{F32, {2, 3}}}, {{"axis", int64_t{2}}}, "log_softmax: axis is 2, expected -2 to 1"},
      {"logsumexp", {{F32, {2, 3, 4}}}, {{"axis", int64_t{1}}}, "f32[2,4]"},
      {"logsumexp", {{F32, {0, 3}}}, {{"axis", int64_t{1}}}, "f32[0]"},
      {"logsumexp", {{F32, {2, 0}}}, {}, "f32[2]"},
      {"dropout", {{F32, {2, 3}}, {U32, {2}}}, {{"stream", int64_t{0}}, {"rate", 0.5}}, "f32[2,3]"},
      {"dropout",
       {{F32, {2, 3}}, {U32, {2}}},
       {{"stream", int64_t{0}}, {"rate", 1.0}},
       "dropout: rate is 1, expected 0 or more and less than 1"},
      {"dropout",
       {{F32, {2, 3}}, {U32, {3}}},
       {{"stream", int64_t{0}}, {"rate", 0.5}},
       "dropout: the key is u32[3], expected u32[2]"},
  });
  for (const char* op : {"gelu", "leaky_relu", "sigmoid", "silu", "softplus", "softmax", "log_softmax", "logsumexp"}) {
    EXPECT_EQ(Outcome({op, {{I32, {2, 3}}}, {}, ""}),
              absl::StrCat(op, ": operand 0 is i32[2,3], expected a float type; cast it first"));
  }
}

TEST(Loss, Types) {
  const TensorType x{F32, {2, 3}}, row{F32, {3}};
  CheckAll({
      {"cross_entropy", {x, {I32, {2}}}, {}, "f32[]"},
      {"cross_entropy", {x, {U8, {2}}}, {}, "f32[]"},
      {"cross_entropy", {x, {I32, {3}}}, {}, "cross_entropy: logits have 2 rows and there are 3 labels"},
      {"cross_entropy",
       {x, {F32, {2}}},
       {},
       "cross_entropy: operand 1 is f32[2], expected an integer type; cast it first"},
      {"cross_entropy", {{F32, {0, 3}}, {I32, {0}}}, {}, "cross_entropy: logits are f32[0,3], which has no mean"},
      {"mse", {x, x}, {}, "f32[]"},
      {"mse", {x, row}, {}, "mse: operands are f32[2,3] and f32[3], broadcast one of them"},
      {"mse", {{F32, {0}}, {F32, {0}}}, {}, "mse: operands are f32[0], which has no mean"},
      {"layer_norm", {x, row, row}, {}, "f32[2,3]"},
      {"layer_norm",
       {x, {F32, {2}}, row},
       {},
       "layer_norm: scale is f32[2], expected the last dimensions of f32[2,3], f32[3] say"},
      {"layer_norm", {x, row, x}, {}, "layer_norm: shift is f32[2,3], expected f32[3]"},
      {"layer_norm", {x, row, row}, {{"epsilon", -1.0}}, "layer_norm: epsilon is -1, expected 0 or more"},
      {"layer_norm", {{F32, {}}, row, row}, {}, "layer_norm: operand 0 is f32[], expected rank 1 or more"},
  });
}

}  // namespace
}  // namespace agc
