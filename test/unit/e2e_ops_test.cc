// LABELS: vulkan
// Every row of the op table on the device against the f64 evaluator, within the row's tolerance: all cases of
// op_cases.h with bindings and the optimiser on, and with addresses and the optimiser off; the samples with the other
// two pairings as well.
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

struct Setting {
  const char* name;
  BufferAbi abi;
  int optimize;
  bool all;  // cases, or the samples alone
  friend void PrintTo(const Setting& s, std::ostream* out) { *out << s.name; }
};
constexpr Setting kSettings[] = {{"bindings_optimized", BufferAbi::kBindings, 1, true},
                                 {"addresses_plain", BufferAbi::kAddresses, 0, true},
                                 {"bindings_plain", BufferAbi::kBindings, 0, false},
                                 {"addresses_optimized", BufferAbi::kAddresses, 2, false}};

const std::vector<OpModule>& TheModules() {
  static const auto* const kModules = new std::vector<OpModule>(OpModules());
  return *kModules;
}

// One bundle for all graphs of the module; where that does not compile, graph by graph, so that the error has a name.
void RunModule(const OpModule& m, const CompileOptions& options, size_t graphs) {
  Program program = Clone(m.program);
  program.graphs.resize(graphs);
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(program), TheTarget(), options);
  if (!bundle.ok()) {
    ADD_FAILURE() << m.op << ": " << bundle.status();
    return;
  }
  absl::StatusOr<rt::Session> session = LoadOnDevice(*bundle);
  ASSERT_TRUE(session.ok()) << m.op << ": " << session.status();
  for (size_t g = 0; g < graphs; ++g) {
    const absl::StatusOr<EvalResult> got = RunSession(*session, program, program.graphs[g], m.inputs[g]);
    ASSERT_TRUE(got.ok()) << m.op << ": " << got.status();
    EXPECT_EQ(OpDifference(m, g, *got), "");
  }
}

class OpsOnDevice : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Abi, OpsOnDevice, testing::ValuesIn(kSettings),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(OpsOnDevice, EqualTheF64Evaluator) {
  size_t graphs = 0;
  for (const OpModule& m : TheModules()) {
    const size_t n = GetParam().all ? m.program.graphs.size() : m.samples;
    RunModule(m, {.abi = GetParam().abi, .optimize = GetParam().optimize}, n);
    graphs += n;
  }
  std::printf("%zu rows, %zu graphs\n", TheModules().size(), graphs);
  EXPECT_GE(TheModules().size(), 60u);
}

}  // namespace
}  // namespace agc::test
