// Random index arithmetic and guards: what the pool's constructors make of them has the value that exact arithmetic
// gives at every point tried, a range that holds it, and is left as it is when it is built again.
//   build/test/index_fuzz_test                                            the same expressions each time
//   build/test/index_fuzz_test --gtest_shuffle --gtest_repeat=1000        others in every round
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "absl/strings/str_cat.h"
#include "ir/text/text.h"

namespace agc {
namespace {

using Point = std::vector<int64_t>;  // by variable
using Value = std::function<int64_t(const Point&)>;

int64_t FloorDiv(int64_t a, int64_t c) { return a / c - (a % c < 0 ? 1 : 0); }

// An expression with what it means, taken from how it was made and not from its node.
struct Meant {
  Expr e;
  Value value;
};

class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {
    for (int v = 0; v < 4; ++v) {
      const int64_t lo = v == 3 ? -int64_t{Below(5)} : 0;
      pool.Declare({.name = absl::StrCat("v", v), .lo = lo, .hi = lo + Below(40)});
    }
  }

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  Point RandomPoint() {
    Point p;
    for (VarId v = 0; v < pool.vars(); ++v)
      p.push_back(pool.var(v).lo + Below(static_cast<int>(pool.var(v).hi - pool.var(v).lo) + 1));
    return p;
  }

  Meant Index(int depth) {
    if (depth == 0) return Leaf();
    const Meant a = Index(depth - 1 - Below(2) * (depth > 1 ? 1 : 0));
    const int64_t c = kDivisors[Below(std::size(kDivisors))], s = Below(81) - 40;
    switch (Below(8)) {
      case 0:
      case 1: {
        const Meant b = Index(depth - 1);
        return {a.e + b.e, [a, b](const Point& p) { return a.value(p) + b.value(p); }};
      }
      case 2: {
        const Meant b = Index(depth - 1);
        return {a.e - b.e, [a, b](const Point& p) { return a.value(p) - b.value(p); }};
      }
      case 3:
        return {a.e * (s % 8), [a, s](const Point& p) { return a.value(p) * (s % 8); }};
      case 4:
        return {Div(a.e, c), [a, c](const Point& p) { return FloorDiv(a.value(p), c); }};
      case 5:
        return {Mod(a.e, c), [a, c](const Point& p) { return a.value(p) - c * FloorDiv(a.value(p), c); }};
      case 6:
        return {Min(a.e, s), [a, s](const Point& p) { return std::min(a.value(p), s); }};
      default:
        return {Max(a.e, s), [a, s](const Point& p) { return std::max(a.value(p), s); }};
    }
  }

  Meant Guard(int depth) {
    const int kind = Below(depth > 0 ? 6 : 3);
    if (kind > 2) {
      const Meant a = Guard(depth - 1), b = Guard(depth - 1);
      if (kind == 3) return {And(a.e, b.e), [a, b](const Point& p) { return a.value(p) & b.value(p); }};
      if (kind == 4) return {Or(a.e, b.e), [a, b](const Point& p) { return a.value(p) | b.value(p); }};
      return {Not(a.e), [a](const Point& p) { return 1 - a.value(p); }};
    }
    const Meant a = Index(2);
    const int64_t n = 1 + Below(30);
    if (kind == 0) return {InRange(a.e, n), [a, n](const Point& p) { return a.value(p) >= 0 && a.value(p) < n; }};
    if (kind == 1) return {NonNeg(a.e), [a](const Point& p) { return a.value(p) >= 0; }};
    return {EqZero(a.e), [a](const Point& p) { return a.value(p) == 0; }};
  }

  // select(guard, a, b) of integers.
  Meant Choice() {
    const Meant g = Guard(2), a = Index(2), b = Index(2);
    return {Select(g.e, FromIndex(a.e, DType::kI32), FromIndex(b.e, DType::kI32)),
            [g, a, b](const Point& p) { return g.value(p) != 0 ? a.value(p) : b.value(p); }};
  }

  ExprPool pool = {};

 private:
  static constexpr int64_t kDivisors[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 28, 64};

  Meant Leaf() {
    if (Below(4) == 0) {
      const int64_t c = Below(61) - 30;
      return {pool.Int(c), [c](const Point&) { return c; }};
    }
    const auto v = static_cast<VarId>(Below(4));
    return {pool.Var(v), [v](const Point& p) { return p[v]; }};
  }

