#include "ir/graph.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "ir/program.h"

namespace agc {

absl::string_view Name(ParamKind kind) {
  static constexpr absl::string_view kNames[] = {"input", "resident", "param"};
  return kNames[static_cast<int>(kind)];
}

const AttrValue* FindAttr(absl::Span<const Attr> attrs, absl::string_view name) {
  for (const Attr& a : attrs) {
    if (a.name == name) return &a.value;
  }
  return nullptr;
}

bool SameAttrs(absl::Span<const Attr> a, absl::Span<const Attr> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].value.index() != b[i].value.index()) return false;
    const LiteralPtr* x = std::get_if<LiteralPtr>(&a[i].value);
    const LiteralPtr* y = std::get_if<LiteralPtr>(&b[i].value);
    const double* f = std::get_if<double>(&a[i].value);
    const double* g = std::get_if<double>(&b[i].value);
    const bool same = x != nullptr   ? (*x == *y || **x == **y)
                      : f != nullptr ? std::bit_cast<uint64_t>(*f) == std::bit_cast<uint64_t>(*g)
                                     : a[i].value == b[i].value;
    if (!same) return false;
  }
  return true;
}

OpId Graph::Append(Op op) {
  ops.push_back(std::move(op));
  return {static_cast<uint32_t>(ops.size() - 1)};
}

OpId Graph::FindState(absl::string_view state) const {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].def == &StateOp() && ops[i].symbol == state) return {static_cast<uint32_t>(i)};
  }
  return {};
}

namespace {
// A default from a table row as a value; rows are checked by a unit test, so a bad one is a bug.
AttrValue ParseDefault(const AttrDef& def) {
  absl::string_view text = def.fallback;
  switch (def.kind) {
    case AttrKind::kBool:
      return text == "true";
    case AttrKind::kInt: {
      int64_t v = 0;
      AGC_CHECK(absl::SimpleAtoi(text, &v));
      return v;
    }
    case AttrKind::kFloat: {
      double v = 0;
      AGC_CHECK(absl::SimpleAtod(text, &v));
      return v;
    }
    case AttrKind::kString:
      return std::string(text);
    case AttrKind::kInts: {
      Ints ints;
      AGC_CHECK(text.size() >= 2 && text.front() == '[' && text.back() == ']');
      for (absl::string_view part : absl::StrSplit(text.substr(1, text.size() - 2), ',', absl::SkipWhitespace())) {
        int64_t v = 0;
        AGC_CHECK(absl::SimpleAtoi(part, &v));
        ints.push_back(v);
      }
      return ints;
    }
    case AttrKind::kDType:
      return *DTypeNamed(text);
    case AttrKind::kSymbol:
      return Symbol{std::string(text)};
    case AttrKind::kLiteral:
      break;
  }
  AGC_CHECK(false);
  return false;
}

// Attributes in table order with defaults filled in.
absl::StatusOr<absl::InlinedVector<Attr, 2>> CompleteAttrs(const OpDef& def, absl::Span<const Attr> given) {
  for (const Attr& a : given) {
    if (std::none_of(def.attrs.begin(), def.attrs.end(), [&](const AttrDef& d) { return d.name == a.name; })) {
      return absl::InvalidArgumentError(absl::StrCat(def.name, ": no attribute ", a.name));
    }
  }
  absl::InlinedVector<Attr, 2> out;
  for (const AttrDef& want : def.attrs) {
    const AttrValue* value = FindAttr(given, want.name);
    if (value == nullptr && want.fallback.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(def.name, ": attribute ", want.name, " is missing"));
    }
    if (value != nullptr && value->index() != static_cast<size_t>(want.kind)) {
      return absl::InvalidArgumentError(absl::StrCat(def.name, ": attribute ", want.name, " has the wrong kind"));
    }
    if (value != nullptr && !want.choices.empty()) {
      const std::string& text = *std::get_if<std::string>(value);
      const std::vector<absl::string_view> choices = absl::StrSplit(want.choices, '|');
      if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat(def.name, ": attribute ", want.name, " is \"", text, "\", expected one of ", want.choices));
      }
    }
    out.push_back({want.name, value != nullptr ? *value : ParseDefault(want)});
  }
  return out;
}
}  // namespace

