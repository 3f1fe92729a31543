// LABELS: vulkan
// The cases of schedule_cases.h on the device, in the loop executor, and there also with a target that folds its grids
// at seven workgroups: all equal the f64 evaluator.
#include "test/unit/e2e_tools.h"
#include "test/unit/pinned.h"
#include "test/unit/schedule_cases.h"

namespace agc::test {
namespace {

constexpr double kTolerance = 1e-5;  // sums of up to 129 terms of size 1

// One module of all cases that are legal, for the device: many kernels compile in one process, in parallel.
struct Batch {
  std::vector<Program> tensors = {};
  std::vector<std::string> labels = {};
  Program nests = {};
};

// Appends a pinned program's graph, nests and states to the batch under a name of its own.
void Append(Batch& batch, Program nests) {
  Graph& graph = nests.graphs[0];
  graph.name = absl::StrCat("g", batch.nests.graphs.size());
  for (Step& step : graph.steps) {
    if (step.kind == StepKind::kRun) step.callee += static_cast<uint32_t>(batch.nests.nests.size());
  }
  for (Nest& nest : nests.nests) {
    nest.name = absl::StrCat(graph.name, "_", nest.name);
    batch.nests.nests.push_back(std::move(nest));
  }
  batch.nests.graphs.push_back(std::move(graph));
  batch.nests.stage = Stage::kNest;
}

// `unfit`: programs whose reduction has one element or none of both sides, so that no nest is left for the family.
void CheckCases(const std::vector<ScheduleCase>& cases, int expected_unfit) {
  Batch batch;
  int unfit = 0;
  Target folding = TheTarget();
  folding.max_groups_x = 7;
  for (const ScheduleCase& c : cases) {
    const Program tensors = Parsed(c.graph);
    const EvalInputs in = RandomInputs(tensors, tensors.graphs[0], -2, 2);
    const EvalResult want = Evaluated(tensors, "g", in);
    for (const std::string& schedule : c.schedules) {
      const std::string label = absl::StrCat(schedule, " of\n", c.graph);
      Program nests = Clone(tensors);
      const int pinned = Pin(nests, TheTarget(), schedule);
      EXPECT_GE(pinned, 0) << label;
      unfit += pinned == 0;
      if (pinned < 1) continue;
      EXPECT_EQ(Difference(Executed(nests, "g", in), want, kTolerance), "") << label;
      absl::StatusOr<Program> folded = LowerToPlan(Clone(nests), folding, {});
      if (folded.ok()) {
        EXPECT_EQ(Difference(Executed(nests, "g", in, {}, folding), want, kTolerance), "") << "folded: " << label;
      } else {
        EXPECT_EQ(folded.status().code(), absl::StatusCode::kResourceExhausted) << folded.status();
      }
      Append(batch, std::move(nests));
      batch.tensors.push_back(Clone(tensors));
      batch.labels.push_back(label);
    }
  }
  EXPECT_EQ(unfit, expected_unfit);
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(batch.nests), TheTarget(), {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  absl::StatusOr<rt::Session> s = LoadOnDevice(*bundle);
  ASSERT_TRUE(s.ok()) << s.status();
  for (size_t i = 0; i < batch.tensors.size(); ++i) {
    const Program& tensors = batch.tensors[i];
    const EvalInputs in = RandomInputs(tensors, tensors.graphs[0], -2, 2);
    const EvalResult got = Checked(RunSession(*s, tensors, batch.nests.graphs[i], in));
    EXPECT_EQ(Difference(got, Evaluated(tensors, "g", in), kTolerance), "") << batch.labels[i];
  }
  std::printf("%zu pinned programs\n", batch.tensors.size());
}

TEST(Schedules, Pointwise) { CheckCases(PointwiseCases(), 0); }
TEST(Schedules, Rows) { CheckCases(RowsCases(), 16); }
TEST(Schedules, Contract) { CheckCases(ContractCases(), 24); }

// The default schedules of a device whose grids fold run on the real one, too.
TEST(Schedules, FoldedGridsOnTheDevice) {
  Target folding = TheTarget();
  folding.max_groups_x = 7;
  for (const std::string& text : {PointwiseGraph(2000), RowsGraph(50, 70), MatmulGraph(20, 9, 300)}) {
    const Program p = Parsed(text);
    const EvalInputs in = RandomInputs(p, p.graphs[0], -2, 2);
    EXPECT_EQ(Difference(OnDevice(p, "g", in, {}, folding), Evaluated(p, "g", in), kTolerance), "") << text;
  }
}

}  // namespace
}  // namespace agc::test
