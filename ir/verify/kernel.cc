#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

// What is known of a variable where it is in scope.
struct Known {
  bool declared = false;
  bool uniform = false;   // the same for all invocations of a workgroup
  bool unrolled = false;  // a constant when the kernel is written
};

class KernelVerifier {
 public:
  explicit KernelVerifier(const Kernel& kernel)
      : kernel_(kernel), pool_(*kernel.pool), known_(pool_.vars()), allocs_(kernel.allocs.size()) {}

  absl::Status Run() {
    std::set<std::string> names;
    int64_t invocations = 1;
    for (int64_t n : kernel_.local) {
      if (n < 1 || n > 65536) return Error({}, absl::StrCat("local size is ", n));
      invocations *= n;
    }
    if (invocations > 65536) return Error({}, absl::StrCat(invocations, " invocations in a workgroup"));
    for (const KernelParam& p : kernel_.params) {
      if (!names.insert(p.name).second) return Error({}, absl::StrCat("%", p.name, " is defined twice"));
      if (p.linear && p.type.rank() != 1)
        return Error({}, absl::StrCat("%", p.name, " is linear, its type ", ToString(p.type), " has not one axis"));
    }
    for (const Alloc& a : kernel_.allocs) {
      for (int64_t n : a.extents) {
        if (n < 1) return Error({}, absl::StrCat("alloc %", a.name, " has an extent of ", n));
      }
    }
    AGC_RETURN_IF_ERROR(WholeKernelAllocs());
    for (const KernelPart& part : kernel_.parts) {
      part_ = &part;
      for (int64_t n : part.groups) {
        if (n < 1) return Error({}, absl::StrCat("a part has ", n, " workgroups"));
      }
      AGC_RETURN_IF_ERROR(Block(part.body, true));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(Loc loc, absl::string_view message) const {
    return ErrorAt(loc.line == 0 ? kernel_.loc : loc, absl::StrCat("shader @", kernel_.name, ": ", message));
  }
  std::string Text(ExprId e) const { return PrintExpr(pool_, e, NamesOf(kernel_)); }
  std::string VarName(VarId v) const { return v < pool_.vars() ? pool_.var(v).name : absl::StrCat("variable ", v); }

  // Shared memory that no statement declares is in scope everywhere.
  absl::Status WholeKernelAllocs() {
    std::vector<bool> declared(allocs_.size());
    for (const KernelPart& part : kernel_.parts) FindAllocs(part.body, declared);
    for (size_t i = 0; i < declared.size(); ++i) {
      if (declared[i]) continue;
      const Alloc& a = kernel_.allocs[i];
      if (a.space == AllocSpace::kRegister)
        return Error({}, absl::StrCat("register alloc %", a.name, " is declared by no statement"));
      allocs_[i] = true;
    }
    return absl::OkStatus();
  }
  static void FindAllocs(const std::vector<Stmt>& body, std::vector<bool>& declared) {
    for (const Stmt& s : body) {
      if (s.kind == StmtKind::kAlloc && s.target < declared.size()) declared[s.target] = true;
      FindAllocs(s.body, declared);
      FindAllocs(s.otherwise, declared);
    }
  }

  absl::Status Block(const std::vector<Stmt>& body, bool uniform) {
    const std::vector<Known> known = known_;
    const std::vector<bool> allocs = allocs_;
    for (const Stmt& s : body) AGC_RETURN_IF_ERROR(Statement(s, uniform));
    known_ = known;
    allocs_ = allocs;
    return absl::OkStatus();
  }

  absl::Status Statement(const Stmt& s, bool uniform) {
    for (ExprId e : ExprsOf(s)) AGC_RETURN_IF_ERROR(Expression(e, s.loc));
    switch (s.kind) {
      case StmtKind::kFor:
        return For(s, uniform);
      case StmtKind::kIf:
        return If(s, uniform);
      case StmtKind::kLet:
        if (!s.value.valid()) return Error(s.loc, "a let has no value");
        return Declare(s, {true, Uniform(s.value), false});
      case StmtKind::kAlloc:
        if (s.target >= allocs_.size()) return Error(s.loc, absl::StrCat("alloc ", s.target, " does not exist"));
        if (kernel_.allocs[s.target].space == AllocSpace::kShared && !uniform)
          return Error(s.loc, "shared memory is declared in divergent control flow");
        allocs_[s.target] = true;
        return absl::OkStatus();
      case StmtKind::kStore:
        AGC_RETURN_IF_ERROR(Write(s, true));
        Unfenced(s, unfenced_);
        return absl::OkStatus();
      case StmtKind::kAtomic:
        if (s.combiner == nullptr) return Error(s.loc, "an atomic has no combiner");
        AGC_RETURN_IF_ERROR(Write(s, true));
        return Declare(s, {true, false, false});
      case StmtKind::kIfLast:
        if (!uniform) return Divergent(s, "if_last");
        if (!s.count.valid()) return Error(s.loc, "if_last has no count");
        AGC_RETURN_IF_ERROR(Write(s, false));
        return Block(s.body, true);
      case StmtKind::kBarrier:
        Unfenced(s, unfenced_);
        return uniform ? absl::OkStatus() : Divergent(s, "barrier");
      case StmtKind::kLanes:
        if (!uniform) return Divergent(s, "lanes");
        return Declare(s, {true, false, false});
      case StmtKind::kTile:
        return uniform ? absl::OkStatus() : Divergent(s, "tile");
      case StmtKind::kRegion:
        return Block(s.body, uniform);
    }
    return absl::OkStatus();
  }

  absl::Status Divergent(const Stmt& s, absl::string_view what) const {
    return Error(s.loc,
                 absl::StrCat(what, " stands in divergent control flow; all invocations of a workgroup must reach it"));
  }

  absl::Status Declare(const Stmt& s, Known known) {
    if (s.var >= known_.size()) return Error(s.loc, absl::StrCat("variable ", s.var, " does not exist"));
    if (known_[s.var].declared)
      return Error(s.loc, absl::StrCat("variable ", VarName(s.var), " is declared again in its own scope"));
    known_[s.var] = known;
    return absl::OkStatus();
  }

  bool Constant(ExprId e) const { return e.valid() && pool_.node(e).kind == ExprKind::kConst; }

  absl::Status For(const Stmt& s, bool uniform) {
    if (!s.begin.valid() || !s.end.valid() || s.step < 1)
      return Error(s.loc, "a loop needs a beginning, an end and a positive step");
    if (pool_.node(s.begin).dtype != DType::kIndex || pool_.node(s.end).dtype != DType::kIndex)
      return Error(s.loc, "the bounds of a loop are indices");
    const bool parallel = s.mode == ForMode::kWorkgroup || s.mode == ForMode::kLocal;
    Known var{true, uniform && Uniform(s.begin) && Uniform(s.end), s.mode == ForMode::kUnroll};
    bool inside = parallel ? uniform : var.uniform;
    if (parallel) {
      const bool range =
          Constant(s.begin) && pool_.node(s.begin).payload == 0 && Constant(s.end) && s.step == 1 && s.dim < 3;
      if (!range)
        return Error(s.loc, absl::StrCat("loop ", VarName(s.var),
                                         " over workgroups or invocations runs from 0 to a constant by 1"));
      const int64_t extent = pool_.node(s.end).payload,
                    most = s.mode == ForMode::kLocal ? kernel_.local[s.dim] : part_->groups[s.dim];
      if (extent > most)
        return Error(s.loc, absl::StrCat("loop ", VarName(s.var), " has ", extent, " iterations, dimension ",
                                         int{s.dim}, " has ", most));
      var.uniform = s.mode == ForMode::kWorkgroup;
      if (s.mode == ForMode::kLocal) inside = uniform && extent == most;
    }
    if (s.mode == ForMode::kUnroll && (!Constant(s.begin) || !Constant(s.end))) {
      return Error(s.loc, absl::StrCat("loop ", VarName(s.var), " is unrolled, its bounds are constants"));
    }
    AGC_RETURN_IF_ERROR(Declare(s, var));
    std::set<uint32_t> passed, rest;  // where the body does not run, and what an iteration leaves to the next
    if (MayPass(s)) passed = unfenced_;
    for (const Stmt& inner : s.body) Unfenced(inner, rest);
    unfenced_.insert(rest.begin(), rest.end());
    AGC_RETURN_IF_ERROR(Block(s.body, inside));
    unfenced_.insert(passed.begin(), passed.end());
    known_[s.var] = {};
    return absl::OkStatus();
  }

  absl::Status If(const Stmt& s, bool uniform) {
    if (!s.cond.valid() || pool_.node(s.cond).dtype != DType::kBool)
      return Error(s.loc, "an if needs a condition that is a bool");
    const bool same = Uniform(s.cond);
    if (s.uniform && !same)
      return Error(s.loc,
                   absl::StrCat("the condition ", Text(s.cond), " is marked uniform, but differs between invocations"));
    std::set<uint32_t> before = unfenced_;
    AGC_RETURN_IF_ERROR(Block(s.body, uniform && same));
    std::swap(before, unfenced_);
    AGC_RETURN_IF_ERROR(Block(s.otherwise, uniform && same));
    unfenced_.insert(before.begin(), before.end());
    return absl::OkStatus();
  }

  // Execution may go past the body: a condition is false, a loop has no iterations.
  bool MayPass(const Stmt& s) const {
    if (s.kind == StmtKind::kIf || s.kind == StmtKind::kIfLast) return true;
    if (s.kind != StmtKind::kFor || !s.begin.valid() || !s.end.valid()) return false;
    return pool_.node(s.begin).hi >= pool_.node(s.end).lo;
  }

  // Shared allocs that invocations wrote since the last barrier, after the statement; `all` are those before it. Other
  // invocations may see their old contents or their new ones.
  void Unfenced(const Stmt& s, std::set<uint32_t>& all) const {
    if (s.kind == StmtKind::kBarrier && s.fence != Fence::kGlobal) all.clear();
    const bool store = s.kind == StmtKind::kStore || s.kind == StmtKind::kAtomic;
    if (store && s.to_alloc && kernel_.allocs[s.target].space == AllocSpace::kShared) all.insert(s.target);
    std::set<uint32_t> otherwise;
    if (MayPass(s)) otherwise = all;
    for (const Stmt& inner : s.body) Unfenced(inner, all);
    for (const Stmt& inner : s.otherwise) Unfenced(inner, otherwise);
    all.insert(otherwise.begin(), otherwise.end());
  }

  // Where a store, an atomic or a counter goes.
  absl::Status Write(const Stmt& s, bool valued) const {
    size_t rank = 0;
    DType dtype = DType::kU32;
    if (s.to_alloc) {
      if (s.target >= allocs_.size() || !allocs_[s.target])
        return Error(s.loc, absl::StrCat("alloc ", s.target, " is written outside its scope"));
      const Alloc& a = kernel_.allocs[s.target];
      rank = a.extents.size();
      dtype = a.dtype;
      AGC_RETURN_IF_ERROR(RegisterIndex(a, s.index, s.loc));
    } else {
      if (s.target >= kernel_.params.size())
        return Error(s.loc, absl::StrCat("parameter ", s.target, " does not exist"));
      const KernelParam& p = kernel_.params[s.target];
      if (p.access == KernelAccess::kRead)
        return Error(s.loc, absl::StrCat("%", p.name, " is written, but declared as read"));
      rank = static_cast<size_t>(p.type.rank());
      dtype = p.type.dtype;
    }
    if (s.index.size() != rank)
      return Error(s.loc, absl::StrCat("a target with ", rank, " axes is written at ", s.index.size(), " indices"));
    if (!valued) return absl::OkStatus();
    if (!s.value.valid()) return Error(s.loc, "a store has no value");
    const DType given = pool_.node(s.value).dtype;
    return given == dtype ? absl::OkStatus()
                          : Error(s.loc, absl::StrCat(Name(given), " is stored where ", Name(dtype), " is held"));
  }

  // Registers have no addresses: an index must be a constant once loops are unrolled.
  absl::Status RegisterIndex(const Alloc& a, absl::Span<const ExprId> index, Loc loc) const {
    if (a.space != AllocSpace::kRegister) return absl::OkStatus();
    for (ExprId i : index) {
      for (VarId v : FreeVars(Expr{kernel_.pool.get(), i})) {
        if (!known_[v].unrolled)
          return Error(
              loc, absl::StrCat("register array %", a.name, " is indexed by ", VarName(v), ", which is not unrolled"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Expression(ExprId root, Loc loc) const {
    if (root.index >= pool_.size()) return Error(loc, "an expression is missing");
    for (Expr e : PostOrder(Expr{kernel_.pool.get(), root})) {
      const ExprNode& n = e.node();
      if (n.kind == ExprKind::kVar && !known_[n.ref].declared)
        return Error(loc, absl::StrCat("variable ", VarName(n.ref), " is used outside its scope"));
      if (n.kind == ExprKind::kStage) return Error(loc, "a kernel reads no stages");
      if (n.kind == ExprKind::kLoad) AGC_RETURN_IF_ERROR(Load(n, loc));
      if (n.kind == ExprKind::kAllocLoad) {
        if (n.ref >= allocs_.size() || !allocs_[n.ref])
          return Error(loc, absl::StrCat("alloc ", n.ref, " is read outside its scope"));
        const Alloc& a = kernel_.allocs[n.ref];
        if (n.args.size() != a.extents.size())
          return Error(loc, absl::StrCat("alloc %", a.name, " is read at ", n.args.size(), " indices"));
        AGC_RETURN_IF_ERROR(RegisterIndex(a, n.args, loc));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Load(const ExprNode& n, Loc loc) const {
    if (n.ref >= kernel_.params.size()) return Error(loc, absl::StrCat("parameter ", n.ref, " does not exist"));
    const KernelParam& p = kernel_.params[n.ref];
    if (p.access == KernelAccess::kWrite)
      return Error(loc, absl::StrCat("%", p.name, " is read, but declared as write"));
    if (static_cast<int>(n.args.size()) != p.type.rank() + 1)
      return Error(loc, absl::StrCat("%", p.name, " is read at ", n.args.size() - 1, " indices"));
    return n.dtype == p.type.dtype ? absl::OkStatus()
                                   : Error(loc, absl::StrCat("%", p.name, " holds ", Name(p.type.dtype),
                                                             ", it is read as ", Name(n.dtype)));
  }

  // Proven to be the same for all invocations of a workgroup.
  bool Uniform(ExprId root) const {
    for (Expr e : PostOrder(Expr{kernel_.pool.get(), root})) {
      const ExprNode& n = e.node();
      if (n.kind == ExprKind::kVar && !known_[n.ref].uniform) return false;
      if (n.kind == ExprKind::kLoad && kernel_.params[n.ref].access != KernelAccess::kRead) return false;
      if (n.kind == ExprKind::kAllocLoad && kernel_.allocs[n.ref].space == AllocSpace::kRegister) return false;
      if (n.kind == ExprKind::kAllocLoad && unfenced_.contains(n.ref)) return false;
    }
    return true;
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  const KernelPart* part_ = nullptr;
  std::vector<Known> known_;
  std::vector<bool> allocs_;
  std::set<uint32_t> unfenced_ = {};  // shared allocs that were written since the last barrier
};

}  // namespace

absl::Status VerifyKernel(const Kernel& kernel) {
  AGC_RETURN_IF_ERROR(KernelVerifier(kernel).Run());
  return VerifyKernelRanges(kernel);
}

absl::Status VerifyLimits(const Kernel& kernel, const Target& target) {
  const auto over = [&](absl::string_view what, int64_t value, int64_t limit) {
    return ErrorAt(
        kernel.loc,
        absl::StrCat("shader @", kernel.name, ": needs ", value, " ", what, ", ", target.name, " has ", limit),
        absl::StatusCode::kResourceExhausted);
  };
  const auto& [x, y, z] = kernel.local;
  if (kernel.shared_bytes() > target.shared_bytes)
    return over("bytes of shared memory", kernel.shared_bytes(), target.shared_bytes);
  if (x * y * z > target.max_invocations) return over("invocations per workgroup", x * y * z, target.max_invocations);
  if (x > target.max_local_x) return over("invocations along x", x, target.max_local_x);
  if (y > target.max_local_y) return over("invocations along y", y, target.max_local_y);
  if (z > target.max_local_z) return over("invocations along z", z, target.max_local_z);
  return absl::OkStatus();
}

}  // namespace agc
