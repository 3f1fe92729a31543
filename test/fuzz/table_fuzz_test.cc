// LABELS: vulkan
// Random graphs over the whole op table: the device, in either ABI and at every level of the optimiser, and the loop
// executor, planned and unplanned, fused and not, for several targets, against the f64 evaluator.
//   build/test/table_fuzz_test --seconds=3600 --seed=1000        until that many seconds are over
//   build/test/table_fuzz_test --seed=17 --count=1               that seed alone; the default is CI's, the same each
//   time
// A graph that fails is written to <temporary directory>/fuzz_<seed>.agir.
#include <chrono>
#include <fstream>

#include "test/fuzz/table_graphs.h"
#include "test/unit/op_cases.h"

namespace agc::test {
namespace {

constexpr char kSeconds[] = "0", kSeed[] = "1", kCount[] = "40";

std::string Compare(const EvalResult& got, const TableGraph& g) {
  std::string wrong;
  const auto each = [&](const std::string& name, const std::map<std::string, HostTensor>& values,
                        const std::map<std::string, HostTensor>& want) {
    const auto it = values.find(name);
    const double error = it == values.end() ? HUGE_VAL : ErrorOf(it->second, want.at(name)),
                 allowed = g.allowed.at(name);
    if (error > allowed) absl::StrAppend(&wrong, name, " is off by ", error, ", allowed ", allowed, "; ");
  };
  for (const Output& o : g.program.graphs[0].outputs) each(o.name, got.outputs, g.want.outputs);
  for (const struct Update& u : g.program.graphs[0].updates) each(u.state, got.states, g.want.states);
  return wrong;
}

std::string OnTheDevice(const TableGraph& g, uint64_t seed) {
  const CompileOptions options{.abi = seed % 8 == 0 ? BufferAbi::kBindings : BufferAbi::kAddresses,
                               .optimize = static_cast<int>(seed % 3),
                               .fuse = seed % 5 != 0};
  const absl::StatusOr<EvalResult> r = TryOnDevice(g.program, "g", g.inputs, options);
  return r.ok() ? Compare(*r, g) : absl::StrCat(r.status().message(), "; ");
}

absl::StatusOr<EvalResult> Execute(const TableGraph& g, const CompileOptions& options, const Target& target) {
  AGC_ASSIGN_OR_RETURN(const Program plan, LowerToPlan(Clone(g.program), target, options));
  EvalInputs in = g.inputs;
  if (plan.FindState("run.index") != nullptr)
    in.states["run.index"] = HostTensor::Zeros(plan.FindState("run.index")->type);
  AGC_ASSIGN_OR_RETURN(EvalResult r, Evaluate(plan, "g", in, {.subgroup = static_cast<int>(target.subgroup_size)}));
  r.states.insert(g.inputs.states.begin(), g.inputs.states.end());
  return r;
}

// Planned and unplanned runs of the same kernels agree bit for bit.
std::string InTheExecutor(const TableGraph& g, uint64_t seed) {
  const char* targets[] = {"lavapipe", "h200", "tiny"};
  Target target = FakeTarget(targets[seed % 3]).value();
  target.storage_buffers = std::max<int64_t>(target.storage_buffers, 16);
  if (!target.has("storage_8bit")) target.features.push_back("storage_8bit");
  const absl::StatusOr<EvalResult> planned = Execute(g, {}, target),
                                   unplanned = Execute(g, {.reuse_memory = false, .in_place = false}, target),
                                   unfused = Execute(g, {.fuse = false}, target);
  std::string wrong;
  for (const auto* r : {&planned, &unplanned, &unfused}) {
    absl::StrAppend(&wrong, r->ok() ? Compare(**r, g) : absl::StrCat(r->status().message(), "; "));
  }
  if (!wrong.empty()) return absl::StrCat("target ", targets[seed % 3], ": ", wrong);
  const std::string apart = Difference(*planned, *unplanned, 0);
  return apart.empty() ? "" : absl::StrCat("planned and unplanned differ: ", apart);
}

std::string Written(const TableGraph& g, uint64_t seed) {
  const std::string path = absl::StrCat(testing::TempDir(), "fuzz_", seed, ".agir");
  std::ofstream(path) << Print(g.program);
  return path;
}

TEST(TableFuzz, DeviceExecutorAndEvaluatorAgree) {
  using Clock = std::chrono::steady_clock;
  const double seconds = std::stod(Argument("seconds", kSeconds));
  const uint64_t first = std::stoull(Argument("seed", kSeed)), count = std::stoull(Argument("count", kCount));
  const auto rows = fuzz::Templates(kDeviceDTypes);
  const auto start = Clock::now();
  uint64_t seed = first;
  const auto over = [&] {
    if (seconds == 0) return seed - first >= count;
    return std::chrono::duration<double>(Clock::now() - start).count() >= seconds;
  };
  size_t outputs = 0, gradients = 0;
  do {
    const TableGraph g = MakeTableGraph(seed, rows, kDeviceDTypes, 3 + static_cast<int>(seed % 9));
    for (const Output& o : g.program.graphs[0].outputs) ++(o.name[0] == 'd' ? gradients : outputs);
    const std::string wrong = OnTheDevice(g, seed) + InTheExecutor(g, seed);
    EXPECT_EQ(wrong, "") << "seed " << seed << ": " << Written(g, seed);
    ++seed;
  } while (!over());
  std::printf("seeds %lu to %lu, %zu rows: %zu outputs, %zu gradients\n", static_cast<unsigned long>(first),
              static_cast<unsigned long>(seed - 1), rows.size(), outputs, gradients);
  EXPECT_GT(outputs, 0u);
  EXPECT_GT(gradients, 0u);  // graphs whose ops have no rules are run without
}

}  // namespace
}  // namespace agc::test
