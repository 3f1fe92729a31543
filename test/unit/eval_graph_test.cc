#include <cmath>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/eval/graph_eval.h"
#include "ir/eval/plan_eval.h"
#include "ir/op_def.h"
#include "ir/text/text.h"

namespace agc {
namespace {

Program Parsed(const std::string& text) {
  absl::StatusOr<Program> p = Parse(text, "t.agir");
  if (!p.ok()) {
    ADD_FAILURE() << p.status();
    return {};
  }
  return *std::move(p);
}

HostTensor Tensor(TensorType type, std::vector<double> values) {
  HostTensor t = HostTensor::Zeros(std::move(type));
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Of(t.type.dtype, values[i]));
  return t;
}
std::vector<double> Values(const HostTensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.type.elements(); ++i) v.push_back(t.at(i).AsDouble());
  return v;
}

TEST(EvalGraph, StatesAreReadAtEntryAndUpdatedAtTheEnd) {
  const Program p = Parsed(R"(
module @m {
  state @a: f32[2]
  state @b: f32[2] init constant(3)
  graph @swap(input %x: f32[2]) -> (%y: f32[2]) {
    %0: f32[2] = add @a, %x
    %1: f32[2] = mul %0, @b
    output %y = %1
    update @a = @b
    update @b = @a
  }
})");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {2}}, {1, 2});
  in.states["a"] = Tensor({DType::kF32, {2}}, {10, 20});
  const EvalResult r = Evaluate(p, "swap", in).value();
  EXPECT_THAT(Values(r.outputs.at("y")), testing::ElementsAre(33, 66));
  EXPECT_THAT(Values(r.states.at("a")), testing::ElementsAre(3, 3));
  EXPECT_THAT(Values(r.states.at("b")), testing::ElementsAre(10, 20));
}

TEST(EvalGraph, CompositesTuplesAndConstants) {
  const Program p = Parsed(R"(
module @m {
  graph @g(input %x: f32[1,1,2,4]) -> (%v: f32[1,1,1,2], %i: u8[1,1,1,2], %s: f32[2]) {
    %0: (f32[1,1,1,2], u8[1,1,1,2]) = max_pool_with_index %x {window = [2, 2]}
    %1: f32[1,1,1,2] = get %0 {index = 0}
    %2: u8[1,1,1,2] = get %0 {index = 1}
    %3: f32[2] = reshape %1 {shape = [2]}
    %4: f32[2] = softmax %3 {axis = 0}
    %5: f32[2] = constant dense[100, 1000]
    %6: f32[2] = mul %4, %5
    output %v = %1
    output %i = %2
    output %s = %6
  }
})");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {1, 1, 2, 4}}, {1, 2, 3, 0, 5, 0, 0, 5});
  const EvalResult r = Evaluate(p, "g", in).value();
  EXPECT_THAT(Values(r.outputs.at("v")), testing::ElementsAre(5, 5));
  EXPECT_THAT(Values(r.outputs.at("i")), testing::ElementsAre(2, 3));
  EXPECT_THAT(Values(r.outputs.at("s")), testing::ElementsAre(50, 500));
}

TEST(EvalGraph, ModesDiffer) {
  const Program p = Parsed(R"(
module @m {
  graph @g(input %x: f16[3]) -> (%y: f16[3]) {
    %0: f16[3] = mul %x, %x
    %1: f16[3] = exp %0
    output %y = %1
  }
})");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF16, {3}}, {0.1, 0.7, -1.3});
  const EvalResult exact = Evaluate(p, "g", in).value(),
                   fine = Evaluate(p, "g", in, {.mode = EvalMode::kDouble}).value();
  EXPECT_EQ(exact.outputs.at("y").type.dtype, DType::kF16);
  EXPECT_EQ(fine.outputs.at("y").type.dtype, DType::kF64);
  for (int64_t i = 0; i < 3; ++i) {
    const double x = in.params["x"].at(i).f();
    EXPECT_EQ(exact.outputs.at("y").at(i).f(), RoundTo(DType::kF16, std::exp(RoundTo(DType::kF16, x * x))));
    EXPECT_EQ(fine.outputs.at("y").at(i).f(), std::exp(x * x));
  }
}

