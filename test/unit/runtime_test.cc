// LABELS: vulkan
// Devices and sessions on whatever Vulkan device the machine offers, with hand-made bundles: both buffer ABIs, rings,
// residents, checkpoints, refusals, and the validation layer, which must stay silent but for one planted hazard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/bundle_writer.h"
#include "codegen/spirv.h"
#include "runtime/device.h"

namespace agc::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kN = 8;  // elements of every vector here

struct Param {
  const char* type;
  Access access;
};

// A kernel whose body sees its buffers as p0.d[i], p1.d[i], ... in either ABI.
Kernel MakeKernel(const std::string& name, BufferAbi abi, const std::vector<Param>& params, const std::string& body) {
  Kernel k = {.name = name, .local_size = {kN, 1, 1}};
  std::string glsl = "#version 450\n#extension GL_EXT_buffer_reference : enable\n";
  std::string pointers;
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string n = std::to_string(i);
    const bool bindings = abi == BufferAbi::kBindings;
    glsl += bindings ? "layout(std430, set = 0, binding = " + n + ")"
                     : std::string("layout(std430, buffer_reference, buffer_reference_align = 16)");
    if (params[i].access == Access::kRead) glsl += " readonly";  // else the layer takes every access for a write
    glsl += std::string(" buffer P") + n + " { " + params[i].type + " d[]; }" + (bindings ? " p" + n : "") + ";\n";
    pointers += "P" + n + " p" + n + "; ";
    k.params.push_back(params[i].access);
  }
  if (abi == BufferAbi::kAddresses) {
    glsl += "layout(push_constant) uniform A { " + pointers + "};\n";
    k.push_constant_bytes = static_cast<uint32_t>(8 * params.size());
  }
  glsl += "layout(local_size_x = 8) in;\nvoid main() { uint i = gl_GlobalInvocationID.x; " + body + " }\n";
  absl::StatusOr<std::vector<uint32_t>> words = CompileGlsl(glsl, name, {});
  EXPECT_TRUE(words.ok()) << words.status().message();
  if (words.ok()) k.spirv = *words;
  return k;
}

constexpr Access kR = Access::kRead, kW = Access::kWrite, kRW = Access::kReadWrite;

FlatStep Dispatch(uint32_t kernel, std::vector<FlatArg> args) {
  return {
      .kind = StepKind::kDispatch, .kernel = kernel, .args = std::move(args), .label = "k" + std::to_string(kernel)};
}

