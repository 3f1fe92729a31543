// Folding: values that follow from constants, weights and given inputs, computed by the evaluator, op by op.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/import/onnx_importer.h"
#include "ir/op_def.h"
#include "ir/tuple.h"

namespace agc::onnx {
namespace {

constexpr int64_t kMostFolded = int64_t{1} << 22;  // elements of a value on the way to a folded one

}  // namespace

// Inputs that are given count as read, and so the result as right for them only.
std::string Importer::FoldLeaf(const Op& op, Parts& parts) {
  if (op.def == &InputOp()) {
    const auto it = options_.values.find(op.symbol);
    if (it == options_.values.end() || !(it->second.type == op.type())) {
      return absl::StrCat("it depends on input '", op.symbol, "', whose value is not given");
    }
    baked_.insert(op.symbol);
    parts = {std::make_shared<const HostTensor>(it->second)};
    return "";
  }
  const auto w = std::find_if(weights_.begin(), weights_.end(), [&](const Weight& x) { return x.name == op.symbol; });
  if (w == weights_.end()) return absl::StrCat("it depends on state @", op.symbol);
  parts = {std::make_shared<const HostTensor>(HostTensor{w->type, {w->bytes.begin(), w->bytes.end()}})};
  return "";
}

// The op's value, from its operands', or why there is none.
Importer::Folding Importer::FoldOp(const Op& op, FoldFrom from) {
  Folding result;
  for (const TensorType& t : op.types) {
    if (t.elements() <= kMostFolded) continue;
    result.why_not = absl::StrCat("a value of ", ToString(op.types), " on the way is too large to be folded");
    return result;
  }
  if (op.def == &InputOp() || op.def == &StateOp()) {
    result.why_not = from == kConstants ? "it depends on an input or a weight" : FoldLeaf(op, result.parts);
    return result;
  }
  std::vector<TensorPtr> operands;
  for (const OpId operand : op.operands) {
    const Folding& f = folded_[from][operand.index];
    if (f.parts.empty()) return {.why_not = f.why_not};
    operands.push_back(f.parts[0]);
  }
  if (op.def == &GetOp()) {
    const auto index = static_cast<size_t>(*std::get_if<int64_t>(FindAttr(op.attrs, "index")));
    result.parts = {folded_[from][op.operands[0].index].parts[index]};
  } else if (op.def == &TupleOp()) {
    result.parts = operands;
  } else {
    absl::StatusOr<Parts> value = EvaluateOp(*builder_.graph, op, operands, EvalMode::kExact);
    if (value.ok()) result.parts = *std::move(value);
    if (!value.ok()) result.why_not = absl::StrCat("its value cannot be computed: ", value.status().message());
  }
  return result;
}

const Importer::Folding& Importer::FoldAll(OpId root, FoldFrom from) {
  std::vector<OpId> todo = {root};
  while (!todo.empty()) {
    const OpId id = todo.back();
    const Op& op = builder_.graph->op(id);
    const size_t before = todo.size();
    for (const OpId operand : op.operands) {
      if (folded_[from].count(operand.index) == 0) todo.push_back(operand);
    }
    if (todo.size() > before) continue;
    todo.pop_back();
    if (folded_[from].count(id.index) == 0) folded_[from][id.index] = FoldOp(op, from);
  }
  return folded_[from][root.index];
}

TensorPtr Importer::Fold(Value v, FoldFrom from) {
  if (!v.valid() || builder_.graph == nullptr) return nullptr;
  const Folding& folding = FoldAll(v.id, from);
  why_not_ = folding.why_not;
  return folding.parts.empty() ? nullptr : folding.parts[0];
}

}  // namespace agc::onnx
