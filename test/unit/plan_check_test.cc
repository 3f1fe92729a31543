// The plan checker: one case per rule, and random small plans against a checker that looks at every byte and every
// pair.
#include "runtime/plan_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace agc::rt {
namespace {

using ::testing::HasSubstr;

FlatBuffer Buf(std::string name, BufferKind kind, uint32_t arena, uint64_t offset, uint64_t size, uint32_t first = 0,
               uint32_t last = 0, int32_t alias = -1) {
  return {name, kind, arena, offset, size, first, last, alias};
}
FlatBuffer Temp(std::string name, uint64_t offset, uint64_t size, uint32_t first, uint32_t last, int32_t alias = -1) {
  return Buf(name, BufferKind::kTemp, kTempArena, offset, size, first, last, alias);
}
FlatStep Dispatch(std::string label, std::vector<FlatArg> args) {
  return {.kind = StepKind::kDispatch, .args = std::move(args), .label = std::move(label)};
}
FlatStep Barrier() { return {.kind = StepKind::kBarrier}; }

// in -> h -> out: a plan that holds, for the cases below to break.
FlatPlan Chain() {
  FlatPlan p;
  p.arena_sizes = {64, 128, 0, 256};
  p.buffers = {Buf("in", BufferKind::kInput, kHostArena, 0, 64), Temp("h", 0, 64, 0, 2),
               Buf("out", BufferKind::kOutput, kHostArena, 64, 64), Buf("w", BufferKind::kState, kStateArena, 0, 64)};
  p.steps = {Dispatch("k0_mul", {{0, 0, 64, Access::kRead}, {1, 0, 64, Access::kWrite}}), Barrier(),
             Dispatch("k1_add", {{1, 0, 64, Access::kRead}, {2, 0, 64, Access::kWrite}})};
  return p;
}

std::string Error(const FlatPlan& plan, const PlanCheckOptions& options = {}) {
  return CheckPlan(plan, options).message();
}

TEST(PlanCheck, AcceptsChain) { EXPECT_EQ(Error(Chain()), ""); }

TEST(PlanCheck, MissingBarrier) {
  FlatPlan p = Chain();
  p.steps.erase(p.steps.begin() + 1);
  p.buffers[1].last_step = 1;
  EXPECT_EQ(Error(p),
            "step 1 (k1_add): reads h bytes [0, 64), which step 0 (k0_mul) writes, without a barrier between them");
}

TEST(PlanCheck, WriteAfterReadAndWrite) {
  FlatPlan p = Chain();  // step 3 overwrites what step 2 reads, through another buffer
  p.buffers.push_back(Temp("g", 32, 64, 3, 3));
  p.steps.push_back(Dispatch("k2", {{4, 0, 64, Access::kWrite}}));
  EXPECT_THAT(Error(p), HasSubstr("step 3 (k2): writes g bytes [0, 32), which step 2 (k1_add) reads, without"));
  p.steps.insert(p.steps.begin() + 3, Barrier());
  p.buffers[4].first_step = p.buffers[4].last_step = 4;
  EXPECT_EQ(Error(p), "");
  p.steps.push_back(Dispatch("k3", {{4, 16, 16, Access::kWrite}}));
  p.buffers[4].last_step = 5;
  EXPECT_THAT(Error(p), HasSubstr("step 5 (k3): writes g bytes [16, 32), which step 4 (k2) writes, without"));
}

TEST(PlanCheck, NeverWritten) {
  FlatPlan p = Chain();
  p.steps[0].args[1] = {1, 0, 32, Access::kWrite};
  EXPECT_THAT(Error(p), HasSubstr("step 2 (k1_add): reads h bytes [32, 64), which no earlier step writes"));
  p = Chain();
  p.steps[0].args[0] = {2, 0, 64, Access::kRead};
  EXPECT_THAT(Error(p), HasSubstr("reads out bytes [0, 64), which no earlier step writes"));
}

TEST(PlanCheck, StaleBytes) {
  FlatPlan p = Chain();  // g lives in h's bytes afterwards and is read before it is written
  p.buffers.push_back(Temp("g", 0, 64, 3, 4));
  p.steps.push_back(Barrier());
  p.steps.push_back(Dispatch("k2", {{4, 0, 64, Access::kRead}}));
  EXPECT_THAT(Error(p), HasSubstr("step 4 (k2): reads g bytes [0, 64), which hold h since step 0 (k0_mul)"));
  p.buffers[4] = Temp("g", 0, 64, 3, 4, 1);  // g takes h over: the same bytes are its own
  EXPECT_EQ(Error(p), "");
}

TEST(PlanCheck, OldValueAfterInPlaceUpdate) {
  FlatPlan p = Chain();
  p.buffers.push_back(Buf("w_new", BufferKind::kState, kStateArena, 0, 64, 0, 0, 3));
  p.steps[0].args.push_back({4, 0, 64, Access::kReadWrite});
  EXPECT_EQ(Error(p), "");
  p.steps[2].args.push_back({3, 0, 64, Access::kRead});
  EXPECT_THAT(Error(p), HasSubstr("reads w bytes [0, 64), which hold w_new since step 0"));
}

TEST(PlanCheck, LivesOverlap) {
  FlatPlan p = Chain();
  p.buffers.push_back(Temp("g", 48, 32, 2, 2));
  EXPECT_THAT(Error(p), HasSubstr("temp buffer g: g bytes [0, 16) are also h bytes [48, 64) at step 2"));
  p.buffers[4].alias = 1;
  EXPECT_EQ(Error(p), "");
  p.buffers[4] = Temp("g", 64, 32, 0, 2);
  EXPECT_EQ(Error(p), "");
  p.buffers[4] = Buf("v", BufferKind::kState, kStateArena, 48, 16);
  EXPECT_THAT(Error(p), HasSubstr("state buffer v"));
}

TEST(PlanCheck, UseOutsideLife) {
  FlatPlan p = Chain();
  p.buffers[1].last_step = 1;
  EXPECT_THAT(Error(p), HasSubstr("step 2 (k1_add): argument 0: uses temp buffer h outside its life [0, 1]"));
  p.buffers[1].last_step = 7;
  EXPECT_THAT(Error(p), HasSubstr("life [0, 7] in a plan of 3 steps"));
}

TEST(PlanCheck, ReadOnlyKinds) {
  FlatPlan p = Chain();
  p.steps[0].args[0].access = Access::kReadWrite;
  EXPECT_THAT(Error(p), HasSubstr("step 0 (k0_mul): argument 0: writes input buffer in, which is read-only"));
  p.buffers[2].alias = 0;  // not even through an output that takes the input over
  p.buffers[2].offset = 0;
  p.steps[0].args[0].access = Access::kRead;
  EXPECT_THAT(Error(p), HasSubstr("writes output buffer out, which is read-only"));
}

TEST(PlanCheck, OverlapInsideAStep) {
  FlatPlan p = Chain();
  p.steps[2].args[0] = {2, 0, 32, Access::kWrite};
  p.steps[2].args[1] = {2, 16, 48, Access::kWrite};
  EXPECT_THAT(Error(p), HasSubstr("arguments 0 and 1 share out bytes [16, 32) and one of them writes"));
}

TEST(PlanCheck, Bounds) {
  FlatPlan p = Chain();
  p.buffers[1].offset = 112;
  EXPECT_THAT(Error(p), HasSubstr("temp buffer h: bytes [112, +64) leave arena 1 of 128 bytes"));
  p.buffers[1].offset = UINT64_MAX - 15;
  EXPECT_THAT(Error(p), HasSubstr("leave arena 1"));
  p.buffers[1].offset = 8;
  EXPECT_THAT(Error(p), HasSubstr("offset 8 is not a multiple of 16"));
  p = Chain();
  p.buffers[1].size = 0;
  EXPECT_THAT(Error(p), HasSubstr("size is 0"));
  p = Chain();
  p.steps[0].args[1].offset = 16;
  EXPECT_THAT(Error(p), HasSubstr("argument 1: bytes [16, +64) of temp buffer h, which has 64"));
  p = Chain();
  p.steps[0].args[0].buffer = 9;
  EXPECT_THAT(Error(p), HasSubstr("argument 0: no buffer 9"));
  p = Chain();
  p.steps[0].groups = {1, 0, 1};
  EXPECT_THAT(Error(p), HasSubstr("step 0 (k0_mul): a group count is 0"));
  p = Chain();
  p.buffers[0].arena = kTempArena;
  EXPECT_THAT(Error(p), HasSubstr("input buffer in: may not lie in arena 1"));
  p = Chain();
  p.buffers[1].alias = 1;
  EXPECT_THAT(Error(p), HasSubstr("cycle"));
  p.arena_sizes = {};
  EXPECT_THAT(Error(p), HasSubstr("0 arenas"));
}

TEST(PlanCheck, Kernels) {
  std::vector<Kernel> kernels = {{.name = "k", .params = {Access::kRead, Access::kWrite}}};
  EXPECT_EQ(Error(Chain(), {.kernels = &kernels}), "");
  kernels[0].params = {Access::kRead, Access::kReadWrite};
  EXPECT_THAT(Error(Chain(), {.kernels = &kernels}), HasSubstr("argument 1 allows less access than kernel k takes"));
  kernels[0].params = {Access::kRead};
  EXPECT_THAT(Error(Chain(), {.kernels = &kernels}), HasSubstr("2 arguments for the 1 parameters of kernel k"));
  kernels.clear();
  EXPECT_THAT(Error(Chain(), {.kernels = &kernels}), HasSubstr("no kernel 0"));
}

TEST(PlanCheck, Transfers) {
  FlatPlan p = Chain();
  p.steps[0] = {.kind = StepKind::kCopy, .args = {{0, 0, 64, Access::kRead}, {1, 0, 64, Access::kWrite}}};
  EXPECT_EQ(Error(p), "");
  p.steps[0].args[0].size = 32;
  EXPECT_THAT(Error(p), HasSubstr("step 0 (copy): a copy reads one argument"));
  p.steps[0] = {.kind = StepKind::kFill, .args = {{1, 0, 64, Access::kWrite}}};
  EXPECT_EQ(Error(p), "");
  p.steps[0].args[0].size = 63;
  EXPECT_THAT(Error(p), HasSubstr("multiples of 4"));
}

TEST(PlanCheck, ScratchOfOneDispatch) {
  FlatPlan p = Chain();
  p.buffers.push_back(Buf("s", BufferKind::kScratch, kTempArena, 64, 64, 0, 0));
  p.steps[0].args.push_back({4, 0, 64, Access::kReadWrite});
  EXPECT_EQ(Error(p), "");
  p.steps[0].args.back().access = Access::kRead;
  EXPECT_THAT(Error(p), HasSubstr("reads s bytes"));
}

// ---- oracle: temporaries of one arena only, 16-byte granules, every rule by definition ----

constexpr uint64_t kGranule = 16;

bool Overlap(const FlatPlan& p, const FlatArg& a, const FlatArg& b) {
  const uint64_t a0 = p.buffers[a.buffer].offset + a.offset, b0 = p.buffers[b.buffer].offset + b.offset;
  return a0 < b0 + b.size && b0 < a0 + a.size;
}
bool W(Access a) { return a != Access::kRead; }
bool R(Access a) { return a != Access::kWrite; }
int Root(const FlatPlan& p, int b) { return p.buffers[b].alias < 0 ? b : Root(p, p.buffers[b].alias); }

bool OracleLives(const FlatPlan& p) {
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const FlatBuffer &a = p.buffers[i], &b = p.buffers[j];
      const bool bytes = a.offset < b.offset + b.size && b.offset < a.offset + a.size;
      const bool time = a.first_step <= b.last_step && b.first_step <= a.last_step;
      if (bytes && time && Root(p, i) != Root(p, j)) return false;
    }
  }
  return true;
}