// step: h = x * data + w;  w += lr[index] * h;  loss[index] = sum h;  y = h;  index += 1
// init: w = seed.     copy: out = in, by a copy step alone.
constexpr uint32_t kRing = 4;
Bundle Example(BufferAbi abi) {
  Bundle b;
  b.module_name = "example";
  b.states = {{.name = "w", .dims = {kN}, .offset = 0},
              {.name = "run.index", .dtype = DType::kU32, .offset = 32, .hidden = true}};
  b.state_bytes = 48;
  b.kernels = {MakeKernel("k0_mul", abi, {{"float", kR}, {"float", kR}, {"float", kR}, {"float", kW}},
                          "p3.d[i] = p0.d[i] * p1.d[i] + p2.d[i];"),
               MakeKernel("k1_update", abi,
                          {{"float", kR}, {"float", kRW}, {"float", kR}, {"uint", kR}, {"float", kW}, {"float", kW}},
                          "p1.d[i] += p2.d[p3.d[0]] * p0.d[i]; p5.d[i] = p0.d[i];"
                          "if (i == 0) { float s = 0; for (uint k = 0; k < 8; ++k) s += p0.d[k]; p4.d[p3.d[0]] = s; }"),
               MakeKernel("k2_next", abi, {{"uint", kRW}}, "if (i == 0) p0.d[0] += 1;"),
               MakeKernel("k3_init", abi, {{"uint", kR}, {"float", kW}}, "p1.d[i] = float(p0.d[0]) + float(i);")};
  Entry step = {.name = "step", .ring = kRing, .run_index_state = 1};
  step.inputs = {{.name = "x", .dims = {kN}, .buffer = 0}};
  step.residents = {{.name = "data", .dims = {kN}, .buffer = 1}};
  step.params = {{.name = "lr", .buffer = 2}};
  step.outputs = {{.name = "loss", .buffer = 3, .each_step = true}, {.name = "y", .dims = {kN}, .buffer = 4}};
  step.plan.arena_sizes = {48, 32, 0, 96, 32};
  step.plan.buffers = {{"x", BufferKind::kInput, kHostArena, 0, 32},
                       {"data", BufferKind::kResident, kFirstResidentArena, 0, 32},
                       {"lr", BufferKind::kParam, kHostArena, 32, 4 * kRing},
                       {"loss", BufferKind::kOutput, kHostArena, 48, 4 * kRing},
                       {"y", BufferKind::kOutput, kHostArena, 64, 32},
                       {"h", BufferKind::kTemp, kTempArena, 0, 32, 0, 2},
                       {"w", BufferKind::kState, kStateArena, 0, 32},
                       {"index", BufferKind::kState, kStateArena, 32, 4}};
  step.plan.steps = {
      Dispatch(0, {{0, 0, 32, kR}, {1, 0, 32, kR}, {6, 0, 32, kR}, {5, 0, 32, kW}}),
      {},
      Dispatch(1, {{5, 0, 32, kR}, {6, 0, 32, kRW}, {2, 0, 16, kR}, {7, 0, 4, kR}, {3, 0, 16, kW}, {4, 0, 32, kW}}),
      {},
      Dispatch(2, {{7, 0, 4, kRW}})};
  Entry init = {.name = "init"};
  init.params = {{.name = "seed", .dtype = DType::kU32, .buffer = 0}};
  init.plan.arena_sizes = {48, 0, 0, 16};
  init.plan.buffers = {{"seed", BufferKind::kParam, kHostArena, 0, 4}, {"w", BufferKind::kState, kStateArena, 0, 32}};
  init.plan.steps = {Dispatch(3, {{0, 0, 4, kR}, {1, 0, 32, kW}})};
  Entry copy = {.name = "copy"};
  copy.inputs = {{.name = "in", .dims = {kN}, .buffer = 0}};
  copy.outputs = {{.name = "out", .dims = {kN}, .buffer = 1},
                  {.name = "fill", .dtype = DType::kU32, .dims = {2}, .buffer = 2}};
  copy.plan.arena_sizes = {0, 0, 0, 80};
  copy.plan.buffers = {{"in", BufferKind::kInput, kHostArena, 0, 32},
                       {"out", BufferKind::kOutput, kHostArena, 32, 32},
                       {"fill", BufferKind::kOutput, kHostArena, 64, 8}};
  copy.plan.steps = {{.kind = StepKind::kCopy, .args = {{0, 0, 32, kR}, {1, 0, 32, kW}}},
                     {.kind = StepKind::kFill, .args = {{2, 0, 8, kW}}, .fill_word = 77}};
  b.variants = {{.requires_ = {.abi = abi}, .entries = {step, init, copy}}};
  return b;
}

const Bundle& Example2(BufferAbi abi) {  // compiled once
  static const Bundle* const kBundles[2] = {new Bundle(Example(BufferAbi::kBindings)),
                                            new Bundle(Example(BufferAbi::kAddresses))};
  return *kBundles[static_cast<int>(abi)];
}

Device& TheDevice() {
  static Device* const kDevice = [] {
    StatusOr<Device> device = Device::Open({.validation = true});
    if (!device.ok()) {
      ADD_FAILURE() << device.status().ToString();
      std::abort();
    }
    printf("device: %s\n", device->description().c_str());
    return new Device(std::move(*device));
  }();
  return *kDevice;
}

StatusOr<Session> Load(const Bundle& bundle, Trust trust = Trust::kTrusted, const Device* device = nullptr) {
  return (device != nullptr ? *device : TheDevice()).Load(WriteBundle(bundle), trust);
}

std::vector<float> Ramp(float from) {
  std::vector<float> v(kN);
  for (uint32_t i = 0; i < kN; ++i) v[i] = from + static_cast<float>(i);
  return v;
}

