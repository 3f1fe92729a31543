// Random graphs through the whole pipeline and the plan evaluator, which reports races, reads of poison and conflicting
// steps: planned and unplanned, in place and not, fused and not, for small and large targets.
#include "test/unit/e2e_tools.h"
#include "test/unit/random_graphs.h"

namespace agc::test {
namespace {

constexpr double kTolerance = 2e-5;

void CheckPrograms(bool exact, uint32_t first_seed, int count) {
  const CompileOptions options[] = {{}, {.reuse_memory = false}, {.in_place = false}, {.fuse = false}};
  const char* targets[] = {"lavapipe", "h200", "tiny"};
  for (int i = 0; i < count; ++i) {
    const Program p = RandomGraphs(1, exact, first_seed + static_cast<uint32_t>(i));
    const EvalInputs in = RandomInputs(p, p.graphs[0], -1, 1);
    const EvalResult want = Evaluated(p, "g0", in, exact ? EvalMode::kExact : EvalMode::kDouble);
    for (const CompileOptions& o : options) {
      Target target = FakeTarget(targets[i % 3]).value();
      target.storage_buffers = std::max<int64_t>(target.storage_buffers, 8);  // single ops of these graphs take up to 8
      EXPECT_EQ(Difference(Executed(p, "g0", in, o, target), want, exact ? 0 : kTolerance), "")
          << "seed " << first_seed + i;
    }
  }
}

TEST(E2eRandom, R3ExactGraphsKeepTheirBits) { CheckPrograms(true, 100, 25); }
TEST(E2eRandom, R3MixedGraphsStayWithinTolerance) { CheckPrograms(false, 200, 25); }

}  // namespace
}  // namespace agc::test
