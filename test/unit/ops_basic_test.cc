// Rows of the data, elementwise, compare, view and reduce tables: complete samples, shape rules, edge values, gradients
// of first and second order against central differences.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/text/text.h"
#include "passes/registry.h"
#include "test/unit/op_scene.h"

namespace agc {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<const OpDef*> Rows() {
  std::vector<const OpDef*> rows;
  for (absl::Span<const OpDef> table : {kDataOps, kElementwiseOps, kCompareOps, kViewOps, kPadOps, kReduceOps}) {
    for (const OpDef& op : table) rows.push_back(&op);
  }
  return rows;
}
bool IsDeclared(const OpDef& def) { return def.cls == OpClass::kData && def.at == nullptr; }

// The row's sample as a call; floats as `dtype`, values from a fixed seed.
Value Call(Scene& scene, const OpDef& def, DType dtype, std::vector<Value>& operands) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(def.sample.lo, def.sample.hi);
  size_t n = static_cast<size_t>(def.arity.min);
  while (n < def.sample.shapes.size() && !def.sample.shapes[n].empty()) ++n;
  for (size_t k = 0; k < n; ++k) {
    const absl::string_view shape = def.sample.shapes[k];
    TensorType type = *ParseType(shape.empty() ? "f32[2,3]" : shape);
    std::vector<double> values;
    for (int64_t e = 0; e < type.elements(); ++e) {
      values.push_back(IsFloat(type.dtype) ? uniform(random) : std::floor(uniform(random) + 0.5));
    }
    if (IsFloat(type.dtype)) type.dtype = dtype;
    operands.push_back(scene.Input(type, values));
  }
  const absl::StatusOr<std::vector<Attr>> attrs = ParseAttrs(def, def.sample.attrs);
  EXPECT_TRUE(attrs.ok()) << def.name << ": " << attrs.status();
  return attrs.ok() ? Emit(scene.builder, def.name, operands, *attrs, Loc{}) : Value{};
}

TEST(OpsBasic, EveryRowIsCompleteAndItsSampleEvaluates) {
  std::string last;
  for (const OpDef* def : AllOps()) {
    EXPECT_LT(last, std::string(def->name));
    last = std::string(def->name);
    EXPECT_TRUE(def->doc.back() == '.') << def->name;
  }
  for (const OpDef* def : Rows()) {
    EXPECT_EQ(FindOp(def->name), def);
    if (IsDeclared(*def)) continue;
    EXPECT_FALSE(def->numpy.empty()) << def->name;
    Scene scene;
    std::vector<Value> operands;
    const Value y = Call(scene, *def, DType::kF32, operands);
    ASSERT_TRUE(y.valid()) << def->name << ": " << scene.Error();
    EXPECT_EQ(static_cast<int64_t>(scene.Eval(y).size()), y.type().elements()) << def->name;
  }
}

// ---------------------------------------------------------------- gradients

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
std::vector<double> Weights(int64_t n, double phase) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) out.push_back(std::sin(1.7 * static_cast<double>(i) + phase));
  return out;
}

// Compares the derivative of sum(y * w) with respect to input `x` against central differences.
void ExpectDerivative(absl::string_view what, Scene& scene, Value y, const std::vector<double>& w, Value x, Value dx) {
  const std::vector<double> got = scene.Eval(dx);
  for (size_t e = 0; e < got.size(); ++e) {
    constexpr double h = 1e-5;
    const double at = scene.inputs[x.id.index][e].f();
    double side[2];
    for (int up = 0; up < 2; ++up) {
      scene.inputs[x.id.index][e] = Scalar::Float(DType::kF64, up != 0 ? at + h : at - h);
      side[up] = Dot(scene.Eval(y), w);
    }
    scene.inputs[x.id.index][e] = Scalar::Float(DType::kF64, at);
    const double expected = (side[1] - side[0]) / (2 * h);
    EXPECT_NEAR(got[e], expected, 1e-6 * std::max(1.0, std::abs(expected))) << what << " element " << e;
  }
}

