// Cumulative and linear-algebra ops: long axes against loops, awkward elements, and equations against a sum over all
// labels.
#include <functional>

#include "test/unit/e2e_tools.h"
#include "test/unit/value_scene.h"

namespace agc::test {
namespace {

using ::testing::ElementsAre;
using V = std::vector<double>;
using agc::Tensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

HostTensor Vector(const V& values) { return TensorOf({kF64, {static_cast<int64_t>(values.size())}}, values); }

// The outputs of a graph over inputs x0, x1, ... with these values, in f64.
template <typename F>
std::map<std::string, HostTensor> Traced(const std::vector<HostTensor>& inputs, F fn) {
  Module m("m");
  EvalInputs in;
  m.Graph("g", [&](Trace& t) {
    std::vector<Tensor> x;
    for (const HostTensor& input : inputs) {
      const std::string name = absl::StrCat("x", x.size());
      x.push_back(t.Input(name, input.type.dtype, input.type.dims));
      in.params[name] = input;
    }
    fn(t, x);
  });
  EXPECT_TRUE(m.status().ok()) << m.status();
  return Evaluated(m.program(), "g", in).outputs;
}

// ---------------------------------------------------------------- cumulative

// f(so far, element) one after the other.
V Accumulate(const V& x, double first, CumulativeOptions o, const std::function<double(double, double)>& f) {
  V y(x.size());
  double so_far = first;
  for (size_t k = 0; k < x.size(); ++k) {
    const size_t at = o.reverse ? x.size() - 1 - k : k;
    const double next = f(so_far, x[at]);
    y[at] = o.exclusive ? so_far : next;
    so_far = next;
  }
  return y;
}
double LogAddExp(double a, double b) {
  const double m = std::max(a, b);
  return std::isinf(m) ? m : m + std::log(std::exp(a - m) + std::exp(b - m));
}

// Lengths around the limits of blocks and of blocks of blocks; 100,000 is on the device (e2e_shape_test.cc).
TEST(Cumulative, LongAxesEqualALoop) {
  for (int64_t n : {1, 31, 64, 65, 97, 2048, 2049, 5000}) {
    const HostTensor x = Random({kF64, {n}}, -1, 1, static_cast<uint32_t>(n));
    for (const CumulativeOptions o : {CumulativeOptions{}, {.reverse = true}, {.exclusive = true}, {true, true}}) {
      const auto y = Traced({x}, [&](Trace& t, const std::vector<Tensor>& x) {
        t.Output("sum", CumSum(x[0], 0, o));
        t.Output("product", CumProd(x[0] * 0.01 + 1.0, 0, o));
        t.Output("max", CumMax(x[0], 0, o));
        t.Output("min", CumMin(x[0], 0, o));
        t.Output("log", LogCumSumExp(x[0] * 30.0, 0, o));
      });
      const V v = Numbers(x);
      V near_one, wide;
      for (double e : v) near_one.push_back(e * 0.01 + 1), wide.push_back(e * 30);
      const auto same = [&](const char* name, const V& want) {
        EXPECT_LE(ErrorOf(y.at(name), Vector(want)), 1e-11) << name << " of " << n;
      };
      same("sum", Accumulate(v, 0, o, std::plus<double>()));
      same("product", Accumulate(near_one, 1, o, std::multiplies<double>()));
      same("max", Accumulate(v, -kInfinity, o, [](double a, double b) { return std::max(a, b); }));
      same("min", Accumulate(v, kInfinity, o, [](double a, double b) { return std::min(a, b); }));
      same("log", Accumulate(wide, -kInfinity, o, LogAddExp));
    }
  }
}

// The gradient of sum(y * w) of long axes against the same by a loop: h[t] = a[t] h[t-1] + b[t].
TEST(Cumulative, LongRecurrencesAndTheirGradientsEqualALoop) {
  constexpr int n = 1500;
  const HostTensor a = Random({kF64, {n}}, -1, 1, 1), b = Random({kF64, {n}}, -1, 1, 2),
                   w = Random({kF64, {n}}, -1, 1, 3);
  const auto y = Traced({a, b, w}, [](Trace& t, const std::vector<Tensor>& x) {
    const Tensor h = LinearRecurrence(x[0], x[1], 0);
    t.Output("h", h);
    t.Output("da", Gradient(ReduceSum(h * x[2]), x[0]));
    t.Output("db", Gradient(ReduceSum(h * x[2]), x[1]));
  });
  V h(n), da(n), db(n);
  for (int k = 0; k < n; ++k) h[k] = a.at(k).f() * (k > 0 ? h[k - 1] : 0) + b.at(k).f();
  for (int k = n - 1; k >= 0; --k) {
    db[k] = w.at(k).f() + (k + 1 < n ? a.at(k + 1).f() * db[k + 1] : 0);
    da[k] = db[k] * (k > 0 ? h[k - 1] : 0);
  }
  EXPECT_LE(ErrorOf(y.at("h"), Vector(h)), 1e-12);
  EXPECT_LE(ErrorOf(y.at("da"), Vector(da)), 1e-12);
  EXPECT_LE(ErrorOf(y.at("db"), Vector(db)), 1e-12);
}

// The derivative of each product by each factor, zeros among them, to second order.
TEST(Cumulative, GradientsOfProductsNeedNoDivision) {
  const auto y = Traced({Vector({2, 0, 3, 0, 5})}, [](Trace& t, const std::vector<Tensor>& x) {
    const Tensor d = Gradient(ReduceSum(CumProd(x[0], 0)), x[0]);
    t.Output("d", d);
    t.Output("dd", Gradient(ReduceSum(d), x[0]));
    t.Output("exclusive", Gradient(ReduceSum(CumProd(x[0], 0, {.reverse = true, .exclusive = true})), x[0]));
  });
  // y = a + ab + abc + abcd + abcde
  EXPECT_THAT(Numbers(y.at("d")), ElementsAre(1, 2 + 6, 0, 0, 0));
  EXPECT_THAT(Numbers(y.at("dd")), ElementsAre(1 + 3, 1 + 3 + 2 + 6 * 1 + 30, 2 + 0, 6 + 30, 0));
  // y = bcde + cde + de + e + 1
  EXPECT_THAT(Numbers(y.at("exclusive")), ElementsAre(0, 0, 0, 5 + 15, 1));
}

TEST(Cumulative, TheFirstOfEqualsWins) {
  const auto y =
      Traced({Vector({1, 3, 3, 2, 4, 4}), Vector({-kInfinity, -kInfinity, 1}), Vector({1, kNan, 5, kNan})},
             [](Trace& t, const std::vector<Tensor>& x) {
               t.Output("d", Gradient(ReduceSum(CumMax(x[0], 0)), x[0]));
               t.Output("back", Gradient(ReduceSum(CumMax(x[0], 0, {.reverse = true})), x[0]));
               t.Output("exclusive", Gradient(ReduceSum(CumMin(Slice(x[0], {1}, {6}, {}), 0, {.exclusive = true}) *
                                                        Slice(x[0], {0}, {5}, {})),
                                              x[0]));
               t.Output("lowest", Gradient(ReduceSum(CumMax(x[1], 0)), x[1]));
               t.Output("nan", Gradient(ReduceSum(CumMax(x[2], 0)), x[2]));
               t.Output("max", CumMax(x[2], 0));
             });
  EXPECT_THAT(Numbers(y.at("d")), ElementsAre(1, 3, 0, 0, 2, 0));
  EXPECT_THAT(Numbers(y.at("back")), ElementsAre(0, 0, 0, 0, 0, 6));
  EXPECT_THAT(Numbers(y.at("lowest")), ElementsAre(2, 0, 1));
  EXPECT_THAT(Numbers(y.at("nan")), ElementsAre(1, 3, 0, 0));
  EXPECT_EQ(y.at("max").at(0).f(), 1);
  for (int k : {1, 2, 3}) EXPECT_TRUE(std::isnan(y.at("max").at(k).f()));
  EXPECT_EQ(y.at("exclusive").type.dims, (Dims{6}));
}

TEST(Cumulative, LogarithmsOfSumsOfInfinities) {
  const V x = {-kInfinity, -kInfinity, 3, -kInfinity, 1000, -1000};
  const auto y = Traced({Vector(x), Vector({1, kInfinity, 2})}, [](Trace& t, const std::vector<Tensor>& x) {
    const Tensor v = LogCumSumExp(x[0], 0);
    t.Output("y", v);
    t.Output("d", Gradient(ReduceSum(Slice(v, {2}, {6}, {})), x[0]));
    t.Output("exclusive", LogCumSumExp(x[0], 0, {.exclusive = true}));
    t.Output("inf", LogCumSumExp(x[1], 0));
  });
  EXPECT_THAT(Numbers(y.at("y")), ElementsAre(-kInfinity, -kInfinity, 3, 3, 1000, 1000));
  EXPECT_THAT(Numbers(y.at("exclusive")), ElementsAre(-kInfinity, -kInfinity, -kInfinity, 3, 3, 1000));
  EXPECT_THAT(Numbers(y.at("d")), ElementsAre(0, 0, 2, 0, 2, 0));
  EXPECT_THAT(Numbers(y.at("inf")), ElementsAre(1, kInfinity, kInfinity));
}

// Far from 0 an f32 has few digits behind the point, so that exponentials of differences to the result have few in all.
TEST(Cumulative, GradientsOfLogarithmicSumsKeepTheirDigits) {
  ValueScene s;
  constexpr int64_t n = 2000;
  V values;
  for (int64_t k = 0; k < n; ++k) values.push_back(1000 + static_cast<double>(k * 7919 % 1009) * 0.004);
  const Value x = s.Input({kF32, {n}}, values);
  const Value d = agc::Gradient(ReduceSum(LogCumSumExp(x, 0)), x);
  const V got = s.Run(d), want = s.Run(d, EvalMode::kDouble);
  for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(got[k] / want[k], 1, 5e-6) << k;
}

TEST(Cumulative, IntegersWrapAndFactorsOfZeroForget) {
  const HostTensor bytes = TensorOf({kI8, {3}}, {100, 100, 100});
  const auto y =
      Traced({bytes, Vector({2, 0, 3}), Vector({kInfinity, 5, kNan})}, [](Trace& t, const std::vector<Tensor>& x) {
        t.Output("bytes", CumSum(x[0], 0));
        t.Output("lowest", CumMax(x[0], 0, {.exclusive = true}));
        t.Output("h", Slice(LinearRecurrence(x[1], x[2], 0), {0}, {2}, {}));
      });
  EXPECT_THAT(Numbers(y.at("bytes")), ElementsAre(100, -56, 44));
  EXPECT_THAT(Numbers(y.at("lowest")), ElementsAre(-128, 100, 100));
  EXPECT_THAT(Numbers(y.at("h")), ElementsAre(kInfinity, 5));
}

// ---------------------------------------------------------------- linear algebra

// numpy's matmul for every pair of ranks, against a sum.
TEST(Linalg, MatmulBroadcastsAsNumpyDoes) {
  const std::pair<Dims, Dims> shapes[] = {
      {{3}, {3}},       {{3}, {3, 2}},       {{2, 3}, {3}},       {{3}, {4, 3, 2}},
      {{4, 2, 3}, {3}}, {{4, 2, 3}, {3, 5}}, {{2, 3}, {4, 3, 5}}, {{4, 1, 2, 3}, {6, 3, 5}},
      {{2, 0}, {0, 4}}, {{0, 3}, {3, 2}},    {{2, 3, 0}, {0, 4}}, {{0}, {0}}};
  for (const auto& [a, b] : shapes) {
    const HostTensor x = Random({kF64, a}, -1, 1, 1), y = Random({kF64, b}, -1, 1, 2);
    const auto out = Traced({x, y}, [](Trace& t, const std::vector<Tensor>& v) {
      const Tensor product = Matmul(v[0], v[1]);
      t.Output("y", product);
      for (int k : {0, 1}) t.Output(absl::StrCat("d", k), Gradient(ReduceSum(product * product), v[k]));
    });
    std::string equation = absl::StrCat(a.size() > 1 ? "...ik" : "k", ",", b.size() > 1 ? "...kj" : "k", "->...",
                                        a.size() > 1 ? "i" : "", b.size() > 1 ? "j" : "");
    const auto same =
        Traced({x, y}, [&](Trace& t, const std::vector<Tensor>& v) { t.Output("y", Einsum(equation, v)); });
    EXPECT_LE(ErrorOf(out.at("y"), same.at("y")), 1e-14) << equation;
    EXPECT_EQ(out.at("d0").type.dims, a);
    EXPECT_EQ(out.at("d1").type.dims, b);
  }
}

// An equation of letters by a loop over all values of all labels.
HostTensor BySum(const std::string& equation, const std::vector<HostTensor>& x) {
  std::vector<std::string> terms = {""};
  const size_t arrow = equation.find("->");
  for (char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    if (c != ',') terms.back().push_back(c);
  }
  const std::string out = equation.substr(arrow + 2);
  std::map<char, int64_t> extent, at;
  for (size_t k = 0; k < terms.size(); ++k) {
    for (size_t i = 0; i < terms[k].size(); ++i) extent[terms[k][i]] = std::max(extent[terms[k][i]], x[k].type.dims[i]);
  }
  const auto place = [&](const std::string& term, const Dims& dims) {
    int64_t e = 0;
    for (size_t i = 0; i < term.size(); ++i) e = e * dims[i] + (dims[i] == 1 ? 0 : at[term[i]]);
    return e;
  };
  Dims dims;
  for (char c : out) dims.push_back(extent[c]);
  HostTensor y = HostTensor::Zeros({kF64, dims});
  const std::function<void(std::map<char, int64_t>::iterator)> loop = [&](std::map<char, int64_t>::iterator label) {
    if (label == extent.end()) {
      double product = 1;
      for (size_t k = 0; k < terms.size(); ++k) product *= x[k].at(place(terms[k], x[k].type.dims)).f();
      const int64_t to = place(out, dims);
      return y.set(to, Scalar::Float(kF64, y.at(to).f() + product));
    }
    for (int64_t v = 0; v < label->second; ++v) {
      at[label->first] = v;
      loop(std::next(label));
    }
  };
  loop(extent.begin());
  return y;
}

struct Equation {
  const char* text;
  std::vector<Dims> dims;
  const char* spelt = nullptr;  // the same without ellipses and with the output, where that differs
};

TEST(Linalg, EinsumEqualsTheSumOverAllLabels) {
  const Equation equations[] = {
      {"ij->ji", {{2, 3}}},
      {"ij->", {{2, 3}}},
      {"ii->i", {{3, 3}}},
      {"ii", {{3, 3}}, "ii->"},
      {"iji->j", {{3, 2, 3}}},
      {"iii->i", {{3, 3, 3}}},
      {"ji", {{2, 3}}, "ji->ij"},
      {"i,i->", {{4}, {4}}},
      {"i,j", {{4}, {3}}, "i,j->ij"},
      {"ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
      {"bij,bkj->kib", {{2, 3, 4}, {2, 5, 4}}},
      {"ij,ij->ij", {{2, 3}, {2, 3}}},
      {"ij,ij->i", {{2, 3}, {2, 3}}},
      {"ij,kl->i", {{2, 3}, {4, 2}}},
      {"abc,cd,be->aed", {{2, 3, 4}, {4, 5}, {3, 2}}},
      {"ij,kl,jk->il", {{2, 3}, {4, 5}, {3, 4}}},
      {"ab,bc,cd,de->ae", {{2, 3}, {3, 4}, {4, 2}, {2, 3}}},
      {"i,i,i->i", {{3}, {3}, {3}}},
      {"ijk,jik->k", {{2, 3, 4}, {3, 2, 4}}},
      {"ij,jk->ik", {{2, 1}, {3, 4}}},
      {"ii,ij->j", {{3, 1}, {3, 2}}},
      {"...ij,...jk", {{5, 2, 3}, {3, 4}}, "aij,jk->aik"},
      {"...i,i...->...", {{2, 3}, {3, 2}}, "ai,ia->a"},
      {"...ii->...i", {{2, 4, 3, 3}}, "abii->abi"},
      {"i...->i", {{2, 3}}, "ia->i"},
      {"b...,b->...b", {{2, 3, 1}, {2}}, "bac,b->acb"},
      {"ij,jk->ik", {{2, 0}, {0, 3}}},
      {"Zi,aZ", {{2, 3}, {4, 2}}, "Zi,aZ->ai"},
  };
  for (const Equation& e : equations) {
    std::vector<HostTensor> x;
    for (const Dims& dims : e.dims) x.push_back(Random({kF64, dims}, -1, 1, static_cast<uint32_t>(x.size() + 1)));
    const auto y = Traced(x, [&](Trace& t, const std::vector<Tensor>& v) {
      const Tensor out = Einsum(e.text, v);
      t.Output("y", out);
      for (size_t k = 0; k < v.size(); ++k) {
        EXPECT_EQ(Gradient(ReduceSum(out * out), v[k]).dims(), e.dims[k]);
        t.Output(absl::StrCat("d", k), Gradient(ReduceSum(out), v[k]));
      }
    });
    const HostTensor want = BySum(e.spelt != nullptr ? e.spelt : e.text, x);
    EXPECT_EQ(y.at("y").type, want.type) << e.text;
    EXPECT_LE(ErrorOf(y.at("y"), want), 1e-13) << e.text;
    double by_gradient = 0, sum = 0;  // linear in each operand: <x, dsum/dx> is the sum
    for (double v : Numbers(want)) sum += v;
    for (int64_t k = 0; k < x[0].type.elements(); ++k) by_gradient += x[0].at(k).f() * y.at("d0").at(k).f();
    EXPECT_NEAR(by_gradient, sum, 1e-12) << e.text;
  }
}

// f16 sums of several steps are kept in f32; a product of two is rounded once.
TEST(Linalg, EinsumRoundsHalvesOnce) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const Tensor x = t.Input("x", kF16, {64}), one = t.Input("one", kF16, {2, 64});
    t.Output("y", Einsum("i,ji,i->j", {x, one, x}));
    t.Output("z", Einsum("i,ji->", {x, one}));
  });
  EvalInputs in;
  in.params["x"] = TensorOf({kF16, {64}}, V(64, 30));
  in.params["one"] = TensorOf({kF16, {2, 64}}, V(128, 1));
  const EvalResult y = Evaluated(m.program(), "g", in, EvalMode::kExact);
  EXPECT_EQ(y.outputs.at("y").at(0).f(), 57600);
  EXPECT_EQ(y.outputs.at("z").at(0).f(), 3840);
}

