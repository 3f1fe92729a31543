// Expands `gradient` and `vjp` by reverse and `jvp` by forward differentiation, whatever is ready at once: derivatives
// of values that hold derivatives wait for those (higher order), and those of the same values are expanded together.
// New ops have the role "grad" and the location of the op they come from.
//   %1: f32[2] = mul %0, %0             ->   ...
//   %2: f32[] = reduce_sum %1                %3: f32[] = constant splat(1)
//   %3: f32[2] = gradient %2, %0             %4: f32[2] = broadcast %3, ...
//                                            %5: f32[2] = mul %4, %0
//                                            %6: f32[2] = add %5, %5
// The cotangent of a value with several users is one sum, in the order of the uses. Integers have none. A value that
// is not reached gets zeros. Composites use their own rule, or else are decomposed first. At the end `custom_vjp` ops
// become their first operand, and the graphs with their gradients go.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/derivative.h"
#include "ir/op_def.h"
#include "passes/decompose.h"
#include "passes/differentiate.h"
#include "passes/registry.h"
#include "passes/replace.h"

namespace agc {
namespace {

// Derivatives that are expanded together: reverse of the same ys and cotangents, or forward from the same xs and
// tangents.
struct Request {
  bool forward = false;
  DerivativeOperands key = {};
  std::vector<OpId> ops = {};  // in op order
};

bool SameKey(const Request& r, bool forward, const DerivativeOperands& o) {
  return r.forward == forward && r.key.vectors == o.vectors && (forward ? r.key.xs == o.xs : r.key.ys == o.ys);
}

// Those whose values hold no derivative themselves.
std::vector<Request> ReadyRequests(const Graph& graph) {
  std::vector<Request> requests;
  std::vector<bool> pending(graph.ops.size());
  for (uint32_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const bool derivative = IsDerivative(*op.def);
    pending[i] = derivative || HasActiveOperand(op, pending);
    if (!derivative) continue;
    const DerivativeOperands operands = OperandsOf(op);
    const auto waits = [&](OpId y) { return pending[y.index]; };
    if (std::any_of(operands.ys.begin(), operands.ys.end(), waits)) continue;
    const bool forward = op.def == &JvpOp();
    auto it =
        std::find_if(requests.begin(), requests.end(), [&](const Request& r) { return SameKey(r, forward, operands); });
    if (it == requests.end()) it = requests.insert(it, {.forward = forward, .key = operands});
    it->ops.push_back({i});
  }
  return requests;
}

// The y of a `jvp`, the x of the others.
OpId VaryingOperand(const Graph& graph, const Request& r, OpId id) {
  const DerivativeOperands operands = OperandsOf(graph.op(id));
  return r.forward ? operands.ys[0] : operands.xs[0];
}

std::vector<OpId> VaryingOperands(const Graph& graph, const Request& r) {
  std::vector<OpId> out;
  for (OpId id : r.ops) out.push_back(VaryingOperand(graph, r, id));
  return out;
}

// Decomposes the composites without a rule that derivatives pass through, one level.
absl::StatusOr<bool> Prepare(Program& program, Graph& graph, const std::vector<Request>& requests) {
  std::vector<bool> expand(graph.ops.size());
  for (const Request& r : requests) {
    const std::vector<OpId> varying = VaryingOperands(graph, r);
    const std::vector<bool> active =
        r.forward ? ActiveOps(graph, r.key.xs, varying) : ActiveOps(graph, varying, r.key.ys);
    for (size_t i = 0; i < expand.size(); ++i) {
      const Op& op = graph.ops[i];
      if (active[i] && LacksRule(*op.def, r.forward) && HasActiveOperand(op, active)) expand[i] = true;
    }
  }
  return ExpandComposites(
      program, graph, [&](OpId id) { return expand[id.index]; }, /*deep=*/false);
}

absl::Status Expand(Builder& builder, const Request& r, Replacements& replacements) {
  const Graph& graph = *builder.graph;
  const std::vector<OpId> varying = VaryingOperands(graph, r);
  const Loc asked = graph.op(r.ops[0]).loc;
  absl::StatusOr<std::vector<Value>> values =
      r.forward ? PushForward(builder, {.ys = varying, .xs = r.key.xs, .ts = r.key.vectors, .asked = asked})
                : PullBack(builder, {.ys = r.key.ys, .gs = r.key.vectors, .xs = varying, .asked = asked});
  AGC_RETURN_IF_ERROR(values.status());
  for (size_t k = 0; k < r.ops.size(); ++k) {
    const RuleScope scope(builder, graph.op(r.ops[k]).loc, "grad");
    const Value v = (*values)[k].valid() ? (*values)[k] : Full(builder, graph.op(r.ops[k]).type(), 0);
    replacements.Replace(r.ops[k], v.id);
  }
  return builder.status();
}

absl::StatusOr<bool> ExpandReady(Program& program, Graph& graph) {
  std::vector<Request> requests = ReadyRequests(graph);
  if (requests.empty()) return false;
  Canonicalize(graph, program);  // the order of uses is that of the canonical numbers
  for (;;) {
    requests = ReadyRequests(graph);
    AGC_ASSIGN_OR_RETURN(const bool again, Prepare(program, graph, requests));
    if (!again) break;
  }
  Builder builder{.program = &program, .graph = &graph};
  Replacements replacements(graph);
  for (const Request& r : requests) AGC_RETURN_IF_ERROR(Expand(builder, r, replacements));
  replacements.Apply(program);
  return true;
}

// Rounds of derivatives of derivatives; a custom gradient that differentiates itself has no end of them.
constexpr int kMaxRounds = 1000;

absl::StatusOr<bool> ExpandAll(Program& program, Graph& graph) {
  for (int round = 0; round < kMaxRounds; ++round) {
    AGC_ASSIGN_OR_RETURN(const bool expanded, ExpandReady(program, graph));
    if (!expanded) return round > 0;
  }
  return ErrorAt(graph.loc, absl::StrCat("gradients in @", graph.name, " do not end after ", kMaxRounds,
                                         " rounds; a custom gradient takes the gradient of its own function"));
}

// A custom gradient has done its part: what is left is the value.
bool DropCustom(const Program& program, Graph& graph) {
  Replacements replacements(graph);
  for (uint32_t i = 0; i < graph.ops.size(); ++i) {
    if (graph.ops[i].def == &CustomVjpOp()) replacements.Replace({i}, graph.ops[i].operands[0]);
  }
  return replacements.Apply(program);
}

}  // namespace

absl::StatusOr<bool> Autograd(Program& program, PassContext&) {
  bool changed = false;
  for (bool functions : {true, false}) {  // those first: their bodies are copied
    for (Graph& graph : program.graphs) {
      if (IsGradientFunction(graph) != functions) continue;
      AGC_ASSIGN_OR_RETURN(const bool expanded, ExpandAll(program, graph));
      changed |= expanded;
    }
  }
  for (Graph& graph : program.graphs) changed |= DropCustom(program, graph);
  return std::erase_if(program.graphs, IsGradientFunction) > 0 || changed;
}

}  // namespace agc
