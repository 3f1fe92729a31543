#include "passes/element_rule.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace agc {
namespace {

// Whether a set of index expressions whose values are known determines the loop variables.
class Knowledge {
 public:
  explicit Knowledge(ExprPool& pool) : pool_(pool) {}

  // `lanes` neighbours from e on are touched.
  void Add(Expr e, int64_t lanes) {
    if (e.IsConst() || Knows(e)) return;
    if (e.is(ExprKind::kLin)) {
      if (!Separates(e, lanes)) return;
      for (int i = 0; i < static_cast<int>(e.node().args.size()); ++i) Add(e.arg(i), 1);
    } else if (lanes == 1) {
      known_.push_back(e);
    }
  }

  // x follows from x % c and x / c.
  void Close() {
    for (size_t i = 0; i < known_.size(); ++i) {
      for (size_t j = 0; j < known_.size(); ++j) {
        if (!known_[j].is(ExprKind::kMod)) continue;
        const Expr x = known_[j].arg(0);
        if (Knows(Div(x, known_[j].node().payload))) Add(x, 1);
      }
    }
  }

  bool Knows(Expr e) const {
    if (e.IsConst()) return true;
    if (std::find(known_.begin(), known_.end(), e) != known_.end()) return true;
    if (!e.is(ExprKind::kLin)) return false;
    for (int i = 0; i < static_cast<int>(e.node().args.size()); ++i) {
      if (!Knows(e.arg(i))) return false;
    }
    return true;
  }

 private:
  // Mixed radix: sorted by size, each coefficient is at least the span of the terms before it.
  bool Separates(Expr sum, int64_t lanes) const {
    std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient, extent
    for (size_t i = 0; i < sum.node().args.size(); ++i) {
      const ExprNode& atom = pool_.node(sum.node().args[i]);
      terms.push_back({std::abs(sum.node().coefs[i]), atom.hi - atom.lo});
    }
    std::sort(terms.begin(), terms.end());
    __int128 span = lanes;
    for (const auto& [coef, range] : terms) {
      if (coef < span) return false;
      span += static_cast<__int128>(coef) * range;
    }
    return true;
  }

  ExprPool& pool_;
  std::vector<Expr> known_ = {};
};

struct Access {
  std::vector<ExprId> index = {};  // with lets expanded
  int lanes = 1;
  int when = 0;                  // position of the statement in program order
  std::vector<int> loops = {};   // positions of the loops around it
  std::vector<VarId> vars = {};  // and their variables
};

class Accesses {
 public:
  Accesses(const Kernel& kernel, uint32_t read, uint32_t written)
      : pool_(*kernel.pool), read_(read), written_(written) {
    lets_.pool = &pool_;
    for (const KernelPart& part : kernel.parts) Visit(part.body);
  }

  bool Proven() const {
    if (refused_ || stores_.empty()) return false;
    const Access& store = stores_[0];
    for (const Access& other : stores_) {
      if (!Same(store, other)) return false;
    }
    for (const Access& load : loads_) {
      if (!Same(store, load) || load.when > store.when) return false;
    }
    Knowledge known(pool_);
    for (size_t i = 0; i < store.index.size(); ++i) {
      known.Add(pool_.at(store.index[i]), i + 1 == store.index.size() ? store.lanes : 1);
    }
    known.Close();
    return std::all_of(store.vars.begin(), store.vars.end(), [&](VarId v) { return known.Knows(pool_.Var(v)); });
  }

 private:
  static bool Same(const Access& a, const Access& b) {
    return a.index == b.index && a.lanes == b.lanes && a.loops == b.loops;
  }

  bool Touches(uint32_t buffer) const { return buffer == read_ || buffer == written_; }

  Access Here(absl::Span<const ExprId> index, int lanes) {
    Access access{.lanes = lanes, .when = when_, .loops = loops_, .vars = vars_};
    for (ExprId id : index) access.index.push_back(Substitute(pool_.at(id), lets_).id);
    return access;
  }

  void VisitLoads(const Stmt& s) {
    for (ExprId id : ExprsOf(s)) {
      for (Expr e : PostOrder(pool_.at(id))) {
        if (!e.is(ExprKind::kLoad) || !Touches(e.node().ref)) continue;
        if (e.node().ref == written_) refused_ = true;
        const absl::Span<const ExprId> args = e.node().args;
        loads_.push_back(Here(args.subspan(0, args.size() - 1), e.lanes()));
      }
    }
  }

  void Visit(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) Visit(s);
  }

  void Visit(const Stmt& s) {
    ++when_;
    VisitLoads(s);
    const bool stores = s.kind == StmtKind::kStore && !s.to_alloc;
    if (stores && s.target == written_ && s.combiner == nullptr) {
      stores_.push_back(Here(s.index, pool_.at(s.value).lanes()));
    } else if ((stores || s.kind == StmtKind::kAtomic || s.kind == StmtKind::kIfLast) && Touches(s.target)) {
      refused_ = true;
    }
    if (s.kind == StmtKind::kTile) refused_ = true;
    if (s.kind == StmtKind::kLet && pool_.var(s.var).dtype == DType::kIndex) {
      lets_.vars[s.var] = Substitute(pool_.at(s.value), lets_);
      lets_.memo.clear();
    }
    if (s.kind == StmtKind::kFor) {
      loops_.push_back(when_);
      vars_.push_back(s.var);
    }
    Visit(s.body);
    Visit(s.otherwise);
    if (s.kind == StmtKind::kFor) {
      loops_.pop_back();
      vars_.pop_back();
    }
  }

  ExprPool& pool_;
  const uint32_t read_, written_;
  Substitution lets_ = {};
  std::vector<Access> loads_ = {}, stores_ = {};
  std::vector<int> loops_ = {};
  std::vector<VarId> vars_ = {};
  int when_ = 0;
  bool refused_ = false;
};

}  // namespace

bool ElementRule(const Kernel& kernel, uint32_t read, uint32_t written) {
  const KernelParam& x = kernel.params[read];
  const KernelParam& y = kernel.params[written];
  if (x.access != KernelAccess::kRead || y.access != KernelAccess::kWrite) return false;
  if (!(x.type == y.type) || x.stored != y.stored || x.linear != y.linear) return false;
  return Accesses(kernel, read, written).Proven();
}

}  // namespace agc
