#include "passes/equivalence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/derivative.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"

namespace agc {
namespace {

bool CanEvaluate(const Program& program, const Graph& graph) {
  return program.stage <= Stage::kPrimitive &&
         std::none_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return IsDerivative(*op.def); });
}

// Floats in [-1, 1), integers 0 to 3: small enough to be indices and counts.
HostTensor RandomTensor(const TensorType& type, std::mt19937_64& rng) {
  HostTensor t = HostTensor::Zeros(type);
  for (int64_t i = 0; i < type.elements(); ++i) {
    const uint64_t word = rng();
    const double u = static_cast<double>(word >> 11) * 0x1p-53;
    t.set(i, IsFloat(type.dtype) ? Scalar::Float(DType::kF64, 2 * u - 1)
                                 : Scalar::Int(DType::kI64, static_cast<int64_t>(word >> 62)));
  }
  return t;
}

double ToleranceOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 1e-10;
    case DType::kF32:
      return 1e-4;
    case DType::kF16:
      return 2e-2;
    case DType::kBF16:
      return 1e-1;
    default:
      return 0;
  }
}

bool Agree(Scalar a, Scalar b) {
  if (a == b) return true;
  const double x = a.AsDouble(), y = b.AsDouble();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y || std::abs(x - y) <= ToleranceOf(a.dtype) * std::max({1.0, std::abs(x), std::abs(y)});
}

// Every tensor of `before` against the one of that name in `after`.
absl::Status Compare(const std::string& what, const std::map<std::string, HostTensor>& before,
                     const std::map<std::string, HostTensor>& after) {
  for (const auto& [name, x] : before) {
    const auto found = after.find(name);
    if (found == after.end()) return absl::InternalError(absl::StrCat(what, name, " is gone"));
    const HostTensor& y = found->second;
    if (x.type != y.type)
      return absl::InternalError(absl::StrCat(what, name, " was ", ToString(x.type), " and is ", ToString(y.type)));
    for (int64_t i = 0; i < x.type.elements(); ++i) {
      if (Agree(x.at(i), y.at(i))) continue;
      return absl::InternalError(
          absl::StrCat(what, name, " at element ", i, " was ", ToString(x.at(i)), " and is ", ToString(y.at(i))));
    }
  }
  return absl::OkStatus();
}

absl::Status CompareGraphs(const Program& before, const Graph& f, const Program& after, const Graph& g) {
  std::mt19937_64 rng(1);
  EvalInputs inputs;
  for (const GraphParam& p : f.params) inputs.params[p.name] = RandomTensor(p.type, rng);
  for (const StateDef& s : before.states) inputs.states[s.name] = RandomTensor(s.type, rng);
  const absl::StatusOr<EvalResult> x = EvaluateGraph(before, f, inputs, EvalMode::kExact);
  if (!x.ok()) return absl::OkStatus();  // nothing to compare with: a blob that is not there, for one
  const absl::StatusOr<EvalResult> y = EvaluateGraph(after, g, inputs, EvalMode::kExact);
  if (!y.ok()) return y.status();
  AGC_RETURN_IF_ERROR(Compare(absl::StrCat("graph ", f.name, ": output "), x->outputs, y->outputs));
  std::map<std::string, HostTensor> updated;
  for (const Update& u : f.updates) updated.emplace(u.state, x->states.at(u.state));
  return Compare(absl::StrCat("graph ", f.name, ": state "), updated, y->states);
}

}  // namespace

absl::Status SameMeaning(const Program& before, const Program& after) {
  for (const Graph& graph : before.graphs) {
    if (IsGradientFunction(graph)) continue;  // autograd needs it no longer
    const Graph* other = after.FindGraph(graph.name);
    if (other == nullptr) return absl::InternalError(absl::StrCat("graph ", graph.name, " is gone"));
    if (!CanEvaluate(before, graph) || !CanEvaluate(after, *other)) continue;
    AGC_RETURN_IF_ERROR(CompareGraphs(before, graph, after, *other));
  }
  return absl::OkStatus();
}

}  // namespace agc
