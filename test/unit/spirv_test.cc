// GLSL to SPIR-V, what is read back from the module, and the disagreements that CheckReflection must find.
#include "codegen/spirv.h"

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "codegen/export.h"
#include "codegen/reflect.h"
#include "codegen/spirv_access.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace agc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr char kBindings[] = R"(#version 460
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer B0 { float b0[]; };
layout(set = 0, binding = 1, std430) readonly buffer B1 { float b1[]; };
layout(set = 0, binding = 2, std430) writeonly buffer B2 { float b2[]; };
layout(set = 0, binding = 3, std430) buffer B3 { uint b3[]; };
float twice(float v) { float r = v; r = r + v; return r; }
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < 100u) { b2[i] = twice(b0[i]) + b1[i]; atomicAdd(b3[0], 1u); }
}
)";

constexpr char kAddresses[] = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 8, local_size_y = 4) in;
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer R { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer W { float v[]; };
layout(push_constant, scalar) uniform P { R x; W y; } p;
void main() {
  R x = p.x;
  uint i = gl_GlobalInvocationID.x;
  p.y.v[i] = x.v[i] * 2.0;
}
)";

std::vector<uint32_t> Compile(const std::string& glsl, const SpirvOptions& options = {}) {
  absl::StatusOr<std::vector<uint32_t>> words = CompileGlsl(glsl, "k1_test", options);
  EXPECT_TRUE(words.ok()) << words.status().ToString();
  return words.ok() ? *words : std::vector<uint32_t>{};
}

rt::Kernel BindingsKernel() {
  rt::Kernel kernel;
  kernel.name = "k1_add";
  kernel.spirv = Compile(kBindings);
  kernel.params = {rt::Access::kRead, rt::Access::kRead, rt::Access::kWrite, rt::Access::kReadWrite};
  kernel.local_size = {64, 1, 1};
  return kernel;
}

rt::Kernel AddressesKernel() {
  rt::Kernel kernel;
  kernel.name = "k2_scale";
  kernel.spirv = Compile(kAddresses);
  kernel.params = {rt::Access::kRead, rt::Access::kWrite};
  kernel.push_constant_bytes = 16;
  kernel.local_size = {8, 4, 1};
  return kernel;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(CompileGlsl, EveryLevelIsValidAndTheSameEachTime) {
  for (int level : {0, 1, 2}) {
    for (bool debug : {false, true}) {
      const SpirvOptions options = {.optimize = level, .debug = debug};
      const std::vector<uint32_t> words = Compile(kBindings, options);
      EXPECT_EQ(words, Compile(kBindings, options)) << level;
      EXPECT_TRUE(ValidateSpirv(words, "k").ok());
    }
  }
}

TEST(CompileGlsl, OptimiserInlinesAndNamesStayOnlyForDebugging) {
  const std::string plain = DisassembleSpirv(Compile(kBindings, {.optimize = 0}));
  const std::string optimised = DisassembleSpirv(Compile(kBindings, {.optimize = 1}));
  EXPECT_THAT(plain, HasSubstr("OpFunctionCall"));
  EXPECT_THAT(optimised, Not(HasSubstr("OpFunctionCall")));
  EXPECT_THAT(optimised, Not(HasSubstr("OpName")));
  EXPECT_THAT(DisassembleSpirv(Compile(kBindings, {.debug = true})), HasSubstr("OpName %B0"));
}

// Float operations directly under a cast, a comparison, an index or a guard, in a condition, in a helper function and
// in an unrolled loop, at every level of the optimiser.
TEST(CompileGlsl, PreciseReachesEveryOperation) {
  constexpr char kText[] = R"(#version 450
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer B0 { float b0[]; };
layout(set = 0, binding = 1, std430) buffer B1 { float b1[]; };
layout(set = 0, binding = 2, std430) buffer B2 { uint b2[]; };
float helper(float a, float b, float c) { return a * b + c; }
void main() {
  uint i = gl_GlobalInvocationID.x;
  float a = b0[i], b = b0[i + 1u], c = b0[i + 2u];
  b2[i] = uint(a * b + c);
  b1[i] = a * c + b > 0.0 ? helper(a, b, c) : b0[uint(b * c - a)];
  if (a - b * b < c) b1[i] = mix(a, b, a * a + b > c);
  [[unroll]] for (uint k = 0u; k < 4u; ++k) b1[i] += b0[k] * a;
}
)";
  for (int level : {0, 1, 2}) {
    const std::string text = DisassembleSpirv(Compile(kText, {.optimize = level, .precise = true}));
    std::map<std::string, int> operations, decorated;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() == 3 && words[0] == "OpDecorate" && words[2] == "NoContraction")
        ++decorated[std::string(words[1])];
      if (words.size() > 2 && (words[2] == "OpFMul" || words[2] == "OpFAdd" || words[2] == "OpFSub"))
        ++operations[std::string(words[0])];
    }
    EXPECT_GE(operations.size(), 11u) << level;
    EXPECT_EQ(operations, decorated) << level << "\n" << text;
    EXPECT_THAT(DisassembleSpirv(Compile(kText, {.optimize = level})), Not(HasSubstr("NoContraction")));
  }
}

