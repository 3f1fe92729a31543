#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "passes/replace.h"
#include "passes/rules/rules.h"

namespace agc {

const Op& OpOf(const Rule& r, int k) { return r.builder.graph->op(r.x[k].id); }

const Op* Producer(const Rule& r, int k, absl::string_view name) {
  const Op& op = OpOf(r, k);
  return op.def->name == name ? &op : nullptr;
}

Value Operand(const Rule& r, const Op& op, int k) { return {&r.builder, op.operands[k], r.builder.generation, false}; }

std::optional<Scalar> Splat(const Rule& r, int k) {
  const Op& op = OpOf(r, k);
  if (op.def != &ConstantOp()) return std::nullopt;
  const Literal& literal = *AttrReader{op.attrs}.literal("value");
  if (!literal.splat && literal.values.size() != 1) return std::nullopt;
  return literal.values[0];
}

bool IsSplat(const Rule& r, int k, double value) {
  const std::optional<Scalar> splat = Splat(r, k);
  return splat.has_value() && splat->AsDouble() == value;
}

Value SplatOf(Rule& r, Scalar value) {
  auto literal = std::make_shared<Literal>();
  literal->values.push_back(value);
  return Constant(r.builder, r.op.type(), std::move(literal));
}

bool SameType(const Rule& r, int k) { return r.x[k].type() == r.op.type(); }

namespace {

constexpr int kMaxRounds = 256;  // rules that undo each other would never end

// Rules by op name, in table order; those of every op come last.
using RulesByOp = std::map<absl::string_view, std::vector<const RewriteRule*>>;

RulesByOp Collect(absl::Span<const RuleTable> tables) {
  RulesByOp rules;
  for (RuleTable table : tables) {
    for (const RewriteRule& rule : table) rules[rule.op].push_back(&rule);
  }
  return rules;
}

// The replacement that the first of `rules` finds for an op whose operands are resolved; invalid: none.
absl::StatusOr<Value> TryRules(Builder& builder, OpId id, const std::vector<const RewriteRule*>& rules) {
  for (const RewriteRule* rule : rules) {
    const RuleScope scope(builder, builder.graph->op(id).loc, builder.graph->op(id).role);
    Rule call(builder, builder.graph->op(id));
    const Value value = rule->apply(call);
    const auto broken = [&](absl::string_view why) {
      return absl::InternalError(absl::StrCat("a rule for ", call.op.def->name, " ", why));
    };
    if (!builder.errors.empty()) return broken(absl::StrCat("fails: ", builder.status().message()));
    if (!value.valid()) continue;
    if (builder.graph->op(value.id).types != call.op.types) {
      return broken(absl::StrCat("gives ", ToString(value.type()), " instead of ", ToString(call.op.types)));
    }
    return value;
  }
  return Value();
}

absl::StatusOr<bool> Round(Program& program, Graph& graph, const RulesByOp& rules, PassContext& context) {
  Builder builder{.program = &program, .graph = &graph};
  Replacements replacements(graph);
  bool changed = false;
  const uint32_t given = static_cast<uint32_t>(graph.ops.size());
  for (uint32_t i = 0; i < given && context.rewrites_left > 0; ++i) {
    for (OpId& operand : graph.ops[i].operands) operand = replacements.Resolve(operand);
    for (absl::string_view key : {graph.ops[i].def->name, absl::string_view()}) {
      const auto found = rules.find(key);
      if (found == rules.end()) continue;
      AGC_ASSIGN_OR_RETURN(const Value value, TryRules(builder, {i}, found->second));
      if (!value.valid()) continue;
      replacements.Replace({i}, value.id);
      --context.rewrites_left;
      changed = true;
      break;
    }
  }
  if (changed) replacements.Apply(program);
  return changed;
}

}  // namespace

absl::StatusOr<bool> ApplyRules(Program& program, absl::Span<const RuleTable> tables, PassContext& context) {
  const RulesByOp rules = Collect(tables);
  bool changed = false;
  for (Graph& graph : program.graphs) {
    for (int round = 0;; ++round) {
      if (round == kMaxRounds)
        return absl::InternalError(absl::StrCat("rules of graph ", graph.name, " do not settle"));
      AGC_ASSIGN_OR_RETURN(const bool again, Round(program, graph, rules, context));
      if (!again) break;
      changed = true;
    }
  }
  return changed;
}

}  // namespace agc
