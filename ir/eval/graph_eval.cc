#include "ir/eval/graph_eval.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/derivative.h"
#include "ir/eval/nest_eval.h"
#include "ir/lowering.h"
#include "ir/op_def.h"
#include "ir/tuple.h"

namespace agc {
namespace {

using Parts = std::vector<TensorPtr>;
using Leaf = absl::FunctionRef<absl::StatusOr<HostTensor>(const Op&)>;

TensorPtr Share(HostTensor t) { return std::make_shared<const HostTensor>(std::move(t)); }

bool IsLeaf(const Op& op) { return op.def == &InputOp() || op.def == &StateOp() || op.def == &BlobOp(); }

HostTensor ConstantTensor(const Op& op, EvalMode mode) {
  const LiteralPtr& literal = AttrReader{op.attrs}.literal("value");
  HostTensor t = HostTensor::Zeros(EvalType(op.type(), mode));
  for (int64_t i = 0; i < t.type.elements(); ++i) t.set(i, literal->at(i));
  return t;
}

// The values that `roots` need, op by op; each is dropped after its last use unless `keep` is set.
absl::StatusOr<std::vector<Parts>> EvaluateBody(const Graph& graph, absl::Span<const OpId> roots, Leaf leaf,
                                                EvalMode mode, bool keep) {
  std::vector<int> uses(graph.ops.size());
  for (OpId id : roots) ++uses[id.index];
  for (size_t i = graph.ops.size(); i-- > 0;) {
    if (uses[i] == 0) continue;
    for (OpId id : graph.ops[i].operands) ++uses[id.index];
  }
  std::vector<Parts> values(graph.ops.size());
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (uses[i] == 0) continue;
    if (IsLeaf(op)) {
      AGC_ASSIGN_OR_RETURN(HostTensor t, leaf(op));
      values[i].push_back(Share(std::move(t)));
      continue;
    }
    Parts operands;
    if (op.def == &GetOp()) {
      const ValueRef from = Resolve(graph, {static_cast<uint32_t>(i)});
      values[i].push_back(values[from.op.index][static_cast<size_t>(from.part)]);
    } else if (op.def == &TupleOp()) {
      for (OpId id : op.operands) values[i].push_back(values[id.index][0]);
    } else {
      for (OpId id : op.operands) operands.push_back(values[id.index][0]);
      AGC_ASSIGN_OR_RETURN(values[i], EvaluateOp(graph, op, operands, mode));
    }
    for (OpId id : op.operands) {
      if (--uses[id.index] == 0 && !keep) values[id.index].clear();
    }
  }
  return values;
}

// A graph whose parameters are the op's operands, each once, and the op with its operands renumbered.
struct Isolated {
  Graph graph = {};
  Op op = {};
  std::vector<size_t> operand_of = {};  // by parameter: a position among the operands
};
Isolated Isolate(const Graph& graph, const Op& op) {
  Isolated out;
  out.op = op;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const auto first = std::find(op.operands.begin(), op.operands.end(), op.operands[k]);
    const size_t at = static_cast<size_t>(first - op.operands.begin());
    if (at < k) {
      out.op.operands[k] = out.op.operands[at];
      continue;
    }
    out.op.operands[k] =
        AppendInput(out.graph, ParamKind::kInput, absl::StrCat("x", k), graph.op(op.operands[k]).type(), op.loc);
    out.operand_of.push_back(k);
  }
  return out;
}

