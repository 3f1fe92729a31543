// What a compile leaves besides kernels: the values of states in a bundle, and the options in its module text.
#include "compiler/agc.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/text/text.h"

namespace agc {
namespace {

using testing::HasSubstr;

Module Scale() {
  Module m("scale");
  m.Graph("g", [](Trace& t) {
    const Tensor w = t.State("w", {kF32, {2}});
    t.Output("y", Matmul(t.Input("x", kF32, {2, 2}), ExpandDims(w, {1})));
    t.Update("w", w + 1.0);
  });
  return m;
}

Bundle Compiled(CompileOptions options = {}) {
  absl::StatusOr<Bundle> bundle = Compile(Scale(), ToString(*FakeTarget("lavapipe")), options);
  EXPECT_TRUE(bundle.ok()) << bundle.status();
  return *std::move(bundle);
}

TEST(WithStates, TakesEachStateOnceOfItsType) {
  const rt::Bundle bundle = Compiled().content();
  const std::vector<uint8_t> bytes(8);
  const auto error = [&](const std::vector<StateValue>& values) {
    return std::string(WithStates(bundle, values).status().message());
  };
  EXPECT_EQ(error({{.name = "w", .bytes = bytes}}), "");
  EXPECT_EQ(error({{.name = "w", .bytes = bytes, .dtype = rt::DType::kF32, .dims = {2}}}), "");
  EXPECT_EQ(error({}), "state @w is missing");
  EXPECT_EQ(error({{.name = "w", .bytes = bytes}, {.name = "v", .bytes = bytes}}), "the bundle has no state @v");
  EXPECT_EQ(error({{.name = "w", .bytes = bytes}, {.name = "w", .bytes = bytes}}), "state @w is given twice");
  EXPECT_EQ(error({{.name = "w", .bytes = bytes, .dtype = rt::DType::kI32, .dims = {2}}}),
            "state @w is f32[2], given as i32[2]");
  EXPECT_EQ(error({{.name = "w", .bytes = {1}}}), "state @w: 1 bytes given, 8 expected");
}

TEST(Options, OfTheResultsStandInTheModuleText) {
  EXPECT_THAT(Compiled().content().ir_text, testing::StartsWith("module @scale"));
  const std::string text = Compiled({.numerics = Numerics::kPortable, .precision = kBF16}).content().ir_text;
  EXPECT_THAT(text, testing::StartsWith("// compiled with --numerics=portable --precision=bf16\nmodule @scale"));
  EXPECT_TRUE(Parse(text, "m.agir").ok());
  const CompileOptions read = WithOptionsOf(text, {.numerics = Numerics::kFast, .ring = 3});
  EXPECT_EQ(read.numerics, Numerics::kPortable);
  EXPECT_EQ(read.precision, kBF16);
  EXPECT_EQ(read.ring, 3);
  EXPECT_EQ(WithOptionsOf("module @m {}", {.numerics = Numerics::kFast}).numerics, Numerics::kRepeatable);
}

TEST(Options, ReachThePassesAllOfThem) {
  const PassContext c = ContextOf(*FakeTarget("h200"), {.abi = BufferAbi::kAddresses,
                                                        .numerics = Numerics::kFast,
                                                        .precision = kF16,
                                                        .fuse = false,
                                                        .reuse_memory = false,
                                                        .in_place = false,
                                                        .ring = 7});
  EXPECT_EQ(c.target.name, FakeTarget("h200")->name);
  EXPECT_EQ(c.abi, BufferAbi::kAddresses);
  EXPECT_EQ(c.numerics, Numerics::kFast);
  EXPECT_EQ(c.precision, kF16);
  EXPECT_FALSE(c.fuse || c.reuse_memory || c.in_place);
  EXPECT_EQ(c.ring, 7);
}

}  // namespace
}  // namespace agc
