// Views that divide and join axes cost nothing where it counts: innermost loops neither divide nor take remainders.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/pipeline.h"
#include "ir/text/text.h"
#include "passes/manager.h"

namespace agc {
namespace {

Program Kernels(absl::string_view text, absl::string_view target) {
  absl::StatusOr<Program> program = Parse(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  std::vector<std::string> passes = DefaultPipeline();
  passes.erase(std::find(passes.begin(), passes.end(), "plan-memory"), passes.end());
  PassContext context{.target = *FakeTarget(target)};
  const absl::Status lowered = RunPipeline(*program, passes, context);
  EXPECT_TRUE(lowered.ok()) << lowered;
  return *std::move(program);
}

bool IsLoop(const Stmt& s) {
  return s.kind == StmtKind::kFor && (s.mode == ForMode::kSerial || s.mode == ForMode::kUnroll);
}

struct Counts {
  int loops = 0, divisions = 0;  // innermost loops, and what stands in them
};

int Divisions(const Kernel& kernel, const Stmt& s) {
  int n = 0;
  Stmt copy = s;
  for (ExprId* id : ExprsOf(copy)) {
    for (Expr e : PostOrder(kernel.pool->at(*id))) n += e.is(ExprKind::kDiv) || e.is(ExprKind::kMod);
  }
  for (const Stmt& inner : s.body) n += Divisions(kernel, inner);
  for (const Stmt& inner : s.otherwise) n += Divisions(kernel, inner);
  return n;
}

// Whether some loop stands in the statements.
bool Count(const Kernel& kernel, const std::vector<Stmt>& body, Counts& counts) {
  bool any = false;
  for (const Stmt& s : body) {
    const bool inside = Count(kernel, s.body, counts), otherwise = Count(kernel, s.otherwise, counts);
    any = any || inside || otherwise || IsLoop(s);
    if (!IsLoop(s) || inside) continue;
    ++counts.loops;
    for (const Stmt& inner : s.body) counts.divisions += Divisions(kernel, inner);
  }
  return any;
}

void ExpectNoDivisions(absl::string_view text) {
  for (absl::string_view target : {"lavapipe", "h200"}) {
    const Program program = Kernels(text, target);
    Counts counts;
    for (const Kernel& kernel : program.kernels) {
      for (const KernelPart& part : kernel.parts) Count(kernel, part.body, counts);
    }
    EXPECT_GT(counts.loops, 0) << target;
    EXPECT_EQ(counts.divisions, 0) << target << "\n" << Print(program);
  }
}

TEST(InnerLoops, PixelShuffleBehindAConvolution) {
  ExpectNoDivisions(R"(module @m {
  graph @g(input %x: f32[2,12,5,7], input %w: f32[4,12,1,1]) -> (%y: f32[2,1,10,14]) {
    %0: f32[2,4,5,7] = conv2d %x, %w
    %1: f32[2,1,10,14] = depth_to_space %0 {block = 2}
    output %y = %1
  }
})");
}

TEST(InnerLoops, HeadsOfAProjection) {
  ExpectNoDivisions(R"(module @m {
  graph @g(input %x: f32[32,24], input %w: f32[24,24]) -> (%y: f32[2,3,16,16]) {
    %0: f32[32,24] = matmul %x, %w
    %1: f32[2,16,3,8] = reshape %0 {shape = [2, 16, 3, 8]}
    %2: f32[2,3,16,8] = transpose %1 {perm = [0, 2, 1, 3]}
    %3: f32[2,3,8,16] = transpose %2 {perm = [0, 1, 3, 2]}
    %4: f32[2,3,16,16] = batch_matmul %2, %3
    output %y = %4
  }
})");
}

TEST(InnerLoops, ProductWithTheColumnsOfImages) {
  ExpectNoDivisions(R"(module @m {
  graph @g(input %x: f32[2,3,8,9], input %w: f32[27,5]) -> (%y: f32[84,5]) {
    %0: f32[2,27,42] = unfold %x {window = [3, 3], stride = [1, 1]}
    %1: f32[2,42,27] = transpose %0 {perm = [0, 2, 1]}
    %2: f32[84,27] = reshape %1 {shape = [84, 27]}
    %3: f32[84,5] = matmul %2, %w
    output %y = %3
  }
})");
}

}  // namespace
}  // namespace agc
