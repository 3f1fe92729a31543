// LABELS: vulkan
// Numbers, shapes and gradients that other systems were reported to get wrong, on the device: one test per report, by
// its number (N numerics, S shapes, G gradients).
#include <algorithm>

#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// A graph @g traced by `fn`.
template <typename F>
Program Traced(F fn) {
  Module m("m");
  m.Graph("g", fn);
  EXPECT_TRUE(m.status().ok()) << m.status();
  return Clone(m.program());
}

// Output `name` of @g on the device, with bindings and the optimiser on, after comparing the same with addresses and
// the optimiser off, and with the loop executor.
std::vector<double> RunAs(const Program& p, const EvalInputs& in, const std::string& name) {
  const EvalResult got = OnDevice(p, "g", in);
  const EvalResult other = OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses, .optimize = 0});
  EXPECT_EQ(Difference(other, got, 1e-6), "");
  EXPECT_EQ(Difference(Executed(p, "g", in), got, 1e-5), "");
  return Numbers(got.outputs.at(name));
}

EvalInputs Given(const std::map<std::string, HostTensor>& params) {
  EvalInputs in;
  in.params = params;
  return in;
}
HostTensor Vector(const std::vector<double>& values) {
  return TensorOf({kF32, {static_cast<int64_t>(values.size())}}, values);
}
bool NotANumber(double x) { return std::isnan(x); }

TEST(Numerics, N1FiniteForFiniteArguments) {
  const std::vector<double> x = {100, -100, -13.24, 20.6, 1e30, -1e30, 3.4e38, 0};
  const auto of = [&](agc::Tensor (*fn)(agc::Tensor, Loc)) {
    const Program p = Traced([&](Trace& t) {
      const agc::Tensor v = t.Input("x", kF32, {8});
      t.Output("y", fn(v, Loc()));
      // As the epilogue of a matmul, too.
      t.Output("z", fn(Matmul(Reshape(v, {8, 1}), t.Input("one", kF32, {1, 1})), Loc()));
    });
    const EvalInputs in = Given({{"x", Vector(x)}, {"one", TensorOf({kF32, {1, 1}}, {1})}});
    EXPECT_EQ(RunAs(p, in, "y"), RunAs(p, in, "z"));
    return RunAs(p, in, "y");
  };
  EXPECT_THAT(of(Tanh), ElementsAre(1, -1, -1, 1, 1, -1, 1, 0));
  const std::vector<double> gelu = of(Gelu), silu = of(Silu), softplus = of(Softplus);
  for (const auto& values : {gelu, silu, softplus}) {
    EXPECT_EQ(values[0], 100);
    EXPECT_NEAR(values[3], 20.6, 1e-5);
    EXPECT_FLOAT_EQ(values[4], 1e30);
    EXPECT_NEAR(values[1], 0, 1e-6);
    EXPECT_NEAR(values[5], 0, 1e-6);
    EXPECT_FLOAT_EQ(values[6], 3.4e38);
  }
  EXPECT_NEAR(gelu[2], 0, 1e-6);
  EXPECT_THAT(of(Sigmoid), ElementsAre(1, testing::Lt(1e-30), testing::Lt(1e-5), testing::Gt(0.999), 1, 0, 1, 0.5));
}

TEST(Numerics, N2PowFollowsIeee) {
  const Program p = Traced([](Trace& t) { t.Output("y", Pow(t.Input("x", kF32, {9}), t.Input("e", kF32, {9}))); });
  const EvalInputs in =
      Given({{"x", Vector({-1, -2, -2, 0, 2, -0.5, 0, 4, -1})}, {"e", Vector({2, 3, 0.5, 0, -2, -3, 2, 0.5, 0})}});
  const std::vector<double> y = RunAs(p, in, "y");
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], -8);
  EXPECT_TRUE(NotANumber(y[2]));
  EXPECT_EQ(y[3], 1);
  EXPECT_EQ(y[4], 0.25);
  EXPECT_EQ(y[5], -8);
  EXPECT_EQ(y[6], 0);
  EXPECT_NEAR(y[7], 2, 1e-6);
  EXPECT_EQ(y[8], 1);
}

