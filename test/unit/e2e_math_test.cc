// LABELS: vulkan
// Mathematical functions on the device against the f64 evaluator: relative error at ordinary, small and large
// arguments, and exactly what IEEE 754 says at zeros, poles, infinities and NaN. One kernel per function, with
// addresses, which lavapipe compiles faster.
#include <functional>

#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "test/unit/e2e_tools.h"

namespace agc::test {
namespace {

const std::vector<double> kEdges = {0,    -0.0, INFINITY, -INFINITY, NAN,        1,      -1,    1.5,   -1.5,
                                    0.5,  -0.5, 2,        -2,        1e-30,      -1e-30, 1e-5,  -1e-5, 0.3,
                                    -0.7, 0.99, 1.01,     -0.99,     3.14159274, 4,      -9.5,  20.6,  -20.6,
                                    88.5, -87,  89.3,     1000,      -8191.5,    3e5,    -1e10, 1e30,  -3e38};

// Error in units of 2^-24 of the result; infinite where only one is NaN or infinite, or a zero has the other sign.
double Ulps(double got, double want) {
  if (std::abs(want) > 3.4028235e38) want = want > 0 ? INFINITY : -INFINITY;
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : HUGE_VAL;
  if (got == want) return std::signbit(got) == std::signbit(want) ? 0 : HUGE_VAL;
  return std::abs(got - want) / std::max(std::abs(want), 1.2e-38) * 16777216;
}

struct Function {
  const char* op;
  double ulps;
};

// Every op on the same operands, one graph each: compares what the device and the f64 evaluator give.
void ForEach(const std::vector<const char*>& ops, const std::vector<HostTensor>& x,
             const std::function<void(size_t op, const HostTensor& got, const HostTensor& want)>& compare) {
  Program program;
  EvalInputs in;
  for (size_t k = 0; k < x.size(); ++k) in.params[absl::StrCat("x", k)] = x[k];
  for (const char* op : ops) {
    Graph& graph = program.graphs.emplace_back();
    graph.name = op;
    std::vector<OpId> operands;
    for (size_t k = 0; k < x.size(); ++k)
      operands.push_back(AppendInput(graph, ParamKind::kInput, absl::StrCat("x", k), x[k].type, {}));
    const absl::StatusOr<OpId> y = AppendChecked(graph, *FindOp(op), operands, {}, {});
    ASSERT_TRUE(y.ok()) << y.status();
    graph.outputs.push_back({.name = "y", .type = graph.op(*y).type(), .value = *y});
  }
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(program), TheTarget(), {.abi = BufferAbi::kAddresses});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  ASSERT_TRUE(session.ok()) << session.status();
  for (size_t g = 0; g < ops.size(); ++g) {
    const EvalResult got = Checked(RunSession(*session, program, program.graphs[g], in));
    const EvalResult want = Checked(EvaluateGraph(program, program.graphs[g], in, EvalMode::kDouble));
    compare(g, got.outputs.at("y"), want.outputs.at("y"));
  }
}

void ExpectClose(const std::vector<Function>& functions, const std::vector<std::vector<double>>& x) {
  std::vector<const char*> ops;
  for (const Function& f : functions) ops.push_back(f.op);
  std::vector<HostTensor> operands;
  for (const auto& values : x) operands.push_back(TensorOf({kF32, {static_cast<int64_t>(values.size())}}, values));
  ForEach(ops, operands, [&](size_t op, const HostTensor& got, const HostTensor& want) {
    for (int64_t i = 0; i < got.type.elements(); ++i) {
      const double a = got.at(i).f(), b = want.at(i).f();
      EXPECT_LE(Ulps(a, b), functions[op].ulps)
          << ops[op] << "(" << operands[0].at(i).f() << (x.size() > 1 ? absl::StrCat(", ", operands[1].at(i).f()) : "")
          << ") = " << a << ", expected " << b;
    }
  });
}

void ExpectNear(const std::vector<const char*>& ops, const std::vector<HostTensor>& x, double tolerance) {
  ForEach(ops, x, [&](size_t op, const HostTensor& got, const HostTensor& want) {
    EXPECT_LE(ErrorOf(got, want), tolerance) << ops[op] << " of " << ToString(x[0].type);
  });
}

TEST(MathOnDevice, RelativeErrorAndEdges) {
  ExpectClose({{"sin", 8},   {"cos", 8},   {"tan", 12},  {"asin", 6},  {"acos", 4},  {"atan", 4},  {"sinh", 6},
               {"cosh", 6},  {"tanh", 5},  {"asinh", 4}, {"acosh", 5}, {"atanh", 5}, {"expm1", 4}, {"log", 4},
               {"log2", 4},  {"log10", 4}, {"log1p", 4}, {"erf", 4},   {"erfc", 8},  {"cbrt", 4},  {"exp2", 300},
               {"exp", 300}, {"trunc", 0}, {"round", 0}, {"floor", 0}, {"ceil", 0},  {"sqrt", 4},  {"abs", 0}},
              {kEdges});
}

// Where the result is an ordinary number, a subnormal operand counts as what it is or as 0, and as nothing else.
TEST(MathOnDevice, SubnormalOperandsAreTakenAsTheyAreOrForZero) {
  const std::vector<double> tiny = {1e-45, -1e-45, 3e-42, -5e-40, 1.1e-38};
  const HostTensor x = TensorOf({kF32, {static_cast<int64_t>(tiny.size())}}, tiny);
  const std::vector<const char*> ops = {"cbrt", "sqrt", "rsqrt", "log", "log2", "log10", "exp", "cos", "sigmoid"};
  ForEach(ops, {x}, [&](size_t op, const HostTensor& got, const HostTensor& want) {
    const std::string name = ops[op];
    for (int64_t i = 0; i < got.type.elements(); ++i) {
      const double a = got.at(i).f(), b = want.at(i).f();
      const bool flushed = name == "cbrt" || name == "sqrt" ? a == 0 : std::isinf(a) && !std::isinf(b);
      EXPECT_TRUE(flushed || Ulps(a, b) <= 8) << name << "(" << x.at(i).f() << ") = " << a << ", expected " << b;
    }
  });
}

TEST(MathOnDevice, PairsOfEdges) {
  std::vector<std::vector<double>> x(2);
  for (double a :
       {0.0, -0.0, 1.0, -1.0, 2.0, -7.0, 0.5, 5.5, 3e38, -1e-30, double(INFINITY), -double(INFINITY), double(NAN)}) {
    for (double b :
         {0.0, -0.0, 1.0, -1.0, 3.0, -2.0, 0.5, -3e38, 1e-30, double(INFINITY), -double(INFINITY), double(NAN)}) {
      x[0].push_back(a);
      x[1].push_back(b);
    }
  }
  ExpectClose({{"atan2", 6}, {"hypot", 6}, {"copysign", 0}, {"mod", 2}, {"rem", 0}, {"floor_div", 2}, {"pow", 40}}, x);
}

// In f64 to the bit, also where the quotient has hundreds of digits and where numbers are subnormal.
TEST(MathOnDevice, RemaindersOfF64EqualTheEvaluator) {
  if (!TheTarget().has("shader_float64")) GTEST_SKIP() << "the device has no f64";
  std::vector<double> a, b;
  for (double x : {0.0, -0.0, 1.0, -1.0, 0.1, -7.0, 5.5, 1e15, -1e18, 1e300, 1.7e308, 5e-324, -3e-310, 1e-300,
                   double(INFINITY), double(NAN)}) {
    for (double y : {0.0, 1.0, -1.0, 0.1, 3.0, -2.5, 1e-5, 7e17, -1e-300, 1.7e308, 5e-324, 3e-320, double(INFINITY),
                     -double(INFINITY), double(NAN)}) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const TensorType type{kF64, {static_cast<int64_t>(a.size())}};
  const std::vector<const char*> ops = {"rem", "mod", "floor_div"};
  ForEach(ops, {TensorOf(type, a), TensorOf(type, b)}, [&](size_t op, const HostTensor& got, const HostTensor& want) {
    for (int64_t i = 0; i < type.elements(); ++i) {
      const double x = got.at(i).f(), y = want.at(i).f();
      EXPECT_TRUE((std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y)))
          << ops[op] << "(" << a[i] << ", " << b[i] << ") = " << x << ", expected " << y;
    }
  });
}

// N1, of all activations: finite for finite arguments, and close to f64 wherever that is within the range of f32.
TEST(MathOnDevice, N1ActivationsAreFinite) {
  const std::vector<double> x = {0,     0.5, -0.5, 3,   -3,   13.24, -13.24, 20.6,
                                 -20.6, 100, -100, 1e4, -1e4, 1e30,  -1e30,  3e38};
  ExpectNear(
      {"gelu", "silu", "sigmoid", "softplus", "swish", "mish", "elu", "celu", "selu", "log_sigmoid", "softsign",
       "tanhshrink", "hard_swish", "hard_sigmoid", "relu6", "hard_tanh", "shrink", "thresholded_relu", "leaky_relu"},
      {TensorOf({kF32, {static_cast<int64_t>(x.size())}}, x)}, 2e-6);
}

// N6: narrow integers are sign-extended when they are loaded.
TEST(MathOnDevice, N6NarrowIntegersKeepTheirSign) {
  for (DType t : {kI8, kI16}) {
    const double most = t == kI8 ? 127 : 32767;
    const HostTensor x = TensorOf({t, {7}}, {-most - 1, -most, -100, -1, 0, 100, most});
    const HostTensor y = TensorOf({t, {7}}, {-3, 3, -most - 1, most, -7, 7, -1});
    ExpectNear({"relu6", "abs", "neg", "sign", "bit_not", "population_count"}, {x}, 0);
    ExpectNear({"maximum", "minimum", "fmax", "mod", "rem", "floor_div", "div", "shift_right", "lt"}, {x, y}, 0);
    const Program p =
        Parsed(absl::StrCat("module @m { graph @g(input %x: ", Name(t), "[7]) -> (%y: ", Name(t),
                            "[7]) { %0: ", Name(t), "[7] = clamp %x {lo = -100, hi = 50} output %y = %0 } }"));
    EvalInputs in;
    in.params["x"] = x;
    EXPECT_THAT(Numbers(OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses}).outputs.at("y")),
                testing::ElementsAre(-100, -100, -100, -1, 0, 50, 50));
  }
}

