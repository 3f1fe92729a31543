// LABELS: vulkan
// One training step of LeNet-5 against an independent implementation in numpy (f64), on the device in both ABIs, in the
// loop executor and in the graph evaluator: the loss, every gradient, every updated state. And the gradients against
// finite differences of the loss, in f64 by the evaluator.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "ir/eval/npy.h"
#include "test/unit/e2e_tools.h"
#include "test/unit/lenet_model.h"

namespace agc::test {
namespace {

constexpr int64_t kBatch = 8;
// Measured on lavapipe: at most 1e-6 of the largest element; f32 sums of up to 4,704 terms.
constexpr double kF32Tolerance = 1e-5, kF64Tolerance = 1e-10;

struct Fixture {
  std::map<std::string, HostTensor> arrays = {};
  EvalInputs inputs = {};
  const HostTensor& at(const std::string& name) const { return arrays.at(name); }
};

// What lenet_numpy.py writes, computed once.
const Fixture& TheFixture() {
  static const Fixture* const kFixture = [] {
    auto* f = new Fixture;
    const std::string dir = absl::StrCat(testing::TempDir(), "agc_lenet_", getpid());
    std::filesystem::create_directories(dir);
    const std::string command =
        absl::StrCat("/usr/bin/python3 " AGC_SOURCE_DIR "/test/e2e_fixtures/lenet_numpy.py ", dir, " --batch=", kBatch);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
      absl::StatusOr<HostTensor> t = ReadNpy(entry.path().string());
      EXPECT_TRUE(t.ok()) << t.status();
      if (t.ok()) f->arrays[entry.path().stem().string()] = *std::move(t);
    }
    std::filesystem::remove_all(dir);
    for (const char* name : {"images", "labels", "lr"}) f->inputs.params[name] = f->at(name);
    for (const auto& [name, t] : f->arrays) {
      if (name.rfind("state.", 0) == 0) f->inputs.states[name.substr(6)] = t;
    }
    return f;
  }();
  return *kFixture;
}

const Program& TheProgram() {
  static const Module* const kModule = [] {
    auto* m = new Module("lenet5");
    TraceLenetStep(*m, kBatch);
    EXPECT_TRUE(m->status().ok()) << m->status();
    return m;
  }();
  return kModule->program();
}

// Largest difference as a fraction of the largest element.
double ScaledError(const HostTensor& got, const HostTensor& want) {
  double worst = 0, largest = 0;
  if (got.type.dims != want.type.dims) return HUGE_VAL;
  for (int64_t i = 0; i < want.type.elements(); ++i) {
    worst = std::max(worst, std::abs(got.at(i).AsDouble() - want.at(i).AsDouble()));
    largest = std::max(largest, std::abs(want.at(i).AsDouble()));
    if (std::isnan(got.at(i).AsDouble())) return HUGE_VAL;
  }
  return largest > 0 ? worst / largest : HUGE_VAL;  // an array of zeros would compare nothing
}

void ExpectStep(const EvalResult& got, double tolerance) {
  const Fixture& f = TheFixture();
  int compared = 0;
  for (const auto& [name, want] : f.arrays) {
    const bool state = name.rfind("next.", 0) == 0;
    const auto& values = state ? got.states : got.outputs;
    const auto it = values.find(state ? name.substr(5) : name);
    if (it == values.end()) continue;
    ++compared;
    EXPECT_LE(ScaledError(it->second, want), tolerance) << name;
  }
  EXPECT_EQ(compared, 2 + 10 + 20);  // loss and logits, gradients, weights and velocities
}

TEST(LenetGradients, GraphEvaluatorInF64EqualsNumpy) {
  ExpectStep(Evaluated(TheProgram(), "step", TheFixture().inputs), kF64Tolerance);
}

TEST(LenetGradients, GraphEvaluatorInF32EqualsNumpy) {
  ExpectStep(Evaluated(TheProgram(), "step", TheFixture().inputs, EvalMode::kExact), kF32Tolerance);
}

TEST(LenetGradients, LoopExecutorEqualsNumpy) {
  ExpectStep(Executed(TheProgram(), "step", TheFixture().inputs), kF32Tolerance);
}

TEST(LenetGradients, DeviceWithBindingsEqualsNumpy) {
  ExpectStep(OnDevice(TheProgram(), "step", TheFixture().inputs), kF32Tolerance);
}

TEST(LenetGradients, DeviceWithAddressesEqualsNumpy) {
  ExpectStep(OnDevice(TheProgram(), "step", TheFixture().inputs, {.abi = BufferAbi::kAddresses, .optimize = 2}),
             kF32Tolerance);
}

// A wrong gradient is seen: the momentum of one velocity left out.
TEST(LenetGradients, ComparisonSeesAWrongState) {
  EvalResult got = Evaluated(TheProgram(), "step", TheFixture().inputs);
  const HostTensor& gradient = got.outputs.at("grad.c2.weight");
  EXPECT_GT(ScaledError(gradient, TheFixture().at("next.c2.weight.velocity")), 1e-2);
}

TEST(LenetGradients, FiniteDifferencesInF64) {
  const EvalResult got = Evaluated(TheProgram(), "step", TheFixture().inputs);
  EvalInputs in = TheFixture().inputs;
  in.params.erase("lr");
  for (auto& [name, t] : in.states) t = ConvertTo(t, DType::kF64);
  const auto loss = [&] {
    return Checked(EvaluateGraph(TheProgram(), *TheProgram().FindGraph("loss"), in, EvalMode::kDouble))
        .outputs.at("loss")
        .at(0)
        .AsDouble();
  };
  std::mt19937 random(3);
  for (const StateDef& w : TheProgram().states) {
    if (!w.trainable) continue;
    HostTensor& state = in.states.at(w.name);
    const HostTensor& gradient = got.outputs.at("grad." + w.name);
    for (int k = 0; k < 3; ++k) {
      const int64_t i = static_cast<int64_t>(random() % static_cast<uint32_t>(w.type.elements()));
      constexpr double kStep = 1e-5;
      const double at = state.at(i).AsDouble();
      state.set(i, Scalar::Float(DType::kF64, at + kStep));
      const double above = loss();
      state.set(i, Scalar::Float(DType::kF64, at - kStep));
      const double below = loss();
      state.set(i, Scalar::Float(DType::kF64, at));
      EXPECT_NEAR(gradient.at(i).AsDouble(), (above - below) / (2 * kStep), 1e-8) << w.name << "[" << i << "]";
    }
  }
}

}  // namespace
}  // namespace agc::test
