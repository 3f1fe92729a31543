// precision: products and convolutions, forward and backward, take their operands in a narrower float and give their
// results back in f32. States, sums, statistics and everything elementwise stay as they are, so that weights keep their
// master copies; a contraction adds its products in f32 either way. It runs on primitives: the insides of composites
// and what autograd built are reached as well.
//   %2: f32[8,4] = matmul %0, %1   =>   %2: f16[8,5] = cast %0 {dtype = f16}      (--precision=f16)
//                                       %3: f16[5,4] = cast %1 {dtype = f16}
//                                       %4: f16[8,4] = matmul %2, %3
//                                       %5: f32[8,4] = cast %4 {dtype = f32}
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

bool Narrow(Program& program, Graph& graph, DType precision) {
  Builder builder{.program = &program, .graph = &graph};
  Replacements replacements(graph);
  for (uint32_t i = 0, given = static_cast<uint32_t>(graph.ops.size()); i < given; ++i) {
    if (!IsWideContraction(graph, graph.op({i}))) continue;
    const Op op = graph.op({i});
    const RuleScope scope(builder, op.loc, op.role);
    std::vector<Value> operands;
    for (OpId id : op.operands)
      operands.push_back(CastTo({&builder, id, builder.generation, false}, precision, op.loc));
    const Value product = Emit(op.def->name, operands, op.attrs, op.loc);
    replacements.Replace({i}, CastTo(product, DType::kF32, op.loc).id);
  }
  return replacements.Apply(program);
}

}  // namespace

absl::StatusOr<bool> Precision(Program& program, PassContext& context) {
  bool changed = false;
  if (context.precision == DType::kF32) return changed;
  for (Graph& graph : program.graphs) changed |= Narrow(program, graph, context.precision);
  return changed;
}

}  // namespace agc
