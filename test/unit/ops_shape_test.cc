// Views and reductions: positions against numpy's rules written out, every dtype, values without elements, and what
// reductions give for rows that are awkward.
#include <numeric>

#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

using ::testing::ElementsAre;
using V = std::vector<double>;
using agc::Tensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// The outputs of a graph over inputs x0, x1, ... with these values.
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
  return Evaluated(m.program(), "g", in, EvalMode::kExact).outputs;
}
HostTensor Counted(Dims dims) {  // 0, 1, 2, ...
  TensorType type{kF32, std::move(dims)};
  V values(static_cast<size_t>(type.elements()));
  std::iota(values.begin(), values.end(), 0);
  return TensorOf(type, values);
}
HostTensor Vector(const V& values) { return TensorOf({kF32, {static_cast<int64_t>(values.size())}}, values); }
std::string ErrorOfTrace(const std::function<void(Trace&)>& fn) {
  Module m("m");
  m.Graph("g", fn);
  const std::string message(m.status().message());
  return message.substr(message.find("error: ") + 7);
}

// ---------------------------------------------------------------- views

// numpy's x[start:limit:stride] for one axis of n elements, as Python's documentation says.
V PythonSlice(int64_t n, int64_t start, int64_t limit, int64_t stride) {
  const auto clamp = [&](int64_t p) {
    if (p < 0) p += n;
    return std::clamp<int64_t>(p, stride < 0 ? -1 : 0, stride < 0 ? n - 1 : n);
  };
  V out;
  for (int64_t p = clamp(start); stride > 0 ? p < clamp(limit) : p > clamp(limit); p += stride) {
    out.push_back(static_cast<double>(p));
  }
  return out;
}

TEST(Shape, StridedSlicesFollowNumpy) {
  const Ints strides = {1, 2, 3, -1, -2, -4};
  const Ints places = {0, 1, 3, 4, 5, 9, -1, -4, -5, -9, INT64_MAX, INT64_MIN};
  for (int64_t n : {0, 1, 5}) {
    const auto y = Traced({Counted({n, 2})}, [&](Trace& t, const std::vector<Tensor>& x) {
      for (int64_t stride : strides) {
        for (int64_t a : places) {
          for (int64_t b : places) {
            t.Output(absl::StrCat(stride, "_", a, "_", b), StridedSlice(x[0], {a}, {b}, {stride}, {-2}));
          }
        }
      }
    });
    for (int64_t stride : strides) {
      for (int64_t a : places) {
        for (int64_t b : places) {
          V want;
          for (double p : PythonSlice(n, a, b, stride)) want.insert(want.end(), {2 * p, 2 * p + 1});
          EXPECT_EQ(Numbers(y.at(absl::StrCat(stride, "_", a, "_", b))), want)
              << n << ": " << a << " " << b << " " << stride;
        }
      }
    }
  }
}

// The element that position p, counted from the first one, reads of n.
int64_t SourceAt(PadMode mode, int64_t p, int64_t n) {
  if (mode == PadMode::kEdge || n == 1) return std::clamp<int64_t>(p, 0, n - 1);
  while (p < 0 || p >= n) {
    if (mode == PadMode::kWrap) p += p < 0 ? n : -n;
    if (mode == PadMode::kReflect) p = p < 0 ? -p : 2 * (n - 1) - p;
  }
  return p;
}

TEST(Shape, PaddingReadsWhatItsModeSaysAndGradientsGoBackThere) {
  const std::pair<int64_t, int64_t> pads[] = {{0, 0}, {1, 2}, {3, 0}, {7, 9}, {-1, 2}, {4, -1}, {-1, -1}};
  for (PadMode mode : {PadMode::kReflect, PadMode::kEdge, PadMode::kWrap}) {
    for (int64_t n : {1, 2, 3, 5}) {
      for (const auto& [low, high] : pads) {
        if (low + n + high <= 0) continue;
        const auto y = Traced({Counted({n, 1})}, [&, low = low, high = high](Trace& t, const std::vector<Tensor>& x) {
          const Tensor padded = Pad(x[0], mode, {low, 0}, {high, 0});
          t.Output("y", padded);
          t.Output("dx", Gradient(ReduceSum(padded * (agc::Iota(t.builder(), kF32, padded.dims(), 0) + 1.0)), x[0]));
        });
        V want, gradient(static_cast<size_t>(n));
        for (int64_t p = -low; p < n + high; ++p) {
          const int64_t source = SourceAt(mode, p, n);
          want.push_back(static_cast<double>(source));
          gradient[static_cast<size_t>(source)] += static_cast<double>(p + low + 1);
        }
        EXPECT_EQ(Numbers(y.at("y")), want) << static_cast<int>(mode) << " " << n << " " << low << " " << high;
        EXPECT_EQ(Numbers(y.at("dx")), gradient) << static_cast<int>(mode) << " " << n << " " << low << " " << high;
      }
    }
  }
}

