// Text in and out: what the lit tests cannot say, and random damage to their files.
#include "ir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/strings/str_cat.h"
#include "ir/op_def.h"
#include "ir/range.h"
#include "ir/recompute.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The .agir files below test/ that hold a module which parses, in order of their names.
std::vector<std::string> Corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(absl::StrCat(AGC_SOURCE_DIR, "/test"))) {
    if (entry.path().extension() == ".agir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::string text = ReadFile(path);
    if (Parse(text, "f").ok()) texts.push_back(std::move(text));
  }
  return texts;
}

// Prints, parses and prints again; false where the text did not parse.
bool RoundTrips(const std::string& source) {
  const absl::StatusOr<Program> first = Parse(source, "f.agir");
  if (!first.ok()) {
    EXPECT_THAT(std::string(first.status().message()), HasSubstr("error: ")) << source;
    return false;
  }
  (void)Verify(*first);
  const std::string once = Print(*first);
  const absl::StatusOr<Program> second = Parse(once, "g.agir");
  EXPECT_TRUE(second.ok()) << second.status() << "\n" << once;
  if (second.ok()) {
    EXPECT_EQ(Print(*second), once);
  }
  return true;
}

// One random edit: bytes changed, cut, doubled or moved, numbers made extreme.
std::string Damaged(std::string text, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  const size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(12));
  static const std::vector<std::string> kPieces = {"9223372036854775807",
                                                   "-9223372036854775808",
                                                   "0",
                                                   "99999999999999999999",
                                                   "%",
                                                   "@",
                                                   "\"",
                                                   "{",
                                                   "}",
                                                   "(",
                                                   ")",
                                                   "[",
                                                   "]",
                                                   "1e999",
                                                   "inf",
                                                   "nan",
                                                   "\n",
                                                   "\\",
                                                   "$0",
                                                   "%0",
                                                   "$0 = ",
                                                   "index(",
                                                   "cast<u8>(",
                                                   " if ",
                                                   ":",
                                                   "-",
                                                   "->",
                                                   "..",
                                                   "0x7ff8000000000001",
                                                   "/",
                                                   "% 3",
                                                   "*4503599627370496",
                                                   "\x80",
                                                   std::string(1, '\0')};
  switch (below(6)) {
    case 0:
      text[at] = static_cast<char>(random());
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(below(text.size()), 1 + below(40)));
      break;
    case 3:
      text.insert(at, kPieces[below(kPieces.size())]);
      break;
    case 4:
      text.replace(at, length, kPieces[below(kPieces.size())]);
      break;
    default: {  // another number where one stands
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != std::string::npos) text.replace(digit, 1, kPieces[below(4)]);
    }
  }
  return text;
}

TEST(TextFuzz, DamagedFilesAreErrorsOrRoundTrip) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_GE(corpus.size(), 10u);
  std::mt19937 random(7);
  int parsed = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = corpus[random() % corpus.size()];
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) text = Damaged(std::move(text), random);
    parsed += RoundTrips(text) ? 1 : 0;
    if (testing::Test::HasFailure()) FAIL() << "case " << i << ":\n" << text;
  }
  EXPECT_GT(parsed, 200);
}

TEST(TextFuzz, DeepNestingIsAnError) {
  for (const char* piece : {"(", "-", "tanh(", "cast<f32>(", "%x[index("}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += piece;
    const auto p =
        Parse(absl::StrCat("module @m stage nest { nest @k(%x: f32[4]) -> (%y: f32[4]) axes n:4 { store %y[n] = ", deep,
                           "}}"),
              "f");
    ASSERT_FALSE(p.ok());
    EXPECT_THAT(std::string(p.status().message()), HasSubstr("nested too deeply")) << piece;
  }
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "region {";
  EXPECT_FALSE(Parse(absl::StrCat("module @m stage loop { shader @k() { part {", blocks, "}}}"), "f").ok());
}

TEST(Text, LongSumsAreNoNesting) {
  std::string sum = "%x[n]";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&sum, " + %x[n] * ", i);
  EXPECT_TRUE(RoundTrips(
      absl::StrCat("module @m stage nest { nest @k(%x: f32[4]) -> (%y: f32[4]) axes n:4 { store %y[n] = ", sum, "}}")));
}

