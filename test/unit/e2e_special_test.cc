// LABELS: vulkan
// Elementwise ops on the values where languages and drivers differ: NaN, infinities, signed zeros, halves, numbers near
// the ends of the range, division by zero, shifts by too much, sums that wrap. Every pair of them, on the device in
// both ABIs and in the loop executor, equals the evaluator that rounds every operation: integers exactly, floats within
// the row's tolerance, NaN where it has NaN.
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

std::vector<double> SpecialsOf(DType t) {
  constexpr double kInf = HUGE_VAL;
  if (t == kF32) {
    return {0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 7, -7, 100, -100, 1e-30, 3e38, -3e38, kInf, -kInf, NAN};
  }
  if (t == kI32) return {0, 1, -1, 2, -2, 7, -7, 31, 32, 33, -33, 255, 65536, 2147483647, -2147483647, -2147483648.0};
  if (t == kU32) return {0, 1, 2, 7, 31, 32, 33, 255, 65536, 2147483647, 2147483648.0, 4294967295.0};
  if (t == kU8) return {0, 1, 2, 7, 8, 9, 127, 128, 200, 255};
  if (t == kI8) return {0, 1, -1, 2, 7, 8, 100, 127, -127, -128};
  return {0, 1};
}

// All pairs (of one operand: all values).
EvalInputs PairsOf(const Graph& graph, const std::vector<double>& values) {
  EvalInputs in;
  const size_t n = values.size();
  for (size_t k = 0; k < graph.params.size(); ++k) {
    HostTensor t = HostTensor::Zeros(graph.params[k].type);
    for (size_t i = 0; i < n * n; ++i) {
      const bool is_bool = t.type.dtype == kBool;
      const double v = is_bool ? static_cast<double>(i % 3 == 0) : values[(k == 0 ? i / n : (i + k - 1)) % n];
      t.set(static_cast<int64_t>(i), Scalar::Of(t.type.dtype, v));
    }
    in.params[graph.params[k].name] = std::move(t);
  }
  return in;
}

// f32 functions that devices compute loosely at the ends of their range.
bool Loose(absl::string_view op, double error, double value) {
  return (op == "sin" || op == "cos") && std::abs(value) > 10 && error < 2;
}

std::string Compare(const OpDef& op, const Graph& graph, const EvalInputs& in, const EvalResult& got,
                    const EvalResult& want) {
  const HostTensor& a = got.outputs.at("y0");
  const HostTensor& b = want.outputs.at("y0");
  const double allowed = IsFloat(b.type.dtype) ? op.tol.f32 : 0;
  std::string text;
  for (int64_t i = 0; i < b.type.elements(); ++i) {
    const double x = a.at(i).AsDouble(), y = b.at(i).AsDouble();
    const double error = x == y || (std::isnan(x) && std::isnan(y)) ? 0 : std::abs(x - y) / std::max(1.0, std::abs(y));
    if (error <= allowed) continue;
    if (Loose(op.name, error, in.params.begin()->second.at(i).AsDouble())) continue;
    std::string operands;
    for (const GraphParam& p : graph.params) absl::StrAppend(&operands, " ", ToString(in.params.at(p.name).at(i)));
    absl::StrAppend(&text, op.name, operands, " = ", x, ", not ", y, "; ");
    if (text.size() > 600) break;
  }
  return text;
}

