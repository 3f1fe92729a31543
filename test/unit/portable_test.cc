// Portable numerics on the host: the loop executor gives the bits of the evaluator, whatever the target, its subgroups
// and the fusion; and a training step is the same everywhere.
#include "compiler/pipeline.h"
#include "passes/schedules/family.h"
#include "test/unit/op_cases.h"
#include "test/unit/small_model.h"

namespace agc::test {
namespace {

struct Setting {
  const char* target;
  int subgroup;  // 0: the target's
  bool fuse;
};
constexpr Setting kSettings[] = {{"h200", 0, true}, {"h200", 64, false}, {"lavapipe", 0, true}, {"tiny", 0, false}};

Target TargetOf(const Setting& s) {
  Target target = FakeTarget(s.target).value();
  if (!target.has("storage_8bit")) target.features = {"storage_8bit"};    // the cases have bytes and bools
  target.storage_buffers = std::max<int64_t>(target.storage_buffers, 8);  // no op may need more
  if (s.subgroup != 0) target.subgroup_size = target.subgroup_min = target.subgroup_max = s.subgroup;
  return target;
}

TEST(Portable, PlansGiveTheEvaluatorsBits) {
  size_t graphs = 0;
  for (const OpModule& m : OpModules(SampleSet::kOwn)) {
    for (size_t s = 0; s < std::size(kSettings); ++s) {
      const Target target = TargetOf(kSettings[s]);
      const absl::StatusOr<Program> plan =
          LowerToPlan(Clone(m.program), target, {.numerics = Numerics::kPortable, .fuse = kSettings[s].fuse});
      EXPECT_TRUE(plan.ok()) << m.op->name << ": " << plan.status();
      if (!plan.ok()) continue;
      for (size_t g = s % 2; g < m.cases.size(); g += 2) {
        const Graph& graph = m.program.graphs[g];
        const EvalResult want = Checked(EvaluateGraph(m.program, graph, m.cases[g].inputs, EvalMode::kPortable));
        const KernelOptions options{.subgroup = static_cast<int>(target.subgroup_size)};
        const EvalResult got = Checked(Evaluate(*plan, graph.name, m.cases[g].inputs, options));
        EXPECT_EQ(BitDifference(got.outputs, want.outputs), "") << m.op->name << " on " << target.name;
        ++graphs;
      }
    }
  }
  std::printf("%zu graphs\n", graphs);
}

TEST(Portable, ATrainingStepIsTheSameOnEveryTarget) {
  agc::Module module("small");
  TraceSmallStep(module);
  const Program& p = module.program();
  const Graph& graph = *p.FindGraph("step");
  const EvalInputs in = RandomInputs(p, graph, -1, 1);
  Program reference = Clone(p);
  PassContext context{.numerics = Numerics::kPortable};
  ASSERT_TRUE(RunPipeline(reference, {"canonicalize", "cse", "dce", "rewrite", "autograd"}, context).ok());
  const EvalResult want = Checked(Evaluate(reference, "step", in, {.mode = EvalMode::kPortable}));
  for (const Setting& s : kSettings) {
    const EvalResult got = Executed(p, "step", in, {.numerics = Numerics::kPortable, .fuse = s.fuse}, TargetOf(s));
    EXPECT_EQ(BitDifference(got.outputs, want.outputs), "") << s.target;
    EXPECT_EQ(BitDifference(got.states, want.states), "") << s.target;
  }
}

// Schedules whose order of sums is their own are not for portable kernels.
TEST(Portable, ReductionsRunInOrder) {
  Program p = Parsed(R"(module @m {
  graph @g(input %x: f32[4,4096], input %a: f32[4,2048], input %b: f32[2048,4]) -> (%y: f32[4], %z: f32[4,4]) {
    %0: f32[4] = reduce_sum %x {axes = [1]}
    %1: f32[4,4] = matmul %a, %b
    output %y = %0
    output %z = %1
  }
}
)");
  std::vector<std::string> passes = DefaultPipeline(p.stage);
  passes.resize(static_cast<size_t>(std::find(passes.begin(), passes.end(), "apply-schedule") - passes.begin()));
  PassContext context{.target = FakeTarget("h200").value(), .numerics = Numerics::kPortable};
  ASSERT_TRUE(RunPipeline(p, passes, context).ok());
  for (const Nest& nest : p.nests) {
    const ScheduleFamily& family = *FindFamily(nest.schedule.family);
    Schedule ordered = nest.schedule;
    family.in_order(ordered);
    EXPECT_EQ(ordered.params, nest.schedule.params) << nest.name;
    EXPECT_EQ(nest.schedule.Int("split", 1), 1) << nest.name;
    EXPECT_EQ(nest.schedule.Int("threads", 1), 1) << nest.name;
  }
}

}  // namespace
}  // namespace agc::test
