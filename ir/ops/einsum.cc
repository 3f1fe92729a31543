#include "ir/ops/einsum.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "ir/combiner.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

bool Has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

std::string NameOf(int label) {
  return label > 0 ? std::string(1, static_cast<char>(label)) : absl::StrCat("axis ", label, " of the ellipsis");
}

// ---------------------------------------------------------------- parsing

constexpr int kEllipsis = 0;

// The letters of a term, kEllipsis for three dots.
absl::StatusOr<Labels> ParseTerm(absl::string_view term) {
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (absl::StartsWith(term.substr(i), "...")) {
      if (Has(labels, kEllipsis)) {
        return absl::InvalidArgumentError(absl::StrCat("term \"", term, "\" has two ellipses, expected at most one"));
      }
      labels.push_back(kEllipsis);
      i += 2;
    } else if (absl::ascii_isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("term \"", term, "\" holds '", term.substr(i, 1),
                                                     "', expected letters and at most one ellipsis of three dots"));
    }
  }
  return labels;
}

// An ellipsis becomes -count, ..., -1.
Labels Unfold(const Labels& term, int count) {
  Labels out;
  for (int label : term) {
    if (label != kEllipsis) out.push_back(label);
    for (int k = -count; label == kEllipsis && k < 0; ++k) out.push_back(k);
  }
  return out;
}

absl::Status AddExtents(const Labels& labels, const Dims& dims, EinsumPlan& plan) {
  for (size_t k = 0; k < labels.size(); ++k) {
    int64_t& extent = plan.extents.try_emplace(labels[k], 1).first->second;
    if (extent != 1 && dims[k] != 1 && extent != dims[k]) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(labels[k]), " stands for ", extent, " and for ", dims[k], " elements"));
    }
    if (dims[k] != 1) extent = dims[k];
  }
  return absl::OkStatus();
}

Labels ImplicitOutput(const EinsumPlan& plan, int ellipsis) {
  std::map<int, int> count;
  for (const Labels& labels : plan.operands) {
    for (int label : labels) ++count[label];
  }
  Labels out = Unfold({kEllipsis}, ellipsis);
  for (const auto& [label, times] : count) {
    if (label > 0 && times == 1) out.push_back(label);
  }
  return out;
}