// N7: NaN in every order.
TEST(MathOnDevice, N7NanPropagatesOrIsIgnored) {
  const TensorType type{kF32, {4}};
  const HostTensor x = TensorOf(type, {NAN, 1, NAN, -1}), y = TensorOf(type, {1, NAN, NAN, 2});
  ExpectNear({"maximum", "minimum", "fmax", "fmin", "hypot", "logaddexp", "prelu"}, {x, y}, 1e-6);
  ExpectNear({"relu", "relu6", "hard_tanh", "hard_swish", "shrink", "thresholded_relu", "leaky_relu", "elu", "mish",
              "gelu", "sign", "nan_to_num", "isnan", "isinf", "isfinite"},
             {x}, 1e-6);
}

// G5 and its kind: first and second derivatives at zeros, ties and beside dead branches.
TEST(MathOnDevice, G5AwkwardPointsHaveDerivatives) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const Tensor x = t.Input("x", kF32, {5}), zero = FullLike(x, 0);
    const std::pair<const char*, Tensor> all[] = {
        {"sqrt", Where(Less(x, 1), x, Sqrt(x))},
        {"log1p", Where(Greater(x, -1), Log1p(x), x)},
        {"asin", Where(Less(Abs(x), 1), Asin(x), zero)},
        {"logit", Where(Less(Abs(x - 0.5), 0.5), Logit(x), zero)},
        {"hypot", Hypot(x, zero)},
        {"pow", Pow(x, 2)},
        {"elu", Elu(x)},
        {"mish", Mish(x)},
        {"gelu", Gelu(x)},
    };
    for (const auto& [name, y] : all) {
      const Tensor d = Gradient(ReduceSum(y), x);
      t.Output(absl::StrCat(name, "_1"), d);
      t.Output(absl::StrCat(name, "_2"), Gradient(ReduceSum(d), x));
    }
  });
  ASSERT_TRUE(m.status().ok()) << m.status();
  const Program p = Clone(m.program());
  EvalInputs in;
  in.params["x"] = TensorOf({kF32, {5}}, {0, -1, 1, 0.5, 4});
  const EvalResult got = OnDevice(p, "g", in, {.abi = BufferAbi::kAddresses});
  for (const auto& [name, t] : got.outputs) {
    for (double v : Numbers(t)) EXPECT_TRUE(std::isfinite(v)) << name;
  }
  EXPECT_EQ(Difference(got, Evaluated(p, "g", in), 1e-5), "");
}

}  // namespace
}  // namespace agc::test
