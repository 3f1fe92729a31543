// What the autograd pass does around the gradient rules of the op table, which derivatives_test.cc checks.
#include "gtest/gtest.h"
#include "ir/build.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "passes/registry.h"

namespace agc {
namespace {

void Output(Builder& b, const std::string& name, Value v) {
  b.graph->outputs.push_back({.name = name, .type = v.type(), .value = v.id});
}

absl::StatusOr<Program> Differentiate(const std::string& body, const std::vector<std::string>& passes = {"autograd"}) {
  absl::StatusOr<Program> program = Parse("module @m {\n" + body + "}\n", "m.agir");
  if (!program.ok()) return program;
  PassContext context;
  const absl::Status status = RunPipeline(*program, passes, context);
  if (!status.ok()) return status;
  return program;
}

HostTensor Doubles(Dims dims, std::vector<double> values) {
  HostTensor t = HostTensor::Zeros({DType::kF64, dims});
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Float(DType::kF64, values[i]));
  return t;
}

TEST(Autograd, ThirdOrder) {
  const auto program = Differentiate(R"(
  graph @f(input %x: f64[]) -> (%a: f64[], %b: f64[], %c: f64[]) {
    %0: f64[] = mul %x, %x
    %1: f64[] = mul %0, %0
    %2: f64[] = gradient %1, %x
    %3: f64[] = gradient %2, %x
    %4: f64[] = gradient %3, %x
    output %a = %2
    output %b = %3
    output %c = %4
  }
)");
  ASSERT_TRUE(program.ok()) << program.status();
  EvalInputs in;
  in.params["x"] = Doubles({}, {2});
  const auto r = EvaluateGraph(*program, program->graphs[0], in, EvalMode::kDouble);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_DOUBLE_EQ(r->outputs.at("a").at(0).f(), 32);  // x^4: 4 x^3, 12 x^2, 24 x
  EXPECT_DOUBLE_EQ(r->outputs.at("b").at(0).f(), 48);
  EXPECT_DOUBLE_EQ(r->outputs.at("c").at(0).f(), 48);
}

TEST(Autograd, DeadBranchOfSelectGivesNoNan) {
  const auto program = Differentiate(R"(
  graph @f(input %x: f64[3]) -> (%g: f64[3]) {
    %0: f64[3] = constant splat(0)
    %1: bool[3] = gt %x, %0
    %2: f64[3] = sqrt %x
    %3: f64[3] = log %2
    %4: f64[3] = select %1, %3, %0
    %5: f64[] = reduce_sum %4
    %6: f64[3] = gradient %5, %x
    output %g = %6
  }
)");
  ASSERT_TRUE(program.ok()) << program.status();
  EvalInputs in;
  in.params["x"] = Doubles({3}, {-1, 0, 2});
  const auto r = EvaluateGraph(*program, program->graphs[0], in, EvalMode::kDouble);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_DOUBLE_EQ(r->outputs.at("g").at(0).f(), 0);
  EXPECT_DOUBLE_EQ(r->outputs.at("g").at(1).f(), 0);
  EXPECT_DOUBLE_EQ(r->outputs.at("g").at(2).f(), 0.25);
}

TEST(Autograd, TwoLossesOfOneGraph) {
  const auto program = Differentiate(R"(
  graph @f(input %x: f64[2]) -> (%a: f64[2], %b: f64[2]) {
    %0: f64[] = reduce_sum %x
    %1: f64[2] = square %x
    %2: f64[] = reduce_sum %1
    %3: f64[2] = gradient %2, %x
    %4: f64[2] = gradient %0, %x
    output %a = %3
    output %b = %4
  }
)");
  ASSERT_TRUE(program.ok()) << program.status();
  EvalInputs in;
  in.params["x"] = Doubles({2}, {3, 5});
  const auto r = EvaluateGraph(*program, program->graphs[0], in, EvalMode::kDouble);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_DOUBLE_EQ(r->outputs.at("a").at(1).f(), 10);
  EXPECT_DOUBLE_EQ(r->outputs.at("b").at(1).f(), 1);
}

// Rows that no table has: a composite and a primitive without a gradient rule.
absl::StatusOr<Types> SameAsFirst(const OpCall& call) { return Types(call.type(0)); }
constexpr OpDef kCube = {.name = "cube",
                         .cls = OpClass::kComposite,
                         .arity = 1,
                         .infer = SameAsFirst,
                         .decompose = [](Rule& r) { return r.x[0] * r.x[0] * r.x[0]; },
                         .doc = "x^3."};
constexpr OpDef kOpaque = {.name = "opaque",
                           .cls = OpClass::kElementwise,
                           .arity = 1,
                           .infer = SameAsFirst,
                           .at = [](At& s, Index i) { return s.Read(0, i); },
                           .doc = "No rule."};

// g = gradient(def(x), x) of one f64.
Program GradientOf(const OpDef& def) {
  Program program;
  program.graphs.emplace_back();
  Graph& graph = program.graphs[0];
  graph.name = "f";
  Builder b{.program = &program, .graph = &graph};
  const OpId x = AppendInput(graph, ParamKind::kInput, "x", {DType::kF64, {}}, {});
  const OpId y = *AppendChecked(graph, def, {x}, {}, {"mlp.cc", 7});
  Output(b, "g", Gradient({&b, y}, {&b, x}, {"mlp.cc", 9}));
  return program;
}

TEST(Autograd, DecomposesACompositeWithoutARule) {
  Program program = GradientOf(kCube);
  PassContext context;
  ASSERT_TRUE(*Autograd(program, context));
  EvalInputs in;
  in.params["x"] = Doubles({}, {3});
  const auto r = EvaluateGraph(program, program.graphs[0], in, EvalMode::kDouble);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_DOUBLE_EQ(r->outputs.at("g").at(0).f(), 27);
}

TEST(Autograd, NamesAnOpWithoutARule) {
  Program program = GradientOf(kOpaque);
  PassContext context;
  const absl::Status s = Autograd(program, context).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      std::string(s.message()),
      "mlp.cc:7: error: opaque: it has no gradient rule, and a gradient is taken through it; put stop_gradient on "
      "its operand or compute it with other ops\nmlp.cc:9: note: the gradient is asked for here");
}

}  // namespace
}  // namespace agc
