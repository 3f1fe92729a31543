// The bundle file: what is written is read back, and nothing that is damaged, cut off or inconsistent is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "codegen/bundle_writer.h"
#include "runtime/bundle_reader.h"
#include "runtime/spirv_scan.h"

namespace agc::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Header, Shader capability, entry point main, LocalSize 8 1 1, one binding. Well-formed as a word stream only.
std::vector<uint32_t> Words(uint32_t binding = 1) {
  return {0x07230203,
          0x00010500,
          0,
          20,
          0,
          (2 << 16) | 17,
          1,
          (5 << 16) | 15,
          5,
          4,
          0x6e69616d,
          0,
          (6 << 16) | 16,
          4,
          17,
          8,
          1,
          1,
          (4 << 16) | 71,
          7,
          33,
          binding};
}

// OpVariable of a storage class, after whose type nobody looks.
void AddVariable(Bundle& b, uint32_t storage_class) {
  const uint32_t words[] = {(4 << 16) | 59, 2, 9, storage_class};
  b.kernels[0].spirv.insert(b.kernels[0].spirv.end(), std::begin(words), std::end(words));
}

Bundle Example() {
  Bundle b;
  b.module_name = "mlp";
  b.states = {{.name = "w", .dtype = DType::kF32, .dims = {4, 4}, .offset = 0, .trainable = true},
              {.name = "run.index", .dtype = DType::kU32, .dims = {}, .offset = 64, .hidden = true}};
  b.state_bytes = 80;
  b.kernels = {{.name = "k0_mul",
                .spirv = Words(),
                .params = {Access::kRead, Access::kWrite},
                .local_size = {8, 1, 1},
                .glsl = "void main() {}"}};
  b.const_data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  b.has_state_values = true;
  b.state_values.assign(80, 7);
  b.ir_text = "module @mlp {}";
  Entry e;
  e.name = "step";
  e.inputs = {{.name = "x", .dims = {2, 8}, .buffer = 0}};
  e.params = {{.name = "lr", .dims = {}, .buffer = 1}};
  e.residents = {{.name = "data", .dtype = DType::kU8, .dims = {100}, .buffer = 2}};
  e.outputs = {{.name = "y", .dims = {2, 8}, .buffer = 3, .each_step = true}};
  e.ring = 4;
  e.run_index_state = 1;
  e.bound_bytes = 12;
  e.plan.arena_sizes = {80, 64, 16, 512, 100};
  e.plan.buffers = {{"x", BufferKind::kInput, kHostArena, 0, 64},
                    {"lr", BufferKind::kParam, kHostArena, 64, 16},
                    {"data", BufferKind::kResident, kFirstResidentArena, 0, 100},
                    {"y", BufferKind::kOutput, kHostArena, 128, 256},
                    {"h", BufferKind::kTemp, kTempArena, 0, 64, 0, 2},
                    {"c", BufferKind::kConst, kConstArena, 0, 16}};
  e.plan.steps = {{.kind = StepKind::kDispatch,
                   .groups = {3, 1, 1},
                   .args = {{0, 0, 64, Access::kRead}, {4, 0, 64, Access::kWrite}},
                   .label = "k0_mul",
                   .origin = "mlp.cc:12"},
                  {.kind = StepKind::kBarrier},
                  {.kind = StepKind::kCopy, .args = {{4, 0, 64, Access::kRead}, {3, 0, 64, Access::kWrite}}},
                  {.kind = StepKind::kFill, .args = {{3, 64, 64, Access::kWrite}}, .fill_word = 9}};
  b.variants = {{.requires_ = {.target_text = "name = \"x\"\n", .storage_buffers = 2, .features = {"shader_int64"}},
                 .entries = {e}}};
  return b;
}

Status Read(const std::vector<uint8_t>& bytes) { return ReadBundle(bytes.data(), bytes.size()).status(); }