TEST(CompileGlsl, LargeModulesAreLeftAsTheyAre) {
  std::string body;
  for (int i = 0; i < 600; ++i) absl::StrAppend(&body, "  b2[i + ", i, "u] = twice(b0[i]) + b1[", i, "];\n");
  const std::string text = absl::StrReplaceAll(kBindings, {{"  if (i < 100u)", absl::StrCat(body, "  if (i < 100u)")}});
  EXPECT_GT(Compile(text).size(), kMaxOptimizedWords);
  EXPECT_THAT(DisassembleSpirv(Compile(text)), HasSubstr("OpFunctionCall"));
}

TEST(CompileGlsl, ErrorNamesKernelLineAndLog) {
  const std::string text = absl::StrReplaceAll(kBindings, {{"b1[i];", "nowhere[i];"}});
  const absl::Status status = CompileGlsl(text, "k7_softmax", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("k7_softmax"));
  EXPECT_THAT(Message(status), HasSubstr("'nowhere' : undeclared identifier"));
  EXPECT_THAT(Message(status), HasSubstr("line 10:   if (i < 100u) { b2[i] = twice(b0[i]) + nowhere[i];"));
}

TEST(CompileGlsl, OddTextsAreErrorsNotCrashes) {
  for (const char* text :
       {"", "\n", "void main() {", "#version 460\nvoid other() {}\n", "#version 9999\nvoid main(){}\n",
        "#version 460\n#include \"x\"\nvoid main() {}\n", "\xff\xfe\x01"}) {
    EXPECT_FALSE(CompileGlsl(text, "k", {}).ok()) << text;
  }
}

TEST(CompileGlsl, ValidatorRefusesATruncatedModule) {
  std::vector<uint32_t> words = Compile(kBindings);
  words.resize(words.size() - 1);
  EXPECT_THAT(Message(ValidateSpirv(words, "k3")), HasSubstr("kernel k3: the SPIR-V is not valid"));
  EXPECT_THAT(DisassembleSpirv({}), HasSubstr("; not a SPIR-V module"));
}

