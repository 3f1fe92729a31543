// LABELS: vulkan
// Reductions give the same bits at subgroups of 4, 8 and 16 lanes: the program starts itself once per width (lavapipe
// takes it from LP_NATIVE_VECTOR_WIDTH), each process compiles for its own device and writes what its kernels gave. At
// 8 and 16 lanes rows are combined through shuffles, at 4 through shared memory.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "test/unit/e2e_tools.h"
#include "test/unit/pinned.h"

namespace agc::test {
namespace {

// Rows longer than any workgroup, not a power of two, and shorter than one; ties across threads; a NaN.
constexpr char kReductions[] = R"(
module @m {
  graph @softmax(input %x: f32[5,1000]) -> (%y: f32[5,1000]) {
    %0: f32[5,1000] = softmax %x {axis = 1}
    output %y = %0
  }
  graph @sum(input %x: f32[3,4097]) -> (%y: f32[3], %z: f32[3]) {
    %0: f32[3] = reduce_sum %x {axes = [1]}
    %1: f32[3] = logsumexp %x {axis = 1}
    output %y = %0
    output %z = %1
  }
  graph @whole(input %x: f32[7,77]) -> (%y: f32[], %z: f32[]) {
    %0: f32[] = reduce_mean %x
    %1: f32[] = reduce_min %x
    output %y = %0
    output %z = %1
  }
  graph @norm(input %x: f32[4,1000], input %a: f32[1000], input %b: f32[1000]) -> (%y: f32[4,1000]) {
    %0: f32[4,1000] = layer_norm %x, %a, %b
    output %y = %0
  }
  graph @best(input %ties: f32[6,1000], input %n: i32[5,129]) -> (%y: i32[6], %z: i32[6], %u: i32[5]) {
    %0: i32[6] = argmax %ties {axis = 1}
    %1: i32[6] = argmin %ties {axis = 1}
    %2: i32[5] = argmin %n {axis = 1}
    output %y = %0
    output %z = %1
    output %u = %2
  }
  graph @nan(input %nans: f32[6,129]) -> (%y: f32[6], %z: f32[6]) {
    %0: f32[6] = reduce_max %nans {axes = [1]}
    %1: f32[6] = reduce_min %nans {axes = [1]}
    output %y = %0
    output %z = %1
  }
  graph @short(input %x: f32[40,3]) -> (%y: f32[40,3], %z: f32[40]) {
    %0: f32[40,3] = log_softmax %x {axis = 1}
    %1: f32[40] = reduce_prod %x {axes = [1]}
    output %y = %0
    output %z = %1
  }
}
)";

EvalInputs InputsFor(const Program& p, const Graph& graph) {
  EvalInputs in = RandomInputs(p, graph, -4, 4);
  const auto tied = in.params.find("ties");
  for (int64_t i = 0; tied != in.params.end() && i < tied->second.type.elements(); ++i) {
    tied->second.set(i, Scalar::Float(DType::kF32, std::floor(tied->second.at(i).f() / 2)));  // -2, -1, 0 or 1
  }
  const auto nans = in.params.find("nans");
  if (nans == in.params.end()) return in;
  constexpr int64_t kAt[] = {0, 1, 63, 64, 128};  // the last row has none
  for (int64_t row = 0; row < 5; ++row) nans->second.set(row * 129 + kAt[row], Scalar::Float(DType::kF32, NAN));
  return in;
}

// "graph output threads: bytes" lines, and one line saying how rows are combined.
std::string RunThreads(int64_t threads) {
  const Program tensors = Parsed(kReductions);
  Program nests = Clone(tensors);
  const int pinned = Pin(nests, TheTarget(), absl::StrCat("rows {local = ", threads, ", threads = ", threads, "}"));
  EXPECT_GE(pinned, static_cast<int>(tensors.graphs.size()));
  const absl::StatusOr<rt::Bundle> bundle = CompileProgram(Clone(nests), TheTarget(), {});
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  if (!bundle.ok()) return "";
  absl::StatusOr<rt::Session> s = LoadOnDevice(*bundle);
  EXPECT_TRUE(s.ok()) << s.status();
  std::string text;
  size_t shuffles = 0;
  for (const rt::Kernel& k : bundle->kernels) shuffles += absl::StrContains(k.glsl, "subgroupShuffleXor");
  absl::StrAppend(&text, "shuffles ", threads, ": ", shuffles > 0 ? "yes" : "no", "\n");
  for (const Graph& graph : tensors.graphs) {
    const EvalInputs in = InputsFor(tensors, graph);
    const EvalResult got = Checked(RunSession(*s, tensors, graph, in));
    EXPECT_EQ(Difference(got, Evaluated(tensors, graph.name, in), 2e-5), "") << graph.name << ", " << threads;
    for (const auto& [name, t] : got.outputs) {
      absl::StrAppend(&text, graph.name, " ", name, " ", threads, ":");
      for (uint8_t byte : t.bytes) absl::StrAppend(&text, " ", absl::Hex(byte));
      absl::StrAppend(&text, "\n");
    }
  }
  return text;
}

// What a process of one width does; the test below starts it.
TEST(Widths, DISABLED_OneWidth) {
  const char* file = std::getenv("AGC_WIDTHS_FILE");
  ASSERT_NE(file, nullptr);
  std::string text = absl::StrCat("subgroup ", TheTarget().subgroup_size, "\n");
  for (int64_t threads : {8, 64, 256}) text += RunThreads(threads);
  std::ofstream(file) << text;
}

std::vector<std::string> LinesAtWidth(int bits) {
  const std::string file = absl::StrCat(testing::TempDir(), "agc_widths_", getpid(), "_", bits);
  const std::string command =
      absl::StrCat("LP_NATIVE_VECTOR_WIDTH=", bits, " AGC_WIDTHS_FILE=", file, " /proc/", getpid(),
                   "/exe --gtest_filter=Widths.DISABLED_OneWidth"
                   " --gtest_also_run_disabled_tests --gtest_output= > ",
                   file, ".log 2>&1");
  const int status = std::system(command.c_str());
  std::ifstream log(file + ".log"), in(file);
  EXPECT_EQ(status, 0) << std::string((std::istreambuf_iterator<char>(log)), {});
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::remove(file.c_str());
  std::remove((file + ".log").c_str());
  return absl::StrSplit(text, '\n');
}

TEST(Widths, ReductionsGiveTheSameBits) {
  const std::vector<std::string> four = LinesAtWidth(128), eight = LinesAtWidth(256), sixteen = LinesAtWidth(512);
  ASSERT_EQ(four.size(), eight.size());
  ASSERT_EQ(four.size(), sixteen.size());
  ASSERT_GT(four.size(), 30u);
  if (!absl::StrContains(TheDevice().name(), "llvmpipe")) GTEST_SKIP() << "only lavapipe changes its width";
  EXPECT_EQ(four[0], "subgroup 4");
  EXPECT_EQ(eight[0], "subgroup 8");
  EXPECT_EQ(sixteen[0], "subgroup 16");
  for (size_t i = 1; i < four.size(); ++i) {
    if (absl::StartsWith(four[i], "shuffles")) {
      EXPECT_TRUE(absl::EndsWith(four[i], "no")) << four[i];
      EXPECT_TRUE(absl::EndsWith(eight[i], "yes")) << eight[i];
      EXPECT_EQ(absl::EndsWith(sixteen[i], "yes"), !absl::StrContains(sixteen[i], " 8:")) << sixteen[i];
      continue;
    }
    EXPECT_TRUE(four[i] == eight[i]) << eight[i].substr(0, 20);
    EXPECT_TRUE(four[i] == sixteen[i]) << sixteen[i].substr(0, 20);
  }
}

}  // namespace
}  // namespace agc::test