TEST(Shape, NegativePaddingCrops) {
  const auto y = Traced({Vector({1, 2, 3})}, [](Trace& t, const std::vector<Tensor>& x) {
    const Tensor moved = Pad(x[0], 9, {-1}, {2}), gone = Pad(x[0], 9, {-5}, {4});
    t.Output("moved", moved);
    t.Output("gone", gone);
    t.Output("d", Gradient(ReduceSum(moved * moved), x[0]));
  });
  EXPECT_THAT(Numbers(y.at("moved")), ElementsAre(2, 3, 9, 9));
  EXPECT_THAT(Numbers(y.at("gone")), ElementsAre(9, 9));
  EXPECT_THAT(Numbers(y.at("d")), ElementsAre(0, 4, 6));
}

TEST(Shape, FunctionsOfViews) {
  const auto y = Traced({Counted({2, 3, 4}), Counted({3})}, [](Trace& t, const std::vector<Tensor>& x) {
    t.Output("split", Split(x[0], {1, 0, 2}, 1)[2]);
    t.Output("chunk", Chunk(x[0], 3, -1)[1]);
    EXPECT_EQ(Chunk(x[0], 3, -1).size(), 2u);
    t.Output("unstack", Unstack(x[0], -2)[2]);
    t.Output("move", MoveAxis(x[0], {0}, {-1}));
    t.Output("swap", SwapAxes(x[0], 0, 2));
    EXPECT_EQ(SwapAxes(x[0], -1, 2).id, x[0].id);
    EXPECT_EQ(Flatten(x[0]).dims(), (Dims{24}));
    EXPECT_EQ(Flatten(x[0], 1).dims(), (Dims{2, 12}));
    EXPECT_EQ(Expand(x[1], {2, -1}).dims(), (Dims{2, 3}));
    EXPECT_EQ(Expand(x[0], {1}).dims(), (Dims{2, 3, 4}));
    const std::vector<Tensor> grid = Meshgrid({x[1], Slice(x[1], {0}, {2}, {})}, true);
    t.Output("grid0", grid[0]);
    t.Output("grid1", grid[1]);
    t.Output("eye", Eye(t.builder(), kI32, 2, 3, 1));
    t.Output("diag", Diag(Diag(x[1], -1), -1));
    t.Output("shuffled", PixelUnshuffle(PixelShuffle(Reshape(x[0], {4, 2, 3}), 2), 2));
  });
  EXPECT_THAT(Numbers(y.at("split")), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23));
  EXPECT_THAT(Numbers(y.at("chunk")), ElementsAre(2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23));
  EXPECT_THAT(Numbers(y.at("unstack")), ElementsAre(8, 9, 10, 11, 20, 21, 22, 23));
  EXPECT_EQ(y.at("move").type.dims, (Dims{3, 4, 2}));
  EXPECT_EQ(y.at("move").at(1).f(), 12);
  EXPECT_EQ(y.at("swap").type.dims, (Dims{4, 3, 2}));
  EXPECT_EQ(y.at("swap").at(2).f(), 4);
  EXPECT_THAT(Numbers(y.at("grid0")), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Numbers(y.at("grid1")), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(Numbers(y.at("eye")), ElementsAre(0, 1, 0, 0, 0, 1));
  EXPECT_THAT(Numbers(y.at("diag")), ElementsAre(0, 1, 2));
  EXPECT_EQ(y.at("shuffled").bytes, Counted({24}).bytes);
}

