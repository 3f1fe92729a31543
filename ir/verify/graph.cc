#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "ir/derivative.h"
#include "ir/op_def.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

absl::Status CheckGiven(const Op& op, const Graph& graph, OpId id) {
  const bool found = std::any_of(graph.params.begin(), graph.params.end(), [&](const GraphParam& p) {
    return p.op == id && p.name == op.symbol && Types(p.type) == op.types;
  });
  return found ? absl::OkStatus()
               : ErrorAt(op.loc, absl::StrCat("graph @", graph.name, ": %", op.symbol, " is no parameter of type ",
                                              ToString(op.types)));
}

absl::Status CheckState(const Op& op, const Program& program) {
  const StateDef* state = program.FindState(op.symbol);
  if (state == nullptr) return ErrorAt(op.loc, absl::StrCat("state @", op.symbol, " is not declared"));
  if (Types(state->type) == op.types) return absl::OkStatus();
  return ErrorAt(op.loc, absl::StrCat("state @", op.symbol, " is read as ", ToString(op.types), ", it is ",
                                      ToString(state->type)));
}

absl::Status CheckConstant(const Op& op) {
  const AttrValue* value = FindAttr(op.attrs, "value");
  const LiteralPtr* literal = value != nullptr ? std::get_if<LiteralPtr>(value) : nullptr;
  if (literal == nullptr || *literal == nullptr) return ErrorAt(op.loc, "constant: no value is given");
  const std::vector<Scalar>& values = (*literal)->values;
  const int64_t wanted = (*literal)->splat ? 1 : op.type().elements();
  if (static_cast<int64_t>(values.size()) != wanted) {
    return ErrorAt(op.loc, absl::StrCat("constant: ", values.size(), " elements are given, ", wanted, " expected"));
  }
  for (Scalar v : values) {
    if (v.dtype != op.type().dtype)
      return ErrorAt(op.loc,
                     absl::StrCat("constant: an element is ", Name(v.dtype), ", the type is ", ToString(op.type())));
  }
  return absl::OkStatus();
}

absl::Status CheckBlob(const Op& op, const Program& program) {
  for (const BlobDef& b : program.blobs) {
    if (b.name == op.symbol) {
      if (Types(b.type) == op.types) return absl::OkStatus();
      return ErrorAt(
          op.loc, absl::StrCat("blob @", op.symbol, " is read as ", ToString(op.types), ", it is ", ToString(b.type)));
    }
  }
  return ErrorAt(op.loc, absl::StrCat("blob @", op.symbol, " is not declared"));
}

absl::Status CheckInferred(const Op& op, const Graph& graph) {
  Graph scratch;  // the same checks as when the op was made
  std::vector<OpId> operands;
  for (OpId id : op.operands) {
    Op given{.def = &InputOp(), .types = graph.op(id).types};
    operands.push_back(scratch.Append(std::move(given)));
  }
  AGC_ASSIGN_OR_RETURN(const OpId again, AppendChecked(scratch, *op.def, operands, op.attrs, op.loc, op.symbol));
  const Types& types = scratch.op(again).types;
  if (types == op.types) return absl::OkStatus();
  return ErrorAt(
      op.loc, absl::StrCat(op.def->name, ": has type ", ToString(op.types), ", its operands give ", ToString(types)));
}

template <typename Named>
std::vector<TensorType> TypesOf(const std::vector<Named>& named) {
  std::vector<TensorType> types;
  for (const Named& n : named) types.push_back(n.type);
  return types;
}

std::string Listed(const std::vector<TensorType>& types) {
  const auto each = [](std::string* out, const TensorType& t) { absl::StrAppend(out, ToString(t)); };
  return absl::StrCat("(", absl::StrJoin(types, ", ", each), ")");
}

// The function that a custom gradient names is there and takes and gives what the op needs.
absl::Status CheckFunction(const Op& op, const Graph& graph, const Program& program) {
  if (op.symbol.empty()) return ErrorAt(op.loc, "custom_vjp: names no graph; write one after its operands, as @f.vjp");
  const Graph* function = program.FindGraph(op.symbol);
  if (function == nullptr || !IsGradientFunction(*function)) {
    return ErrorAt(op.loc, absl::StrCat("custom_vjp: the module has no graph @", op.symbol,
                                        function == nullptr ? "" : " whose name ends in .vjp"));
  }
  std::vector<TensorType> xs;
  for (size_t k = 1; k < op.operands.size(); ++k) xs.push_back(graph.op(op.operands[k]).type());
  const FunctionTypes want = CustomVjpTypes(op.type(), xs);
  const std::vector<TensorType> params = TypesOf(function->params), results = TypesOf(function->outputs);
  if (params == want.params && results == want.results) return absl::OkStatus();
  return WithNote(ErrorAt(op.loc, absl::StrCat("custom_vjp: graph @", op.symbol, " is ", Listed(params), " -> ",
                                               Listed(results), ", expected ", Listed(want.params), " -> ",
                                               Listed(want.results), ": x, y and its cotangent, and those of x")),
                  "the graph", function->loc);
}

