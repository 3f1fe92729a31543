// legalize: logical accesses become linear element addresses of the stored form, by the storage rows; arithmetic on
// dtypes narrower than 32 bits is widened; indices that may pass 32 bits are refused. Guards of loads stay. Where
// the target cannot store elements of 8 or 16 bits, buffers of them are marked as packed in words; where it has no
// 64-bit integers, kernels that use them as computing with pairs.
//   store %y[i, j] = %x[i, j]      =>      store %y[20*i + j] = %x[20*i + j]
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"
#include "passes/pass.h"

namespace agc {
namespace {

bool Narrow(DType t) { return IsFloat(t) || IsInt(t) ? SizeOf(t) < 4 : false; }
DType Widened(DType t) { return IsFloat(t) ? DType::kF32 : IsSigned(t) ? DType::kI32 : DType::kU32; }

class KernelLegalizer {
 public:
  KernelLegalizer(Kernel& kernel, std::vector<const Buffer*> rows, const Target& target)
      : kernel_(kernel), rows_(std::move(rows)), target_(target) {
    substitution_.pool = kernel.pool.get();
    substitution_.context = this;
    substitution_.hooks.emplace_back(ExprKind::kLoad, [](void* self, Expr original, Index args) {
      return static_cast<KernelLegalizer*>(self)->Load(original, args);
    });
    substitution_.hooks.emplace_back(ExprKind::kAlu,
                                     [](void*, Expr original, Index args) { return WidenAlu(original, args); });
  }

  void Run() {
    for (KernelPart& part : kernel_.parts) Block(part.body);
    for (size_t i = 0; i < kernel_.params.size(); ++i) {
      KernelParam& p = kernel_.params[i];
      p.type = {p.type.dtype, {StoredElements(*rows_[i])}};
      p.linear = true;
      const absl::string_view feature = StorageFeature(p.stored);
      p.packed = !feature.empty() && !target_.has(feature);
    }
    const std::set<DType> dtypes = DTypesOf(kernel_);
    const bool wide_integers = dtypes.count(DType::kI64) + dtypes.count(DType::kU64) != 0;
    kernel_.int64_pairs = wide_integers && !target_.has("shader_int64");
  }

 private:
  void Block(std::vector<Stmt>& body) {
    for (Stmt& s : body) {
      for (ExprId* id : ExprsOf(s)) *id = Substitute(kernel_.pool->at(*id), substitution_).id;
      if (s.kind == StmtKind::kStore && !s.to_alloc && !kernel_.params[s.target].linear) Linearise(s);
      Block(s.body);
      Block(s.otherwise);
    }
  }

  void Linearise(Stmt& s) {
    std::vector<Expr> index;
    for (ExprId id : s.index) index.push_back(kernel_.pool->at(id));
    s.index = {Address(s.target, index).id};
  }

  Expr Address(uint32_t param, Index logical) { return LinearIndex(*kernel_.pool, *rows_[param], logical); }

  // A load from the linear address under the same guard.
  Expr Load(Expr original, Index args) {
    const uint32_t param = original.node().ref;
    if (kernel_.params[param].linear) return Rebuild(original, args);
    const Expr guard = args.back();
    const Expr address = Address(param, args.first(args.size() - 1));
    return kernel_.pool->Load(param, {address}, original.dtype(), original.lanes(), guard);
  }

  // u8 + u8 is computed in u32 and wraps when cast back; f16 * f16 is computed in f32 and rounded when cast back, which
  // gives the nearest f16 of a sum, product, quotient or root: f32 has more than twice the bits (Figueroa 1995).
  // Comparisons need no way back.
  static Expr WidenAlu(Expr original, Index args) {
    const ScalarOp& op = ScalarOps()[original.node().ref];
    const size_t typed = op.typing == ScalarTyping::kSelect ? 1 : 0;
    const DType dtype = args[typed].dtype();
    if (!Narrow(dtype) || op.typing == ScalarTyping::kSelect) return Rebuild(original, args);
    absl::InlinedVector<Expr, 3> wide;
    for (Expr e : args) wide.push_back(Cast(e, Widened(dtype)));
    const Expr value = Alu(op, wide);
    return op.typing == ScalarTyping::kCompare ? value : Cast(value, dtype);
  }

  Kernel& kernel_;
  std::vector<const Buffer*> rows_;
  const Target& target_;
  Substitution substitution_ = {};
};

bool SameStorage(const Buffer& a, const Buffer& b) {
  return a.type == b.type && a.stored == b.stored && a.order == b.order && a.pad == b.pad;
}

// The storage rows that bind a kernel's parameters; all dispatches of it must agree.
absl::Status Bind(const Program& program, std::vector<std::vector<const Buffer*>>& rows) {
  rows.resize(program.kernels.size());
  for (const Graph& graph : program.graphs) {
    for (const Step& step : graph.steps) {
      if (step.kind != StepKind::kDispatch) continue;
      std::vector<const Buffer*> bound;
      for (int32_t b : step.args) bound.push_back(&graph.buffers[b]);
      std::vector<const Buffer*>& known = rows[step.callee];
      const bool same = known.size() == bound.size() &&
                        std::equal(known.begin(), known.end(), bound.begin(),
                                   [](const Buffer* a, const Buffer* b) { return SameStorage(*a, *b); });
      if (!known.empty() && !same)
        return absl::InternalError(
            absl::StrCat("@", program.kernels[step.callee].name, ": dispatches bind buffers of different storage"));
      known = std::move(bound);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> Legalize(Program& program, PassContext& context) {
  std::vector<std::vector<const Buffer*>> rows;
  AGC_RETURN_IF_ERROR(Bind(program, rows));
  bool changed = false;
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    Kernel& kernel = program.kernels[k];
    const bool done =
        std::all_of(kernel.params.begin(), kernel.params.end(), [](const KernelParam& p) { return p.linear; });
    const bool legalized = !rows[k].empty() && !done;
    if (legalized) KernelLegalizer(kernel, rows[k], context.target).Run();
    AGC_RETURN_IF_ERROR(VerifyIndexBits(kernel));
    changed = changed || legalized;
  }
  return changed;
}

}  // namespace agc
