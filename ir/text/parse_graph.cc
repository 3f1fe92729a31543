// Graphs: header, op lines, outputs, updates; attributes and constants.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_def.h"
#include "ir/text/parse.h"

namespace agc::text {
namespace {

AttrValue ParseAttrValue(Cursor& c, const AttrDef& def) {
  const std::string what = absl::StrCat("attribute ", def.name);
  switch (def.kind) {
    case AttrKind::kBool:
      return c.Number(DType::kBool).i() != 0;
    case AttrKind::kInt:
      return c.Int(what, -kMaxInt, kMaxInt);
    case AttrKind::kFloat:
      return c.Double(what);
    case AttrKind::kString:
      return c.String(what);
    case AttrKind::kInts: {
      const std::vector<int64_t> ints = c.IntList(what, -kMaxDim, kMaxDim);
      return Ints(ints.begin(), ints.end());
    }
    case AttrKind::kDType:
      return c.TypeName(what);
    case AttrKind::kSymbol:
      return Symbol{c.Symbol(what)};
    case AttrKind::kLiteral:
      break;
  }
  c.Fail(absl::StrCat(what, " cannot be written in braces"));
  return false;
}

struct GraphParser {
  ModuleParser& m;
  Cursor& c;
  Graph graph = {};
  std::map<std::string, OpId> values = {};             // by name without '%'
  absl::flat_hash_map<std::string, OpId> states = {};  // the ops that read them
  absl::flat_hash_map<std::string, Loc> updated = {};  // where

  void Declare(const Token& name, OpId id, Loc loc) {
    const std::string key = Key(name);
    const auto [it, inserted] = values.emplace(key, id);
    if (!inserted)
      c.Fail(
          WithNote(ErrorAt(loc, absl::StrCat("%", key, " is defined twice")), "first here", graph.op(it->second).loc));
  }
  static std::string Key(const Token& name) {
    return name.quoted && !IsIdentifier(name.text) ? Quote(name.text) : name.text;
  }

  const StateDef* FindState(const std::string& name) const {
    const auto it = m.states.find(name);
    return it != m.states.end() ? &m.program.states[it->second] : nullptr;
  }

  OpId Operand() {
    if (c.Peek().kind == TokenKind::kSymbol) {
      const Loc here = c.loc();
      const std::string name = c.Take().text;
      if (const auto it = states.find(name); it != states.end()) return it->second;
      if (const StateDef* state = FindState(name); state != nullptr)
        return states[name] = AppendState(graph, name, state->type, here);
      std::vector<std::string> names;
      for (const StateDef& s : m.program.states) names.push_back(s.name);
      c.Fail(here,
             absl::StrCat("unknown state @", name, Nearest(name, names), "; states are declared before the graphs"));
      return {};
    }
    const Loc here = c.loc();
    const Token token = c.Peek();
    c.Value("a value");
    const auto it = values.find(Key(token));
    if (it != values.end()) return it->second;
    std::vector<std::string> names;
    for (const auto& [name, id] : values) names.push_back(name);
    c.Fail(here, absl::StrCat("unknown value %", Key(token), Nearest(Key(token), names),
                              "; a value is defined before it is used"));
    return {};
  }

  void ParseParam() {
    GraphParam p;
    const Loc here = c.loc();
    const std::string kind = c.Ident("input, resident or param");
    if (kind == "resident") {
      p.kind = ParamKind::kResident;
    } else if (kind == "param") {
      p.kind = ParamKind::kParam;
    } else if (kind != "input") {
      c.Fail(here, absl::StrCat("expected input, resident or param, found ", kind));
    }
    const Token name = c.Peek();
    c.Value("a parameter");
    c.Expect(":");
    const TensorType type = c.Type();
    const bool donate = c.Accept("donate");
    const Loc loc = c.OptionalLoc(here);
    if (!c.ok()) return;
    if (m.program.stage <= Stage::kPrimitive) {
      Declare(name, AppendInput(graph, p.kind, name.text, type, loc, donate), here);
    } else {
      graph.params.push_back({p.kind, name.text, type, donate, {}, loc});
    }
  }

  void ParseOutputType() {
    Output o;
    o.loc = c.loc();
    o.each_step = c.Accept("each_step");
    o.name = c.Value("an output");
    c.Expect(":");
    o.type = c.Type();
    for (const Output& other : graph.outputs) {
      if (other.name == o.name) c.Fail(o.loc, absl::StrCat("output %", o.name, " is declared twice"));
    }
    graph.outputs.push_back(std::move(o));
  }