absl::StatusOr<OpId> AppendChecked(Graph& graph, const OpDef& def, absl::Span<const OpId> operands,
                                   absl::Span<const Attr> attrs, Loc loc, absl::string_view symbol) {
  const int n = static_cast<int>(operands.size());
  const auto fail = [&](const absl::Status& s) { return ErrorAt(loc, s.message(), s.code()); };
  if (n < def.arity.min || n > def.arity.max) {
    return ErrorAt(
        loc, absl::StrCat(def.name, ": ", n, " operands given, ", def.arity.min,
                          def.arity.max != def.arity.min ? absl::StrCat(" to ", def.arity.max) : "", " expected"));
  }
  absl::StatusOr<absl::InlinedVector<Attr, 2>> complete = CompleteAttrs(def, attrs);
  if (!complete.ok()) return fail(complete.status());
  OpCall call;
  call.attrs = *complete;
  call.def = &def;
  for (OpId id : operands) {
    if (graph.op(id).is_tuple() && &def != &GetOp()) {
      return ErrorAt(loc, absl::StrCat(def.name, ": an operand is a tuple, take an element with get"));
    }
    call.operands.push_back(graph.op(id).types);
  }
  absl::StatusOr<Types> types = def.infer(call);
  if (!types.ok()) return fail(types.status());
  if (def.verify != nullptr) {
    if (const absl::Status s = def.verify(call); !s.ok()) return fail(s);
  }
  Op op{.def = &def,
        .operands = {operands.begin(), operands.end()},
        .attrs = *std::move(complete),
        .types = *std::move(types),
        .loc = loc};
  op.symbol = std::string(symbol);
  return graph.Append(std::move(op));
}

OpId AppendInput(Graph& graph, ParamKind kind, absl::string_view name, TensorType type, Loc loc, bool donate) {
  Op op{.def = &InputOp(), .types = type, .loc = loc};
  op.symbol = std::string(name);
  const OpId id = graph.Append(std::move(op));
  graph.params.push_back({kind, std::string(name), std::move(type), donate, id, loc});
  return id;
}

OpId AppendState(Graph& graph, absl::string_view name, const TensorType& type, Loc loc) {
  if (const OpId found = graph.FindState(name); found.valid()) return found;
  Op op{.def = &StateOp(), .types = type, .loc = loc};
  op.symbol = std::string(name);
  return graph.Append(std::move(op));
}

OpId AppendConstant(Graph& graph, TensorType type, LiteralPtr literal, Loc loc) {
  Op op{.def = &ConstantOp(), .types = std::move(type), .loc = loc};
  op.attrs.push_back({"value", std::move(literal)});
  return graph.Append(std::move(op));
}

std::vector<int> UseCounts(const Graph& graph) {
  std::vector<int> uses(graph.ops.size());
  for (const Op& op : graph.ops) {
    for (OpId id : op.operands) ++uses[id.index];
  }
  for (const Output& out : graph.outputs) ++uses[out.value.index];
  for (const Update& update : graph.updates) ++uses[update.value.index];
  return uses;
}

namespace {
// Moves ops so that new op i is old op order[i], dropping the rest; references follow.
void Permute(Graph& graph, const std::vector<OpId>& order) {
  std::vector<OpId> renamed(graph.ops.size());
  std::vector<Op> ops;
  ops.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    renamed[order[i].index] = {static_cast<uint32_t>(i)};
    ops.push_back(std::move(graph.ops[order[i].index]));
  }
  const auto rename = [&](OpId& id) {
    if (id.valid()) id = renamed[id.index];
  };
  for (Op& op : ops) std::for_each(op.operands.begin(), op.operands.end(), rename);
  for (GraphParam& p : graph.params) rename(p.op);
  for (Output& out : graph.outputs) rename(out.value);
  for (Update& update : graph.updates) rename(update.value);
  graph.ops = std::move(ops);
}

// Post-order from `root` with an explicit stack, operands left to right.
void Walk(const Graph& graph, OpId root, std::vector<bool>& seen, std::vector<OpId>& order) {
  std::vector<std::pair<OpId, size_t>> stack;
  const auto push = [&](OpId id) {
    if (!seen[id.index]) stack.emplace_back(id, 0);
    seen[id.index] = true;
  };
  push(root);
  while (!stack.empty()) {
    const auto [id, next] = stack.back();
    const Op& op = graph.op(id);
    if (next == op.operands.size()) {
      order.push_back(id);
      stack.pop_back();
    } else {
      ++stack.back().second;
      push(op.operands[next]);
    }
  }
}
}  // namespace

bool Canonicalize(Graph& graph, const Program& program) {
  const auto by_state = [&](const Update& a, const Update& b) {
    return program.StateIndex(a.state) < program.StateIndex(b.state);
  };
  const bool sorted = std::is_sorted(graph.updates.begin(), graph.updates.end(), by_state);
  std::stable_sort(graph.updates.begin(), graph.updates.end(), by_state);
  std::vector<bool> seen(graph.ops.size());
  std::vector<OpId> order;
  for (const GraphParam& p : graph.params) Walk(graph, p.op, seen, order);
  for (const Output& out : graph.outputs) Walk(graph, out.value, seen, order);
  for (const Update& update : graph.updates) Walk(graph, update.value, seen, order);
  for (size_t i = 0; i < graph.ops.size(); ++i) Walk(graph, {static_cast<uint32_t>(i)}, seen, order);
  if (std::is_sorted(order.begin(), order.end()) && sorted) return false;
  Permute(graph, order);
  return true;
}

void Erase(Graph& graph, const std::vector<bool>& keep) {
  std::vector<OpId> order;
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    if (keep[i]) order.push_back({static_cast<uint32_t>(i)});
  }
  Permute(graph, order);
}

}  // namespace agc
