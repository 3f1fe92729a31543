// Storage tables and step lists. Rows may name later rows (`in`, `alias`), so those names are kept until the table is
// read.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/text/parse.h"

namespace agc::text {
namespace {

std::optional<BufferKind> BufferKindNamed(absl::string_view name) {
  for (int i = 0; i <= static_cast<int>(BufferKind::kCounter); ++i) {
    if (Name(static_cast<BufferKind>(i)) == name) return static_cast<BufferKind>(i);
  }
  return std::nullopt;
}

int32_t BufferArg(ModuleParser& m, const Graph& graph) {
  Cursor& c = m.c;
  const Loc here = c.loc();
  const std::string name = c.Value("a buffer");
  const auto it = m.buffers.find(name);
  if (it != m.buffers.end()) return static_cast<int32_t>(it->second);
  if (!c.ok()) return -1;
  std::vector<std::string> names;
  for (const Buffer& b : graph.buffers) names.push_back(b.name);
  c.Fail(here, absl::StrCat("unknown buffer %", name, Nearest(name, names)));
  return -1;
}

}  // namespace

void StorageRow::Parse(Cursor& c) {
  b.loc = c.loc();
  b.name = c.Value("the buffer's name");
  c.Expect(":");
  b.type = c.Type();
  b.stored = b.type.dtype;
  c.Expect("kind");
  const Loc at_kind = c.loc();
  const std::string kind = c.Ident("a kind of buffer");
  const std::optional<BufferKind> found = BufferKindNamed(kind);
  if (c.ok() && !found.has_value()) {
    c.Fail(at_kind, absl::StrCat("unknown kind of buffer ", kind,
                                 ", expected input, resident, param, state, const, output, temp, scratch or counter"));
  }
  b.kind = found.value_or(BufferKind::kTemp);
  const bool value = c.Peek().kind == TokenKind::kValue && !c.Is(":", 1);
  if (value || c.Peek().kind == TokenKind::kSymbol) b.symbol = c.Take().text;
  b.each_step = c.Accept("each_step");
  b.ring = c.Accept("ring");
  ParseLayout(c);
  ParsePlace(c);
  b.loc = c.OptionalLoc(b.loc);
}

void StorageRow::ParseLayout(Cursor& c) {
  if (c.Accept("stored")) b.stored = c.TypeName("the stored type");
  if (c.Accept("order")) {
    for (int64_t axis : c.IntList("an axis", 0, 63)) b.order.push_back(static_cast<int>(axis));
  }
  if (c.Accept("pad")) {
    const std::vector<int64_t> pad = c.IntList("a pad", 0, kMaxDim);
    b.pad.assign(pad.begin(), pad.end());
  }
  parent_loc = c.loc();
  if (c.Accept("in")) parent = c.Value("a buffer");
  if (c.Accept("at")) {
    const std::vector<int64_t> at = c.IntList("an index", 0, kMaxDim);
    b.parent_at.assign(at.begin(), at.end());
  }
  if (c.Accept("align")) b.align = c.Int("an alignment", 1, int64_t{1} << 32);
  alias_loc = c.loc();
  if (c.Accept("alias")) alias = c.Value("a buffer");
}

void StorageRow::ParsePlace(Cursor& c) {
  if (c.Accept("data")) {
    const std::string bytes = c.Bytes();
    b.data.assign(bytes.begin(), bytes.end());
  }
  if (c.Accept("arena")) {
    b.arena = c.Int("an arena", -1, INT32_MAX);
    c.Expect("offset");
    b.offset = c.Int("an offset", 0, INT64_MAX);
    c.Expect("size");
    b.size = c.Int("a size", 0, INT64_MAX);
  }
  if (c.Accept("life")) {
    c.Expect("[");
    b.first_step = static_cast<uint32_t>(c.Int("a step", 0, UINT32_MAX));
    c.Expect(",");
    b.last_step = static_cast<uint32_t>(c.Int("a step", 0, UINT32_MAX));
    c.Expect("]");
  }
}

namespace {

void ParseRunArgs(ModuleParser& m, const Graph& graph, Step& step) {
  Cursor& c = m.c;
  c.Expect("(");
  c.List(")", [&] { step.args.push_back(BufferArg(m, graph)); });
  c.Expect("->");
  c.Expect("(");
  c.List(")", [&] { step.args.push_back(BufferArg(m, graph)); });
}

void ParseDispatchArgs(ModuleParser& m, const Graph& graph, Step& step) {
  Cursor& c = m.c;
  if (c.Accept("groups")) {
    const std::vector<int64_t> groups = c.IntList("a count of workgroups", 0, UINT32_MAX);
    if (groups.size() == 3) {
      std::copy(groups.begin(), groups.end(), step.groups.begin());
    } else {
      c.Fail("groups has three numbers");
    }
  }
  c.Expect("(");
  c.List(")", [&] { step.args.push_back(BufferArg(m, graph)); });
}

bool ParseStep(ModuleParser& m, Graph& graph) {
  Cursor& c = m.c;
  Step step;
  step.origin = c.loc();
  if (c.Accept("run") || c.Is("dispatch")) {
    step.kind = c.Accept("dispatch") ? StepKind::kDispatch : StepKind::kRun;
    const Loc here = c.loc();
    m.callees.push_back({m.program.graphs.size(), graph.steps.size(), c.Symbol("the callee"), here});
    step.kind == StepKind::kRun ? ParseRunArgs(m, graph, step) : ParseDispatchArgs(m, graph, step);
  } else if (c.Accept("copy")) {
    step.kind = StepKind::kCopy;
    step.args.push_back(BufferArg(m, graph));
    c.Expect("->");
    step.args.push_back(BufferArg(m, graph));
  } else if (c.Accept("fill")) {
    step.kind = StepKind::kFill;
    step.args.push_back(BufferArg(m, graph));
    c.Expect("word");
    step.fill_word = static_cast<uint32_t>(c.Int("a word", 0, UINT32_MAX));
  } else if (c.Accept("barrier")) {
    step.kind = StepKind::kBarrier;
  } else {
    return false;
  }
  if (c.Accept("epoch")) step.epoch = static_cast<int32_t>(c.Int("an epoch", -1, INT32_MAX));
  if (c.Accept("label")) step.label = c.String("a label");
  step.origin = c.OptionalLoc(step.origin);
  graph.steps.push_back(std::move(step));
  return true;
}

}  // namespace

bool ParseStorageLine(ModuleParser& m, Graph& graph) {
  Cursor& c = m.c;
  if (c.Accept("buffer")) {
    StorageRow row;
    row.Parse(c);
    const auto number = static_cast<uint32_t>(graph.buffers.size());
    if (!m.buffers.emplace(row.b.name, number).second)
      c.Fail(row.b.loc, absl::StrCat("buffer %", row.b.name, " is defined twice"));
    if (!row.parent.empty()) m.rows.push_back({graph.buffers.size(), false, row.parent, row.parent_loc});
    if (!row.alias.empty()) m.rows.push_back({graph.buffers.size(), true, row.alias, row.alias_loc});
    graph.buffers.push_back(std::move(row.b));
    return true;
  }
  if (c.Accept("arenas")) {
    for (int64_t size : c.IntList("an arena's size", 0, INT64_MAX))
      graph.arena_sizes.push_back(static_cast<uint64_t>(size));
    return true;
  }
  if (c.Accept("bound")) {
    graph.bound_bytes = c.Unsigned("a count of bytes");
    return true;
  }
  return ParseStep(m, graph);
}

void ResolveStorage(ModuleParser& m, Graph& graph) {
  for (const RowName& row : m.rows) {
    const auto it = m.buffers.find(row.name);
    if (it == m.buffers.end()) return m.c.Fail(row.loc, absl::StrCat("unknown buffer %", row.name));
    (row.alias ? graph.buffers[row.buffer].alias : graph.buffers[row.buffer].parent) = static_cast<int32_t>(it->second);
  }
  m.rows.clear();
  m.buffers.clear();
}

}  // namespace agc::text
