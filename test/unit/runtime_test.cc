// LABELS: vulkan
// Devices and recordings on whatever Vulkan device the machine offers, with hand-made bundles: both buffer ABIs, rings,
// checkpoints, and the validation layer, which must stay silent but for one planted hazard.
#include "test/unit/runtime_scene.h"

#include <gmock/gmock.h>

namespace agc::rt {
namespace {

using ::testing::ElementsAre;

void CheckTraining(Session& s) {
  const std::vector<float> x = Ramp(1), data = Ramp(0.5f);
  ASSERT_TRUE(s.Bind("data", data).ok());
  std::vector<float> lr;
  for (int i = 0; i < 10; ++i) lr.push_back(0.01f * static_cast<float>(i + 1));
  StatusOr<Outputs> out = s.Run("step", 10, {{"x", x}, {"lr", lr}});
  ASSERT_TRUE(out.ok()) << out.status().message();
  Model model;
  const std::vector<float> loss = *out->Get<float>("loss");
  EXPECT_THAT(out->Find("loss")->dims, ElementsAre(10));
  ASSERT_EQ(loss.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(loss[i], model.Step(x, data, lr[i]), 1e-3) << i;
  const std::vector<float> y = *out->Get<float>("y");
  ASSERT_EQ(y.size(), kN);
  StatusOr<Value> w = s.ReadState("w");
  ASSERT_TRUE(w.ok());
  for (uint32_t i = 0; i < kN; ++i) EXPECT_NEAR(y[i], model.h[i], 1e-3);
  for (uint32_t i = 0; i < kN; ++i) EXPECT_NEAR((*w->Get<float>())[i], model.w[i], 1e-3);
  out = s.Run("step", 1, {{"x", x}, {"lr", 0.5f}});  // the index starts at 0 again
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR((*out->Get<float>("loss"))[0], model.Step(x, data, 0.5), 1e-3);
  EXPECT_EQ(s.profile().recordings, 1u);
  EXPECT_EQ(s.profile().submits, 4u);  // rings of 4: 4 + 4 + 2 steps, and 1
  EXPECT_EQ(s.profile().dispatches, 33u);
}

TEST_P(RuntimeTest, RunsInRings) {
  StatusOr<Session> s = Load(Example2(GetParam()));
  ASSERT_TRUE(s.ok()) << s.status().message();
  EXPECT_EQ(s->abi(), GetParam());
  CheckTraining(*s);
}

// The paths of a discrete device: staging buffers, and arenas in several slabs.
TEST_P(RuntimeTest, RunsWithoutMappedMemory) {
  StatusOr<Device> device = Device::Open({.validation = true, .max_allocation_bytes = 64, .never_map = true});
  ASSERT_TRUE(device.ok());
  Bundle b = Example2(GetParam());
  b.has_state_values = true;
  b.state_values.assign(48, 0);
  StatusOr<Session> s = Load(b, Trust::kTrusted, &*device);
  ASSERT_TRUE(s.ok()) << s.status().message();
  CheckTraining(*s);
  EXPECT_EQ(device->validation_messages(), 0);
}

TEST_P(RuntimeTest, SaveAndRestoreContinueBitForBit) {
  StatusOr<Session> a = Load(Example2(GetParam())), b = Load(Example2(GetParam()));
  ASSERT_TRUE(a.ok() && b.ok());
  const Args args = {{"x", Ramp(1)}, {"lr", 0.01f}};
  ASSERT_TRUE(a->Bind("data", Ramp(2)).ok() && b->Bind("data", Ramp(2)).ok());
  ASSERT_TRUE(a->Init(3).ok());
  EXPECT_EQ(*a->ReadState("w")->Get<float>(), Ramp(3));
  ASSERT_TRUE(a->Run("step", 5, args).ok());
  StatusOr<std::vector<Value>> saved = a->Save();
  ASSERT_TRUE(saved.ok());
  ASSERT_EQ(saved->size(), 1u);  // the run index is hidden
  ASSERT_TRUE(a->Run("step", 6, args).ok());
  ASSERT_TRUE(b->Restore(*saved).ok());
  ASSERT_TRUE(b->Run("step", 6, args).ok());
  EXPECT_EQ(a->ReadState("w")->bytes, b->ReadState("w")->bytes);
}

TEST_P(RuntimeTest, EntriesWithoutDispatches) {
  StatusOr<Session> s = Load(Example2(GetParam()));
  ASSERT_TRUE(s.ok());
  StatusOr<Outputs> out = s->Run("copy", 3, {{"in", Ramp(7)}});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(*out->Get<float>("out"), Ramp(7));
  EXPECT_THAT(*out->Get<uint32_t>("fill"), ElementsAre(77, 77));
  EXPECT_EQ(out->Find("nothing"), nullptr);
  EXPECT_FALSE(out->Get<float>("nothing").ok());
}

TEST_P(RuntimeTest, StepTimes) {
  StatusOr<Session> s = Load(Example2(GetParam()));
  ASSERT_TRUE(s.ok());
  ASSERT_TRUE(s->Bind("data", Ramp(2)).ok());
  if (Status st = s->EnableStepTimes(true); !st.ok()) GTEST_SKIP() << st.message();
  ASSERT_TRUE(s->Run("step", 6, {{"x", Ramp(1)}, {"lr", 0.01f}}).ok());
  const Profile profile = s->profile();
  ASSERT_EQ(profile.steps.size(), 3u);
  EXPECT_EQ(profile.steps[1].label, "k1");
  EXPECT_EQ(profile.steps[1].runs, 6u);
  EXPECT_GT(profile.steps[1].nanoseconds, 0);
}

TEST_P(RuntimeTest, ThousandDispatches) {
  Bundle b = Example2(GetParam());
  Entry& step = b.variants[0].entries[0];
  for (int i = 0; i < 999; ++i) {
    step.plan.steps.push_back({});
    step.plan.steps.push_back(Dispatch(2, {{7, 0, 4, kRW}}));
  }
  step.ring = 1;
  StatusOr<Session> s = Load(b);
  ASSERT_TRUE(s.ok()) << s.status().message();
  ASSERT_TRUE(s->Bind("data", Ramp(2)).ok());
  ASSERT_TRUE(s->Run("step", 1, {{"x", Ramp(1)}, {"lr", 0.01f}}).ok());
}

INSTANTIATE_TEST_SUITE_P(Abi, RuntimeTest, testing::Values(BufferAbi::kBindings, BufferAbi::kAddresses),
                         [](const auto& info) {
                           return info.param == BufferAbi::kBindings ? "bindings" : "addresses";
                         });

// A dispatch writes w, which its parameter list calls read-only, so the plan checker sees no hazard with the copy that
// follows; the layer does, since it looks at the module. Through buffer addresses it sees nothing.
TEST(Validation, SeesAPlantedHazard) {
  for (BufferAbi abi : {BufferAbi::kBindings, BufferAbi::kAddresses}) {
    StatusOr<Device> device = Device::Open({.validation = true});
    ASSERT_TRUE(device.ok());
    Bundle b = Example2(abi);
    b.kernels[3].params[1] = kR;
    Entry& init = b.variants[0].entries[1];
    init.plan.arena_sizes[kHostArena] = 48;
    init.plan.buffers.push_back({"out", BufferKind::kOutput, kHostArena, 16, 32});
    init.plan.steps[0].args[1].access = kR;
    init.plan.steps.push_back({.kind = StepKind::kCopy, .args = {{1, 0, 32, kR}, {2, 0, 32, kW}}});
    StatusOr<Session> s = Load(b, Trust::kTrusted, &*device);
    ASSERT_TRUE(s.ok()) << s.status().message();
    ASSERT_TRUE(s->Init(1).ok());
    EXPECT_EQ(device->validation_messages() > 0, abi == BufferAbi::kBindings);
  }
}

}  // namespace
}  // namespace agc::rt
