// LABELS: vulkan
// Training LeNet-5 on a made-up data set, 20 steps of 20 images: the same run twice, one run of 20 steps and 20 runs of
// one, a run that stops, is saved and goes on elsewhere, all end with the same bits; a bundle with states infers what
// the session that trained it infers.
#include "test/unit/e2e_tools.h"
#include "test/unit/lenet_model.h"

namespace agc::test {
namespace {

constexpr int64_t kRows = 200, kBatch = 20, kSteps = 20;

// A digit is the place of a bright bar, among noise.
struct DataSet {
  std::vector<uint8_t> images = std::vector<uint8_t>(kRows * 784), labels = std::vector<uint8_t>(kRows);
  std::vector<int32_t> order = std::vector<int32_t>(kRows);
  DataSet() {
    std::mt19937 random(2);
    for (int64_t i = 0; i < kRows; ++i) {
      labels[i] = static_cast<uint8_t>(i % 10);
      order[i] = static_cast<int32_t>(i * 77 % kRows);
      for (int64_t p = 0; p < 784; ++p) {
        const bool bar = p / 28 / 5 == labels[i] / 2 && p % 28 / 14 == labels[i] % 2;
        images[i * 784 + p] = static_cast<uint8_t>(random() % 64 + (bar ? 190 : 0));
      }
    }
  }
};
const DataSet& Data() {
  static const DataSet* const kData = new DataSet;
  return *kData;
}

const Module& TheModule() {
  static const Module* const kModule = [] {
    auto* m = new Module("lenet5");
    TraceLenetTraining(*m, kRows, kBatch);
    EXPECT_TRUE(m->status().ok()) << m->status();
    return m;
  }();
  return *kModule;
}

const Bundle& TheBundle(BufferAbi abi) {  // compiled once
  static std::map<BufferAbi, Bundle> bundles;
  const auto it = bundles.find(abi);
  if (it != bundles.end()) return it->second;
  absl::StatusOr<Bundle> b = Compile(TheModule(), TheDevice().target(), {.abi = abi});
  EXPECT_TRUE(b.ok()) << b.status();
  return bundles.emplace(abi, *std::move(b)).first->second;
}

rt::Session Open(const Bundle& bundle) {
  rt::StatusOr<rt::Session> s = TheDevice().Load(bundle.bytes(), rt::Trust::kTrusted);
  EXPECT_TRUE(s.ok()) << s.status().message();
  EXPECT_TRUE(s->Bind("train_images", Data().images).ok());
  EXPECT_TRUE(s->Bind("train_labels", Data().labels).ok());
  EXPECT_TRUE(s->Bind("order", Data().order).ok());
  return *std::move(s);
}
// Two sessions of each bundle serve all tests: a driver without a cache compiles their kernels anew for each.
rt::Session& TheSession(BufferAbi abi, int number) {
  static std::map<std::pair<BufferAbi, int>, rt::Session> sessions;
  const auto it = sessions.find({abi, number});
  if (it != sessions.end()) return it->second;
  return sessions.emplace(std::pair(abi, number), Open(TheBundle(abi))).first->second;
}

std::vector<float> Train(rt::Session& s, int64_t steps) {
  rt::StatusOr<rt::Outputs> out = s.Run("train_step", steps, {{"lr", 0.05f}});
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? *out->Get<float>("loss") : std::vector<float>();
}

// Every state's bytes, by name.
std::map<std::string, std::vector<uint8_t>> Saved(rt::Session& s) {
  std::map<std::string, std::vector<uint8_t>> all;
  rt::StatusOr<std::vector<rt::Value>> values = s.Save();
  EXPECT_TRUE(values.ok()) << values.status().message();
  for (const rt::Value& v : *values) all[v.name] = v.bytes;
  return all;
}

class LenetTraining : public testing::TestWithParam<BufferAbi> {
 protected:
  // What a run of all steps gives, with the losses.
  struct Whole {
    std::vector<float> losses = {};
    std::map<std::string, std::vector<uint8_t>> states = {};
  };
  Whole RunAll(uint64_t seed = 1, int number = 0) {
    rt::Session& s = TheSession(GetParam(), number);
    EXPECT_TRUE(s.Init(seed).ok());
    Whole whole{Train(s, kSteps), {}};
    whole.states = Saved(s);
    return whole;
  }
};
INSTANTIATE_TEST_SUITE_P(Abi, LenetTraining, testing::Values(BufferAbi::kBindings, BufferAbi::kAddresses),
                         [](const auto& info) {
                           return info.param == BufferAbi::kBindings ? "bindings" : "addresses";
                         });

// One step works without a fallback and the loss falls.
TEST_P(LenetTraining, LossFalls) {
  rt::Session& s = TheSession(GetParam(), 0);
  ASSERT_TRUE(s.Init(1).ok());
  const std::vector<float> losses = Train(s, 120);
  ASSERT_EQ(losses.size(), 120u);
  EXPECT_GT(losses[0], 2.2);  // log 10, about
  EXPECT_LT(losses.back(), 0.3);
  const std::map<std::string, std::vector<uint8_t>> states = Saved(s);
  EXPECT_EQ(states.size(), 21u);  // ten weights, their velocities, the step counter; not run.index
  EXPECT_EQ(states.at("step")[0], 120);
}

TEST_P(LenetTraining, TwiceTheSameBits) {
  const Whole a = RunAll(1, 0), b = RunAll(1, 1), c = RunAll(1, 0);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.states, b.states);
  EXPECT_EQ(a.states, c.states);  // the same session after a new start
  EXPECT_NE(RunAll(/*seed=*/2).states, a.states);
}

TEST_P(LenetTraining, ManyStepsEqualSingleSteps) {
  const Whole whole = RunAll();
  rt::Session& s = TheSession(GetParam(), 0);
  ASSERT_TRUE(s.Init(1).ok());
  std::vector<float> losses;
  for (int64_t i = 0; i < kSteps; ++i) losses.push_back(Train(s, 1).at(0));
  EXPECT_EQ(losses, whole.losses);
  EXPECT_EQ(Saved(s), whole.states);
}

TEST_P(LenetTraining, ResumesFromACheckpointBitForBit) {
  const Whole whole = RunAll();
  rt::Session& first = TheSession(GetParam(), 0);
  ASSERT_TRUE(first.Init(1).ok());
  std::vector<float> losses = Train(first, 7);
  rt::StatusOr<std::vector<rt::Value>> checkpoint = first.Save();
  ASSERT_TRUE(checkpoint.ok());
  Train(first, 3);  // goes on: the checkpoint is a copy
  rt::Session& second = TheSession(GetParam(), 1);
  ASSERT_TRUE(second.Restore(*checkpoint).ok());
  for (float loss : Train(second, kSteps - 7)) losses.push_back(loss);
  EXPECT_EQ(losses, whole.losses);
  EXPECT_EQ(Saved(second), whole.states);
}

std::vector<uint8_t> Logits(rt::Session& s) {
  const rt::Arg images = rt::Arg::View("images", Data().images.data(), kBatch * 784);
  rt::StatusOr<rt::Outputs> out = s.Run("infer", 1, {images});
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? out->Find("logits")->bytes : std::vector<uint8_t>();
}

TEST_P(LenetTraining, BundleWithStatesInfersTheSame) {
  rt::Session& trained = TheSession(GetParam(), 0);
  ASSERT_TRUE(trained.Init(1).ok());
  Train(trained, kSteps);
  rt::StatusOr<std::vector<rt::Value>> states = trained.Save();
  ASSERT_TRUE(states.ok());
  absl::StatusOr<Bundle> with_states = WithStates(TheBundle(GetParam()), *states);
  ASSERT_TRUE(with_states.ok()) << with_states.status();
  rt::Session loaded = Open(*with_states);  // no Init
  EXPECT_EQ(Logits(loaded), Logits(trained));
  EXPECT_EQ(Train(loaded, 2), Train(trained, 2));
  EXPECT_EQ(Saved(loaded), Saved(trained));
}

// The text of a module and the bytes of its bundle are the same however often it is traced and compiled.
TEST(LenetBundle, CompilesToTheSameBytes) {
  Module again("lenet5");
  TraceLenetTraining(again, kRows, kBatch);
  EXPECT_EQ(again.ToText(), TheModule().ToText());
  absl::StatusOr<Bundle> b = Compile(again, TheDevice().target(), {.abi = BufferAbi::kBindings});
  ASSERT_TRUE(b.ok()) << b.status();
  EXPECT_EQ(b->bytes(), TheBundle(BufferAbi::kBindings).bytes());
}

}  // namespace
}  // namespace agc::test