TEST(Bundle, RoundTrip) {
  const Bundle bundle = Example();
  const std::vector<uint8_t> bytes = WriteBundle(bundle);
  StatusOr<Bundle> read = ReadBundle(bytes.data(), bytes.size());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(WriteBundle(*read), bytes);  // nothing is lost that would be written
  EXPECT_EQ(read->variants[0].entries[0].plan.steps[0].origin, "mlp.cc:12");
  EXPECT_EQ(read->variants[0].entries[0].plan.steps[3].fill_word, 9u);
  EXPECT_EQ(read->variants[0].entries[0].plan.buffers[4].last_step, 2u);
  EXPECT_EQ(read->variants[0].entries[0].run_index_state, 1);
  EXPECT_EQ(read->variants[0].requires_.features, std::vector<std::string>({"shader_int64"}));
  EXPECT_THAT(read->states[0].dims, ElementsAre(4, 4));
  EXPECT_EQ(read->kernels[0].spirv, Words());
  EXPECT_EQ(read->state_values, bundle.state_values);
  EXPECT_EQ(read->const_data, bundle.const_data);
}

TEST(Bundle, SegmentsAreAligned) {
  std::vector<uint8_t> bytes = WriteBundle(Example());
  StatusOr<MappedBundle> mapped = MapBundle(bytes.data(), bytes.size());
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ((mapped->const_data - bytes.data()) % 64, 0);
  EXPECT_EQ((mapped->state_values - bytes.data()) % 64, 0);
  std::vector<uint8_t> shifted(bytes.size() + 1);  // and the bytes may start anywhere
  std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
  EXPECT_TRUE(ReadBundle(shifted.data() + 1, bytes.size()).ok());
}

TEST(Bundle, EqualModulesAreStoredOnce) {
  Bundle b = Example();
  const size_t one = WriteBundle(b).size();
  b.kernels.push_back(b.kernels[0]);
  const size_t two = WriteBundle(b).size();
  b.kernels[1].spirv = Words(0);
  EXPECT_GE(WriteBundle(b).size(), two + 64);
  EXPECT_LT(two, one + 400);
}

TEST(Bundle, RefusesEveryTruncation) {
  const std::vector<uint8_t> bytes = WriteBundle(Example());
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::vector<uint8_t> cut(bytes.begin(),
                                   bytes.begin() + n);  // its own allocation: the sanitizer sees overreads
    const Status status = Read(cut);
    ASSERT_EQ(status.code(), Code::kDataLoss) << n;
  }
}

TEST(Bundle, RefusesDamage) {
  const Bundle example = Example();
  const std::vector<uint8_t> bytes = WriteBundle(example);
  BundleHeader h;
  std::memcpy(&h, bytes.data(), sizeof(h));
  std::vector<bool> holds(bytes.size());  // something; the rest is padding
  uint64_t end = 0;
  for (uint64_t size : {64 + h.manifest_bytes, uint64_t{Words().size() * 4}, uint64_t{example.const_data.size()},
                        uint64_t{example.state_values.size()}}) {
    const uint64_t begin = (end + 63) / 64 * 64;
    end = begin + size;
    std::fill(holds.begin() + static_cast<int64_t>(begin), holds.begin() + static_cast<int64_t>(end), true);
  }
  std::mt19937 rng(3);
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bad = bytes;
    bool covered = false;
    for (uint32_t flips = 1 + rng() % 3; flips > 0; --flips) {
      const uint64_t at = rng() % bytes.size();
      bad[at] ^= static_cast<uint8_t>(1u << (rng() % 8));
      covered = covered || holds[at];
    }
    if (bad == bytes) continue;
    const Status status = Read(bad);
    ASSERT_EQ(status.code(), covered ? Code::kDataLoss : Code::kOk) << i << status.message();
  }
}

