// Every case of op_cases.h through the whole pipeline and then through the plan evaluator, whose loop executor finds
// races, poison and out-of-range access: for a software device, a large GPU and the smallest one, fused and not.
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

struct Setting {
  const char* target;
  bool fuse;
  friend void PrintTo(const Setting& s, std::ostream* out) { *out << s.target; }
};
class OpPlans : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Targets, OpPlans,
                         testing::Values(Setting{"lavapipe", true}, Setting{"h200", true}, Setting{"tiny", false}),
                         [](const auto& info) { return std::string(info.param.target); });

TEST_P(OpPlans, EqualTheF64Evaluator) {
  Target target = FakeTarget(GetParam().target).value();
  if (!target.has("storage_8bit")) target.features = {"storage_8bit"};    // the cases have bytes and bools
  target.storage_buffers = std::max<int64_t>(target.storage_buffers, 8);  // no op may need more
  for (const OpModule& m : OpModules(SampleSet::kPairs)) {
    absl::StatusOr<Program> plan = LowerToPlan(Clone(m.program), target, {.fuse = GetParam().fuse});
    if (!plan.ok()) {
      ADD_FAILURE() << m.op->name << ": " << plan.status();
      continue;
    }
    const KernelOptions options{.subgroup = static_cast<int>(target.subgroup_size)};
    for (size_t g = 0; g < m.cases.size(); ++g) {
      const absl::StatusOr<EvalResult> got = Evaluate(*plan, m.program.graphs[g].name, m.cases[g].inputs, options);
      EXPECT_EQ(got.ok() ? OpDifference(m, g, *got) : absl::StrCat(m.op->name, ": ", got.status().message()), "");
    }
  }
}

}  // namespace
}  // namespace agc::test
