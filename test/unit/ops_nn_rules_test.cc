// Definitions, gradient rules and nests of contractions, pooling, gather, activations and losses. What the ops compute
// is tested by the sweep over the op table.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ir/build.h"
#include "ir/lowering.h"
#include "ir/ops/tables.h"
#include "test/unit/op_calls.h"

namespace agc {
namespace {

// ---------------------------------------------------------------- rules

// Ops that are called alike.
void AddFamilies(DType t, const TensorType& x, std::vector<Case>& calls) {
  for (int64_t axis = 0; axis < 4; ++axis) {
    for (DType integer : {I8, I32, U32, U8}) calls.push_back({"take", {x, {integer, {3, 4}}}, {{"axis", axis}}, ""});
  }
  for (const char* op : {"global_avg_pool", "global_max_pool", "global_lp_pool"}) calls.push_back({op, {x}, {}, ""});
  for (const char* op : {"max_pool1d", "avg_pool1d", "lp_pool1d"}) {
    calls.push_back({op, {{t, {2, 2, 9}}}, {{"window", Ints{3}}, {"ceil_mode", true}}, ""});
  }
  for (const char* op : {"max_pool3d", "avg_pool3d", "lp_pool3d"}) {
    calls.push_back({op, {{t, {1, 2, 3, 4, 5}}}, {{"window", Ints{2, 2, 2}}}, ""});
  }
  for (const char* op : {"relu", "leaky_relu", "sigmoid", "silu", "softplus", "gelu", "softmax", "log_softmax"}) {
    calls.push_back({op, {x}, {}, ""});
  }
}

// Calls of every op, for the checks that hold of all of them.
std::vector<Case> Calls(DType t) {
  const Attrs pool = Window({3, 2}, {2, 1}, {1, 0, 1, 1});
  const Attrs conv = {{"stride", Ints{2, 1}}, {"pad", Ints{1, 0, 1, 1}}};
  const Attr input{"input", Ints{2, 2, 5, 6}};
  const TensorType x{t, {2, 2, 5, 6}}, w{t, {3, 2, 3, 2}}, y{t, {2, 3, 3, 6}}, pooled{t, {2, 2, 3, 6}};
  const TensorType index{U8, {2, 2, 3, 6}}, row{t, {6}};
  std::vector<Case> calls = {
      {"matmul", {{t, {3, 4}}, {t, {4, 5}}}, {}, ""},
      {"batch_matmul", {{t, {2, 3, 4}}, {t, {2, 4, 5}}}, {}, ""},
      {"conv2d", {x, w}, conv, ""},
      {"conv1d", {{t, {2, 4, 9}}, {t, {6, 2, 3}}}, {{"groups", int64_t{2}}}, ""},
      {"conv1d_input_grad", {{t, {2, 6, 7}}, {t, {6, 2, 3}}}, {{"input", Ints{2, 4, 9}}, {"groups", int64_t{2}}}, ""},
      {"conv1d_weight_grad", {{t, {2, 4, 9}}, {t, {2, 6, 7}}}, {{"weight", Ints{6, 2, 3}}, {"groups", int64_t{2}}}, ""},
      {"conv3d", {{t, {1, 2, 3, 4, 5}}, {t, {3, 2, 2, 2, 2}}}, {}, ""},
      {"conv3d_input_grad", {{t, {1, 3, 2, 3, 4}}, {t, {3, 2, 2, 2, 2}}}, {{"input", Ints{1, 2, 3, 4, 5}}}, ""},
      {"conv3d_weight_grad", {{t, {1, 2, 3, 4, 5}}, {t, {1, 3, 2, 3, 4}}}, {{"weight", Ints{3, 2, 2, 2, 2}}}, ""},
      {"conv_transpose1d", {{t, {2, 4, 5}}, {t, {4, 3, 4}}}, {{"groups", int64_t{2}}}, ""},
      {"conv_transpose2d", {x, {t, {2, 3, 3, 2}}}, {{"stride", Ints{2, 2}}, {"output_pad", Ints{1, 0}}}, ""},
      {"conv_transpose3d", {{t, {1, 2, 2, 2, 2}}, {t, {2, 1, 2, 2, 2}}}, {}, ""},
      {"conv2d_input_grad", {y, w}, With(input, conv), ""},
      {"conv2d_weight_grad", {x, y}, With({"weight", Ints{3, 2, 3, 2}}, conv), ""},
      {"max_pool_with_index", {x}, pool, ""},
      {"max_pool2d", {x}, pool, ""},
      {"max_pool_grad", {pooled, index}, With(input, pool), ""},
      {"max_pool_take", {x, index}, pool, ""},
      {"avg_pool2d", {x}, pool, ""},
      {"lp_pool2d", {x}, pool, ""},
      {"max_pool_indices", {x}, pool, ""},
      {"sliding_windows", {x}, pool, ""},
      {"overlap_add", {{t, {2, 2, 3, 6, 3, 2}}}, With({"input", Ints{5, 6}}, pool), ""},
      {"unfold", {x}, pool, ""},
      {"max_unpool", {pooled, {I32, pooled.dims}}, With({"input", Ints{5, 6}}, pool), ""},
      {"adaptive_avg_pool", {x}, {{"size", Ints{3, 4}}}, ""},
      {"adaptive_sum_pool", {x}, {{"size", Ints{3, 4}}}, ""},
      {"adaptive_max_pool", {x}, {{"size", Ints{3, 4}}}, ""},
      {"adaptive_max_pool_with_index", {x}, {{"size", Ints{3, 4}}}, ""},
      {"adaptive_max_pool_grad", {x, {I32, x.dims}}, {{"input", Ints{7, 3}}}, ""},
      {"adaptive_max_pool_take", {x, {I32, {2, 2, 3, 4}}}, {}, ""},
      {"resize", {x}, {{"size", Ints{7, 3}}}, ""},
      {"resample", {x}, {{"axis", int64_t{2}}, {"size", int64_t{7}}, {"map", Ints{5, 0, 7}}}, ""},
      {"resample_grad", {x}, {{"axis", int64_t{2}}, {"size", int64_t{7}}, {"map", Ints{7, 0, 5}}}, ""},
      {"affine_grid", {{t, {2, 2, 3}}}, {{"size", Ints{3, 4}}}, ""},
      {"grid_sample", {x, {t, {2, 3, 4, 2}}}, {}, ""},
      {"fold", {{t, {2, 12, 18}}}, With({"input", Ints{5, 6}}, pool), ""},
      {"one_hot", {{I8, {2, 3}}}, {{"depth", int64_t{300}}, {"dtype", t}}, ""},
      {"logsumexp", {x}, {{"axis", int64_t{1}}}, ""},
      {"dropout", {x, {U32, {2}}}, {{"stream", int64_t{1}}, {"rate", 0.5}}, ""},
      {"cross_entropy", {{t, {2, 3}}, {I32, {2}}}, {}, ""},
      {"nll", {{t, {2, 3}}, {I32, {2}}}, {}, ""},
      {"mse", {x, x}, {}, ""},
      {"layer_norm", {x, row, row}, {}, ""},
  };
  AddFamilies(t, x, calls);
  return calls;
}

TEST(Rules, EveryOpIsCalled) {
  const std::vector<Case> calls = Calls(F32);
  for (absl::Span<const OpDef> table : {kContractOps, kConvOps, kConvTransposeOps, kUnfoldOps, kMaxPoolOps, kPoolOps,
                                        kAdaptivePoolOps, kResizeOps, kGridOps, kGatherOps, kActivationOps, kLossOps}) {
    for (const OpDef& op : table) {
      const bool called = std::any_of(calls.begin(), calls.end(), [&](const Case& c) { return op.name == c.op; });
      EXPECT_TRUE(called) << op.name;
    }
  }
}

TEST(Rules, DefinitionsHaveTheResultsType) {
  for (DType dtype : {F32, F16}) {
    for (const Case& c : Calls(dtype)) {
      Scene scene;
      const Value y = Emit(c.op, scene.Inputs(c.operands), c.attrs, {});
      ASSERT_TRUE(scene.builder.status().ok()) << scene.builder.status();
      const Op op = scene.graph.op(y.id);
      if (op.def->decompose == nullptr) continue;
      Rule rule(scene.builder, op);
      const Value definition = op.def->decompose(rule);
      EXPECT_TRUE(scene.builder.status().ok()) << c.op << ": " << scene.builder.status();
      EXPECT_EQ(ToString(definition.type()), ToString(op.type())) << c.op;
    }
  }
}

// Gradients have their operands' types, floats get one where a rule exists, and the ops they use have rules themselves.
TEST(Rules, GradientsHaveTheOperandsTypes) {
  for (DType dtype : {F32, F16}) {
    for (const Case& c : Calls(dtype)) {
      Scene scene;
      const Value y = Emit(c.op, scene.Inputs(c.operands), c.attrs, {});
      ASSERT_TRUE(scene.builder.status().ok()) << scene.builder.status();
      const Op op = scene.graph.op(y.id);
      if (op.def->vjp == nullptr) {
        EXPECT_NE(op.def->decompose, nullptr) << c.op;
        continue;
      }
      const Value g = scene.Input(op.type());
      const size_t before = scene.graph.ops.size();
      Vjp rule(scene.builder, op, y.id);
      rule.g = g;
      op.def->vjp(rule);
      ASSERT_TRUE(scene.builder.status().ok()) << c.op << ": " << scene.builder.status();
      for (size_t i = 0; i < c.operands.size(); ++i) {
        const bool differentiable = IsFloat(c.operands[i].dtype);
        EXPECT_EQ(rule.dx[i].valid(), differentiable) << c.op << " operand " << i;
        if (rule.dx[i].valid()) {
          EXPECT_EQ(ToString(rule.dx[i].type()), ToString(c.operands[i])) << c.op << " operand " << i;
        }
      }
      for (size_t i = before; i < scene.graph.ops.size(); ++i) {
        const OpDef& used = *scene.graph.ops[i].def;
        const bool rule = used.vjp != nullptr || used.decompose != nullptr || used.cls == OpClass::kData;
        EXPECT_TRUE(rule || !IsFloat(scene.graph.ops[i].type().dtype)) << c.op << " uses " << used.name;
      }
    }
  }
}

// ---------------------------------------------------------------- nests

Nest Lowered(Scene& scene, const std::vector<Value>& values) {
  std::vector<ValueRef> outputs;
  for (Value v : values) outputs.push_back(Resolve(scene.graph, v.id));
  const auto inlined = [&](OpId id) {
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueRef o) { return o.op == id; });
  };
  absl::StatusOr<LoweredNest> low = LowerToNest(scene.graph, outputs, inlined);
  EXPECT_TRUE(low.ok()) << low.status();
  return low.ok() ? std::move(low->nest) : Nest();
}