// d sum(y * w) / d x of a graph in which `gradient` ops are expanded by the pass.
Value Derivative(Scene& scene, Value y, const std::vector<double>& w, Value x) {
  auto literal = std::make_shared<Literal>();
  literal->splat = false;
  literal->values = Numbers(y.dtype(), w);
  const Value weights = Constant(scene.builder, y.type(), literal);
  return Gradient(ReduceSum(y * weights), x);
}

// Runs pass autograd; it renumbers, so the handles in `values` are moved along with the inputs.
void Differentiate(Scene& scene, std::vector<Value*> values) {
  Graph& graph = scene.graph();
  std::vector<Data> inputs;
  for (const GraphParam& p : graph.params) inputs.push_back(scene.inputs[p.op.index]);
  for (const Value* v : values) graph.outputs.push_back({"y", v->type(), false, v->id, {}});
  PassContext context;
  const absl::StatusOr<bool> done = Autograd(scene.program, context);
  ASSERT_TRUE(done.ok()) << done.status();
  scene.inputs.assign(graph.ops.size(), {});
  for (size_t p = 0; p < inputs.size(); ++p) scene.inputs[graph.params[p].op.index] = inputs[p];
  for (size_t k = 0; k < values.size(); ++k) values[k]->id = graph.outputs[k].value;
}

TEST(OpsBasic, GradientsOfBothOrdersMatchDifferences) {
  int checked = 0;
  for (const OpDef* def : Rows()) {
    if (def->vjp == nullptr || !def->sample.differentiable) continue;
    for (size_t k = 0; k < 3; ++k) {
      Scene scene;
      std::vector<Value> operands;
      Value y = Call(scene, *def, DType::kF64, operands);
      ASSERT_TRUE(y.valid()) << def->name;
      const bool tuple = scene.graph().op(y.id).types.size() > 1;  // has no weighted sum
      if (tuple || k >= operands.size() || !IsFloat(operands[k].dtype())) continue;
      Value x = operands[k];
      const std::vector<double> w = Weights(y.type().elements(), 0.3), v = Weights(x.type().elements(), 1.1);
      Value dx = Derivative(scene, y, w, x), ddx = Derivative(scene, dx, v, x);
      ASSERT_NO_FATAL_FAILURE(Differentiate(scene, {&y, &x, &dx, &ddx})) << def->name;
      ExpectDerivative(absl::StrCat(def->name, " operand ", k), scene, y, w, x, dx);
      ExpectDerivative(absl::StrCat(def->name, " operand ", k, ", second order"), scene, dx, v, x, ddx);
      ++checked;
    }
  }
  EXPECT_GE(checked, 35);
}

// Masking a dead branch must not cut the second derivative where a cotangent happens to be 0: (f(x) - f(at))^2 / 2.
TEST(OpsBasic, SecondDerivativesSurviveZeroCotangents) {
  const auto second = [](Value (*f)(Value, Loc), double at) {
    Scene s;
    Value x = s.Input("f64[1]", {at});
    const Value off = f(x, {}) - f(FullLike(x, at), {});
    Value dx = Derivative(s, Square(off) * 0.5, {1}, x), ddx = Derivative(s, dx, {1}, x);
    Differentiate(s, {&dx, &ddx});
    EXPECT_EQ(s.Eval(dx), std::vector<double>{0});
    return s.Eval(ddx).at(0);
  };
  EXPECT_EQ(second(Log, 2), 0.25);
  EXPECT_EQ(second(Sqrt, 4), 0.0625);
  EXPECT_EQ(second(Exp, 0), 1);
  EXPECT_EQ(second(Reciprocal, 0.5), 16);
}

TEST(OpsBasic, SquareRootBehindSelectAtZero) {
  Scene s;
  Value x = s.Input("f64[3]", {0, -1, 4});
  Value dx = Derivative(s, Where(Less(x, FullLike(x, 1)), x, Sqrt(x)), {1, 1, 1}, x),
        ddx = Derivative(s, dx, {1, 1, 1}, x);
  Differentiate(s, {&dx, &ddx});
  EXPECT_EQ(s.Eval(dx), (std::vector<double>{1, 1, 0.25}));
  EXPECT_EQ(s.Eval(ddx), (std::vector<double>{0, 0, -0.03125}));
}

