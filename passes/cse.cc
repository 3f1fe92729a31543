// Merges ops that compute the same value: equal table row, operands, attributes, symbol, type and clone number.
// Operands of commutative ops are not reordered. Every op is pure (random_bits too), so any two equal ones may merge.
//   %0: f32[2] = exp %x          ->   %0: f32[2] = exp %x
//   %1: f32[2] = exp %x               %1: f32[2] = add %0, %0
//   %2: f32[2] = add %0, %1
#include <bit>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/registry.h"

namespace agc {
namespace {

struct HashAttr {
  size_t operator()(bool v) const { return v; }
  size_t operator()(int64_t v) const { return absl::HashOf(v); }
  size_t operator()(double v) const { return absl::HashOf(std::bit_cast<uint64_t>(v)); }
  size_t operator()(const std::string& v) const { return absl::HashOf(v); }
  size_t operator()(const Ints& v) const { return absl::HashOf(v); }
  size_t operator()(DType v) const { return absl::HashOf(v); }
  size_t operator()(const Symbol& v) const { return absl::HashOf(v.name); }
  size_t operator()(const LiteralPtr& v) const {
    size_t h = absl::HashOf(v->splat, v->values.size());
    for (const Scalar& s : v->values) h = absl::HashOf(h, s.dtype, s.bits);
    return h;
  }
};

size_t HashOf(const Op& op) {
  size_t h = absl::HashOf(op.def, op.symbol, op.recompute, op.types.size(), op.type().dtype, op.type().dims);
  for (OpId id : op.operands) h = absl::HashOf(h, id.index);
  for (const Attr& a : op.attrs) h = absl::HashOf(h, std::visit(HashAttr{}, a.value));
  return h;
}

bool Same(const Op& a, const Op& b) {
  return a.def == b.def && a.operands == b.operands && a.recompute == b.recompute && a.symbol == b.symbol &&
         a.types == b.types && a.group == b.group && a.layout == b.layout && SameAttrs(a.attrs, b.attrs);
}

bool Merge(Graph& graph) {
  std::vector<OpId> leader(graph.ops.size());
  std::vector<bool> keep(graph.ops.size(), true);
  absl::flat_hash_map<size_t, std::vector<OpId>> seen;  // looked up only, never iterated
  bool changed = false;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    Op& op = graph.ops[i];
    for (OpId& id : op.operands) id = leader[id.index];
    leader[i] = {static_cast<uint32_t>(i)};
    if (op.def == &InputOp()) continue;
    std::vector<OpId>& bucket = seen[HashOf(op)];
    for (OpId candidate : bucket) {
      if (!Same(graph.op(candidate), op)) continue;
      leader[i] = candidate;
      keep[i] = false;
      changed = true;
      break;
    }
    if (keep[i]) bucket.push_back(leader[i]);
  }
  if (!changed) return false;
  for (Output& out : graph.outputs) out.value = leader[out.value.index];
  for (Update& update : graph.updates) update.value = leader[update.value.index];
  Erase(graph, keep);
  return true;
}

}  // namespace

absl::StatusOr<bool> Cse(Program& program, PassContext&) {
  bool changed = false;
  for (Graph& graph : program.graphs) changed |= Merge(graph);
  return changed;
}

}  // namespace agc
