#include "ir/text/print.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace agc {
namespace text {

std::string LocSuffix(Loc loc, const PrintOptions& options) {
  if (!options.locations || loc.file.empty() || loc.file == options.omit_file) return "";
  return loc.line == 0 ? absl::StrCat(" loc(", Quote(loc.file), ")")
                       : absl::StrCat(" loc(", Quote(loc.file), ":", loc.line, ")");
}

std::string Word(absl::string_view text) { return IsIdentifier(text) ? std::string(text) : Quote(text); }
std::string Hex(absl::string_view bytes) { return absl::StrCat("\"", absl::BytesToHexString(bytes), "\""); }
std::string IntList(absl::Span<const int64_t> ints) { return absl::StrCat("[", absl::StrJoin(ints, ", "), "]"); }
std::string TypeWithLanes(DType dtype, int lanes) {
  return lanes == 1 ? std::string(Name(dtype)) : absl::StrCat(Name(dtype), "x", lanes);
}

std::string NameScope::Take(std::string name) {
  const std::string base = name;
  int& next = next_[base];
  const int before = next;
  while (taken_.contains(name)) name = absl::StrCat(base, "_", ++next);
  taken_.insert(name);
  entries_.push_back({name, base, before});
  return name;
}

void NameScope::Rewind(size_t mark) {
  for (; entries_.size() > mark; entries_.pop_back()) {
    taken_.erase(entries_.back().name);
    next_[entries_.back().base] = entries_.back().next_before;
  }
}

std::string VarName(absl::string_view name) {
  std::string out;
  for (char c : name) out += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (out.empty() || absl::ascii_isdigit(static_cast<unsigned char>(out[0]))) out = absl::StrCat("v", out);
  if (IsReserved(out)) out += "_";
  return out;
}

namespace {

std::string InitText(const Init& init) {
  const auto number = [](double v) { return ToString(Scalar::Float(DType::kF64, v)); };
  switch (init.kind) {
    case InitKind::kConstant:
      return absl::StrCat("constant(", number(init.a), ")");
    case InitKind::kUniform:
      return absl::StrCat("uniform(", number(init.a), ", ", number(init.b), ")");
    case InitKind::kNormal:
      return absl::StrCat("normal(", number(init.a), ", ", number(init.b), ")");
    case InitKind::kOrthogonal:
      return absl::StrCat("orthogonal(", number(init.a), ")");
  }
  return "";
}

}  // namespace
}  // namespace text

std::string Print(const Program& program, const PrintOptions& options) {
  using namespace text;  // NOLINT
  std::string out = absl::StrCat("module ", Sigil('@', program.name));
  if (program.stage != Stage::kTensor) absl::StrAppend(&out, " stage ", Name(program.stage));
  absl::StrAppend(&out, " {\n");
  for (const StateDef& s : program.states) {
    absl::StrAppend(&out, "  state ", Sigil('@', s.name), ": ", ToString(s.type), " init ", InitText(s.init),
                    s.trainable ? " trainable" : "", s.hidden ? " hidden" : "", LocSuffix(s.loc, options), "\n");
  }
  for (const BlobDef& b : program.blobs) {
    absl::StrAppend(&out, "  blob ", Sigil('@', b.name), ": ", ToString(b.type), " from ", Quote(b.file), " offset ",
                    b.offset);
    if (!b.hash.empty()) absl::StrAppend(&out, " hash ", Quote(b.hash));
    absl::StrAppend(&out, LocSuffix(b.loc, options), "\n");
  }
  for (const Graph& graph : program.graphs) PrintGraph(graph, program, options, out);
  PrintOptions inner = options;
  inner.names = true;  // steps name them
  for (const Nest& nest : program.nests) PrintNest(nest, inner, "  ", out);
  for (const Kernel& kernel : program.kernels) PrintKernel(kernel, inner, "  ", out);
  return absl::StrCat(out, "}\n");
}

std::string Print(const Graph& graph, const Program& program, const PrintOptions& options) {
  std::string out;
  text::PrintGraph(graph, program, options, out);
  return out;
}

std::string Print(const Nest& nest, const PrintOptions& options) {
  std::string out;
  text::PrintNest(nest, options, "", out);
  return out;
}

std::string Print(const Kernel& kernel, const PrintOptions& options) {
  std::string out;
  text::PrintKernel(kernel, options, "", out);
  return out;
}

}  // namespace agc
