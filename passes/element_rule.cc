#include "passes/element_rule.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "ir/injective.h"

namespace agc {
namespace {

bool IsLet(const Lets& lets, Expr e) { return e.is(ExprKind::kVar) && lets.count(e.node().ref) > 0; }

// One load or store of the two parameters.
struct Access {
  std::vector<Expr> index = {};
  std::vector<ExprId> expanded = {};  // the index with lets expanded, to compare
  int lanes = 1;                      // neighbours along the last axis
  int when = 0;                       // position of the statement in program order
  std::vector<int> loops = {};        // positions of the loops around it
  std::vector<Expr> vars = {};        // what tells its executions apart: their variables
  std::vector<Expr> conditions = {};  // that hold where it is executed
};

// Whether the place of an access determines the loop variables around it.
bool DeterminesItsLoops(ExprPool& pool, const Lets& lets, const Access& access) {
  Determined known(pool, lets);
  for (size_t i = 0; i < access.index.size(); ++i) {
    known.Add(access.index[i], i + 1 == access.index.size() ? access.lanes : 1);
  }
  for (Expr c : access.conditions) known.Assume(c);
  known.Close();
  return std::all_of(access.vars.begin(), access.vars.end(), [&](Expr v) { return known.Knows(v); });
}

// Whether two places are different elements in whatever iterations: follows what would have to be equal until a
// remainder is not.
class Apart {
 public:
  explicit Apart(const Lets& lets) : lets_(lets) {}

  bool Proven(const Access& a, const Access& b) {
    for (size_t i = 0; i < a.index.size(); ++i) {
      Add(a.index[i], b.index[i], i + 1 == a.index.size() ? std::max(a.lanes, b.lanes) : 1);
    }
    for (size_t rounds = 0; rounds < equal_.size() && !proven_; ++rounds) {
      for (size_t j = 0; j < equal_.size(); ++j) {
        const auto [x, y] = equal_[j];
        const bool mods = x.is(ExprKind::kMod) && y.is(ExprKind::kMod) && x.node().payload == y.node().payload;
        if (!mods) continue;
        const int64_t c = x.node().payload;
        if (Has(Div(x.arg(0), c), Div(y.arg(0), c))) Add(x.arg(0), y.arg(0), 1);
      }
    }
    return proven_;
  }

 private:
  bool Has(Expr a, Expr b) const {
    return (a.IsConst() && a == b) || std::find(equal_.begin(), equal_.end(), std::pair(a, b)) != equal_.end();
  }

  void Add(Expr a, Expr b, int64_t lanes) {
    if (Has(a, b)) return;
    if (lanes == 1) equal_.push_back({a, b});
    if (IsLet(lets_, a) && IsLet(lets_, b)) return Add(lets_.at(a.node().ref), lets_.at(b.node().ref), lanes);
    if (IsLet(lets_, a)) return Add(lets_.at(a.node().ref), b, lanes);
    if (IsLet(lets_, b)) return Add(a, lets_.at(b.node().ref), lanes);
    int64_t step = 0;
    const int64_t distance = Constant(a, step) - Constant(b, step);
    const int64_t rest = step == 0 ? std::abs(distance) : ((distance % step) + step) % step;
    if (rest >= lanes && (step == 0 || step - rest >= lanes)) proven_ = true;
  }

  // The constant of a sum; `step` becomes a divisor of everything else in it.
  static int64_t Constant(Expr e, int64_t& step) {
    const ExprNode& n = e.node();
    if (n.kind == ExprKind::kConst) return n.payload;
    if (n.kind != ExprKind::kLin) {
      step = 1;
      return 0;
    }
    for (int64_t c : n.coefs) step = std::gcd(step, c);
    return n.payload;
  }

  const Lets& lets_;
  std::vector<std::pair<Expr, Expr>> equal_ = {};
  bool proven_ = false;
};

class Accesses {
 public:
  Accesses(const Kernel& kernel, uint32_t read, uint32_t written)
      : pool_(*kernel.pool), read_(read), written_(written) {
    expand_.pool = &pool_;
    for (const KernelPart& part : kernel.parts) Visit(part.body);
  }

