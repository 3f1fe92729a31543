// Kernels: parameters, parts and statements. Variables take their names where they are declared; a name that an
// enclosing scope holds already gets a suffix.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/text/print.h"

namespace agc {
namespace text {
namespace {

absl::string_view ModeName(ForMode mode) {
  static constexpr absl::string_view kNames[] = {"serial", "unroll", "workgroup", "local"};
  return kNames[static_cast<int>(mode)];
}
absl::string_view SpaceName(AllocSpace space) {
  static constexpr absl::string_view kNames[] = {"register", "shared", "tile"};
  return kNames[static_cast<int>(space)];
}
absl::string_view FenceName(Fence fence) {
  static constexpr absl::string_view kNames[] = {"shared", "global", "both"};
  return kNames[static_cast<int>(fence)];
}
absl::string_view LanesName(LanesOp op) {
  static constexpr absl::string_view kNames[] = {"shuffle_xor", "broadcast", "ballot"};
  return kNames[static_cast<int>(op)];
}

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, const PrintOptions& options, std::string& out)
      : kernel_(kernel), pool_(*kernel.pool), options_(options), out_(out) {
    for (const KernelParam& p : kernel.params) {
      names_.buffers.push_back(
          Sigil('%', values_.Take(options.names ? p.name : absl::StrCat("p", names_.buffers.size()))));
    }
    for (VarId v = 0; v < pool_.vars(); ++v) names_.vars.push_back(absl::StrCat("?", VarName(pool_.var(v).name)));
    names_.allocs.resize(kernel.allocs.size());
    names_.var_rank.resize(pool_.vars());
    names_.alloc_rank.resize(kernel.allocs.size());
  }

  void Print(absl::string_view indent) {
    Header(indent);
    std::vector<bool> declared(kernel_.allocs.size());
    for (const KernelPart& part : kernel_.parts) FindAllocs(part.body, declared);
    for (uint32_t i = 0; i < declared.size(); ++i) {
      if (!declared[i]) absl::StrAppend(&out_, indent, "  ", AllocText(i), "\n");
    }
    for (const KernelPart& part : kernel_.parts) {
      absl::StrAppend(&out_, indent, "  part groups ", IntList(part.groups), " {\n");
      Block(part.body, absl::StrCat(indent, "    "));
      absl::StrAppend(&out_, indent, "  }\n");
    }
    absl::StrAppend(&out_, indent, "}\n");
  }

 private:
  // Allocs that a statement declares; the others belong to the whole kernel.
  static void FindAllocs(const std::vector<Stmt>& body, std::vector<bool>& declared) {
    for (const Stmt& s : body) {
      if (s.kind == StmtKind::kAlloc && s.target < declared.size()) declared[s.target] = true;
      FindAllocs(s.body, declared);
      FindAllocs(s.otherwise, declared);
    }
  }

  void Header(absl::string_view indent) {
    absl::StrAppend(&out_, indent, "shader ", options_.names ? Sigil('@', kernel_.name) : "@_", "(");
    for (size_t i = 0; i < kernel_.params.size(); ++i) {
      const KernelParam& p = kernel_.params[i];
      absl::StrAppend(&out_, i == 0 ? "" : ", ", names_.buffers[i], ": ", ToString(p.type), " ", Name(p.access));
      if (p.stored != p.type.dtype) absl::StrAppend(&out_, " stored ", Name(p.stored));
      absl::StrAppend(&out_, p.linear ? " linear" : "", p.packed ? " packed" : "", p.coherent ? " coherent" : "",
                      p.restrict_ ? " restrict" : "");
      if (p.align != 16) absl::StrAppend(&out_, " align ", p.align);
    }
    absl::StrAppend(&out_, ") local ", IntList(kernel_.local));
    if (!kernel_.features.empty()) {
      const auto each = [](std::string* out, const std::string& f) { absl::StrAppend(out, Word(f)); };
      absl::StrAppend(&out_, " features [", absl::StrJoin(kernel_.features, ", ", each), "]");
    }
    absl::StrAppend(&out_, kernel_.int64_pairs ? " int64_pairs" : "", kernel_.precise ? " precise" : "");
    if (options_.labels && !kernel_.label.empty()) absl::StrAppend(&out_, " label ", Quote(kernel_.label));
    absl::StrAppend(&out_, LocSuffix(kernel_.loc, options_), " {\n");
  }

  // The names that a block declares are free again after it.
  void Block(const std::vector<Stmt>& body, const std::string& indent) {
    const size_t vars = vars_.Mark(), values = values_.Mark();
    for (const Stmt& s : body) Statement(s, indent);
    vars_.Rewind(vars);
    values_.Rewind(values);
  }