absl::StatusOr<Parts> EvaluateComposite(const Graph& graph, const Op& op, absl::Span<const TensorPtr> operands,
                                        EvalMode mode) {
  Isolated isolated = Isolate(graph, op);
  Builder builder{.graph = &isolated.graph};
  const RuleScope scope(builder, op.loc, op.role);
  Rule rule(builder, isolated.op);
  const Value value = op.def->decompose(rule);
  AGC_RETURN_IF_ERROR(builder.status());
  if (!value.valid())
    return ErrorAt(op.loc, absl::StrCat(op.def->name, ": its decomposition gives no value"),
                   absl::StatusCode::kInternal);
  const auto leaf = [&](const Op& input) -> absl::StatusOr<HostTensor> {
    for (size_t p = 0; p < isolated.operand_of.size(); ++p) {
      if (isolated.graph.params[p].name == input.symbol) return *operands[isolated.operand_of[p]];
    }
    return ErrorAt(op.loc, absl::StrCat(op.def->name, ": its decomposition reads @", input.symbol),
                   absl::StatusCode::kInternal);
  };
  AGC_ASSIGN_OR_RETURN(std::vector<Parts> values, EvaluateBody(isolated.graph, {value.id}, leaf, mode, false));
  return std::move(values[value.id.index]);
}

absl::StatusOr<Parts> EvaluatePrimitive(const Graph& graph, const Op& op, absl::Span<const TensorPtr> operands,
                                        EvalMode mode) {
  Isolated isolated = Isolate(graph, op);
  const OpId id = isolated.graph.Append(isolated.op);
  std::vector<ValueRef> outputs;
  for (size_t part = 0; part < op.types.size(); ++part) outputs.push_back({id, static_cast<int>(part)});
  AGC_ASSIGN_OR_RETURN(LoweredNest low, LowerToNest(isolated.graph, outputs, [&](OpId other) { return other == id; }));
  low.nest.name = std::string(op.def->name);
  std::vector<const HostTensor*> inputs;
  for (const ValueRef& in : low.inputs) inputs.push_back(operands[isolated.operand_of[in.op.index]].get());
  AGC_ASSIGN_OR_RETURN(std::vector<HostTensor> results, EvaluateNest(low.nest, inputs, mode));
  Parts parts;
  for (HostTensor& t : results) parts.push_back(Share(std::move(t)));
  return parts;
}

absl::StatusOr<HostTensor> ReadBlob(const Program& program, const Op& op, EvalMode mode) {
  const auto blob =
      std::find_if(program.blobs.begin(), program.blobs.end(), [&](const BlobDef& b) { return b.name == op.symbol; });
  if (blob == program.blobs.end()) return ErrorAt(op.loc, absl::StrCat("the module has no blob @", op.symbol));
  std::ifstream in(blob->file, std::ios::binary);
  if (!in)
    return ErrorAt(op.loc, absl::StrCat("blob @", blob->name, ": cannot open ", blob->file),
                   absl::StatusCode::kNotFound);
  HostTensor t = HostTensor::Zeros(blob->type);
  in.seekg(blob->offset);
  in.read(reinterpret_cast<char*>(t.bytes.data()), static_cast<std::streamsize>(t.bytes.size()));
  if (!in) {
    return ErrorAt(op.loc,
                   absl::StrCat("blob @", blob->name, ": ", blob->file, " has not the ", t.bytes.size(), " bytes from ",
                                blob->offset, " that ", ToString(blob->type), " needs"),
                   absl::StatusCode::kDataLoss);
  }
  return ConvertTo(t, EvalType(blob->type, mode).dtype);
}

absl::StatusOr<HostTensor> EvaluateLeaf(const Program& program, const Op& op, const EvalInputs& inputs, EvalMode mode) {
  if (op.def == &InputOp())
    return GivenTensor(inputs.params, op.symbol, op.type(), absl::StrCat("input %", op.symbol), op.loc, mode);
  if (op.def == &StateOp()) return StartOfState(program, op.symbol, inputs, mode);
  return ReadBlob(program, op, mode);
}

std::vector<OpId> Roots(const Graph& graph) {
  std::vector<OpId> roots;
  for (const Output& out : graph.outputs) roots.push_back(out.value);
  for (const Update& update : graph.updates) roots.push_back(update.value);
  return roots;
}

}  // namespace

