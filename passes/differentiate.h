// Reverse and forward differentiation of a graph, appended behind its ops. Pass autograd says what is asked for.
//   Pullback{.ys = {loss}, .gs = {}, .xs = {w, b}}         cotangents of w and b
//   Pushforward{.ys = {y}, .xs = {x}, .ts = {t}}           tangent of y
// Both go through float values only, and through composites by their own rule or not at all: LacksRule says which must
// be decomposed first.
#pragma once
#include <vector>

#include "absl/status/statusor.h"
#include "ir/value.h"

namespace agc {

// gs: cotangents of the ys, none: 1. asked: where the derivative was asked for.
struct Pullback {
  std::vector<OpId> ys = {}, gs = {}, xs = {};
  Loc asked = {};
};
struct Pushforward {
  std::vector<OpId> ys = {}, xs = {}, ts = {};
  Loc asked = {};
};

// Values between `from` and `to`: they depend on one of the former and one of the latter depends on them, both
// included.
std::vector<bool> ActiveOps(const Graph& graph, absl::Span<const OpId> from, absl::Span<const OpId> to);
bool HasActiveOperand(const Op& op, const std::vector<bool>& active);
// Whether no rule says how the op passes cotangents (or, forward, tangents) on.
bool LacksRule(const OpDef& def, bool forward);

// The cotangents of the xs, and the tangents of the ys; invalid where nothing reaches.
absl::StatusOr<std::vector<Value>> PullBack(Builder& builder, const Pullback& request);
absl::StatusOr<std::vector<Value>> PushForward(Builder& builder, const Pushforward& request);

// What both share. The cotangents of the op's operands, those of its elements given.
absl::StatusOr<absl::InlinedVector<Value, 3>> ApplyVjp(Builder& builder, OpId id, absl::Span<const Value> gs);
absl::Status NoRule(const Op& op, Loc asked);

}  // namespace agc
