// place-lets: names for shared and loop-invariant expressions, as Let statements: common subexpressions, hoisting, and
// splitting of addresses and guards by loop depth, for every schedule at once.
//   for k { store %y[8*i + k] = %x[8*i + k] * exp(%s[0]) }
//   => let e0: index = 8*i   let e1: f32 = exp(%s[0])   for k { let e2: f32 = %x[e0 + k]   store %y[e0 + k] = e2 * e1 }
// An expression goes to the innermost open scope that defines one of its variables, not above an enclosing `if` unless
// it is an index. What reads registers, shared memory or a written buffer is never moved or named.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "passes/pass.h"

namespace agc {
namespace {

struct Scope {
  std::vector<Stmt> out = {};
  std::vector<uint32_t> named = {};  // ExprIds whose let stands here
  bool conditional = false;
};

// A value for every number; those beyond the end, and those nobody set, have the default.
template <typename T>
class Table {
 public:
  explicit Table(T unset) : unset_(unset) {}
  const T& at(uint32_t i) const { return i < values_.size() ? values_[i] : unset_; }
  T& operator[](uint32_t i) {
    if (i >= values_.size()) values_.resize(i + i / 2 + 16, unset_);
    return values_[i];
  }
  void clear() { values_.clear(); }

 private:
  T unset_;
  std::vector<T> values_ = {};
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
      name_of_.clear();
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
    if (const int8_t known = mutable_.at(e.id.index); known >= 0) return known != 0;
    bool m = e.is(ExprKind::kAllocLoad) ||
             (e.is(ExprKind::kLoad) && kernel_.params[e.node().ref].access != KernelAccess::kRead);
    for (size_t i = 0; i < e.node().args.size(); ++i) m = IsMutable(e.arg(static_cast<int>(i))) || m;
    mutable_[e.id.index] = m ? 1 : 0;
    return m;
  }

  // What the depth of an expression comes from; it does not change while statements are placed.
  struct Needs {
    absl::InlinedVector<VarId, 4> vars = {};  // ascending
    bool value = false;                       // something other than index arithmetic, which must not leave an `if`
  };
  const Needs& NeedsOf(Expr e) {
    const auto it = needs_.find(e.id.index);
    if (it != needs_.end()) return *it->second;
    Needs needs{.value = e.dtype() != DType::kIndex || e.is(ExprKind::kToIndex)};
    if (e.is(ExprKind::kVar)) needs = {{e.node().ref}, false};
    for (size_t i = 0; i < e.node().args.size(); ++i) {
      const Needs& of = NeedsOf(e.arg(static_cast<int>(i)));
      if (std::includes(needs.vars.begin(), needs.vars.end(), of.vars.begin(), of.vars.end())) {
        needs.value = needs.value || of.value;
        continue;
      }
      absl::InlinedVector<VarId, 4> both;
      std::set_union(needs.vars.begin(), needs.vars.end(), of.vars.begin(), of.vars.end(), std::back_inserter(both));
      needs.vars = std::move(both);
      needs.value = needs.value || of.value;
    }
    return *needs_.emplace(e.id.index, std::make_unique<Needs>(std::move(needs))).first->second;
  }

  size_t Depth(Expr e) {
    const Needs& needs = NeedsOf(e);
    size_t d = 0;
    for (VarId v : needs.vars) {
      const int32_t depth = depth_of_.at(v);
      d = std::max(d, depth < 0 ? chain_.size() - 1 : static_cast<size_t>(depth));
    }
    for (size_t j = chain_.size(); needs.value && j-- > d + 1;) {
      if (chain_[j].conditional) return j;
    }
    return d;
  }

  static bool Leaf(Expr e) { return e.is(ExprKind::kConst) || e.is(ExprKind::kVar); }

  bool Find(Expr e, Expr& name) {
    const int32_t var = name_of_.at(e.id.index);
    if (var < 0) return false;
    name = pool_.Var(static_cast<VarId>(var));
    return true;
  }

  // The variable stands for the expression until the scope ends.
  void Name(Expr e, VarId var, size_t depth) {
    name_of_[e.id.index] = static_cast<int32_t>(var);
    chain_[depth].named.push_back(e.id.index);
  }

  void SetDepth(VarId var, size_t depth) { depth_of_[var] = static_cast<int32_t>(depth); }

  Expr Bind(Expr original, Expr value, size_t depth) {
    const ExprNode& n = value.node();
    const VarId v =
        pool_.Declare({.name = absl::StrCat("e", next_++), .dtype = n.dtype, .lanes = n.lanes, .lo = n.lo, .hi = n.hi});
    Stmt let{.kind = StmtKind::kLet};
    let.var = v;
    let.value = value.id;
    chain_[depth].out.push_back(std::move(let));
    Name(original, v, depth);
    SetDepth(v, depth);
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
    if (depth < current || (counts_.at(e.id.index) > 1 && !cheap) || e.is(ExprKind::kLoad))
      return Bind(e, value, depth);
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
      } else if (terms[i].depth < current || (i + 1 == terms.size() && n.payload == 0 && counts_.at(e.id.index) > 1)) {
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
    if (var != nullptr) SetDepth(*var, chain_.size() - 1);
    Block(body);
    body = std::move(chain_.back().out);
    for (uint32_t id : chain_.back().named) name_of_[id] = -1;
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
    if (s.kind == StmtKind::kLanes || s.kind == StmtKind::kAtomic) SetDepth(s.var, chain_.size() - 1);
    chain_.back().out.push_back(std::move(s));
  }

  // A pinned Let is evaluated where it stands; a load in it is not named twice.
  void Let(Stmt s) {
    const Expr e = pool_.at(s.value);
    Expr name;
    const bool load = e.is(ExprKind::kLoad) && !IsMutable(e) && !Find(e, name) && Depth(e) == chain_.size() - 1;
    Set(s.value, load ? Children(e) : Place(e));
    SetDepth(s.var, chain_.size() - 1);
    if (load) Name(e, s.var, chain_.size() - 1);
    chain_.back().out.push_back(std::move(s));
  }

  Kernel& kernel_;
  ExprPool& pool_;
  std::vector<Scope> chain_ = {};
  Table<int32_t> counts_{0};    // by ExprId, as the next three
  Table<int8_t> mutable_{-1};   // -1: not known
  Table<int32_t> name_of_{-1};  // the let of what is named in an open scope
  absl::flat_hash_map<uint32_t, std::unique_ptr<Needs>> needs_ = {};
  Table<int32_t> depth_of_{-1};  // by VarId
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
