// A graph of given tensors that is built and evaluated value by value, gradients included.
//   ValueScene s;
//   Value x = s.Input({DType::kF32, {2}}, {1, 2});
//   s.Run(Gradient(ReduceSum(x * x), x)) == {2, 4}
#pragma once
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/build_nn.h"
#include "ir/eval/graph_eval.h"
#include "ir/program.h"
#include "passes/manager.h"

namespace agc {

struct ValueScene {
  Program program = {};
  Builder builder = {};
  EvalInputs given = {};

  ValueScene() {
    program.graphs.emplace_back();
    program.graphs[0].name = "g";
    builder = {.program = &program, .graph = &program.graphs[0]};
  }

  // One number fills the tensor.
  Value Input(TensorType type, const std::vector<double>& values) {
    Graph& graph = program.graphs[0];
    const std::string name = absl::StrCat("x", graph.params.size());
    HostTensor t = HostTensor::Zeros(type);
    for (int64_t i = 0; i < type.elements(); ++i) {
      t.set(i, Scalar::Of(type.dtype, values.size() == 1 ? values[0] : values[static_cast<size_t>(i)]));
    }
    given.params[name] = std::move(t);
    return {&builder, AppendInput(graph, ParamKind::kInput, name, std::move(type), {}), 0, false};
  }

  std::vector<double> Run(Value y, EvalMode mode = EvalMode::kExact) {
    EXPECT_TRUE(builder.status().ok()) << builder.status();
    Program copy = Clone(program);
    copy.graphs[0].outputs = {{.name = "y", .type = y.type(), .value = y.id}};
    PassContext context;
    const absl::Status status = RunPipeline(copy, {"dce", "autograd"}, context);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<double> values;
    if (!status.ok()) return values;
    const absl::StatusOr<EvalResult> result = EvaluateGraph(copy, copy.graphs[0], given, mode);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return values;
    const HostTensor& t = result->outputs.at("y");
    for (int64_t i = 0; i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
    return values;
  }

  // Of the sum of y's elements, each times its weight if there are any.
  std::vector<double> Slope(Value y, Value x, Value weights = {}) {
    return Run(Gradient(ReduceSum(weights.builder != nullptr ? y * weights : y), x));
  }
};

}  // namespace agc
