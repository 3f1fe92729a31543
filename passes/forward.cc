// Forward differentiation: tangents go from values on to what depends on them. Where an op has no rule of its own, its
// gradient rule tells: that is a linear map of the cotangent c, dx = J'c, and the tangent is the transposed map of the
// operands' tangents, the cotangent that c gets for tx: ty = d<J'c, tx>/dc. c is 1, so that rules that keep a cotangent
// of 0 silent do not.
//   %1: f32[2] = sin %x                        %4: f32[2] = cos %x
//   %2: f32[2] = jvp %1, %x, %t      ->        %5: f32[2] = mul %3, %4                   (%3: splat(1))
//                                              %6: f32[2] = vjp %5, %t, %3               (expands to mul %t, %4)
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/derivative.h"
#include "ir/op_def.h"
#include "passes/differentiate.h"

namespace agc {
namespace {

using Elements = absl::InlinedVector<Value, 2>;  // tangents of a value's elements; invalid: 0

class Forward {
 public:
  Forward(Builder& builder, const Pushforward& request)
      : builder_(builder),
        graph_(*builder.graph),
        request_(request),
        active_(ActiveOps(graph_, request.xs, request.ys)),
        tangents_(std::max_element(request.ys.begin(), request.ys.end())->index + 1) {}

  absl::StatusOr<std::vector<Value>> Run() {
    for (size_t i = 0; i < tangents_.size(); ++i) {
      if (!active_[i]) continue;
      AGC_RETURN_IF_ERROR(Visit({static_cast<uint32_t>(i)}));
    }
    std::vector<Value> out;
    for (OpId y : request_.ys) out.push_back(tangents_[y.index].empty() ? Value() : tangents_[y.index][0]);
    return out;
  }

 private:
  Value ValueOf(OpId id) { return {&builder_, id, builder_.generation, false}; }
  Value TangentOf(OpId id) { return tangents_[id.index].empty() ? Value() : tangents_[id.index][0]; }

  absl::Status Visit(OpId id) {
    const Op op = graph_.op(id);
    const RuleScope scope(builder_, op.loc, "grad");
    Elements& t = tangents_[id.index];
    t.resize(op.types.size());
    if (HasActiveOperand(op, active_)) AGC_RETURN_IF_ERROR(Pass(op, id, t));
    for (size_t k = 0; k < request_.xs.size(); ++k) {
      if (request_.xs[k] != id) continue;
      const Value given = ValueOf(request_.ts[k]);
      t[0] = t[0].valid() ? Add(t[0], given) : given;
    }
    return absl::OkStatus();
  }

  absl::Status Pass(const Op& op, OpId id, Elements& t) {
    if (op.def == &GetOp()) {
      const Elements& tuple = tangents_[op.operands[0].index];
      const size_t index = static_cast<size_t>(AttrReader{op.attrs}.integer("index"));
      if (index < tuple.size()) t[0] = tuple[index];
      return absl::OkStatus();
    }
    if (op.def->jvp != nullptr) return OwnRule(op, id, t);
    if (op.def->vjp == nullptr) return NoRule(op, request_.asked);
    return FromGradient(op, id, t);
  }

  absl::Status OwnRule(const Op& op, OpId id, Elements& t) {
    Jvp rule(builder_, op, id);
    for (size_t k = 0; k < op.operands.size(); ++k) rule.tx[k] = TangentOf(op.operands[k]);
    op.def->jvp(rule);
    t[0] = rule.ty;
    const bool fits = builder_.errors.empty() && (!t[0].valid() || t[0].type() == op.type());
    return fits ? absl::OkStatus()
                : absl::InternalError(absl::StrCat(op.def->name, ": its tangent rule gives ", ToString(t[0].type()),
                                                   " instead of ", ToString(op.type()), "; ",
                                                   builder_.status().message()));
  }

  absl::Status FromGradient(const Op& op, OpId id, Elements& t) {
    Elements cs;
    for (const TensorType& type : op.types) {
      cs.push_back(IsFloat(type.dtype) ? Full(builder_, type, 1) : Value());
    }
    AGC_ASSIGN_OR_RETURN(const auto dx, ApplyVjp(builder_, id, cs));
    std::vector<Value> ys, gs;
    for (size_t k = 0; k < op.operands.size(); ++k) {
      const Value tx = TangentOf(op.operands[k]);
      if (!dx[k].valid() || !tx.valid()) continue;
      ys.push_back(dx[k]);
      gs.push_back(tx);
    }
    for (size_t k = 0; k < cs.size(); ++k) {
      if (cs[k].valid() && !ys.empty()) t[k] = VectorJacobian(ys, gs, cs[k]);
    }
    return builder_.status();
  }

  Builder& builder_;
  Graph& graph_;
  const Pushforward& request_;
  const std::vector<bool> active_;
  std::vector<Elements> tangents_;  // by op up to the last y
};

}  // namespace

absl::StatusOr<std::vector<Value>> PushForward(Builder& builder, const Pushforward& request) {
  return Forward(builder, request).Run();
}

}  // namespace agc