  std::string Declare(VarId v) {
    if (v >= names_.vars.size()) return absl::StrCat("?", v);
    names_.vars[v] = vars_.Take(options_.names ? VarName(pool_.var(v).name) : absl::StrCat("v", declared_));
    names_.var_rank[v] = declared_++;
    return names_.vars[v];
  }

  std::string Text(ExprId id, std::optional<DType> expected = std::nullopt) const {
    return PrintExpr(pool_, id, names_, expected);
  }
  std::string Index(ExprId id) const { return Text(id, DType::kIndex); }

  void Statement(const Stmt& s, const std::string& indent) {
    PrintShared(pool_, ExprsOf(s), names_, indent, out_);
    absl::StrAppend(&out_, indent);
    const std::string loc = LocSuffix(s.loc, options_);
    switch (s.kind) {
      case StmtKind::kFor:
        return For(s, indent);
      case StmtKind::kIf:
        return If(s, indent);
      case StmtKind::kLet:
        absl::StrAppend(&out_, LetText(s), loc, "\n");
        return;
      case StmtKind::kAlloc:
        absl::StrAppend(&out_, AllocText(s.target), loc, "\n");
        return;
      case StmtKind::kStore:
        absl::StrAppend(&out_, StoreText(s), loc, "\n");
        return;
      case StmtKind::kAtomic:
        absl::StrAppend(&out_, AtomicText(s), loc, "\n");
        return;
      case StmtKind::kIfLast:
        return IfLast(s, indent);
      case StmtKind::kBarrier:
        absl::StrAppend(&out_, "barrier ", FenceName(s.fence), loc, "\n");
        return;
      case StmtKind::kLanes:
        absl::StrAppend(&out_, LanesText(s), loc, "\n");
        return;
      case StmtKind::kTile:
        absl::StrAppend(&out_, "tile", loc, "\n");
        return;
      case StmtKind::kRegion:
        return Region(s, indent);
    }
  }

  void For(const Stmt& s, const std::string& indent) {
    const std::string begin = Index(s.begin), end = Index(s.end);
    const size_t vars = vars_.Mark();
    absl::StrAppend(&out_, "for ", ModeName(s.mode), " ", Declare(s.var), " in ", begin, "..", end);
    if (s.step != 1) absl::StrAppend(&out_, " step ", s.step);
    if (s.dim != 0) absl::StrAppend(&out_, " dim ", static_cast<int>(s.dim));
    if (s.begin.valid() && s.end.valid() && s.var < pool_.vars()) {
      const auto [lo, hi] = LoopRange(pool_.node(s.begin), pool_.node(s.end), s.step);
      Range(s.var, lo, hi);
    }
    absl::StrAppend(&out_, LocSuffix(s.loc, options_), " {\n");
    Block(s.body, indent + "  ");
    absl::StrAppend(&out_, indent, "}\n");
    vars_.Rewind(vars);
  }

  // Says the variable's range where the text alone gives another.
  void Range(VarId v, int64_t lo, int64_t hi) {
    const VarInfo& info = pool_.var(v);
    if (info.lo != lo || info.hi != hi) absl::StrAppend(&out_, " range [", info.lo, ", ", info.hi, "]");
  }

  void If(const Stmt& s, const std::string& indent) {
    absl::StrAppend(&out_, "if ", s.uniform ? "uniform " : "", Text(s.cond), LocSuffix(s.loc, options_), " {\n");
    Block(s.body, indent + "  ");
    if (!s.otherwise.empty()) {
      absl::StrAppend(&out_, indent, "} else {\n");
      Block(s.otherwise, indent + "  ");
    }
    absl::StrAppend(&out_, indent, "}\n");
  }

  std::string VarType(VarId v) const {
    return v < pool_.vars() ? TypeWithLanes(pool_.var(v).dtype, pool_.var(v).lanes) : std::string("?");
  }

  std::string LetText(const Stmt& s) {
    const bool known = s.var < pool_.vars();
    const std::string value = Text(s.value, known ? std::optional(pool_.var(s.var).dtype) : std::nullopt);
    std::string out = absl::StrCat("let ", Declare(s.var), ": ", VarType(s.var), " = ", value);
    if (!known || pool_.var(s.var).dtype != DType::kIndex || !s.value.valid()) return out;
    const VarInfo& info = pool_.var(s.var);
    const ExprNode& n = pool_.node(s.value);
    if (info.lo != n.lo || info.hi != n.hi) absl::StrAppend(&out, " range [", info.lo, ", ", info.hi, "]");
    return out;
  }