// The rule of the op that made y, applied to cotangent g.
std::vector<double> VjpOf(Scene& scene, Value y, std::vector<double> g, int operand) {
  auto literal = std::make_shared<Literal>();
  literal->splat = false;
  literal->values = Numbers(y.dtype(), g);
  Vjp rule(scene.builder, scene.graph().op(y.id), y.id);
  rule.g = Constant(scene.builder, y.type(), literal);
  rule.op.def->vjp(rule);
  return rule.dx[operand].valid() ? scene.Eval(rule.dx[operand]) : std::vector<double>{};
}
using V = std::vector<double>;

TEST(OpsBasic, TiesShareTheGradient) {
  Scene s;
  const Value a = s.Input("f32[3]", {1, 2, 3}), b = s.Input("f32[3]", {2, 2, 2});
  EXPECT_EQ(VjpOf(s, Maximum(a, b), {1, 1, 1}, 0), (V{0, 0.5, 1}));
  EXPECT_EQ(VjpOf(s, Maximum(a, b), {1, 1, 1}, 1), (V{1, 0.5, 0}));
  EXPECT_EQ(VjpOf(s, Minimum(a, b), {1, 1, 1}, 0), (V{1, 0.5, 0}));
  const Value x = s.Input("f32[2,3]", {4, 4, 1, 0, 0, 0});
  EXPECT_EQ(VjpOf(s, ReduceMax(x, {1}), {6, 6}, 0), (V{3, 3, 0, 2, 2, 2}));
  EXPECT_EQ(VjpOf(s, ReduceMin(x, {-1}, true), {6, 6}, 0), (V{0, 0, 6, 2, 2, 2}));
  EXPECT_EQ(VjpOf(s, ReduceProd(s.Input("f32[3]", {2, 0, 5})), {1}, 0), (V{0, 10, 0}));
  EXPECT_EQ(VjpOf(s, ReduceProd(s.Input("f32[3]", {0, 0, 5})), {1}, 0), (V{0, 0, 0}));
}

// A branch that select did not take sends a cotangent of 0 into an op whose derivative is infinite or NaN there.
TEST(OpsBasic, DeadBranchesStaySilent) {
  Scene s;
  const Value x = s.Input("f32[3]", {0, -1, 4}), one = s.Input("f32[3]", {1, 1, 1});
  EXPECT_EQ(VjpOf(s, Sqrt(x), {0, 0, 1}, 0), (V{0, 0, 0.25}));
  EXPECT_EQ(VjpOf(s, Log(x), {0, 0, 1}, 0), (V{0, 0, 0.25}));
  EXPECT_EQ(VjpOf(s, Rsqrt(x), {0, 0, 1}, 0), (V{0, 0, -0.0625}));
  EXPECT_EQ(VjpOf(s, Reciprocal(x), {0, 0, 1}, 0), (V{0, 0, -0.0625}));
  EXPECT_EQ(VjpOf(s, DivOf(one, x), {0, 0, 1}, 0), (V{0, 0, 0.25}));
  EXPECT_EQ(VjpOf(s, DivOf(one, x), {0, 0, 1}, 1), (V{0, 0, -0.0625}));
  EXPECT_EQ(VjpOf(s, Exp(s.Input("f32[2]", {1000, 0})), {0, 1}, 0), (V{0, 1}));
  EXPECT_EQ(VjpOf(s, Pow(x, s.Input("f32[3]", {-1, 0.5, 2})), {0, 0, 1}, 0), (V{0, 0, 8}));
  EXPECT_EQ(VjpOf(s, Pow(s.Input("f32[2]", {0, -2}), s.Input("f32[2]", {0, 3})), {1, 1}, 0), (V{0, 12}));
  EXPECT_EQ(VjpOf(s, Pow(s.Input("f32[2]", {0, -2}), s.Input("f32[2]", {2, 3})), {1, 1}, 1), (V{0, 0}));
  const Value cond = s.Input("bool[3]", {0, 1, 1}), nan = s.Input("f32[3]", {kNan, kNan, 2});
  EXPECT_EQ(VjpOf(s, Where(cond, nan, one), {1, 2, 3}, 1), (V{0, 2, 3}));
  EXPECT_EQ(VjpOf(s, Where(cond, nan, one), {1, 2, 3}, 2), (V{1, 0, 0}));
  EXPECT_EQ(VjpOf(s, Clamp(x, -1, 2), {1, 1, 1}, 0), (V{1, 1, 0}));
}

