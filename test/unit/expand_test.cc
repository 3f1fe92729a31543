// Expansions of scalar ops into exact ops: their largest errors against the C library in long double, division, square
// roots and remainders to the last bit, the values at the edges, and whole expressions.
#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/eval/strip.h"
#include "ir/expand/expand_expr.h"
#include "ir/expr.h"

namespace agc {
namespace {

struct NoMemory : StripMemory {
  absl::Status Load(const StripLoad&) override { return absl::InternalError("no memory"); }
};

bool Compares(const ScalarOp& op) { return op.typing == ScalarTyping::kCompare; }

// An op's expansion, ready to be evaluated on many operands.
template <typename T>
class Expansion {
 public:
  explicit Expansion(absl::string_view name) : op_(*FindScalarOp(name)) {
    std::vector<Expr> x;
    for (int i = 0; i < op_.arity; ++i) x.push_back(pool_.Var(pool_.Declare({.name = "x", .dtype = kType})));
    m_ = StripMachine(CompileStrip(pool_, {op_.expand(x)}, [](VarId) { return VarRole{}; }), kLanes, EvalMode::kExact);
  }
  const ScalarOp& op() const { return op_; }

  // Element k of the result is of the k-th elements.
  std::vector<T> operator()(const std::vector<std::vector<T>>& x) {
    std::vector<T> out(x[0].size());
    for (size_t start = 0; start < out.size(); start += kLanes) {
      const size_t n = std::min<size_t>(kLanes, out.size() - start);
      std::vector<std::vector<uint64_t>> lanes(x.size(), std::vector<uint64_t>(kLanes));
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t k = 0; k < n; ++k) lanes[i][k] = std::bit_cast<uint64_t>(static_cast<double>(x[i][start + k]));
        m_.BindVar(static_cast<VarId>(i), lanes[i].data());
      }
      EXPECT_TRUE(m_.RunAll(memory_, static_cast<int>(n), nullptr).ok());
      for (size_t k = 0; k < n; ++k) {
        const uint64_t bits = m_.result(0)[k * m_.stride(0)];
        out[start + k] = Compares(op_) ? static_cast<T>(bits) : static_cast<T>(std::bit_cast<double>(bits));
      }
    }
    return out;
  }

 private:
  static constexpr DType kType = sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  static constexpr size_t kLanes = 1024;
  const ScalarOp& op_;
  ExprPool pool_ = {};
  NoMemory memory_ = {};
  StripMachine m_ = {};
};

// Units in the last place of T between `got` and the exact value; infinite where only one is NaN or infinite.
template <typename T>
double UlpsBetween(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : HUGE_VAL;
  const T most = std::numeric_limits<T>::max();
  if (std::isinf(got) && std::isinf(rounded)) return got == rounded ? 0 : HUGE_VAL;
  if (std::isinf(rounded)) return std::abs(got) == most ? 1 : HUGE_VAL;
  const T size = std::abs(rounded) == most ? std::nextafter(most, T{0}) : std::abs(rounded);
  const T unit = std::nextafter(size, std::numeric_limits<T>::infinity()) - size;
  return std::abs(static_cast<double>((static_cast<long double>(got) - want) / unit));
}

// Half of them uniform in [-limit, limit], half of them random bits.
template <typename T>
std::vector<std::vector<T>> Operands(int arity, size_t n, double limit) {
  std::mt19937_64 random(7);
  std::vector<std::vector<T>> x(static_cast<size_t>(arity), std::vector<T>(n));
  for (auto& column : x) {
    for (size_t k = 0; k < n; ++k) {
      const uint64_t word = random();
      if (k % 2 == 0) {
        column[k] = static_cast<T>((static_cast<double>(word >> 11) * 0x1p-52 - 1) * limit);
      } else if constexpr (sizeof(T) == 4) {
        column[k] = std::bit_cast<float>(static_cast<uint32_t>(word));
      } else {
        column[k] = std::bit_cast<double>(word);
      }
    }
  }
  return x;
}