TEST(Numerics, N4FloorDivFloorsAndMixedDtypesAreRefused) {
  const Program p = Traced([](Trace& t) { t.Output("y", FloorDiv(t.Input("x", kI32, {6}), t.Input("d", kI32, {6}))); });
  const TensorType type{kI32, {6}};
  const EvalInputs in =
      Given({{"x", TensorOf(type, {-7, 7, -7, 7, -8, 0})}, {"d", TensorOf(type, {2, 2, -2, -2, 2, 5})}});
  EXPECT_THAT(RunAs(p, in, "y"), ElementsAre(-4, 3, 3, -4, -4, 0));
  Module m("m");
  m.Graph("g", [](Trace& t) { t.Output("y", FloorDiv(t.Input("x", kF32, {2}), t.Input("d", kI32, {2}))); });
  EXPECT_THAT(std::string(m.status().message()), testing::HasSubstr("cast one of them"));
}

TEST(Numerics, N7MaximumMinimumReluAndReductionsPropagateNan) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor x = t.Input("x", kF32, {4}), y = t.Input("y", kF32, {4}), m = t.Input("m", kF32, {5, 4});
    t.Output("max", Maximum(x, y));
    t.Output("min", Minimum(x, y));
    t.Output("relu", Relu(x));
    t.Output("rows_max", ReduceMax(m, {1}));
    t.Output("rows_min", ReduceMin(m, {1}));
    t.Output("pool", MaxPool2d(Reshape(m, {5, 1, 2, 2}), {.window = {2, 2}}));
  });
  HostTensor m = HostTensor::Zeros({kF32, {5, 4}});
  for (int64_t row = 0; row < 4; ++row) m.set(5 * row, Scalar::Float(kF32, NAN));  // every position once
  const EvalInputs in = Given({{"x", Vector({NAN, 1, NAN, -1})}, {"y", Vector({1, NAN, NAN, 2})}, {"m", m}});
  for (const char* name : {"max", "min"}) {
    const std::vector<double> v = RunAs(p, in, name);
    EXPECT_TRUE(NotANumber(v[0]) && NotANumber(v[1]) && NotANumber(v[2])) << name;
    EXPECT_EQ(v[3], std::string(name) == "max" ? 2 : -1);
  }
  EXPECT_TRUE(NotANumber(RunAs(p, in, "relu")[0]));
  for (const char* name : {"rows_max", "rows_min", "pool"}) {
    const std::vector<double> v = RunAs(p, in, name);
    for (int row = 0; row < 4; ++row) EXPECT_TRUE(NotANumber(v[row])) << name << " " << row;
    EXPECT_EQ(v[4], 0);
  }
}

