// Importing ONNX and safetensors from C++: weights as views, training on an imported model, export and back.
#include "compiler/import/onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "compiler/export/onnx_export.h"
#include "compiler/export/onnx_writer.h"
#include "compiler/import/safetensors.h"
#include "ir/base/file.h"
#include "ir/eval/graph_eval.h"
#include "ir/text/text.h"
#include "passes/manager.h"

namespace agc {
namespace {

using ::testing::HasSubstr;

ByteSpan BytesOf(const std::string& s) { return {reinterpret_cast<const uint8_t*>(s.data()), s.size()}; }

template <typename T>
std::vector<uint8_t> Raw(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

HostTensor Tensor32(Dims dims, const std::vector<float>& values) {
  return {{DType::kF32, std::move(dims)}, Raw(values)};
}

// y = x w + b, x f32[batch,2].
std::string LinearModel() {
  OnnxWriter w;
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6}, bias = {10, 20, 30};
  w.Initializer("w", {DType::kF32, {2, 3}}, Raw(weight));
  w.Initializer("b", {DType::kF32, {3}}, Raw(bias));
  w.Input("x", {DType::kF32, {1, 2}});
  w.Node("MatMul", {"x", "w"}, {"p"});
  w.Node("Add", {"p", "b"}, {"y"});
  w.Output("y", {DType::kF32, {1, 3}});
  return w.Model("linear", 20);
}

EvalInputs InputsOf(const std::vector<Weight>& weights, std::map<std::string, HostTensor> params) {
  EvalInputs in{.params = std::move(params)};
  for (const Weight& w : weights) in.states[w.name] = {w.type, {w.bytes.begin(), w.bytes.end()}};
  return in;
}

TEST(OnnxImport, WeightsAreTrainableStatesThatLieInTheFile) {
  const std::string bytes = LinearModel();
  const auto model = onnx::ParseModel(BytesOf(bytes), "linear.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto imported = onnx::Import(*model);
  ASSERT_TRUE(imported.ok()) << imported.status();
  ASSERT_EQ(imported->weights.size(), 2u);
  for (const Weight& w : imported->weights) {
    const auto* first = reinterpret_cast<const char*>(w.bytes.data());
    EXPECT_TRUE(first >= bytes.data() && first + w.bytes.size() <= bytes.data() + bytes.size()) << w.name;
    EXPECT_TRUE(imported->program.FindState(w.name)->trainable);
  }
  const auto r = EvaluateGraph(imported->program, imported->program.graphs[0],
                               InputsOf(imported->weights, {{"x", Tensor32({1, 2}, {1, 1})}}), EvalMode::kExact);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(r->outputs.at("y"), Tensor32({1, 3}, {15, 27, 39}));
}

TEST(OnnxImport, GradientsOfAnImportedModel) {
  const std::string bytes = LinearModel();
  const auto model = onnx::ParseModel(BytesOf(bytes), "linear.onnx");
  ASSERT_TRUE(model.ok());
  std::vector<Weight> weights;
  Module m("tune");
  m.Graph("step", [&](Trace& t) {
    const auto y = onnx::Apply(t, *model, {{"x", t.Input("x", kF32, {1, 2})}}, weights, "net.");
    ASSERT_TRUE(y.ok()) << y.status();
    agc::Tensor loss = ReduceSum(Square((*y)[0]));
    optim::Sgd({.lr = t.Full(kF32, {}, 0.125)}).Minimize(loss);
    t.Output("loss", loss);
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  Program program = Clone(m.program());
  PassContext context;
  const std::vector<std::string> passes = {"autograd"};
  ASSERT_TRUE(RunPipeline(program, passes, context).ok());
  const auto r = EvaluateGraph(program, *program.FindGraph("step"),
                               InputsOf(weights, {{"x", Tensor32({1, 2}, {1, 0})}}), EvalMode::kExact);
  ASSERT_TRUE(r.ok()) << r.status();
  // y = (11, 22, 33), d loss / d b = 2 y, d loss / d w = x' 2 y.
  EXPECT_EQ(r->states.at("net.b"), Tensor32({3}, {10 - 2.75f, 20 - 5.5f, 30 - 8.25f}));
  EXPECT_EQ(r->states.at("net.w"), Tensor32({2, 3}, {1 - 2.75f, 2 - 5.5f, 3 - 8.25f, 4, 5, 6}));
}

TEST(OnnxImport, AFailureInATraceIsRecordedThere) {
  OnnxWriter w;
  w.Node("Frobnicate", {"x"}, {"y"});
  w.Output("y", {DType::kF32, {1}});
  const std::string bytes = w.Model("g", 20);
  const auto model = onnx::ParseModel(BytesOf(bytes), "g.onnx");
  ASSERT_TRUE(model.ok());
  std::vector<Weight> weights;
  Module m("m");
  m.Graph("f", [&](Trace& t) { EXPECT_FALSE(onnx::Apply(t, *model, {{"x", t.Input("x", kF32, {1})}}, weights).ok()); });
  EXPECT_THAT(std::string(m.status().message()),
              HasSubstr("g.onnx: node 'Frobnicate_0' (Frobnicate, opset 20): the operator is not supported"));
}

TEST(OnnxImport, FillsStaySplats) {
  OnnxWriter w;
  w.Initializer("shape", {DType::kI64, {2}}, Raw(std::vector<int64_t>{1000, 1000}));
  w.Input("x", {DType::kF32, {1000, 1000}});
  w.Node("ConstantOfShape", {"shape"}, {"zeros"});
  w.Node("Add", {"x", "zeros"}, {"y"});
  w.Output("y", {DType::kF32, {1000, 1000}});
  const std::string bytes = w.Model("g", 20);
  const auto model = onnx::ParseModel(BytesOf(bytes), "g.onnx");
  ASSERT_TRUE(model.ok());
  const auto imported = onnx::Import(*model);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Print(imported->program), HasSubstr("f32[1000,1000] = constant splat(0)"));
}

TEST(OnnxExport, WhatIsExportedImportsAsTheSame) {
  Module m("net");
  m.Graph("infer", [](Trace& t) {
    agc::Tensor x = t.Input("x", kF32, {2, 3});
    agc::Tensor n = LayerNorm(x, t.State("scale", {kF32, {3}}), 1e-5);  // decomposes
    t.Output("y", Softmax(Transpose(Where(Greater(n, 0.5), n, Square(n)), {1, 0})));
    t.Output("top", ArgMax(x, 1));
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  const std::vector<uint8_t> scale = Raw(std::vector<float>{1, 2, 3});
  const std::vector<Weight> weights = {{.name = "scale", .type = {DType::kF32, {3}}, .bytes = scale}};
  const auto bytes = ExportOnnx(m.program(), "infer", weights);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto model = onnx::ParseModel(BytesOf(*bytes), "net.onnx");
  ASSERT_TRUE(model.ok()) << model.status();
  const auto imported = onnx::Import(*model);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const std::map<std::string, HostTensor> x = {{"x", Tensor32({2, 3}, {1, 2, 4, -3, 5, 0.5f})}};
  const auto want = EvaluateGraph(m.program(), m.program().graphs[0], InputsOf(weights, x), EvalMode::kExact);
  const auto got =
      EvaluateGraph(imported->program, imported->program.graphs[0], InputsOf(imported->weights, x), EvalMode::kExact);
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  EXPECT_EQ(got->outputs.at("top"), want->outputs.at("top"));
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(got->outputs.at("y").at(i).f(), want->outputs.at("y").at(i).f(), 1e-6);
}

TEST(OnnxExport, RefusesWhatOnnxHasNot) {
  Module m("net");
  m.Graph("step", [](Trace& t) { t.Output("n", t.Counter("n")); });
  m.Graph("bits", [](Trace& t) { t.Output("y", PopulationCount(t.Input("x", kI32, {2}))); });
  m.Graph("reads", [](Trace& t) { t.Output("y", t.State("w", {kF32, {2}})); });
  const auto message = [&](const char* graph) {
    return std::string(ExportOnnx(m.program(), graph, {}).status().message());
  };
  EXPECT_THAT(message("step"), HasSubstr("graph @step updates states, which ONNX has not"));
  EXPECT_THAT(message("bits"), HasSubstr("population_count has no ONNX operator"));
  EXPECT_THAT(message("reads"), HasSubstr("state @w has no value to export"));
  EXPECT_THAT(message("none"), HasSubstr("the module has no graph @none"));
}

std::string Safetensors(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof(size));
  return bytes + header + data;
}

TEST(Safetensors, TensorsByNameWithMapping) {
  const std::string bytes = Safetensors(
      R"({"__metadata__":{"format":"pt"},"fc.w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}, "n": {"dtype":"I8","shape":[],"data_offsets":[8,9]}})",
      std::string(9, '\1'));
  const auto weights = ParseSafetensors(BytesOf(bytes), {{"fc.*", "net.0.*"}, {"n", "count"}});
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_EQ(weights->size(), 2u);
  EXPECT_EQ((*weights)[0].name, "net.0.w");
  EXPECT_EQ((*weights)[0].type, (TensorType{DType::kF32, {2}}));
  EXPECT_EQ((*weights)[0].bytes.size(), 8u);
  EXPECT_EQ((*weights)[1].name, "count");
}

TEST(Safetensors, WrongFilesAreNamed) {
  const auto message = [](const std::string& bytes, const std::map<std::string, std::string>& names = {}) {
    return std::string(ParseSafetensors(BytesOf(bytes), names).status().message());
  };
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return Safetensors(
        absl::StrCat(R"({"w":{"dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)", offsets, "}}"),
        std::string(8, '\0'));
  };
  EXPECT_THAT(message("abc"), HasSubstr("it has no header"));
  EXPECT_THAT(message(std::string(8, '\xff')), HasSubstr("a header of 18446744073709551615 bytes in 8"));
  EXPECT_THAT(message(Safetensors("{\"w\" 1}", "")), HasSubstr("expected ':'"));
  EXPECT_THAT(message(Safetensors("{} x", "")), HasSubstr("behind the header's end"));
  EXPECT_THAT(message(tensor("F8_E4M3", "[2]", "[0,2]")), HasSubstr("tensor 'w' has element type F8_E4M3"));
  EXPECT_THAT(message(tensor("F32", "[2]", "[0,16]")), HasSubstr("tensor 'w': data_offsets outside of the file"));
  EXPECT_THAT(message(tensor("F32", "[2]", "[0,4]")), HasSubstr("4 bytes, f32[2] has 8"));
  EXPECT_THAT(message(tensor("F32", "[99999999999,99999999999]", "[0,8]")), HasSubstr("a shape too large"));
  EXPECT_THAT(message(tensor("F32", "[2]", "[0,8]"), {{"v", "w"}}), HasSubstr("no tensor is called 'v'"));
}

TEST(Weights, OfAnotherTypeAreRefused) {
  rt::Bundle bundle;
  bundle.states.push_back({.name = "w", .dtype = rt::DType::kF32, .dims = {2}});
  bundle.state_bytes = 8;
  const std::vector<uint8_t> bytes(8);
  const Weight wrong{.name = "w", .type = {DType::kF16, {4}}, .bytes = bytes};
  EXPECT_EQ(WithWeights(bundle, {wrong}).status().message(), "state @w is f32[2], its weight f16[4]");
}

}  // namespace
}  // namespace agc
