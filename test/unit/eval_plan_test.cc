#include <optional>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/eval/plan_eval.h"
#include "ir/text/text.h"
#include "passes/manager.h"

namespace agc {
namespace {

Program Parsed(const std::string& text) {
  absl::StatusOr<Program> p = Parse(text, "t.agir");
  if (!p.ok()) {
    ADD_FAILURE() << p.status();
    return {};
  }
  return *std::move(p);
}
HostTensor Tensor(TensorType type, std::vector<double> values) {
  HostTensor t = HostTensor::Zeros(std::move(type));
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Of(t.type.dtype, values[i]));
  return t;
}
std::vector<double> Values(const HostTensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.type.elements(); ++i) v.push_back(t.at(i).AsDouble());
  return v;
}

// Two steps through a temporary, a state in place, a ring and a copy.
constexpr char kLoop[] = R"(
module @m stage loop {
  state @w: f32[4] init constant(2)
  state @run.index: u32[] hidden
  shader @scale(%x: f32[4] read, %w: f32[4] read, %y: f32[4] write) local [4, 1, 1] {
    part groups [1, 1, 1] {
      for local t in 0..4 {
        store %y[t] = %x[t] * %w[t]
      }
    }
  }
  shader @step(%t: f32[4] read, %lr: f32[3] read, %i: u32[] read, %w: f32[4] read_write, %y: f32[3,4] write) local [4, 1, 1] {
    part groups [1, 1, 1] {
      for local t in 0..4 {
        let slot: u32 = %i[]
        let old: f32 = %w[t]
        store %w[t] = old + %t[t] * %lr[index(slot, 0, 2)]
        store %y[index(slot, 0, 2), t] = old
      }
    }
  }
  graph @g(input %x: f32[4], param %lr: f32[]) -> (each_step %y: f32[4], %z: f32[4]) {
    buffer %x: f32[4] kind input %x
    buffer %lr: f32[3] kind param %lr ring
    buffer %i: u32[] kind state @run.index
    buffer %w: f32[4] kind state @w
    buffer %t: f32[4] kind temp
    buffer %y: f32[3,4] kind output %y each_step ring
    buffer %z: f32[4] kind output %z
    dispatch @scale groups [1, 1, 1] (%x, %w, %t)
    copy %t -> %z
    dispatch @step groups [1, 1, 1] (%t, %lr, %i, %w, %y)
  }
}
)";

EvalInputs LoopInputs() {
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {4}}, {1, 2, 3, 4});
  in.params["lr"] = Tensor({DType::kF32, {}}, {0.5});
  return in;
}

TEST(EvalPlan, StepsRingsStatesAndCopies) {
  const Program p = Parsed(kLoop);
  EvalInputs in = LoopInputs();
  for (int step = 0; step < 2; ++step) {
    in.states["run.index"] = Tensor({DType::kU32, {}}, {static_cast<double>(step)});
    const absl::StatusOr<EvalResult> r = Evaluate(p, "g", in);
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_THAT(Values(r->outputs.at("z")), testing::ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(Values(r->outputs.at("y")), testing::Each(2));
    EXPECT_EQ(ToString(r->outputs.at("y").type), "f32[4]");
    EXPECT_THAT(Values(r->states.at("w")), testing::ElementsAre(3, 4, 5, 6));
  }
  // One value per slot of the ring, and states that go on.
  in.params["lr"] = Tensor({DType::kF32, {3}}, {0, 1, 10});
  in.states["run.index"] = Tensor({DType::kU32, {}}, {2});
  in.states["w"] = Tensor({DType::kF32, {4}}, {1, 1, 1, 1});
  EXPECT_THAT(Values(Evaluate(p, "g", in).value().states.at("w")), testing::ElementsAre(11, 21, 31, 41));
}

TEST(EvalPlan, TemporariesStartUnknown) {
  Program p = Parsed(kLoop);
  std::swap(p.graphs[0].steps[0], p.graphs[0].steps[2]);
  const absl::Status s = Evaluate(p, "g", LoopInputs()).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr("read of %t at element 0"));
  p = Parsed(kLoop);
  p.graphs[0].steps.erase(p.graphs[0].steps.begin());
  EXPECT_THAT(std::string(Evaluate(p, "g", LoopInputs()).status().message()),
              testing::HasSubstr("byte 0 of %t is copied but was never written"));
  p = Parsed(kLoop);
  p.graphs[0].steps.erase(p.graphs[0].steps.begin() + 1);
  EXPECT_THAT(std::string(Evaluate(p, "g", LoopInputs()).status().message()),
              testing::HasSubstr("output %z holds no value at element 0"));
}

TEST(EvalPlan, StepsOfOneEpochMustNotConflict) {
  Program p = Parsed(kLoop);
  p.graphs[0].steps[0].epoch = 0;
  p.graphs[0].steps[1].epoch = 0;
  p.graphs[0].steps[2].epoch = 1;
  EXPECT_EQ(Evaluate(p, "g", LoopInputs()).status().code(), absl::StatusCode::kAborted);
  p.graphs[0].steps[1].epoch = 1;
  EXPECT_TRUE(Evaluate(p, "g", LoopInputs()).ok());  // both only read the temporary
}

