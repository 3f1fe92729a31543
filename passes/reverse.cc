// Reverse differentiation: cotangents go from values back to what these depend on.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "passes/differentiate.h"

namespace agc {
namespace {

bool HasFloat(const Op& op) {
  return std::any_of(op.types.begin(), op.types.end(), [](const TensorType& t) { return IsFloat(t.dtype); });
}

class Reverse {
 public:
  Reverse(Builder& builder, const Pullback& request)
      : builder_(builder),
        graph_(*builder.graph),
        request_(request),
        active_(ActiveOps(graph_, request.xs, request.ys)),
        parts_(std::max_element(request.ys.begin(), request.ys.end())->index + 1) {}

  absl::StatusOr<std::vector<Value>> Run() {
    for (size_t k = 0; k < request_.ys.size(); ++k) Seed(k);
    std::vector<Value> cotangents(parts_.size());
    for (size_t i = parts_.size(); i-- > 0;) {
      if (!active_[i] || parts_[i].empty()) continue;
      AGC_RETURN_IF_ERROR(Visit({static_cast<uint32_t>(i)}, cotangents[i]));
    }
    std::vector<Value> out;
    for (OpId x : request_.xs) out.push_back(x.index < cotangents.size() ? cotangents[x.index] : Value());
    return out;
  }

 private:
  static constexpr uint32_t kAsked = UINT32_MAX;  // the user of a value whose cotangent is given
  // A cotangent that a user hands to one element of a value.
  struct Part {
    uint32_t user = 0;
    int operand = 0;
    int element = 0;
    Value value = {};
  };

  Value ValueOf(OpId id) { return {&builder_, id, builder_.generation, false}; }

  void Seed(size_t k) {
    const OpId y = request_.ys[k];
    const RuleScope scope(builder_, graph_.op(y).loc, "grad");
    const Value g = request_.gs.empty() ? FullLike(ValueOf(y), 1) : ValueOf(request_.gs[k]);
    parts_[y.index].push_back({.user = kAsked, .operand = static_cast<int>(k), .value = g});
  }

  // The sum of what the users gave one element, in the order of the uses; invalid if none did. A sum of f16 or bf16 is
  // rounded once.
  Value Sum(absl::Span<const Part> parts, int element) {
    absl::InlinedVector<Value, 4> given;
    for (const Part& part : parts) {
      if (part.element == element) given.push_back(part.value);
    }
    if (given.empty()) return {};
    const DType dtype = given[0].dtype(), wide = given.size() > 2 ? AccumulatorOf(dtype) : dtype;
    const auto widened = [&](Value v) { return wide == dtype ? v : CastTo(v, wide); };
    Value sum = widened(given[0]);
    for (size_t k = 1; k < given.size(); ++k) sum = Add(sum, widened(given[k]));
    return wide == dtype ? sum : CastTo(sum, dtype);
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
    if (op.def->vjp == nullptr) return NoRule(op, request_.asked);
    AGC_ASSIGN_OR_RETURN(const auto dx, ApplyVjp(builder_, id, sums));
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const OpId to = op.operands[k];
      if (!dx[k].valid() || !active_[to.index]) continue;
      parts_[to.index].push_back({.user = id.index, .operand = static_cast<int>(k), .value = dx[k]});
    }
    return absl::OkStatus();
  }

  Builder& builder_;
  Graph& graph_;
  const Pullback& request_;
  const std::vector<bool> active_;
  std::vector<std::vector<Part>> parts_;  // by op up to the last y
};

}  // namespace

std::vector<bool> ActiveOps(const Graph& graph, absl::Span<const OpId> from, absl::Span<const OpId> to) {
  std::vector<bool> depends(graph.ops.size()), reaches(graph.ops.size()), active(graph.ops.size());
  const size_t first = std::min_element(from.begin(), from.end())->index;
  const size_t end = std::max_element(to.begin(), to.end())->index + 1;
  for (OpId id : from) depends[id.index] = true;
  for (OpId id : to) reaches[id.index] = true;
  for (size_t i = first; i < end; ++i) {
    const Op& op = graph.ops[i];
    depends[i] = (depends[i] || HasActiveOperand(op, depends)) && HasFloat(op);
  }
  for (size_t i = end; i-- > first;) {
    active[i] = depends[i] && reaches[i];
    if (!active[i]) continue;
    for (OpId o : graph.ops[i].operands) reaches[o.index] = true;
  }
  return active;
}

bool HasActiveOperand(const Op& op, const std::vector<bool>& active) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](OpId o) { return active[o.index]; });
}

bool LacksRule(const OpDef& def, bool forward) {
  return def.vjp == nullptr && !(forward && def.jvp != nullptr) && &def != &GetOp();
}

absl::StatusOr<absl::InlinedVector<Value, 3>> ApplyVjp(Builder& b, OpId id, absl::Span<const Value> gs) {
  const Op op = b.graph->op(id);
  Vjp rule(b, op, id);
  rule.g = gs[0];
  rule.gs.assign(gs.begin(), gs.end());
  op.def->vjp(rule);
  const auto broken = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat(op.def->name, ": its gradient rule ", why));
  };
  if (!b.errors.empty()) return broken(absl::StrCat("fails: ", b.status().message()));
  for (size_t k = 0; k < op.operands.size(); ++k) {
    if (!rule.dx[k].valid()) continue;
    const TensorType &have = rule.dx[k].type(), &want = b.graph->op(op.operands[k]).type();
    if (have != want) {
      return broken(absl::StrCat("gives operand ", k, " type ", ToString(have), " instead of ", ToString(want)));
    }
  }
  return rule.dx;
}

absl::Status NoRule(const Op& op, Loc asked) {
  const absl::Status error = ErrorAt(op.loc,
                                     absl::StrCat(op.def->name,
                                                  ": it has no gradient rule, and a gradient is taken through it; put "
                                                  "stop_gradient on its operand or compute it with other ops"),
                                     absl::StatusCode::kUnimplemented);
  return WithNote(error, "the gradient is asked for here", asked);
}

absl::StatusOr<std::vector<Value>> PullBack(Builder& builder, const Pullback& request) {
  return Reverse(builder, request).Run();
}

}  // namespace agc