TEST(CompileGlsl, ThreadsAgree) {
  const std::vector<uint32_t> expected = Compile(kAddresses);
  std::vector<std::vector<uint32_t>> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results) threads.emplace_back([&result] { result = Compile(kAddresses); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

TEST(ReflectSpirv, Bindings) {
  absl::StatusOr<Reflection> r = ReflectSpirv(Compile(kBindings));
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  ASSERT_EQ(r->bindings.size(), 4u);
  EXPECT_TRUE(r->bindings[0].readonly && r->bindings[1].readonly && !r->bindings[2].readonly);
  EXPECT_TRUE(r->bindings[2].writeonly && !r->bindings[3].writeonly && !r->bindings[3].readonly);
  EXPECT_THAT(r->local_size, ElementsAre(64, 1, 1));
  EXPECT_EQ(r->push_constant_bytes, 0u);
}

TEST(ReflectSpirv, PushConstants) {
  absl::StatusOr<Reflection> r = ReflectSpirv(Compile(kAddresses));
  ASSERT_TRUE(r.ok()) << r.status().ToString();
  EXPECT_EQ(r->push_constant_bytes, 16u);
  EXPECT_THAT(r->push_constant_offsets, ElementsAre(0, 8));
  EXPECT_THAT(r->local_size, ElementsAre(8, 4, 1));
}

TEST(ReflectSpirv, NotAModule) {
  EXPECT_FALSE(ReflectSpirv({}).ok());
  EXPECT_FALSE(ReflectSpirv({1, 2, 3, 4, 5, 6}).ok());
}

TEST(ScanAccess, FollowsInstructions) {
  const auto read = static_cast<uint8_t>(rt::Access::kRead), write = static_cast<uint8_t>(rt::Access::kWrite);
  for (int level : {0, 1, 2}) {
    const ModuleAccess b = ScanAccess(Compile(kBindings, {.optimize = level}));
    EXPECT_THAT(b.bindings, ElementsAre(Pair(0, read), Pair(1, read), Pair(2, write), Pair(3, read | write))) << level;
    EXPECT_TRUE(b.complete);
    const ModuleAccess a = ScanAccess(Compile(kAddresses, {.optimize = level}));
    EXPECT_THAT(a.addresses, ElementsAre(Pair(0, read), Pair(8, write))) << level;
    EXPECT_TRUE(a.complete);
  }
  EXPECT_FALSE(ScanAccess({}).complete);
}

TEST(CheckReflection, RightRecordsPass) {
  bool parsed = false;
  EXPECT_EQ(Message(CheckReflection(BindingsKernel(), rt::BufferAbi::kBindings, &parsed)), "");
  EXPECT_TRUE(parsed);
  EXPECT_EQ(Message(CheckReflection(AddressesKernel(), rt::BufferAbi::kAddresses)), "");
}

TEST(CheckReflection, AnUnusedParameterKeepsItsBinding) {
  rt::Kernel kernel = BindingsKernel();
  kernel.spirv = Compile(absl::StrReplaceAll(kBindings, {{" + b1[i]", ""}}));
  EXPECT_EQ(Message(CheckReflection(kernel, rt::BufferAbi::kBindings)), "");
}

TEST(CheckReflection, FindsWrongBindings) {
  const auto message = [](auto change) {
    rt::Kernel kernel = BindingsKernel();
    change(kernel);
    return Message(CheckReflection(kernel, rt::BufferAbi::kBindings));
  };
  EXPECT_EQ(message([](rt::Kernel& k) { k.params.pop_back(); }),
            "kernel k1_add: the number of storage buffers is 4 in the module and 3 in the record");
  EXPECT_EQ(message([](rt::Kernel& k) {
              k.local_size = {32, 2, 1};
            }),
            "kernel k1_add: the workgroup size is 64x1x1 in the module and 32x2x1 in the record");
  EXPECT_EQ(message([](rt::Kernel& k) { k.params[1] = rt::Access::kReadWrite; }),
            "kernel k1_add: parameter 1 is readonly in the module and written in the record");
  EXPECT_EQ(message([](rt::Kernel& k) { k.params[2] = rt::Access::kReadWrite; }),
            "kernel k1_add: parameter 2 is writeonly in the module and read in the record");
  EXPECT_EQ(message([](rt::Kernel& k) { k.params[3] = rt::Access::kRead; }),
            "kernel k1_add: parameter 3 is read and written in the module and read in the record");
  EXPECT_EQ(message([](rt::Kernel& k) { k.push_constant_bytes = 4; }),
            "kernel k1_add: the size of the push constants is 0 bytes in the module and 4 bytes in the record");
  EXPECT_EQ(
      message([](rt::Kernel& k) {
        k.spirv = Compile(absl::StrReplaceAll(kBindings, {{"binding = 3", "binding = 4"}}));
      }),
      "kernel k1_add: the place of parameter 3 is set 0 binding 4 in the module and set 0 binding 3 in the record");
}

TEST(CheckReflection, FindsWrongAddresses) {
  rt::Kernel kernel = AddressesKernel();
  kernel.params[1] = rt::Access::kRead;
  EXPECT_EQ(Message(CheckReflection(kernel, rt::BufferAbi::kAddresses)),
            "kernel k2_scale: parameter 1 is written in the module and read in the record");
  kernel.params = {rt::Access::kReadWrite, rt::Access::kWrite};
  EXPECT_EQ(Message(CheckReflection(kernel, rt::BufferAbi::kAddresses)),
            "kernel k2_scale: parameter 0 is read in the module and written in the record");
  kernel.params = {rt::Access::kRead, rt::Access::kWrite, rt::Access::kRead};
  EXPECT_EQ(Message(CheckReflection(kernel, rt::BufferAbi::kAddresses)),
            "kernel k2_scale: the list of address offsets is [0, 8] in the module and [0, 8, 16] in the record");
  EXPECT_THAT(Message(CheckReflection(BindingsKernel(), rt::BufferAbi::kAddresses)),
              HasSubstr("the number of storage buffers is 4 in the module and 0"));
}

TEST(CheckReflection, SaysWhereTheLibraryCannotParse) {
  rt::Kernel kernel = BindingsKernel();
  kernel.spirv = {1, 2, 3, 4, 5};
  bool parsed = true;
  EXPECT_TRUE(CheckReflection(kernel, rt::BufferAbi::kBindings, &parsed).ok());
  EXPECT_FALSE(parsed);
}

TEST(SpirvToGlsl, RoundTrip) {
  absl::StatusOr<std::string> text = SpirvToGlsl(Compile(kBindings));
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_THAT(*text, HasSubstr("layout(local_size_x = 64"));
  rt::Kernel kernel = BindingsKernel();
  kernel.spirv = Compile(*text);
  EXPECT_EQ(Message(CheckReflection(kernel, rt::BufferAbi::kBindings)), "");
  EXPECT_FALSE(SpirvToGlsl({1, 2, 3}).ok());
}

}  // namespace
}  // namespace agc
