// A graph of given tensors, evaluated as a device would: every operation rounds to its dtype.
//   IndexScene s;
//   s.Run(Sort(s.Input({DType::kF32, {3}}, {2, 3, 1}))) == {1, 2, 3}
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/build_index.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/program.h"

namespace agc {

struct IndexScene {
  Program program = {};
  Graph graph = {};
  Builder builder = {.program = &program, .graph = &graph};
  EvalInputs given = {};

  // One number fills the tensor.
  Value Input(TensorType type, const std::vector<double>& values) {
    const std::string name = absl::StrCat("x", graph.params.size());
    HostTensor t = HostTensor::Zeros(type);
    for (int64_t i = 0; i < type.elements(); ++i)
      t.set(i, Scalar::Of(type.dtype, values.size() == 1 ? values[0] : values[static_cast<size_t>(i)]));
    given.params[name] = std::move(t);
    return {&builder, AppendInput(graph, ParamKind::kInput, name, std::move(type), {}), 0, false};
  }

  std::vector<double> Run(Value y) {
    EXPECT_TRUE(builder.status().ok()) << builder.status();
    graph.outputs = {{.name = "y", .type = y.type(), .value = y.id}};
    const absl::StatusOr<EvalResult> result = EvaluateGraph(program, graph, given, EvalMode::kExact);
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<double> values;
    if (!result.ok()) return values;
    const HostTensor& t = result->outputs.at("y");
    for (int64_t i = 0; i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
    return values;
  }

  // The gradient of y with respect to operand `i`, given that of y (ones where none is given).
  Value Gradient(Value y, int i, Value g = {}) {
    if (!g.valid()) g = FullLike(y, 1);
    Vjp rule(builder, graph.op(y.id), y.id);
    rule.g = g;
    graph.op(y.id).def->vjp(rule);
    return rule.dx[static_cast<size_t>(i)];
  }
};

}  // namespace agc
