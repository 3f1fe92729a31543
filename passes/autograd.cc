// Expands `gradient` ops by reverse differentiation. All gradients of one loss are expanded together; a loss that
// itself holds gradients waits for them (higher order). New ops have the role "grad" and the location of the op they
// come from.
//   %1: f32[2] = mul %0, %0             ->   ...
//   %2: f32[] = reduce_sum %1                %3: f32[] = constant splat(1)
//   %3: f32[2] = gradient %2, %0             %4: f32[2] = broadcast %3, ...
//                                            %5: f32[2] = mul %4, %0
//                                            %6: f32[2] = add %5, %5
// The cotangent of a value with several users is one sum, in the order of the uses. Integers have none. A value the
// loss does not depend on gets zeros. Composites use their own rule, or else are decomposed first.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "passes/decompose.h"
#include "passes/registry.h"
#include "passes/replace.h"

namespace agc {
namespace {

// The gradients of one loss, in op order.
struct Request {
  OpId loss = {};
  std::vector<OpId> gradients = {};
};

// The first loss in op order; no gradient op is among its operands, since those would come before.
Request FirstRequest(const Graph& graph) {
  Request request;
  for (uint32_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.def != &GradientOp()) continue;
    if (request.gradients.empty()) request.loss = op.operands[0];
    if (op.operands[0] == request.loss) request.gradients.push_back({i});
  }
  return request;
}

bool HasFloat(const Op& op) {
  return std::any_of(op.types.begin(), op.types.end(), [](const TensorType& t) { return IsFloat(t.dtype); });
}

// Values that lie between a target and the loss: they depend on one and the other depends on them, through floats only.
std::vector<bool> ActiveOps(const Graph& graph, const Request& request) {
  std::vector<bool> depends(graph.ops.size()), reaches(graph.ops.size()), active(graph.ops.size());
  for (OpId g : request.gradients) depends[graph.op(g).operands[1].index] = true;
  reaches[request.loss.index] = true;
  for (size_t i = 0; i <= request.loss.index; ++i) {
    const Op& op = graph.ops[i];
    const bool any = std::any_of(op.operands.begin(), op.operands.end(), [&](OpId o) { return depends[o.index]; });
    depends[i] = (depends[i] || any) && HasFloat(op);
  }
  for (size_t i = request.loss.index + 1; i-- > 0;) {
    active[i] = depends[i] && reaches[i];
    if (!active[i]) continue;
    for (OpId o : graph.ops[i].operands) reaches[o.index] = true;
  }
  return active;
}

bool HasActiveOperand(const Op& op, const std::vector<bool>& active) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](OpId o) { return active[o.index]; });
}

class Reverse {
 public:
  Reverse(Program& program, Graph& graph, const Request& request, const std::vector<bool>& active)
      : graph_(graph), request_(request), active_(active), builder_{.program = &program, .graph = &graph} {
    parts_.resize(request.loss.index + 1);
  }

  // Builds all cotangents behind the graph's ops and replaces the gradient ops by them.
  absl::Status Run(Replacements& replacements) {
    Seed();
    std::vector<Value> cotangents(parts_.size());
    for (size_t i = parts_.size(); i-- > 0;) {
      if (!active_[i] || parts_[i].empty()) continue;
      AGC_RETURN_IF_ERROR(Visit({static_cast<uint32_t>(i)}, cotangents[i]));
    }
    for (OpId g : request_.gradients) {
      const OpId target = graph_.op(g).operands[1];
      const RuleScope scope(builder_, graph_.op(g).loc, "grad");
      const bool reached = target.index < cotangents.size() && cotangents[target.index].valid();
      replacements.Replace(g, reached ? cotangents[target.index].id : FullLike(ValueOf(target), 0).id);
    }
    return builder_.status();
  }

 private:
  // A cotangent that a user hands to one element of a value.
  struct Part {
    uint32_t user = 0;
    int operand = 0;
    int element = 0;
    Value value = {};
  };

  Value ValueOf(OpId id) { return {&builder_, id, builder_.generation, false}; }

  void Seed() {
    const RuleScope scope(builder_, graph_.op(request_.loss).loc, "grad");
    const Value one = FullLike(ValueOf(request_.loss), 1);
    parts_[request_.loss.index].push_back({.user = UINT32_MAX, .value = one});
  }