// All products are contractions of their two operands, in that order, whatever guards and casts they have.
TEST(Nests, ProductsAreContractions) {
  for (DType dtype : {F32, F16, I8}) {
    for (const Case& c : Calls(dtype)) {
      if (FindOp(c.op)->cls != OpClass::kContract) continue;
      Scene scene;
      Nest nest = Lowered(scene, {Emit(c.op, scene.Inputs(c.operands), c.attrs, {})});
      EXPECT_TRUE(FormContractions(nest)) << c.op;
      ASSERT_EQ(nest.params.size(), 3u) << c.op;
      EXPECT_EQ(nest.params[0].type, c.operands[0]) << c.op;
      EXPECT_EQ(nest.params[1].type, c.operands[1]) << c.op;
    }
  }
}

TEST(Nests, TheIndexOfMaximumPoolingCostsNothing) {
  Scene scene;
  const Value pooled = MaxPool2dWithIndex(scene.Input({F32, {2, 3, 8, 8}}));
  const Nest nest = Lowered(scene, {Get(pooled, 1), Get(pooled, 0)});
  EXPECT_EQ(nest.stages.size(), 1u);
  EXPECT_EQ(nest.axes.size(), 6u);
  EXPECT_EQ(nest.stores.size(), 2u);
}

// Index arithmetic must not wrap in narrow dtypes: an i8 index takes from an axis of 300 elements.
TEST(Rules, NarrowIndicesAreWidened) {
  Scene scene;
  const Value x = scene.Input({F32, {300, 2}}), i = scene.Input({I8, {4}});
  const Value y = Take(x, i);
  Vjp rule(scene.builder, scene.graph.op(y.id), y.id);
  rule.g = y;
  scene.graph.op(y.id).def->vjp(rule);
  ASSERT_TRUE(scene.builder.status().ok()) << scene.builder.status();
  EXPECT_EQ(ToString(rule.dx[0].type()), "f32[300,2]");
  for (const Op& op : scene.graph.ops) {
    if (op.def->name == "index_update") {
      EXPECT_EQ(scene.graph.op(op.operands[1]).type().dtype, I32);
    }
  }
}

}  // namespace
}  // namespace agc
