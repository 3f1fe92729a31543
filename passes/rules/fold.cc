// Folding: an op whose operands are constants becomes a constant, up to 64 KiB, by the evaluator; a value without
// elements becomes a splat. Ops of class data stay: an iota is cheaper to make than to load, and random bits that
// depend on a constant key are still meant to be made on the device.
#include <algorithm>
#include <limits>
#include <memory>

#include "ir/build.h"
#include "ir/eval/graph_eval.h"
#include "ir/lowering.h"
#include "passes/rules/rules.h"

namespace agc {
namespace {

constexpr int64_t kMaxBytes = 64 << 10;
constexpr double kMaxSteps = 1 << 25;              // elements that the evaluator of a fold may visit
constexpr int64_t kMaxUniform = int64_t{1} << 24;  // elements looked at to find that an empty reduction is uniform

bool IsConstant(const Op& op) { return op.def == &ConstantOp(); }
bool IsEmpty(const Op& op) { return op.type().elements() == 0; }

LiteralPtr ZeroLiteral(DType dtype) {
  auto literal = std::make_shared<Literal>();
  literal->values.push_back(Scalar::Of(dtype, 0));
  return literal;
}

// A graph of this one op over constant operands; with `scalar`, over their splat values, without axes.
absl::StatusOr<OpId> Isolate(const Rule& r, bool scalar, Graph& graph) {
  std::vector<OpId> operands;
  for (size_t k = 0; k < r.x.size(); ++k) {
    const Op& op = OpOf(r, static_cast<int>(k));
    TensorType type = op.type();
    if (scalar) type.dims.clear();
    LiteralPtr literal = IsConstant(op) ? AttrReader{op.attrs}.literal("value") : ZeroLiteral(type.dtype);
    operands.push_back(AppendConstant(graph, std::move(type), std::move(literal), op.loc));
  }
  return AppendChecked(graph, *r.op.def, operands, r.op.attrs, r.op.loc);
}

HostTensor ToTensor(const Op& constant) {
  const Literal& literal = *AttrReader{constant.attrs}.literal("value");
  HostTensor t = HostTensor::Zeros(constant.type());
  for (int64_t i = 0; i < t.type.elements(); ++i) t.set(i, literal.at(i));
  return t;
}

absl::StatusOr<HostTensor> Evaluate(const Graph& graph, OpId id, EvalMode mode) {
  const Op& op = graph.op(id);
  std::vector<TensorPtr> operands;
  for (OpId operand : op.operands) operands.push_back(std::make_shared<HostTensor>(ToTensor(graph.op(operand))));
  const absl::StatusOr<std::vector<TensorPtr>> result = EvaluateOp(graph, op, operands, mode);
  if (!result.ok()) return result.status();
  return *(*result)[0];
}

// A splat where all elements are the same bits, else all of them.
Literal ToLiteral(const HostTensor& t) {
  Literal literal;
  for (int64_t i = 0; i < t.type.elements(); ++i) literal.values.push_back(t.at(i));
  literal.splat =
      std::adjacent_find(literal.values.begin(), literal.values.end(), std::not_equal_to<>()) == literal.values.end();
  if (literal.splat) literal.values.resize(1);
  return literal;
}

struct Operands {
  bool constant = true;  // or without elements
  bool splats = true;
  bool empty = false;  // one has no elements
  int64_t bytes = 0;   // as they are kept: a splat takes none
  int64_t most = 0;    // of one operand, as the evaluator holds it: a splat is filled in
};

Operands Look(const Rule& r) {
  Operands all;
  for (size_t k = 0; k < r.x.size(); ++k) {
    const Op& op = OpOf(r, static_cast<int>(k));
    all.constant &= IsConstant(op) || IsEmpty(op);
    all.splats &= Splat(r, static_cast<int>(k)).has_value();
    all.empty |= IsEmpty(op);
    if (!IsConstant(op)) continue;
    all.most = std::max(all.most, op.type().bytes());
    if (!Splat(r, static_cast<int>(k)).has_value()) all.bytes += op.type().bytes();
  }
  return all;
}

// What the fold may cost: the operands are read, the result is kept; a view of constants may not be larger than they
// are.
bool Affordable(const Rule& r, const Operands& operands) {
  if (operands.empty) return r.op.type().elements() <= kMaxUniform && operands.most <= 8 * kMaxUniform;
  const int64_t bytes = r.op.type().bytes();
  return bytes <= kMaxBytes && operands.most <= kMaxBytes &&
         (r.op.def->cls != OpClass::kView || bytes <= operands.bytes);
}

// Elements of all stages and stores of the op's nest.
double StepsOf(const Graph& graph, OpId id) {
  const std::vector<ValueRef> outputs = {{id, 0}};
  const absl::StatusOr<LoweredNest> low = LowerToNest(graph, outputs, [&](OpId op) { return op == id; });
  if (!low.ok()) return std::numeric_limits<double>::infinity();
  const Nest& nest = low->nest;
  double steps = static_cast<double>(graph.op(id).type().elements());
  for (const NestStage& stage : nest.stages) {
    double elements = 1;
    for (VarId v : stage.over) elements *= static_cast<double>(nest.extent(v));
    for (VarId v : nest.components[stage.first_component].axes) elements *= static_cast<double>(nest.extent(v));
    steps += elements;
  }
  return steps;
}

template <EvalMode kMode>
Value FoldConstant(Rule& r) {
  const OpDef& def = *r.op.def;
  if (def.at == nullptr || def.cls == OpClass::kData || r.op.is_tuple() || r.x.empty()) return {};
  const Operands operands = Look(r);
  if (!operands.constant) return {};
  const bool scalar = def.cls == OpClass::kElementwise && operands.splats;
  if (!scalar && !Affordable(r, operands)) return {};
  Graph graph;
  const absl::StatusOr<OpId> id = Isolate(r, scalar, graph);
  if (!id.ok() || StepsOf(graph, *id) > kMaxSteps) return {};
  const absl::StatusOr<HostTensor> value = Evaluate(graph, *id, kMode);
  if (!value.ok()) return {};  // it fails where it runs, with its own message
  Literal literal = ToLiteral(*value);
  if (operands.empty && !literal.splat) return {};
  return Constant(r.builder, r.op.type(), std::make_shared<Literal>(std::move(literal)));
}

Value FoldEmpty(Rule& r) {
  const OpDef* def = r.op.def;
  const bool given = def == &InputOp() || def == &StateOp() || def == &BlobOp() || def == &ConstantOp();
  if (given || r.op.is_tuple() || !IsEmpty(r.op)) return {};
  return SplatOf(r, Scalar::Of(r.op.type().dtype, 0));
}

constexpr RewriteRule kRules[] = {{"", FoldEmpty}, {"", FoldConstant<EvalMode::kExact>}};
constexpr RewriteRule kPortableRules[] = {{"", FoldEmpty}, {"", FoldConstant<EvalMode::kPortable>}};

}  // namespace

constinit const RuleTable kFoldRules(kRules);
constinit const RuleTable kPortableFoldRules(kPortableRules);

}  // namespace agc
