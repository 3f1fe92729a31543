// LABELS: vulkan
// Sessions on whatever Vulkan device the machine offers, with a hand-made bundle: residents, results, refusals,
// variants and memory.
#include "test/unit/runtime_scene.h"

#include <gmock/gmock.h>

#include <cmath>

namespace agc::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public RuntimeTest {};
INSTANTIATE_TEST_SUITE_P(Abi, SessionTest, testing::Values(BufferAbi::kBindings),
                         [](const auto&) { return std::string("bindings"); });

TEST_P(SessionTest, BindMarksEntriesOnce) {
  StatusOr<Session> s = Load(Example2(GetParam()));
  ASSERT_TRUE(s.ok());
  const Args args = {{"x", std::vector<float>(kN, 1)}, {"lr", 0.0f}};
  StatusOr<Outputs> out = s->Run("step", 1, args);
  EXPECT_EQ(out.status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(out.status().message(), "entry step: resident data of f32[8] is not bound");
  for (float from : {1.0f, 5.0f}) {
    ASSERT_TRUE(s->Bind("data", Ramp(from)).ok());
    out = s->Run("step", 1, args);
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(*out->Get<float>("y"), Ramp(from));
  }
  EXPECT_EQ(s->profile().recordings, 1u);  // the second value went to the same memory
}

TEST_P(SessionTest, RefusesWrongArguments) {
  StatusOr<Session> s = Load(Example2(GetParam()));
  ASSERT_TRUE(s.ok());
  ASSERT_TRUE(s->Bind("data", Ramp(1)).ok());
  const std::vector<float> x = Ramp(1);
  const auto error = [&](const char* entry, int64_t n, const Args& args) {
    const Status status = s->Run(entry, n, args).status();
    EXPECT_TRUE(status.code() == Code::kInvalidArgument || status.code() == Code::kNotFound) << status.ToString();
    return status.message();
  };
  EXPECT_EQ(error("train", 1, {}), "no entry train; the bundle has step, init, copy");
  EXPECT_EQ(error("step", 0, {{"x", x}, {"lr", 1.0f}}), "entry step: 0 steps, at least 1 needed");
  EXPECT_EQ(error("copy", int64_t{1} << 62, {}),
            "entry copy: 4611686018427387904 steps, at most 2147483647 in one run");
  EXPECT_EQ(error("step", 1, {{"lr", 1.0f}}), "entry step: input x of f32[8] is missing");
  EXPECT_EQ(error("step", 1, {{"x", x}}), "entry step: param lr of f32[] is missing");
  EXPECT_EQ(error("step", 1, {{"x", x}, {"lr", 1.0}}), "entry step: param lr of f32[] was given as f64");
  EXPECT_EQ(error("step", 1, {{"x", std::vector<float>(7)}, {"lr", 1.0f}}),
            "entry step: input x of f32[8] takes 32 bytes, 28 were given");
  EXPECT_EQ(error("step", 3, {{"x", x}, {"lr", std::vector<float>(2)}}),
            "entry step: param lr of f32[] takes 4 or 12 bytes, 8 were given");
  EXPECT_EQ(error("step", 1, {{"x", x}, {"lr", 1.0f}, {"lr", 1.0f}}), "entry step: param lr of f32[] is given twice");
  EXPECT_EQ(error("step", 1, {{"x", x}, {"lr", 1.0f}, {"z", 1.0f}}),
            "entry step has no input or param z; it has x, lr");
  EXPECT_THAT(error("step", 1, {{"x", x}, {"lr", 1.0f}, {"data", x}}), HasSubstr("it is a resident: bind it"));
  EXPECT_EQ(s->Bind("dat", x).message(), "no entry has a resident dat");
  EXPECT_EQ(s->Bind("data", x.data(), 31).message(), "resident data of f32[8] takes 32 bytes, 31 were given");
  EXPECT_EQ(s->ReadState("run.index").status().message(), "no state run.index");
  EXPECT_EQ(s->WriteState("w", x.data(), 4).message(), "state w of f32[8] takes 32 bytes, 4 were given");
  EXPECT_EQ(s->Restore({}).message(), "state w is given 0 times, not once");
  EXPECT_EQ(
      s->Restore({{.name = "w", .dtype = DType::kI32, .dims = {kN}, .bytes = std::vector<uint8_t>(32)}}).message(),
      "state w of f32[8] was given as i32[8] in 32 bytes");
  ASSERT_TRUE(s->Run("step", 1, {Arg::View("x", x.data(), 32), {"lr", 1.0f}}).ok());
}

TEST_P(SessionTest, ResultsComeByNameAndDtype) {
  StatusOr<Session> s = Load(Example2(GetParam()));
  ASSERT_TRUE(s.ok());
  StatusOr<Outputs> out = s->Run("copy", 1, {{"in", Ramp(7)}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(*out->Get<float>("out"), Ramp(7));
  EXPECT_EQ(out->Get<float>("ou").status().message(), "no output ou; the entry has out, fill");
  EXPECT_EQ(out->Get<int32_t>("out").status().message(), "out of f32[8] was asked for as i32");
  EXPECT_EQ(out->Find("ou"), nullptr);
  EXPECT_EQ(s->Bind("data", std::vector<int32_t>(kN)).message(), "resident data of f32[8] was given as i32");
  EXPECT_EQ(s->WriteState("w", std::vector<int32_t>(kN)).message(), "state w of f32[8] was given as i32");
  EXPECT_TRUE(s->WriteState("w", Ramp(2)).ok());
  EXPECT_EQ(*s->ReadState("w")->Get<float>(), Ramp(2));
}

// 1, -2, the smallest subnormal, the largest number, infinity.
TEST(Value, HalvesAreReadAsFloats) {
  const Value f16 = {
      .name = "x", .dtype = DType::kF16, .dims = {6}, .bytes = {0, 0x3c, 0, 0xc0, 1, 0, 0xff, 0x7b, 0, 0x7c, 0, 0x80}};
  EXPECT_THAT(*f16.Get<float>(), ElementsAre(1, -2, std::ldexp(1.0f, -24), 65504, INFINITY, 0));
  EXPECT_TRUE(std::signbit((*f16.Get<float>())[5]));
  const Value bf16 = {.name = "x", .dtype = DType::kBF16, .dims = {2}, .bytes = {0x80, 0x3f, 0x49, 0xc0}};
  EXPECT_THAT(*bf16.Get<float>(), ElementsAre(1, -3.140625));
  EXPECT_FALSE(bf16.Get<double>().ok());
  const Value flags = {.name = "b", .dtype = DType::kBool, .dims = {2}, .bytes = {1, 0}};
  EXPECT_THAT(*flags.Get<uint8_t>(), ElementsAre(1, 0));
}

TEST_P(SessionTest, LoadsStateValues) {
  Bundle b = Example2(GetParam());
  b.has_state_values = true;
  b.state_values.assign(48, 0);
  const std::vector<float> w = Ramp(9);
  std::memcpy(b.state_values.data(), w.data(), 32);
  StatusOr<Session> s = Load(b);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(*s->ReadState("w")->Get<float>(), w);
}

TEST_P(SessionTest, Trust) {
  EXPECT_TRUE(Load(Example2(BufferAbi::kBindings), Trust::kUntrusted).ok());
  const Status status = Load(Example2(BufferAbi::kAddresses), Trust::kUntrusted).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("variant 0: its ABI is addresses, which needs a trusted load"));
  Bundle b = Example2(BufferAbi::kAddresses);  // a module with pointers under the other ABI
  b.variants[0].requires_.abi = BufferAbi::kBindings;
  EXPECT_THAT(Load(b, Trust::kUntrusted).status().message(), HasSubstr("k0_mul: 32 bytes of push constants for 0"));
  for (Kernel& k : b.kernels) k.push_constant_bytes = 0;
  EXPECT_THAT(Load(b, Trust::kUntrusted).status().message(),
              HasSubstr("its module reads push constants, and none are declared"));
}

TEST_P(SessionTest, TakesTheFirstVariantThatRuns) {
  Bundle b = Example2(BufferAbi::kBindings);
  Variant bad = b.variants[0];
  bad.requires_.features = {"cooperative_matrix"};
  b.variants.insert(b.variants.begin(), bad);
  bad.requires_ = {.shared_bytes = 1u << 30};
  b.variants.insert(b.variants.begin(), bad);
  EXPECT_TRUE(Load(b).ok());
  b.variants.pop_back();
  const Status status = Load(b).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("no variant of bundle example runs on " + TheDevice().name()));
  EXPECT_THAT(status.message(), HasSubstr("variant 0: it needs 1073741824 bytes of shared memory, the device has"));
  EXPECT_THAT(status.message(), HasSubstr("variant 1: it needs the feature cooperative_matrix"));
  Bundle c = Example2(BufferAbi::kBindings);
  c.kernels[0].local_size = {kN, 1, 1};
  c.variants[0].entries[0].plan.steps[0].groups = {1, 1u << 31, 1};
  EXPECT_THAT(Load(c).status().message(), HasSubstr("entry step: k0: 2147483648 workgroups, the device allows"));
  StatusOr<Device> device = Device::Open({.abi = "addresses"});
  ASSERT_TRUE(device.ok());
  EXPECT_THAT(Load(Example2(BufferAbi::kBindings), Trust::kTrusted, &*device).status().message(),
              HasSubstr("its ABI is bindings, addresses was asked for"));
}

TEST_P(SessionTest, MemoryErrorIsClean) {
  StatusOr<Session> first = Load(Example2(GetParam()));
  ASSERT_TRUE(first.ok());
  Bundle b = Example2(GetParam());
  b.variants[0].entries[0].plan.arena_sizes[kTempArena] = uint64_t{1} << 46;
  b.variants[0].entries[0].plan.buffers[5].size = uint64_t{1} << 46;
  const Status status = Load(b).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("temporaries arena of 70368744177664 bytes"));
  StatusOr<Outputs> out = first->Run("copy", 1, {{"in", Ramp(7)}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(*out->Get<float>("out"), Ramp(7));
}

TEST_P(SessionTest, OutlivesItsDeviceAndMoves) {
  StatusOr<Device> device = Device::Open({.validation = true});
  ASSERT_TRUE(device.ok());
  StatusOr<Session> loaded = Load(Example2(GetParam()), Trust::kUntrusted, &*device);
  ASSERT_TRUE(loaded.ok());
  Session s = std::move(*loaded);
  device = Status(Code::kNotFound, "gone");
  EXPECT_TRUE(s.Run("copy", 1, {{"in", Ramp(7)}}).ok());
}

TEST_P(SessionTest, RefusesDamagedBytes) {
  std::vector<uint8_t> bytes = WriteBundle(Example2(GetParam()));
  bytes[100] ^= 1;
  EXPECT_EQ(TheDevice().Load(bytes).status().code(), Code::kDataLoss);
  EXPECT_EQ(TheDevice().Load({}).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace agc::rt