using X = const long double*;
struct Case {
  const char* op;
  long double (*f)(X x);
  double limit;
  double ulps;  // allowed, in either format
};
// clang-format off
constexpr Case kCases[] = {
    {"acos", [](X x) { return acosl(x[0]); }, 1, 1.3},
    {"acosh", [](X x) { return acoshl(x[0]); }, 4, 1.8},
    {"asin", [](X x) { return asinl(x[0]); }, 1, 2.5},
    {"asinh", [](X x) { return asinhl(x[0]); }, 4, 1.8},
    {"atan", [](X x) { return atanl(x[0]); }, 4, 0.9},
    {"atan2", [](X x) { return atan2l(x[0], x[1]); }, 4, 1.5},
    {"atanh", [](X x) { return atanhl(x[0]); }, 1, 2},
    {"cbrt", [](X x) { return cbrtl(x[0]); }, 4, 0.6},
    {"cos", [](X x) { return cosl(x[0]); }, 100, 0.9},
    {"cosh", [](X x) { return coshl(x[0]); }, 4, 1.8},
    {"div", [](X x) { return x[0] / x[1]; }, 100, 0.501},
    {"erf", [](X x) { return erfl(x[0]); }, 4, 1.2},
    {"erfc", [](X x) { return erfcl(x[0]); }, 10, 4},
    {"exp", [](X x) { return expl(x[0]); }, 80, 1},
    {"exp2", [](X x) { return exp2l(x[0]); }, 100, 1},
    {"expm1", [](X x) { return expm1l(x[0]); }, 4, 2},
    {"log", [](X x) { return logl(x[0]); }, 4, 0.9},
    {"log10", [](X x) { return log10l(x[0]); }, 4, 2},
    {"log1p", [](X x) { return log1pl(x[0]); }, 4, 0.9},
    {"log2", [](X x) { return log2l(x[0]); }, 4, 1.6},
    {"pow", [](X x) { return powl(x[0], x[1]); }, 8, 1.2},
    {"rsqrt", [](X x) { return 1 / sqrtl(x[0]); }, 100, 1.6},
    {"sin", [](X x) { return sinl(x[0]); }, 100, 0.9},
    {"sinh", [](X x) { return sinhl(x[0]); }, 4, 2.2},
    {"sqrt", [](X x) { return sqrtl(x[0]); }, 100, 0.501},
    {"tan", [](X x) { return tanl(x[0]); }, 4, 2.3},
    {"tanh", [](X x) { return tanhl(x[0]); }, 4, 2.5},
};
// clang-format on

template <typename T>
double WorstError(const Case& c, size_t n) {
  Expansion<T> e(c.op);
  const auto x = Operands<T>(e.op().arity, n, c.limit);
  const std::vector<T> got = e(x);
  double worst = 0;
  for (size_t k = 0; k < n; ++k) {
    const long double args[2] = {x[0][k], x.size() > 1 ? x[1][k] : 0};
    worst = std::max(worst, UlpsBetween<T>(got[k], c.f(args)));
  }
  return worst;
}

TEST(Expand, MaximumErrors) {
  for (const Case& c : kCases) {
    const double f32 = WorstError<float>(c, 8000), f64 = WorstError<double>(c, 8000);
    std::printf("%-6s %.2f ulp in f32, %.2f ulp in f64\n", c.op, f32, f64);
    EXPECT_LE(f32, c.ulps) << c.op;
    EXPECT_LE(f64, c.ulps) << c.op;
  }
}

template <typename T>
bool SameBits(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST(Expand, DivisionAndRootsAreRoundedCorrectly) {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    Expansion<T> div("div"), sqrt("sqrt");
    const auto x = Operands<T>(2, 60000, 3);
    const std::vector<T> quotients = div(x), roots = sqrt({x[0]});
    for (size_t k = 0; k < quotients.size(); ++k) {
      ASSERT_TRUE(SameBits<T>(quotients[k], x[0][k] / x[1][k])) << x[0][k] << " / " << x[1][k] << " = " << quotients[k];
      ASSERT_TRUE(SameBits<T>(roots[k], std::sqrt(x[0][k]))) << "sqrt " << x[0][k] << " = " << roots[k];
    }
  };
  check(float{});
  check(double{});
}