absl::Status CheckOp(const Graph& graph, const Program& program, size_t i) {
  const Op& op = graph.ops[i];
  const OpId id{static_cast<uint32_t>(i)};
  if (op.def == nullptr)
    return ErrorAt(op.loc, absl::StrCat("graph @", graph.name, ": op ", i, " has no row of the op table"));
  if (op.types.empty()) return ErrorAt(op.loc, absl::StrCat(op.def->name, ": has no type"));
  for (OpId operand : op.operands) {
    if (operand.index >= i) return ErrorAt(op.loc, absl::StrCat(op.def->name, ": an operand does not come before it"));
  }
  if (op.def == &InputOp()) return CheckGiven(op, graph, id);
  if (op.def == &StateOp()) return CheckState(op, program);
  if (op.def == &ConstantOp()) return CheckConstant(op);
  if (op.def == &BlobOp()) return CheckBlob(op, program);
  if (program.stage == Stage::kPrimitive &&
      (op.def->decompose != nullptr || IsDerivative(*op.def) || op.def == &CustomVjpOp())) {
    return ErrorAt(
        op.loc, absl::StrCat(op.def->name,
                             ": is a composite op, which the primitive stage has none of; run autograd and decompose"));
  }
  AGC_RETURN_IF_ERROR(CheckInferred(op, graph));
  return op.def == &CustomVjpOp() ? CheckFunction(op, graph, program) : absl::OkStatus();
}

absl::Status CheckOutputs(const Graph& graph) {
  std::set<std::string> names;
  for (const Output& o : graph.outputs) {
    if (!names.insert(o.name).second) return ErrorAt(o.loc, absl::StrCat("output %", o.name, " is declared twice"));
    if (o.value.index >= graph.ops.size()) {
      return ErrorAt(o.loc, absl::StrCat("graph @", graph.name, ": output %", o.name,
                                         " is given no value; add output %", o.name, " = ..."));
    }
    if (graph.op(o.value).types != Types(o.type)) {
      return ErrorAt(o.loc, absl::StrCat("output %", o.name, " is ", ToString(graph.op(o.value).types),
                                         ", it was declared as ", ToString(o.type)));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckUpdates(const Graph& graph, const Program& program) {
  if (IsGradientFunction(graph) && !graph.updates.empty()) {
    return ErrorAt(graph.updates[0].loc, absl::StrCat("graph @", graph.name, " updates state @", graph.updates[0].state,
                                                      ", which a gradient of a custom_vjp cannot do"));
  }
  std::set<std::string> states;
  for (const Update& u : graph.updates) {
    const StateDef* state = program.FindState(u.state);
    if (state == nullptr) return ErrorAt(u.loc, absl::StrCat("state @", u.state, " is not declared"));
    if (!states.insert(u.state).second) return ErrorAt(u.loc, absl::StrCat("state @", u.state, " is updated twice"));
    if (u.value.index >= graph.ops.size()) return ErrorAt(u.loc, absl::StrCat("update of @", u.state, " has no value"));
    if (graph.op(u.value).types != Types(state->type)) {
      return ErrorAt(u.loc, absl::StrCat("update of @", u.state, " is ", ToString(graph.op(u.value).types),
                                         ", the state is ", ToString(state->type)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyGraph(const Graph& graph, const Program& program) {
  std::set<std::string> names;
  for (const GraphParam& p : graph.params) {
    if (!names.insert(p.name).second) return ErrorAt(p.loc, absl::StrCat("parameter %", p.name, " is declared twice"));
    if (p.op.index >= graph.ops.size() || graph.op(p.op).def != &InputOp()) {
      return ErrorAt(p.loc, absl::StrCat("graph @", graph.name, ": parameter %", p.name, " has no input op"));
    }
  }
  for (size_t i = 0; i < graph.ops.size(); ++i) AGC_RETURN_IF_ERROR(CheckOp(graph, program, i));
  AGC_RETURN_IF_ERROR(CheckOutputs(graph));
  return CheckUpdates(graph, program);
}

}  // namespace agc