absl::StatusOr<std::vector<TensorPtr>> EvaluateOp(const Graph& graph, const Op& op,
                                                  absl::Span<const TensorPtr> operands, EvalMode mode) {
  if (op.def == &ConstantOp()) return Parts{Share(ConstantTensor(op, mode))};
  if (IsDerivative(*op.def)) {
    return ErrorAt(op.loc, absl::StrCat(op.def->name, " ops have no value of their own, run the autograd pass first"),
                   absl::StatusCode::kFailedPrecondition);
  }
  const bool empty =
      std::all_of(op.types.begin(), op.types.end(), [](const TensorType& t) { return t.elements() == 0; });
  if (empty) {
    Parts parts;
    for (const TensorType& t : op.types) parts.push_back(Share(HostTensor::Zeros(EvalType(t, mode))));
    return parts;
  }
  const bool composite = op.def->decompose != nullptr && op.def->at == nullptr;
  absl::StatusOr<Parts> parts =
      composite ? EvaluateComposite(graph, op, operands, mode) : EvaluatePrimitive(graph, op, operands, mode);
  if (!parts.ok()) return WithNote(parts.status(), absl::StrCat("while ", op.def->name, " was evaluated"), op.loc);
  return parts;
}

absl::StatusOr<std::vector<std::vector<TensorPtr>>> EvaluateOps(const Program& program, const Graph& graph,
                                                                const EvalInputs& inputs, EvalMode mode) {
  return EvaluateBody(
      graph, Roots(graph), [&](const Op& op) { return EvaluateLeaf(program, op, inputs, mode); }, mode, true);
}

absl::StatusOr<EvalResult> EvaluateGraph(const Program& program, const Graph& graph, const EvalInputs& inputs,
                                         EvalMode mode) {
  if (program.stage > Stage::kPrimitive) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph @", graph.name, " is at stage ", Name(program.stage), ", its ops are gone"));
  }
  EvalResult result;
  const auto leaf = [&](const Op& op) { return EvaluateLeaf(program, op, inputs, mode); };
  const std::vector<OpId> roots = Roots(graph);
  AGC_ASSIGN_OR_RETURN(std::vector<Parts> values, EvaluateBody(graph, roots, leaf, mode, false));
  for (const Output& out : graph.outputs) result.outputs[out.name] = *values[out.value.index][0];
  for (const Op& op : graph.ops) {
    if (op.def != &StateOp()) continue;
    AGC_ASSIGN_OR_RETURN(result.states[op.symbol], StartOfState(program, op.symbol, inputs, mode));
  }
  for (const Update& update : graph.updates) result.states[update.state] = *values[update.value.index][0];
  return result;
}

absl::StatusOr<HostTensor> GivenTensor(const std::map<std::string, HostTensor>& given, const std::string& name,
                                       const TensorType& type, const std::string& what, Loc loc, EvalMode mode) {
  const auto it = given.find(name);
  if (it == given.end()) return ErrorAt(loc, absl::StrCat(what, " has no value, it is ", ToString(type)));
  const HostTensor& t = it->second;
  const TensorType kept = EvalType(type, mode);
  if ((!(t.type == type) && !(t.type == kept)) || static_cast<int64_t>(t.bytes.size()) != t.type.bytes()) {
    return ErrorAt(loc, absl::StrCat(what, " is ", ToString(type), ", ", ToString(t.type), " is given"));
  }
  return ConvertTo(t, kept.dtype);
}

absl::StatusOr<HostTensor> StartOfState(const Program& program, const std::string& state, const EvalInputs& inputs,
                                        EvalMode mode) {
  const StateDef* def = program.FindState(state);
  if (def == nullptr) return absl::InvalidArgumentError(absl::StrCat("the module has no state @", state));
  if (inputs.states.count(state) != 0 || def->init.kind != InitKind::kConstant) {
    return GivenTensor(inputs.states, state, def->type, absl::StrCat("state @", state), def->loc, mode);
  }
  HostTensor t = HostTensor::Zeros(EvalType(def->type, mode));
  for (int64_t i = 0; def->init.a != 0 && i < t.type.elements(); ++i)
    t.set(i, Scalar::Of(def->type.dtype, def->init.a));
  return t;
}

}  // namespace agc
