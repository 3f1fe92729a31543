// LABELS: vulkan
// Device limits, memory and order of steps, as other systems were reported to get them wrong: one test per report, by
// its number (L limits, R runtime and planning).
#include "runtime/plan_check.h"
#include "test/unit/e2e_tools.h"
#include "test/unit/pinned.h"
#include "test/unit/schedule_cases.h"

namespace agc::test {
namespace {

using ::testing::HasSubstr;

template <typename F>
Program Traced(F fn) {
  Module m("m");
  m.Graph("g", fn);
  EXPECT_TRUE(m.status().ok()) << m.status();
  return Clone(m.program());
}

void ExpectOnDevice(const Program& p, const Target& target, double tolerance) {
  const EvalInputs in = RandomInputs(p, *p.FindGraph("g"), -1, 1);
  const EvalResult want = Evaluated(p, "g", in);
  EXPECT_EQ(Difference(OnDevice(p, "g", in, {}, target), want, tolerance), "") << ToString(target);
  EXPECT_EQ(Difference(Executed(p, "g", in, {}, target), want, tolerance), "") << ToString(target);
}

TEST(Limits, L1FusionFitsTheStorageBuffersOfAStage) {
  const Program p = Traced([](Trace& t) {
    agc::Tensor sum = t.Input("x0", kF32, {40});
    for (int i = 1; i < 12; ++i) sum = sum + t.Input(absl::StrCat("x", i), kF32, {40}) * static_cast<double>(i);
    t.Output("y", sum);
  });
  for (int64_t buffers : {4, 8, 64}) {
    Target target = TheTarget();
    target.storage_buffers = buffers;
    const Program plan = LowerToPlan(Clone(p), target, {}).value();
    for (const Kernel& k : plan.kernels) EXPECT_LE(static_cast<int64_t>(k.params.size()), buffers);
    EXPECT_EQ(plan.kernels.size() == 1, buffers == 64);
    ExpectOnDevice(p, target, 1e-5);
  }
}

TEST(Limits, L2GridsFoldOverTwoAxes) {
  const int64_t n = int64_t{65535} * 64 + 1;
  const Program p = Traced([&](Trace& t) {
    const agc::Tensor x = t.Input("x", kF32, {n});
    t.Output("y", x * 2.0 + 1.0);
  });
  Program nests = Clone(p);
  Target target = TheTarget();
  target.max_groups_x = 65535;
  ASSERT_EQ(Pin(nests, target, "pointwise {local = 64}"), 1);
  const Program plan = LowerToPlan(Clone(nests), target, {}).value();
  EXPECT_THAT(plan.graphs[0].steps[0].groups, testing::ElementsAre(65535, 2, 1));
  EvalInputs in;
  in.params["x"] = HostTensor::Zeros({kF32, {n}});
  for (int64_t i = 0; i < n; ++i) in.params["x"].set(i, Scalar::Float(kF32, static_cast<double>(i % 1000)));
  const EvalResult got = OnDevice(nests, "g", in, {}, target);
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; ++i) wrong += got.outputs.at("y").at(i).f() != static_cast<double>(i % 1000) * 2 + 1;
  EXPECT_EQ(wrong, 0);
}

TEST(Limits, L3WorkgroupsFitSharedMemory) {
  const Program rows = Parsed(RowsGraph(5, 1000)), product = Parsed(MatmulGraph(65, 40, 70));
  for (int64_t bytes : {32768, 16384, 600, 0}) {
    Target target = TheTarget();
    target.shared_bytes = bytes;
    for (const Program* p : {&rows, &product}) {
      const Program plan = LowerToPlan(Clone(*p), target, {}).value();
      for (const Kernel& k : plan.kernels) EXPECT_LE(k.shared_bytes(), bytes) << k.name;
      ExpectOnDevice(*p, target, 1e-5);
    }
  }
  Target target = TheTarget();
  target.shared_bytes = 20;
  Program nests = Clone(rows);
  EXPECT_EQ(Pin(nests, target, "rows {local = 64, threads = 64}"), -1);
  for (Nest& nest : nests.nests) nest.schedule = ParseSchedule("rows {local = 64, threads = 64}").value();
  const absl::Status s = LowerToPlan(std::move(nests), target, {}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(s.message()), HasSubstr("bytes of shared memory, the target has 20"));
}

TEST(Limits, L4WorkgroupsFitTheInvocations) {
  for (int64_t most : {768, 256, 100, 7, 1}) {
    Target target = TheTarget();
    target.max_invocations = most;
    target.max_local_x = most;
    for (const std::string& text :
         {PointwiseGraph(300), RowsGraph(5, 1000), ArgGraph(4, 300), MatmulGraph(65, 40, 70)}) {
      const Program p = Parsed(text), plan = LowerToPlan(Parsed(text), target, {}).value();
      for (const Kernel& k : plan.kernels) EXPECT_LE(k.local[0] * k.local[1] * k.local[2], most) << k.name;
      ExpectOnDevice(p, target, 1e-5);
    }
  }
  Target target = TheTarget();
  target.max_invocations = 768;
  Program nests = Parsed(PointwiseGraph(300));
  EXPECT_EQ(Pin(nests, target, "pointwise {local = 1024}"), -1);
  nests.nests[0].schedule = ParseSchedule("pointwise {local = 1024}").value();
  const absl::Status s = LowerToPlan(std::move(nests), target, {}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(s.message()), HasSubstr("local is 1024, the target allows 768"));
}

TEST(Limits, L8ThousandDispatches) {
  const Program p = Traced([](Trace& t) {
    agc::Tensor x = t.Input("x", kF32, {8});
    for (int i = 0; i < 500; ++i) x = T(Reshape(x * 0.5 + 1.0, {2, 4}));
    t.Output("y", x);
  });
  const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
  for (BufferAbi abi : {BufferAbi::kBindings, BufferAbi::kAddresses}) {
    const rt::Bundle bundle = CompileProgram(Clone(p), TheTarget(), {.abi = abi, .fuse = false}).value();
    size_t dispatches = 0;
    for (const rt::Entry& e : bundle.variants[0].entries) {
      for (const rt::FlatStep& step : e.plan.steps) dispatches += step.kind == rt::StepKind::kDispatch;
    }
    EXPECT_GE(dispatches, 1000u);
    EXPECT_LE(bundle.kernels.size(), 8u);  // equal kernels are one
    absl::StatusOr<rt::Session> s = LoadOnDevice(bundle);
    ASSERT_TRUE(s.ok()) << s.status();
    EXPECT_EQ(Difference(Checked(RunSession(*s, p, p.graphs[0], in)), Evaluated(p, "g", in), 1e-6), "");
  }
}

// A state that is read in another order than it is written, by the step that updates it and by another one.
TEST(Limits, R3StatesReadThroughViewsSurviveTheirUpdate) {
  const Program p = Traced([](Trace& t) {
    const agc::Tensor s = t.State("s", {kF32, {12, 12}}), u = t.State("u", {kF32, {12, 12}}),
                      x = t.Input("x", kF32, {12, 12});
    const agc::Tensor lerp = s + (x - s) * 0.25;
    t.Update("s", lerp);                 // in place: the same elements
    t.Update("u", T(u) * 0.5 + lerp);    // not in place: another order
    t.Output("later", Matmul(s, T(u)));  // reads both as they were
    t.Output("parts", Concat({Slice(u, {0, 0}, {6, 12}, {}), lerp, s}, 0));
  });
  const EvalInputs in = RandomInputs(p, *p.FindGraph("g"), -1, 1);
  const EvalResult want = Evaluated(p, "g", in);
  for (bool in_place : {true, false}) {
    for (bool fuse : {true, false}) {
      const CompileOptions options{.fuse = fuse, .in_place = in_place};
      EXPECT_EQ(Difference(OnDevice(p, "g", in, options), want, 1e-5), "");
      EXPECT_EQ(Difference(Executed(p, "g", in, options), want, 1e-5), "");
    }
  }
}

TEST(Limits, R11RefusedMemoryIsAnErrorWithSizes) {
  const Program small = Parsed(PointwiseGraph(7));
  const EvalInputs in = RandomInputs(small, small.graphs[0], -1, 1);
  const absl::StatusOr<rt::Bundle> small_bundle = CompileProgram(Clone(small), TheTarget(), {});
  ASSERT_TRUE(small_bundle.ok());
  absl::StatusOr<rt::Session> before = LoadOnDevice(*small_bundle);
  ASSERT_TRUE(before.ok());
  const Program huge = Traced([](Trace& t) {
    t.Output("y", ReduceSum(Slice(t.Input("x", kF32, {int64_t{1} << 42}), {0}, {4}, {})));  // 16 TiB
  });
  // A binding holds less than that, which the compiler says; with addresses, the device refuses.
  const absl::Status bound = CompileProgram(Clone(huge), TheTarget(), {}).status();
  EXPECT_EQ(bound.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(bound.message()), HasSubstr("takes 17592186044416 bytes"));
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(huge), TheTarget(), {.abi = BufferAbi::kAddresses});
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const absl::Status refused = LoadOnDevice(*bundle).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("17592186044"));
  EXPECT_EQ(Difference(Checked(RunSession(*before, small, small.graphs[0], in)), Evaluated(small, "g", in), 1e-6), "");
}