void CheckDType(DType t, size_t at_least) {
  const std::vector<double> values = SpecialsOf(t);
  const std::string dims = absl::StrCat(values.size() * values.size());
  OpModule m;
  std::vector<const OpDef*> ops;
  for (const OpDef* op : AllOps()) {
    if (op->numpy.empty() || op->cls != OpClass::kElementwise || op->name == "one_hot") continue;
    HandMade c{.op = std::string(op->name), .attrs = std::string(op->sample.attrs)};
    if (op->name == "cast") c.attrs = t == kF32 ? "dtype = i32" : "dtype = f32";
    for (int i = 0; i < op->arity.min; ++i) c.shapes.push_back(absl::StrCat(Name(t), "[", dims, "]"));
    if (op->name == "select") c.shapes[0] = absl::StrCat("bool[", dims, "]");
    const absl::StatusOr<OpSample> s = SampleOf(*op, c);
    if (!s.ok()) continue;
    AddCase(*s, {}, m);
    ops.push_back(op);
  }
  ASSERT_GE(ops.size(), at_least);
  const rt::Bundle plain = CompileProgram(Clone(m.program), TheTarget(), {.optimize = 0}).value();
  const rt::Bundle fast =
      CompileProgram(Clone(m.program), TheTarget(), {.abi = BufferAbi::kAddresses, .optimize = 2}).value();
  rt::Session a = LoadOnDevice(plain).value(), b = LoadOnDevice(fast).value();
  const Program plan = LowerToPlan(Clone(m.program), TheTarget(), {}).value();
  for (size_t g = 0; g < ops.size(); ++g) {
    const Graph& graph = m.program.graphs[g];
    const EvalInputs in = PairsOf(graph, values);
    const EvalResult want = Checked(EvaluateGraph(m.program, graph, in, EvalMode::kExact));
    EXPECT_EQ(Compare(*ops[g], graph, in, Checked(RunSession(a, m.program, graph, in)), want), "");
    EXPECT_EQ(Compare(*ops[g], graph, in, Checked(RunSession(b, m.program, graph, in)), want), "");
    EXPECT_EQ(Compare(*ops[g], graph, in, Checked(Evaluate(plan, graph.name, in)), want), "");
  }
}

TEST(Special, F32) { CheckDType(kF32, 30); }
TEST(Special, I32) { CheckDType(kI32, 20); }
TEST(Special, U32) { CheckDType(kU32, 15); }
TEST(Special, U8) { CheckDType(kU8, 15); }
TEST(Special, I8) { CheckDType(kI8, 15); }

// Intermediate results of narrow types wrap although they stay in registers.
TEST(Special, NarrowIntermediatesWrap) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const agc::Tensor u = t.Input("u", kU8, {4}), i = t.Input("i", kI8, {4});
    t.Output("average", FloorDiv(u + u, ScalarLike(u, 2, {})));
    t.Output("signed", CastTo(i + i, kI32));
    t.Output("product", CastTo(u * u, kF32));
    t.Output("less", Less(u + u, u));
  });
  EvalInputs in;
  in.params["u"] = TensorOf({kU8, {4}}, {100, 200, 255, 3});
  in.params["i"] = TensorOf({kI8, {4}}, {100, -100, 127, -3});
  const EvalResult got = OnDevice(m.program(), "g", in);
  EXPECT_THAT(Numbers(got.outputs.at("average")), testing::ElementsAre(100, 72, 127, 3));
  EXPECT_THAT(Numbers(got.outputs.at("signed")), testing::ElementsAre(-56, 56, -2, -6));
  EXPECT_THAT(Numbers(got.outputs.at("product")), testing::ElementsAre(16, 64, 1, 9));
  EXPECT_THAT(Numbers(got.outputs.at("less")), testing::ElementsAre(0, 1, 1, 0));
}

// Indices beyond the end: negative ones count from there, the rest are clamped; no foreign memory is read.
TEST(Special, TakeClampsItsIndices) {
  Module m("m");
  m.Graph("g", [](Trace& t) {
    const agc::Tensor at = t.Input("at", kI32, {6});
    t.Output("y", Take(t.Input("x", kF32, {10}), at));
    t.Output("rows", Take(t.Input("z", kF32, {2, 10, 3}), at, 1));
  });
  EvalInputs in = RandomInputs(m.program(), m.program().graphs[0], -1, 1);
  in.params["x"] = TensorOf({kF32, {10}}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  in.params["at"] = TensorOf({kI32, {6}}, {10, -1, 100, -10, -11, 2147483647});
  const EvalResult got = OnDevice(m.program(), "g", in);
  EXPECT_THAT(Numbers(got.outputs.at("y")), testing::ElementsAre(9, 9, 9, 0, 0, 9));
  EXPECT_EQ(Difference(got, Evaluated(m.program(), "g", in, EvalMode::kExact), 0), "");
  EXPECT_EQ(Difference(Executed(m.program(), "g", in), got, 0), "");
}

}  // namespace
}  // namespace agc::test
