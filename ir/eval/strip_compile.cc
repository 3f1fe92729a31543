// From expressions to strip code.
#include <algorithm>

#include "ir/eval/strip.h"

namespace agc {
namespace {

// Turns expressions into instructions, each node once, arguments before users.
class Compiler {
 public:
  Compiler(ExprPool& pool, absl::FunctionRef<VarRole(VarId)> role,
           absl::FunctionRef<bool(const ExprNode&)> varying_load)
      : pool_(pool), role_(role), varying_load_(varying_load), first_(pool.size(), UINT32_MAX) {}

  uint32_t RegOf(Expr e) {
    for (Expr x : PostOrder(e)) {
      if (first_[x.id.index] == UINT32_MAX) first_[x.id.index] = Emit(x);
    }
    return first_[e.id.index];
  }

  StripCode Take(std::vector<uint32_t> roots) {
    std::stable_partition(out_.code.begin(), out_.code.end(), [&](const StripInstr& i) { return !inner_[i.out]; });
    out_.inner = static_cast<size_t>(
        std::find_if(out_.code.begin(), out_.code.end(), [&](const StripInstr& i) { return inner_[i.out]; }) -
        out_.code.begin());
    out_.roots = std::move(roots);
    return std::move(out_);
  }

 private:
  uint32_t NewRegs(int count, bool uniform, bool inner) {
    const uint32_t first = static_cast<uint32_t>(out_.uniform.size());
    out_.uniform.insert(out_.uniform.end(), count, uniform);
    inner_.insert(inner_.end(), count, inner);
    return first;
  }

  uint32_t EmitVar(const ExprNode& n) {
    const VarRole role = role_(n.ref);
    const uint32_t reg = NewRegs(n.lanes, role.uniform, role.inner);
    out_.vars.push_back({n.ref, reg, n.lanes, role.uniform});
    return reg;
  }

  uint32_t EmitConst(const ExprNode& n) {
    const uint32_t reg = NewRegs(1, true, false);
    out_.constants.emplace_back(reg, Scalar{n.dtype, static_cast<uint64_t>(n.payload)});
    return reg;
  }

  // An operand's register for one lane of a vector value; scalars serve every lane.
  uint32_t ArgReg(const ExprNode& n, size_t arg, int component) const {
    const int width = pool_.node(n.args[arg]).lanes;
    return first_[n.args[arg].index] + static_cast<uint32_t>(width > 1 ? component : 0);
  }

  uint32_t Emit(Expr e) {
    const ExprNode& n = e.node();
    if (n.kind == ExprKind::kVar) return EmitVar(n);
    if (n.kind == ExprKind::kConst) return EmitConst(n);
    if (n.kind == ExprKind::kLane) return ArgReg(n, 0, static_cast<int>(n.payload));
    bool uniform = true, inner = false;
    for (ExprId a : n.args) {
      const uint32_t reg = first_[a.index];
      uniform = uniform && out_.uniform[reg];
      inner = inner || inner_[reg];
    }
    const bool load = n.kind == ExprKind::kLoad || n.kind == ExprKind::kAllocLoad || n.kind == ExprKind::kStage;
    if (load && varying_load_(n)) uniform = false;
    if (n.kind == ExprKind::kVec) {  // its lanes may differ in what they depend on
      const uint32_t reg = NewRegs(n.lanes, uniform, inner);
      for (int c = 0; c < n.lanes; ++c) {
        StripInstr copy{
            .kind = ExprKind::kVec, .dtype = n.dtype, .uniform = uniform, .out = reg + static_cast<uint32_t>(c)};
        copy.args.push_back(ArgReg(n, static_cast<size_t>(c), 0));
        out_.code.push_back(std::move(copy));
      }
      return reg;
    }
    const uint32_t reg = NewRegs(n.lanes, uniform, inner);
    if (load) {
      EmitLoad(n, reg, uniform);
      return reg;
    }
    for (int c = 0; c < n.lanes; ++c) out_.code.push_back(Scalarised(n, c, reg + static_cast<uint32_t>(c), uniform));
    return reg;
  }

  void EmitLoad(const ExprNode& n, uint32_t reg, bool uniform) {
    StripInstr instr{.kind = n.kind, .dtype = n.dtype, .width = n.lanes, .uniform = uniform, .ref = n.ref, .out = reg};
    const size_t indices = n.args.size() - (n.kind == ExprKind::kLoad ? 1 : 0);
    for (size_t i = 0; i < indices; ++i) instr.args.push_back(first_[n.args[i].index]);
    if (n.kind == ExprKind::kLoad && !pool_.at(n.args.back()).IsTrue()) instr.guard = first_[n.args.back().index];
    out_.code.push_back(std::move(instr));
  }

  StripInstr Scalarised(const ExprNode& n, int component, uint32_t reg, bool uniform) const {
    StripInstr instr{.kind = n.kind,
                     .dtype = n.dtype,
                     .uniform = uniform,
                     .ref = n.ref,
                     .payload = n.payload,
                     .lo = n.lo,
                     .hi = n.hi,
                     .out = reg};
    const bool select = n.kind == ExprKind::kAlu && ScalarOps()[n.ref].typing == ScalarTyping::kSelect;
    instr.from = pool_.node(n.args[select ? 1 : 0]).dtype;
    for (size_t i = 0; i < n.args.size(); ++i) instr.args.push_back(ArgReg(n, i, component));
    instr.coefs = n.coefs;
    return instr;
  }

  ExprPool& pool_;
  absl::FunctionRef<VarRole(VarId)> role_;
  absl::FunctionRef<bool(const ExprNode&)> varying_load_;
  std::vector<uint32_t> first_;  // by node
  std::vector<bool> inner_ = {};
  StripCode out_ = {};
};

}  // namespace

StripCode CompileStrip(ExprPool& pool, absl::Span<const Expr> roots, absl::FunctionRef<VarRole(VarId)> role,
                       absl::FunctionRef<bool(const ExprNode&)> varying_load) {
  Compiler compiler(pool, role, varying_load);
  std::vector<uint32_t> regs;
  for (Expr e : roots) regs.push_back(compiler.RegOf(e));
  return compiler.Take(std::move(regs));
}

}  // namespace agc