// Also of quotients with hundreds of digits, and of subnormal numbers.
TEST(Expand, RemaindersAreExact) {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    Expansion<T> rem("rem");
    auto x = Operands<T>(2, 60000, 3);
    for (size_t k = 0; k < x[0].size(); k += 5) x[1][k] = std::numeric_limits<T>::denorm_min() * static_cast<T>(k + 1);
    for (size_t k = 1; k < x[0].size(); k += 5)
      x[0][k] = x[1][k] * static_cast<T>(k);  // multiples, most of them rounded
    const std::vector<T> got = rem(x);
    for (size_t k = 0; k < got.size(); ++k)
      ASSERT_TRUE(SameBits<T>(got[k], std::fmod(x[0][k], x[1][k]))) << x[0][k] << " rem " << x[1][k] << " = " << got[k];
  };
  check(float{});
  check(double{});
}

// Zeros, units, halves, subnormals, the largest numbers, infinities and NaN, in every pairing.
TEST(Expand, EdgesAreThoseOfTheOp) {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min(), kMost = std::numeric_limits<float>::max();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> edges;
  for (float v : {0.0f, 0.5f, 1.0f, 2.0f, 3.0f, 1e-30f, 1e30f, 16777216.0f, kTiny, 1e-40f, kMost, kInf})
    edges.insert(edges.end(), {v, -v});
  edges.push_back(std::numeric_limits<float>::quiet_NaN());
  for (const ScalarOp& op : ScalarOps()) {
    if (op.expand == nullptr) continue;
    std::vector<std::vector<float>> x(static_cast<size_t>(op.arity));
    for (float a : edges) {
      for (float b : op.arity == 1 ? std::vector<float>{0} : edges) {
        x[0].push_back(a);
        if (op.arity == 2) x[1].push_back(b);
      }
    }
    const std::vector<float> got = Expansion<float>(op.name)(x);
    for (size_t k = 0; k < got.size(); ++k) {
      const double args[2] = {x[0][k], op.arity == 2 ? x[1][k] : 0.0};
      const double want = Compares(op) ? op.fp(args) : op.f(args);
      EXPECT_LE(UlpsBetween<float>(got[k], want), 5)
          << op.name << " of " << args[0] << ", " << args[1] << ": " << got[k];
      if (want == 0 || std::isinf(want)) {
        EXPECT_EQ(std::signbit(got[k]), std::signbit(want)) << op.name << " of " << args[0] << ", " << args[1];
      }
    }
  }
}

TEST(Expand, ConstantsFoldToWhatIsComputed) {
  for (const ScalarOp& op : ScalarOps()) {
    if (op.expand == nullptr) continue;
    ExprPool pool;
    const std::vector<Expr> x(static_cast<size_t>(op.arity), Number(pool, DType::kF32, 0.7));
    const Expr folded = Expanded(op, x);
    ASSERT_TRUE(folded.IsConst()) << op.name;
    const std::vector<float> got = Expansion<float>(op.name)(std::vector<std::vector<float>>(x.size(), {0.7f}));
    const Scalar want = Compares(op) ? Scalar::Int(DType::kBool, got[0] != 0) : Scalar::Float(DType::kF32, got[0]);
    EXPECT_EQ((Scalar{folded.dtype(), static_cast<uint64_t>(folded.node().payload)}), want) << op.name;
  }
}

// Half floats are computed in f32 and rounded; ops that nobody wants expanded stay.
TEST(Expand, WholeExpressions) {
  ExprPool pool;
  const Expr x = pool.Var(pool.Declare({.name = "x", .dtype = DType::kF16}));
  const Expr both = Alu("exp", {Alu("sqrt", {x})});
  const Expr e = ExpandAll(both, [](const ScalarOp& op, DType) { return op.name == "exp"; });
  bool sqrt = false, exp = false;
  for (Expr n : PostOrder(e)) {
    sqrt |= n.is(ExprKind::kAlu) && ScalarOps()[n.node().ref].name == "sqrt";
    exp |= n.is(ExprKind::kAlu) && ScalarOps()[n.node().ref].name == "exp";
  }
  EXPECT_TRUE(sqrt);
  EXPECT_FALSE(exp);
  EXPECT_TRUE(e.is(ExprKind::kCast) && e.dtype() == DType::kF16);
  EXPECT_EQ(ExpandAll(both, [](const ScalarOp&, DType) { return false; }), both);
}

}  // namespace
}  // namespace agc