// x squared 40 times is a tree of 2^40 leaves.
TEST(Text, SharedExpressionsPrintOnce) {
  Nest nest;
  nest.name = "k";
  nest.params = {{"x", {DType::kF32, {4}}, false}, {"y", {DType::kF32, {4}}, true}};
  const Expr n = nest.pool->Var(nest.AddAxis("n", 4));
  Expr x = nest.pool->Load(0, {n}, DType::kF32);
  for (int i = 0; i < 40; ++i) x = x * x;
  nest.stores.push_back({1, {n.id}, x.id});
  const std::string text = Print(nest);
  EXPECT_LT(text.size(), 2000u);
  EXPECT_THAT(text, HasSubstr("$0 = "));
  EXPECT_TRUE(RoundTrips(absl::StrCat("module @m stage nest {\n", text, "}")));
}

// Terms are printed in order of the declarations, whatever the numbers of the variables are.
TEST(Text, TermsFollowDeclarations) {
  Nest nest;
  nest.name = "k";
  nest.params = {{"x", {DType::kF32, {64}}, false}, {"y", {DType::kF32, {8, 8}}, true}};
  const Expr q = nest.pool->Var(nest.AddAxis("q", 8)), p = nest.pool->Var(nest.AddAxis("p", 8));
  std::swap(nest.axes[0], nest.axes[1]);
  nest.stores.push_back({1, {p.id, q.id}, nest.pool->Load(0, {p * 8 + q}, DType::kF32).id});
  EXPECT_THAT(Print(nest), HasSubstr("axes p:8 q:8 {"));
  EXPECT_THAT(Print(nest), HasSubstr("%x[8*p + q]"));
  EXPECT_TRUE(RoundTrips(absl::StrCat("module @m stage nest {\n", Print(nest), "}")));
}

TEST(Text, NamesThatClashGetSuffixes) {
  Nest nest;
  nest.name = "odd name";
  nest.params = {{"x", {DType::kF32, {8, 8}}, false}, {"x", {DType::kF32, {8, 8}}, true}};
  const Expr a = nest.pool->Var(nest.AddAxis("if", 8)), b = nest.pool->Var(nest.AddAxis("0 axis", 8));
  nest.stores.push_back({1, {a.id, b.id}, nest.pool->Load(0, {a, b}, DType::kF32).id});
  const std::string text = Print(nest);
  EXPECT_THAT(text, HasSubstr("nest @\"odd name\"(%x: f32[8,8]) -> (%x_1: f32[8,8]) axes if_:8 v0_axis:8 {"));
  EXPECT_TRUE(RoundTrips(absl::StrCat("module @m stage nest {\n", text, "}")));
}

constexpr const char* kTwoKernels = R"(module @m stage loop {
  shader @a(%x: f32[64] read, %y: f32[64] write) local [64, 1, 1] label "first" {
    part groups [1, 1, 1] { for local t in 0..64 { region "r" { let v: f32 = %x[t]  store %y[t] = v * v } } }
  }
  shader @b(%in: f32[64] read, %out: f32[64] write) local [64, 1, 1] {
    part groups [1, 1, 1] { for local i in 0..64 { region { let w: f32 = %in[i]  store %out[i] = w * w } } }
  }
  shader @c(%in: f32[64] read, %out: f32[64] write) local [64, 1, 1] {
    part groups [1, 1, 1] { for local i in 0..64 { region { let w: f32 = %in[i]  store %out[i] = w + w } } }
  }
})";

TEST(Text, EqualKernelsPrintEqualWithoutNames) {
  const auto p = Parse(kTwoKernels, "f");
  ASSERT_TRUE(p.ok()) << p.status();
  const PrintOptions bare{.labels = false, .names = false};
  EXPECT_EQ(Print(p->kernels[0], bare), Print(p->kernels[1], bare));
  EXPECT_NE(Print(p->kernels[1], bare), Print(p->kernels[2], bare));
  EXPECT_NE(Print(p->kernels[0]), Print(p->kernels[1]));
}

TEST(Text, ConstantsKeepTheirBits) {
  Program program;
  Graph graph;
  graph.name = "g";
  auto literal = std::make_shared<Literal>();
  literal->splat = false;
  for (int i = 0; i < 100; ++i) literal->values.push_back(Scalar::Float(DType::kF16, i * 0.1));
  literal->values[7] = Scalar::Float(DType::kF16, -0.0);
  const OpId id = AppendConstant(graph, {DType::kF16, {100}}, literal, {});
  graph.outputs.push_back({"y", {DType::kF16, {100}}, false, id});
  program.graphs.push_back(graph);
  const auto again = Parse(Print(program), "f");
  ASSERT_TRUE(again.ok()) << again.status();
  const Op& op = again->graphs[0].op(again->graphs[0].outputs[0].value);
  EXPECT_EQ((*AttrReader{op.attrs}.literal("value")), *literal);
}

