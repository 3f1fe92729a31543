// What end-to-end tests share: programs from text, made-up tensors, a run on the device beside the evaluators, and
// comparison within a tolerance.
//   Program p = Parsed("module @m { graph @g(input %x: f32[4]) -> (%y: f32[4]) { ... } }");
//   EvalInputs in = RandomInputs(p, *p.FindGraph("g"), -1, 1);
//   EXPECT_EQ(Difference(OnDevice(p, "g", in), Exactly(p, "g", in), 1e-6), "");
#pragma once
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "codegen/bundle_writer.h"
#include "compiler/agc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/eval/plan_eval.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "test/unit/vulkan_main.h"

namespace agc::test {

inline Program Parsed(const std::string& text) {
  absl::StatusOr<Program> p = Parse(text, "t.agir");
  EXPECT_TRUE(p.ok()) << p.status() << "\n" << text;
  return p.ok() ? *std::move(p) : Program{};
}

// ---------------------------------------------------------------- tensors

inline HostTensor TensorOf(TensorType type, const std::vector<double>& values) {
  HostTensor t = HostTensor::Zeros(std::move(type));
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Of(t.type.dtype, values[i]));
  return t;
}
inline std::vector<double> Numbers(const HostTensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.type.elements(); ++i) v.push_back(t.at(i).AsDouble());
  return v;
}
// Uniform in [lo, hi]; whole numbers for integers, either for bool. The same on every machine.
inline HostTensor Random(const TensorType& type, double lo, double hi, uint32_t seed) {
  std::mt19937 random(seed);
  HostTensor t = HostTensor::Zeros(type);
  if (IsUnsigned(type.dtype) && lo < 0) lo = 0;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double u = static_cast<double>(random()) / 4294967296.0;
    if (type.dtype == DType::kBool) {
      t.set(i, Scalar::Int(type.dtype, u < 0.5 ? 0 : 1));
    } else if (IsFloat(type.dtype)) {
      t.set(i, Scalar::Float(type.dtype, lo + u * (hi - lo)));
    } else {
      const double first = std::ceil(lo), last = std::floor(hi);
      t.set(i, Scalar::Int(type.dtype, static_cast<int64_t>(first + std::floor(u * (last - first + 1)))));
    }
  }
  return t;
}

// A value for every parameter of the graph and every state of the program.
inline EvalInputs RandomInputs(const Program& program, const Graph& graph, double lo, double hi, uint32_t seed = 1) {
  EvalInputs in;
  for (const GraphParam& p : graph.params) in.params[p.name] = Random(p.type, lo, hi, seed++);
  for (const StateDef& s : program.states) {
    if (!s.hidden) in.states[s.name] = Random(s.type, lo, hi, seed++);
  }
  return in;
}

// ---------------------------------------------------------------- comparison

// Largest difference of two tensors relative to max(1, |want|), infinite where NaNs or shapes do not agree.
inline double ErrorOf(const HostTensor& got, const HostTensor& want) {
  if (got.type.dims != want.type.dims) return HUGE_VAL;
  double worst = 0;
  for (int64_t i = 0; i < want.type.elements(); ++i) {
    const double a = got.at(i).AsDouble(), b = want.at(i).AsDouble();
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double error = std::abs(a - b) / std::max(1.0, std::abs(b));
    worst = std::max(worst, std::isnan(error) ? HUGE_VAL : error);
  }
  return worst;
}

// Tensors of one group: the first that differs by more than `tolerance` (0: in any bit), or "".
inline std::string Difference(const std::map<std::string, HostTensor>& got,
                              const std::map<std::string, HostTensor>& want, double tolerance) {
  std::string all;
  for (const auto& [name, w] : want) {
    if (name == "run.index") continue;
    const auto it = got.find(name);
    if (it == got.end()) {
      absl::StrAppend(&all, name, " is missing; ");
    } else if (tolerance == 0 && it->second.type == w.type && it->second.bytes == w.bytes) {
      continue;
    } else if (const double error = ErrorOf(it->second, w); error > tolerance || tolerance == 0) {
      absl::StrAppend(&all, name, " of ", ToString(w.type), " is off by ", error, "; ");
    }
  }
  return all;
}
inline std::string Difference(const EvalResult& got, const EvalResult& want, double tolerance) {
  return Difference(got.outputs, want.outputs, tolerance) + Difference(got.states, want.states, tolerance);
}

// The first element whose bits differ, but for those of NaNs, or "".
inline std::string BitDifference(const std::map<std::string, HostTensor>& got,
                                 const std::map<std::string, HostTensor>& want) {
  for (const auto& [name, w] : want) {
    if (name == "run.index") continue;
    const auto it = got.find(name);
    if (it == got.end() || !(it->second.type == w.type)) return absl::StrCat(name, " is missing");
    for (int64_t i = 0; i < w.type.elements(); ++i) {
      const Scalar a = it->second.at(i), b = w.at(i);
      if (a == b || (IsFloat(a.dtype) && std::isnan(a.f()) && std::isnan(b.f()))) continue;
      return absl::StrCat(name, "[", i, "] of ", ToString(w.type), ": ", ToString(a), ", not ", ToString(b));
    }
  }
  return "";
}

