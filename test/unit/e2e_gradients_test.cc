// LABELS: vulkan
// The gradient of every op on the device: for each case of op_cases.h that has gradients, a weighted sum of its outputs
// is differentiated with respect to every float operand, compiled, and compared with the f64 evaluator, which runs the
// differentiated graph op by op; the plan evaluator runs the same kernels first and finds races and poison.
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

// Sums of gradients over broadcast axes, and rules that divide: an order of magnitude above the row's own tolerance.
double Allowed(const OpModule& m, size_t g) { return 20 * m.op->tol.f32 * m.cases[g].scale; }

// Appends the gradients of graph `g` to `to`, as outputs d0, d1, ...; false where there is nothing to differentiate.
bool AddGradients(const OpModule& m, size_t g, OpModule& to) {
  Program& p = to.program;
  p.graphs.push_back(m.program.graphs[g]);
  Graph& graph = p.graphs.back();
  graph.name = absl::StrCat("d", p.graphs.size() - 1);
  Builder b{.program = &p, .graph = &graph};
  const std::vector<Output> outputs = std::move(graph.outputs);
  // The loss is f32: half floats have tolerances of their own, and f64 has no tanh on devices.
  const auto other = [](const Output& out) { return IsFloat(out.type.dtype) && out.type.dtype != kF32; };
  if (std::any_of(outputs.begin(), outputs.end(), other)) return p.graphs.pop_back(), false;
  graph.outputs.clear();
  Value loss;
  for (const Output& out : outputs) {
    if (!IsFloat(out.type.dtype)) continue;
    const Value y{&b, out.value, 0, false};
    const Value term = ReduceSum(y * Tanh(y * 0.25 + 0.5));  // weights that differ, and a second use
    loss = loss.valid() ? loss + term : term;
  }
  const std::vector<GraphParam> params = graph.params;
  for (size_t i = 0; loss.valid() && i < params.size(); ++i) {
    if (params[i].type.dtype != kF32) continue;
    const Value d = Gradient(loss, {&b, params[i].op, 0, false});
    if (d.valid()) graph.outputs.push_back({absl::StrCat("d", i), d.type(), false, d.id, {}});
  }
  EXPECT_TRUE(b.status().ok()) << m.op->name << ": " << b.status();
  if (graph.outputs.empty()) p.graphs.pop_back();
  return !graph.outputs.empty();
}

// On the device only the sample and the cases by hand: sizes do not change a gradient's kernels much.
bool OnDeviceToo(const OpModule& m, size_t g) { return g == 0 || m.cases[g].by_hand; }

struct Expected {
  std::vector<EvalResult> results = {};
  std::vector<double> allowed = {};
  std::vector<bool> on_device = {};
};

// The module of an op's gradients, differentiated; graphs that autograd refuses (no rule) are left out.
OpModule Differentiated(const OpModule& m, Expected& expected) {
  OpModule all{.op = m.op};
  for (size_t g = 0; g < m.program.graphs.size(); ++g) {
    OpModule one{.op = m.op};
    if (!AddGradients(m, g, one)) continue;
    PassContext context;
    if (!RunPipeline(one.program, {"autograd"}, context).ok()) continue;
    Graph& graph = one.program.graphs[0];
    absl::StatusOr<EvalResult> want = EvaluateGraph(one.program, graph, m.cases[g].inputs, EvalMode::kDouble);
    EXPECT_TRUE(want.ok()) << m.op->name << ": " << want.status();
    if (!want.ok()) continue;
    graph.name = absl::StrCat("d", all.program.graphs.size());
    all.program.graphs.push_back(std::move(graph));
    all.cases.push_back(m.cases[g]);
    expected.results.push_back(*std::move(want));
    expected.allowed.push_back(Allowed(m, g));
    expected.on_device.push_back(OnDeviceToo(m, g));
  }
  return all;
}

void CheckModule(const OpModule& m, const Expected& expected) {
  const absl::StatusOr<Program> plan = LowerToPlan(Clone(m.program), TheTarget(), {});
  ASSERT_TRUE(plan.ok()) << m.op->name << ": " << plan.status();
  Program some = Clone(m.program);
  std::erase_if(some.graphs, [&](const Graph& graph) {
    return !expected.on_device[static_cast<size_t>(std::stoi(graph.name.substr(1)))];
  });
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(some), TheTarget(), {.abi = BufferAbi::kAddresses});
  ASSERT_TRUE(bundle.ok()) << m.op->name << ": " << bundle.status();
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  ASSERT_TRUE(session.ok()) << m.op->name << ": " << session.status();
  for (size_t g = 0; g < m.program.graphs.size(); ++g) {
    const Graph& graph = m.program.graphs[g];
    const EvalResult run = Checked(Evaluate(*plan, graph.name, m.cases[g].inputs, {.subgroup = 8}));
    EXPECT_EQ(Difference(run, expected.results[g], expected.allowed[g]), "")
        << "in the evaluator: " << Print(graph, m.program);
    if (!expected.on_device[g]) continue;
    const EvalResult got = Checked(RunSession(*session, m.program, graph, m.cases[g].inputs));
    EXPECT_EQ(Difference(got, expected.results[g], expected.allowed[g]), "") << Print(graph, m.program);
  }
}

TEST(Gradients, OfEveryOpEqualTheF64Evaluator) {
  size_t ops = 0, graphs = 0;
  std::string without;
  for (const OpModule& m : OpModules(SampleSet::kPairs)) {
    if (!m.op->sample.differentiable) continue;
    Expected expected;
    const OpModule gradients = Differentiated(m, expected);
    if (gradients.program.graphs.empty()) absl::StrAppend(&without, " ", m.op->name);
    if (gradients.program.graphs.empty()) continue;
    CheckModule(gradients, expected);
    ++ops;
    graphs += gradients.program.graphs.size();
  }
  std::printf("gradients of %zu ops, %zu graphs\n", ops, graphs);
  EXPECT_EQ(without, "");  // of the rows that are differentiable by their samples
}

}  // namespace
}  // namespace agc::test
