#include "compiler/optim.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"
#include "ir/combiner.h"
#include "ir/derivative.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"
#include "ir/trace.h"

namespace agc::optim {
namespace {

Tensor As(Tensor x, DType dtype, Loc loc) { return x.dtype() == dtype ? x : CastTo(x, dtype, loc); }

Tensor Broadcasted(Tensor scalar, Tensor like, Loc loc) {
  return Broadcast(As(scalar, like.dtype(), loc), {like.dims().begin(), like.dims().end()}, loc);
}

Tensor Times(Tensor x, double factor, Loc loc) { return Mul(x, ScalarLike(x, factor, loc), loc); }

// ---------------------------------------------------------------- what is trained

// A state to train. w and g, the gradient of the loss, are in the accumulator's dtype; `stored` is the state itself.
struct Weight {
  StateDef state = {};
  Tensor stored = {}, w = {}, g = {};
};

// What one call of Minimize works on. finite: with loss scaling, whether the step counts.
struct Training {
  Builder& builder;
  Tensor loss = {}, lr = {}, finite = {};
  std::string prefix = {};
  int decay_rank = 0;
  std::vector<Weight> weights = {};  // as declared, or as given
  double Decay(const Weight& v, double decay) const { return v.state.type.rank() < decay_rank ? 0 : decay; }
};

// What a gradient of `loss` can flow to: through floats, and not through ops that pass none.
std::vector<bool> ReachedFrom(const Graph& graph, OpId loss) {
  std::vector<bool> reached(graph.ops.size());
  reached[loss.index] = true;
  for (size_t i = loss.index + 1; i-- > 0;) {
    const Op& op = graph.ops[i];
    const auto is_float = [](const TensorType& t) { return IsFloat(t.dtype); };
    if (!reached[i] || op.def->vjp == NoGradient || std::none_of(op.types.begin(), op.types.end(), is_float)) continue;
    for (OpId operand : op.operands) reached[operand.index] = true;
  }
  return reached;
}

// The mistake in what is asked for, if there is one.
std::string Mistake(const Builder& b, Tensor loss, Tensor lr) {
  if (loss.rank() != 0 || !IsFloat(loss.dtype())) {
    return absl::StrCat("the loss is ", ToString(loss.type()), ", expected a float scalar; reduce it first");
  }
  if (lr.builder == nullptr && !lr.poison) return "the learning rate is missing, give lr a tensor of type f32[]";
  if (lr.builder == &b && lr.valid() && (lr.rank() != 0 || !IsFloat(lr.dtype()))) {
    return absl::StrCat("the learning rate is ", ToString(lr.type()), ", expected f32[]");
  }
  return "";
}

// Whether `given` names each state that it trains once, and the loss depends on all of them.
bool CheckGiven(Builder& b, TensorSpan given, const std::vector<bool>& reached, Loc loc) {
  const size_t errors = b.errors.size();
  if (given.empty()) Poison(b, loc, "optimiser: the list of what is to be trained is empty");
  for (size_t k = 0; k < given.size(); ++k) {
    const Tensor w = given[k];
    if (!Live(w, b, absl::StrCat("optimiser: parameter ", k), loc)) return false;
    const Op& op = b.graph->op(w.id);
    const auto same = [&](const Tensor& other) { return other.id == w.id; };
    if (op.def != &StateOp()) {
      Poison(b, loc,
             absl::StrCat("optimiser: parameter ", k, " is the value of an op ", op.def->name, ", expected a state"));
    } else if (std::any_of(given.begin(), given.begin() + static_cast<ptrdiff_t>(k), same)) {
      Poison(b, loc, absl::StrCat("optimiser: @", op.symbol, " is given twice"));
    } else if (w.id.index >= reached.size() || !reached[w.id.index]) {
      Poison(b, loc, absl::StrCat("optimiser: the loss does not depend on @", op.symbol));
    }
  }
  return b.errors.size() == errors;
}

// Of all trainable states those that the loss depends on, or the given ones; empty after a diagnostic.
std::vector<Weight> WeightsOf(Builder& b, Tensor loss, std::optional<TensorSpan> given, Loc loc) {
  const std::vector<bool> reached = ReachedFrom(*b.graph, loss.id);
  if (given.has_value() && !CheckGiven(b, *given, reached, loc)) return {};
  const std::vector<Tensor> all =
      given.has_value() ? std::vector<Tensor>(given->begin(), given->end()) : Trainable(loss, "", loc);
  std::vector<Weight> weights;
  for (const Tensor& stored : all) {
    if (stored.poison) return {};
    if (stored.id.index >= reached.size() || !reached[stored.id.index]) continue;
    const Tensor w = As(stored, AccumulatorOf(stored.dtype()), loc);
    weights.push_back({*b.program->FindState(b.graph->op(stored.id).symbol), stored, w});
  }
  if (weights.empty()) Poison(b, loc, "optimiser: the loss depends on no trainable state");
  return weights;
}

// ---------------------------------------------------------------- gradients

// Torch's clip_grad_norm_: the factor is norm / (common norm + 1e-6), at most 1. Squares are summed in f32 at least.
void ClipNorm(std::vector<Weight>& weights, double norm, Loc loc) {
  Tensor sum;
  for (const Weight& v : weights) {
    const Tensor square = As(ReduceSum(Square(v.g, loc), {}, false, loc), DType::kF32, loc);
    sum = sum.valid() ? Add(sum, square, loc) : square;
  }
  const Tensor common = Add(Sqrt(sum, loc), ScalarLike(sum, 1e-6, loc), loc);
  const Tensor factor = Minimum(DivOf(ScalarLike(common, norm, loc), common, loc), ScalarLike(common, 1, loc), loc);
  for (Weight& v : weights) v.g = Mul(v.g, Broadcasted(factor, v.g, loc), loc);
}

// The new value of a state, or the old one where the step does not count.
Tensor Counting(Tensor finite, Tensor value, Tensor old, Loc loc) {
  if (!finite.valid()) return value;
  return Where(Broadcast(finite, {value.dims().begin(), value.dims().end()}, loc), value, old, loc);
}

// Float states whose updates hold no derivative, which is what the forward pass updates, keep their values in a step
// that does not count: statistics of activations that overflowed would stay infinite.
void KeepForwardStates(Builder& b, Tensor finite, Loc loc) {
  std::vector<bool> derived(b.graph->ops.size());
  for (size_t i = 0; i < derived.size(); ++i) {
    const Op& op = b.graph->ops[i];
    derived[i] = IsDerivative(*op.def) ||
                 std::any_of(op.operands.begin(), op.operands.end(), [&](OpId x) { return derived[x.index]; });
  }
  for (struct agc::Update& u : b.graph->updates) {
    const StateDef& state = *b.program->FindState(u.state);
    if (derived[u.value.index] || !IsFloat(state.type.dtype)) continue;
    const Tensor old = State(b, u.state, state.type, state.init, state.trainable, loc);
    u.value = Counting(finite, {&b, u.value, b.generation, false}, old, loc).id;
  }
}

// Gradients of the scaled loss, unscaled; updates the scale.
void ScaledGradients(Training& t, const LossScaling& o, Loc loc) {
  const double most =
      t.loss.dtype() == DType::kF16 ? 32768 : 16777216;  // f16 holds 65504, and the scale passes the loss
  const std::string name = absl::StrCat(t.prefix, "loss_scale"), good_name = absl::StrCat(name, ".good");
  const Tensor scale =
      State(t.builder, name, {DType::kF32, {}}, {.a = std::min(o.initial, most)}, /*trainable=*/false, loc);
  const Tensor good = State(t.builder, good_name, {DType::kI32, {}}, {}, /*trainable=*/false, loc);
  const Tensor loss = As(t.loss, AccumulatorOf(t.loss.dtype()), loc),
               scaled = Mul(loss, As(scale, loss.dtype(), loc), loc);
  for (Weight& v : t.weights) {
    v.g = DivOf(As(Gradient(scaled, v.stored, loc), v.w.dtype(), loc), Broadcasted(scale, v.w, loc), loc);
    const Tensor all = ReduceAll(IsFinite(v.g, loc), {}, false, loc);
    t.finite = t.finite.valid() ? LogicalAnd(t.finite, all, loc) : all;
  }
  KeepForwardStates(t.builder, t.finite, loc);
  const Tensor next = Add(good, ScalarLike(good, 1, loc), loc);
  const Tensor full = GreaterEqual(next, ScalarLike(good, static_cast<double>(o.growth_every), loc), loc);
  const Tensor grown = Where(full, Times(scale, 2, loc), scale, loc);
  Update(t.builder, name, Clamp(Where(t.finite, grown, Times(scale, 0.5, loc), loc), 1, most, loc), loc);
  Update(t.builder, good_name,
         Where(LogicalAnd(t.finite, LogicalNot(full, loc), loc), next, FullLike(good, 0, loc), loc), loc);
}

// The states to train with their gradients, clipped; where `decay` is not 0, decay * w is added to them. None after a
// diagnostic.
template <typename Options>
std::optional<Training> Prepare(Tensor loss, std::optional<TensorSpan> given, const Options& o, double decay, Loc loc) {
  Builder* b = Live(loss, "optimiser: the loss", loc);
  if (b == nullptr) return std::nullopt;
  if (const std::string mistake = Mistake(*b, loss, o.lr); !mistake.empty()) {
    Poison(*b, loc, absl::StrCat("optimiser: ", mistake));
    return std::nullopt;
  }
  if (!Live(o.lr, *b, "optimiser: the learning rate", loc)) return std::nullopt;
  Training t{.builder = *b, .loss = loss, .lr = o.lr, .prefix = o.prefix, .decay_rank = o.decay_rank};
  t.weights = WeightsOf(*b, loss, given, loc);
  if (t.weights.empty()) return std::nullopt;
  if (o.scaling.initial > 0) {
    ScaledGradients(t, o.scaling, loc);
  } else {
    for (Weight& v : t.weights) v.g = As(Gradient(loss, v.stored, loc), v.w.dtype(), loc);
  }
  for (Weight& v : t.weights) {
    if (o.clip.value > 0) v.g = Clamp(v.g, -o.clip.value, o.clip.value, loc);
  }
  if (o.clip.norm > 0) ClipNorm(t.weights, o.clip.norm, loc);
  for (Weight& v : t.weights) {
    if (const double d = t.Decay(v, decay); d != 0) v.g = Add(v.g, Times(v.w, d, loc), loc);
  }
  return t;
}

// ---------------------------------------------------------------- steps

// A state `<prefix><w><suffix>`, of the weight's shape, and its update.
Tensor Moment(const Training& t, const Weight& v, absl::string_view suffix, double initial, Loc loc) {
  const TensorType type{v.w.dtype(), v.state.type.dims};
  return State(t.builder, absl::StrCat(t.prefix, v.state.name, suffix), type, {.a = initial}, /*trainable=*/false, loc);
}
void PutMoment(const Training& t, const Weight& v, absl::string_view suffix, Tensor old, Tensor value, Loc loc) {
  Update(t.builder, absl::StrCat(t.prefix, v.state.name, suffix), Counting(t.finite, value, old, loc), loc);
}

// A moment that moves to decay * moment + share * x.
Tensor Moving(const Training& t, const Weight& v, absl::string_view suffix, double decay, double share, Tensor x,
              Loc loc, double initial = 0) {
  const Tensor old = Moment(t, v, suffix, initial, loc);
  const Tensor now = Add(decay == 1 ? old : Times(old, decay, loc), share == 1 ? x : Times(x, share, loc), loc);
  PutMoment(t, v, suffix, old, now, loc);
  return now;
}

// w' = w - lr * direction.
void Descend(const Training& t, const Weight& v, Tensor direction, Loc loc) {
  const Tensor next = Sub(v.w, Mul(direction, Broadcasted(t.lr, v.w, loc), loc), loc);
  Update(t.builder, v.state.name, Counting(t.finite, As(next, v.stored.dtype(), loc), v.stored, loc), loc);
}

// g / (sqrt(square) + epsilon)
Tensor Scaled(Tensor g, Tensor square, double epsilon, Loc loc) {
  return DivOf(g, Add(Sqrt(square, loc), ScalarLike(square, epsilon, loc), loc), loc);
}

// `decoupled` is AdamW's decay.
void TrainAdam(Tensor loss, std::optional<TensorSpan> given, const AdamOptions& o, double decoupled, Loc loc) {
  const std::optional<Training> t = Prepare(loss, given, o, o.weight_decay, loc);
  if (!t.has_value()) return;
  const std::string name = absl::StrCat(o.prefix, "adam.step");
  const Tensor step = State(t->builder, name, {DType::kI32, {}}, {}, /*trainable=*/false, loc);
  const Tensor next = Add(step, ScalarLike(step, 1, loc), loc);
  for (const Weight& v : t->weights) {
    // By 1 - beta^n: with a beta near 1 the power would leave few digits, those of beta as f32 at most.
    const auto unbiased = [&](Tensor moment, double beta) {
      const Tensor n = CastTo(next, v.w.dtype(), loc);
      const Tensor correction = Neg(Expm1(Times(n, std::log(beta), loc), loc), loc);
      return DivOf(moment, Broadcasted(correction, v.w, loc), loc);
    };
    const Tensor mean = Moving(*t, v, ".adam_m", o.beta1, 1 - o.beta1, v.g, loc);
    const Tensor square = Moving(*t, v, ".adam_v", o.beta2, 1 - o.beta2, Mul(v.g, v.g, loc), loc);
    Tensor direction = Scaled(unbiased(mean, o.beta1), unbiased(square, o.beta2), o.epsilon, loc);
    if (const double d = t->Decay(v, decoupled); d != 0) direction = Add(direction, Times(v.w, d, loc), loc);
    Descend(*t, v, direction, loc);
  }
  Update(t->builder, name, Counting(t->finite, next, step, loc), loc);
}

void Train(Tensor loss, std::optional<TensorSpan> given, const AdamOptions& o, Loc loc) {
  TrainAdam(loss, given, o, 0, loc);
}

void Train(Tensor loss, std::optional<TensorSpan> given, const AdamWOptions& o, Loc loc) {
  const AdamOptions adam{.lr = o.lr,
                         .beta1 = o.beta1,
                         .beta2 = o.beta2,
                         .epsilon = o.epsilon,
                         .clip = o.clip,
                         .scaling = o.scaling,
                         .decay_rank = o.decay_rank,
                         .prefix = o.prefix};
  TrainAdam(loss, given, adam, o.weight_decay, loc);
}

void Train(Tensor loss, std::optional<TensorSpan> given, const SgdOptions& o, Loc loc) {
  const std::optional<Training> t = Prepare(loss, given, o, o.weight_decay, loc);
  if (!t.has_value()) return;
  for (const Weight& v : t->weights) {
    Tensor direction = v.g;
    if (o.momentum != 0) {
      direction = Moving(*t, v, ".velocity", o.momentum, 1, v.g, loc);
      if (o.nesterov) direction = Add(v.g, Times(direction, o.momentum, loc), loc);
    }
    Descend(*t, v, direction, loc);
  }
}

void Train(Tensor loss, std::optional<TensorSpan> given, const RmsPropOptions& o, Loc loc) {
  const std::optional<Training> t = Prepare(loss, given, o, o.weight_decay, loc);
  if (!t.has_value()) return;
  for (const Weight& v : t->weights) {
    Tensor square = Moving(*t, v, ".square", o.decay, 1 - o.decay, Mul(v.g, v.g, loc), loc);
    if (o.centred) {
      const Tensor mean = Moving(*t, v, ".mean", o.decay, 1 - o.decay, v.g, loc), zero = FullLike(mean, 0, loc);
      square = Maximum(Sub(square, Mul(mean, mean, loc), loc), zero, loc);  // rounding may take it below 0
    }
    Tensor direction = Scaled(v.g, square, o.epsilon, loc);
    if (o.momentum != 0) direction = Moving(*t, v, ".velocity", o.momentum, 1, direction, loc);
    Descend(*t, v, direction, loc);
  }
}

void Train(Tensor loss, std::optional<TensorSpan> given, const AdagradOptions& o, Loc loc) {
  const std::optional<Training> t = Prepare(loss, given, o, o.weight_decay, loc);
  if (!t.has_value()) return;
  for (const Weight& v : t->weights) {
    const Tensor square = Moving(*t, v, ".square", 1, 1, Mul(v.g, v.g, loc), loc, o.initial);
    Descend(*t, v, Scaled(v.g, square, o.epsilon, loc), loc);
  }
}

void Train(Tensor loss, std::optional<TensorSpan> given, const LionOptions& o, Loc loc) {
  const std::optional<Training> t = Prepare(loss, given, o, 0, loc);
  if (!t.has_value()) return;
  for (const Weight& v : t->weights) {
    const Tensor m = Moment(*t, v, ".lion_m", 0, loc);
    const auto mixed = [&](double beta) { return Add(Times(m, beta, loc), Times(v.g, 1 - beta, loc), loc); };
    Tensor direction = Sign(mixed(o.beta1), loc);
    if (const double d = t->Decay(v, o.weight_decay); d != 0) direction = Add(direction, Times(v.w, d, loc), loc);
    PutMoment(*t, v, ".lion_m", m, mixed(o.beta2), loc);
    Descend(*t, v, direction, loc);
  }
}

}  // namespace

template <typename Options>
void Optimiser<Options>::Minimize(Tensor loss, Loc loc) const {
  Train(loss, std::nullopt, options_, loc);
}
template <typename Options>
void Optimiser<Options>::Minimize(Tensor loss, TensorSpan params, Loc loc) const {
  Train(loss, params, options_, loc);
}
template class Optimiser<SgdOptions>;
template class Optimiser<AdamOptions>;
template class Optimiser<AdamWOptions>;
template class Optimiser<RmsPropOptions>;
template class Optimiser<AdagradOptions>;
template class Optimiser<LionOptions>;

}  // namespace agc::optim