// With right checksums, so that what is read is judged by what it says.
TEST(Bundle, RandomManifestsDoNotCrash) {
  const std::vector<uint8_t> bytes = WriteBundle(Example());
  BundleHeader h;
  std::memcpy(&h, bytes.data(), sizeof(h));
  std::mt19937 rng(5);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> bad = bytes;
    for (uint32_t flips = 1 + rng() % 3; flips > 0; --flips) {
      const uint64_t at = 64 + rng() % h.manifest_bytes;
      bad[at] = rng() % 2 ? static_cast<uint8_t>(rng()) : bad[at] ^ static_cast<uint8_t>(1u << (rng() % 8));
    }
    h.manifest_checksum = Checksum(bad.data() + 64, h.manifest_bytes);
    std::memcpy(bad.data(), &h, sizeof(h));
    refused += !Read(bad).ok();
  }
  EXPECT_GT(refused, 5000);
}

struct Case {
  const char* message;
  std::function<void(Bundle&)> change;
};

void ExpectRefused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Bundle b = Example();
    c.change(b);
    const Status status = Read(WriteBundle(b));
    EXPECT_EQ(status.code(), Code::kDataLoss) << c.message;
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
}

TEST(Bundle, RefusesInconsistentParts) {
  const std::vector<Case> cases = {
      {"state w: bytes [32, +64) of 80", [](Bundle& b) { b.states[0].offset = 32; }},
      {"two states share byte 32", [](Bundle& b) { b.states[1].offset = 32; }},
      {"two states are named w", [](Bundle& b) { b.states[1].name = "w"; }},
      {"state w: impossible type", [](Bundle& b) { b.states[0].dims = {-1}; }},
      {"79 bytes of state values for states of 80", [](Bundle& b) { b.state_values.pop_back(); }},
      {"kernel k0_mul: SPIR-V: wrong magic number", [](Bundle& b) { b.kernels[0].spirv[0] = 1; }},
      {"SPIR-V: module of 4 words", [](Bundle& b) { b.kernels[0].spirv.resize(4); }},
      {"SPIR-V: id bound 0", [](Bundle& b) { b.kernels[0].spirv[3] = 0; }},
      {"instruction of 9 words at word 5",
       [](Bundle& b) { b.kernels[0].spirv = {0x07230203, 0x10500, 0, 9, 0, 9 << 16}; }},
      {"no compute entry point", [](Bundle& b) { b.kernels[0].spirv[10] = 0; }},
      {"its module binds more than 2 parameters", [](Bundle& b) { b.kernels[0].spirv = Words(2); }},
      {"workgroup size differs from its module's",
       [](Bundle& b) {
         b.kernels[0].local_size = {16, 1, 1};
       }},
      {"does not say its workgroup size in literals",  // LocalSizeId
       [](Bundle& b) {
         b.kernels[0].spirv[12] = (6 << 16) | 331;
         b.kernels[0].spirv[14] = 38;
       }},
      {"does not say its workgroup size in literals",  // the built-in WorkgroupSize
       [](Bundle& b) {
         b.kernels[0].spirv[20] = 11;
         b.kernels[0].spirv[21] = 25;
       }},
      {"resources that are no storage buffers", [](Bundle& b) { AddVariable(b, 2); }},
      {"resources that are no storage buffers", [](Bundle& b) { AddVariable(b, 12); }},  // of no struct
      {"reads push constants, and none are declared", [](Bundle& b) { AddVariable(b, 9); }},
      {"1025 arguments, at most 1024",
       [](Bundle& b) {
         FlatStep& step = b.variants[0].entries[0].plan.steps[0];
         step.args.resize(1025, step.args[0]);
       }},
      {"no variants", [](Bundle& b) { b.variants.clear(); }},
      {"resident data is u8[100] in one entry and u8[50] in another",
       [](Bundle& b) {
         b.variants[0].entries.push_back(b.variants[0].entries[0]);
         b.variants[0].entries[1].name = "other";
         b.variants[0].entries[1].residents[0].dims = {50};
       }},
      {"two entries are named step", [](Bundle& b) { b.variants[0].entries.push_back(b.variants[0].entries[0]); }},
  };
  ExpectRefused(cases);
}