// %a lies where %c lies; %a ends with step 2.
constexpr char kPlan[] = R"(
module @m stage plan {
  shader @inc(%x: f32[4] read linear, %y: f32[4] write linear) local [4, 1, 1] {
    part groups [1, 1, 1] {
      for local t in 0..4 {
        store %y[t] = %x[t] + 1
      }
    }
  }
  graph @g(input %x: f32[4]) -> (%z: f32[4]) {
    buffer %x: f32[4] kind input %x arena 3 offset 0 size 16 life [0, 0]
    buffer %z: f32[4] kind output %z arena 3 offset 16 size 16 life [6, 6]
    buffer %a: f32[4] kind temp arena 1 offset 0 size 16 life [0, 2]
    buffer %b: f32[4] kind temp arena 1 offset 16 size 16 life [2, 4]
    buffer %c: f32[4] kind temp arena 1 offset 0 size 16 life [4, 6]
    arenas [0, 32, 0, 32]
    dispatch @inc groups [1, 1, 1] (%x, %a)
    barrier
    dispatch @inc groups [1, 1, 1] (%a, %b)
    barrier
    dispatch @inc groups [1, 1, 1] (%b, %c)
    barrier
    dispatch @inc groups [1, 1, 1] (%c, %z)
  }
}
)";

EvalInputs PlanInputs() {
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {4}}, {1, 2, 3, 4});
  return in;
}

TEST(EvalPlan, ArenasAndPoison) {
  const absl::StatusOr<EvalResult> r = Evaluate(Parsed(kPlan), "g", PlanInputs());
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Values(r->outputs.at("z")), testing::ElementsAre(5, 6, 7, 8));
  // The last step reads %a, which has ended, and whose bytes another step has not written again.
  Program late = Parsed(kPlan);
  late.graphs[0].steps[4].args[0] = late.graphs[0].steps[2].args[0];
  const absl::Status s = Evaluate(late, "g", PlanInputs()).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr("which was never written"));
}

TEST(EvalPlan, MissingBarriersAndPlacesAreFound) {
  Program p = Parsed(kPlan);
  p.graphs[0].steps.erase(p.graphs[0].steps.begin() + 3);
  const absl::Status s = Evaluate(p, "g", PlanInputs()).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr("touches bytes of step 2"));
  p = Parsed(kPlan);
  p.graphs[0].buffers[4].offset = 24;
  EXPECT_THAT(std::string(Evaluate(p, "g", PlanInputs()).status().message()),
              testing::HasSubstr("buffer %c ends at byte 40 of arena 1"));
}

// Row-major outside, transposed, padded and widened inside.
TEST(EvalPlan, StoredFormsOfBuffers) {
  const Program p = Parsed(R"(
module @m stage loop {
  shader @not(%x: bool[8] read stored u32 linear, %y: bool[6] write linear) local [6, 1, 1] {
    part groups [1, 1, 1] {
      for local t in 0..6 {
        store %y[t] = not(%x[t / 3 + 2 * (t % 3)])
      }
    }
  }
  graph @g(input %x: bool[2,3]) -> (%y: bool[2,3]) {
    buffer %x: bool[2,3] kind input %x stored u32 order [1, 0] pad [0, 1]
    buffer %y: bool[2,3] kind output %y
    dispatch @not groups [1, 1, 1] (%x, %y)
  }
}
)");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kBool, {2, 3}}, {1, 0, 0, 1, 1, 0});
  const absl::StatusOr<EvalResult> r = Evaluate(p, "g", in);
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_THAT(Values(r->outputs.at("y")), testing::ElementsAre(0, 1, 1, 0, 0, 1));
}

// The same numbers at every stage of the pipeline, but for the order of sums.
TEST(EvalPlan, StagesAgree) {
  Program p = Parsed(R"(
module @m {
  state @w: f32[3,2] init constant(0.5)
  graph @g(input %x: f32[5,3], param %lr: f32[]) -> (each_step %s: f32[], %y: f32[5,2]) {
    %0: f32[5,2] = matmul %x, @w
    %1: f32[5,2] = softmax %0 {axis = 1}
    %2: f32[5,2] = mul %1, %0
    %3: f32[] = reduce_sum %2 {axes = [0, 1]}
    %4: f32[3,2] = gradient %3, @w
    %5: f32[3,2] = broadcast %lr {shape = [3, 2]}
    %6: f32[3,2] = mul %4, %5
    %7: f32[3,2] = sub @w, %6
    output %s = %3
    output %y = %1
    update @w = %7
  }
}
)");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {5, 3}}, {1, 2, 3, -1, 0.5, 0.25, 0, 0, 1, 2, -2, 1, 0.1, 0.2, 0.3});
  in.params["lr"] = Tensor({DType::kF32, {}}, {0.25});
  in.states["w"] = Tensor({DType::kF32, {3, 2}}, {0.1, -0.2, 0.3, 0.4, -0.5, 0.6});
  PassContext context;
  context.target = FakeTarget("lavapipe").value();
  std::optional<EvalResult> first;
  for (const char* passes :
       {"canonicalize,autograd,canonicalize,decompose,canonicalize,cse,dce", "add-run-index,form-groups",
        "lower-to-nests,simplify-expr", "assign-storage,choose-schedule", "apply-schedule", "order,alias",
        "dedupe-kernels,legalize,place-lets", "plan-memory,place-barriers,check-plan"}) {
    std::vector<std::string> names;
    for (absl::string_view name : absl::StrSplit(passes, ',')) names.emplace_back(name);
    const absl::Status run = RunPipeline(p, names, context, {});
    ASSERT_TRUE(run.ok()) << run;
    const absl::StatusOr<EvalResult> r = Evaluate(p, "g", in);
    ASSERT_TRUE(r.ok()) << passes << ": " << r.status();
    if (!first.has_value()) first = *r;
    for (const auto& [name, value] : first->outputs) {
      for (int64_t i = 0; i < value.type.elements(); ++i)
        EXPECT_NEAR(value.at(i).f(), r->outputs.at(name).at(i).f(), 1e-6) << passes;
    }
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(first->states.at("w").at(i).f(), r->states.at("w").at(i).f(), 1e-6) << passes;
  }
}

}  // namespace
}  // namespace agc
