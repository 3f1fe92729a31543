// Graphs: parameters, op lines, outputs and updates.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "ir/op_def.h"
#include "ir/text/print.h"

namespace agc::text {
namespace {

std::string LiteralText(const Literal& literal, const TensorType& type) {
  constexpr size_t kMaxListed = 64;
  if (literal.values.empty() && literal.splat) return "splat(?)";
  if (literal.splat) return absl::StrCat("splat(", ToString(literal.values[0]), ")");
  if (literal.values.size() <= kMaxListed) {
    const auto each = [](std::string* out, Scalar v) { absl::StrAppend(out, ToString(v)); };
    return absl::StrCat("dense[", absl::StrJoin(literal.values, ", ", each), "]");
  }
  std::string bytes(literal.values.size() * static_cast<size_t>(SizeOf(type.dtype)), '\0');
  for (size_t i = 0; i < literal.values.size(); ++i) {
    StoreElement(literal.values[i], bytes.data() + i * static_cast<size_t>(SizeOf(type.dtype)));
  }
  return absl::StrCat("bytes ", Hex(bytes));
}

std::string AttrText(const AttrValue& value, const TensorType& type) {
  switch (static_cast<AttrKind>(value.index())) {
    case AttrKind::kBool:
      return *std::get_if<bool>(&value) ? "true" : "false";
    case AttrKind::kInt:
      return absl::StrCat(*std::get_if<int64_t>(&value));
    case AttrKind::kFloat:
      return ToString(Scalar::Float(DType::kF64, *std::get_if<double>(&value)));
    case AttrKind::kString:
      return Quote(*std::get_if<std::string>(&value));
    case AttrKind::kInts:
      return IntList(*std::get_if<Ints>(&value));
    case AttrKind::kDType:
      return std::string(Name(*std::get_if<DType>(&value)));
    case AttrKind::kSymbol:
      return Sigil('@', std::get_if<Symbol>(&value)->name);
    case AttrKind::kLiteral: {
      const LiteralPtr& literal = *std::get_if<LiteralPtr>(&value);
      return literal == nullptr ? "splat(?)" : LiteralText(*literal, type);
    }
  }
  return "?";
}

// Whether the value is what the row's default says.
bool IsDefault(const OpDef& def, const Attr& attr, const std::string& text) {
  for (const AttrDef& d : def.attrs) {
    if (d.name != attr.name || d.fallback.empty()) continue;
    double fallback = 0;
    if (d.kind == AttrKind::kFloat)
      return absl::SimpleAtod(d.fallback, &fallback) && fallback == *std::get_if<double>(&attr.value);
    if (d.kind == AttrKind::kString) return *std::get_if<std::string>(&attr.value) == d.fallback;
    if (d.kind == AttrKind::kSymbol) return std::get_if<Symbol>(&attr.value)->name == d.fallback;
    return absl::StrReplaceAll(text, {{" ", ""}}) == absl::StrReplaceAll(d.fallback, {{" ", ""}});
  }
  return false;
}

std::string AttrsText(const Op& op) {
  std::string out;
  for (const Attr& attr : op.attrs) {
    const std::string text = AttrText(attr.value, op.type());
    if (IsDefault(*op.def, attr, text)) continue;
    absl::StrAppend(&out, out.empty() ? " {" : ", ", attr.name, " = ", text);
  }
  return out.empty() ? out : out + "}";
}

// What each op's value is called in text.
std::vector<std::string> ValueNames(const Graph& graph) {
  std::vector<std::string> names;
  int next = 0;
  for (const Op& op : graph.ops) {
    if (op.def == &InputOp()) {
      names.push_back(Sigil('%', op.symbol));
    } else if (op.def == &StateOp()) {
      names.push_back(Sigil('@', op.symbol));
    } else {
      names.push_back(absl::StrCat("%", next++));
    }
  }
  return names;
}

std::string NameOf(const std::vector<std::string>& names, OpId id) {
  return id.index < names.size() ? names[id.index] : std::string("%?");
}

void PrintOp(const Op& op, absl::string_view name, const std::vector<std::string>& names, const PrintOptions& options,
             std::string& out) {
  absl::StrAppend(&out, "    ", name, ": ", ToString(op.types), " = ", op.def->name);
  for (size_t i = 0; i < op.operands.size(); ++i)
    absl::StrAppend(&out, i == 0 ? " " : ", ", NameOf(names, op.operands[i]));
  if (op.def == &ConstantOp()) {
    for (const Attr& attr : op.attrs) absl::StrAppend(&out, " ", AttrText(attr.value, op.type()));
  } else {
    if (!op.symbol.empty()) absl::StrAppend(&out, " ", Sigil('@', op.symbol));
    absl::StrAppend(&out, AttrsText(op));
  }
  if (op.group >= 0) absl::StrAppend(&out, " group ", op.group);
  if (!op.role.empty()) absl::StrAppend(&out, " role ", Word(op.role));
  if (op.recompute != 0) absl::StrAppend(&out, " recompute ", op.recompute);
  if (!op.layout.empty()) absl::StrAppend(&out, " layout ", IntList(op.layout));
  absl::StrAppend(&out, LocSuffix(op.loc, options), "\n");
}

void PrintHeader(const Graph& graph, const PrintOptions& options, std::string& out) {
  absl::StrAppend(&out, "  graph ", Sigil('@', graph.name), "(");
  for (size_t i = 0; i < graph.params.size(); ++i) {
    const GraphParam& p = graph.params[i];
    absl::StrAppend(&out, i == 0 ? "" : ", ", Name(p.kind), " ", Sigil('%', p.name), ": ", ToString(p.type),
                    p.donate ? " donate" : "", LocSuffix(p.loc, options));
  }
  absl::StrAppend(&out, ")");
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const Output& o = graph.outputs[i];
    absl::StrAppend(&out, i == 0 ? " -> (" : ", ", o.each_step ? "each_step " : "", Sigil('%', o.name), ": ",
                    ToString(o.type));
  }
  absl::StrAppend(&out, graph.outputs.empty() ? "" : ")");
  if (graph.random_streams != 0) absl::StrAppend(&out, " streams ", graph.random_streams);
  absl::StrAppend(&out, LocSuffix(graph.loc, options), " {\n");
}

}  // namespace

void PrintGraph(const Graph& graph, const Program& program, const PrintOptions& options, std::string& out) {
  PrintHeader(graph, options, out);
  const std::vector<std::string> names = ValueNames(graph);
  for (size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.def != &InputOp() && op.def != &StateOp()) PrintOp(op, names[i], names, options, out);
  }
  PrintStorage(graph, program, options, out);
  for (const Output& o : graph.outputs) {
    if (o.value.index >= graph.ops.size()) continue;
    absl::StrAppend(&out, "    output ", Sigil('%', o.name), " = ", names[o.value.index], LocSuffix(o.loc, options),
                    "\n");
  }
  for (const Update& u : graph.updates) {
    absl::StrAppend(&out, "    update ", Sigil('@', u.state));
    if (u.value.index < graph.ops.size()) absl::StrAppend(&out, " = ", names[u.value.index]);
    absl::StrAppend(&out, LocSuffix(u.loc, options), "\n");
  }
  absl::StrAppend(&out, "  }\n");
}

}  // namespace agc::text