// Rows of equal logits, small and large, one that is far above the rest, and one of which nothing is left.
TEST(Numerics, N9SoftmaxOfThousandsOfHalves) {
  constexpr int64_t n = 4096;
  const Program p = Traced([](Trace& t) {
    const agc::Tensor x = t.Input("x", kF16, {4, n}), mask = t.Input("mask", kBool, {4, n});
    const agc::Tensor y = Softmax(x), masked = MaskedSoftmax(x, mask);
    t.Output("y", y);
    t.Output("sums", ReduceSum(y, {1}));
    t.Output("masked", ReduceSum(masked, {1}));
    t.Output("slope", Gradient(ReduceSum(masked * masked), x));
  });
  HostTensor x = HostTensor::Zeros({kF16, {4, n}}), mask = HostTensor::Zeros({kBool, {4, n}});
  for (int64_t i = 0; i < 4 * n; ++i) {
    const double row[] = {0, 1e4, i == 2 * n + 5 ? 60000.0 : -60000.0, 3};
    x.set(i, Scalar::Float(kF16, row[i / n]));
    mask.set(i, Scalar::Int(kBool, i < 3 * n ? 1 : 0));
  }
  const EvalInputs in = Given({{"x", x}, {"mask", mask}});
  EXPECT_THAT(RunAs(p, in, "sums"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(RunAs(p, in, "masked"), ElementsAre(1, 1, 1, 0));
  const std::vector<double> y = RunAs(p, in, "y");
  EXPECT_EQ(y[0], 1.0 / n);
  EXPECT_EQ(y[n], 1.0 / n);
  EXPECT_EQ(y[2 * n + 5], 1);
  for (double v : RunAs(p, in, "slope")) ASSERT_TRUE(std::isfinite(v));
}

TEST(Numerics, N11RoundsHalvesToEven) {
  const Program p = Traced([](Trace& t) { t.Output("y", Round(t.Input("x", kF32, {6}))); });
  const EvalInputs in = Given({{"x", Vector({0.5, 1.5, 2.5, -0.5, -1.5, 2.4999998})}});
  const std::vector<double> y = RunAs(p, in, "y");
  EXPECT_THAT(y, ElementsAre(0, 2, 2, 0, -2, 2));
  EXPECT_TRUE(std::signbit(y[3]));
}

// What is only moved keeps its bits on every way through kernels; sums of squares are taken in the dtype asked for.
TEST(Numerics, N13CopiesKeepTheirBits) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor x = t.Input("x", kF32, {1, 6, 4, 5});
    const agc::Tensor moved = Reshape(Transpose(Concat({x, Flip(x, {3})}, 1), {0, 2, 3, 1}), {4, 5, 12});
    t.Output("moved", Where(Less(moved, 2.0), moved, -moved));
    t.Output("taken", Take(x, Iota(t.builder(), kI32, {6}), 1));
    t.Output("lrn", Lrn(x, {.size = 5, .alpha = 0.5}));
  });
  EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  in.params["x"].set(0, Scalar::Float(kF32, 0.5569));
  const EvalResult got = OnDevice(p, "g", in), want = Evaluated(p, "g", in);
  for (const char* name : {"moved", "taken"})
    EXPECT_TRUE(got.outputs.at(name).bytes == Evaluated(p, "g", in, EvalMode::kExact).outputs.at(name).bytes) << name;
  EXPECT_EQ(Difference(got, want, 2e-6), "");
}

// The place that a position beyond the border stands for; -1: none.
int64_t Inside(const std::string& mode, int64_t k, int64_t n) {
  if (mode == "edge") return std::clamp<int64_t>(k, 0, n - 1);
  if (mode == "wrap") return (k + n) % n;
  if (mode == "reflect") return k < 0 ? -k : k < n ? k : 2 * (n - 1) - k;
  return k < 0 || k >= n ? -1 : k;
}

// N15 in every mode of the border: sums of 3x3 neighbours and their gradients. Nothing is read outside, which the loop
// executor and the validation layer check.
TEST(Numerics, N15NeighboursBeyondTheBorder) {
  constexpr int64_t n = 256;
  for (const std::string mode : {"zero", "edge", "wrap", "reflect"}) {
    const Program p = Traced([&](Trace& t) {
      const agc::Tensor x = t.Input("x", kF32, {n, n}), w = t.Input("w", kF32, {n, n});
      const PadMode by = mode == "edge" ? PadMode::kEdge : mode == "wrap" ? PadMode::kWrap : PadMode::kReflect;
      const agc::Tensor padded = mode == "zero" ? Pad(x, 0, {1, 1}, {1, 1}) : Pad(x, by, {1, 1}, {1, 1});
      agc::Tensor sum = FullLike(x, 0);
      for (int64_t k = 0; k < 9; ++k) sum = sum + Slice(padded, {k / 3, k % 3}, {k / 3 + n, k % 3 + n}, {});
      t.Output("sum", sum);
      t.Output("slope", Gradient(ReduceSum(sum * w), x));
      if (mode != "zero") return;
      const agc::Tensor ones = Full(t.builder(), {kF32, {1, 1, 3, 3}}, 1);
      t.Output("conv", Reshape(Conv2d(Reshape(x, {1, 1, n, n}), ones, {.pad = {1, 1, 1, 1}}), {n, n}));
    });
    const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
    const HostTensor &x = in.params.at("x"), &w = in.params.at("w");
    std::vector<double> sum(n * n), slope(n * n);
    for (int64_t at = 0; at < n * n; ++at) {
      for (int64_t k = 0; k < 9; ++k) {
        const int64_t i = Inside(mode, at / n + k / 3 - 1, n), j = Inside(mode, at % n + k % 3 - 1, n);
        if (i < 0 || j < 0) continue;
        sum[at] += x.at(i * n + j).f();
        slope[i * n + j] += w.at(at).f();
      }
    }
    const EvalResult got = OnDevice(p, "g", in);
    EXPECT_LE(ErrorOf(got.outputs.at("sum"), TensorOf({kF64, {n, n}}, sum)), 2e-6) << mode;
    EXPECT_LE(ErrorOf(got.outputs.at("slope"), TensorOf({kF64, {n, n}}, slope)), 2e-6) << mode;
    EXPECT_EQ(Difference(Executed(p, "g", in), got, 1e-6), "") << mode;
    if (mode == "zero") {
      EXPECT_LE(ErrorOf(got.outputs.at("conv"), TensorOf({kF64, {n, n}}, sum)), 2e-6);
    }
  }
}