absl::Status CheckOutput(const EinsumPlan& plan) {
  for (size_t k = 0; k < plan.output.size(); ++k) {
    const int label = plan.output[k];
    if (plan.extents.count(label) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the output names ", NameOf(label), ", which no operand has"));
    }
    if (std::count(plan.output.begin(), plan.output.end(), label) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("the output names ", NameOf(label), " twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Dims EinsumPlan::OutputDims() const {
  Dims dims;
  for (int label : output) dims.push_back(extents.at(label));
  return dims;
}

absl::StatusOr<EinsumPlan> ParseEinsum(absl::string_view equation, absl::Span<const TensorType> types) {
  const std::string text = absl::StrReplaceAll(equation, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() > 2) return absl::InvalidArgumentError(absl::StrCat("equation \"", equation, "\" has several ->"));
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != types.size()) {
    return absl::InvalidArgumentError(absl::StrCat("equation \"", equation, "\" has ", terms.size(), " terms, ",
                                                   types.size(), " operands are given"));
  }
  EinsumPlan plan;
  int ellipsis = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    AGC_ASSIGN_OR_RETURN(const Labels term, ParseTerm(terms[k]));
    const int dots = Has(term, kEllipsis) ? 1 : 0, rest = types[k].rank() - static_cast<int>(term.size()) + dots;
    if (rest < 0 || (dots == 0 && rest != 0)) {
      return absl::InvalidArgumentError(absl::StrCat("term \"", terms[k], "\" names ", term.size() - dots,
                                                     " axes, operand ", k, " is ", ToString(types[k])));
    }
    ellipsis = std::max(ellipsis, rest);
    plan.operands.push_back(Unfold(term, rest));
    AGC_RETURN_IF_ERROR(AddExtents(plan.operands.back(), types[k].dims, plan));
  }
  plan.output = ImplicitOutput(plan, ellipsis);
  if (sides.size() == 2) {
    AGC_ASSIGN_OR_RETURN(const Labels term, ParseTerm(sides[1]));
    plan.output = Unfold(term, ellipsis);
  }
  AGC_RETURN_IF_ERROR(CheckOutput(plan));
  return plan;
}

// ---------------------------------------------------------------- building

namespace {

struct Factor {
  Value v = {};
  Labels labels = {};
};
using Extents = std::map<int, int64_t>;

int64_t Product(const Labels& labels, const Extents& extents) {
  int64_t n = 1;
  for (int label : labels) n *= extents.at(label);
  return n;
}
Dims DimsOf(const Labels& labels, const Extents& extents) {
  Dims dims;
  for (int label : labels) dims.push_back(extents.at(label));
  return dims;
}

void DropAxis(Factor& f, size_t axis) {
  f.v = Squeeze(f.v, {static_cast<int64_t>(axis)});
  f.labels.erase(f.labels.begin() + static_cast<int64_t>(axis));
}

// Each label once: axes of 1 that broadcast go, repeated labels become their diagonal.
Factor Prepared(Value v, const Labels& labels, const Extents& extents) {
  Factor f{v, labels};
  for (size_t k = f.labels.size(); k-- > 0;) {
    if (f.v.dim(static_cast<int>(k)) != extents.at(f.labels[k])) DropAxis(f, k);
  }
  for (size_t k = f.labels.size(); k-- > 0;) {
    const int label = f.labels[k];
    const auto* first = std::find(f.labels.begin(), f.labels.end(), label);
    const int64_t at = first - f.labels.begin();
    if (at == static_cast<int64_t>(k)) continue;
    f.v = Diagonal(f.v, 0, at, static_cast<int64_t>(k));
    f.labels.erase(f.labels.begin() + static_cast<int64_t>(k));
    f.labels.erase(f.labels.begin() + at);
    f.labels.push_back(label);
    k = f.labels.size();
  }
  return f;
}

Factor Ordered(const Factor& f, const Labels& order) {
  Ints perm;
  for (int label : order) perm.push_back(std::find(f.labels.begin(), f.labels.end(), label) - f.labels.begin());
  return {std::is_sorted(perm.begin(), perm.end()) ? f.v : Transpose(f.v, perm), order};
}

// Sums over what is not in `kept`.
Factor Summed(const Factor& f, const Labels& kept) {
  Ints axes;
  Labels left;
  for (size_t k = 0; k < f.labels.size(); ++k) {
    if (Has(kept, f.labels[k])) left.push_back(f.labels[k]);
    if (!Has(kept, f.labels[k])) axes.push_back(static_cast<int64_t>(k));
  }
  return axes.empty() ? f : Factor{ReduceSum(f.v, axes), left};
}

// The labels of two factors by where they occur: in both and kept, in both and summed over, in one alone.
struct Sides {
  Labels batch = {}, inner = {}, left = {}, right = {};
  Labels Result() const {
    Labels all = batch;
    all.insert(all.end(), left.begin(), left.end());
    all.insert(all.end(), right.begin(), right.end());
    return all;
  }
};
Sides SidesOf(const Factor& a, const Factor& b, const Labels& kept) {
  Sides s;
  for (int label : a.labels) {
    if (!Has(b.labels, label)) s.left.push_back(label);
    if (Has(b.labels, label)) (Has(kept, label) ? s.batch : s.inner).push_back(label);
  }
  for (int label : b.labels) {
    if (!Has(a.labels, label)) s.right.push_back(label);
  }
  return s;
}

Labels Joined(const Labels& a, const Labels& b, const Labels& c) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// One product of two factors that have no label to be summed over for themselves.
Factor Multiplied(const Factor& a, const Factor& b, const Labels& kept, const Extents& extents) {
  const Sides s = SidesOf(a, b, kept);
  const Labels result = s.Result();
  const Value left = Ordered(a, Joined(s.batch, s.left, s.inner)).v;
  const Value right = Ordered(b, Joined(s.batch, s.inner, s.right)).v;
  if (s.inner.empty()) {  // nothing to sum over: an elementwise product
    Ints shape_a = DimsOf(Joined(s.batch, s.left, {}), extents), shape_b = DimsOf(s.batch, extents);
    shape_a.insert(shape_a.end(), s.right.size(), 1);
    shape_b.insert(shape_b.end(), s.left.size(), 1);
    for (int label : s.right) shape_b.push_back(extents.at(label));
    return {Reshape(left, shape_a) * Reshape(right, shape_b), result};
  }
  const int64_t batch = Product(s.batch, extents), m = Product(s.left, extents), n = Product(s.right, extents),
                k = Product(s.inner, extents);
  const bool plain = s.batch.empty();
  const Value y = plain ? Matmul(Reshape(left, {m, k}), Reshape(right, {k, n}))
                        : Matmul(Reshape(left, {batch, m, k}), Reshape(right, {batch, k, n}));
  return {Reshape(y, DimsOf(result, extents)), result};
}

// Labels that the output or a factor other than a and b has.
Labels KeptBy(const std::vector<Factor>& factors, size_t a, size_t b, const Labels& output) {
  Labels kept = output;
  for (size_t k = 0; k < factors.size(); ++k) {
    if (k != a && k != b) kept.insert(kept.end(), factors[k].labels.begin(), factors[k].labels.end());
  }
  return kept;
}

// The pair whose product has fewest elements more than its factors.
std::pair<size_t, size_t> BestPair(const std::vector<Factor>& factors, const Labels& output, const Extents& extents) {
  std::pair<size_t, size_t> best = {0, 1};
  double least = 0;
  const auto size = [&](const Labels& labels) {
    double n = 1;
    for (int label : labels) n *= static_cast<double>(extents.at(label));
    return n;
  };
  for (size_t a = 0; a < factors.size(); ++a) {
    for (size_t b = a + 1; b < factors.size(); ++b) {
      const Labels kept = KeptBy(factors, a, b, output);
      Labels result;
      for (int label : SidesOf(factors[a], factors[b], kept).Result()) {
        if (Has(kept, label)) result.push_back(label);
      }
      const double cost = size(result) - size(factors[a].labels) - size(factors[b].labels);
      if ((a == 0 && b == 1) || cost < least) {
        least = cost;
        best = {a, b};
      }
    }
  }
  return best;
}

}  // namespace

Value BuildEinsum(const EinsumPlan& plan, absl::Span<const Value> xs) {
  const DType dtype = xs[0].dtype(), acc = AccumulatorOf(dtype);
  std::vector<Factor> factors;
  bool sums_first = xs.size() > 2;
  for (size_t k = 0; k < xs.size(); ++k) {
    factors.push_back(Prepared(xs[k], plan.operands[k], plan.extents));
  }
  for (size_t k = 0; k < factors.size() && xs.size() == 2; ++k) {
    const Labels kept = KeptBy(factors, k, k, plan.output);
    for (int label : factors[k].labels) sums_first = sums_first || !Has(kept, label);
  }
  for (Factor& f : factors) {
    if (sums_first && IsFloat(dtype)) f.v = CastTo(f.v, acc);
  }
  while (factors.size() > 1) {
    const auto [a, b] = BestPair(factors, plan.output, plan.extents);
    const Factor left = Summed(factors[a], KeptBy(factors, a, a, plan.output));
    const Factor right = Summed(factors[b], KeptBy(factors, b, b, plan.output));
    const Labels kept = KeptBy(factors, a, b, plan.output);
    factors[a] = Multiplied(left, right, kept, plan.extents);
    factors.erase(factors.begin() + static_cast<int64_t>(b));
  }
  const Factor last = Ordered(Summed(factors[0], plan.output), plan.output);
  return CastTo(last.v, dtype);
}

}  // namespace agc