bool OracleRead(const FlatPlan& p, size_t step, const FlatArg& arg) {
  for (uint64_t at = 0; at < arg.size; at += kGranule) {
    const uint64_t byte = p.buffers[arg.buffer].offset + arg.offset + at;
    int writer = -1;
    for (size_t s = 0; s < step; ++s) {
      for (const FlatArg& w : p.steps[s].args) {
        const uint64_t begin = p.buffers[w.buffer].offset + w.offset;
        if (W(w.access) && begin <= byte && byte < begin + w.size) writer = w.buffer;
      }
    }
    bool found = false;
    for (int b = arg.buffer; b >= 0; b = p.buffers[b].alias) found = found || b == writer;
    if (!found) return false;
  }
  return true;
}

bool OracleHazards(const FlatPlan& p) {
  for (size_t i = 0; i < p.steps.size(); ++i) {
    for (size_t j = i; j < p.steps.size() && (j == i || p.steps[j].kind != StepKind::kBarrier); ++j) {
      for (const FlatArg& a : p.steps[i].args) {
        for (const FlatArg& b : p.steps[j].args) {
          if (i == j && (&a == &b)) continue;
          if (!Overlap(p, a, b) || (!W(a.access) && !W(b.access))) continue;
          const bool same = p.buffers[a.buffer].offset + a.offset == p.buffers[b.buffer].offset + b.offset &&
                            a.size == b.size && Root(p, a.buffer) == Root(p, b.buffer);
          if (i == j && same && !(W(a.access) && W(b.access))) continue;
          return false;
        }
      }
      if (p.steps[i].kind == StepKind::kBarrier) break;
    }
  }
  return true;
}