TEST(Numerics, S1NothingIsLegal) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor e = t.Input("e", kF32, {2, 0, 3}), a = t.Input("a", kF32, {2, 0}),
                      b = t.Resident("b", kF32, {0, 3});
    const agc::Tensor s = t.State("s", {kF32, {0, 4}});
    t.Output("sum", ReduceSum(e + e, {1}));
    t.Output("empty", Concat({e, e}, 2));
    t.Output("product", Matmul(a, b));
    t.OutputEachStep("steps", Reshape(e, {0}));
    t.Update("s", s * 2.0);
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  const absl::StatusOr<Program> plan = LowerToPlan(Clone(p), TheTarget(), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const Buffer& buffer : plan->FindGraph("g")->buffers) EXPECT_GT(buffer.size, 0) << buffer.name;
  for (const Step& step : plan->FindGraph("g")->steps) EXPECT_THAT(step.groups, Each(testing::Gt(0)));
  const EvalResult got = OnDevice(p, "g", in);
  EXPECT_THAT(Numbers(got.outputs.at("sum")), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Numbers(got.outputs.at("product")), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ToString(got.outputs.at("empty").type), "f32[2,0,6]");
  EXPECT_EQ(ToString(got.outputs.at("steps").type), "f32[1,0]");
  EXPECT_EQ(Difference(got, Evaluated(p, "g", in, EvalMode::kExact), 0), "steps of f32[0] is off by inf; ");
  Module m("m");
  m.Graph("g", [](Trace& t) { t.Output("y", ReduceMax(t.Input("e", kF32, {2, 0}), {1})); });
  EXPECT_EQ(m.status().code(), absl::StatusCode::kInvalidArgument);
}

// Sides padded apart, by rule, by one number; dilation along one axis; depthwise; transposed. All with gradients.
TEST(Numerics, S2ConvolutionsOfEveryForm) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor x = t.Input("x", kF32, {2, 4, 9, 11}), w = t.Input("w", kF32, {6, 4, 3, 2});
    const agc::Tensor d = t.Input("d", kF32, {4, 1, 3, 3}), l = t.Input("l", kF32, {2, 4, 7}),
                      v = t.Input("v", kF32, {4, 3, 4});
    const std::pair<const char*, agc::Tensor> all[] = {
        {"sides", Conv(x, w, {.pad = {1, 0, 2, 1}})},
        {"same", Conv(x, w, {.stride = {2}, .auto_pad = AutoPad::kSameUpper})},
        {"one", Conv(x, w, {.pad = {1}})},
        {"dilated", Conv(x, w, {.pad = {0, 2, 0, 2}, .dilation = {1, 4}})},
        {"depthwise", Conv(x, d, {.stride = {2}, .pad = {1}, .groups = 4})},
        {"transposed", ConvTranspose(l, v, {.stride = {2}, .pad = {1}})},
    };
    for (const auto& [name, y] : all) {
      t.Output(name, y);
      t.Output(absl::StrCat(name, "_dx"), Gradient(ReduceSum(Square(y)), y.rank() == 3 ? l : x));
    }
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  const EvalResult got = OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses});
  EXPECT_EQ(ToString(got.outputs.at("sides").type), "f32[2,6,10,11]");
  EXPECT_EQ(ToString(got.outputs.at("same").type), "f32[2,6,5,6]");
  EXPECT_EQ(ToString(got.outputs.at("transposed").type), "f32[2,3,14]");
  EXPECT_EQ(Difference(got, Evaluated(p, "g", in), 2e-5), "");
}