TEST(Bundle, RefusesInconsistentEntries) {
  const auto entry = [](Bundle& b) -> Entry& { return b.variants[0].entries[0]; };
  const std::vector<Case> cases = {
      {"input x: no buffer 77", [&](Bundle& b) { entry(b).inputs[0].buffer = 77; }},
      {"input x: its buffer is of kind temp", [&](Bundle& b) { entry(b).inputs[0].buffer = 4; }},
      {"input x: 1 values of f32[2,9] in a buffer of 64",
       [&](Bundle& b) {
         entry(b).inputs[0].dims = {2, 9};
       }},
      {"input x: impossible type",
       [&](Bundle& b) {
         entry(b).inputs[0].dims = {1 << 30, 1 << 30};
       }},
      {"param lr: 5 values of f32[] in a buffer of 16", [&](Bundle& b) { entry(b).ring = 5; }},
      {"its ring has no slots", [&](Bundle& b) { entry(b).ring = 0; }},
      {"a ring of 4 slots without a run index", [&](Bundle& b) { entry(b).run_index_state = -1; }},
      {"no such run index state", [&](Bundle& b) { entry(b).run_index_state = 2; }},
      {"its run index is no hidden 32-bit integer", [&](Bundle& b) { entry(b).run_index_state = 0; }},
      {"wrong number of arenas", [&](Bundle& b) { entry(b).plan.arena_sizes.push_back(4); }},
      {"its constants are not in the file", [&](Bundle& b) { b.const_data.pop_back(); }},
      {"its state arena is larger", [&](Bundle& b) { entry(b).plan.arena_sizes[0] = 96; }},
      {"output y is never written", [&](Bundle& b) { entry(b).plan.steps.resize(2); }},
      {"entry step: step 2 (copy): reads h bytes [0, 64), which step 0 (k0_mul) writes",
       [&](Bundle& b) {
         entry(b).plan.steps[1] = entry(b).plan.steps[3];
         entry(b).plan.steps.pop_back();
       }},
      {"no kernel 1", [&](Bundle& b) { entry(b).plan.steps[0].kernel = 1; }},
      {"0 bytes of push constants for 2 addresses",
       [](Bundle& b) { b.variants[0].requires_.abi = BufferAbi::kAddresses; }},
  };
  ExpectRefused(cases);
}

TEST(Bundle, HeaderMessages) {
  std::vector<uint8_t> bytes = WriteBundle(Example());
  bytes[0] = 'x';
  EXPECT_THAT(Read(bytes).message(), HasSubstr("this is no bundle"));
  bytes[0] = 'a';
  bytes[4] = 9;
  EXPECT_THAT(Read(bytes).message(), HasSubstr("version 9, this runtime reads version 1"));
  EXPECT_THAT(Read({}).message(), HasSubstr("file of 0 bytes"));
}

// A string that many steps name is in the file once; copied for each, it would be 300 MB.
TEST(Bundle, RefusesManifestsThatStandForMore) {
  Bundle b = Example();
  const FlatStep barrier = {.kind = StepKind::kBarrier, .label = std::string(1 << 16, 'x')};
  std::vector<FlatStep>& steps = b.variants[0].entries[0].plan.steps;
  steps.insert(steps.end(), 5000, barrier);
  EXPECT_THAT(Read(WriteBundle(b)).message(), HasSubstr("stands for far more"));
}

TEST(SpirvScan, Facts) {
  StatusOr<SpirvFacts> facts = ScanSpirv(Words(3));
  ASSERT_TRUE(facts.ok());
  EXPECT_THAT(facts->bindings, ElementsAre(3));
  EXPECT_THAT(facts->local_size, ElementsAre(8, 1, 1));
  EXPECT_TRUE(facts->HasCapability(1));
  EXPECT_FALSE(facts->HasCapability(kCapabilityPhysicalStorageBuffer));
}

}  // namespace
}  // namespace agc::rt