bool Oracle(const FlatPlan& p) {
  if (!OracleLives(p) || !OracleHazards(p)) return false;
  for (const FlatBuffer& b : p.buffers) {
    if (b.alias < 0) continue;
    const FlatBuffer& from = p.buffers[b.alias];
    if (b.offset >= from.offset + from.size || from.offset >= b.offset + b.size) return false;
  }
  for (size_t s = 0; s < p.steps.size(); ++s) {
    for (const FlatArg& arg : p.steps[s].args) {
      const FlatBuffer& b = p.buffers[arg.buffer];
      if (s < b.first_step || s > b.last_step) return false;
      if (R(arg.access) && !OracleRead(p, s, arg)) return false;
    }
  }
  return true;
}

// Mostly sensible plans: each step writes a fresh buffer from earlier ones, barriers at most places, lives as used;
// then in half of the cases something is moved.
FlatPlan RandomPlan(std::mt19937& rng) {
  const auto pick = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
  FlatPlan p;
  p.arena_sizes = {0, 16 * kGranule, 0, 0};
  const uint32_t buffers = 2 + pick(4);
  for (uint32_t i = 0; i < buffers; ++i) {
    const uint64_t size = (1 + pick(3)) * kGranule;
    FlatBuffer b = Temp("b" + std::to_string(i), pick(2) ? i * 3 * kGranule : pick(13) * kGranule, size, 99, 0);
    if (i > 0 && pick(4) == 0) {
      b.alias = static_cast<int32_t>(pick(i));
      b.offset = p.buffers[b.alias].offset;
    }
    if (b.offset + b.size > p.arena_sizes[1]) b.offset = 0;
    p.buffers.push_back(b);
    FlatStep step = Dispatch("k", {{i, 0, b.size, b.alias >= 0 && pick(2) ? Access::kReadWrite : Access::kWrite}});
    if (b.alias >= 0 && p.buffers[b.alias].size < b.size) step.args[0].access = Access::kWrite;
    for (uint32_t r = 0; i > 0 && r < pick(3); ++r) {
      const uint32_t from = pick(i);
      const uint64_t part = pick(p.buffers[from].size / kGranule) * kGranule;
      step.args.push_back({from, part, p.buffers[from].size - part, Access::kRead});
    }
    if (i > 0 && pick(8) > 0) p.steps.push_back(Barrier());
    p.steps.push_back(step);
  }
  for (uint32_t s = 0; s < p.steps.size(); ++s) {
    for (const FlatArg& arg : p.steps[s].args) {
      FlatBuffer& b = p.buffers[arg.buffer];
      b.first_step = std::min(b.first_step, s);
      b.last_step = std::max(b.last_step, s);
    }
  }
  if (pick(4) == 0) p.buffers[pick(buffers)].last_step = pick(static_cast<uint32_t>(p.steps.size()));
  for (FlatBuffer& b : p.buffers) b.last_step = std::max(b.first_step, b.last_step);
  return p;
}

