// Window ops as C++ calls them: options in their short forms, padding by rule, and what happens at borders and ties.
// What the rows compute is tested by the sweep over the op table and by test/ops/window_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ir/build.h"
#include "ir/build_window.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "ir/text/text.h"
#include "passes/manager.h"

namespace agc {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;
using Numbers = std::vector<double>;

// A graph of given tensors, evaluated as a device would: every operation rounds to its dtype.
struct Scene {
  Program program = {};
  Graph graph = {};
  Builder builder = {.program = &program, .graph = &graph};
  EvalInputs given = {};

  Value Input(TensorType type, Numbers values = {}) {
    values.resize(static_cast<size_t>(type.elements()));
    const std::string name = "x" + std::to_string(graph.params.size());
    HostTensor t = HostTensor::Zeros(type);
    for (int64_t i = 0; i < type.elements(); ++i) t.set(i, Scalar::Of(type.dtype, values[static_cast<size_t>(i)]));
    given.params[name] = std::move(t);
    return {&builder, AppendInput(graph, ParamKind::kInput, name, std::move(type), {}), 0, false};
  }
  Value Input(const char* type, Numbers values) { return Input(*ParseType(type), std::move(values)); }

  Numbers Eval(Value y) {
    EXPECT_TRUE(builder.status().ok()) << builder.status();
    if (!y.valid()) return {};
    Program whole = Clone(program);
    whole.graphs.push_back(graph);
    whole.graphs[0].name = "g";
    whole.graphs[0].outputs = {{.name = "y", .type = y.type(), .value = y.id}};
    PassContext context;
    const absl::Status expanded = RunPipeline(whole, {"dce", "autograd"}, context);
    EXPECT_TRUE(expanded.ok()) << expanded;
    if (!expanded.ok()) return {};
    const absl::StatusOr<EvalResult> result = EvaluateGraph(whole, whole.graphs[0], given, EvalMode::kExact);
    EXPECT_TRUE(result.ok()) << result.status();
    Numbers values;
    if (!result.ok()) return values;
    const HostTensor& t = result->outputs.at("y");
    for (int64_t i = 0; i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
    return values;
  }
  std::string Error() { return std::string(builder.status().message()); }
};

std::string Attrs(Scene& s, Value v) {
  EXPECT_TRUE(s.builder.status().ok()) << s.builder.status();
  std::string text = std::string(s.graph.op(v.id).def->name);
  for (const char* name : {"stride", "pad", "dilation"}) {
    text += " ";
    for (int64_t i : AttrReader{s.graph.op(v.id).attrs}.ints(name)) text += std::to_string(i);
  }
  return text;
}

TEST(WindowOptions, ShortListsStandForAllAxes) {
  Scene s;
  const Value x = s.Input(TensorType{DType::kF32, {1, 2, 9, 9}}), w = s.Input(TensorType{DType::kF32, {2, 2, 3, 3}});
  EXPECT_EQ(Attrs(s, Conv(x, w)), "conv2d 11 0000 11");
  EXPECT_EQ(Attrs(s, Conv(x, w, {.stride = {2}, .pad = {1}, .dilation = {3}})), "conv2d 22 1111 33");
  EXPECT_EQ(Attrs(s, Conv(x, w, {.pad = {1, 2}})), "conv2d 11 1212 11");
  EXPECT_EQ(Attrs(s, Conv(x, w, {.pad = {1, 0, 2, 1}})), "conv2d 11 1021 11");
  EXPECT_EQ(Attrs(s, MaxPool(x, {.window = {3}})), "max_pool2d  0000 ");
  EXPECT_EQ(Attrs(s, MaxPool(x, {.window = {3}, .stride = {0, 2}, .pad = {1}})), "max_pool2d 32 1111 ");
  EXPECT_EQ(Attrs(s, Unfold(x, {.window = {3}})), "unfold 11  ");
  Conv(x, w, {.pad = {1, 2, 3}});
  EXPECT_NE(s.Error().find("pad = [1, 2, 3] has 3 numbers, expected 4"), std::string::npos);
}

TEST(WindowOptions, TheRankDecides) {
  Scene s;
  const Value x1 = s.Input(TensorType{DType::kF32, {1, 2, 9}}), w1 = s.Input(TensorType{DType::kF32, {2, 2, 3}});
  const Value x3 = s.Input(TensorType{DType::kF32, {1, 2, 5, 5, 5}}),
              w3 = s.Input(TensorType{DType::kF32, {2, 2, 2, 2, 2}});
  EXPECT_EQ(Attrs(s, Conv(x1, w1, {.pad = {1}})), "conv1d 1 11 1");
  EXPECT_EQ(Attrs(s, Conv(x3, w3)), "conv3d 111 000000 111");
  EXPECT_EQ(ToString(ConvTranspose(x1, w1, {.stride = {2}, .pad = {1}}).type()), "f32[1,2,17]");
  EXPECT_EQ(ToString(AvgPool(x3).type()), "f32[1,2,2,2,2]");
  EXPECT_EQ(ToString(LpPool(x1).type()), "f32[1,2,4]");
  EXPECT_EQ(ToString(GlobalMaxPool(x3).type()), "f32[1,2,1,1,1]");
}

TEST(WindowOptions, SamePadding) {
  EXPECT_THAT(SamePad({5}, {3}, {1}, {1}, true), ElementsAre(1, 1));
  EXPECT_THAT(SamePad({6}, {3}, {2}, {1}, true), ElementsAre(0, 1));
  EXPECT_THAT(SamePad({6}, {3}, {2}, {1}, false), ElementsAre(1, 0));
  EXPECT_THAT(SamePad({6, 5}, {2, 3}, {3, 2}, {1, 2}, true), ElementsAre(0, 2, 0, 2));
  EXPECT_THAT(SamePad({4}, {1}, {3}, {1}, true), ElementsAre(0, 0));  // less than nothing is nothing
  Scene s;
  const Value x = s.Input(TensorType{DType::kF32, {1, 2, 6, 7}}), w = s.Input(TensorType{DType::kF32, {2, 2, 3, 3}});
  EXPECT_EQ(Attrs(s, Conv(x, w, {.stride = {2}, .auto_pad = AutoPad::kSameUpper})), "conv2d 22 0111 11");
  EXPECT_EQ(Attrs(s, Conv(x, w, {.stride = {2}, .auto_pad = AutoPad::kSameLower})), "conv2d 22 1101 11");
  EXPECT_EQ(Attrs(s, Conv(x, w, {.pad = {4}, .auto_pad = AutoPad::kValid})), "conv2d 11 0000 11");
  EXPECT_EQ(Attrs(s, MaxPool(x, {.window = {3}, .stride = {2}, .auto_pad = AutoPad::kSameUpper})),
            "max_pool2d 22 0111 ");
}

// The sum over 3x3 neighbours reads nothing beyond the border.
TEST(Windows, NeighbourSums) {
  Scene s;
  Numbers ramp;
  for (int i = 0; i < 9; ++i) ramp.push_back(i + 1);
  const Value x = s.Input("f32[1,1,3,3]", ramp), ones = s.Input("f32[1,1,3,3]", Numbers(9, 1));
  const Numbers expected = {12, 21, 16, 27, 45, 33, 24, 39, 28};
  EXPECT_EQ(s.Eval(Conv(x, ones, {.pad = {1}})), expected);
  EXPECT_EQ(s.Eval(AvgPool(x, {.window = {3}, .stride = {1}, .pad = {1}}) * 9.0), expected);
  EXPECT_THAT(s.Eval(AvgPool(x, {.window = {3}, .stride = {1}, .pad = {1}}, false)),
              ElementsAre(3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7));
}

TEST(Windows, FoldAddsUpWhatUnfoldCopied) {
  Scene s;
  const Value x = s.Input("f32[1,1,4]", {1, 2, 3, 4});
  const Value columns = Unfold(x, {.window = {3}});
  EXPECT_THAT(s.Eval(columns), ElementsAre(1, 2, 2, 3, 3, 4));
  EXPECT_THAT(s.Eval(Fold(columns, {4}, {.window = {3}})), ElementsAre(1, 4, 6, 4));
  EXPECT_THAT(s.Eval(SlidingWindows(x, {.window = {3}, .stride = {2}, .pad = {1}})), ElementsAre(0, 1, 2, 2, 3, 4));
}

TEST(Windows, CeilModeKeepsWindowsThatStartOnTheInput) {
  Scene s;
  const Value x = s.Input("f32[1,1,5]", {1, 2, 3, 4, 5});
  EXPECT_THAT(s.Eval(MaxPool(x)), ElementsAre(2, 4));
  EXPECT_THAT(s.Eval(MaxPool(x, {.ceil_mode = true})), ElementsAre(2, 4, 5));
  EXPECT_THAT(s.Eval(AvgPool(x, {.ceil_mode = true})), ElementsAre(1.5, 3.5, 5));
  EXPECT_THAT(s.Eval(AvgPool(x, {.pad = {1}, .ceil_mode = true})), ElementsAre(0.5, 2.5, 4.5));
  // A second window would start in the padding.
  const WindowOptions o{.stride = {3}, .pad = {0, 1}, .ceil_mode = true};
  EXPECT_THAT(s.Eval(MaxPool(s.Input("f32[1,1,2]", {1, 2}), o)), ElementsAre(2));
}

TEST(Windows, PositionsAreThoseOfThePlane) {
  Scene s;
  const Value x = s.Input("f32[1,2,2,4]", {1, 5, 7, 7, 5, 0, 7, 2, 3, 3, 3, 3, 3, 3, 3, 3});
  EXPECT_THAT(s.Eval(MaxPoolIndices(x)), ElementsAre(1, 2, 0, 2));
  EXPECT_EQ(MaxPoolIndices(x, {}, DType::kI64).dtype(), DType::kI64);
  EXPECT_THAT(s.Eval(MaxPoolIndices(x, {.window = {2, 3}, .stride = {1}, .pad = {1, 0, 0, 0}})),
              ElementsAre(2, 2, 2, 2, 0, 1, 0, 1));
}

TEST(Windows, ANormOfZerosHasNoSlope) {
  for (double p : {1.0, 2.0, 3.0}) {
    Scene s;
    const Value x = s.Input("f32[1,1,4]", {0, 0, 3, -4});
    const Value y = LpPool(x, {}, p);
    EXPECT_THAT(s.Eval(y), Pointwise(DoubleNear(1e-6), Numbers{0, std::pow(std::pow(3, p) + std::pow(4, p), 1 / p)}));
    const Numbers slope = s.Eval(Gradient(ReduceSum(y), x));
    EXPECT_EQ(slope[0], 0);
    EXPECT_EQ(slope[1], 0);
    EXPECT_GT(slope[2], 0);
    EXPECT_LT(slope[3], 0);
  }
}

TEST(Windows, NarrowTypesAreAveragedWide) {
  Scene s;
  const Value x = s.Input("f16[1,1,4]", {60000, 60000, -60000, 60000});
  EXPECT_THAT(s.Eval(AvgPool(x)), ElementsAre(60000, 0));
  EXPECT_THAT(s.Eval(LpPool(x)),
              ElementsAre(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()));
  EXPECT_THAT(s.Eval(LpPool(s.Input("f16[1,1,2]", {3000, 4000}))), ElementsAre(5000));
}

TEST(Windows, UnpoolingKeepsTheLastOfEqualPositions) {
  Scene s;
  const Value x = s.Input("f32[1,1,4]", {1, 5, 2, 3});
  const Value y = MaxPool(x), at = MaxPoolIndices(x);
  EXPECT_THAT(s.Eval(MaxUnpool(y, at, {4})), ElementsAre(0, 5, 0, 3));
  const WindowOptions o{.window = {2}, .stride = {1}};
  EXPECT_THAT(s.Eval(MaxUnpool(MaxPool(x, o), MaxPoolIndices(x, o, DType::kI64), {4}, o)), ElementsAre(0, 5, 0, 3));
  for (const char* beyond : {"i32[1,1,2]", "i8[1,1,2]", "i64[1,1,2]"})
    EXPECT_THAT(s.Eval(MaxUnpool(y, s.Input(beyond, {3, -1}), {4})), ElementsAre(0, 0, 0, 0));
  // Four windows of a plane name one element: the last stays and gets the gradient.
  const Value plane = s.Input("f32[1,1,2,2]", {1, 2, 3, 4}),
              weight = s.Input("f32[1,1,3,3]", {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const WindowOptions overlapping{.window = {2, 2}, .stride = {1}};
  const auto unpooled = [&](const Numbers& to) {
    return MaxUnpool(plane, s.Input("i32[1,1,2,2]", to), {3, 3}, overlapping);
  };
  const Value all = unpooled({4, 4, 4, 4}), two = unpooled({4, 1, 4, 8});
  EXPECT_THAT(s.Eval(all), ElementsAre(0, 0, 0, 0, 4, 0, 0, 0, 0));
  EXPECT_THAT(s.Eval(Gradient(ReduceSum(all * weight), plane)), ElementsAre(0, 0, 0, 5));
  EXPECT_THAT(s.Eval(two), ElementsAre(0, 2, 0, 0, 3, 0, 0, 0, 4));
  EXPECT_THAT(s.Eval(Gradient(ReduceSum(two * weight), plane)), ElementsAre(0, 2, 5, 9));
}

TEST(Windows, RegionsCoverTheInput) {
  Scene s;
  const Value x = s.Input("f32[1,1,5]", {1, 2, 3, 4, 5});
  EXPECT_THAT(s.Eval(AdaptiveAvgPool(x, {2})), ElementsAre(2, 4));
  EXPECT_THAT(s.Eval(AdaptiveAvgPool(x, {1})), ElementsAre(3));
  EXPECT_THAT(s.Eval(AdaptiveMaxPool(x, {3})), ElementsAre(2, 4, 5));
  EXPECT_THAT(s.Eval(Get(AdaptiveMaxPoolWithIndex(s.Input("f32[1,1,2,2]", {7, 7, 7, 7}), {1}), 1)), ElementsAre(0));
}

TEST(Resize, TiesAreExact) {
  Scene s;
  const Value x = s.Input("f32[1,1,4]", {0, 1, 2, 3});
  const auto nearest = [&](Rounding rounding, Coordinates coordinates, Ints size) {
    return s.Eval(Resize(x, size, {.mode = Interpolation::kNearest, .coordinates = coordinates, .rounding = rounding}));
  };
  // Half pixels of every second element: 0.5 and 2.5.
  EXPECT_THAT(nearest(Rounding::kRoundPreferFloor, Coordinates::kHalfPixel, {2}), ElementsAre(0, 2));
  EXPECT_THAT(nearest(Rounding::kRoundPreferCeil, Coordinates::kHalfPixel, {2}), ElementsAre(1, 3));
  EXPECT_THAT(nearest(Rounding::kFloor, Coordinates::kAsymmetric, {6}), ElementsAre(0, 0, 1, 2, 2, 3));
  EXPECT_THAT(nearest(Rounding::kCeil, Coordinates::kAsymmetric, {6}), ElementsAre(0, 1, 2, 2, 3, 3));
  EXPECT_THAT(s.Eval(Resize(x, {7}, {.coordinates = Coordinates::kAlignCorners})),
              ElementsAre(0, 0.5, 1, 1.5, 2, 2.5, 3));
  const Value bytes = s.Input("u8[2]", {3, 200});
  EXPECT_THAT(s.Eval(Resize(bytes, {4}, {.mode = Interpolation::kNearest})), ElementsAre(3, 3, 200, 200));
}

// 0.6 as a float is 3/5: the last output stands at 2.5 / 0.6 - 0.5, not where 2 of 4 elements would.
TEST(Resize, ScalesPlaceTheOutputs) {
  Scene s;
  const Value x = s.Input("f32[4]", {0, 1, 2, 3});
  const double scales[] = {0.6f};
  EXPECT_THAT(s.Eval(ResizeBy(x, scales)), Pointwise(DoubleNear(1e-6), Numbers{0.5 / 0.6 - 0.5, 1.5 / 0.6 - 0.5}));
  const double none[] = {0.1};
  ResizeBy(x, none);
  EXPECT_NE(s.Error().find("resize: scale 0.1 of axis 0 of f32[4] leaves no elements"), std::string::npos);
}

// Two inputs an output: a triangle over four of them, as torch's interpolate(antialias=True) has it.
TEST(Resize, AntialiasingWeighsAllThatAnOutputStandsFor) {
  Scene s;
  const Value x = s.Input("f32[1,1,8]", {0, 7, 0, 0, 0, 0, 0, 14});
  ResizeOptions o{.exclude_outside = true, .antialias = true};
  EXPECT_THAT(s.Eval(Resize(x, {4}, o)), Pointwise(DoubleNear(1e-6), Numbers{3, 7.0 / 8, 0, 6}));
  o.exclude_outside = false;  // the edge counts for what lies beyond it
  EXPECT_THAT(s.Eval(Resize(x, {4}, o)), Pointwise(DoubleNear(1e-6), Numbers{21.0 / 8, 7.0 / 8, 0, 7}));
  const Value same = s.Input("f32[1,1,3]", {1, 2, 4});  // where nothing shrinks it changes nothing
  EXPECT_THAT(s.Eval(Resize(same, {6}, o)), Pointwise(DoubleNear(1e-6), s.Eval(Resize(same, {6}))));
  const double scales[] = {0.5};
  EXPECT_THAT(s.Eval(ResizeBy(x, scales, o)), Pointwise(DoubleNear(1e-6), s.Eval(Resize(x, {4}, o))));
  ResizeBy(x, scales, {.coordinates = Coordinates::kAlignCorners, .antialias = true});
  EXPECT_NE(s.Error().find("mode linear_antialias takes coordinates half_pixel and asymmetric, not align_corners"),
            std::string::npos);
}

TEST(Sampling, NothingIsReadOutside) {
  Scene s;
  const Value x = s.Input("f32[1,1,1,2]", {std::numeric_limits<double>::infinity(), 4});
  const Value far = s.Input("f32[1,1,2,2]", {1e30, 0, 0.5, 0});
  EXPECT_THAT(s.Eval(GridSample(x, far)), ElementsAre(0, 4));
  EXPECT_THAT(s.Eval(GridSample(x, far, {.padding = SamplePadding::kBorder}))[1], 4);
  const Value y = s.Input("f32[1,1,3]", {1, 2, 3}), at = s.Input("f32[1,3,1]", {-1, 1.5, 2});
  const GridSampleOptions reflect{.padding = SamplePadding::kReflection, .align_corners = true};
  EXPECT_THAT(s.Eval(GridSample(y, at, reflect)), ElementsAre(1, 2.5, 2));
}

TEST(Sampling, TheIdentityReadsEveryElement) {
  for (bool corners : {false, true}) {
    Scene s;
    const Numbers values = {1, 2, 3, 4, 5, 6};
    const Value x = s.Input("f32[1,1,2,3]", values), theta = s.Input("f32[1,2,3]", {1, 0, 0, 0, 1, 0});
    const Value y = GridSample(x, AffineGrid(theta, {2, 3}, corners), {.align_corners = corners});
    EXPECT_THAT(s.Eval(y), Pointwise(DoubleNear(1e-5), values));
  }
}

}  // namespace
}  // namespace agc
