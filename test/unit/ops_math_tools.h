// Functions of elements, built from ops and evaluated on the host as a device would: every operation rounds.
//   Of([](V x) { return Hypot(x[0], x[1]); }, DType::kF32, {{3}, {4}}) == {5}
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/eval/graph_eval.h"
#include "passes/manager.h"

namespace agc {

using Numbers = std::vector<double>;
using V = const std::vector<Value>&;
// "y": the value; "d0", "d1": derivative by the operands; "d00", "d01", ...: second derivatives.
using Derivatives = std::map<std::string, Numbers>;

inline Derivatives Evaluated(const std::function<Value(V)>& f, DType dtype, const std::vector<Numbers>& x, int order) {
  Program program;
  program.graphs.emplace_back();
  program.graphs[0].name = "f";
  Builder b{.program = &program, .graph = &program.graphs[0]};
  EvalInputs in;
  std::vector<Value> operands;
  for (const Numbers& values : x) {
    const TensorType type{dtype, {static_cast<int64_t>(values.size())}};
    const std::string name = absl::StrCat("x", operands.size());
    HostTensor t = HostTensor::Zeros(type);
    for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Of(dtype, values[i]));
    in.params[name] = std::move(t);
    operands.push_back({&b, AppendInput(*b.graph, ParamKind::kInput, name, type, {}), b.generation, false});
  }
  const auto output = [&](const std::string& name, Value v) {
    b.graph->outputs.push_back({.name = name, .type = v.type(), .value = v.id});
  };
  const Value y = f(operands);
  output("y", y);
  for (size_t k = 0; order > 0 && k < x.size(); ++k) {
    const Value d = Gradient(ReduceSum(y), operands[k]);
    output(absl::StrCat("d", k), d);
    for (size_t l = 0; order > 1 && l < x.size(); ++l) {
      output(absl::StrCat("d", k, l), Gradient(ReduceSum(d), operands[l]));
    }
  }
  EXPECT_TRUE(b.status().ok()) << b.status();
  PassContext context;
  const absl::Status status = RunPipeline(program, {"canonicalize", "autograd"}, context);
  EXPECT_TRUE(status.ok()) << status;
  const absl::StatusOr<EvalResult> result = EvaluateGraph(program, program.graphs[0], in, EvalMode::kExact);
  EXPECT_TRUE(result.ok()) << result.status();
  Derivatives all;
  if (!result.ok()) return all;
  for (const auto& [name, t] : result->outputs) {
    for (int64_t i = 0; i < t.type.elements(); ++i) all[name].push_back(t.at(i).AsDouble());
  }
  return all;
}

inline Numbers Of(const std::function<Value(V)>& f, DType dtype, const std::vector<Numbers>& x) {
  return Evaluated(f, dtype, x, 0)["y"];
}
inline Derivatives DerivativesOf(const std::function<Value(V)>& f, DType dtype, const std::vector<Numbers>& x) {
  return Evaluated(f, dtype, x, 2);
}

}  // namespace agc
