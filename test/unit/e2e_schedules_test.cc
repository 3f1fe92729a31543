// LABELS: vulkan
// The cases of schedule_cases.h on the device, in the loop executor, and there also with a target that folds its grids
// at seven workgroups: all equal the f64 evaluator.
#include "test/unit/e2e_tools.h"
#include "test/unit/pinned.h"
#include "test/unit/schedule_cases.h"

namespace agc::test {
namespace {

constexpr double kTolerance = 1e-5;  // sums of up to 129 terms of size 1

// One module of many pinned programs, for the device: their kernels compile in one process, in parallel.
struct Batch {
  std::vector<Program> tensors = {};
  std::vector<std::string> labels = {};
  Program nests = {};

  // The program's graph and nests, under names of their own.
  void Append(const Program& tensor, Program pinned, const std::string& label) {
    Graph& graph = pinned.graphs[0];
    graph.name = absl::StrCat("g", nests.graphs.size());
    for (Step& step : graph.steps) {
      if (step.kind == StepKind::kRun) step.callee += static_cast<uint32_t>(nests.nests.size());
    }
    for (Nest& nest : pinned.nests) {
      nest.name = absl::StrCat(graph.name, "_", nest.name);
      nests.nests.push_back(std::move(nest));
    }
    nests.graphs.push_back(std::move(graph));
    nests.stage = Stage::kNest;
    tensors.push_back(Clone(tensor));
    labels.push_back(label);
  }

  void Run(BufferAbi abi) const {
    const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(nests), TheTarget(), {.abi = abi});
    ASSERT_TRUE(bundle.ok()) << bundle.status();
    absl::StatusOr<rt::Session> s = LoadOnDevice(*bundle);
    ASSERT_TRUE(s.ok()) << s.status();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const EvalInputs in = RandomInputs(tensors[i], tensors[i].graphs[0], -2, 2);
      const EvalResult got = Checked(RunSession(*s, tensors[i], nests.graphs[i], in));
      EXPECT_EQ(Difference(got, Evaluated(tensors[i], "g", in), kTolerance), "") << labels[i];
    }
    std::printf("%zu pinned programs\n", tensors.size());
  }
};

void CheckInExecutor(const Program& nests, const EvalInputs& in, const EvalResult& want, const std::string& label) {
  EXPECT_EQ(Difference(Executed(nests, "g", in), want, kTolerance), "") << label;
  Target folding = TheTarget();
  folding.max_groups_x = 7;
  const absl::StatusOr<Program> folded = LowerToPlan(Clone(nests), folding, {});
  if (folded.ok()) {
    EXPECT_EQ(Difference(Executed(nests, "g", in, {}, folding), want, kTolerance), "") << "folded: " << label;
  } else {
    EXPECT_EQ(folded.status().code(), absl::StatusCode::kResourceExhausted) << folded.status();
  }
}

// `unfit`: programs whose reduction has one element or none of both sides, so that no nest is left for the family.
void CheckCases(const std::vector<ScheduleCase>& cases, int expected_unfit, const Target& target = TheTarget()) {
  Batch all, some;
  int unfit = 0;
  for (const ScheduleCase& c : cases) {
    const Program tensors = Parsed(c.graph);
    const EvalInputs in = RandomInputs(tensors, tensors.graphs[0], -2, 2);
    const EvalResult want = Evaluated(tensors, "g", in);
    for (const std::string& schedule : c.schedules) {
      const std::string label = absl::StrCat(schedule, " of\n", c.graph);
      Program nests = Clone(tensors);
      const int pinned = Pin(nests, target, schedule);
      EXPECT_GE(pinned, 0) << label;
      unfit += pinned == 0;
      if (pinned < 1) continue;
      CheckInExecutor(nests, in, want, label);
      if (all.tensors.size() % 5 == 0) some.Append(tensors, Clone(nests), label);
      all.Append(tensors, std::move(nests), label);
    }
  }
  EXPECT_EQ(unfit, expected_unfit);
  all.Run(BufferAbi::kAddresses);
  some.Run(BufferAbi::kBindings);  // drivers compile these far more slowly
}

TEST(Schedules, Pointwise) { CheckCases(PointwiseCases(), 0); }
TEST(Schedules, Rows) { CheckCases(RowsCases(), 19); }
TEST(Schedules, SplitRows) { CheckCases(SplitRowsCases(), 4); }
TEST(Schedules, Columns) { CheckCases(ColumnsCases(), 17); }
TEST(Schedules, Transpose) { CheckCases(TransposeCases(), 0); }
TEST(Schedules, Tiles) { CheckCases(TilesCases(), 33); }
// Products are joined with what reduces them on a GPU only; once they are, they run here, too.
TEST(Schedules, ProductRows) {
  Target gpu = TheTarget();
  gpu.kind = DeviceKind::kGpu;
  CheckCases(ProductRowsCases(), 3, gpu);
}
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

// What a GPU would get, on this device: split and resident rows, columns, transposes and vectors, chosen by default.
TEST(Schedules, OfAGpu) {
  Target gpu = TheTarget();
  gpu.kind = DeviceKind::kGpu;
  const std::string update = R"(module @m {
  state @w: f32[16384] init uniform(-1, 1)
  state @v: f32[16384] init uniform(-1, 1)
  graph @g(input %x: f32[16384]) -> () {
    %0: f32[16384] = mul @v, %x
    %1: f32[16384] = add @w, %0
    update @v = %0
    update @w = %1
  }
})";
  for (const std::string& text : {PointwiseGraph(1 << 14), RowsGraph(50, 128), RowsGraph(50, 67), SumsGraph(1, 40000),
                                  ColumnsGraph(200, 64), ColumnSumsGraph(500, 36), TransposeGraph(40, 3, 36), update}) {
    const Program p = Parsed(text);
    const EvalInputs in = RandomInputs(p, p.graphs[0], -2, 2);
    const EvalResult want = Evaluated(p, "g", in);
    EXPECT_EQ(Difference(Executed(p, "g", in, {}, gpu), want, kTolerance), "") << "executed: " << text;
    for (BufferAbi abi : {BufferAbi::kAddresses, BufferAbi::kBindings})
      EXPECT_EQ(Difference(OnDevice(p, "g", in, {.abi = abi}, gpu), want, kTolerance), "") << text;
  }
}

// The counters of split reductions are 0 again after every run.
TEST(Schedules, SplitReductionsRunAgain) {
  Target gpu = TheTarget();
  gpu.kind = DeviceKind::kGpu;
  const Program p = Parsed(SumsGraph(1, 40000));
  const EvalInputs in = RandomInputs(p, p.graphs[0], -2, 2);
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(p), gpu, {});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  absl::StatusOr<rt::Session> s = LoadOnDevice(*bundle);
  ASSERT_TRUE(s.ok()) << s.status();
  const EvalResult first = Checked(RunSession(*s, p, p.graphs[0], in));
  EXPECT_EQ(Difference(first, Evaluated(p, "g", in), kTolerance), "");
  EXPECT_EQ(Difference(Checked(RunSession(*s, p, p.graphs[0], in, 3)), first, 0), "");
}

}  // namespace
}  // namespace agc::test
