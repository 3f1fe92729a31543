// The pass manager: order and stages, what it checks around each pass, and what it leaves where a pass fails.
#include "passes/manager.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "passes/equivalence.h"
#include "passes/registry.h"

namespace agc {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::string_view kText = R"(module @m {
  graph @f(input %x: f32[2]) -> (%y: f32[2]) {
    %0: f32[2] = exp %x
    %1: f32[2] = neg %0
    output %y = %1
  }
}
)";

Program Module() { return *Parse(kText, "m.agir"); }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string TempPath(const std::string& name) { return ::testing::TempDir() + "manager_test_" + name; }

// Passes that break one rule each.
absl::StatusOr<bool> SilentChange(Program& program, PassContext&) {
  program.graphs[0].outputs[0].value = {1};
  return false;
}
absl::StatusOr<bool> FalseAlarm(Program&, PassContext&) { return true; }
absl::StatusOr<bool> UsesBeforeDefinition(Program& program, PassContext&) {
  std::swap(program.graphs[0].ops[1], program.graphs[0].ops[2]);
  return true;
}
absl::StatusOr<bool> DropsNegation(Program& program, PassContext&) {
  program.graphs[0].outputs[0].value = {1};
  return true;
}
absl::StatusOr<bool> Refuses(Program&, PassContext&) { return absl::UnimplementedError("m.agir:3: error: exp: no"); }
absl::StatusOr<bool> Aborts(Program&, PassContext&) {
  AGC_CHECK(1 + 1 == 3);
  return false;
}

absl::Status RunOne(PassFn fn, const ManagerOptions& options, Program program = Module()) {
  const PassDef pass{.name = "suspect", .fn = fn, .accepts = stages::kTensor, .doc = "for a test"};
  PassContext context;
  return RunPasses(program, {&pass}, context, options);
}

TEST(Manager, NamesAPassThatHidesItsChange) {
  const absl::Status s = RunOne(SilentChange, {});
  EXPECT_EQ(s.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(s.message()), HasSubstr("pass suspect: it changed the program but reported no change"));
}

TEST(Manager, NamesAPassThatReportsAChangeItDidNotMake) {
  EXPECT_THAT(std::string(RunOne(FalseAlarm, {}).message()), HasSubstr("pass suspect: it reported a change but left"));
}

TEST(Manager, VerifiesTheResult) {
  const absl::Status s = RunOne(UsesBeforeDefinition, {});
  EXPECT_EQ(s.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(s.message()), HasSubstr("pass suspect: the result does not verify: "));
}

TEST(Manager, VerifiesTheInput) {
  Program program = Module();
  std::swap(program.graphs[0].ops[1], program.graphs[0].ops[2]);
  const absl::Status s = RunOne(FalseAlarm, {}, std::move(program));
  EXPECT_FALSE(s.ok());
  EXPECT_THAT(std::string(s.message()), Not(HasSubstr("suspect")));
}

TEST(Manager, ChecksNothingWithoutVerify) { EXPECT_TRUE(RunOne(FalseAlarm, {.verify = false}).ok()); }

TEST(Manager, ComparesMeanings) {
  EXPECT_TRUE(RunOne(DropsNegation, {}).ok());
  const absl::Status s = RunOne(DropsNegation, {.check_equivalence = true, .equivalent = SameMeaning});
  EXPECT_THAT(std::string(s.message()), AllOf(HasSubstr("pass suspect: it changed what the program computes"),
                                              HasSubstr("graph f: output y at element 0")));
}

TEST(Manager, KeepsTheErrorOfAPass) {
  const std::string path = TempPath("refuses.agir");
  std::remove(path.c_str());
  const absl::Status s = RunOne(Refuses, {.reproducer = path});
  EXPECT_EQ(s, absl::UnimplementedError("m.agir:3: error: exp: no"));
  EXPECT_EQ(ReadFile(path), "");  // the user's mistake needs no reproducer
}

TEST(Manager, LeavesTheInputOfABrokenPass) {
  const std::string path = TempPath("broken.agir");
  const absl::Status s = RunOne(SilentChange, {.reproducer = path, .reproducer_flags = "--abi=addresses"});
  const std::string command = "agc opt --passes=suspect --abi=addresses " + path;
  EXPECT_THAT(std::string(s.message()), HasSubstr("note: run again with: " + command));
  EXPECT_EQ(ReadFile(path), "// " + command + "\n" + std::string(kText));
}

TEST(ManagerDeathTest, LeavesTheInputOfAPassThatAborts) {
  const std::string path = TempPath("aborts.agir");
  std::remove(path.c_str());
  EXPECT_DEATH(RunOne(Aborts, {.reproducer = path}).IgnoreError(),
               "1 \\+ 1 == 3 does not hold\nnote: the input of the pass is in");
  EXPECT_EQ(ReadFile(path), "// agc opt --passes=suspect " + path + "\n" + std::string(kText));
}

TEST(Manager, WritesTheStageThatATableRowSays) {
  Program program = Module();
  PassContext context;
  ASSERT_TRUE(RunPipeline(program, {"decompose"}, context).ok());
  EXPECT_EQ(program.stage, Stage::kPrimitive);
}

TEST(Manager, RefusesAChainBeforeAnythingRuns) {
  Program program = Module();
  PassContext context;
  const absl::Status s = RunPipeline(program, {"decompose", "autograd"}, context);
  EXPECT_EQ(
      s, absl::InvalidArgumentError("pass autograd accepts stage tensor, but pass decompose leaves stage primitive"));
  EXPECT_EQ(program.stage, Stage::kTensor);
}

TEST(Manager, StartsAndStopsWhereItIsTold) {
  Program program = Module();
  PassContext context;
  const std::vector<std::string> names = {"cse", "decompose", "dce"};
  ASSERT_TRUE(RunPipeline(program, names, context, {.start_at = "dce", .stop_after = "dce"}).ok());
  EXPECT_EQ(program.stage, Stage::kTensor);
  ASSERT_TRUE(RunPipeline(program, names, context, {.stop_after = "cse"}).ok());
  EXPECT_EQ(program.stage, Stage::kTensor);
  ASSERT_TRUE(RunPipeline(program, names, context, {.start_at = "decompose"}).ok());
  EXPECT_EQ(program.stage, Stage::kPrimitive);
  EXPECT_FALSE(RunPipeline(program, names, context, {.start_at = "legalize"}).ok());
}

TEST(Manager, NothingToRunIsFine) {
  Program program = Module();
  PassContext context;
  EXPECT_TRUE(RunPipeline(program, {}, context).ok());
}

TEST(Registry, RowsAreComplete) {
  for (const PassDef& pass : AllPasses()) {
    SCOPED_TRACE(std::string(pass.name));
    EXPECT_EQ(FindPass(pass.name), &pass);  // names are unique
    EXPECT_NE(pass.accepts, 0);
    EXPECT_FALSE(pass.doc.empty());
    EXPECT_TRUE(pass.result == stages::kSame || ToString(pass.result).find(',') == std::string::npos);
  }
}

}  // namespace
}  // namespace agc
