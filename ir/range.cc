// A condition 0 <= g < n bounds e by the range of e - k*g plus k*[0, n-1]. A sum with a quotient in it is a quotient as
// a whole, 4*i + (j / 3) = (12*i + j) / 3, and is bounded by what its dividend is.
#include "ir/range.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/index_math.h"

namespace agc {
namespace {

struct Condition {
  ExprId index = {};
  int64_t lo = 0, hi = 0;
};

// A sum of atoms times constants.
struct Linear {
  std::vector<std::pair<ExprId, int64_t>> terms = {};
  int64_t constant = 0;
};

Linear LinearOf(const ExprPool& pool, ExprId e) {
  const ExprNode& n = pool.node(e);
  Linear sum;
  if (n.kind == ExprKind::kConst) {
    sum.constant = n.payload;
  } else if (n.kind == ExprKind::kLin) {
    sum.constant = n.payload;
    for (size_t i = 0; i < n.args.size(); ++i) sum.terms.emplace_back(n.args[i], n.coefs[i]);
  } else {
    sum.terms.emplace_back(e, 1);
  }
  return sum;
}

void Add(IndexRange& r, __int128 coef, IndexRange x) {
  const __int128 a = coef * x.lo, b = coef * x.hi;
  r.lo = SaturatedIndex(r.lo + std::min(a, b));
  r.hi = SaturatedIndex(r.hi + std::max(a, b));
}

class Analysis {
 public:
  Analysis(const ExprPool& pool, absl::Span<const ExprId> conditions) : pool_(pool) {
    for (ExprId c : conditions) Collect(c);
  }

  IndexRange Of(ExprId e) {
    if (const auto it = known_.find(e); it != known_.end()) return it->second;
    IndexRange r = Plain(e);
    const ExprNode& n = pool_.node(e);
    r = {std::max(r.lo, n.lo), std::min(r.hi, n.hi)};
    const Linear sum = LinearOf(pool_, e);
    for (const Condition& c : conditions_) Tighten(sum, c, r);
    if (const auto [dividend, divisor] = WholeQuotient(sum); divisor > 0 && sum.terms.size() > 1) {
      IndexRange whole{-kMaxIndex, kMaxIndex};
      for (const Condition& c : conditions_) Tighten(dividend, c, whole);
      r = {std::max(r.lo, FloorDiv(whole.lo, divisor)), std::min(r.hi, FloorDiv(whole.hi, divisor))};
    }
    known_.emplace(e, r);
    return r;
  }

  bool CanHold() {
    return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& c) {
      const IndexRange r = Of(c.index);
      return std::max(r.lo, c.lo) <= std::min(r.hi, c.hi);
    });
  }

 private:
  void Collect(ExprId id) {
    const ExprNode& n = pool_.node(id);
    if (n.kind == ExprKind::kAnd) {
      for (ExprId arg : n.args) Collect(arg);
    }
    if (n.kind == ExprKind::kInRange) conditions_.push_back({n.args[0], 0, n.payload - 1});
    if (n.kind == ExprKind::kNonNeg) conditions_.push_back({n.args[0], 0, kMaxIndex});
    if (n.kind == ExprKind::kEqZero) conditions_.push_back({n.args[0], 0, 0});
  }

  IndexRange Plain(ExprId e) {
    const ExprNode& n = pool_.node(e);
    switch (n.kind) {
      case ExprKind::kLin: {
        IndexRange r{n.payload, n.payload};
        for (size_t i = 0; i < n.args.size(); ++i) Add(r, n.coefs[i], Of(n.args[i]));
        return r;
      }
      case ExprKind::kDiv: {
        const IndexRange x = Of(n.args[0]);
        return {FloorDiv(x.lo, n.payload), FloorDiv(x.hi, n.payload)};
      }
      case ExprKind::kMod: {
        const IndexRange x = Of(n.args[0]);
        const int64_t q = FloorDiv(x.lo, n.payload);
        return q == FloorDiv(x.hi, n.payload) ? IndexRange{x.lo - q * n.payload, x.hi - q * n.payload}
                                              : IndexRange{0, n.payload - 1};
      }
      case ExprKind::kMin: {
        const IndexRange x = Of(n.args[0]);
        return {std::min(x.lo, n.payload), std::min(x.hi, n.payload)};
      }
      case ExprKind::kMax: {
        const IndexRange x = Of(n.args[0]);
        return {std::max(x.lo, n.payload), std::max(x.hi, n.payload)};
      }
      default:
        return {n.lo, n.hi};
    }
  }

  // Dividend and divisor of a sum that adds a quotient to whole terms; a divisor of 0 if it adds none.
  std::pair<Linear, int64_t> WholeQuotient(const Linear& sum) const {
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      const ExprNode& n = pool_.node(sum.terms[i].first);
      if (n.kind != ExprKind::kDiv || sum.terms[i].second != 1) continue;
      Linear dividend = LinearOf(pool_, n.args[0]);
      const auto times = [&](int64_t v) { return SaturatedIndex(static_cast<__int128>(v) * n.payload); };
      dividend.constant = SaturatedIndex(static_cast<__int128>(dividend.constant) + times(sum.constant));
      for (size_t k = 0; k < sum.terms.size(); ++k) {
        const auto& [atom, coef] = sum.terms[k];
        if (k == i) continue;
        if (CoefficientOf(dividend.terms, atom) != 0 || std::abs(times(coef)) == kMaxIndex) return {};
        dividend.terms.emplace_back(atom, times(coef));
      }
      return {std::move(dividend), n.payload};
    }
    return {};
  }

  void Tighten(const Linear& x, const Condition& c, IndexRange& r) const {
    const Linear g = LinearOf(pool_, c.index);
    int64_t before = 0;
    for (const auto& [atom, coef] : g.terms) {
      const int64_t mine = CoefficientOf(x.terms, atom);
      if (mine == 0 || mine % coef != 0 || mine / coef == before) continue;
      const int64_t k = before = mine / coef;
      IndexRange rest{x.constant, x.constant};
      Add(rest, -static_cast<__int128>(k), {g.constant, g.constant});
      for (const auto& [a, v] : x.terms) Add(rest, v - static_cast<__int128>(k) * CoefficientOf(g.terms, a), Node(a));
      for (const auto& [a, v] : g.terms) {
        if (CoefficientOf(x.terms, a) == 0) Add(rest, -static_cast<__int128>(k) * v, Node(a));
      }
      Add(rest, k, {c.lo, c.hi});
      r = {std::max(r.lo, rest.lo), std::min(r.hi, rest.hi)};
    }
  }
  IndexRange Node(ExprId e) const { return {pool_.node(e).lo, pool_.node(e).hi}; }

  const ExprPool& pool_;
  std::vector<Condition> conditions_ = {};
  absl::flat_hash_map<ExprId, IndexRange> known_ = {};  // parts are shared, and nested ones would be visited again
};

}  // namespace

IndexRange RangeUnder(const ExprPool& pool, ExprId index, absl::Span<const ExprId> conditions) {
  return Analysis(pool, conditions).Of(index);
}

bool CanHold(const ExprPool& pool, absl::Span<const ExprId> conditions) { return Analysis(pool, conditions).CanHold(); }

}  // namespace agc