// G1 and its kind: gradients have the operand's own shape.
TEST(Linalg, GradientsHaveTheShapeOfTheirOperand) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const Tensor a = t.Input("a", kF32, {3}), b = t.Input("b", kF32, {2, 4, 3}), c = t.Input("c", kF32, {2, 1}),
                 s = t.Input("s", kF32, {}), w = t.Input("w", kF32, {5, 3, 3});
    Tensor loss = ReduceSum(Cross(a, b)) + ReduceSum(Matmul(b, a)) + ReduceSum(Expand(c, {4, 1, 7}));
    loss = loss + ReduceSum(Kron(s, b)) + ReduceSum(Dot(s, a)) + ReduceSum(Outer(a, c)) + ReduceSum(Inner(b, a));
    loss = loss + ReduceSum(Bilinear(b, Broadcast(a, {2, 4, 3}), w)) + ReduceSum(Tile(c, {3, 1, 2})) +
           TraceOf(w, 1, -1, -2);
    loss = ReduceSum(loss) + ReduceStd(s) + ReduceL2(s) + ReduceSum(CumProd(b, 1));
    for (const Tensor& x : {a, b, c, s, w}) {
      const Tensor d = Gradient(loss, x);
      EXPECT_EQ(d.type(), x.type());
      t.Output(absl::StrCat("d", x.id.index), d);
    }
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  const EvalInputs in = RandomInputs(m.program(), m.program().graphs[0], -1, 1);
  const EvalResult want = Evaluated(m.program(), "g", in);
  EXPECT_EQ(Difference(Executed(m.program(), "g", in, {}, FakeTarget("lavapipe").value()), want, 1e-5), "");
}

}  // namespace
}  // namespace agc::test
