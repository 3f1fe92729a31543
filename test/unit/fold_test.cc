// Constant folding: every op of the table on constant operands becomes the constant that the evaluator computes, bit
// for bit; and random graphs keep their meaning through the passes that rewrite graphs.
#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/build.h"
#include "ir/eval/graph_eval.h"
#include "ir/op_def.h"
#include "ir/text/text.h"
#include "passes/equivalence.h"
#include "passes/manager.h"

namespace agc {
namespace {

LiteralPtr RandomLiteral(const TensorType& type, double lo, double hi, std::mt19937_64& rng) {
  auto literal = std::make_shared<Literal>();
  literal->splat = false;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double u = std::generate_canonical<double, 53>(rng);
    literal->values.push_back(
        Scalar::Of(type.dtype, IsFloat(type.dtype) ? lo + u * (hi - lo) : std::floor(lo + u * (hi - lo + 1))));
  }
  return literal;
}

// The op on constants of its sample; outputs are its value, or the elements of its tuple.
Program OnConstants(const OpDef& def) {
  Program program;
  program.graphs.emplace_back();
  program.graphs[0].name = "f";
  Builder b{.program = &program, .graph = &program.graphs[0]};
  std::mt19937_64 rng(1);
  std::vector<Value> x;
  for (int k = 0; k < 4; ++k) {
    const absl::string_view shape = def.sample.shapes[k];
    if (shape.empty() && k >= def.arity.min) break;
    const TensorType type = shape.empty() ? TensorType{DType::kF32, {2, 3}} : *ParseType(shape);
    x.push_back(Constant(b, type, RandomLiteral(type, def.sample.lo, def.sample.hi, rng)));
  }
  const Value y = Emit(b, def.name, x, *ParseAttrs(def, def.sample.attrs), {});
  EXPECT_TRUE(b.errors.empty()) << b.status();
  const size_t parts = program.graphs[0].op(y.id).types.size();
  for (size_t k = 0; k < parts; ++k) {
    const Value v = parts == 1 ? y : Get(y, static_cast<int64_t>(k));
    program.graphs[0].outputs.push_back({.name = absl::StrCat("y", k), .type = v.type(), .value = v.id});
  }
  return program;
}

class EveryOp : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EveryOp, FoldsToWhatTheEvaluatorSays) {
  const OpDef& def = *GetParam();
  Program program = OnConstants(def);
  const auto before = EvaluateGraph(program, program.graphs[0], {}, EvalMode::kExact);
  ASSERT_TRUE(before.ok()) << before.status();
  PassContext context;
  const absl::Status s = RunPipeline(program, {"canonicalize", "dce"}, context);
  ASSERT_TRUE(s.ok()) << s;
  const auto after = EvaluateGraph(program, program.graphs[0], {}, EvalMode::kExact);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(before->outputs, after->outputs);
  // Data stays what it is, composites wait for decompose, tuples and views that grow are not folded.
  const Op& root = program.graphs[0].op(program.graphs[0].outputs[0].value);
  const bool folds =
      def.decompose == nullptr && def.cls != OpClass::kData && def.cls != OpClass::kView && root.def != &GetOp();
  EXPECT_TRUE(!folds || root.def == &ConstantOp()) << Print(program);
}

std::vector<const OpDef*> ComputingOps() {
  std::vector<const OpDef*> ops;
  for (const OpDef* def : AllOps()) {
    if ((def->at != nullptr || def->decompose != nullptr) && !def->numpy.empty()) ops.push_back(def);
  }
  return ops;
}

INSTANTIATE_TEST_SUITE_P(Table, EveryOp, ::testing::ValuesIn(ComputingOps()),
                         [](const ::testing::TestParamInfo<const OpDef*>& info) {
                           return std::string(info.param->name);
                         });

// ---------------------------------------------------------------- random graphs