TEST(Text, LocationsOfOtherFilesOnly) {
  constexpr const char* kSource = R"(module @m {
  graph @g(input %x: f32[2]) -> (%y: f32[2]) {
    %0: f32[2] = exp %x loc("net.cc":7)
    %1: f32[2] = exp %0
    output %y = %1
  }
})";
  const auto p = Parse(kSource, "m.agir");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(ToString(p->graphs[0].ops[1].loc), "net.cc:7");
  EXPECT_EQ(ToString(p->graphs[0].ops[2].loc), "m.agir:4");
  const std::string located = Print(*p, {.locations = true, .omit_file = "m.agir"});
  EXPECT_THAT(located, HasSubstr("%0: f32[2] = exp %x loc(\"net.cc\":7)\n"));
  EXPECT_THAT(located, HasSubstr("%1: f32[2] = exp %0\n"));
  EXPECT_EQ(Print(*p).find("loc("), std::string::npos);
}

TEST(Text, Pieces) {
  EXPECT_EQ(ToString(*ParseType("bf16[2,0,3]")), "bf16[2,0,3]");
  EXPECT_FALSE(ParseType("bf16[2,").ok());
  EXPECT_FALSE(ParseType("f32[2] x").ok());
  const auto attrs = ParseAttrs(*FindOp("transpose"), "perm = [1, 0]");
  ASSERT_TRUE(attrs.ok()) << attrs.status();
  EXPECT_EQ(*std::get_if<Ints>(FindAttr(*attrs, "perm")), (Ints{1, 0}));
  const auto schedule = ParseSchedule("contract {bm = 64, mode = fast, place = {%m: register}}");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->Int("bm", 0), 64);
  EXPECT_EQ(Print(*schedule), "contract {bm = 64, mode = fast, place = {%m: register}}");
}

// Ranges under guards, which decide whether a load is refused.
TEST(Verify, RangesUnderConditions) {
  ExprPool pool;
  const Expr p = pool.Var(pool.Declare({.name = "p", .lo = 0, .hi = 27})),
             r = pool.Var(pool.Declare({.name = "r", .lo = 0, .hi = 4}));
  const auto range = [&](Expr e, std::vector<Expr> conditions) {
    std::vector<ExprId> ids;
    for (Expr c : conditions) ids.push_back(c.id);
    const IndexRange x = RangeUnder(pool, e.id, ids);
    return std::make_pair(x.lo, x.hi);
  };
  const Expr e = p + r - 2;
  EXPECT_EQ(range(e, {}), std::make_pair(int64_t{-2}, int64_t{29}));
  EXPECT_EQ(range(e, {InRange(e, 28)}), std::make_pair(int64_t{0}, int64_t{27}));
  EXPECT_EQ(range(e + 3, {InRange(e, 28)}), std::make_pair(int64_t{3}, int64_t{30}));
  EXPECT_EQ(range(Div(e + 2, 7), {InRange(e, 28)}), std::make_pair(int64_t{0}, int64_t{4}));
  EXPECT_EQ(range(e * 2, {And(NonNeg(e), InRange(e - 1, 5))}), std::make_pair(int64_t{2}, int64_t{10}));
  EXPECT_EQ(range(p, {EqZero(p - 3)}), std::make_pair(int64_t{3}, int64_t{3}));
}

TEST(Verify, RecomputeFactorOfWindows) {
  const auto factor = [](int64_t stride) {
    Nest nest;
    const Expr p = nest.pool->Var(nest.AddAxis("p", 14)), r = nest.pool->Var(nest.AddAxis("r", 3));
    const Expr j = nest.pool->Var(nest.AddAxis("j", 5));
    nest.AddStage({.kind = StageKind::kReduce,
                   .combiner = FindCombiner("add"),
                   .over = {nest.axes[2]},
                   .values = {nest.pool->Load(0, {p * stride + r, j}, DType::kF32).id}},
                  {{.name = "s", .axes = {nest.axes[0], nest.axes[1]}}});
    return RecomputeFactor(nest, nest.stages[0]);
  };
  EXPECT_EQ(factor(3), 1);
  EXPECT_DOUBLE_EQ(factor(2), 42.0 / 29.0);
  EXPECT_DOUBLE_EQ(factor(1), 42.0 / 16.0);
}

}  // namespace
}  // namespace agc
