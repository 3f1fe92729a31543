// Training steps on the host evaluator: a module's graphs with gradients expanded, run one after the other on its
// states.
//   Steps s(m);
//   s.in.params["x"] = TensorOf({kF32, {2}}, {1, 2});
//   s.Run("step");
//   s.State("w")                                       its elements after the step
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compiler/agc.h"
#include "gtest/gtest.h"
#include "ir/eval/graph_eval.h"
#include "passes/manager.h"

namespace agc {

using Numbers = std::vector<double>;

inline Numbers NumbersOf(const HostTensor& t) {
  Numbers values;
  for (int64_t i = 0; i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
  return values;
}
inline HostTensor TensorOf(TensorType type, const Numbers& values) {
  HostTensor t = HostTensor::Zeros(std::move(type));
  for (int64_t i = 0; i < t.type.elements(); ++i) {
    t.set(i, Scalar::Of(t.type.dtype, values[values.size() == 1 ? 0 : static_cast<size_t>(i)]));
  }
  return t;
}

// Steps of a module's graph from given inputs; states start at their constants unless they are given.
struct Steps {
  Program program;
  EvalInputs in = {};
  explicit Steps(const Module& m) : program(Clone(m.program())) {
    EXPECT_TRUE(m.status().ok()) << m.status();
    PassContext context;
    const absl::Status status = RunPipeline(program, {"dce", "autograd"}, context);
    EXPECT_TRUE(status.ok()) << status;
  }
  EvalResult Run(const std::string& graph) {
    absl::StatusOr<EvalResult> r = EvaluateGraph(program, *program.FindGraph(graph), in, EvalMode::kExact);
    EXPECT_TRUE(r.ok()) << r.status();
    if (!r.ok()) return {};
    for (const auto& [name, value] : r->states) in.states[name] = value;
    return *std::move(r);
  }
  Numbers State(const std::string& name) { return NumbersOf(in.states.at(name)); }
};

}  // namespace agc
