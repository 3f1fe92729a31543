// A hand-made bundle in both buffer ABIs, the device with the validation layer, and the fixture that counts its
// messages.
//   StatusOr<Session> s = Load(Example2(BufferAbi::kBindings));
#pragma once
#include <string>
#include <vector>

#include "codegen/bundle_writer.h"
#include "codegen/spirv.h"
#include "gtest/gtest.h"
#include "runtime/device.h"

namespace agc::rt {

constexpr uint32_t kN = 8;  // elements of every vector here

struct Param {
  const char* type;
  Access access;
};

// A kernel whose body sees its buffers as p0.d[i], p1.d[i], ... in either ABI.
inline Kernel MakeKernel(const std::string& name, BufferAbi abi, const std::vector<Param>& params,
                         const std::string& body) {
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

inline FlatStep Dispatch(uint32_t kernel, std::vector<FlatArg> args) {
  return {
      .kind = StepKind::kDispatch, .kernel = kernel, .args = std::move(args), .label = "k" + std::to_string(kernel)};
}

// step: h = x * data + w;  w += lr[index] * h;  loss[index] = sum h;  y = h;  index += 1
// init: w = seed.     copy: out = in, by a copy step alone.
constexpr uint32_t kRing = 4;
inline Bundle Example(BufferAbi abi) {
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

inline const Bundle& Example2(BufferAbi abi) {  // compiled once
  static const Bundle* const kBundles[2] = {new Bundle(Example(BufferAbi::kBindings)),
                                            new Bundle(Example(BufferAbi::kAddresses))};
  return *kBundles[static_cast<int>(abi)];
}

inline Device& TheDevice() {
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

inline StatusOr<Session> Load(const Bundle& bundle, Trust trust = Trust::kTrusted, const Device* device = nullptr) {
  return (device != nullptr ? *device : TheDevice()).Load(WriteBundle(bundle), trust);
}

inline std::vector<float> Ramp(float from) {
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

}  // namespace agc::rt