  bool Proven() const {
    if (refused_ || stores_.empty()) return false;
    std::vector<const Access*> places;  // first store of each index
    for (const Access& store : stores_) {
      const auto same = [&](const Access* place) { return Same(*place, store); };
      if (std::none_of(places.begin(), places.end(), same)) places.push_back(&store);
    }
    for (const Access& load : loads_) {
      const auto before = [&](const Access* place) { return Same(*place, load) && load.when <= place->when; };
      if (std::none_of(places.begin(), places.end(), before)) return false;
    }
    for (size_t i = 0; i < places.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (!Apart(lets_).Proven(*places[i], *places[j])) return false;
      }
    }
    const auto once = [&](const Access& a) { return DeterminesItsLoops(pool_, lets_, a); };
    return std::all_of(stores_.begin(), stores_.end(), once) && std::all_of(loads_.begin(), loads_.end(), once);
  }

 private:
  static bool Same(const Access& a, const Access& b) {
    return a.expanded == b.expanded && a.lanes == b.lanes && a.loops == b.loops;
  }

  bool Touches(uint32_t buffer) const { return buffer == read_ || buffer == written_; }

  Access Here(absl::Span<const ExprId> index, int lanes, ExprId guard) {
    Access access{.lanes = lanes, .when = when_, .loops = loops_, .vars = vars_, .conditions = conditions_};
    if (guard.valid()) access.conditions.push_back(pool_.at(guard));
    for (ExprId id : index) {
      access.index.push_back(pool_.at(id));
      access.expanded.push_back(Substitute(pool_.at(id), expand_).id);
    }
    return access;
  }

  void VisitLoads(const Stmt& s) {
    for (ExprId id : ExprsOf(s)) {
      for (Expr e : PostOrder(pool_.at(id))) {
        if (!e.is(ExprKind::kLoad) || !Touches(e.node().ref)) continue;
        if (e.node().ref == written_) refused_ = true;
        const std::vector<ExprId> args(e.node().args.begin(), e.node().args.end());
        loads_.push_back(Here(absl::MakeConstSpan(args).first(args.size() - 1), e.lanes(), args.back()));
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
      stores_.push_back(Here(s.index, pool_.at(s.value).lanes(), s.guard));
    } else if ((stores || s.kind == StmtKind::kAtomic || s.kind == StmtKind::kIfLast) && Touches(s.target)) {
      refused_ = true;
    }
    if (s.kind == StmtKind::kTile) refused_ = true;
    if (s.kind == StmtKind::kLet && pool_.var(s.var).dtype == DType::kIndex) {
      lets_[s.var] = pool_.at(s.value);
      expand_.vars[s.var] = Substitute(pool_.at(s.value), expand_);
      expand_.memo.clear();
    }
    VisitNested(s);
  }

  void VisitNested(const Stmt& s) {
    if (s.kind == StmtKind::kIfLast) return VisitLast(s);
    if (s.kind == StmtKind::kFor) {
      loops_.push_back(when_);
      vars_.push_back(pool_.Var(s.var));
      if (s.mode == ForMode::kWorkgroup) workgroup_vars_.push_back(vars_.back());
    }
    if (s.kind == StmtKind::kIf) conditions_.push_back(pool_.at(s.cond));
    Visit(s.body);
    if (s.kind == StmtKind::kIf) conditions_.pop_back();
    Visit(s.otherwise);
    if (s.kind == StmtKind::kFor) {
      loops_.pop_back();
      vars_.pop_back();
    }
  }

  // The body runs in one workgroup of those that count at the same place.
  void VisitLast(const Stmt& s) {
    const std::vector<Expr> vars = vars_;
    std::erase_if(vars_, [&](Expr v) {
      return std::find(workgroup_vars_.begin(), workgroup_vars_.end(), v) != workgroup_vars_.end();
    });
    for (ExprId id : s.index) vars_.push_back(pool_.at(id));
    Visit(s.body);
    vars_ = vars;
  }

  ExprPool& pool_;
  const uint32_t read_, written_;
  Lets lets_ = {};
  Substitution expand_ = {};
  std::vector<Access> loads_ = {}, stores_ = {};
  std::vector<int> loops_ = {};
  std::vector<Expr> vars_ = {}, workgroup_vars_ = {};
  std::vector<Expr> conditions_ = {};
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
