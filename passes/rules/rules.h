// Rewrite rules: small functions about named ops, in tables by op name, and the driver that applies them until nothing
// changes. A rule gets the op with its operands and answers with the value that replaces it, of the same type and not
// depending on the op; or with an invalid Value where it does not apply. Rules look first and build last.
//   {"neg", [](Rule& r) { const Op* inner = Producer(r, 0, "neg"); return inner ? Operand(r, *inner, 0) : Value(); }}
// Every rule must lead to a cheaper or a more canonical form, so that no two undo each other.
#pragma once
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "passes/pass.h"

namespace agc {

struct RewriteRule {
  absl::string_view op = {};  // empty: every op that computes something
  Value (*apply)(Rule& r) = nullptr;
};
using RuleTable = absl::Span<const RewriteRule>;

extern const RuleTable kFoldRules;          // constants, zero-element values
extern const RuleTable kPortableFoldRules;  // the same, with the bits of portable kernels
extern const RuleTable kIdentityRules;      // arithmetic that changes nothing
extern const RuleTable kZeroRules;          // arithmetic that changes nothing but -0
extern const RuleTable kViewRules;          // views of views, views that change nothing
extern const RuleTable kAlgebraRules;       // cheaper forms of the same value
extern const RuleTable kMotionRules;        // the same ops in another order

// Applies the tables to every op of every graph until nothing changes; the first rule that fires wins. Returns whether
// any did.
absl::StatusOr<bool> ApplyRules(Program& program, absl::Span<const RuleTable> tables, PassContext& context);

// For rules. The op that makes operand `k`, or null if it is not a `name`; valid until the rule builds something.
const Op* Producer(const Rule& r, int k, absl::string_view name);
Value Operand(const Rule& r, const Op& op, int k);
const Op& OpOf(const Rule& r, int k);
// The element that all elements of operand `k` are equal to, where it is a splat constant.
std::optional<Scalar> Splat(const Rule& r, int k);
bool IsSplat(const Rule& r, int k, double value);  // by value: 0 is also -0
// A splat constant of the op's own type.
Value SplatOf(Rule& r, Scalar value);
bool SameType(const Rule& r, int k);  // operand `k` has the type of the result

}  // namespace agc
