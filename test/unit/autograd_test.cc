// Every gradient rule of the op table against finite differences in f64, first and second order, on each row's sample;
// and what the autograd pass does around the rules.
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/build.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/manager.h"
#include "passes/registry.h"

namespace agc {
namespace {

using ::testing::HasSubstr;

// loss = sum over float results of op(x...) * weights, with gradients of the loss as outputs.
struct Case {
  Program program = {};
  EvalInputs inputs = {};
  std::vector<std::string> floats = {};  // operands that have a gradient
};

std::vector<TensorType> OperandTypes(const OpDef& def) {
  std::vector<TensorType> types;
  for (absl::string_view shape : def.sample.shapes) {
    if (!shape.empty()) types.push_back(*ParseType(shape));
  }
  while (static_cast<int>(types.size()) < def.arity.min) types.push_back({DType::kF32, {2, 3}});
  return types;
}

HostTensor Random(TensorType type, double lo, double hi, std::mt19937_64& rng) {
  const bool real = IsFloat(type.dtype);
  if (real) type.dtype = DType::kF64;
  HostTensor t = HostTensor::Zeros(type);
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double u = std::generate_canonical<double, 53>(rng);
    t.set(i, Scalar::Of(type.dtype, real ? lo + u * (hi - lo) : std::floor(lo + u * (hi - lo + 1))));
  }
  return t;
}

Value Input(Builder& b, Case& c, const std::string& name, const TensorType& type, double lo, double hi,
            std::mt19937_64& rng) {
  c.inputs.params[name] = Random(type, lo, hi, rng);
  return {&b, AppendInput(*b.graph, ParamKind::kInput, name, type, {}), b.generation, false};
}

void Output(Builder& b, const std::string& name, Value v) {
  b.graph->outputs.push_back({.name = name, .type = v.type(), .value = v.id});
}

// The sum of `y`'s elements, each with a weight of its own, over all float elements of a tuple.
Value Weighted(Builder& b, Case& c, Value y, const std::string& prefix, std::mt19937_64& rng) {
  const Types types = b.graph->op(y.id).types;
  Value loss;
  for (size_t k = 0; k < types.size(); ++k) {
    if (!IsFloat(types[k].dtype)) continue;
    const Value part = types.size() > 1 ? Get(y, static_cast<int64_t>(k)) : y;
    const Value weight = Input(b, c, absl::StrCat(prefix, k), types[k], 0.5, 1.5, rng);
    const Value sum = ReduceSum(CastTo(part * weight, DType::kF64));
    loss = loss.valid() ? loss + sum : sum;
  }
  return loss;
}

// First order: outputs loss, g_<operand>. Second order: the loss is the weighted sum of those.
absl::StatusOr<Case> MakeCase(const OpDef& def, int order, uint64_t seed) {
  Case c;
  std::mt19937_64 rng(seed);
  c.program.graphs.emplace_back();
  c.program.graphs[0].name = "f";
  Builder b{.program = &c.program, .graph = &c.program.graphs[0]};
  std::vector<Value> x, wrt;
  for (const TensorType& type : OperandTypes(def)) {
    const std::string name = absl::StrCat("x", x.size());
    x.push_back(Input(b, c, name, type, def.sample.lo, def.sample.hi, rng));
    if (!IsFloat(type.dtype)) continue;
    c.floats.push_back(name);
    wrt.push_back(x.back());
  }
  const absl::StatusOr<std::vector<Attr>> attrs = ParseAttrs(def, def.sample.attrs);
  if (!attrs.ok()) return attrs.status();
  Value loss = Weighted(b, c, Emit(b, def.name, x, *attrs, {}), "w", rng);
  for (int k = 1; k < order && loss.valid(); ++k) {
    Value next;
    for (size_t i = 0; i < wrt.size(); ++i) {
      const Value part = Weighted(b, c, Gradient(loss, wrt[i]), absl::StrCat("v", k, "_", i, "_"), rng);
      next = next.valid() ? next + part : part;
    }
    loss = next;
  }
  if (!loss.valid() || !b.errors.empty()) return b.errors.empty() ? absl::NotFoundError("no float result") : b.status();
  Output(b, "loss", loss);
  for (size_t i = 0; i < wrt.size(); ++i) Output(b, "g_" + c.floats[i], Gradient(loss, wrt[i]));
  PassContext context;
  const absl::Status status = RunPipeline(c.program, {"canonicalize", "autograd"}, context);
  if (!status.ok()) return status;
  return c;
}

absl::StatusOr<std::map<std::string, HostTensor>> Run(const Case& c, const EvalInputs& inputs) {
  absl::StatusOr<EvalResult> r = EvaluateGraph(c.program, c.program.graphs[0], inputs, EvalMode::kDouble);
  if (!r.ok()) return r.status();
  return std::move(r->outputs);
}

// The same program with the loss as its only output, so that finite differences need not evaluate the gradients.
Case LossOnly(const Case& c) {
  Case loss{Clone(c.program), c.inputs, c.floats};
  loss.program.graphs[0].outputs.resize(1);
  return loss;
}

// Compares each element of each gradient with (f(x + h) - f(x - h)) / 2h.
void ExpectGradients(const Case& c, double h, double tolerance) {
  const auto result = Run(c, c.inputs);
  ASSERT_TRUE(result.ok()) << result.status();
  const Case loss = LossOnly(c);
  for (const std::string& name : c.floats) {
    const HostTensor& g = result->at("g_" + name);
    for (int64_t i = 0; i < g.type.elements(); ++i) {
      double f[2];
      for (int side : {0, 1}) {
        EvalInputs moved = c.inputs;
        HostTensor& x = moved.params[name];
        x.set(i, Scalar::Float(DType::kF64, x.at(i).f() + (side == 0 ? -h : h)));
        const auto at = Run(loss, moved);
        ASSERT_TRUE(at.ok()) << at.status();
        f[side] = at->at("loss").at(0).f();
      }
      const double expected = (f[1] - f[0]) / (2 * h);
      EXPECT_NEAR(g.at(i).f(), expected, tolerance * std::max(1.0, std::abs(expected))) << name << "[" << i << "]";
    }
  }
}

std::vector<const OpDef*> DifferentiableOps() {
  std::vector<const OpDef*> ops;
  for (const OpDef* def : AllOps()) {
    if (def->sample.differentiable && (def->at != nullptr || def->decompose != nullptr)) ops.push_back(def);
  }
  return ops;
}

class EveryOp : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EveryOp, FirstOrderMatchesFiniteDifferences) {
  const absl::StatusOr<Case> c = MakeCase(*GetParam(), 1, 1);
  ASSERT_TRUE(c.ok()) << c.status();
  ASSERT_FALSE(c->floats.empty());
  ExpectGradients(*c, 1e-5, 1e-7);
}

TEST_P(EveryOp, SecondOrderMatchesFiniteDifferences) {
  const absl::StatusOr<Case> c = MakeCase(*GetParam(), 2, 2);
  ASSERT_TRUE(c.ok()) << c.status();
  ExpectGradients(*c, 1e-5, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOp, ::testing::ValuesIn(DifferentiableOps()),
                         [](const ::testing::TestParamInfo<const OpDef*>& info) {
                           return std::string(info.param->name);
                         });

// ---------------------------------------------------------------- the pass around the rules

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
