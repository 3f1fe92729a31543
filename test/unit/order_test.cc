// order, plan-memory, place-barriers and check-plan: on random step graphs the planned bytes, with the steps between
// two barriers run in any order, give what the list gave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/registry.h"
#include "test/unit/step_graph.h"

namespace agc {
namespace {

using test::AddBuffer;
using test::AddCopy;
using test::AddDispatch;
using test::AddState;
using test::MakeKernel;
using test::Rng;

absl::Status Plan(Program& program, PassContext& context) {
  for (PassFn pass : {Order, Alias, FuseHorizontally}) AGC_RETURN_IF_ERROR(pass(program, context).status());
  AGC_RETURN_IF_ERROR(PlanMemory(program, context).status());
  program.stage = Stage::kPlan;
  for (PassFn pass : {PlaceBarriers, CheckPlan}) AGC_RETURN_IF_ERROR(pass(program, context).status());
  return absl::OkStatus();
}

PassContext Context(bool in_place, bool reuse) {
  PassContext context;
  context.in_place = in_place;
  context.reuse_memory = reuse;
  return context;
}

TEST(Order, RandomGraphsAgreeWithTheirLists) {
  Rng rng(3);
  int removed = 0, aliases = 0, smaller = 0;
  for (int round = 0; round < 200; ++round) {
    const Program program =
        test::RandomProgram(rng, {.steps = 1 + test::Below(rng, 24), .states = test::Below(rng, 5)});
    const auto expected = test::Run(program, program.graphs[0], rng);
    std::vector<uint64_t> bytes;
    for (const auto& [in_place, reuse] : {std::pair(true, true), std::pair(false, true), std::pair(false, false)}) {
      Program planned = Clone(program);
      PassContext context = Context(in_place, reuse);
      const absl::Status status = Plan(planned, context);
      ASSERT_TRUE(status.ok()) << round << ": " << status.message();
      const Graph& graph = planned.graphs[0];
      for (int trial = 0; trial < 3; ++trial) {
        ASSERT_EQ(test::Run(planned, graph, rng), expected) << round << " in_place " << in_place << " reuse " << reuse;
      }
      bytes.push_back(graph.arena_sizes[rt::kTempArena]);
      const auto copies = [](const Graph& g) {
        return std::count_if(g.steps.begin(), g.steps.end(), [](const Step& s) { return s.kind == StepKind::kCopy; });
      };
      removed += static_cast<int>(copies(program.graphs[0]) - copies(graph));
      for (const Buffer& b : graph.buffers) aliases += b.alias >= 0;
    }
    EXPECT_LE(bytes[0], bytes[2]);
    EXPECT_LE(bytes[1], bytes[2]);
    smaller += bytes[1] < bytes[2];
  }
  EXPECT_GT(removed, 50);
  EXPECT_GT(aliases, 50);
  EXPECT_GT(smaller, 50);
}

TEST(Order, IsAFixedPoint) {
  Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    Program program = test::RandomProgram(rng, {});
    PassContext context;
    ASSERT_TRUE(Order(program, context).ok());
    EXPECT_EQ(*Order(program, context), false);
  }
}

// Two chains of three: three epochs with one step of each, not six.
TEST(Order, IndependentChainsShareEpochs) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  const int32_t x = AddBuffer(g, "x", 8, BufferKind::kInput);
  for (int chain = 0; chain < 2; ++chain) {
    int32_t at = x;
    for (int s = 0; s < 3; ++s) {
      const std::string name = absl::StrCat("c", chain, "_", s);
      const int32_t next = AddBuffer(g, name, 8, s == 2 ? BufferKind::kOutput : BufferKind::kTemp);
      AddDispatch(program, g, MakeKernel("k" + name, {{8}}, 8, 1, s), {at, next});
      at = next;
    }
  }
  PassContext context;
  context.in_place = false;
  ASSERT_TRUE(Plan(program, context).ok());
  EXPECT_EQ(test::Barriers(g), 2);
  EXPECT_EQ(g.bound_bytes, g.arena_sizes[rt::kTempArena]);
}

