// Modules: states, blobs and the names of graphs, nests and kernels.
#include "ir/text/parse.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/base/file.h"
#include "ir/base/status.h"
#include "ir/text/text.h"

namespace agc {
namespace text {
namespace {

// The last of `named` gets its number; another one of its name is an error.
template <typename T>
void NumberLast(Cursor& c, const std::vector<T>& named, absl::string_view what, Numbers& numbers) {
  const T& last = named.back();
  const auto [it, fresh] = numbers.emplace(last.name, static_cast<uint32_t>(named.size() - 1));
  if (fresh || !c.ok()) return;
  c.Fail(WithNote(ErrorAt(last.loc, absl::StrCat(what, " @", last.name, " is defined twice")), "first here",
                  named[it->second].loc));
}

Init ParseInit(Cursor& c) {
  Init init;
  const Loc here = c.loc();
  const std::string kind = c.Ident("an initial value");
  if (kind == "uniform") {
    init.kind = InitKind::kUniform;
  } else if (kind == "normal") {
    init.kind = InitKind::kNormal;
  } else if (kind == "orthogonal") {
    init.kind = InitKind::kOrthogonal;
  } else if (kind != "constant") {
    c.Fail(here, absl::StrCat("unknown initial value ", kind,
                              ", expected constant(v), uniform(lo, hi), normal(mean, deviation) or orthogonal(gain)"));
  }
  c.Expect("(");
  init.a = c.Double("a number");
  if (init.kind == InitKind::kUniform || init.kind == InitKind::kNormal) {
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
  c.Expect(":");
  s.type = c.Type();
  if (c.Accept("init")) s.init = ParseInit(c);
  s.trainable = c.Accept("trainable");
  s.hidden = c.Accept("hidden");
  s.loc = c.OptionalLoc(s.loc);
  m.program.states.push_back(std::move(s));
  NumberLast(c, m.program.states, "state", m.states);
}

void ParseBlob(ModuleParser& m) {
  Cursor& c = m.c;
  BlobDef b;
  b.loc = c.loc();
  b.name = c.Symbol("the blob's name");
  c.Expect(":");
  b.type = c.Type();
  c.Expect("from");
  b.file = c.String("a file name");
  if (c.Accept("offset")) b.offset = c.Int("an offset", 0, INT64_MAX);
  if (c.Accept("hash")) b.hash = c.String("a hash");
  b.loc = c.OptionalLoc(b.loc);
  m.program.blobs.push_back(std::move(b));
  NumberLast(c, m.program.blobs, "blob", m.blobs);
}

void ParseMember(ModuleParser& m) {
  Cursor& c = m.c;
  if (c.Accept("state")) return ParseState(m);
  if (c.Accept("blob")) return ParseBlob(m);
  if (c.Accept("graph")) {
    ParseGraph(m);
    return NumberLast(c, m.program.graphs, "graph", m.graphs);
  }
  if (c.Accept("nest")) {
    ParseNest(m);
    return NumberLast(c, m.program.nests, "nest", m.nests);
  }
  if (c.Accept("shader")) {
    ParseKernel(m);
    return NumberLast(c, m.program.kernels, "shader", m.kernels);
  }
  if (c.Is("kernel")) return c.Fail("kernels written in text are not supported yet; use graph");
  c.Fail(absl::StrCat("expected state, blob, graph, nest, shader or }, found ", c.Describe()));
}

std::string NearestCallee(const ModuleParser& m, const std::string& name, bool run) {
  std::vector<std::string> names;
  for (const Nest& n : m.program.nests) {
    if (run) names.push_back(n.name);
  }
  for (const Kernel& k : m.program.kernels) {
    if (!run) names.push_back(k.name);
  }
  return Nearest(name, names);
}

void ResolveCallees(ModuleParser& m) {
  for (const Callee& callee : m.callees) {
    Step& step = m.program.graphs[callee.graph].steps[callee.step];
    const bool run = step.kind == StepKind::kRun;
    const Numbers& numbers = run ? m.nests : m.kernels;
    const auto it = numbers.find(callee.name);
    if (it == numbers.end()) {
      return m.c.Fail(callee.loc, absl::StrCat("unknown ", run ? "nest" : "shader", " @", callee.name,
                                               NearestCallee(m, callee.name, run)));
    }
    step.callee = it->second;
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
  absl::ConsumePrefix(&source, kByteOrderMark);
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
