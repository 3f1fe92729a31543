// ai.onnx.preview.training: gradients, and the updates of optimisers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/grad.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"

namespace agc::onnx {
namespace {

// Of y, with cotangents of 1, with respect to the values that xs names.
void GradientOp(Call& c) {
  const std::vector<std::string> xs = c.texts("xs"), zs = c.texts("zs");
  const std::string y = c.text("y");
  std::vector<Value> at;
  for (size_t k = 0; k < xs.size() + zs.size() && c.ok(); ++k) {
    const std::string& name = k < xs.size() ? xs[k] : zs[k - xs.size()];
    if (static_cast<int>(k) >= c.inputs() || c.node().inputs[k] != name) {
      return void(
          c.Fail(absl::StrCat("operand ", k, " is not '", name, "': gradients at other values are not supported")));
    }
    const Value x = c.in(static_cast<int>(k));
    if (k < xs.size()) at.push_back(x);
  }
  const Item value = c.Lookup(y);
  if (!c.ok()) return;
  if (value.kind != Item::kTensor) return void(c.Fail(absl::StrCat("'", y, "' is no tensor")));
  const Tensors grads = Vjp(std::vector<Value>{value.tensor}, at, std::vector<Value>{FullLike(value.tensor, 1)});
  for (size_t k = 0; k < grads.size(); ++k) c.out(grads[k], static_cast<int>(k));
}

// Operands are the rate, the step, then `lists` of n tensors each.
struct Lists {
  Value rate = {}, step = {};
  std::vector<std::vector<Value>> all = {};
  int n = 0;
};
Lists ListsOf(Call& c, int lists) {
  Lists l{c.in(0), c.in(1), {}, (c.inputs() - 2) / lists};
  if (c.ok() && l.n * lists != c.inputs() - 2)
    c.Fail(absl::StrCat(c.inputs() - 2, " operands are not ", lists, " lists"));
  for (int k = 0; k < lists; ++k) {
    l.all.emplace_back();
    for (int i = 0; i < l.n; ++i) l.all.back().push_back(c.in(2 + k * l.n + i));
  }
  return l;
}

Value StepIn(const Lists& l) { return CastTo(l.step, l.rate.dtype()); }

void Adagrad(Call& c) {
  const Lists l = ListsOf(c, 3);
  const double decay = c.number("decay_factor", 0), epsilon = c.number("epsilon", 1e-6),
               norm = c.number("norm_coefficient", 0);
  if (!c.ok()) return;
  const Value rate = DivOf(l.rate, StepIn(l) * decay + 1.0);
  for (int k = 0; k < l.n; ++k) {
    const Value x = l.all[0][k], g = x * norm + l.all[1][k], h = l.all[2][k] + Square(g);
    c.out(x - rate * g / (Sqrt(h) + epsilon), k);
    c.out(h, l.n + k);
  }
}

void Adam(Call& c) {
  const Lists l = ListsOf(c, 4);
  const double alpha = c.number("alpha", 0.9), beta = c.number("beta", 0.999), epsilon = c.number("epsilon", 1e-6);
  const double norm = c.number("norm_coefficient", 0), after = c.number("norm_coefficient_post", 0);
  if (!c.ok()) return;
  const Value t = StepIn(l), first = Equal(t, FullLike(t, 0));
  const Value corrected = l.rate * Sqrt(1.0 - Pow(FullLike(t, beta), t)) / (1.0 - Pow(FullLike(t, alpha), t));
  const Value rate = Where(first, l.rate, corrected);
  for (int k = 0; k < l.n; ++k) {
    const Value x = l.all[0][k], g = x * norm + l.all[1][k];
    const Value v = l.all[2][k] * alpha + g * (1 - alpha), h = l.all[3][k] * beta + Square(g) * (1 - beta);
    c.out((x - rate * v / (Sqrt(h) + epsilon)) * (1 - after), k);
    c.out(v, l.n + k);
    c.out(h, 2 * l.n + k);
  }
}

void Momentum(Call& c) {
  const Lists l = ListsOf(c, 3);
  const double alpha = c.number("alpha"), beta = c.number("beta"), norm = c.number("norm_coefficient");
  const bool nesterov = c.choice("mode", {"standard", "nesterov"}, "standard") == 1;
  if (!c.ok()) return;
  const Value t = StepIn(l), scale = Where(Equal(t, FullLike(t, 0)), FullLike(t, 1), FullLike(t, beta));
  for (int k = 0; k < l.n; ++k) {
    const Value x = l.all[0][k], g = x * norm + l.all[1][k], v = l.all[2][k] * alpha + scale * g;
    c.out(x - l.rate * (nesterov ? g + v * alpha : v), k);
    c.out(v, l.n + k);
  }
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Adagrad", 1, Adagrad}, {"Adam", 1, Adam}, {"Gradient", 1, GradientOp, "at other values than those that were computed with"},
    {"Momentum", 1, Momentum},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kTrainingOps(kRows);

}  // namespace agc::onnx