  void ParseHeader() {
    graph.loc = c.loc();
    graph.name = c.Symbol("the graph's name");
    c.Expect("(");
    c.List(")", [&] { ParseParam(); });
    if (c.Accept("->")) {
      c.Expect("(");
      c.List(")", [&] { ParseOutputType(); });
    }
    if (c.Accept("streams")) graph.random_streams = static_cast<uint32_t>(c.Int("a count of streams", 0, UINT32_MAX));
    graph.loc = c.OptionalLoc(graph.loc);
    c.Expect("{");
  }

  Types ParseTypes() {
    Types types;
    if (!c.Accept("(")) return Types(c.Type());
    c.List(")", [&] { types.push_back(c.Type()); });
    if (types.size() < 2) c.Fail("a tuple has two types or more");
    return types;
  }

  // The op of a line after its name; the types are those of the text.
  OpId ParseCall(const OpDef& def, const Types& types, Loc loc) {
    std::vector<OpId> operands;
    const bool value = c.Peek().kind == TokenKind::kValue && !c.Is(":", 1);
    if (def.arity.max > 0 && (value || c.Peek().kind == TokenKind::kSymbol)) {
      do {
        operands.push_back(Operand());
      } while (c.Accept(","));
    }
    if (!c.ok()) return {};
    if (&def == &ConstantOp()) return AppendConstant(graph, types[0], ParseLiteral(c, types[0]), loc);
    const std::string symbol = c.Peek().kind == TokenKind::kSymbol ? c.Take().text : "";
    if (&def == &BlobOp()) return AppendBlob(symbol, loc);
    std::vector<Attr> attrs;
    if (c.Accept("{")) attrs = ParseAttrList(c, def, "}");
    if (!c.ok()) return {};
    const absl::StatusOr<OpId> id = AppendChecked(graph, def, operands, attrs, loc, symbol);
    if (!id.ok()) c.Fail(id.status());
    return id.ok() ? *id : OpId();
  }

  OpId AppendBlob(const std::string& name, Loc loc) {
    for (const BlobDef& b : m.program.blobs) {
      if (b.name != name) continue;
      Op op{.def = &BlobOp(), .types = b.type, .loc = loc};
      op.symbol = name;
      return graph.Append(std::move(op));
    }
    std::vector<std::string> names;
    for (const BlobDef& b : m.program.blobs) names.push_back(b.name);
    c.Fail(loc, absl::StrCat("unknown blob @", name, Nearest(name, names), "; blobs are declared before the graphs"));
    return {};
  }

  void ParseOp() {
    const Loc line = c.loc();
    const Token name = c.Take();
    c.Expect(":");
    const Types types = ParseTypes();
    c.Expect("=");
    const Loc at_op = c.loc();
    const std::string op_name = c.Ident("an op");
    const OpDef* def = FindOp(op_name);
    if (!c.ok()) return;
    if (def == nullptr || def == &InputOp() || def == &StateOp()) {
      std::vector<std::string> names;
      for (const OpDef* op : AllOps()) names.emplace_back(op->name);
      return c.Fail(at_op, def == nullptr ? absl::StrCat("unknown op ", op_name, Nearest(op_name, names))
                                          : absl::StrCat(op_name, ": is written by its name, as an operand"));
    }
    const OpId id = ParseCall(*def, types, line);
    if (!c.ok()) return;
    Op& op = graph.op(id);
    if (op.types != types) {
      return c.Fail(line,
                    absl::StrCat(op_name, ": the text says ", ToString(types), ", the op gives ", ToString(op.types)));
    }
    ParseMarks(op);
    op.loc = c.OptionalLoc(line);
    Declare(name, id, line);
  }

  void ParseMarks(Op& op) {
    if (c.Accept("group")) op.group = static_cast<int32_t>(c.Int("a group", 0, INT32_MAX));
    if (c.Accept("role")) op.role = c.Word("a role");
    if (c.Accept("recompute")) op.recompute = static_cast<int32_t>(c.Int("a clone number", INT32_MIN, INT32_MAX));
    if (c.Accept("layout")) {
      const std::vector<int64_t> layout = c.IntList("an axis", 0, 63);
      op.layout.assign(layout.begin(), layout.end());
    }
  }

  void ParseOutput() {
    const Loc here = c.loc();
    const std::string name = c.Value("an output");
    const auto it =
        std::find_if(graph.outputs.begin(), graph.outputs.end(), [&](const Output& o) { return o.name == name; });
    c.Expect("=");
    if (!c.ok()) return;
    if (it == graph.outputs.end()) return c.Fail(here, absl::StrCat("output %", name, " is not in the graph's header"));
    if (it->value.valid()) return c.Fail(here, absl::StrCat("output %", name, " is given twice"));
    it->value = Operand();
    if (!c.ok()) return;
    if (graph.op(it->value).types != Types(it->type)) {
      return c.Fail(here, absl::StrCat("output %", name, " is ", ToString(graph.op(it->value).types),
                                       ", the header says ", ToString(it->type)));
    }
    it->loc = c.OptionalLoc(here);
  }

