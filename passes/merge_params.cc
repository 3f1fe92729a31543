#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/element_rule.h"

namespace agc {
namespace {

struct Merger {
  Kernel& kernel;
  std::vector<uint32_t> renamed = {};  // by old parameter
  std::vector<bool> merged = {};       // by new parameter
  std::vector<Stmt>* out = nullptr;    // where lets go, before the statement being rewritten
  Loc loc = {};
  std::vector<std::pair<ExprId, Expr>> named = {};  // loads of that statement and their lets
};

std::string FreshName(const ExprPool& pool, absl::string_view base) {
  for (int n = 0;; ++n) {
    std::string name = absl::StrCat(base, "_", n);
    bool taken = false;
    for (VarId v = 0; v < pool.vars() && !taken; ++v) taken = pool.var(v).name == name;
    if (!taken) return name;
  }
}

// The load under its new number; loads of merged parameters become a let in front of the statement.
Expr RenumberLoad(void* context, Expr original, Index args) {
  Merger& m = *static_cast<Merger*>(context);
  ExprPool& pool = *m.kernel.pool;
  const uint32_t param = m.renamed[original.node().ref];
  const Expr load =
      pool.Load(param, args.subspan(0, args.size() - 1), original.dtype(), original.lanes(), args[args.size() - 1]);
  if (!m.merged[param] || !load.is(ExprKind::kLoad)) return load;
  for (const auto& [id, var] : m.named) {
    if (id == load.id) return var;
  }
  Stmt let{.kind = StmtKind::kLet, .loc = m.loc};
  let.var = pool.Declare({.name = FreshName(pool, m.kernel.params[param].name),
                          .dtype = load.dtype(),
                          .lanes = static_cast<uint8_t>(load.lanes())});
  let.value = load.id;
  m.named.push_back({load.id, pool.Var(let.var)});
  m.out->push_back(std::move(let));
  return m.named.back().second;
}

void Rewrite(Merger& m, Stmt& s) {
  ExprPool& pool = *m.kernel.pool;
  m.named.clear();
  m.loc = s.loc;
  Substitution renumber{.pool = &pool, .hooks = {{ExprKind::kLoad, RenumberLoad}}, .context = &m};
  for (ExprId* id : ExprsOf(s)) *id = Substitute(pool.at(*id), renumber).id;
  const bool names_buffer =
      (s.kind == StmtKind::kStore && !s.to_alloc) || s.kind == StmtKind::kAtomic || s.kind == StmtKind::kIfLast;
  if (names_buffer) s.target = m.renamed[s.target];
}

void RewriteAll(Merger& m, std::vector<Stmt>& body) {
  std::vector<Stmt> out;
  for (Stmt& s : body) {
    m.out = &out;
    Rewrite(m, s);
    // The let that Rewrite made of `let v = %x[i]` takes its place.
    if (s.kind == StmtKind::kLet && !out.empty() && !m.named.empty() && s.value == m.named.back().second.id) {
      s.value = out.back().value;
      out.pop_back();
    }
    RewriteAll(m, s.body);
    RewriteAll(m, s.otherwise);
    out.push_back(std::move(s));
  }
  body = std::move(out);
}

}  // namespace

Kernel MergeParams(const Kernel& kernel, absl::Span<const ParamPair> pairs) {
  Kernel result = Clone(kernel);
  std::vector<uint32_t> into(kernel.params.size());
  for (uint32_t i = 0; i < into.size(); ++i) into[i] = i;
  for (const ParamPair& pair : pairs) into[pair.written] = pair.read;
  Merger m{.kernel = result, .renamed = std::vector<uint32_t>(into.size())};
  result.params.clear();
  for (uint32_t i = 0; i < into.size(); ++i) {
    if (into[i] != i) continue;
    m.renamed[i] = static_cast<uint32_t>(result.params.size());
    result.params.push_back(kernel.params[i]);
    m.merged.push_back(false);
  }
  for (const ParamPair& pair : pairs) {
    AGC_CHECK(into[pair.read] == pair.read);
    const uint32_t param = m.renamed[pair.written] = m.renamed[pair.read];
    const KernelParam& written = kernel.params[pair.written];
    KernelParam& p = result.params[param];
    p.access = KernelAccess::kReadWrite;
    p.coherent = p.coherent || written.coherent;
    p.restrict_ = p.restrict_ && written.restrict_;
    p.align = std::min(p.align, written.align);
    m.merged[param] = true;
  }
  for (KernelPart& part : result.parts) RewriteAll(m, part.body);
  return result;
}

}  // namespace agc