  std::mt19937 random_;
};

// What the node says, with the definitions of ir/expr.h.
int64_t Evaluate(Expr e, const Point& p) {
  const ExprNode& n = e.node();
  const auto arg = [&](int i) { return Evaluate(e.arg(i), p); };
  switch (n.kind) {
    case ExprKind::kConst:
      return Scalar{n.dtype, static_cast<uint64_t>(n.payload)}.i();
    case ExprKind::kVar:
      return p[n.ref];
    case ExprKind::kLin: {
      int64_t sum = n.payload;
      for (size_t i = 0; i < n.args.size(); ++i) sum += n.coefs[i] * arg(static_cast<int>(i));
      return sum;
    }
    case ExprKind::kDiv:
      return FloorDiv(arg(0), n.payload);
    case ExprKind::kMod:
      return arg(0) - n.payload * FloorDiv(arg(0), n.payload);
    case ExprKind::kMin:
      return std::min(arg(0), n.payload);
    case ExprKind::kMax:
      return std::max(arg(0), n.payload);
    case ExprKind::kInRange:
      return arg(0) >= 0 && arg(0) < n.payload;
    case ExprKind::kNonNeg:
      return arg(0) >= 0;
    case ExprKind::kEqZero:
      return arg(0) == 0;
    case ExprKind::kFromIndex:
      return arg(0);
    case ExprKind::kAnd: {
      int64_t all = 1;
      for (size_t i = 0; i < n.args.size(); ++i) all &= arg(static_cast<int>(i));
      return all;
    }
    case ExprKind::kAlu: {
      absl::InlinedVector<Scalar, 3> args;
      for (size_t i = 0; i < n.args.size(); ++i)
        args.push_back(Scalar::Int(e.arg(static_cast<int>(i)).dtype(), arg(static_cast<int>(i))));
      return Apply(ScalarOps()[n.ref], args).i();
    }
    default:
      ADD_FAILURE() << "no index arithmetic makes a node of kind " << static_cast<int>(n.kind);
      return 0;
  }
}

// The expression made anew, node by node, through the constructors.
Expr Again(Expr e) {
  Substitution s{.pool = e.pool};
  for (VarId v = 0; v < e.pool->vars(); ++v) s.vars[v] = e.pool->Var(v);
  return Substitute(e, s);
}

void Check(Maker& maker, const Meant& meant, int points) {
  const Expr again = Again(meant.e);
  ASSERT_EQ(again.id.index, meant.e.id.index)
      << PrintExpr(maker.pool, meant.e.id, {}) << " becomes " << PrintExpr(maker.pool, again.id, {});
  for (int i = 0; i < points; ++i) {
    const Point p = maker.RandomPoint();
    const int64_t want = meant.value(p), got = Evaluate(meant.e, p);
    ASSERT_EQ(got, want) << PrintExpr(maker.pool, meant.e.id, {});
    if (meant.e.dtype() != DType::kIndex) continue;
    ASSERT_GE(got, meant.e.node().lo) << PrintExpr(maker.pool, meant.e.id, {});
    ASSERT_LE(got, meant.e.node().hi) << PrintExpr(maker.pool, meant.e.id, {});
  }
}

uint32_t Seed() { return 1 + 10000 * static_cast<uint32_t>(testing::UnitTest::GetInstance()->random_seed()); }

TEST(IndexFuzz, ArithmeticKeepsItsValueItsRangeAndItsForm) {
  for (uint32_t n = 0; n < 3000; ++n) {
    Maker maker(Seed() + n);
    Check(maker, maker.Index(1 + static_cast<int>(n % 6)), 20);
    if (HasFatalFailure()) FAIL() << "seed " << Seed() + n;
  }
}

TEST(IndexFuzz, GuardsAndChoicesKeepTheirValueAndTheirForm) {
  for (uint32_t n = 0; n < 3000; ++n) {
    Maker maker(Seed() + n);
    Check(maker, n % 3 == 0 ? maker.Choice() : maker.Guard(3), 20);
    if (HasFatalFailure()) FAIL() << "seed " << Seed() + n;
  }
}

}  // namespace
}  // namespace agc
