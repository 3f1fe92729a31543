// Expands every composite until only primitives are left.
//   %1: f32[2] = relu %0      ->    %1: f32[] = constant splat(0)
//                                   %2: f32[2] = broadcast %1 {shape = [2]}
//                                   %3: f32[2] = maximum %0, %2
#include "passes/decompose.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/derivative.h"
#include "ir/op_def.h"
#include "ir/tuple.h"
#include "passes/registry.h"
#include "passes/replace.h"

namespace agc {
namespace {

constexpr int kMaxDepth = 64;  // a table row that expands to itself would never end

bool IsComposite(const Op& op) { return op.def->decompose != nullptr; }

// Builds the decomposition of one op behind the others.
absl::StatusOr<OpId> Expand(Builder& builder, OpId id) {
  const Op op = builder.graph->op(id);
  const RuleScope scope(builder, op.loc, op.role);
  Rule rule(builder, op);
  const Value value = op.def->decompose(rule);
  const auto broken = [&](absl::string_view why) {
    return absl::InternalError(absl::StrCat(op.def->name, ": its decomposition ", why));
  };
  if (!builder.errors.empty()) return broken(absl::StrCat("fails: ", builder.status().message()));
  if (!value.valid()) return broken("yields nothing");
  const Types& types = builder.graph->op(value.id).types;
  if (types != op.types) return broken(absl::StrCat("has type ", ToString(types), " instead of ", ToString(op.types)));
  return value.id;
}

// Elements taken of a tuple that `by` stands for become its operands.
void ReplaceElements(const Graph& graph, OpId tuple, OpId by, Replacements& replacements) {
  for (uint32_t i = tuple.index + 1; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.def != &GetOp() || op.operands[0] != tuple) continue;
    replacements.Replace({i}, graph.op(by).operands[static_cast<size_t>(AttrReader{op.attrs}.integer("index"))]);
  }
}

}  // namespace

absl::StatusOr<bool> ExpandComposites(Program& program, Graph& graph, absl::FunctionRef<bool(OpId)> which, bool deep) {
  Builder builder{.program = &program, .graph = &graph};
  Replacements replacements(graph);
  const uint32_t given = static_cast<uint32_t>(graph.ops.size());
  std::vector<int> depth(given);
  bool changed = false;
  for (uint32_t i = 0; i < (deep ? graph.ops.size() : given); ++i) {
    if (!IsComposite(graph.op({i})) || (i < given && !which({i}))) continue;
    if (depth[i] == kMaxDepth)
      return absl::InternalError(absl::StrCat(graph.op({i}).def->name, ": its decomposition does not end"));
    AGC_ASSIGN_OR_RETURN(const OpId by, Expand(builder, {i}));
    depth.resize(graph.ops.size(), depth[i] + 1);
    if (graph.op(by).def == &TupleOp()) ReplaceElements(graph, {i}, by, replacements);
    replacements.Replace({i}, by);
    changed = true;
  }
  if (changed) replacements.Apply(program);
  return changed;
}

absl::StatusOr<bool> Decompose(Program& program, PassContext&) {
  bool changed = false;
  for (Graph& graph : program.graphs) {
    for (const Op& op : graph.ops) {
      if (!IsDerivative(*op.def) && op.def != &CustomVjpOp()) continue;
      return ErrorAt(op.loc, absl::StrCat(op.def->name, ": it is still there at decompose; run autograd before it"));
    }
    AGC_ASSIGN_OR_RETURN(const bool expanded, ExpandComposites(
                                                  program, graph, [](OpId) { return true; }, /*deep=*/true));
    changed |= expanded;
  }
  return changed;
}

}  // namespace agc