  std::string AllocText(uint32_t number) {
    if (number >= kernel_.allocs.size()) return "alloc %?";
    const Alloc& a = kernel_.allocs[number];
    std::string& name = names_.allocs[number];
    name = Sigil('%', values_.Take(options_.names ? a.name : absl::StrCat("a", allocs_)));
    names_.alloc_rank[number] = allocs_++;
    std::string out = absl::StrCat("alloc ", name, ": ", SpaceName(a.space), " ", TypeWithLanes(a.dtype, a.lanes), "[",
                                   absl::StrJoin(a.extents, ","), "]");
    if (a.skew != 0) absl::StrAppend(&out, " skew ", a.skew);
    return out;
  }

  // Where a store or atomic writes, with its guard.
  std::string PlaceText(const Stmt& s) const {
    const std::vector<std::string>& names = s.to_alloc ? names_.allocs : names_.buffers;
    std::string out = absl::StrCat(s.target < names.size() ? names[s.target] : "%?", "[");
    for (size_t i = 0; i < s.index.size(); ++i) absl::StrAppend(&out, i == 0 ? "" : ", ", Index(s.index[i]));
    if (s.guard.valid()) absl::StrAppend(&out, s.index.empty() ? "if " : " if ", Text(s.guard));
    return out + "]";
  }

  std::optional<DType> PlaceType(const Stmt& s) const {
    if (s.to_alloc)
      return s.target < kernel_.allocs.size() ? std::optional(kernel_.allocs[s.target].dtype) : std::nullopt;
    return s.target < kernel_.params.size() ? std::optional(kernel_.params[s.target].type.dtype) : std::nullopt;
  }

  std::string StoreText(const Stmt& s) const {
    return absl::StrCat("store ", s.combiner != nullptr ? absl::StrCat(s.combiner->name, " ") : "", PlaceText(s), " = ",
                        Text(s.value, PlaceType(s)));
  }

  std::string AtomicText(const Stmt& s) {
    const std::string rest = absl::StrCat(" = ", s.combiner != nullptr ? s.combiner->name : "?", " ", PlaceText(s),
                                          ", ", Text(s.value, PlaceType(s)));
    const std::string name = Declare(s.var);
    return absl::StrCat("atomic ", name, ": ", VarType(s.var), rest);
  }

  std::string LanesText(const Stmt& s) {
    const std::string rest = absl::StrCat(" = ", LanesName(s.lanes_op), " ", Text(s.value), ", ", s.lane);
    const std::string name = Declare(s.var);
    return absl::StrCat("lanes ", name, ": ", VarType(s.var), rest);
  }

  void IfLast(const Stmt& s, const std::string& indent) {
    absl::StrAppend(&out_, "if_last ", PlaceText(s), " of ", Index(s.count), LocSuffix(s.loc, options_), " {\n");
    Block(s.body, indent + "  ");
    absl::StrAppend(&out_, indent, "}\n");
  }

  void Region(const Stmt& s, const std::string& indent) {
    const std::string label = options_.labels && !s.label.empty() ? absl::StrCat(" ", Quote(s.label)) : "";
    absl::StrAppend(&out_, "region", label, LocSuffix(s.loc, options_), " {\n");
    Block(s.body, indent + "  ");
    absl::StrAppend(&out_, indent, "}\n");
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const PrintOptions& options_;
  std::string& out_;
  ExprNames names_ = {};
  NameScope vars_ = {}, values_ = {};
  uint32_t declared_ = 0, allocs_ = 0;
};

}  // namespace

std::pair<int64_t, int64_t> LoopRange(const ExprNode& begin, const ExprNode& end, int64_t step) {
  const int64_t last = std::max(begin.lo, end.hi - 1);
  const bool constant = begin.kind == ExprKind::kConst && end.kind == ExprKind::kConst && step > 0;
  return {begin.lo, constant ? begin.lo + (last - begin.lo) / step * step : last};
}

void PrintKernel(const Kernel& kernel, const PrintOptions& options, absl::string_view indent, std::string& out) {
  KernelPrinter(kernel, options, out).Print(indent);
}

}  // namespace text

ExprNames NamesOf(const Kernel& kernel) {
  ExprNames names;
  text::NameScope values, vars;
  for (const KernelParam& p : kernel.params) names.buffers.push_back(text::Sigil('%', values.Take(p.name)));
  for (const Alloc& a : kernel.allocs) names.allocs.push_back(text::Sigil('%', values.Take(a.name)));
  for (VarId v = 0; v < kernel.pool->vars(); ++v) {
    names.vars.push_back(vars.Take(text::VarName(kernel.pool->var(v).name)));
  }
  return names;
}

}  // namespace agc