TEST(EvalGraph, ZeroElements) {
  const Program p = Parsed(R"(
module @m {
  graph @g(input %x: f32[0,3]) -> (%y: f32[0,3], %s: f32[3]) {
    %0: f32[0,3] = exp %x
    %1: f32[3] = reduce_sum %0 {axes = [0]}
    output %y = %0
    output %s = %1
  }
})");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {0, 3}}, {});
  const EvalResult r = Evaluate(p, "g", in).value();
  EXPECT_EQ(ToString(r.outputs.at("y").type), "f32[0,3]");
  EXPECT_THAT(Values(r.outputs.at("s")), testing::ElementsAre(0, 0, 0));
}

TEST(EvalGraph, BlobsComeFromTheirFile) {
  const std::string path = testing::TempDir() + "/eval_blob.bin";
  const float values[3] = {7, 1.5f, -2};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  const std::string head = "module @m {\n  blob @b: f32[2] from \"",
                    tail =
                        "\" offset 4\n  graph @g() -> (%y: f32[2]) {\n    %0: f32[2] = blob @b\n    %1: f32[2] = neg "
                        "%0\n    output %y = %1\n  }\n}\n";
  const Program p = Parsed(head + path + tail);
  EXPECT_THAT(Values(Evaluate(p, "g", {}).value().outputs.at("y")), testing::ElementsAre(-1.5, 2));
  const Program missing = Parse(head + "/nonexistent/w.bin" + tail, "t.agir").value();
  const absl::Status s = Evaluate(missing, "g", {}).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr("blob @b: cannot open /nonexistent/w.bin"));
}

TEST(EvalGraph, ErrorsSayWhatAndWhere) {
  const Program p = Parsed(R"(
module @m {
  state @w: f32[2] init uniform(0, 1)
  graph @g(input %x: f32[2]) -> (%y: f32[2]) {
    %0: f32[2] = mul %x, @w
    output %y = %0
  }
  graph @d(input %x: f32[2]) -> (%y: f32[2]) {
    %0: f32[] = reduce_sum %x {axes = [0]}
    %1: f32[2] = gradient %0, %x
    output %y = %1
  }
})");
  EvalInputs in;
  EXPECT_EQ(std::string(Evaluate(p, "g", in).status().message()),
            "t.agir:4: error: input %x has no value, it is f32[2]");
  in.params["x"] = Tensor({DType::kF32, {3}}, {1, 2, 3});
  EXPECT_EQ(std::string(Evaluate(p, "g", in).status().message()),
            "t.agir:4: error: input %x is f32[2], f32[3] is given");
  in.params["x"] = Tensor({DType::kF32, {2}}, {1, 2});
  EXPECT_EQ(std::string(Evaluate(p, "g", in).status().message()),
            "t.agir:3: error: state @w has no value, it is f32[2]");
  const absl::Status s = Evaluate(p, "d", in).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr("t.agir:10: error: gradient ops have no value"));
  EXPECT_EQ(Evaluate(p, "nothing", in).status().code(), absl::StatusCode::kNotFound);
}

TEST(EvalGraph, EveryIntermediate) {
  const Program p = Parsed(R"(
module @m {
  graph @g(input %x: f32[2]) -> (%y: f32[2]) {
    %0: f32[2] = neg %x
    %1: f32[2] = abs %0
    %2: f32[2] = exp %x
    output %y = %1
  }
})");
  EvalInputs in;
  in.params["x"] = Tensor({DType::kF32, {2}}, {1, -2});
  const auto values = EvaluateOps(p, p.graphs[0], in, EvalMode::kExact).value();
  ASSERT_EQ(values.size(), 4u);
  EXPECT_THAT(Values(*values[1][0]), testing::ElementsAre(-1, 2));
  EXPECT_THAT(Values(*values[2][0]), testing::ElementsAre(1, 2));
  EXPECT_TRUE(values[3].empty());  // no root needs it
}

}  // namespace
}  // namespace agc
