// A graph traced, differentiated and evaluated on the host in one call.
//   RunTrace([](Trace& t) { ...; t.Output("g", g); }, {{"x", Numbers({2}, {1, 2})}}).at("g")     {1, 2}
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/agc.h"
#include "gtest/gtest.h"
#include "ir/eval/graph_eval.h"
#include "passes/manager.h"

namespace agc::test {

inline HostTensor Numbers(Dims dims, const std::vector<double>& values, DType dtype = DType::kF64) {
  HostTensor t = HostTensor::Zeros({dtype, std::move(dims)});
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Of(dtype, values[i]));
  return t;
}

inline std::map<std::string, std::vector<double>> RunTrace(absl::FunctionRef<void(Trace&)> fn,
                                                           const std::map<std::string, HostTensor>& inputs,
                                                           const std::map<std::string, HostTensor>& states = {},
                                                           EvalMode mode = EvalMode::kExact) {
  Module m("m");
  m.Graph("g", fn);
  EXPECT_TRUE(m.status().ok()) << m.status();
  if (!m.status().ok()) return {};
  Program program = Clone(m.program());
  PassContext context;
  const absl::Status s = RunPipeline(program, {"canonicalize", "autograd", "canonicalize", "dce"}, context);
  EXPECT_TRUE(s.ok()) << s;
  if (!s.ok()) return {};
  const absl::StatusOr<EvalResult> r = EvaluateGraph(program, *program.FindGraph("g"), {inputs, states}, mode);
  EXPECT_TRUE(r.ok()) << r.status();
  std::map<std::string, std::vector<double>> values;
  if (!r.ok()) return values;
  for (const auto* group : {&r->outputs, &r->states}) {
    for (const auto& [name, t] : *group) {
      for (int64_t i = 0; i < t.type.elements(); ++i) values[name].push_back(t.at(i).AsDouble());
      if (t.type.elements() == 0) values[name] = {};
    }
  }
  return values;
}

// The diagnostics of a trace.
inline std::string ErrorsOf(absl::FunctionRef<void(Trace&)> fn) {
  Module m("m");
  m.Graph("g", fn);
  return std::string(m.status().message());
}

}  // namespace agc::test