TEST(Numerics, S3SoftmaxOverAnyAxis) {
  for (int64_t axis : {0, 1, 2, 3, -2}) {
    const Program p = Traced([&](Trace& t) {
      const agc::Tensor y = Softmax(t.Input("x", kF32, {2, 3, 4, 5}), axis);
      t.Output("y", y);
      t.Output("sums", ReduceSum(y, {axis}));
    });
    const EvalInputs in = RandomInputs(p, p.graphs[0], -9, 9);
    EXPECT_THAT(RunAs(p, in, "sums"), Each(testing::DoubleNear(1, 1e-6)));
    EXPECT_EQ(Difference(OnDevice(p, "g", in), Evaluated(p, "g", in), 2e-6), "");
  }
}

// A table of vectors at positions of two axes, whose neighbours fuse.
TEST(Numerics, S6TakenRowsBesideFusedOps) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor table = t.Input("table", kF32, {10, 8}), at = t.Input("at", kI32, {3, 5});
    const agc::Tensor w = t.Input("w", kF32, {8, 8}), x = t.Input("x", kF32, {3, 5, 8}), b = t.Input("b", kF32, {8});
    const agc::Tensor y = Relu(Take(table, at) + Matmul(x, w) + b);
    const agc::Tensor z = LayerNorm(y, b, b) * Take(table, Reshape(Slice(at, {0, 0}, {3, 1}, {}), {3, 1}));
    t.Output("z", z);
    t.Output("slope", Gradient(ReduceSum(z * x), table));
  });
  EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  in.params["at"] = Random({kI32, {3, 5}}, -10, 9, 7);
  EXPECT_EQ(Difference(OnDevice(p, "g", in), Evaluated(p, "g", in), 1e-5), "");
}

// A graph per length in one bundle: each is compiled once, and every run has its own.
TEST(Numerics, S9EightLengthsInTurn) {
  Module m("m");
  for (int64_t n = 1; n <= 8; ++n) {
    m.Graph(absl::StrCat("length", n), [&](Trace& t) {
      const agc::Tensor x = t.Input("x", kF32, {n, 4}), w = t.Input("w", kF32, {4, 4});
      t.Output("y", Matmul(Softmax(Matmul(x, T(x))), Matmul(x, w)));
    });
  }
  ASSERT_TRUE(m.status().ok()) << m.status();
  const Program p = Clone(m.program());
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(p), TheTarget(), {.abi = BufferAbi::kAddresses});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int round = 0; round < 2; ++round) {
    for (const Graph& graph : p.graphs) {
      const EvalInputs in = RandomInputs(p, graph, -1, 1, static_cast<uint32_t>(round + 1));
      const EvalResult got = Checked(RunSession(*session, p, graph, in));
      EXPECT_EQ(Difference(got, Evaluated(p, graph.name, in), 1e-6), "") << graph.name;
    }
  }
}