// Producers of large values that are read late wait until they are needed: t0, t1, t2 are never alive together.
TEST(Order, LateProducersSaveMemory) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  const int32_t x = AddBuffer(g, "x", 8, BufferKind::kInput);
  int32_t sum = x;
  std::vector<int32_t> big;
  for (int i = 0; i < 3; ++i) {
    big.push_back(AddBuffer(g, absl::StrCat("t", i), 24, BufferKind::kTemp));
    AddDispatch(program, g, MakeKernel(absl::StrCat("big", i), {{8}}, 24, 1, i), {x, big[i]});
  }
  for (int i = 0; i < 3; ++i) {
    const int32_t next = AddBuffer(g, absl::StrCat("s", i), 8, i == 2 ? BufferKind::kOutput : BufferKind::kTemp);
    AddDispatch(program, g, MakeKernel(absl::StrCat("sum", i), {{8}, {24}}, 8, 1, i), {sum, big[i], next});
    sum = next;
  }
  PassContext context;
  context.in_place = false;
  context.target.offset_align = 16;
  ASSERT_TRUE(Plan(program, context).ok());
  EXPECT_EQ(test::Barriers(g), 3);
  // In epoch 2 t1, t2, s0 and s1 are alive; with all producers first it would be t0 to t2 and s0.
  EXPECT_EQ(g.arena_sizes[rt::kTempArena], 2u * 96 + 2 * 32);
}

TEST(PlaceBarriers, OneBarrierServesManyHazards) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  const int32_t x = AddBuffer(g, "x", 8, BufferKind::kInput);
  std::vector<int32_t> a;
  for (int i = 0; i < 4; ++i) a.push_back(AddBuffer(g, absl::StrCat("a", i), 8, BufferKind::kTemp));
  for (int i = 0; i < 4; ++i) AddDispatch(program, g, MakeKernel(absl::StrCat("p", i), {{8}}, 8, 1, i), {x, a[i]});
  for (int i = 0; i < 4; ++i) {
    const int32_t y = AddBuffer(g, absl::StrCat("y", i), 8, BufferKind::kOutput);
    AddDispatch(program, g, MakeKernel(absl::StrCat("c", i), {{8}, {8}}, 8, 1, i), {a[i], a[(i + 1) % 4], y});
  }
  PassContext context;
  context.fuse = false;
  ASSERT_TRUE(Plan(program, context).ok());
  EXPECT_EQ(test::Barriers(g), 1);
  EXPECT_EQ(g.steps[4].kind, StepKind::kBarrier);
}

// The checker must notice what the passes leave out.
TEST(CheckPlan, RefusesAPlantedHazard) {
  Rng rng(9);
  for (int round = 0; round < 20; ++round) {
    Program program = test::RandomProgram(rng, {.steps = 8});
    PassContext context;
    ASSERT_TRUE(Plan(program, context).ok());
    Graph& g = program.graphs[0];
    for (size_t s = 0; s < g.steps.size(); ++s) {
      if (g.steps[s].kind != StepKind::kBarrier) continue;
      Program broken = Clone(program);
      std::vector<Step>& steps = broken.graphs[0].steps;
      std::swap(steps[s], steps[s + 1]);  // the barrier comes one step late
      const absl::StatusOr<bool> result = CheckPlan(broken, context);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(result.status().message()), testing::StartsWith("graph @g: step"));
    }
  }
}

TEST(PlanMemory, RefusesABindingThatIsTooLarge) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  AddBuffer(g, "x", 1 << 20, BufferKind::kInput);
  PassContext context;
  context.target.storage_range = 1 << 20;
  const absl::StatusOr<bool> result = PlanMemory(program, context);
  ASSERT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(result.status().message()),
              testing::HasSubstr("input buffer %x of type i32[1048576] takes 4194304 bytes"));
  context.abi = BufferAbi::kAddresses;
  EXPECT_TRUE(PlanMemory(program, context).ok());
}

}  // namespace
}  // namespace agc
