// Derivatives of a function against differences of its values, in f64: one line checks a gradient rule.
//   EXPECT_TRUE(GradientsMatch([](TensorSpan x) { return Tanh(x[0]) * x[1]; }, {Numbers({2}, {1, 2}), Numbers({2}, {3,
//   4})}));
// For random weights u of the results and directions t, v of the float inputs, at first order
//   J'u by reverse = (f(x + h e) - f(x - h e)) u / 2h for each element e;  Jt by forward = (f(x + ht) - f(x - ht)) /
//   2h; <u, Jt> = <J'u, t>
// and at second order, with H the Hessian of <u, f>,
//   Ht by forward over reverse = (J'u(x + ht) - J'u(x - ht)) / 2h = Ht by reverse over reverse;  <v, Ht> = <t, Hv>.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "gtest/gtest.h"
#include "ir/eval/graph_eval.h"
#include "passes/manager.h"
#include "test/unit/run_trace.h"

namespace agc::test {

struct MatchOptions {
  int order = 2;
  double h = 1e-5;           // of differences, whose error is about h^2
  double difference = 1e-6;  // accepted, relative to max(1, |expected|)
  double exact = 1e-12;      // where both sides are exact but for rounding, relative to the sum of |terms|
  uint64_t seed = 1;
};

using Function = std::function<Tensors(TensorSpan)>;  // what is not float in the results is left out

class Derivatives {
 public:
  // Values are computed in f64, whatever the dtypes of `types`; integers are what `inputs` has.
  Derivatives(Function f, const std::vector<TensorType>& types, const std::vector<HostTensor>& inputs,
              const MatchOptions& options)
      : f_(std::move(f)), types_(types), options_(options), rng_(options.seed) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      at_.params[absl::StrCat("x", k)] = IsFloat(types[k].dtype) ? ConvertTo(inputs[k], DType::kF64) : inputs[k];
      if (IsFloat(types[k].dtype)) floats_.push_back(k);
    }
  }

  absl::Status Build() {
    m_.Graph("value", [&](Trace& t) { Output(t, "y", Results(t)); });
    AGC_RETURN_IF_ERROR(m_.status());
    if (results_.empty() || floats_.empty()) return absl::NotFoundError("no float input or no float result");
    m_.Graph("loss", [&](Trace& t) { Output(t, "loss", {Loss(t, Results(t))}); });
    m_.Graph("first", [&](Trace& t) {
      const Tensors y = Results(t), x = Floats();
      Output(t, "g", agc::Vjp(y, x, Given(t, "u", y)));
      Output(t, "ty", agc::Jvp(y, x, Given(t, "t", x)));
    });
    if (options_.order > 1) m_.Graph("second", [&](Trace& t) { BuildSecond(t); });
    AGC_RETURN_IF_ERROR(m_.status());
    program_ = Clone(m_.program());
    PassContext context;
    return RunPipeline(program_, {"canonicalize", "autograd", "dce"}, context);
  }

  std::string CheckFirst() {
    const auto first = Run("first", at_);
    std::string wrong;
    for (size_t k = 0; k < floats_.size(); ++k) {
      const std::string x = absl::StrCat("x", floats_[k]);
      const HostTensor& g = first.at(absl::StrCat("g", k));
      for (int64_t i = 0; i < g.type.elements(); ++i) {
        double loss[2];
        for (int side : {0, 1}) {
          EvalInputs moved = at_;
          HostTensor& t = moved.params[x];
          t.set(i, Scalar::Float(DType::kF64, t.at(i).f() + (side == 0 ? -options_.h : options_.h)));
          loss[side] = Run("loss", moved).at("loss0").at(0).f();
        }
        const double want = (loss[1] - loss[0]) / (2 * options_.h);
        Near(absl::StrCat("gradient of ", x, "[", i, "]"), g.at(i).f(), want, wrong);
      }
    }
    return wrong;
  }

  std::string CheckTangents() {
    const auto first = Run("first", at_);
    std::string wrong;
    Differences("value", "y", "ty", first, wrong);
    double scale = 1;
    const double by_forward = Dot(first, "ty", "u", results_.size(), scale);
    const double by_reverse = Dot(first, "g", "t", floats_.size(), scale);
    Same("<u, Jt> and <J'u, t>", by_forward, by_reverse, scale, wrong);
    return wrong;
  }

  std::string CheckSecond() {
    const auto second = Run("second", at_);
    std::string wrong;
    Differences("first", "g", "ht", second, wrong);
    double scale = 1;
    const double vht = Dot(second, "ht", "v", floats_.size(), scale);
    const double thv = Dot(second, "hv", "t", floats_.size(), scale);
    Same("<v, Ht> and <t, Hv>", vht, thv, scale, wrong);
    for (size_t k = 0; k < floats_.size(); ++k) {
      const HostTensor &a = second.at(absl::StrCat("ht", k)), &b = second.at(absl::StrCat("rr", k));
      for (int64_t i = 0; i < a.type.elements(); ++i) {
        Same(absl::StrCat("Ht of x", floats_[k], "[", i, "] by forward and by reverse"), a.at(i).f(), b.at(i).f(),
             10 * (1 + std::abs(b.at(i).f())), wrong);
      }
    }
    return wrong;
  }

 private:
  using Values = std::map<std::string, HostTensor>;

  Tensors Results(Trace& t) {
    inputs_.clear();
    for (size_t k = 0; k < types_.size(); ++k)
      inputs_.push_back(t.Input(absl::StrCat("x", k), types_[k].dtype, types_[k].dims));
    results_ = f_(inputs_);
    std::erase_if(results_, [](const Tensor& y) { return y.valid() && !IsFloat(y.dtype()); });
    return results_;
  }
  Tensors Floats() const {
    Tensors x;
    for (size_t k : floats_) x.push_back(inputs_[k]);
    return x;
  }
  // One input of the type of each value, with random elements: weights away from 0, directions of both signs.
  Tensors Given(Trace& t, const std::string& name, const Tensors& like) {
    Tensors given;
    for (size_t k = 0; k < like.size(); ++k) {
      const std::string full = absl::StrCat(name, k);
      given.push_back(t.Input(full, like[k].dtype(), like[k].dims()));
      if (at_.params.count(full) == 0)
        at_.params[full] = Drawn(like[k].dims(), name == "u" ? 0.5 : -1, name == "u" ? 1.5 : 1);
    }
    return given;
  }
  HostTensor Drawn(const Dims& dims, double lo, double hi) {
    HostTensor t = HostTensor::Zeros({DType::kF64, dims});
    for (int64_t i = 0; i < t.type.elements(); ++i) {
      t.set(i, Scalar::Float(DType::kF64, lo + (hi - lo) * std::generate_canonical<double, 53>(rng_)));
    }
    return t;
  }
  static void Output(Trace& t, const std::string& name, const Tensors& values) {
    for (size_t k = 0; k < values.size(); ++k) t.Output(absl::StrCat(name, k), values[k]);
  }
  static Tensor Sum(const Tensors& a, const Tensors& b) {
    Tensor sum;
    for (size_t k = 0; k < a.size(); ++k) {
      const Tensor term = ReduceSum(CastTo(a[k] * b[k], kF64));
      sum = sum.valid() ? sum + term : term;
    }
    return sum;
  }
  Tensor Loss(Trace& t, const Tensors& y) { return Sum(y, Given(t, "u", y)); }

  void BuildSecond(Trace& t) {
    const Tensor loss = Loss(t, Results(t));
    const Tensors x = Floats(), along = Given(t, "t", x), other = Given(t, "v", x);
    Output(t, "ht", agc::Hvp(loss, x, along));
    Output(t, "hv", agc::Hvp(loss, x, other));
    Output(t, "rr", agc::Grad(Sum(agc::Grad(loss, x), along), x));
  }

  Values Run(const std::string& graph, const EvalInputs& in) {
    absl::StatusOr<EvalResult> r = EvaluateGraph(program_, *program_.FindGraph(graph), in, EvalMode::kDouble);
    EXPECT_TRUE(r.ok()) << r.status();
    return r.ok() ? std::move(r->outputs) : Values{};
  }

  void Near(const std::string& what, double got, double want, std::string& wrong) const {
    if (std::abs(got - want) <= options_.difference * std::max(1.0, std::abs(want))) return;
    absl::StrAppend(&wrong, what, " is ", got, ", differences give ", want, "; ");
  }
  void Same(const std::string& what, double a, double b, double scale, std::string& wrong) const {
    if (std::abs(a - b) <= options_.exact * scale) return;
    absl::StrAppend(&wrong, what, " are ", a, " and ", b, ", apart by ", a - b, "; ");
  }

  // Outputs `exact` of `got` against differences of outputs `of` of `graph` along t.
  void Differences(const std::string& graph, const std::string& of, const std::string& exact, const Values& got,
                   std::string& wrong) {
    Values side[2];
    for (int s : {0, 1}) {
      EvalInputs moved = at_;
      for (size_t k = 0; k < floats_.size(); ++k) {
        HostTensor& x = moved.params[absl::StrCat("x", floats_[k])];
        const HostTensor& t = at_.params.at(absl::StrCat("t", k));
        for (int64_t i = 0; i < x.type.elements(); ++i) {
          x.set(i, Scalar::Float(DType::kF64, x.at(i).f() + (s == 0 ? -1 : 1) * options_.h * t.at(i).f()));
        }
      }
      side[s] = Run(graph, moved);
    }
    for (size_t k = 0; got.count(absl::StrCat(exact, k)) != 0; ++k) {
      const HostTensor &value = got.at(absl::StrCat(exact, k)), &a = side[0].at(absl::StrCat(of, k)),
                       &b = side[1].at(absl::StrCat(of, k));
      for (int64_t i = 0; i < value.type.elements(); ++i) {
        Near(absl::StrCat(exact, k, "[", i, "]"), value.at(i).f(), (b.at(i).f() - a.at(i).f()) / (2 * options_.h),
             wrong);
      }
    }
  }

  // The sum of products of outputs and given vectors; the terms' sizes are added to `scale`.
  double Dot(const Values& outputs, const std::string& name, const std::string& vector, size_t count, double& scale) {
    double sum = 0;
    for (size_t k = 0; k < count; ++k) {
      const HostTensor &a = outputs.at(absl::StrCat(name, k)), &b = at_.params.at(absl::StrCat(vector, k));
      for (int64_t i = 0; i < a.type.elements(); ++i) {
        const double term = a.at(i).f() * b.at(i).f();
        sum += term;
        scale += std::abs(term);
      }
    }
    return sum;
  }

  Function f_;
  const std::vector<TensorType> types_;
  const MatchOptions options_;
  std::mt19937_64 rng_;
  EvalInputs at_ = {};
  std::vector<size_t> floats_ = {};  // positions of float inputs
  Module m_{"derivatives"};
  Program program_ = {};
  Tensors inputs_ = {}, results_ = {};  // of the graph being traced
};

inline testing::AssertionResult GradientsMatch(Function f, const std::vector<HostTensor>& inputs,
                                               const MatchOptions& options = {}) {
  std::vector<TensorType> types;
  for (const HostTensor& t : inputs) types.push_back(t.type);
  Derivatives d(std::move(f), types, inputs, options);
  if (const absl::Status s = d.Build(); !s.ok()) return testing::AssertionFailure() << s;
  std::string wrong = d.CheckFirst() + d.CheckTangents();
  if (options.order > 1) wrong += d.CheckSecond();
  return wrong.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << wrong;
}
inline testing::AssertionResult GradientsMatch(std::function<Tensor(TensorSpan)> f,
                                               const std::vector<HostTensor>& inputs,
                                               const MatchOptions& options = {}) {
  return GradientsMatch([f = std::move(f)](TensorSpan x) { return Tensors{f(x)}; }, inputs, options);
}

}  // namespace agc::test