TEST(Numerics, G1GradientsHaveTheShapeOfTheirOperand) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor a = t.Input("a", kF32, {2, 1}), b = t.Input("b", kF32, {2, 3});
    const agc::Tensor c = t.Input("c", kF32, {2, 1, 3, 4}), d = t.Input("d", kF32, {2, 1, 3, 1});
    const agc::Tensor s = t.Input("s", kF32, {}), v = t.Input("v", kF32, {5});
    const agc::Tensor loss = ReduceSum(Square(a - b)) + ReduceSum(c * d) + ReduceSum(s * v);
    const std::pair<const char*, agc::Tensor> all[] = {{"da", a}, {"db", b}, {"dc", c},
                                                       {"dd", d}, {"ds", s}, {"dv", v}};
    for (const auto& [name, x] : all) t.Output(name, Gradient(loss, x));
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  const EvalResult got = OnDevice(p, "g", in);
  for (const auto& [name, x] : in.params) EXPECT_EQ(got.outputs.at("d" + name).type, x.type) << name;
  EXPECT_EQ(Difference(got, Evaluated(p, "g", in), 1e-6), "");
  const std::vector<double> a = Numbers(in.params.at("a")), b = Numbers(in.params.at("b"));
  EXPECT_NEAR(got.outputs.at("da").at(0).f(), 2 * (3 * a[0] - b[0] - b[1] - b[2]), 1e-5);
  EXPECT_NEAR(
      got.outputs.at("ds").at(0).f(),
      [&] {
        double sum = 0;
        for (double x : Numbers(in.params.at("v"))) sum += x;
        return sum;
      }(),
      1e-5);
}

TEST(Numerics, G3TiesOfPoolingAndReductions) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor x = t.Input("x", kF32, {1, 1, 2, 4}), y = t.Input("y", kF32, {70000});
    const agc::Tensor z = t.Input("z", kF32, {2});
    t.Output("pool", Gradient(ReduceSum(MaxPool2d(x, {.window = {2, 2}})), x));
    t.Output("reduce", Gradient(ReduceMax(y), y));
    t.Output("binary", Gradient(ReduceSum(Maximum(z, Square(z))), z));
  });
  EvalInputs in = Given({{"x", TensorOf({kF32, {1, 1, 2, 4}}, std::vector<double>(8, 1))},
                         {"y", Vector(std::vector<double>(70000, 3))},
                         {"z", Vector({1, 1})}});
  EXPECT_THAT(RunAs(p, in, "pool"), ElementsAre(1, 0, 1, 0, 0, 0, 0, 0));  // the first winner takes all
  EXPECT_THAT(RunAs(p, in, "reduce"), Each(testing::DoubleNear(1.0 / 70000, 1e-11)));
  EXPECT_THAT(RunAs(p, in, "binary"), Each(1.5));  // half of 1 and half of 2
}

TEST(Numerics, G5DeadBranchesPassNoGradient) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor x = t.Input("x", kF32, {3}), logits = t.Input("logits", kF32, {4}),
                      big = t.Input("big", kF32, {3});
    const agc::Tensor mask = t.Input("mask", kBool, {4});
    t.Output("where", Gradient(ReduceSum(Where(Less(x, 1), x, Sqrt(x))), x));
    const agc::Tensor masked = Softmax(Where(mask, logits, FullLike(logits, -1e30)));
    t.Output("masked", masked);
    t.Output("dlogits", Gradient(ReduceSum(masked * masked), logits));
    t.Output("softplus", Gradient(ReduceSum(Softplus(x)), x));
    const agc::Tensor log_p = LogSoftmax(big);
    t.Output("log_p", log_p);
    t.Output("dbig", Gradient(ReduceSum(log_p * log_p), big));
  });
  const EvalInputs in = Given({{"x", Vector({0, -1, 4})},
                               {"logits", Vector({1, 1e38, 2, -3})},
                               {"big", Vector({65536, -65536, 0})},
                               {"mask", TensorOf({kBool, {4}}, {1, 0, 1, 1})}});
  EXPECT_THAT(RunAs(p, in, "where"), ElementsAre(1, 1, testing::DoubleNear(0.25, 1e-6)));
  EXPECT_NEAR(RunAs(p, in, "softplus")[0], 0.5, 1e-6);
  for (const char* name : {"masked", "dlogits", "softplus", "log_p", "dbig"}) {
    for (double v : RunAs(p, in, name)) EXPECT_TRUE(std::isfinite(v)) << name;
  }
  EXPECT_EQ(RunAs(p, in, "masked")[1], 0);
  EXPECT_EQ(RunAs(p, in, "dlogits")[1], 0);
}

}  // namespace
}  // namespace agc::test
