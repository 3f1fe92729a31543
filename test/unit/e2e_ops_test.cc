// LABELS: vulkan
// Every row of the op table on the device against the f64 evaluator, within the row's tolerance: all cases of
// op_cases.h with addresses and no optimiser, the sample and the cases by hand with bindings and the optimiser, and
// fewer with the other two pairings. Drivers compile addresses faster: lavapipe ten times so.
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

enum class Cases { kAll, kByHand, kSamples, kFirst };

struct Setting {
  const char* name;
  BufferAbi abi;
  int optimize;
  Cases cases;
  friend void PrintTo(const Setting& s, std::ostream* out) { *out << s.name; }
};
constexpr Setting kSettings[] = {{"addresses_plain", BufferAbi::kAddresses, 0, Cases::kAll},
                                 {"bindings_optimized", BufferAbi::kBindings, 1, Cases::kByHand},
                                 {"addresses_optimized", BufferAbi::kAddresses, 2, Cases::kSamples},
                                 {"bindings_plain", BufferAbi::kBindings, 0, Cases::kFirst}};

bool Chosen(const OpModule& m, size_t g, Cases cases) {
  if (cases == Cases::kFirst) return g == 0;
  if (cases == Cases::kSamples) return g < m.samples;
  return cases == Cases::kAll || g == 0 || g >= m.program.graphs.size() - m.by_hand;
}

const std::vector<OpModule>& TheModules() {
  static const auto* const kModules = new std::vector<OpModule>(OpModules());
  return *kModules;
}

// One bundle for all chosen graphs of the module; returns how many.
size_t RunModule(const OpModule& m, const Setting& setting) {
  Program program = Clone(m.program);
  std::vector<size_t> chosen;
  program.graphs.clear();
  for (size_t g = 0; g < m.program.graphs.size(); ++g) {
    if (!Chosen(m, g, setting.cases)) continue;
    chosen.push_back(g);
    program.graphs.push_back(m.program.graphs[g]);
  }
  const CompileOptions options{.abi = setting.abi, .optimize = setting.optimize};
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(program), TheTarget(), options);
  EXPECT_TRUE(bundle.ok()) << m.op << ": " << bundle.status();
  if (!bundle.ok()) return 0;
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  EXPECT_TRUE(session.ok()) << m.op << ": " << session.status();
  if (!session.ok()) return 0;
  for (size_t g : chosen) {
    const absl::StatusOr<EvalResult> got = RunSession(*session, m.program, m.program.graphs[g], m.inputs[g]);
    EXPECT_EQ(got.ok() ? OpDifference(m, g, *got) : absl::StrCat(m.op, ": ", got.status().message()), "");
  }
  return chosen.size();
}

class OpsOnDevice : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Abi, OpsOnDevice, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(OpsOnDevice, EqualTheF64Evaluator) {
  size_t graphs = 0;
  for (const OpModule& m : TheModules()) graphs += RunModule(m, GetParam());
  std::printf("%zu rows, %zu graphs\n", TheModules().size(), graphs);
  EXPECT_GE(TheModules().size(), 60u);
}

}  // namespace
}  // namespace agc::test