// What the example computes, in double.
struct Model {
  std::vector<double> w = std::vector<double>(kN, 0), h = w;
  double Step(const std::vector<float>& x, const std::vector<float>& data, double lr) {
    double loss = 0;
    for (uint32_t i = 0; i < kN; ++i) h[i] = double{x[i]} * data[i] + w[i];
    for (uint32_t i = 0; i < kN; ++i) loss += h[i];
    for (uint32_t i = 0; i < kN; ++i) w[i] += lr * h[i];
    return loss;
  }
};

class RuntimeTest : public testing::TestWithParam<BufferAbi> {
 protected:
  void SetUp() override { before_ = TheDevice().validation_messages(); }
  void TearDown() override { EXPECT_EQ(TheDevice().validation_messages(), before_); }

 private:
  int before_ = 0;
};

void CheckTraining(Session& s) {
  const std::vector<float> x = Ramp(1), data = Ramp(0.5f);
  ASSERT_TRUE(s.Bind("data", data).ok());
  std::vector<float> lr;
  for (int i = 0; i < 10; ++i) lr.push_back(0.01f * static_cast<float>(i + 1));
  StatusOr<Outputs> out = s.Run("step", 10, {{"x", x}, {"lr", lr}});
  ASSERT_TRUE(out.ok()) << out.status().message();
  Model model;
  const std::vector<float> loss = (*out)["loss"].Get<float>();
  EXPECT_THAT((*out)["loss"].dims, ElementsAre(10));
  ASSERT_EQ(loss.size(), 10u);
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(loss[i], model.Step(x, data, lr[i]), 1e-3) << i;
  const std::vector<float> y = (*out)["y"].Get<float>();
  ASSERT_EQ(y.size(), kN);
  StatusOr<Value> w = s.ReadState("w");
  ASSERT_TRUE(w.ok());
  for (uint32_t i = 0; i < kN; ++i) EXPECT_NEAR(y[i], model.h[i], 1e-3);
  for (uint32_t i = 0; i < kN; ++i) EXPECT_NEAR(w->Get<float>()[i], model.w[i], 1e-3);
  out = s.Run("step", 1, {{"x", x}, {"lr", 0.5f}});  // the index starts at 0 again
  ASSERT_TRUE(out.ok());
  EXPECT_NEAR((*out)["loss"].Get<float>()[0], model.Step(x, data, 0.5), 1e-3);
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
  EXPECT_EQ(a->ReadState("w")->Get<float>(), Ramp(3));
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
  EXPECT_EQ((*out)["out"].Get<float>(), Ramp(7));
  EXPECT_THAT((*out)["fill"].Get<uint32_t>(), ElementsAre(77, 77));
  EXPECT_EQ(out->Find("nothing"), nullptr);
  EXPECT_TRUE((*out)["nothing"].bytes.empty());
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
    EXPECT_EQ((*out)["y"].Get<float>(), Ramp(from));
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

TEST_P(SessionTest, LoadsStateValues) {
  Bundle b = Example2(GetParam());
  b.has_state_values = true;
  b.state_values.assign(48, 0);
  const std::vector<float> w = Ramp(9);
  std::memcpy(b.state_values.data(), w.data(), 32);
  StatusOr<Session> s = Load(b);
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->ReadState("w")->Get<float>(), w);
}

TEST_P(SessionTest, Trust) {
  EXPECT_TRUE(Load(Example2(BufferAbi::kBindings), Trust::kUntrusted).ok());
  const Status status = Load(Example2(BufferAbi::kAddresses), Trust::kUntrusted).status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("variant 0: its ABI is addresses, which needs a trusted load"));
  Bundle b = Example2(BufferAbi::kAddresses);  // a module with pointers under the other ABI
  b.variants[0].requires_.abi = BufferAbi::kBindings;
  EXPECT_THAT(Load(b, Trust::kUntrusted).status().message(), HasSubstr("k0_mul uses raw pointers"));
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
  EXPECT_EQ((*out)["out"].Get<float>(), Ramp(7));
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
