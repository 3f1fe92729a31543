// Modules: states, blobs and the names of graphs, nests and kernels.
#include "ir/text/parse.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/text/text.h"

namespace agc {
namespace text {
namespace {

template <typename T>
void CheckNewName(Cursor& c, const std::vector<T>& named, const std::string& name, absl::string_view what, Loc loc) {
  for (const T& other : named) {
    if (other.name == name)
      c.Fail(WithNote(ErrorAt(loc, absl::StrCat(what, " @", name, " is defined twice")), "first here", other.loc));
  }
}

Init ParseInit(Cursor& c) {
  Init init;
  const Loc here = c.loc();
  const std::string kind = c.Ident("an initial value");
  if (kind == "uniform") {
    init.kind = InitKind::kUniform;
  } else if (kind == "normal") {
    init.kind = InitKind::kNormal;
  } else if (kind != "constant") {
    c.Fail(here, absl::StrCat("unknown initial value ", kind,
                              ", expected constant(v), uniform(lo, hi) or normal(mean, deviation)"));
  }
  c.Expect("(");
  init.a = c.Double("a number");
  if (init.kind != InitKind::kConstant) {
    c.Expect(",");
    init.b = c.Double("a number");
  }
  c.Expect(")");
  return init;
}

void ParseState(ModuleParser& m) {
  Cursor& c = m.c;
  StateDef s;
  s.loc = c.loc();
  s.name = c.Symbol("the state's name");
  CheckNewName(c, m.program.states, s.name, "state", s.loc);
  c.Expect(":");
  s.type = c.Type();
  if (c.Accept("init")) s.init = ParseInit(c);
  s.trainable = c.Accept("trainable");
  s.hidden = c.Accept("hidden");
  s.loc = c.OptionalLoc(s.loc);
  m.program.states.push_back(std::move(s));
}

void ParseBlob(ModuleParser& m) {
  Cursor& c = m.c;
  BlobDef b;
  b.loc = c.loc();
  b.name = c.Symbol("the blob's name");
  CheckNewName(c, m.program.blobs, b.name, "blob", b.loc);
  c.Expect(":");
  b.type = c.Type();
  c.Expect("from");
  b.file = c.String("a file name");
  if (c.Accept("offset")) b.offset = c.Int("an offset", 0, INT64_MAX);
  if (c.Accept("hash")) b.hash = c.String("a hash");
  b.loc = c.OptionalLoc(b.loc);
  m.program.blobs.push_back(std::move(b));
}

template <typename T>
void CheckLast(Cursor& c, const std::vector<T>& named, absl::string_view what) {
  for (size_t i = 0; i + 1 < named.size() && c.ok(); ++i) {
    if (named[i].name != named.back().name) continue;
    c.Fail(WithNote(ErrorAt(named.back().loc, absl::StrCat(what, " @", named.back().name, " is defined twice")),
                    "first here", named[i].loc));
  }
}

void ParseMember(ModuleParser& m) {
  Cursor& c = m.c;
  if (c.Accept("state")) return ParseState(m);
  if (c.Accept("blob")) return ParseBlob(m);
  if (c.Accept("graph")) {
    ParseGraph(m);
    return CheckLast(c, m.program.graphs, "graph");
  }
  if (c.Accept("nest")) {
    ParseNest(m);
    return CheckLast(c, m.program.nests, "nest");
  }
  if (c.Accept("shader")) {
    ParseKernel(m);
    return CheckLast(c, m.program.kernels, "shader");
  }
  if (c.Is("kernel")) return c.Fail("kernels written in text are not supported yet; use graph");
  c.Fail(absl::StrCat("expected state, blob, graph, nest, shader or }, found ", c.Describe()));
}

void ResolveCallees(ModuleParser& m) {
  for (const Callee& callee : m.callees) {
    Step& step = m.program.graphs[callee.graph].steps[callee.step];
    std::vector<std::string> names;
    for (const Nest& n : m.program.nests) {
      if (step.kind == StepKind::kRun) names.push_back(n.name);
    }
    for (const Kernel& k : m.program.kernels) {
      if (step.kind == StepKind::kDispatch) names.push_back(k.name);
    }
    const auto it = std::find(names.begin(), names.end(), callee.name);
    if (it == names.end()) {
      return m.c.Fail(callee.loc, absl::StrCat("unknown ", step.kind == StepKind::kRun ? "nest" : "shader", " @",
                                               callee.name, Nearest(callee.name, names)));
    }
    step.callee = static_cast<uint32_t>(it - names.begin());
  }
}

void ParseModule(ModuleParser& m) {
  Cursor& c = m.c;
  c.Expect("module");
  if (c.Peek().kind == TokenKind::kSymbol) m.program.name = c.Take().text;
  if (c.Accept("stage")) {
    const Loc here = c.loc();
    const std::string name = c.Ident("a stage");
    const std::optional<Stage> stage = StageNamed(name);
    if (!stage.has_value())
      c.Fail(here, absl::StrCat("unknown stage ", name, ", expected tensor, primitive, nest, scheduled, loop or plan"));
    m.program.stage = stage.value_or(Stage::kTensor);
  }
  c.Expect("{");
  while (c.ok() && !c.Accept("}")) ParseMember(m);
  if (c.ok() && !c.AtEnd()) c.Fail(absl::StrCat("expected the end after the module, found ", c.Describe()));
  if (c.ok()) ResolveCallees(m);
}

}  // namespace
}  // namespace text

absl::StatusOr<Program> Parse(absl::string_view source, absl::string_view file_name) {
  text::Cursor cursor(source, file_name);
  text::ModuleParser m{cursor};
  if (cursor.ok()) text::ParseModule(m);
  if (!cursor.ok()) return cursor.error();
  return std::move(m.program);
}

absl::StatusOr<TensorType> ParseType(absl::string_view source) {
  text::Cursor cursor(source, "");
  const TensorType type = cursor.Type();
  if (cursor.ok() && !cursor.AtEnd()) cursor.Fail(absl::StrCat("unexpected ", cursor.Describe(), " after a type"));
  if (!cursor.ok()) return cursor.error();
  return type;
}

absl::StatusOr<Schedule> ParseSchedule(absl::string_view source) {
  text::Cursor cursor(source, "");
  cursor.Accept("schedule");
  Schedule schedule = text::ParseScheduleBody(cursor);
  if (cursor.ok() && !cursor.AtEnd()) cursor.Fail(absl::StrCat("unexpected ", cursor.Describe(), " after a schedule"));
  if (!cursor.ok()) return cursor.error();
  return schedule;
}

absl::StatusOr<std::vector<Attr>> ParseAttrs(const OpDef& def, absl::string_view source) {
  text::Cursor cursor(absl::StrCat(source, "}"), "");
  std::vector<Attr> attrs = text::ParseAttrList(cursor, def, "}");
  if (!cursor.ok()) return cursor.error();
  return attrs;
}

}  // namespace agc
