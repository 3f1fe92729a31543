// precision: products and convolutions, forward and backward, take operands that are rounded to a narrower float; they
// stay products and sums of f32, so that no result is rounded or overflows. States, sums, statistics and everything
// elementwise stay as they are, so that weights keep their master copies; so does @init, which runs once. It runs on
// primitives: the insides of composites and what autograd built are reached as well.
//   %2: f32[8,4] = matmul %0, %1   =>   %2: f16[8,5] = cast %0 {dtype = f16}      (--precision=f16)
//                                       %3: f32[8,5] = cast %2 {dtype = f32}
//                                       %4: f16[5,4] = cast %1 {dtype = f16}
//                                       %5: f32[5,4] = cast %4 {dtype = f32}
//                                       %6: f32[8,4] = matmul %3, %5
#include <algorithm>

#include "ir/build.h"
#include "ir/op_def.h"
#include "passes/registry.h"
#include "passes/replace.h"

namespace agc {
namespace {

bool IsWideContraction(const Graph& graph, const Op& op) {
  if (op.def->cls != OpClass::kContract || op.types.size() != 1 || op.type().dtype != DType::kF32) return false;
  return std::all_of(op.operands.begin(), op.operands.end(),
                     [&](OpId id) { return graph.op(id).type().dtype == DType::kF32; });
}

// Whether the value was widened from the narrow dtype, so that it is rounded to it already.
bool IsRounded(const Graph& graph, OpId id, DType precision) {
  const Op& op = graph.op(id);
  return op.def == &CastOp() && graph.op(op.operands[0]).type().dtype == precision;
}

bool Narrow(Program& program, Graph& graph, DType precision) {
  Builder builder{.program = &program, .graph = &graph};
  Replacements replacements(graph);
  for (uint32_t i = 0, given = static_cast<uint32_t>(graph.ops.size()); i < given; ++i) {
    if (!IsWideContraction(graph, graph.op({i}))) continue;
    const Op op = graph.op({i});
    const auto rounded = [&](OpId id) { return IsRounded(graph, id, precision); };
    if (std::all_of(op.operands.begin(), op.operands.end(), rounded)) continue;
    const RuleScope scope(builder, op.loc, op.role);
    std::vector<Value> operands;
    for (OpId id : op.operands) {
      const Value operand{&builder, id, builder.generation, false};
      operands.push_back(rounded(id) ? operand : CastTo(CastTo(operand, precision, op.loc), DType::kF32, op.loc));
    }
    replacements.Replace({i}, Emit(op.def->name, operands, op.attrs, op.loc).id);
  }
  return replacements.Apply(program);
}

}  // namespace

absl::StatusOr<bool> Precision(Program& program, PassContext& context) {
  bool changed = false;
  if (context.precision == DType::kF32) return changed;
  for (Graph& graph : program.graphs) {
    if (graph.name != kInitGraph) changed |= Narrow(program, graph, context.precision);
  }
  return changed;
}

}  // namespace agc
