// Canonical index arithmetic. Every constructor returns a normal form; ranges ride along and decide what folds.
#include <algorithm>
#include <numeric>
#include <utility>

#include "ir/base/status.h"
#include "ir/expr.h"
#include "ir/index_math.h"

namespace agc {
namespace {

// A sum under construction: terms sorted by structure, none with coefficient 0.
struct Sum {
  ExprPool* pool = nullptr;
  std::vector<std::pair<Expr, int64_t>> terms = {};
  int64_t constant = 0;
};

Sum SumOf(Expr e) {
  Sum s{e.pool};
  const ExprNode& n = e.node();
  if (n.kind == ExprKind::kConst) {
    s.constant = n.payload;
  } else if (n.kind == ExprKind::kLin) {
    s.constant = n.payload;
    for (size_t i = 0; i < n.args.size(); ++i) s.terms.emplace_back(e.arg(static_cast<int>(i)), n.coefs[i]);
  } else {
    s.terms.emplace_back(e, 1);
  }
  return s;
}

void AddTerm(Sum& s, Expr atom, int64_t coef) {
  const auto it = std::lower_bound(s.terms.begin(), s.terms.end(), atom,
                                   [](const auto& t, Expr a) { return Compare(t.first, a) < 0; });
  if (it == s.terms.end() || !(it->first == atom)) {
    if (coef != 0) s.terms.insert(it, {atom, coef});
  } else if ((it->second += coef) == 0) {
    s.terms.erase(it);
  }
}

void AddScaled(Sum& s, Expr e, int64_t scale) {
  const Sum other = SumOf(e);
  for (const auto& [atom, coef] : other.terms) AddTerm(s, atom, coef * scale);
  s.constant += other.constant * scale;
}

// c*(x % m) + c*m*(x / m) = c*x and c*(x % m) + c*m*((x / m) % b) = c*(x % (m*b)); true if one was applied.
bool RecombineOnce(Sum& s) {
  for (const auto& [atom, c] : s.terms) {
    if (!atom.is(ExprKind::kMod)) continue;
    const Expr mod = atom, x = atom.arg(0);
    const int64_t m = atom.node().payload, coef = c;
    const Expr q = Div(x, m);
    if (!q.IsConst() && !q.is(ExprKind::kLin) && CoefficientOf(s.terms, q) == coef * m) {
      AddTerm(s, mod, -coef);
      AddTerm(s, q, -coef * m);
      AddScaled(s, x, coef);
      return true;
    }
    for (const auto& [other, d] : s.terms) {
      if (!other.is(ExprKind::kMod) || !(other.arg(0) == q) || d != coef * m) continue;
      const Expr outer = other;
      const int64_t b = outer.node().payload;
      AddTerm(s, mod, -coef);
      AddTerm(s, outer, -coef * m);
      AddScaled(s, Mod(x, m * b), coef);
      return true;
    }
  }
  return false;
}

Expr Build(Sum s) {
  while (RecombineOnce(s)) {
  }
  if (s.terms.empty()) return s.pool->Int(s.constant);
  if (s.terms.size() == 1 && s.terms[0].second == 1 && s.constant == 0) return s.terms[0].first;
  ExprNode node{.kind = ExprKind::kLin, .payload = s.constant};
  __int128 lo = s.constant, hi = s.constant;
  for (const auto& [atom, c] : s.terms) {
    node.args.push_back(atom.id);
    node.coefs.push_back(c);
    const ExprNode& a = atom.node();
    lo += static_cast<__int128>(c) * (c > 0 ? a.lo : a.hi);
    hi += static_cast<__int128>(c) * (c > 0 ? a.hi : a.lo);
  }
  node.lo = SaturatedIndex(lo);
  node.hi = SaturatedIndex(hi);
  return s.pool->Add(std::move(node));
}

// e = c*q + r: every term divisible by c goes to q; constants split with floor.
std::pair<Expr, Expr> SplitDiv(Expr e, int64_t c) {
  const Sum s = SumOf(e);
  Sum q{e.pool}, r{e.pool};
  for (const auto& [atom, coef] : s.terms) {
    if (coef % c == 0) q.terms.emplace_back(atom, coef / c);
    if (coef % c != 0) r.terms.emplace_back(atom, coef);
  }
  q.constant = FloorDiv(s.constant, c);
  r.constant = s.constant - q.constant * c;
  return {Build(std::move(q)), Build(std::move(r))};
}

// The largest g > 1 dividing c with r = g*y + s and 0 <= s < g; 0 if there is none.
int64_t CommonFactor(Expr r, int64_t c) {
  std::vector<int64_t> candidates;
  for (const auto& [atom, coef] : SumOf(r).terms) candidates.push_back(std::gcd(coef, c));
  std::sort(candidates.begin(), candidates.end(), std::greater<>());
  for (int64_t g : candidates) {
    if (g <= 1) break;
    const auto [y, s] = SplitDiv(r, g);
    if (s.node().lo >= 0 && s.node().hi < g && !(s == r)) return g;
  }
  return 0;
}

// The smallest multiple of c that makes x non-negative: printed division and remainder are unsigned.
int64_t Bias(int64_t lo, int64_t c) { return lo < 0 ? -FloorDiv(lo, c) : 0; }

}  // namespace

Expr operator+(Expr a, Expr b) {
  if (a.dtype() != DType::kIndex) return Alu("add", {a, b});
  Sum s = SumOf(a);
  AddScaled(s, b, 1);
  return Build(std::move(s));
}

Expr operator-(Expr a, Expr b) {
  if (a.dtype() != DType::kIndex) return Alu("sub", {a, b});
  Sum s = SumOf(a);
  AddScaled(s, b, -1);
  return Build(std::move(s));
}

Expr operator*(Expr a, Expr b) {
  if (a.dtype() != DType::kIndex) return Alu("mul", {a, b});
  if (a.IsConst()) std::swap(a, b);
  AGC_CHECK(b.IsConst());
  return a * b.node().payload;
}

Expr operator+(Expr a, int64_t b) {
  return a.dtype() == DType::kIndex ? a + a.pool->Int(b) : a + Number(*a.pool, a.dtype(), static_cast<double>(b));
}
Expr operator-(Expr a, int64_t b) {
  return a.dtype() == DType::kIndex ? a - a.pool->Int(b) : a - Number(*a.pool, a.dtype(), static_cast<double>(b));
}
Expr operator*(Expr a, int64_t b) {
  if (a.dtype() != DType::kIndex) return a * Number(*a.pool, a.dtype(), static_cast<double>(b));
  Sum s{a.pool};
  AddScaled(s, a, b);
  return Build(std::move(s));
}

namespace {

Expr NewDiv(Expr e, int64_t c) {
  const auto [q, r] = SplitDiv(e, c);
  const int64_t lo = r.node().lo, hi = r.node().hi;
  if (FloorDiv(lo, c) == FloorDiv(hi, c)) return q + FloorDiv(lo, c);
  if (const int64_t g = CommonFactor(r, c); g != 0) return q + Div(SplitDiv(r, g).first, c / g);
  if (r.is(ExprKind::kDiv)) return q + Div(r.arg(0), r.node().payload * c);
  const int64_t n = Bias(lo, c);
  const Expr biased = r + n * c;
  const Expr quotient = e.pool->Add({.kind = ExprKind::kDiv,
                                     .payload = c,
                                     .args = {biased.id},
                                     .lo = FloorDiv(lo, c) + n,
                                     .hi = FloorDiv(hi, c) + n});
  return q + quotient - n;
}

// x % m adds a multiple of m to x, which does not matter where that is one of c: (k*(x % m) + y) % c = (k*x + y) % c.
Expr WithoutIdleMods(Expr e, int64_t c) {
  Sum all = SumOf(e);
  Sum sum{e.pool, {}, all.constant};
  for (const auto& [atom, coef] : all.terms) {
    const bool idle = atom.is(ExprKind::kMod) && static_cast<__int128>(coef) * atom.node().payload % c == 0;
    AddScaled(sum, idle ? atom.arg(0) : atom, coef);
  }
  return Build(std::move(sum));
}

Expr NewMod(Expr e, int64_t c) {
  const Expr r = SplitDiv(e, c).second;
  const int64_t lo = r.node().lo, hi = r.node().hi;
  if (FloorDiv(lo, c) == FloorDiv(hi, c)) return r - FloorDiv(lo, c) * c;
  if (const int64_t g = CommonFactor(r, c); g != 0) {
    const auto [y, s] = SplitDiv(r, g);
    return Mod(y, c / g) * g + s;
  }
  if (const Expr plain = WithoutIdleMods(r, c); !(plain == r)) return Mod(plain, c);
  const Expr biased = r + Bias(lo, c) * c;
  return e.pool->Add({.kind = ExprKind::kMod, .payload = c, .args = {biased.id}, .lo = 0, .hi = c - 1});
}

}  // namespace

Expr Div(Expr e, int64_t c) {
  AGC_CHECK(c > 0);
  if (c == 1) return e;
  const std::pair<ExprId, int64_t> key = {e.id, c};
  if (const auto it = e.pool->quotients_.find(key); it != e.pool->quotients_.end()) return {e.pool, it->second};
  const Expr quotient = NewDiv(e, c);
  e.pool->quotients_.emplace(key, quotient.id);
  return quotient;
}

Expr Mod(Expr e, int64_t c) {
  AGC_CHECK(c > 0);
  if (c == 1) return e.pool->Int(0);
  const std::pair<ExprId, int64_t> key = {e.id, c};
  if (const auto it = e.pool->remainders_.find(key); it != e.pool->remainders_.end()) return {e.pool, it->second};
  const Expr remainder = NewMod(e, c);
  e.pool->remainders_.emplace(key, remainder.id);
  return remainder;
}

Expr Min(Expr e, int64_t c) {
  if (e.node().hi <= c) return e;
  if (e.node().lo >= c) return e.pool->Int(c);
  return e.pool->Add({.kind = ExprKind::kMin, .payload = c, .args = {e.id}, .lo = e.node().lo, .hi = c});
}

Expr Max(Expr e, int64_t c) {
  if (e.node().lo >= c) return e;
  if (e.node().hi <= c) return e.pool->Int(c);
  return e.pool->Add({.kind = ExprKind::kMax, .payload = c, .args = {e.id}, .lo = c, .hi = e.node().hi});
}

bool Divisible(Expr e, int64_t c) {
  const Sum s = SumOf(e);
  return s.constant % c == 0 &&
         std::all_of(s.terms.begin(), s.terms.end(), [&](const auto& t) { return t.second % c == 0; });
}

Expr InRange(Expr x, int64_t n) {
  const int64_t lo = x.node().lo, hi = x.node().hi;
  if (lo >= 0 && hi < n) return x.pool->Bool(true);
  if (hi < 0 || lo >= n) return x.pool->Bool(false);
  return x.pool->Add({.kind = ExprKind::kInRange, .dtype = DType::kBool, .payload = n, .args = {x.id}});
}

Expr NonNeg(Expr x) {
  if (x.node().lo >= 0) return x.pool->Bool(true);
  if (x.node().hi < 0) return x.pool->Bool(false);
  return x.pool->Add({.kind = ExprKind::kNonNeg, .dtype = DType::kBool, .args = {x.id}});
}

Expr EqZero(Expr x) {
  if (x.node().lo == 0 && x.node().hi == 0) return x.pool->Bool(true);
  if (x.node().lo > 0 || x.node().hi < 0) return x.pool->Bool(false);
  return x.pool->Add({.kind = ExprKind::kEqZero, .dtype = DType::kBool, .args = {x.id}});
}

}  // namespace agc