TEST(OpsBasic, ViewsGoBackToTheOperand) {
  Scene s;
  const Value x = s.Input("f32[7]", {0, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ(s.Eval(Slice(x, {1}, {7}, {3})), (V{1, 4}));
  EXPECT_EQ(VjpOf(s, Slice(x, {1}, {7}, {3}), {8, 9}, 0), (V{0, 8, 0, 0, 9, 0, 0}));
  EXPECT_EQ(VjpOf(s, Slice(x, {3}, {7}, {2}), {8, 9}, 0), (V{0, 0, 0, 8, 0, 9, 0}));
  EXPECT_EQ(VjpOf(s, Slice(x, {6}, {7}, {5}), {8}, 0), (V{0, 0, 0, 0, 0, 0, 8}));
  EXPECT_EQ(VjpOf(s, Slice(x, {2}, {2}, {}), {}, 0), (V{0, 0, 0, 0, 0, 0, 0}));
  const Value row = s.Input("f32[1,3]", {1, 2, 3});
  EXPECT_EQ(VjpOf(s, Broadcast(row, {2, 2, 3}), V(12, 1), 0), (V{4, 4, 4}));
  EXPECT_EQ(s.Eval(BroadcastAxes(s.Input("f32[2]", {5, 6}), {2, 2}, {0})), (V{5, 5, 6, 6}));
  EXPECT_EQ(s.Eval(Concat({x, Slice(x, {0}, {0}, {}), Slice(x, {0}, {1}, {})}, -1)), (V{0, 1, 2, 3, 4, 5, 6, 0}));
  EXPECT_EQ(s.Eval(Pad(row, -1, {1, 0}, {0, 1})), (V{-1, -1, -1, -1, 1, 2, 3, -1}));
  EXPECT_EQ(s.Eval(SumTo(Broadcast(row, {2, 2, 3}), {2, 1})), (V{12, 12}));
}

// ---------------------------------------------------------------- values

TEST(OpsBasic, EdgeValues) {
  Scene s;
  const auto f = [&](V v) { return s.Input(TensorType{DType::kF32, {static_cast<int64_t>(v.size())}}, v); };
  const auto i = [&](V v) { return s.Input(TensorType{DType::kI32, {static_cast<int64_t>(v.size())}}, v); };
  EXPECT_EQ(s.Eval(Pow(f({-1, -2, 0, -2}), f({2, 3, 0, -1}))), (V{1, -8, 1, -0.5}));
  EXPECT_TRUE(std::isnan(s.Eval(Pow(f({-2}), f({0.5})))[0]));
  EXPECT_EQ(s.Eval(FloorDiv(i({-7, 7, -7, 7, 5, -6}), i({2, 2, -2, -2, 0, 3}))), (V{-4, 3, 3, -4, 0, -2}));
  EXPECT_EQ(s.Eval(FloorDiv(i({-5}), i({0}))), (V{0}));
  EXPECT_EQ(s.Eval(FloorDiv(f({-7}), f({2}))), (V{-4}));
  EXPECT_EQ(s.Eval(Rem(i({-7, 7}), i({3, -3}))), (V{-1, 1}));
  EXPECT_EQ(s.Eval(Round(f({0.5, 1.5, 2.5, -0.5}))), (V{0, 2, 2, -0.0}));
  EXPECT_EQ(s.Eval(IsNan(Maximum(f({kNan, 1}), f({1, kNan})))), (V{1, 1}));
  EXPECT_EQ(s.Eval(IsNan(ReduceMax(f({1, kNan, 3})))), (V{1}));
  EXPECT_EQ(s.Eval(IsNan(Clamp(f({kNan}), 0, 1))), (V{1}));
  EXPECT_EQ(s.Eval(CastTo(f({2.9, -2.9, 3e9, -kInf, kNan}), DType::kI32)), (V{2, -2, 2147483647, -2147483648.0, 0}));
  EXPECT_EQ(s.Eval(CastTo(i({-1, 300}), DType::kU8)), (V{255, 44}));
  EXPECT_EQ(s.Eval(ArgMax(f({1, 3, 3}), 0)), (V{1}));
  EXPECT_EQ(s.Eval(ArgMin(f({1, kNan, kNan}), 0)), (V{1}));
  EXPECT_EQ(s.Eval(Iota(s.builder, DType::kF32, {2, 2}, -1)), (V{0, 1, 0, 1}));
}

TEST(OpsBasic, ReductionsKeepTheirSums) {
  Scene s;
  const Value big = s.Input("f16[3]", {60000, 60000, 60000}), bytes = s.Input("i8[3]", {100, 100, 100});
  EXPECT_EQ(s.Eval(ReduceMean(big)), (V{60000}));
  EXPECT_EQ(s.Eval(ReduceSum(bytes)), (V{44}));  // wraps once, when it is stored
  EXPECT_EQ(s.Eval(ReduceMax(bytes)), (V{100}));
  const Value none = s.Input("f32[2,0]");
  EXPECT_EQ(s.Eval(ReduceSum(none, {1})), (V{0, 0}));
  EXPECT_EQ(s.Eval(ReduceProd(none, {1})), (V{1, 1}));
  const Value scalar = s.Input("f32[]", {3});
  EXPECT_EQ(s.Eval(ReduceMean(scalar)), (V{3}));
  EXPECT_EQ(ReduceSum(s.Input("f32[2,3,4]"), {-1, 0}, true).dims(), (Dims{1, 3, 1}));
}

TEST(OpsBasic, RandomWordsAreThoseOfRandom123) {
  Scene s;
  const Value zero = s.Input("u32[2]", {0, 0}), key = s.Input("u32[2]", {1, 2});
  EXPECT_EQ(s.Eval(RandomBits(zero, 0, {4})), (V{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(s.Eval(RandomBits(key, 3, {2, 3})),
            (V{33417707, 1820879997, 3397453393, 1662692749, 1029380141, 2265390890}));
  const V u = s.Eval(RandomUniform(key, 3, {6})), z = s.Eval(RandomNormal(key, 0, {500}));
  EXPECT_EQ(u[0], (33417707 >> 8) / 16777216.0);
  EXPECT_NEAR(Dot(z, V(500, 1)) / 500, 0, 0.15);
  EXPECT_NEAR(Dot(z, z) / 500, 1, 0.2);
}

// ---------------------------------------------------------------- wrong uses

struct Wrong {
  const char* op;
  std::vector<const char*> operands;
  const char* attrs;
  const char* message;  // after "<op>: "
};

// clang-format off
const std::vector<Wrong>& WrongCalls() {
  static const std::vector<Wrong>& calls = *new std::vector<Wrong>{
      {"add", {"f32[2]", "i32[2]"}, "", "operands are f32[2] and i32[2], cast one of them"},
      {"add", {"f32[2]", "f32[3]"}, "", "operands are f32[2] and f32[3], broadcast one of them"},
      {"add", {"f32[2]"}, "", "1 operands given, 2 expected"},
      {"exp", {"i32[2]"}, "", "operand 0 is i32[2], expected a float type; cast it first"},
      {"bit_and", {"f32[2]", "f32[2]"}, "", "operand 0 is f32[2], expected an integer type; cast it first"},
      {"lt", {"bool[2]", "bool[2]"}, "", "operand 0 is bool[2], expected a number type; cast it first"},
      {"logical_not", {"u8[2]"}, "", "operand 0 is u8[2], expected bool; cast it first"},
      {"select", {"f32[2]", "f32[2]", "f32[2]"}, "", "operand 0 is f32[2], expected bool; cast it first"},
      {"select", {"bool[2]", "f32[2]", "f16[2]"}, "", "branches are f32[2] and f16[2], cast one of them"},
      {"select", {"bool[2]", "f32[3]", "f32[3]"}, "", "operands are bool[2], f32[3] and f32[3], broadcast them to one shape"},
      {"clamp", {"f32[2]"}, "lo = 2, hi = 1", "lo is 2 and hi is 1, expected lo <= hi"},
      {"clamp", {"u8[2]"}, "lo = -1, hi = 1", "bound -1 is not a value of u8"},
      {"reshape", {"f32[2,3]"}, "shape = [4]", "f32[2,3] has 6 elements, shape = [4] has 4"},
      {"reshape", {"f32[2,3]"}, "shape = [-1, 6]", "shape[0] is -1, expected 0 or more"},
      {"transpose", {"f32[2,3]"}, "perm = [0, 0]", "perm = [0, 0] does not name each axis of f32[2,3] once"},
      {"broadcast", {"f32[2,3]"}, "shape = [2, 4]", "axis 1 of f32[2,3] does not broadcast to axis 1 of [2, 4]"},
      {"broadcast", {"f32[2,3]"}, "shape = [3]", "f32[2,3] has more axes than shape = [3]"},
      {"broadcast", {"f32[2,3]"}, "shape = [2, 3], axes = [1]", "axes = [1] has 1 numbers, f32[2,3] has 2 axes"},
      {"broadcast", {"f32[2,3]"}, "shape = [3, 2], axes = [1, 0]", "axes = [1, 0] must increase and lie in 0 to 1"},
      {"broadcast", {"f32[]"}, "shape = [1099511627776, 1099511627776]", "shape = [1099511627776, 1099511627776] is too large"},
      {"slice", {"f32[4]"}, "start = [1], limit = [5]", "axis 0 is cut from 1 to 5, but f32[4] has 4 there"},
      {"slice", {"f32[4]"}, "start = [3], limit = [2]", "axis 0 is cut from 3 to 2, but f32[4] has 4 there"},
      {"slice", {"f32[4]"}, "start = [1, 0], limit = [3]", "start = [1, 0] has 2 numbers, expected 1"},
      {"slice", {"f32[4]"}, "start = [1], limit = [3], stride = [0]", "stride[0] is 0, expected 1 or more"},
      {"pad", {"i32[4]"}, "low = [1], high = [0], value = 0.5", "value 0.5 is not a value of i32"},
      {"pad", {"f32[4]"}, "low = [-5], high = [0]", "axis 0 of f32[4] is padded by -5 and 0, which leaves less than nothing"},
      {"pad", {"f32[4,4]"}, "low = [1099511627776, 1099511627776], high = [0, 0]", "padded shape = [1099511627780, 1099511627780] is too large"},
      {"concat", {"f32[2,3]", "f32[3,3]"}, "axis = 1", "operands are f32[2,3] and f32[3,3], which differ not only in axis 1"},
      {"concat", {"f32[2,3]", "f32[2]"}, "axis = 0", "operands are f32[2,3] and f32[2], expected one rank"},
      {"concat", {"f32[2]", "u8[2]"}, "axis = 0", "operands are f32[2] and u8[2], cast one of them"},
      {"reduce_max", {"f32[2,0]"}, "axes = [1]", "axis 1 of f32[2,0] is empty, expected at least one element"},
      {"reduce_mean", {"i32[2]"}, "", "operand 0 is i32[2], expected a float type; cast it first"},
      {"reduce_sum", {"f32[2,3]"}, "axes = [2]", "axes is 2, expected -2 to 1"},
      {"reduce_sum", {"f32[2,3]"}, "axes = [1, -1]", "axes = [1, -1] names axis 1 twice"},
      {"argmax", {"f32[]"}, "axis = 0", "axis is 0, but a scalar has no axes"},
      {"argmin", {"f32[0]"}, "axis = 0", "axis 0 of f32[0] is empty, expected at least one element"},
      {"gradient", {"f32[2]", "f32[2]"}, "", "the loss is f32[2], expected a float scalar; reduce it first"},
      {"gradient", {"f32[]", "i32[2]"}, "", "the gradient with respect to i32[2] is asked for, expected a float type"},
      {"get", {"f32[2]"}, "index = 0", "operand 0 is f32[2], expected a tuple"},
      {"random_bits", {"u32[3]"}, "stream = 0, shape = [4]", "the key is u32[3], expected u32[2]"},
      {"random_bits", {"u32[2]"}, "stream = -1, shape = [4]", "stream is -1, expected 0 to 4294967295"},
      {"random_normal", {"u32[2]"}, "stream = 0, shape = [8589934593]", "shape has 8589934593 elements, one stream gives 8589934592"},
      {"iota", {}, "dtype = i32, shape = [2], axis = 1", "axis is 1, expected -1 to 0"},
      {"iota", {}, "dtype = bool, shape = [2]", "dtype is bool, expected a number type"},
      {"input", {}, "", "is declared with its type, it cannot be called"},
  };
  return calls;
}
// clang-format on

TEST(OpsBasic, WrongCallsSayWhatIsWrong) {
  for (const Wrong& wrong : WrongCalls()) {
    Scene s;
    std::vector<Value> operands;
    for (const char* type : wrong.operands) operands.push_back(s.Input(type));
    const absl::StatusOr<std::vector<Attr>> attrs = ParseAttrs(*FindOp(wrong.op), wrong.attrs);
    ASSERT_TRUE(attrs.ok()) << wrong.op << ": " << attrs.status();
    EXPECT_FALSE(Emit(s.builder, wrong.op, operands, *attrs, Loc{}).valid()) << wrong.op << " " << wrong.attrs;
    EXPECT_EQ(s.Error(), absl::StrCat("error: ", wrong.op, ": ", wrong.message));
  }
}

// What the C++ functions refuse before an op is made.
TEST(OpsBasic, WrongArgumentsSayWhatIsWrong) {
  const auto error = [](auto&& build) {
    Scene s;
    const Value v = build(s, s.Input("f32[2,3]"));
    EXPECT_FALSE(v.valid());
    const std::string message = s.Error();
    return message.substr(message.find("error: ") + 7);
  };
  EXPECT_EQ(error([](Scene& s, Value x) { return Where(s.Input("bool[2]"), x, x); }),
            "select: shapes do not broadcast (bool[2], f32[2,3] and f32[2,3])");
  EXPECT_EQ(error([](Scene&, Value x) {
              return Reshape(x, {4, -1});
            }),
            "reshape: f32[2,3] has 6 elements, which shape = [4, -1] does not divide");
  EXPECT_EQ(error([](Scene&, Value x) { return Squeeze(x, {0}); }),
            "reshape: axis 0 of f32[2,3] is not of size 1 and cannot go");
  EXPECT_EQ(error([](Scene&, Value x) { return ExpandDims(x, {5}); }), "reshape: axes [5] cannot be put into f32[2,3]");
  EXPECT_EQ(error([](Scene& s, Value) { return T(s.Input("f32[2]")); }), "transpose: f32[2] has no two axes to swap");
  EXPECT_EQ(error([](Scene&, Value x) { return SumTo(x, {4}); }), "reduce_sum: f32[2,3] is not broadcast from [4]");
  EXPECT_EQ(error([](Scene& s, Value) {
              return Full(s.builder, {DType::kI32, {2}}, 0.5);
            }),
            "constant: 0.5 is not a value of i32");
  EXPECT_EQ(error([](Scene& s, Value) {
              return Constant(s.builder, {DType::kI32, {2}}, nullptr);
            }),
            "constant: no elements given");
}

}  // namespace
}  // namespace agc