  // The sum of what the users gave one element, in the order of the uses; invalid if none did.
  Value Sum(absl::Span<const Part> parts, int element) {
    Value sum = {};
    for (const Part& part : parts) {
      if (part.element == element) sum = sum.valid() ? Add(sum, part.value) : part.value;
    }
    return sum;
  }

  absl::Status Visit(OpId id, Value& cotangent) {
    const Op op = graph_.op(id);
    std::vector<Part>& parts = parts_[id.index];
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.user != b.user ? a.user < b.user : a.operand < b.operand; });
    const RuleScope scope(builder_, op.loc, "grad");
    absl::InlinedVector<Value, 2> sums;
    for (size_t k = 0; k < op.types.size(); ++k) sums.push_back(Sum(parts, static_cast<int>(k)));
    cotangent = sums[0];
    if (!HasActiveOperand(op, active_)) return absl::OkStatus();
    if (op.def == &GetOp()) {
      const int element = static_cast<int>(AttrReader{op.attrs}.integer("index"));
      parts_[op.operands[0].index].push_back({.user = id.index, .element = element, .value = sums[0]});
      return absl::OkStatus();
    }
    if (op.def->vjp == nullptr) return NoRule(op);
    return Apply(op, id, sums);
  }

  absl::Status Apply(const Op& op, OpId id, const absl::InlinedVector<Value, 2>& sums) {
    Vjp rule(builder_, op, id);
    rule.g = sums[0];
    rule.gs = sums;
    op.def->vjp(rule);
    const auto broken = [&](absl::string_view why) {
      return absl::InternalError(absl::StrCat(op.def->name, ": its gradient rule ", why));
    };
    if (!builder_.errors.empty()) return broken(absl::StrCat("fails: ", builder_.status().message()));
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const OpId to = op.operands[k];
      if (!rule.dx[k].valid() || !active_[to.index]) continue;
      const TensorType& have = rule.dx[k].type();
      const TensorType& want = graph_.op(to).type();
      if (have != want) {
        return broken(absl::StrCat("gives operand ", k, " type ", ToString(have), " instead of ", ToString(want)));
      }
      parts_[to.index].push_back({.user = id.index, .operand = static_cast<int>(k), .value = rule.dx[k]});
    }
    return absl::OkStatus();
  }

  absl::Status NoRule(const Op& op) const {
    const absl::Status error =
        ErrorAt(op.loc,
                absl::StrCat(op.def->name,
                             ": it has no gradient rule, and a gradient is taken through it; put "
                             "stop_gradient on its operand or compute it with other ops"),
                absl::StatusCode::kUnimplemented);
    return WithNote(error, "the gradient is asked for here", graph_.op(request_.gradients[0]).loc);
  }

  Graph& graph_;
  const Request& request_;
  const std::vector<bool>& active_;
  Builder builder_;
  std::vector<std::vector<Part>> parts_ = {};  // by op up to the loss
};

// Decomposes the composites without a rule that a gradient passes through, one level.
absl::StatusOr<bool> Prepare(Program& program, Graph& graph, const Request& request) {
  const std::vector<bool> active = ActiveOps(graph, request);
  const auto lacks_rule = [&](OpId id) {
    return active[id.index] && graph.op(id).def->vjp == nullptr && HasActiveOperand(graph.op(id), active);
  };
  return ExpandComposites(program, graph, lacks_rule, /*deep=*/false);
}

absl::StatusOr<bool> ExpandFirst(Program& program, Graph& graph) {
  Request request = FirstRequest(graph);
  if (request.gradients.empty()) return false;
  Canonicalize(graph, program);  // the order of uses is that of the canonical numbers
  for (;;) {
    request = FirstRequest(graph);
    AGC_ASSIGN_OR_RETURN(const bool again, Prepare(program, graph, request));
    if (!again) break;
  }
  const std::vector<bool> active = ActiveOps(graph, request);
  Replacements replacements(graph);
  AGC_RETURN_IF_ERROR(Reverse(program, graph, request, active).Run(replacements));
  replacements.Apply(program);
  return true;
}

}  // namespace

absl::StatusOr<bool> Autograd(Program& program, PassContext&) {
  bool changed = false;
  for (Graph& graph : program.graphs) {
    for (;;) {
      AGC_ASSIGN_OR_RETURN(const bool expanded, ExpandFirst(program, graph));
      if (!expanded) break;
      changed = true;
    }
  }
  return changed;
}

}  // namespace agc
