#include "ir/injective.h"

#include <algorithm>
#include <utility>

namespace agc {

void Determined::Add(Expr e, int64_t lanes) {
  if (e.IsConst() || Knows(e)) return;
  const bool let = e.is(ExprKind::kVar) && lets_.count(e.node().ref) > 0;
  if (e.is(ExprKind::kLin)) {
    if (!Separates(e, lanes)) return;
    for (int i = 0; i < static_cast<int>(e.node().args.size()); ++i) Add(e.arg(i), 1);
  } else if (let) {
    if (lanes == 1) known_.push_back(e);
    Add(lets_.at(e.node().ref), lanes);
  } else if (lanes == 1) {
    known_.push_back(e);
  }
}

void Determined::Assume(Expr condition) {
  if (condition.is(ExprKind::kAnd)) {
    for (int i = 0; i < static_cast<int>(condition.node().args.size()); ++i) Assume(condition.arg(i));
  }
  const bool zero =
      condition.is(ExprKind::kEqZero) || (condition.is(ExprKind::kInRange) && condition.node().payload == 1);
  if (zero) Add(condition.arg(0), 1);
}

void Determined::Close() {
  for (size_t rounds = 0; rounds < known_.size(); ++rounds) {
    for (size_t j = 0; j < known_.size(); ++j) {
      const bool quotient = known_[j].is(ExprKind::kDiv);
      if (!quotient && !known_[j].is(ExprKind::kMod)) continue;
      const Expr x = known_[j].arg(0);
      const int64_t c = known_[j].node().payload;
      if (Knows(quotient ? Mod(x, c) : Div(x, c))) Add(x, 1);
    }
  }
}

bool Determined::Knows(Expr e) const {
  if (e.IsConst()) return true;
  if (std::find(known_.begin(), known_.end(), e) != known_.end()) return true;
  if (!e.is(ExprKind::kLin)) return false;
  for (int i = 0; i < static_cast<int>(e.node().args.size()); ++i) {
    if (!Knows(e.arg(i))) return false;
  }
  return true;
}

// Mixed radix: sorted by size, each coefficient is at least the span of the terms before it.
bool Determined::Separates(Expr sum, int64_t lanes) const {
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

}  // namespace agc
