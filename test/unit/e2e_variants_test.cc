// LABELS: vulkan
// The same program compiled in other ways computes the same: fused and op by op, with memory shared and not, in place
// and not, in either ABI, at every level of the SPIR-V optimiser.
//   Which bits must agree: everything but fusion leaves the arithmetic of each kernel as it is, so results are equal
//   bit for bit; fusion may change the order of a reduction or contraction (another schedule family), so those agree
//   within a tolerance, and graphs without them agree bit for bit, with the f32 evaluator too. Fast numerics leave
//   multiply-adds to the driver, and agree within the tolerance.
#include "test/unit/e2e_tools.h"
#include "test/unit/random_graphs.h"
#include "test/unit/small_model.h"

namespace agc::test {
namespace {

constexpr double kReordered = 2e-5;  // sums of at most a few hundred f32 terms in another order

struct Variant {
  const char* name;
  CompileOptions options;
  friend void PrintTo(const Variant& v, std::ostream* out) { *out << v.name; }
};
constexpr BufferAbi kAddresses = BufferAbi::kAddresses;  // which lavapipe compiles ten times faster
const CompileOptions kPlain = {.abi = kAddresses};
const Variant kVariants[] = {
    {"bindings", {.abi = BufferAbi::kBindings}},
    {"unplanned", {.abi = kAddresses, .reuse_memory = false}},
    {"not_in_place", {.abi = kAddresses, .in_place = false}},
    {"plain_spirv", {.abi = kAddresses, .optimize = 0}},
    {"all_spirv_passes", {.abi = kAddresses, .optimize = 2}},
    {"fast_numerics", {.abi = kAddresses, .numerics = Numerics::kFast}},
    {"op_by_op", {.abi = kAddresses, .fuse = false}},
    {"all_at_once",
     {.abi = BufferAbi::kBindings, .optimize = 0, .fuse = false, .reuse_memory = false, .in_place = false}}};

// Every graph of a program on the device, on the same inputs.
std::vector<EvalResult> RunAll(const Program& program, const CompileOptions& options) {
  std::vector<EvalResult> results;
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(program), TheTarget(), options);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  if (!bundle.ok()) return std::vector<EvalResult>(program.graphs.size());
  absl::StatusOr<rt::Session> s = LoadOnDevice(*bundle);
  EXPECT_TRUE(s.ok()) << s.status();
  if (!s.ok()) return std::vector<EvalResult>(program.graphs.size());
  for (const Graph& graph : program.graphs) {
    results.push_back(Checked(RunSession(*s, program, graph, RandomInputs(program, graph, -1, 1))));
  }
  return results;
}

struct Model {
  Program program = {};
  bool exact = false;
  std::vector<EvalResult> plain = {};
};
Model MakeModel(Program program, bool exact) {
  Model m{std::move(program), exact, {}};
  m.plain = RunAll(m.program, kPlain);
  return m;
}

const Model& ExactModel() {
  static const Model* const kModel = new Model(MakeModel(RandomGraphs(10, /*exact=*/true, 1), true));
  return *kModel;
}
const Model& MixedModel() {
  static const Model* const kModel = new Model(MakeModel(RandomGraphs(10, /*exact=*/false, 2), false));
  return *kModel;
}
const Model& SmallModel() {
  static const Model* const kModel = [] {
    Module m("small");
    TraceSmallStep(m);
    return new Model(MakeModel(Clone(m.program()), false));
  }();
  return *kModel;
}

class Variants : public testing::TestWithParam<Variant> {
 protected:
  void Compare(const Model& m) {
    const std::vector<EvalResult> got = RunAll(m.program, GetParam().options);
    const CompileOptions& o = GetParam().options;
    const bool bits = o.numerics != Numerics::kFast && (o.fuse || m.exact);
    for (size_t g = 0; g < got.size(); ++g) {
      EXPECT_EQ(Difference(got[g], m.plain[g], bits ? 0 : kReordered), "") << m.program.graphs[g].name;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Options, Variants, testing::ValuesIn(kVariants),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Variants, OfExactGraphs) { Compare(ExactModel()); }
TEST_P(Variants, OfMixedGraphs) { Compare(MixedModel()); }
TEST_P(Variants, OfATrainingStep) { Compare(SmallModel()); }

TEST(VariantModels, ExactGraphsEqualTheEvaluatorBitForBit) {
  const Model& m = ExactModel();
  for (size_t g = 0; g < m.plain.size(); ++g) {
    const EvalInputs in = RandomInputs(m.program, m.program.graphs[g], -1, 1);
    EXPECT_EQ(Difference(m.plain[g], Evaluated(m.program, m.program.graphs[g].name, in, EvalMode::kExact), 0), "");
  }
}

TEST(VariantModels, MixedGraphsEqualTheEvaluator) {
  const Model& m = MixedModel();
  for (size_t g = 0; g < m.plain.size(); ++g) {
    const EvalInputs in = RandomInputs(m.program, m.program.graphs[g], -1, 1);
    EXPECT_EQ(Difference(m.plain[g], Evaluated(m.program, m.program.graphs[g].name, in), kReordered), "");
  }
}

// The variants are different programs: fewer kernels where ops fuse, fewer bytes where memory is shared.
TEST(VariantModels, OptionsChangeThePlan) {
  const auto plan = [](const CompileOptions& o) {
    return LowerToPlan(Clone(MixedModel().program), TheTarget(), o).value();
  };
  const Program plain = plan({}), unfused = plan({.fuse = false}), unplanned = plan({.reuse_memory = false});
  const Program not_in_place = plan({.in_place = false});
  size_t fewer_steps = 0, fewer_bytes = 0, fewer_copies = 0;
  for (size_t g = 0; g < MixedModel().program.graphs.size(); ++g) {
    fewer_steps += plain.graphs[g].steps.size() < unfused.graphs[g].steps.size();
    fewer_bytes += plain.graphs[g].arena_sizes[rt::kTempArena] < unplanned.graphs[g].arena_sizes[rt::kTempArena];
    fewer_copies += plain.graphs[g].steps.size() < not_in_place.graphs[g].steps.size();
  }
  EXPECT_EQ(fewer_steps, MixedModel().program.graphs.size());
  EXPECT_GT(fewer_bytes, 0u);
  EXPECT_GT(fewer_copies, 0u);
}

}  // namespace
}  // namespace agc::test