// Grows a graph of f32 values whose extents are 1, 2 or 4, with a loss and gradients at its end.
class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : rng_(seed) {
    program_.graphs.emplace_back();
    program_.graphs[0].name = "f";
    builder_ = {.program = &program_, .graph = &program_.graphs[0]};
    for (int k = 0; k < 3; ++k) {
      const TensorType type = k == 2 ? TensorType{DType::kF32, {}} : TensorType{DType::kF32, {Pick(2) * 2 + 2, 4}};
      values_.push_back({&builder_, AppendInput(*builder_.graph, ParamKind::kInput, absl::StrCat("x", k), type, {})});
    }
  }

  Program Make(int ops, bool gradients) {
    for (int k = 0; k < ops; ++k) Grow();
    Value loss;
    for (size_t k = values_.size(); k-- > values_.size() - 3;) {
      const Value sum = ReduceSum(Tanh(values_[k]));
      loss = loss.valid() ? loss + sum : sum;
      Out(values_[k]);
    }
    Out(loss);
    if (gradients) {
      Out(Gradient(loss, values_[0]));
      Out(Gradient(loss, values_[1]));
    }
    EXPECT_TRUE(builder_.errors.empty()) << builder_.status();
    return std::move(program_);
  }

 private:
  int64_t Pick(int64_t n) { return static_cast<int64_t>(rng_() % static_cast<uint64_t>(n)); }
  Value Any() { return values_[static_cast<size_t>(Pick(static_cast<int64_t>(values_.size())))]; }
  void Out(Value v) {
    Graph& graph = *builder_.graph;
    graph.outputs.push_back({.name = absl::StrCat("y", graph.outputs.size()), .type = v.type(), .value = v.id});
  }
  // A value of the type of `x`: one that is there, or a constant that rules look for.
  Value Like(Value x) {
    for (int k = 0; k < 4; ++k) {
      const Value v = Any();
      if (v.type() == x.type()) return v;
    }
    constexpr double kNumbers[] = {0, 1, -1, 2, 0.5, -3};
    return FullLike(x, kNumbers[Pick(6)]);
  }

  Value Unary(Value x) {
    switch (Pick(8)) {
      case 0:
        return Neg(x);
      case 1:
        return Tanh(x);
      case 2:
        return Sin(x);
      case 3:
        return Abs(x);
      case 4:
        return Relu(x);
      case 5:
        return Sigmoid(x);
      case 6:
        return x * static_cast<double>(Pick(3) - 1);
      default:
        return x / static_cast<double>(Pick(3) + 1);
    }
  }
  Value Binary(Value x, Value y) {
    switch (Pick(6)) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return x * y;
      case 3:
        return Maximum(x, y);
      case 4:
        return Where(Less(x, y), x, y);
      default:
        return x + -y;
    }
  }
  Value Shape(Value x) {
    const int rank = x.rank();
    switch (Pick(6)) {
      case 0:
        return Reshape(x, {-1});
      case 1:
        return rank == 2 ? Transpose(x, {1, 0}) : x;
      case 2:
        return rank > 0 ? ReduceSum(x, {Pick(rank)}, Pick(2) == 0) : x;
      case 3:
        return rank < 2 ? Broadcast(x, rank == 0 ? Ints{4} : Ints{2, x.dim(0)}) : x;
      case 4:
        return rank == 1 ? Slice(x, {0}, {(x.dim(0) + 1) / 2}, {}) : Reshape(x, x.dims());
      default:
        return rank == 1 ? Concat({x, x}, 0) : x;
    }
  }
  void Grow() {
    const Value x = Any();
    Value y;
    switch (Pick(4)) {
      case 0:
        y = Unary(x);
        break;
      case 1:
        y = Shape(x);
        break;
      default:
        y = Binary(x, Like(x));
    }
    if (y.type().elements() <= 64) values_.push_back(y);
  }

  Program program_ = {};
  Builder builder_ = {};
  std::mt19937_64 rng_;
  std::vector<Value> values_ = {};
};

TEST(RandomGraphs, KeepTheirMeaning) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Program program = RandomGraph(seed).Make(30, /*gradients=*/false);
    const Program original = Clone(program);
    PassContext context;
    const ManagerOptions options{.check_equivalence = true, .equivalent = SameMeaning};
    const absl::Status s = RunPipeline(
        program, {"canonicalize", "cse", "dce", "rewrite", "decompose", "rewrite", "canonicalize", "cse", "dce"},
        context, options);
    ASSERT_TRUE(s.ok()) << s << "\n" << Print(original);
    const absl::Status same = SameMeaning(original, program);
    ASSERT_TRUE(same.ok()) << same << "\n" << Print(original);
  }
}

// Passes before autograd must not change the gradients.
TEST(RandomGraphs, KeepTheirGradients) {
  for (uint64_t seed = 100; seed < 140; ++seed) {
    SCOPED_TRACE(seed);
    Program plain = RandomGraph(seed).Make(20, /*gradients=*/true);
    Program cleaned = Clone(plain);
    const std::string text = Print(plain);
    PassContext context;
    ASSERT_TRUE(RunPipeline(plain, {"autograd"}, context).ok()) << text;
    const absl::Status s = RunPipeline(
        cleaned,
        {"canonicalize", "cse", "dce", "rewrite", "autograd", "decompose", "rewrite", "canonicalize", "cse", "dce"},
        context, {.check_equivalence = true, .equivalent = SameMeaning});
    ASSERT_TRUE(s.ok()) << s << "\n" << text;
    const absl::Status same = SameMeaning(plain, cleaned);
    ASSERT_TRUE(same.ok()) << same << "\n" << text;
  }
}

// A second run of the cleaning passes finds nothing.
TEST(RandomGraphs, PassesSettle) {
  for (uint64_t seed = 200; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    Program program = RandomGraph(seed).Make(30, /*gradients=*/true);
    PassContext context;
    const std::vector<std::string> passes = {"autograd", "decompose", "rewrite", "canonicalize", "cse", "dce"};
    ASSERT_TRUE(RunPipeline(program, passes, context).ok());
    ASSERT_TRUE(RunPipeline(program, {"canonicalize", "rewrite", "canonicalize", "cse", "dce"}, context).ok());
    const std::string once = Print(program);
    ASSERT_TRUE(RunPipeline(program, {"canonicalize", "rewrite", "canonicalize", "cse", "dce"}, context).ok());
    EXPECT_EQ(Print(program), once);
  }
}

}  // namespace
}  // namespace agc
