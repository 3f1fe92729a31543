// place-lets: names for shared and loop-invariant expressions, as Let statements: common subexpressions, hoisting, and
// splitting of addresses and guards by loop depth, for every schedule at once.
//   for k { store %y[8*i + k] = %x[8*i + k] * exp(%s[0]) }
//   => let e0: index = 8*i   let e1: f32 = exp(%s[0])   for k { let e2: f32 = %x[e0 + k]   store %y[e0 + k] = e2 * e1 }
// An expression goes to the innermost open scope that defines one of its variables, not above an enclosing `if` unless
// it is an index. What reads registers, shared memory or a written buffer is never moved or named.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/pass.h"

namespace agc {
namespace {

struct Scope {
  std::vector<Stmt> out = {};
  std::map<uint32_t, VarId> names = {};  // ExprId -> let
  bool conditional = false;
};

class Placer {
 public:
  explicit Placer(Kernel& kernel) : kernel_(kernel), pool_(*kernel.pool) {}

  // Whether anything moved.
  bool Run() {
    for (KernelPart& part : kernel_.parts) {
      counts_.clear();
      mutable_.clear();
      depth_of_.clear();
      Tally(part.body);
      chain_.assign(1, {});
      Block(part.body);
      part.body = std::move(chain_[0].out);
    }
    return changed_;
  }

 private:
  // ---- facts about expressions
  void Tally(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      for (ExprId id : ExprsOf(s)) Tally(pool_.at(id));
      Tally(s.body);
      Tally(s.otherwise);
    }
  }
  void Tally(Expr e) {
    if (++counts_[e.id.index] > 1) return;
    for (size_t i = 0; i < e.node().args.size(); ++i) Tally(e.arg(static_cast<int>(i)));
  }

  bool IsMutable(Expr e) {
    const auto it = mutable_.find(e.id.index);
    if (it != mutable_.end()) return it->second;
    bool m = e.is(ExprKind::kAllocLoad) ||
             (e.is(ExprKind::kLoad) && kernel_.params[e.node().ref].access != KernelAccess::kRead);
    for (size_t i = 0; i < e.node().args.size(); ++i) m = IsMutable(e.arg(static_cast<int>(i))) || m;
    return mutable_[e.id.index] = m;
  }

  // What the depth of an expression comes from; it does not change while statements are placed.
  struct Needs {
    std::vector<VarId> vars = {};  // ascending
    bool value = false;            // something other than index arithmetic, which must not leave an `if`
  };
  const Needs& NeedsOf(Expr e) {
    const auto it = needs_.find(e.id.index);
    if (it != needs_.end()) return it->second;
    Needs needs{.value = e.dtype() != DType::kIndex || e.is(ExprKind::kToIndex)};
    if (e.is(ExprKind::kVar)) needs = {{e.node().ref}, false};
    for (size_t i = 0; i < e.node().args.size(); ++i) {
      const Needs& of = NeedsOf(e.arg(static_cast<int>(i)));
      std::vector<VarId> both;
      std::set_union(needs.vars.begin(), needs.vars.end(), of.vars.begin(), of.vars.end(), std::back_inserter(both));
      needs.vars = std::move(both);
      needs.value = needs.value || of.value;
    }
    return needs_.emplace(e.id.index, std::move(needs)).first->second;
  }

  size_t Depth(Expr e) {
    const Needs& needs = NeedsOf(e);
    size_t d = 0;
    for (VarId v : needs.vars) {
      const auto it = depth_of_.find(v);
      d = std::max(d, it == depth_of_.end() ? chain_.size() - 1 : it->second);
    }
    for (size_t j = chain_.size(); needs.value && j-- > d + 1;) {
      if (chain_[j].conditional) return j;
    }
    return d;
  }

  static bool Leaf(Expr e) { return e.is(ExprKind::kConst) || e.is(ExprKind::kVar); }

  bool Find(Expr e, Expr& name) {
    for (size_t j = chain_.size(); j-- > 0;) {
      const auto it = chain_[j].names.find(e.id.index);
      if (it != chain_[j].names.end()) {
        name = pool_.Var(it->second);
        return true;
      }
    }
    return false;
  }

  Expr Bind(Expr original, Expr value, size_t depth) {
    const ExprNode& n = value.node();
    const VarId v =
        pool_.Declare({.name = absl::StrCat("e", next_++), .dtype = n.dtype, .lanes = n.lanes, .lo = n.lo, .hi = n.hi});
    Stmt let{.kind = StmtKind::kLet};
    let.var = v;
    let.value = value.id;
    chain_[depth].out.push_back(std::move(let));
    chain_[depth].names[original.id.index] = v;
    depth_of_[v] = depth;
    return pool_.Var(v);
  }

