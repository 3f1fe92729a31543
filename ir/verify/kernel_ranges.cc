// Ranges of loop trees: those that variables declare, and the places of loads and stores. Guards, enclosing conditions
// and what lets stand for take part in the proofs.
#include <algorithm>
#include <numeric>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/index_math.h"
#include "ir/range.h"
#include "ir/text/print.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

class KernelRanges {
 public:
  explicit KernelRanges(const Kernel& kernel) : kernel_(kernel), pool_(*kernel.pool) { expand_.pool = &pool_; }

  absl::Status Run() {
    for (const KernelPart& part : kernel_.parts) AGC_RETURN_IF_ERROR(Block(part.body));
    return absl::OkStatus();
  }

 private:
  absl::Status Error(Loc loc, absl::string_view message) const {
    return ErrorAt(loc.line == 0 ? kernel_.loc : loc, absl::StrCat("shader @", kernel_.name, ": ", message));
  }
  std::string Text(ExprId e) const { return PrintExpr(pool_, e, NamesOf(kernel_)); }

  absl::Status Block(const std::vector<Stmt>& body) {
    const size_t conditions = conditions_.size();
    for (const Stmt& s : body) AGC_RETURN_IF_ERROR(Statement(s));
    conditions_.resize(conditions);
    return absl::OkStatus();
  }

  absl::Status Statement(const Stmt& s) {
    for (ExprId root : ExprsOf(s)) AGC_RETURN_IF_ERROR(Loads(root, s.loc));
    if (s.kind == StmtKind::kFor) AGC_RETURN_IF_ERROR(Loop(s));
    if (s.kind == StmtKind::kLet) AGC_RETURN_IF_ERROR(Let(s));
    if (s.kind == StmtKind::kStore || s.kind == StmtKind::kAtomic) {
      std::vector<ExprId> when;
      if (s.guard.valid()) when.push_back(s.guard);
      AGC_RETURN_IF_ERROR(Place(s.to_alloc, s.target, s.index, when, s.loc, "written"));
    }
    const size_t conditions = conditions_.size();
    if (s.kind == StmtKind::kIf && pool_.at(s.cond).IsFalse()) return Block(s.otherwise);  // the body never runs
    if (s.kind == StmtKind::kIf) conditions_.push_back(s.cond);
    if (s.kind == StmtKind::kFor && !pool_.at(s.end).IsConst())
      AssumeBelow(pool_.Var(s.var), pool_.at(Expanded(s.end)));
    AGC_RETURN_IF_ERROR(Block(s.body));
    conditions_.resize(conditions);
    return Block(s.otherwise);
  }

  // What a variable is declared to be must hold of what it is. `what` says where the range comes from; names are looked
  // up in the whole kernel, so only for a message.
  absl::Status Contains(const Stmt& s, IndexRange range, absl::FunctionRef<std::string()> what) const {
    const VarInfo& v = pool_.var(s.var);
    if (range.lo >= v.lo && range.hi <= v.hi) return absl::OkStatus();
    return Error(s.loc, absl::StrCat(v.name, " has range [", v.lo, ", ", v.hi, "], ", what(), " [", range.lo, ", ",
                                     range.hi, "]"));
  }

  absl::Status Loop(const Stmt& s) {
    for (ExprId bound : {s.begin, s.end}) {
      const IndexRange r = RangeOf(bound, {}, 0, kMaxIndex);
      if (r.lo < 0 && r.lo <= r.hi)
        return Error(s.loc, absl::StrCat("a bound of a loop, ", Text(bound), ", may be ", r.lo, ", below 0"));
    }
    const auto [lo, hi] = text::LoopRange(pool_.node(s.begin), pool_.node(s.end), s.step);
    return Contains(s, {lo, hi}, [] { return std::string("its bounds say"); });
  }

  // x < end as conditions, through quotients and minima: x < min(a, n) / c says that c*x + c - 1 is below a and n.
  void AssumeBelow(Expr x, Expr end) {
    if (end.is(ExprKind::kDiv)) {
      const int64_t c = end.node().payload;
      return AssumeBelow(x * c + (c - 1), end.arg(0));
    }
    if (end.is(ExprKind::kMin)) AssumeBelow(x, pool_.Int(end.node().payload));
    if (end.is(ExprKind::kMin) || (end.is(ExprKind::kMax) && end.node().payload <= x.node().lo)) {
      return AssumeBelow(x, end.arg(0));
    }
    Expr room = end - x - 1;  // not negative; nor is it in units of what all its terms are multiples of
    int64_t unit = 0;
    if (room.is(ExprKind::kLin)) {
      for (int64_t c : room.node().coefs) unit = std::gcd(unit, c);
    }
    if (unit > 1) room = Div(room, unit);
    if (room.node().hi >= 0) conditions_.push_back(InRange(room, room.node().hi + 1).id);
  }

  absl::Status Let(const Stmt& s) {
    const VarInfo v = pool_.var(s.var);
    if (v.dtype == DType::kIndex) {
      const IndexRange r = RangeOf(s.value, {}, v.lo, v.hi);
      // Under conditions and in loops whose end is computed more may hold than intervals show.
      const bool may = !conditions_.empty() && r.lo <= v.hi && r.hi >= v.lo;
      const auto what = [&] { return absl::StrCat("its value ", Text(s.value), " is in"); };
      if (r.lo <= r.hi && !may) AGC_RETURN_IF_ERROR(Contains(s, r, what));
    }
    if (v.dtype == DType::kIndex || v.dtype == DType::kBool) lets_.emplace_back(s.var, s.value);
    return absl::OkStatus();
  }