  void ParseUpdate() {
    Update u;
    u.loc = c.loc();
    u.state = c.Symbol("a state");
    const StateDef* state = FindState(u.state);
    if (c.ok() && state == nullptr)
      return c.Fail(u.loc, absl::StrCat("unknown state @", u.state, "; states are declared before the graphs"));
    if (const auto [it, fresh] = updated.emplace(u.state, u.loc); !fresh) {
      return c.Fail(
          WithNote(ErrorAt(u.loc, absl::StrCat("state @", u.state, " is updated twice")), "first here", it->second));
    }
    if (m.program.stage <= Stage::kPrimitive || c.Is("=")) {
      c.Expect("=");
      u.value = Operand();
      if (!c.ok()) return;
      if (graph.op(u.value).types != Types(state->type)) {
        return c.Fail(u.loc, absl::StrCat("update of @", u.state, " is ", ToString(graph.op(u.value).types),
                                          ", the state is ", ToString(state->type)));
      }
    }
    u.loc = c.OptionalLoc(u.loc);
    graph.updates.push_back(std::move(u));
  }

  void ParseLine() {
    if (c.Peek().kind == TokenKind::kValue) return ParseOp();
    if (c.Accept("output")) return ParseOutput();
    if (c.Accept("update")) return ParseUpdate();
    if (ParseStorageLine(m, graph)) return;
    c.Fail(absl::StrCat("expected an op line, output, update, buffer, a step or }, found ", c.Describe()));
  }
};

}  // namespace

std::vector<Attr> ParseAttrList(Cursor& c, const OpDef& def, absl::string_view close) {
  std::vector<Attr> attrs;
  c.List(close, [&] {
    const Loc here = c.loc();
    const std::string name = c.Ident("an attribute");
    const auto* it = std::find_if(def.attrs.begin(), def.attrs.end(), [&](const AttrDef& d) { return d.name == name; });
    if (!c.ok()) return;
    if (it == def.attrs.end()) {
      std::vector<std::string> names;
      for (const AttrDef& d : def.attrs) names.emplace_back(d.name);
      return c.Fail(
          here, absl::StrCat(def.name, ": no attribute ", name,
                             names.empty() ? "; it has none" : absl::StrCat("; it has ", absl::StrJoin(names, ", "))));
    }
    if (FindAttr(attrs, it->name) != nullptr)
      return c.Fail(here, absl::StrCat(def.name, ": attribute ", name, " is given twice"));
    c.Expect("=");
    attrs.push_back({it->name, ParseAttrValue(c, *it)});
  });
  return attrs;
}

LiteralPtr ParseLiteral(Cursor& c, const TensorType& type) {
  auto literal = std::make_shared<Literal>();
  const Loc here = c.loc();
  if (c.Accept("splat")) {
    c.Expect("(");
    literal->values.push_back(c.Number(type.dtype));
    c.Expect(")");
    return literal;
  }
  literal->splat = false;
  const size_t size = static_cast<size_t>(SizeOf(type.dtype));
  if (c.Accept("dense")) {
    c.Expect("[");
    c.List("]", [&] { literal->values.push_back(c.Number(type.dtype)); });
  } else if (c.Accept("bytes")) {
    const std::string bytes = c.Bytes();
    for (size_t i = 0; i + size <= bytes.size(); i += size)
      literal->values.push_back(LoadElement(type.dtype, bytes.data() + i));
    if (bytes.size() % size != 0)
      c.Fail(here, absl::StrCat(bytes.size(), " bytes are no whole number of ", Name(type.dtype)));
  } else {
    c.Fail(absl::StrCat("expected splat(v), dense[...] or bytes \"...\", found ", c.Describe()));
  }
  const int64_t given = static_cast<int64_t>(literal->values.size());
  if (c.ok() && given != type.elements()) {
    c.Fail(here, absl::StrCat(given, " elements are given, ", ToString(type), " has ", type.elements()));
  }
  return literal;
}

void ParseGraph(ModuleParser& m) {
  GraphParser parser{m, m.c};
  parser.ParseHeader();
  while (m.c.ok() && !m.c.Accept("}")) parser.ParseLine();
  if (m.c.ok()) ResolveStorage(m, parser.graph);
  m.program.graphs.push_back(std::move(parser.graph));
}

}  // namespace agc::text
