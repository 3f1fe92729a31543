#include "ir/recompute.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace agc {
namespace {

// The sums of `axes` that an expression depends on: their coefficients in lowest terms, other variables left out.
// Conditions on them alone do not count: they say which elements are 0 and repeat no work, as in x x' above a diagonal.
// Those that mention what is reduced do: prefixes differ by nothing else.
struct Forms {
  const Nest& nest;
  absl::Span<const VarId> axes, over;
  std::set<std::vector<int64_t>> all = {};
  std::set<uint32_t> seen = {};

  void Collect(Expr e) {
    if (!seen.insert(e.id.index).second || (IsCondition(e) && !Reduced(e))) return;
    if (e.is(ExprKind::kVar)) return Add({{e.node().ref, 1}});
    std::vector<std::pair<VarId, int64_t>> sum;
    for (size_t i = 0; i < e.node().args.size(); ++i) {
      const Expr arg = e.arg(static_cast<int>(i));
      if (e.is(ExprKind::kLin) && arg.is(ExprKind::kVar)) {
        sum.emplace_back(arg.node().ref, e.node().coefs[i]);  // a variable inside a sum does not enter alone
      } else {
        Collect(arg);
      }
    }
    Add(sum);
  }

  bool Reduced(Expr e) const {
    const std::vector<VarId> vars = FreeVars(e);
    return std::any_of(over.begin(), over.end(),
                       [&](VarId v) { return std::find(vars.begin(), vars.end(), v) != vars.end(); });
  }

  static bool IsCondition(Expr e) {
    return e.is(ExprKind::kInRange) || e.is(ExprKind::kNonNeg) || e.is(ExprKind::kEqZero) || e.is(ExprKind::kAnd);
  }

  void Add(const std::vector<std::pair<VarId, int64_t>>& sum) {
    std::vector<int64_t> form(axes.size());
    int64_t divisor = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      for (const auto& [v, c] : sum) form[i] = v == axes[i] ? c : form[i];
      divisor = std::gcd(divisor, form[i]);
    }
    for (int64_t& c : form) c = divisor != 0 ? c / divisor : 0;
    if (divisor != 0) all.insert(form);
  }
};

}  // namespace

double RecomputeFactor(const Nest& nest, const NestStage& stage) {
  const std::vector<VarId>& axes = nest.components[stage.first_component].axes;
  Forms forms{nest, axes, stage.over};
  for (ExprId v : stage.values) forms.Collect(nest.at(v));
  if (stage.when.valid()) forms.Collect(nest.at(stage.when));
  double factor = 1;
  for (const std::vector<int64_t>& form : forms.all) {
    double computed = 1, distinct = 1;
    bool alone = true;  // no axis of it enters in another way
    for (size_t i = 0; i < axes.size(); ++i) {
      if (form[i] == 0) continue;
      const double extent = static_cast<double>(nest.extent(axes[i]));
      computed *= extent;
      distinct += std::abs(static_cast<double>(form[i])) * (extent - 1);
      for (const std::vector<int64_t>& other : forms.all) alone = alone && (other == form || other[i] == 0);
    }
    if (alone && computed > distinct) factor *= computed / distinct;
  }
  return factor;
}

}  // namespace agc