// ---------------------------------------------------------------- runs

inline rt::Value ToValue(const std::string& name, const HostTensor& t) {
  return {.name = name,
          .dtype = static_cast<rt::DType>(t.type.dtype),
          .dims = {t.type.dims.begin(), t.type.dims.end()},
          .bytes = t.bytes};
}
inline HostTensor FromValue(const rt::Value& v) {
  return {{static_cast<DType>(v.dtype), {v.dims.begin(), v.dims.end()}}, v.bytes};
}

inline absl::StatusOr<rt::Session> LoadOnDevice(const rt::Bundle& bundle) {
  rt::StatusOr<rt::Session> s = TheDevice().Load(WriteBundle(bundle), rt::Trust::kTrusted);
  if (!s.ok()) return AsStatus(s.status());
  return *std::move(s);
}

// Writes states, binds residents, runs `n` steps and reads everything back.
inline absl::StatusOr<EvalResult> RunSession(rt::Session& s, const Program& program, const Graph& graph,
                                             const EvalInputs& in, int64_t n = 1) {
  for (const auto& [name, t] : in.states)
    AGC_RETURN_IF_ERROR(AsStatus(s.WriteState(name, t.bytes.data(), t.bytes.size())));
  rt::Args args;
  for (const GraphParam& p : graph.params) {
    const HostTensor& t = in.params.at(p.name);
    if (p.kind == ParamKind::kResident) {
      AGC_RETURN_IF_ERROR(AsStatus(s.Bind(p.name, t.bytes.data(), t.bytes.size())));
    } else {
      args.push_back(rt::Arg::Raw(p.name, t.bytes));
    }
  }
  rt::StatusOr<rt::Outputs> out = s.Run(graph.name, n, args);
  if (!out.ok()) return AsStatus(out.status());
  EvalResult result;
  for (const rt::Value& v : out->values) result.outputs[v.name] = FromValue(v);
  for (const StateDef& state : program.states) {
    if (state.hidden) continue;
    rt::StatusOr<rt::Value> v = s.ReadState(state.name);
    if (!v.ok()) return AsStatus(v.status());
    result.states[state.name] = FromValue(*v);
  }
  return result;
}

inline absl::StatusOr<EvalResult> TryOnDevice(const Program& program, const std::string& graph, const EvalInputs& in,
                                              const CompileOptions& options = {}, const Target& target = TheTarget()) {
  AGC_ASSIGN_OR_RETURN(const rt::Bundle bundle, CompileProgram(Clone(program), target, options));
  AGC_ASSIGN_OR_RETURN(rt::Session s, LoadOnDevice(bundle));
  return RunSession(s, program, *program.FindGraph(graph), in);
}

inline EvalResult Checked(absl::StatusOr<EvalResult> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : EvalResult{};
}

inline EvalResult OnDevice(const Program& program, const std::string& graph, const EvalInputs& in,
                           const CompileOptions& options = {}, const Target& target = TheTarget()) {
  return Checked(TryOnDevice(program, graph, in, options, target));
}

// The meaning in f64 (or with every operation rounded), after autograd if the graph has gradients.
inline EvalResult Evaluated(const Program& program, const std::string& graph, const EvalInputs& in,
                            EvalMode mode = EvalMode::kDouble) {
  Program p = Clone(program);
  PassContext context;
  if (p.stage == Stage::kTensor) {
    const absl::Status s = RunPipeline(p, {"autograd"}, context);
    EXPECT_TRUE(s.ok()) << s;
  }
  return Checked(Evaluate(p, graph, in, {.mode = mode}));
}

// The plan, every kernel through the loop executor: finds races, poison and out-of-range access too.
inline EvalResult Executed(const Program& program, const std::string& graph, const EvalInputs& in,
                           const CompileOptions& options = {}, const Target& target = TheTarget()) {
  absl::StatusOr<Program> plan = LowerToPlan(Clone(program), target, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  if (!plan.ok()) return {};
  EvalInputs with_index = in;
  if (plan->FindState("run.index") != nullptr)
    with_index.states["run.index"] = HostTensor::Zeros(plan->FindState("run.index")->type);
  const KernelOptions kernel_options{.subgroup = static_cast<int>(target.subgroup_size)};
  EvalResult result = Checked(Evaluate(*plan, graph, with_index, kernel_options));
  result.states.insert(in.states.begin(), in.states.end());  // those that the plan does not mention stay
  return result;
}

}  // namespace agc::test