// S5 and its kind: bytes through every view, whatever the dtype, on the host and through plans.
TEST(Shape, ViewsTakeEveryDType) {
  for (int d = 0; d < kTensorDTypes; ++d) {
    const DType dtype = static_cast<DType>(d);
    Module m("m");
    m.Graph("g", [&](Trace& t) {
      const Tensor x = t.Input("x", dtype, {2, 3}), y = t.Input("y", dtype, {2, 3}), z = t.Input("z", dtype, {2, 3});
      const Tensor all = Concat({x, y, z}, 1);
      t.Output("concat", all);
      t.Output("stack", Stack({x, y, z}, 1));
      t.Output("moved", Roll(Flip(all, {1}), {1, -2}, {0, 1}));
      t.Output("padded", Pad(Pad(x, PadMode::kReflect, {1, 1}, {0, 2}), 1, {0, -1}, {1, 0}));
      t.Output("tiled", Tile(RepeatInterleave(x, 2, 0), {2}));
      t.Output("triangle", Concat({Tril(all, 1), Triu(all, 2)}, 0));
      t.Output("diagonal", DiagEmbed(Diagonal(all, 1)));
      t.Output("updated", UpdateSlice(all, y, {0, 2}));
      t.Output("blocks", DepthToSpace(Reshape(Pad(x, 0, {0, 0}, {0, 1}), {4, 1, 2}), 2));
      t.Output("back", StridedSlice(all, {-1, INT64_MAX}, {INT64_MIN, 0}, {-1, -3}));
    });
    ASSERT_TRUE(m.status().ok()) << m.status();
    const EvalInputs in = RandomInputs(m.program(), m.program().graphs[0], -9, 9);
    const EvalResult want = Evaluated(m.program(), "g", in, EvalMode::kExact);
    EXPECT_EQ(Difference(Executed(m.program(), "g", in, {}, FakeTarget("h200").value()), want, 0), "") << Name(dtype);
  }
}

using Named = std::vector<std::pair<const char*, Tensor>>;
// Of f32[2,0,3], all without elements.
Named EmptyResults(Tensor e) {
  return {{"flip", Flip(e)},
          {"roll", Roll(e, {5, 1}, {1, 2})},
          {"tile", Tile(e, {2, 1, 2})},
          {"stack", Stack({e, e})},
          {"repeat", RepeatInterleave(e, 3, 1)},
          {"pad", Pad(e, PadMode::kWrap, {1, 0, 2}, {0, 0, 0})},
          {"tril", Tril(e)},
          {"update", UpdateSlice(e, e, {0, 0, 0})},
          {"diagonal", Diagonal(e)},
          {"depth", DepthToSpace(Reshape(e, {4, 0, 3}), 2)},
          {"cumsum", CumSum(e, 1)},
          {"cumprod", CumProd(e, 0, {.reverse = true})},
          {"cummax", CumMax(e, 1)},
          {"lcse", LogCumSumExp(e, 1)},
          {"recurrence", LinearRecurrence(e, e, 0)},
          {"kron", Kron(e, e)},
          {"cross", Cross(e, e)},
          {"slice", StridedSlice(e, {-1}, {0}, {-1}, {1})}};
}

// S1 and its kind: no elements in, none or identities out, and gradients of the operand's shape.
TEST(Shape, NothingIsLegal) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const Tensor e = t.Input("e", kF32, {2, 0, 3}), b = t.Input("b", kBool, {0, 2}), k = t.Input("k", kF32, {0, 4});
    Tensor loss = ReduceSum(e);
    for (const auto& [name, y] : EmptyResults(e)) {
      t.Output(name, y);
      EXPECT_EQ(y.type().elements(), 0) << name;
      loss = loss + ReduceSum(y);
    }
    const std::pair<const char*, Tensor> zero[] = {{"padded", Pad(e, 0, {0, 1, 0}, {0, 0, 0})},
                                                   {"embedded", DiagEmbed(Reshape(e, {6, 0}), 1)},
                                                   {"l1", ReduceL1(e, {1})},
                                                   {"l2", ReduceL2(e, {1}, true)},
                                                   {"norm", ReduceNorm(e, 3, {1})},
                                                   {"squares", ReduceSumSquare(e, {1})},
                                                   {"matmul", Matmul(Reshape(e, {2, 3, 0}), k)},
                                                   {"vector", Matmul(Reshape(e, {0}), k)},
                                                   {"dot", Dot(Reshape(e, {2, 3, 0}), k)},
                                                   {"einsum", Einsum("ijk,jl->il", {e, k})},
                                                   {"trace", TraceOf(e)}};
    for (const auto& [name, y] : zero) {
      t.Output(name, y);
      loss = loss + ReduceSum(y);
    }
    t.Output("any", ReduceAny(b, {0}));
    t.Output("all", ReduceAll(b, {0}));
    t.Output("count", CountNonzero(e, {1}));
    t.Output("log_sum_exp", ReduceLogSumExp(e, {1}));
    t.Output("var", ReduceVar(e, {1}));
    t.Output("de", Gradient(loss, e));
    t.Output("dk", Gradient(loss, k));
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  const EvalInputs in = RandomInputs(m.program(), m.program().graphs[0], -1, 1);
  const EvalResult got = Executed(m.program(), "g", in, {}, FakeTarget("lavapipe").value());
  EXPECT_EQ(Difference(got, Evaluated(m.program(), "g", in), 1e-9), "");
  for (const char* name :
       {"padded", "embedded", "l1", "l2", "norm", "squares", "matmul", "vector", "dot", "einsum", "trace"}) {
    for (double v : Numbers(got.outputs.at(name))) EXPECT_EQ(v, 0) << name;
  }
  EXPECT_THAT(Numbers(got.outputs.at("any")), ElementsAre(0, 0));
  EXPECT_THAT(Numbers(got.outputs.at("all")), ElementsAre(1, 1));
  EXPECT_EQ(got.outputs.at("log_sum_exp").at(5).f(), -kInfinity);
  EXPECT_TRUE(std::isnan(got.outputs.at("var").at(0).f()));
  EXPECT_EQ(got.outputs.at("de").type.dims, (Dims{2, 0, 3}));
}