TEST(PlanCheck, AgreesWithBruteForce) {
  std::mt19937 rng(7);
  int good = 0;
  const int kPlans = 30000;
  for (int i = 0; i < kPlans; ++i) {
    const FlatPlan p = RandomPlan(rng);
    const Status status = CheckPlan(p);
    good += status.ok();
    ASSERT_EQ(status.ok(), Oracle(p)) << "plan " << i << ": " << status.message();
  }
  EXPECT_GT(good, kPlans / 10);
  EXPECT_LT(good, kPlans * 9 / 10);
}

TEST(PlanCheck, TenThousandSteps) {
  FlatPlan p;
  p.arena_sizes = {0, 64 * 1024, 0, 0};
  for (uint32_t i = 0; i < 10000; ++i) {
    p.buffers.push_back(Temp("b", (i % 64) * 1024, 1024, 2 * i, std::min(19999u, 2 * i + 100)));
    FlatStep step = Dispatch("k", {{i, 0, 1024, Access::kWrite}});
    for (uint32_t back = 1; back <= 5 && back <= i; ++back) step.args.push_back({i - back, 0, 1024, Access::kRead});
    p.steps.push_back(step);
    p.steps.push_back(Barrier());
  }
  EXPECT_EQ(Error(p), "");
}

}  // namespace
}  // namespace agc::rt
