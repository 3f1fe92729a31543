// Derivatives that pass autograd expands, and functions that bring their own gradient; `gradient` is in ir/ops/data.cc.
#include "ir/derivative.h"
#include "ir/ops/tables.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

using enum OpClass;

// `count` values and as many vectors of their types, from operand `first` on.
absl::Status CheckPairs(const OpCall& call, int first, int count, absl::string_view value, absl::string_view vector) {
  for (int k = 0; k < count; ++k) {
    const TensorType &v = call.type(first + k), &t = call.type(first + count + k);
    if (!IsFloat(v.dtype)) {
      return call.Error(absl::StrCat(value, " ", k, " is ", ToString(v), ", expected a float type"));
    }
    if (v != t) {
      return call.Error(absl::StrCat("the ", vector, " of ", value, " ", k, " is ", ToString(t), ", expected ",
                                     ToString(v), " as the ", value, " itself"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCount(const OpCall& call, absl::string_view attr, int64_t count) {
  if (count >= 1 && call.arity() == 2 * count + 1) return absl::OkStatus();
  return call.Error(absl::StrCat(call.arity(), " operands given, ", attr, " = ", count,
                                 count >= 1 ? absl::StrCat(" takes ", 2 * count + 1) : ", expected 1 or more"));
}

absl::StatusOr<Types> VjpTypes(const OpCall& call) {
  const int64_t n = call.integer("outputs");
  AGC_RETURN_IF_ERROR(CheckCount(call, "outputs", n));
  AGC_RETURN_IF_ERROR(CheckPairs(call, 0, static_cast<int>(n), "output", "cotangent"));
  const TensorType& x = call.type(call.arity() - 1);
  if (IsFloat(x.dtype)) return Types(x);
  return call.Error(absl::StrCat("the gradient with respect to ", ToString(x), " is asked for, expected a float type"));
}

absl::StatusOr<Types> JvpTypes(const OpCall& call) {
  const int64_t n = call.integer("inputs");
  AGC_RETURN_IF_ERROR(CheckCount(call, "inputs", n));
  AGC_RETURN_IF_ERROR(CheckPairs(call, 1, static_cast<int>(n), "input", "tangent"));
  const TensorType& y = call.type(0);
  if (IsFloat(y.dtype)) return Types(y);
  return call.Error(absl::StrCat("the tangent of ", ToString(y), " is asked for, expected a float type"));
}

absl::StatusOr<Types> FirstFloat(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return Types(call.type(0));
}

// dx from the function: one result for each float operand after y.
void CustomRule(Vjp& s) {
  const Graph* function = s.builder.program != nullptr ? s.builder.program->FindGraph(s.op.symbol) : nullptr;
  if (function == nullptr) {
    Poison(s.builder, s.op.loc, absl::StrCat("custom_vjp: the module has no graph @", s.op.symbol));
    return;
  }
  std::vector<Value> args(s.x.begin() + 1, s.x.end());
  args.push_back(s.x[0]);
  args.push_back(s.g);
  const std::vector<Value> results = Inline(s.builder, *function, args, 0, s.op.loc);
  size_t next = 0;
  for (size_t k = 1; k < s.x.size() && next < results.size(); ++k) {
    if (IsFloat(s.x[k].dtype())) s.dx[k] = results[next++];
  }
}

constexpr int kMany = 1 << 20;

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "custom_vjp", .cls = kSymbol, .arity = {1, kMany}, .infer = FirstFloat, .at = [](At& s, Index i) { return s.Read(0, i); },
     .vjp = CustomRule,
     .doc = "The first operand y, computed from the others x; the graph that the symbol names, (x, y, cotangent) -> cotangents of the float x, is its gradient."},
    {.name = "jvp", .cls = kData, .arity = {3, kMany}, .attrs = {{"inputs", AttrKind::kInt, "1"}}, .infer = JvpTypes,
     .doc = "Tangent of a value y from values x and their tangents t, given as y, x, t; pass autograd expands it."},
    {.name = "vjp", .cls = kData, .arity = {3, kMany}, .attrs = {{"outputs", AttrKind::kInt, "1"}}, .infer = VjpTypes,
     .doc = "Cotangent of a value x from values y and their cotangents g, given as y, g, x; pass autograd expands it."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kDerivativeOps(kOps);

const OpDef& CustomVjpOp() { return kOps[0]; }
const OpDef& JvpOp() { return kOps[1]; }
const OpDef& VjpOp() { return kOps[2]; }
bool IsGradientFunction(const Graph& graph) { return absl::EndsWith(graph.name, ".vjp"); }
bool IsDerivative(const OpDef& def) { return &def == &GradientOp() || &def == &VjpOp() || &def == &JvpOp(); }

DerivativeOperands OperandsOf(const Op& op) {
  const auto* at = op.operands.begin();
  if (op.def == &GradientOp()) return {.ys = {at[0]}, .xs = {at[1]}};
  const int64_t n = AttrReader{op.attrs}.integer(op.def == &VjpOp() ? "outputs" : "inputs");
  if (op.def == &VjpOp()) return {.ys = {at, at + n}, .xs = {at[2 * n]}, .vectors = {at + n, at + 2 * n}};
  return {.ys = {at[0]}, .xs = {at + 1, at + 1 + n}, .vectors = {at + 1 + n, at + 1 + 2 * n}};
}

Value VectorJacobian(absl::Span<const Value> ys, absl::Span<const Value> gs, Value x, Loc loc) {
  std::vector<Value> operands(ys.begin(), ys.end());
  operands.insert(operands.end(), gs.begin(), gs.end());
  operands.push_back(x);
  return Emit("vjp", operands, {Attr{"outputs", static_cast<int64_t>(ys.size())}}, loc);
}

Value JacobianVector(Value y, absl::Span<const Value> xs, absl::Span<const Value> ts, Loc loc) {
  std::vector<Value> operands = {y};
  operands.insert(operands.end(), xs.begin(), xs.end());
  operands.insert(operands.end(), ts.begin(), ts.end());
  return Emit("jvp", operands, {Attr{"inputs", static_cast<int64_t>(xs.size())}}, loc);
}

FunctionTypes CustomVjpTypes(const TensorType& y, absl::Span<const TensorType> xs) {
  FunctionTypes types{.params = {xs.begin(), xs.end()}};
  types.params.push_back(y);
  types.params.push_back(y);
  std::copy_if(xs.begin(), xs.end(), std::back_inserter(types.results),
               [](const TensorType& t) { return IsFloat(t.dtype); });
  return types;
}

namespace {

// The arguments of a call fit the parameters, or a message.
std::string Misfit(const Builder& b, const Graph& callee, absl::Span<const Value> args) {
  if (args.size() != callee.params.size())
    return absl::StrCat("@", callee.name, " takes ", callee.params.size(), " arguments, ", args.size(), " are given");
  for (size_t k = 0; k < args.size(); ++k) {
    const GraphParam& p = callee.params[k];
    if (args[k].builder != &b || args[k].generation != b.generation)
      return absl::StrCat("argument %", p.name, " of @", callee.name, " belongs to another trace");
    if (args[k].type() != p.type)
      return absl::StrCat("argument %", p.name, " of @", callee.name, " is ", ToString(args[k].type()), ", expected ",
                          ToString(p.type));
  }
  if (callee.updates.empty()) return "";
  return absl::StrCat("@", callee.name, " updates state @", callee.updates[0].state, ", which a call cannot do");
}

}  // namespace

std::vector<Value> Inline(Builder& b, const Graph& callee, absl::Span<const Value> args, int64_t streams, Loc loc) {
  for (const Value& v : args) {
    if (v.poison) return std::vector<Value>(callee.outputs.size(), v);
  }
  if (const std::string misfit = Misfit(b, callee, args); !misfit.empty()) {
    return std::vector<Value>(std::max<size_t>(callee.outputs.size(), 1), Poison(b, loc, misfit));
  }
  const Graph body = callee;  // appending may move the callee itself
  std::vector<OpId> ids(body.ops.size());
  for (size_t k = 0; k < args.size(); ++k) ids[body.params[k].op.index] = args[k].id;
  for (size_t i = 0; i < body.ops.size(); ++i) {
    Op op = body.ops[i];
    if (op.def == &InputOp()) continue;
    if (op.def == &StateOp()) {
      ids[i] = AppendState(*b.graph, op.symbol, op.type(), op.loc);
      continue;
    }
    for (OpId& id : op.operands) id = ids[id.index];
    for (Attr& a : op.attrs) {
      if (a.name == "stream") *std::get_if<int64_t>(&a.value) += streams;
    }
    if (b.inherit) op.loc = b.loc;
    if (!b.role.empty()) op.role = b.role;
    ids[i] = b.graph->Append(std::move(op));
  }
  std::vector<Value> results;
  for (const Output& out : body.outputs) results.push_back({&b, ids[out.value.index], b.generation, false});
  return results;
}

}  // namespace agc