// ---------------------------------------------------------------- reductions

TEST(Reductions, VarianceKeepsItsDigitsFarFromZero) {
  V far(1000), equal(1000, 0.1);
  for (size_t i = 0; i < far.size(); ++i) far[i] = 1e6 + static_cast<double>(i % 4);
  const auto y = Traced({Vector(far), Vector(equal)}, [](Trace& t, const std::vector<Tensor>& x) {
    t.Output("var", ReduceVar(x[0]));
    t.Output("unbiased", ReduceVar(x[0], {}, 1));
    t.Output("none", ReduceVar(Slice(x[0], {0}, {1}, {}), {}, 1));
    const Tensor std = ReduceStd(x[1]);
    t.Output("std", std);
    t.Output("d", Gradient(std, x[1]));
    t.Output("half", ReduceVar(Cast(x[0] - 1e6, kF16) * 100.0));
  });
  EXPECT_FLOAT_EQ(y.at("var").at(0).f(), 1.25);
  EXPECT_FLOAT_EQ(y.at("unbiased").at(0).f(), 1250.0 / 999);
  EXPECT_EQ(y.at("half").at(0).f(), 12496);  // the nearest f16; the sum of squares is beyond f16
  EXPECT_TRUE(std::isnan(y.at("none").at(0).f()));
  EXPECT_NEAR(y.at("std").at(0).f(), 0, 1e-8);
  for (double v : Numbers(y.at("d"))) EXPECT_NEAR(v, 0, 1e-2);
}

TEST(Reductions, NormsHaveNoSlopeAtZero) {
  const auto y = Traced({Vector({0, 0}), Vector({3, 0, -4})}, [](Trace& t, const std::vector<Tensor>& x) {
    for (double p : {0.5, 1.0, 2.0, 3.0}) {
      const Tensor zero = ReduceNorm(x[0], p), one = ReduceNorm(x[1], p);
      t.Output(absl::StrCat("zero", p), zero);
      t.Output(absl::StrCat("d", p), Gradient(zero, x[0]));
      t.Output(absl::StrCat("one", p), Gradient(one, x[1]));
    }
    t.Output("l2", Gradient(ReduceL2(x[1]), x[1]));
    t.Output("largest", ReduceNorm(x[1], kInfinity));
    t.Output("smallest", ReduceNorm(x[1], -kInfinity));
    t.Output("count", ReduceNorm(x[1], 0));
    t.Output("harmonic", ReduceNorm(x[1], -1));
  });
  for (const char* p : {"0.5", "1", "2", "3"}) {
    EXPECT_THAT(Numbers(y.at(absl::StrCat("zero", p))), ElementsAre(0));
    EXPECT_THAT(Numbers(y.at(absl::StrCat("d", p))), ElementsAre(0, 0));
    EXPECT_EQ(y.at(absl::StrCat("one", p)).at(1).f(), 0);
  }
  EXPECT_FLOAT_EQ(y.at("l2").at(0).f(), 0.6);
  EXPECT_FLOAT_EQ(y.at("l2").at(2).f(), -0.8);
  EXPECT_EQ(y.at("largest").at(0).f(), 4);
  EXPECT_EQ(y.at("smallest").at(0).f(), 0);
  EXPECT_EQ(y.at("count").at(0).f(), 2);
  EXPECT_EQ(y.at("harmonic").at(0).f(), 0);
}

