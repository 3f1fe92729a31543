// Random graphs that train: values stay bounded, states are read and updated, outputs of several shapes. Made of ops
// that round alike everywhere (`exact`: no reductions, contractions or transcendental functions), or of all kinds.
//   Program p = RandomGraphs(/*graphs=*/6, /*exact=*/false, /*seed=*/1);
#pragma once
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "gtest/gtest.h"

namespace agc::test {

class RandomGraph {
 public:
  RandomGraph(Trace& t, std::mt19937& random, bool exact) : t_(t), random_(random), exact_(exact) {}

  void Build(int ops) {
    for (const char* name : {"x", "y"}) square_.push_back(t_.Input(name, kF32, {kSize, kSize}));
    for (const char* name : {"s0", "s1", "s2"}) square_.push_back(t_.State(name, {kF32, {kSize, kSize}}));
    row_ = {t_.Input("r", kF32, {kSize})};
    for (int i = 0; i < ops; ++i) Add();
    t_.Output("last", square_.back());
    t_.Output("some", Pick(square_));
    t_.Output("row", row_.back());
    if (!exact_) Differentiate();
    for (const char* name : {"s0", "s1", "s2"}) {
      if (Below(4) != 0) t_.Update(name, Pick(square_));
    }
  }

 private:
  static constexpr int64_t kSize = 6;
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  // Mostly recent ones.
  agc::Tensor Pick(const std::vector<agc::Tensor>& from) {
    const int n = static_cast<int>(from.size()), back = Below(Below(3) == 0 ? n : std::min(n, 3));
    return from[static_cast<size_t>(n - 1 - back)];
  }
  agc::Tensor Indices(agc::Tensor row) { return Cast(Round(row * 4.0), kI32); }  // some beyond both ends
  agc::Tensor Bounded(agc::Tensor x) { return Clamp(x, -2, 2); }

  // A loss of two values, and its gradients for two states and an input.
  void Differentiate() {
    const agc::Tensor loss = ReduceMean(Square(square_.back())) + ReduceSum(Pick(row_)) * 0.1;
    t_.Output("loss", loss);
    for (int i : {0, 2, 3}) t_.Output(absl::StrCat("d", i), Gradient(loss, square_[static_cast<size_t>(i)]));
  }

  void Add() {
    const agc::Tensor a = Pick(square_), b = Pick(square_), r = Pick(row_);
    const int64_t kind = Below(exact_ ? 13 : 24);
    kind < 13 ? AddExact(kind, a, b, r) : AddRounded(kind, a, b, r);
  }

  // Ops whose results do not depend on the order of sums.
  void AddExact(int64_t kind, agc::Tensor a, agc::Tensor b, agc::Tensor r) {
    switch (kind) {
      case 0:
        return square_.push_back(Bounded(a + b));
      case 1:
        return square_.push_back(a * b * 0.5);
      case 2:
        return square_.push_back(Where(Greater(a, b), a, T(b)));
      case 3:
        return square_.push_back(T(Maximum(a, b)));
      case 4: {
        const agc::Tensor top = Slice(a, {0, 1}, {2, 6}, {}), left = Slice(b, {2, 0}, {6, 5}, {});
        return square_.push_back(Concat({Pad(top, 0.25, {0, 0}, {0, 1}), Pad(left, 0, {0, 1}, {0, 0})}, 0));
      }
      case 5:
        return square_.push_back(Bounded(a - r));
      case 6:
        return row_.push_back(Reshape(Slice(Minimum(a, b), {Below(6), 0}, {6, 6}, {6, 1}), {kSize}));
      case 7:
        return square_.push_back(Reshape(T(Reshape(a, {4, 9})), {kSize, kSize}));
      case 8:
        return row_.push_back(Abs(r) + Pick(row_) * 0.25 - 1.0);
      case 9:
        return square_.push_back(Take(a, Indices(r), Below(2)) + Take(r, Indices(Pick(row_))));
      case 10:
        return square_.push_back(Cast(Cast(a * 8.0, kI32) * Cast(b * 8.0, kI32) - 3.0, kF32) * 0.0625);
      case 11: {
        const agc::Tensor low = LessEqual(a, T(b)), even = Equal(Rem(t_.Iota(kI32, kSize), 2.0), 0.0);
        return square_.push_back(Where(LogicalAnd(low, LogicalNot(even)), Round(a), Bounded(b + 0.5)));
      }
      default:
        return row_.push_back(
            Reshape(ReduceMax(MaxPool2d(Reshape(a, {1, 1, 6, 6}), {.window = {2, 1}}), {0, 1, 2}), {kSize}));
    }
  }

  void AddRounded(int64_t kind, agc::Tensor a, agc::Tensor b, agc::Tensor r) {
    switch (kind) {
      case 13:
        return square_.push_back(Matmul(a, b) * 0.2);
      case 14:
        return square_.push_back(Softmax(a + r, Below(2)));
      case 15:
        return row_.push_back(ReduceSum(a, {Below(2)}) * 0.25);
      case 16:
        return square_.push_back(Tanh(a) + ReduceMax(b, {1}, true) * 0.1);
      case 17:
        return square_.push_back(LayerNorm(a, r, Pick(row_)) * 0.5);
      case 18: {
        const agc::Tensor w = Reshape(Slice(b, {0, 0}, {3, 6}, {}), {2, 1, 3, 3});
        const agc::Tensor y = Conv2d(Reshape(a, {1, 1, 6, 6}), w, {.stride = {1, 2}, .pad = {1, 1, 1, 1}});
        return square_.push_back(Bounded(Reshape(y, {kSize, kSize}) * 0.3));
      }
      case 19:
        return square_.push_back(OneHot(Indices(r), kSize, kF32) * 0.5 +
                                 Cast(OneHot(ArgMax(a, Below(2)), kSize, kI32), kF32));
      case 20: {
        const agc::Tensor p =
            AvgPool2d(Reshape(a, {1, 1, 6, 6}), {.window = {3, 3}, .stride = {1, 1}, .pad = {1, 1, 1, 1}});
        return square_.push_back(Reshape(p, {kSize, kSize}));
      }
      case 21:
        return row_.push_back(LogSumExp(a - b, Below(2)) * 0.3);
      case 22:
        return row_.push_back(ExpandDims(ReduceMean(Square(a - ReduceMean(a))), {0}) * r);
      default:
        return row_.push_back(ReduceMean(Sigmoid(a) * b, {0}));
    }
  }

  Trace& t_;
  std::mt19937& random_;
  const bool exact_;
  std::vector<agc::Tensor> square_ = {}, row_ = {};
};

inline Program RandomGraphs(int graphs, bool exact, uint32_t seed) {
  std::mt19937 random(seed);
  Module m("random");
  for (int g = 0; g < graphs; ++g) {
    m.Graph(absl::StrCat("g", g), [&](Trace& t) { RandomGraph(t, random, exact).Build(14); });
  }
  EXPECT_TRUE(m.status().ok()) << m.status();
  return Clone(m.program());
}

}  // namespace agc::test