  absl::Status Loads(ExprId root, Loc loc) {
    for (Expr e : PostOrder(Expr{&pool_, root})) {
      if (!e.is(ExprKind::kLoad) && !e.is(ExprKind::kAllocLoad)) continue;
      const ExprNode n = e.node();  // NOLINT(performance-unnecessary-copy-initialization): the pool grows below
      const bool alloc = n.kind == ExprKind::kAllocLoad;
      std::vector<ExprId> index(n.args.begin(), n.args.end()), when;
      if (!alloc) {
        when.push_back(index.back());
        index.pop_back();
      }
      AGC_RETURN_IF_ERROR(Place(alloc, n.ref, index, when, loc, "read"));
    }
    return absl::OkStatus();
  }

  // Nests prove their places; loop trees compute them by arithmetic that intervals do not always follow, such as
  // t + 1 - 2*(t % 2). So places are refused that lie outside as a whole, or for some value of plain loop variables.
  absl::Status Place(bool alloc, uint32_t target, const std::vector<ExprId>& index, const std::vector<ExprId>& when,
                     Loc loc, absl::string_view what) {
    Dims dims;
    if (alloc) dims.assign(kernel_.allocs[target].extents.begin(), kernel_.allocs[target].extents.end());
    if (!alloc) dims = kernel_.params[target].type.dims;
    bool reached = true;
    std::string out;
    for (size_t i = 0; i < dims.size(); ++i) {
      const IndexRange r = RangeOf(index[i], when, 0, dims[i] - 1);
      reached = reached && r.lo <= r.hi;
      const bool attained = Attained(index[i], when);
      const bool inside = attained ? r.lo >= 0 && r.hi < dims[i] : r.lo < dims[i] && r.hi >= 0;
      if (inside || !out.empty()) continue;
      out = absl::StrCat("%", alloc ? kernel_.allocs[target].name : kernel_.params[target].name, " is ", what,
                         " at axis ", i, " with ", Text(index[i]), " in [", r.lo, ", ", r.hi, "], expected 0 to ",
                         dims[i] - 1);
    }
    return reached && !out.empty() && Reachable(when) ? Error(loc, out) : absl::OkStatus();
  }

  // Whether `when` and the enclosing conditions may hold together.
  bool Reachable(const std::vector<ExprId>& when) {
    std::vector<ExprId> all = conditions_;
    all.insert(all.end(), when.begin(), when.end());
    if (!CanHold(pool_, all)) return false;
    for (ExprId& c : all) c = Expanded(c);
    return CanHold(pool_, all);
  }

  // Whether an index takes both ends of its range: a sum of loop variables, under no condition.
  bool Attained(ExprId e, const std::vector<ExprId>& when) const {
    const auto holds = [&](ExprId c) { return pool_.at(c).IsTrue(); };
    if (!conditions_.empty() || !std::all_of(when.begin(), when.end(), holds)) return false;
    const auto loop = [&](Expr x) {
      const auto same = [&](const auto& let) { return let.first == x.node().ref; };
      return x.IsConst() || (x.is(ExprKind::kVar) && std::none_of(lets_.begin(), lets_.end(), same));
    };
    const Expr sum = pool_.at(e);
    if (!sum.is(ExprKind::kLin)) return loop(sum);
    for (int i = 0; i < static_cast<int>(sum.node().args.size()); ++i) {
      if (!loop(sum.arg(i))) return false;
    }
    return true;
  }

  // The range of an index where `when` and the enclosing conditions hold; the first found that lies in [lo, hi].
  IndexRange RangeOf(ExprId e, const std::vector<ExprId>& when, int64_t lo, int64_t hi) {
    const IndexRange plain = {pool_.node(e).lo, pool_.node(e).hi};
    if (plain.lo >= lo && plain.hi <= hi) return plain;
    std::vector<ExprId> all = conditions_;
    all.insert(all.end(), when.begin(), when.end());
    const IndexRange known = RangeUnder(pool_, e, all);
    if ((known.lo >= lo && known.hi <= hi) || lets_.empty()) return known;
    for (ExprId& c : all) c = Expanded(c);
    const IndexRange expanded = RangeUnder(pool_, Expanded(e), all);
    return {std::max(known.lo, expanded.lo), std::min(known.hi, expanded.hi)};
  }

  // With what lets stand for in their places.
  ExprId Expanded(ExprId e) {
    for (; expanded_ < lets_.size(); ++expanded_) {
      const auto [var, value] = lets_[expanded_];
      const Expr full = Substitute(pool_.at(value), expand_);
      if (!expand_.vars.emplace(var, full).second) {  // another let of the same variable, in another scope
        expand_.memo.clear();
        expand_.vars[var] = full;
      }
    }
    return Substitute(pool_.at(e), expand_).id;
  }

  const Kernel& kernel_;
  ExprPool& pool_;
  std::vector<ExprId> conditions_ = {};
  std::vector<std::pair<VarId, ExprId>> lets_ = {};  // of indices and conditions, in order
  size_t expanded_ = 0;                              // of `lets_` that `expand_` has
  Substitution expand_ = {};
};

}  // namespace

absl::Status VerifyKernelRanges(const Kernel& kernel) { return KernelRanges(kernel).Run(); }

}  // namespace agc
