// LABELS: vulkan
// Every row of the op table on the device against the f64 evaluator, within the row's tolerance: all cases of
// op_cases.h with addresses and no optimiser, and with the other settings so many that over the table each dtype and
// each size meets each ABI and each level of the optimiser. lavapipe compiles addresses ten times faster. The whole
// product, by hand:
//   build/test/e2e_ops_test --gtest_also_run_disabled_tests --gtest_filter='*WholeProduct*'
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

// All cases; the row's own sample and those by hand; every other sample; one sample, another size for each row.
enum class Cases { kAll, kByHand, kHalf, kOne };

struct Setting {
  const char* name;
  BufferAbi abi;
  int optimize;
  Cases cases;
  friend void PrintTo(const Setting& s, std::ostream* out) { *out << s.name; }
};
constexpr Setting kSettings[] = {{"addresses_plain", BufferAbi::kAddresses, 0, Cases::kAll},
                                 {"bindings_optimized", BufferAbi::kBindings, 1, Cases::kByHand},
                                 {"addresses_optimized", BufferAbi::kAddresses, 2, Cases::kHalf},
                                 {"bindings_plain", BufferAbi::kBindings, 0, Cases::kOne}};

bool Chosen(const OpModule& m, size_t g, Cases cases) {
  if (cases == Cases::kAll) return true;
  if (cases == Cases::kByHand) return g == 0 || m.cases[g].by_hand;
  if (m.cases[g].by_hand) return false;
  if (cases == Cases::kHalf) return (g + m.op->name.size()) % 2 == 0;
  const auto samples = std::count_if(m.cases.begin(), m.cases.end(), [](const OpCase& c) { return !c.by_hand; });
  return g == m.op->name.size() % static_cast<size_t>(samples);
}

// One bundle for all chosen graphs of the module; returns how many.
size_t RunModule(const OpModule& m, const Setting& setting, Cases cases) {
  Program program = Clone(m.program);
  std::vector<size_t> chosen;
  program.graphs.clear();
  for (size_t g = 0; g < m.program.graphs.size(); ++g) {
    if (!Chosen(m, g, cases)) continue;
    chosen.push_back(g);
    program.graphs.push_back(m.program.graphs[g]);
  }
  if (chosen.empty()) return 0;
  const CompileOptions options{.abi = setting.abi, .optimize = setting.optimize};
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(program), TheTarget(), options);
  EXPECT_TRUE(bundle.ok()) << m.op->name << ": " << bundle.status();
  if (!bundle.ok()) return 0;
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  EXPECT_TRUE(session.ok()) << m.op->name << ": " << session.status();
  if (!session.ok()) return 0;
  for (size_t g : chosen) {
    const absl::StatusOr<EvalResult> got = RunSession(*session, m.program, m.program.graphs[g], m.cases[g].inputs);
    EXPECT_EQ(got.ok() ? OpDifference(m, g, *got) : absl::StrCat(m.op->name, ": ", got.status().message()), "");
  }
  return chosen.size();
}

class OpsOnDevice : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Abi, OpsOnDevice, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(OpsOnDevice, EqualTheF64Evaluator) {
  static const auto* const kModules = new std::vector<OpModule>(OpModules(SampleSet::kPairs));
  size_t graphs = 0;
  for (const OpModule& m : *kModules) graphs += RunModule(m, GetParam(), GetParam().cases);
  std::printf("%zu rows, %zu graphs\n", kModules->size(), graphs);
  std::string missing;  // rows that compute and have no case that the device runs
  for (const OpDef* op : AllOps()) {
    const auto same = [&](const OpModule& m) { return m.op == op; };
    const bool has = std::any_of(kModules->begin(), kModules->end(), same);
    if (!op->numpy.empty() && !has) absl::StrAppend(&missing, " ", op->name);
  }
  EXPECT_EQ(missing, "");
}

TEST_P(OpsOnDevice, DISABLED_WholeProduct) {
  static const auto* const kModules = new std::vector<OpModule>(OpModules(SampleSet::kAll));
  size_t graphs = 0;
  for (const OpModule& m : *kModules) graphs += RunModule(m, GetParam(), Cases::kAll);
  std::printf("%zu rows, %zu graphs\n", kModules->size(), graphs);
}

}  // namespace
}  // namespace agc::test
