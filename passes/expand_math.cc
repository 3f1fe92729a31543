// expand-math: scalar ops become their `expand`, an expression of exact ops, where the kernel's results have to be
// portable, where the target's own op is too loose for the op's tolerance (Target::expand), and on f64 where GLSL has
// none. Portable kernels also ask for the float controls that the target offers, and others that compare floats for the
// one on NaN: a driver without it may take `select(a < b, a, b)` for a minimum that drops NaN (NVIDIA's does).
//   store %acc[] = exp(%acc[])
//   => let arg0: f32 = %acc[]    $0 = bitcast<u32>(arg0) ...    store %acc[] = (1 + ($3 + $3 * $3 * ...)) * ...
// Expansions take rounding errors apart, which holds where each operation is rounded once: a kernel with one is
// precise, whatever its schedule and the numerics had left to the driver. An expansion uses its operands many times.
// place-lets names what is shared, but not what reads registers or written buffers: such operands get their `let` here.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/expand/expand_expr.h"
#include "passes/pass.h"

namespace agc {
namespace {

class Expander {
 public:
  Expander(Kernel& kernel, const PassContext& context) : kernel_(kernel), context_(context) {}

  // Whether anything changed.
  bool Run() {
    for (KernelPart& part : kernel_.parts) Block(part.body);
    const std::set<DType> dtypes = DTypesOf(kernel_);
    const bool wide_integers = dtypes.count(DType::kI64) + dtypes.count(DType::kU64) != 0;  // of expansions of f64
    kernel_.int64_pairs = wide_integers && !context_.target.has("shader_int64");
    if (context_.numerics == Numerics::kPortable) {
      AddFloatControls({"denorm_preserve", "rounding_rte", "signed_zero_inf_nan_preserve"}, dtypes);
    } else if (compares_floats_ && context_.numerics != Numerics::kFast) {
      AddFloatControls({"signed_zero_inf_nan_preserve"}, dtypes);
    }
    return changed_;
  }

 private:
  bool Wanted(const ScalarOp& op, DType dtype) const {
    if (dtype == DType::kF64 && !op.glsl_f64) return true;
    if (context_.numerics == Numerics::kFast) return false;
    return context_.numerics == Numerics::kPortable || (dtype == DType::kF32 && context_.target.expands(op.name));
  }

  void Block(std::vector<Stmt>& body) {
    std::vector<Stmt> all;
    for (Stmt& s : body) {
      lets_.clear();
      names_.clear();
      Statement(s);
      if (!lets_.empty() && s.guard.valid()) s = UnderItsGuard(std::move(s));
      all.insert(all.end(), std::make_move_iterator(lets_.begin()), std::make_move_iterator(lets_.end()));
      Block(s.body);
      Block(s.otherwise);
      all.push_back(std::move(s));
    }
    body = std::move(all);
  }

  void Statement(Stmt& s) {
    for (ExprId* id : ExprsOf(s)) {
      const Expr before = kernel_.pool->at(*id), after = Rewrite(before);
      changed_ = changed_ || !(after == before);
      *id = after.id;
    }
  }

  // if guard { lets, the store without it }: the lets read what is there under the guard only.
  Stmt UnderItsGuard(Stmt store) {
    Stmt outer{.kind = StmtKind::kIf};
    outer.cond = store.guard;
    outer.loc = store.loc;
    store.guard = {};
    outer.body = std::move(lets_);
    lets_.clear();
    outer.body.push_back(std::move(store));
    return outer;
  }

  Expr Rewrite(Expr e) {
    Substitution s{.pool = kernel_.pool.get()};
    s.context = this;
    s.hooks.emplace_back(ExprKind::kAlu, [](void* self, Expr original, Index args) {
      return static_cast<Expander*>(self)->Alu(original, args);
    });
    return Substitute(e, s);
  }

  Expr Alu(Expr original, Index args) {
    const ScalarOp& op = ScalarOps()[original.node().ref];
    compares_floats_ = compares_floats_ || (op.typing == ScalarTyping::kCompare && IsFloat(args[0].dtype()));
    if (!HasExpansion(op, args) || !Wanted(op, args[0].dtype())) return Rebuild(original, args);
    std::vector<Expr> named;
    for (Expr e : args) named.push_back(ReadsWhatChanges(e) ? Named(e) : e);
    kernel_.precise = true;
    return Expanded(op, named);
  }

  bool ReadsWhatChanges(Expr e) const {
    const std::vector<Expr> nodes = PostOrder(e);
    return std::any_of(nodes.begin(), nodes.end(), [&](Expr n) {
      return n.is(ExprKind::kAllocLoad) ||
             (n.is(ExprKind::kLoad) && kernel_.params[n.node().ref].access != KernelAccess::kRead);
    });
  }

  Expr Named(Expr e) {
    const auto [it, fresh] = names_.try_emplace(e.id.index, 0);
    if (fresh) {
      it->second = kernel_.pool->Declare({.name = absl::StrCat("arg", next_++), .dtype = e.dtype()});
      Stmt let{.kind = StmtKind::kLet};
      let.var = it->second;
      let.value = e.id;
      lets_.push_back(std::move(let));
    }
    return kernel_.pool->Var(it->second);
  }

  // For every width that the kernel computes in: subnormal numbers, zeros' signs, infinities and NaN stay what they
  // are, and results are rounded to the nearest.
  void AddFloatControls(std::initializer_list<absl::string_view> controls, const std::set<DType>& dtypes) {
    std::vector<std::string>& features = kernel_.features;
    const size_t before = features.size();
    for (absl::string_view control : controls) {
      for (DType t : dtypes) {
        if (!IsFloat(t)) continue;
        std::string feature = absl::StrCat(control, "_", Name(t));
        const bool has = std::find(features.begin(), features.end(), feature) != features.end();
        if (!has && context_.target.has(feature)) features.push_back(std::move(feature));
      }
    }
    std::sort(features.begin(), features.end());
    changed_ = changed_ || features.size() != before;
  }

  Kernel& kernel_;
  const PassContext& context_;
  std::vector<Stmt> lets_ = {};           // before the present statement
  std::map<uint32_t, VarId> names_ = {};  // by expression, within the statement
  int next_ = 0;
  bool compares_floats_ = false;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> ExpandMath(Program& program, PassContext& context) {
  bool changed = false;
  for (Kernel& kernel : program.kernels) changed = Expander(kernel, context).Run() || changed;
  return changed;
}

}  // namespace agc
