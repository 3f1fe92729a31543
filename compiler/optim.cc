#include "compiler/optim.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"

namespace agc::optim {
namespace {

// Calls `step` with every trainable state the graph reads, in declaration order, and its gradient.
void ForEachWeight(Tensor loss, Tensor lr, Loc loc, absl::FunctionRef<void(const StateDef&, Tensor w, Tensor g)> step) {
  if (!loss.valid()) return;
  Builder& b = *loss.builder;
  if (!lr.valid()) {
    if (!lr.poison) Poison(b, loc, "optimiser: the learning rate is missing, give lr a tensor of type f32[]");
    return;
  }
  if (loss.rank() != 0) {
    Poison(b, loc,
           absl::StrCat("optimiser: the loss is ", ToString(loss.type()), ", expected a scalar; reduce it first"));
    return;
  }
  const std::vector<StateDef> states = b.program->states;  // `step` declares more
  bool any = false;
  for (const StateDef& s : states) {
    const OpId read = b.graph->FindState(s.name);
    if (!s.trainable || !read.valid()) continue;
    any = true;
    const Tensor w{&b, read, b.generation, false};
    step(s, w, Gradient(loss, w, loc));
  }
  if (!any) Poison(b, loc, absl::StrCat("optimiser: graph @", b.graph->name, " reads no trainable state"));
}

Tensor Broadcasted(Tensor scalar, Tensor like, Loc loc) {
  return Broadcast(scalar, {like.dims().begin(), like.dims().end()}, loc);
}

}  // namespace

void Sgd::Minimize(Tensor loss, Loc loc) const {
  ForEachWeight(loss, options_.lr, loc, [&](const StateDef& s, Tensor w, Tensor g) {
    Tensor direction = g;
    if (options_.momentum != 0) {
      const std::string name = absl::StrCat(s.name, ".velocity");
      const Tensor v = State(w, name, s.type, {}, false, loc);
      direction = Add(Mul(v, ScalarLike(v, options_.momentum, loc), loc), g, loc);
      Update(w, name, direction, loc);
    }
    Update(w, s.name, Sub(w, Mul(direction, Broadcasted(options_.lr, w, loc), loc), loc), loc);
  });
}

void Adam::Minimize(Tensor loss, Loc loc) const {
  if (!loss.valid()) return;
  Builder& b = *loss.builder;
  const Tensor step = State(b, "adam.step", {DType::kI32, {}}, {}, false, loc);
  const Tensor next = Add(step, ScalarLike(step, 1, loc), loc);
  const Tensor t = CastTo(next, DType::kF32, loc);
  const auto correction = [&](double beta) { return 1.0 - Pow(ScalarLike(t, beta, loc), t, loc); };
  const Tensor c1 = correction(options_.beta1), c2 = correction(options_.beta2);
  ForEachWeight(loss, options_.lr, loc, [&](const StateDef& s, Tensor w, Tensor g) {
    const auto moment = [&](absl::string_view suffix, double beta, Tensor x) {
      const std::string name = absl::StrCat(s.name, suffix);
      const Tensor old = State(w, name, s.type, {}, false, loc);
      const Tensor now = Add(Mul(old, ScalarLike(old, beta, loc), loc), Mul(x, ScalarLike(x, 1 - beta, loc), loc), loc);
      Update(w, name, now, loc);
      return now;
    };
    const Tensor m = moment(".adam_m", options_.beta1, g), v = moment(".adam_v", options_.beta2, Mul(g, g, loc));
    const Tensor unbiased = DivOf(m, Broadcasted(c1, w, loc), loc);
    const Tensor scale =
        Add(Sqrt(DivOf(v, Broadcasted(c2, w, loc), loc), loc), ScalarLike(v, options_.epsilon, loc), loc);
    Update(w, s.name, Sub(w, Mul(Broadcasted(options_.lr, w, loc), DivOf(unbiased, scale, loc), loc), loc), loc);
  });
  Update(loss, "adam.step", next, loc);
}

}  // namespace agc::optim
