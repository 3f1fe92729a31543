// A graph under construction with its inputs, and an evaluator so small that it can be trusted: every operand is
// materialised and `at` is asked element by element, so that indices and guards are numbers.
//   Scene s;
//   Value x = s.Input("f32[2]", {1, 2});
//   s.Eval(x * x) == {1, 4}
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/program.h"
#include "ir/text/text.h"

namespace agc {

using Data = std::vector<Scalar>;

class Machine : public AtContext {
 public:
  Machine(Graph& graph, std::vector<Data> inputs) : graph_(graph), inputs_(std::move(inputs)) {}

  const Data& Value(OpId id, int part = 0) {
    if (values_.size() <= id.index) values_.resize(id.index + 1);
    if (values_[id.index].empty()) {
      std::vector<Data> parts = Compute(id);
      if (values_.size() <= id.index) values_.resize(id.index + 1);
      values_[id.index] = std::move(parts);
    }
    return values_[id.index][part];
  }

  Expr Read(const Op& op, int operand, Index index) override {
    const OpId from = op.operands[operand];
    const Dims dims = graph_.op(from).type().dims;
    int64_t e = 0;
    for (size_t k = 0; k < dims.size(); ++k) {
      const int64_t i = Number(index[k]).i();
      EXPECT_TRUE(i >= 0 && i < dims[k]) << op.def->name << " reads " << i << " of " << dims[k];
      e = e * dims[k] + i;
    }
    return index_pool_->Const(Value(from).at(e));
  }

  std::vector<Expr> Reduce(const Op&, const Combiner& combiner, absl::Span<const int64_t> extents,
                           absl::FunctionRef<std::vector<Expr>(Index)> body) override {
    std::vector<Expr> state;
    int64_t count = 1;
    for (int64_t n : extents) count *= n;
    for (int64_t e = 0; e < count; ++e) {
      const std::vector<Expr> next = body(At(e, Dims(extents.begin(), extents.end())));
      if (state.empty()) {
        for (size_t c = 0; c < next.size(); ++c) {
          state.push_back(index_pool_->Const(combiner.identity(static_cast<int>(c), next[c].dtype())));
        }
      }
      std::vector<Expr> merged(next.size());
      combiner.merge(state, next, absl::MakeSpan(merged));
      for (size_t c = 0; c < next.size(); ++c) state[c] = index_pool_->Const(Number(merged[c]));
    }
    if (count == 0) state = {index_pool_->Const(combiner.identity(0, empty_))};
    return state;
  }

  Expr Guard(Expr cond, absl::FunctionRef<Expr()> then, Expr otherwise) override {
    return Number(cond).i() != 0 ? then() : otherwise;
  }

 private:
  std::vector<Expr> At(int64_t e, const Dims& dims) {
    std::vector<Expr> index(dims.size());
    for (size_t k = dims.size(); k-- > 0;) {
      index[k] = index_pool_->Int(e % dims[k]);
      e /= dims[k];
    }
    return index;
  }

  std::vector<Data> Compute(OpId id) {
    const Op op = graph_.op(id);
    if (op.def == &InputOp()) return {inputs_.at(id.index)};
    if (op.def == &GetOp()) return {Value(op.operands[0], static_cast<int>(AttrReader{op.attrs}.integer("index")))};
    if (op.def == &ConstantOp()) {
      Data all;
      for (int64_t e = 0; e < op.type().elements(); ++e) all.push_back(AttrReader{op.attrs}.literal("value")->at(e));
      return {all};
    }
    if (op.def->decompose != nullptr) {
      Builder builder{.graph = &graph_};
      Rule rule(builder, op);
      const agc::Value v = op.def->decompose(rule);
      EXPECT_TRUE(builder.status().ok()) << builder.status();
      return {Value(v.id)};
    }
    std::vector<Data> parts(op.types.size());
    empty_ = AccumulatorOf(op.type().dtype);
    for (size_t part = 0; part < parts.size(); ++part) {
      for (int64_t e = 0; e < op.types[part].elements(); ++e) {
        ExprPool pool;
        ExprPool* outer = std::exchange(index_pool_, &pool);
        agc::At at(graph_, op, static_cast<int>(part), pool, *this);
        parts[part].push_back(Number(op.def->at(at, At(e, op.types[part].dims))));
        EXPECT_EQ(parts[part].back().dtype, op.types[part].dtype) << op.def->name;
        index_pool_ = outer;
      }
    }
    return parts;
  }

  // The value of an expression without variables.
  Scalar Number(Expr e) {
    const ExprNode n = e.node();
    std::vector<Scalar> x;
    for (size_t k = 0; k < n.args.size(); ++k) x.push_back(Number(e.arg(static_cast<int>(k))));
    switch (n.kind) {
      case ExprKind::kConst:
        return {n.dtype, static_cast<uint64_t>(n.payload)};
      case ExprKind::kAlu:
        return Apply(ScalarOps()[n.ref], x);
      case ExprKind::kCast:
        return Convert(x[0], n.dtype);
      case ExprKind::kAnd: {
        int64_t all = 1;
        for (Scalar s : x) all &= s.i();
        return Scalar::Int(DType::kBool, all);
      }
      default:
        ADD_FAILURE() << "an index did not fold to a number";
        return {};
    }
  }

  Graph& graph_;
  std::vector<Data> inputs_;
  std::vector<std::vector<Data>> values_ = {};
  ExprPool* index_pool_ = nullptr;
  DType empty_ = DType::kF32;
};

inline Data Numbers(DType dtype, std::vector<double> values) {
  Data out;
  for (double v : values) out.push_back(Scalar::Of(dtype, v));
  return out;
}
inline std::vector<double> Doubles(const Data& data) {
  std::vector<double> out;
  for (Scalar s : data) out.push_back(s.AsDouble());
  return out;
}

// A graph under construction with its inputs.
struct Scene {
  Program program = {};
  Builder builder = {};
  std::vector<Data> inputs = {};
  Scene() {
    program.graphs.emplace_back();
    program.graphs[0].name = "g";
    builder = {.program = &program, .graph = &program.graphs[0]};
  }
  Graph& graph() { return program.graphs[0]; }
  Value Input(TensorType type, std::vector<double> values = {}) {
    if (values.empty() && type.elements() < 1000) values.resize(type.elements());
    inputs.resize(graph().ops.size() + 1);
    inputs.back() = Numbers(type.dtype, values);
    const std::string name = "x" + std::to_string(graph().params.size());
    return {&builder, AppendInput(graph(), ParamKind::kInput, name, type, Loc{}), 0, false};
  }
  Value Input(absl::string_view type, std::vector<double> values = {}) {
    return Input(*ParseType(type), std::move(values));
  }
  std::vector<double> Eval(Value v) {
    EXPECT_TRUE(builder.status().ok()) << builder.status();
    if (!v.valid()) return {};
    return Doubles(Machine(graph(), inputs).Value(v.id));
  }
  std::string Error() { return std::string(builder.status().message()); }
};

}  // namespace agc