// Every barrier of a plan that reuses its memory is needed: without it the checker refuses, and so does the loader.
TEST(Limits, R14EveryBarrierIsNeeded) {
  const Program p = Traced([](Trace& t) {
    agc::Tensor x = t.Input("x", kF32, {16, 16});
    for (int i = 0; i < 6; ++i) x = Softmax(Matmul(x, T(x)), i % 2);
    t.Output("y", x);
  });
  ExpectOnDevice(p, TheTarget(), 1e-5);
  const rt::Bundle bundle = CompileProgram(Clone(p), TheTarget(), {}).value();
  const rt::FlatPlan& plan = bundle.variants[0].entries[0].plan;
  ASSERT_TRUE(rt::CheckPlan(plan).ok());
  size_t barriers = 0, reused = 0;
  for (const rt::FlatBuffer& a : plan.buffers) {
    for (const rt::FlatBuffer& b : plan.buffers) {
      reused += &a != &b && a.kind == rt::BufferKind::kTemp && b.kind == rt::BufferKind::kTemp && a.offset == b.offset;
    }
  }
  EXPECT_GT(reused, 0u);  // a slot that one step reads is overwritten by another
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kind != rt::StepKind::kBarrier) continue;
    ++barriers;
    rt::Bundle without = bundle;
    rt::FlatPlan& cut = without.variants[0].entries[0].plan;
    cut.steps.erase(cut.steps.begin() + static_cast<long>(i));
    for (rt::FlatBuffer& b : cut.buffers) {  // lives are counted in steps
      b.first_step -= b.first_step > i;
      b.last_step -= b.last_step > i;
    }
    const rt::Status refused = rt::CheckPlan(cut);
    EXPECT_THAT(refused.message(), HasSubstr("without a barrier between them")) << i;
    EXPECT_FALSE(LoadOnDevice(without).ok());
  }
  EXPECT_GE(barriers, 6u);
}

}  // namespace
}  // namespace agc::test