  // ---- placing
  Expr Place(Expr e) {
    if (Leaf(e)) return e;
    Expr name;
    if (Find(e, name)) return name;
    if (IsMutable(e)) return Children(e);
    if (e.is(ExprKind::kLin)) return PlaceSum(e);
    const size_t current = chain_.size() - 1, depth = Depth(e);
    const Expr value = Children(e);
    if (Leaf(value)) return value;
    const bool cheap = e.is(ExprKind::kLane) || e.is(ExprKind::kFromIndex);
    if (depth < current || (counts_[e.id.index] > 1 && !cheap) || e.is(ExprKind::kLoad)) return Bind(e, value, depth);
    return value;
  }

  Expr Children(Expr e) {
    std::vector<Expr> args;
    for (size_t i = 0; i < e.node().args.size(); ++i) args.push_back(Place(e.arg(static_cast<int>(i))));
    return args.empty() ? e : Raw(e, args);
  }

  // The same node over placed arguments, without refolding: names hide structure that folding could misread.
  Expr Raw(Expr e, const std::vector<Expr>& args) {
    ExprNode n = e.node();
    for (size_t i = 0; i < args.size(); ++i) n.args[i] = args[i].id;
    return pool_.Add(std::move(n));
  }

  // Terms by depth, outermost first; each prefix that ends above the current scope gets a name there.
  Expr PlaceSum(Expr e) {
    struct Term {
      size_t depth;
      Expr atom;
      int64_t coef;
    };
    std::vector<Term> terms;
    const ExprNode n = e.node();
    for (size_t i = 0; i < n.args.size(); ++i)
      terms.push_back({Depth(e.arg(static_cast<int>(i))), e.arg(static_cast<int>(i)), n.coefs[i]});
    std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.depth < b.depth; });
    const size_t current = chain_.size() - 1;
    Expr plain = pool_.Int(0), placed = pool_.Int(0);
    for (size_t i = 0; i < terms.size(); ++i) {
      plain = plain + terms[i].atom * terms[i].coef;
      placed = placed + Place(terms[i].atom) * terms[i].coef;
      const bool last_of_depth = i + 1 == terms.size() || terms[i + 1].depth != terms[i].depth;
      if (!last_of_depth || Leaf(placed)) continue;
      Expr name;
      if (Find(plain, name)) {
        placed = name;
      } else if (terms[i].depth < current || (i + 1 == terms.size() && n.payload == 0 && counts_[e.id.index] > 1)) {
        placed = Bind(plain, placed, terms[i].depth);
      }
    }
    return placed + n.payload;
  }

  // ---- statements
  void Set(ExprId& id, Expr placed) {
    changed_ = changed_ || placed.id != id;  // a new let has a user, which changes
    id = placed.id;
  }

  void Nested(std::vector<Stmt>& body, bool conditional, const VarId* var) {
    chain_.push_back({.conditional = conditional});
    if (var != nullptr) depth_of_[*var] = chain_.size() - 1;
    Block(body);
    body = std::move(chain_.back().out);
    chain_.pop_back();
  }

  void Block(std::vector<Stmt>& body) {
    std::vector<Stmt> statements = std::move(body);
    for (Stmt& s : statements) Statement(std::move(s));
  }

  void Statement(Stmt s) {
    if (s.kind == StmtKind::kLet) return Let(std::move(s));
    for (ExprId* id : ExprsOf(s)) Set(*id, Place(pool_.at(*id)));
    const bool loop = s.kind == StmtKind::kFor;
    const bool conditional = s.kind == StmtKind::kIf || s.kind == StmtKind::kIfLast;
    if (loop || conditional || s.kind == StmtKind::kRegion) Nested(s.body, conditional, loop ? &s.var : nullptr);
    if (!s.otherwise.empty()) Nested(s.otherwise, conditional, nullptr);
    if (s.kind == StmtKind::kLanes || s.kind == StmtKind::kAtomic) depth_of_[s.var] = chain_.size() - 1;
    chain_.back().out.push_back(std::move(s));
  }

  // A pinned Let is evaluated where it stands; a load in it is not named twice.
  void Let(Stmt s) {
    const Expr e = pool_.at(s.value);
    Expr name;
    const bool load = e.is(ExprKind::kLoad) && !IsMutable(e) && !Find(e, name) && Depth(e) == chain_.size() - 1;
    Set(s.value, load ? Children(e) : Place(e));
    depth_of_[s.var] = chain_.size() - 1;
    if (load) chain_.back().names[e.id.index] = s.var;
    chain_.back().out.push_back(std::move(s));
  }

  Kernel& kernel_;
  ExprPool& pool_;
  std::vector<Scope> chain_ = {};
  std::map<uint32_t, int> counts_ = {};
  std::map<uint32_t, bool> mutable_ = {};
  std::map<uint32_t, Needs> needs_ = {};  // by ExprId
  std::map<VarId, size_t> depth_of_ = {};
  int next_ = 0;
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> PlaceLets(Program& program, PassContext&) {
  bool changed = false;
  for (Kernel& kernel : program.kernels) changed = Placer(kernel).Run() || changed;
  return changed;
}

}  // namespace agc
