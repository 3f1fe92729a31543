#include "ir/eval/kernel_code.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace agc {

KernelCode::KernelCode(const Kernel& kernel, const KernelMemory& memory, const KernelOptions& options)
    : memory_(memory), mode_(options.mode), pool_(*kernel.pool) {
  lanes_ = static_cast<int>(kernel.local[0] * kernel.local[1] * kernel.local[2]);
}

StripMachine KernelCode::Code(absl::Span<const Expr> roots) {
  StripMachine m(CompileStrip(
                     pool_, roots, [&](VarId v) { return VarRole{.uniform = v < uniform_.size() && uniform_[v] != 0}; },
                     [&](const ExprNode& load) { return memory_.Varies(load); }),
                 lanes_, mode_);
  for (const StripVar& v : m.vars()) {
    for (int c = 0; c < v.width; ++c) m.BindVar(v.var, Storage(v.var, c), c);
  }
  return m;
}

uint64_t* KernelCode::Storage(VarId v, int component) {
  if (vars_.size() < pool_.vars()) vars_.resize(pool_.vars());
  std::vector<std::vector<uint64_t>>& all = vars_[v];
  while (static_cast<int>(all.size()) <= component) all.emplace_back(static_cast<size_t>(lanes_));
  return all[static_cast<size_t>(component)].data();
}

void KernelCode::SetUniform(VarId v, bool uniform) {
  if (uniform_.size() <= v) uniform_.resize(v + 1);
  uniform_[v] = uniform;
}

absl::StatusOr<std::vector<KernelNode>> KernelCode::Compile(const std::vector<Stmt>& list) {
  std::vector<KernelNode> nodes;
  for (const Stmt& s : list) {
    AGC_ASSIGN_OR_RETURN(KernelNode node, CompileStmt(s));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

absl::StatusOr<KernelNode> KernelCode::CompileStmt(const Stmt& s) {
  KernelNode n;
  n.stmt = &s;
  switch (s.kind) {
    case StmtKind::kFor:
      n.first = Code({pool_.at(s.begin), pool_.at(s.end)});
      n.uniform = s.mode == ForMode::kWorkgroup ||
                  (s.mode != ForMode::kLocal && n.first.stride(0) == 0 && n.first.stride(1) == 0);
      SetUniform(s.var, n.uniform);
      break;
    case StmtKind::kIf:
      n.first = Code({pool_.at(s.cond)});
      break;
    case StmtKind::kLet:
    case StmtKind::kLanes: {
      const Expr value = pool_.at(s.value);
      n.rest = Code({value});
      n.width = value.lanes();
      n.dtype = value.dtype();
      n.uniform = s.kind == StmtKind::kLet && n.rest.stride(0) == 0;
      SetUniform(s.var, n.uniform);
      break;
    }
    case StmtKind::kStore:
    case StmtKind::kAtomic:
      CompileStore(s, n);
      break;
    case StmtKind::kIfLast:
      n.first = Code({pool_.at(s.index[0]), pool_.at(s.count)});
      break;
    case StmtKind::kTile:
      return absl::UnimplementedError("tile statements are not executed");
    case StmtKind::kAlloc:
    case StmtKind::kBarrier:
    case StmtKind::kRegion:
      break;
  }
  AGC_ASSIGN_OR_RETURN(n.body, Compile(s.body));
  AGC_ASSIGN_OR_RETURN(n.otherwise, Compile(s.otherwise));
  return n;
}

void KernelCode::CompileStore(const Stmt& s, KernelNode& n) {
  if (s.guard.valid()) n.first = Code({pool_.at(s.guard)});
  std::vector<Expr> roots;
  for (ExprId id : s.index) roots.push_back(pool_.at(id));
  roots.push_back(pool_.at(s.value));
  n.rest = Code(roots);
  n.width = roots.back().lanes();
  n.dtype = roots.back().dtype();
  if (s.kind == StmtKind::kAtomic) SetUniform(s.var, false);
  if (s.combiner == nullptr || s.combiner->components != 1) return;
  for (const char* name : {"old", "new"}) n.state.push_back(pool_.Declare({.name = name, .dtype = n.dtype}));
  Expr merged;
  s.combiner->merge({pool_.Var(n.state[0])}, {pool_.Var(n.state[1])}, absl::MakeSpan(&merged, 1));
  n.merge = Code({merged});
}

absl::Status KernelError(const Kernel& kernel, const Stmt& s, absl::string_view message, absl::StatusCode code) {
  return ErrorAt(s.loc.line != 0 ? s.loc : kernel.loc, absl::StrCat("kernel @", kernel.name, ": ", message), code);
}

}  // namespace agc