TEST(Reductions, ArgTakesTheLastOfEqualsWhereAsked) {
  const auto y = Traced({Vector({1, 3, 3, 1}), Vector({kNan, 5, kNan})}, [](Trace& t, const std::vector<Tensor>& x) {
    t.Output("first", ArgMax(x[0], 0));
    t.Output("last", ArgMaxLast(x[0], 0));
    t.Output("least", ArgMinLast(x[0], 0, true));
    t.Output("nan", ArgMaxLast(x[1], 0));
  });
  EXPECT_EQ(y.at("first").at(0).i(), 1);
  EXPECT_EQ(y.at("last").at(0).i(), 2);
  EXPECT_EQ(y.at("least").at(0).i(), 3);
  EXPECT_EQ(y.at("nan").at(0).i(), 2);
}

TEST(Reductions, LogSumExpOfInfiniteRows) {
  const HostTensor x = TensorOf({kF32, {4, 2}}, {-kInfinity, -kInfinity, kInfinity, 1, 88, 89, kNan, 1});
  const auto y = Traced({x}, [](Trace& t, const std::vector<Tensor>& x) { t.Output("y", ReduceLogSumExp(x[0], {1})); });
  EXPECT_EQ(y.at("y").at(0).f(), -kInfinity);
  EXPECT_EQ(y.at("y").at(1).f(), kInfinity);
  EXPECT_NEAR(y.at("y").at(2).f(), 89.3132617, 1e-5);
  EXPECT_TRUE(std::isnan(y.at("y").at(3).f()));
}

// ---------------------------------------------------------------- wrong arguments of functions

TEST(Shape, WrongArgumentsSayWhatIsWrong) {
  const auto error = [](const std::function<void(Tensor)>& fn) {
    return ErrorOfTrace([&](Trace& t) { fn(t.Input("x", kF32, {2, 3})); });
  };
  EXPECT_EQ(error([](Tensor x) {
              StridedSlice(x, {0}, {1, 2});
            }),
            "slice: start, limit, stride and axes have 1, 2, 1 and 1 numbers, expected equally many");
  EXPECT_EQ(error([](Tensor x) { StridedSlice(x, {0}, {1}, {0}); }), "slice: stride[0] is 0");
  EXPECT_EQ(error([](Tensor x) { StridedSlice(x, {0}, {1}, {1}, {2}); }), "slice: f32[2,3] has no axis 2");
  EXPECT_EQ(error([](Tensor x) {
              Split(x, {1, 1}, 1);
            }),
            "split: sizes = [1, 1] do not add up to the 3 elements of axis 1 of f32[2,3]");
  EXPECT_EQ(error([](Tensor x) { Split(x, {1, 1}, 2); }), "split: f32[2,3] has no axis 2");
  EXPECT_EQ(error([](Tensor x) { Chunk(x, 0); }), "chunk: count is 0, expected 1 or more");
  EXPECT_EQ(error([](Tensor x) { Chunk(x, 1, 5); }), "chunk: f32[2,3] has no axis 5");
  EXPECT_EQ(error([](Tensor x) { Unstack(x, 2); }), "unstack: f32[2,3] has no axis 2");
  EXPECT_EQ(error([](Tensor x) {
              MoveAxis(x, {0, 0}, {0, 1});
            }),
            "transpose: axes [0, 0] of f32[2,3] cannot move to [0, 1]");
  EXPECT_EQ(error([](Tensor x) { Flatten(x, 1, 0); }), "reshape: f32[2,3] has no axes from 1 to 0");
  EXPECT_EQ(error([](Tensor x) { Expand(x, {4}); }), "broadcast: f32[2,3] does not broadcast with [4]");
  EXPECT_EQ(error([](Tensor x) {
              Diag(Reshape(x, {1, 2, 3}));
            }),
            "diag: operand 0 is f32[1,2,3], expected rank 1 or 2");
  EXPECT_EQ(error([](Tensor x) { Meshgrid({x, x}); }), "meshgrid: operand 0 is f32[2,3], expected rank 1");
  EXPECT_EQ(error([](Tensor x) {
              Pad(x, 0, {INT64_MAX, 0}, {0, 0});
            }),
            "pad: padding of 9223372036854775807 and 0 is too large");
}

}  // namespace
}  // namespace agc::test
