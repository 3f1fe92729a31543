// Recurrent layers with the operands, results and formulas of ONNX (RNN, GRU, LSTM), unrolled over the steps and
// computed in f32 for f16 and bf16. The product of the whole input with the input weights is one contraction before the
// steps; each step adds the product of its state.
#include <array>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"
#include "ir/tuple.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- shapes

// Steps are unrolled: beyond this compiling takes minutes.
constexpr int64_t kMostSteps = 4096;

// What a row of the table reads from where: -1 where it has no such operand.
struct Layout {
  int gates = 1, bias = 3, h0 = 4, c0 = -1, lengths = 5, peepholes = -1;
};
constexpr Layout kRnnLayout = {.gates = 1}, kGruLayout = {.gates = 3};
constexpr Layout kLstmLayout = {.gates = 4, .c0 = 5, .lengths = 6, .peepholes = 7};

int64_t Directions(const AttrReader& a) { return a.text("direction") == "bidirectional" ? 2 : 1; }

absl::Status CheckShape(const OpCall& call, int i, absl::string_view what, const Dims& dims) {
  if (i < 0 || i >= call.arity()) return absl::OkStatus();
  if (call.type(i).dims == dims) return absl::OkStatus();
  return call.Error(absl::StrCat(what, " is ", ToString(call.type(i)), ", expected ", ToString(dims)));
}

// Results: y, and the last state per state that there is.
absl::StatusOr<Types> RecurrentTypes(const OpCall& call, const Layout& layout) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  for (int i : {0, 1, 2}) AGC_RETURN_IF_ERROR(CheckRank(call, i, 3));
  const bool batch_first = call.flag("batch_first");
  const Dims &x = call.type(0).dims, &r = call.type(2).dims;
  const int64_t steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1], d = Directions(call), h = r[2];
  if (steps > kMostSteps) {
    return call.Error(absl::StrCat("x has ", steps, " steps, expected at most ", kMostSteps,
                                   ": every step becomes ops of its own; cut the sequence and pass the state on"));
  }
  const Dims state = batch_first ? Dims{batch, d, h} : Dims{d, batch, h};
  AGC_RETURN_IF_ERROR(CheckShape(call, 1, "w", {d, layout.gates * h, x[2]}));
  AGC_RETURN_IF_ERROR(CheckShape(call, 2, "r", {d, layout.gates * h, h}));
  AGC_RETURN_IF_ERROR(CheckShape(call, layout.bias, "the bias", {d, 2 * layout.gates * h}));
  AGC_RETURN_IF_ERROR(CheckShape(call, layout.h0, "h0", state));
  AGC_RETURN_IF_ERROR(CheckShape(call, layout.c0, "c0", state));
  AGC_RETURN_IF_ERROR(CheckShape(call, layout.lengths, "lengths", {batch}));
  AGC_RETURN_IF_ERROR(CheckShape(call, layout.peepholes, "peepholes", {d, 3 * h}));
  for (int i = 1; i < call.arity(); ++i) {
    AGC_RETURN_IF_ERROR(i == layout.lengths ? CheckInt(call, i) : CheckDType(call, i, call.type(0).dtype));
  }
  const DType dtype = call.type(0).dtype;
  Types types = {{dtype, batch_first ? Dims{batch, steps, d, h} : Dims{steps, d, batch, h}}, {dtype, state}};
  if (layout.c0 >= 0) types.push_back({dtype, state});
  return types;
}

// ---------------------------------------------------------------- one direction

// Element `i` of axis 0, which goes.
Value At0(Value x, int64_t i) {
  Ints dims(x.dims().begin() + 1, x.dims().end());
  return Reshape(PartOf(x, 0, i, i + 1), dims);
}
// Gate `k` of columns that hold one gate after the other.
Value Gate(Value x, int64_t hidden, int64_t k) { return PartOf(x, x.rank() - 1, k * hidden, (k + 1) * hidden); }

// One direction's weights: what a step takes. Missing operands are invalid.
struct Weights {
  int64_t hidden = 0;
  Value r = {};          // [hidden, gates * hidden]
  Value r_bias = {};     // [gates * hidden]
  Value peepholes = {};  // [3 * hidden]
};
struct State {
  Value h = {}, c = {};  // [batch, hidden]
};

Value Plus(Value a, Value b) { return b.valid() ? a + b : a; }

// A step: the input's part of all gates [batch, gates * hidden] and the state before give the state behind.
using Step = State (*)(const AttrReader& attrs, const Weights& w, Value in, const State& s);

State RnnStep(const AttrReader& attrs, const Weights& w, Value in, const State& s) {
  const Value z = Plus(in + Matmul(s.h, w.r), w.r_bias);
  return {.h = attrs.text("activation") == "relu" ? Relu(z) : Tanh(z)};
}

// Cho and others (2014); with linear_before_reset the variant of cuDNN.
State GruStep(const AttrReader& attrs, const Weights& w, Value in, const State& s) {
  const int64_t n = w.hidden;
  const auto recurrent = [&](Value h, int64_t from, int64_t to) {
    const Value product = Matmul(h, PartOf(w.r, 1, from * n, to * n));
    return w.r_bias.valid() ? product + PartOf(w.r_bias, 0, from * n, to * n) : product;
  };
  const bool linear = attrs.flag("linear_before_reset");
  const Value all = recurrent(s.h, 0, linear ? 3 : 2);
  const Value update = Sigmoid(Gate(in, n, 0) + Gate(all, n, 0)), reset = Sigmoid(Gate(in, n, 1) + Gate(all, n, 1));
  const Value candidate = linear ? reset * Gate(all, n, 2) : recurrent(reset * s.h, 2, 3);
  const Value next = Tanh(Gate(in, n, 2) + candidate);
  return {.h = (1.0 - update) * next + update * s.h};
}

// Hochreiter and Schmidhuber (1997) with forget gates, and the peepholes of Gers, Schraudolph and Schmidhuber (2002).
State LstmStep(const AttrReader&, const Weights& w, Value in, const State& s) {
  const int64_t n = w.hidden;
  const Value all = Plus(in + Matmul(s.h, w.r), w.r_bias);
  const auto gate = [&](int64_t k, int64_t peephole, Value c) {
    const Value z = Gate(all, n, k);
    return Sigmoid(w.peepholes.valid() ? z + Gate(w.peepholes, n, peephole) * c : z);
  };
  const Value input = gate(0, 0, s.c), forget = gate(2, 2, s.c);
  const Value c = forget * s.c + input * Tanh(Gate(all, n, 3));
  return {.h = gate(1, 1, c) * Tanh(c), .c = c};
}

// ---------------------------------------------------------------- all steps and directions

struct Recurrence {
  Rule& s;
  const Layout& layout;
  Step step;
  std::vector<Value> x = {};  // wide; x[0] is [steps, batch, in]
  int64_t steps = 0, batch = 0, hidden = 0;

  bool Has(int operand) const { return operand >= 0 && operand < static_cast<int>(x.size()); }
  // The state `operand` of a direction, or zeros.
  Value Start(int operand, int64_t d) const {
    if (!Has(operand)) return Full(s.builder, {x[0].dtype(), {batch, hidden}}, 0);
    return s.flag("batch_first") ? Reshape(PartOf(x[operand], 1, d, d + 1), {batch, hidden}) : At0(x[operand], d);
  }

  // The outputs of all steps [steps, batch, hidden] and the last state.
  std::pair<Value, State> Run(int64_t d) const {
    const int64_t gates = layout.gates * hidden;
    Weights w{.hidden = hidden, .r = T(At0(x[2], d))};
    Value in = Matmul(Reshape(x[0], {steps * batch, x[0].dim(2)}), T(At0(x[1], d)));
    if (Has(layout.bias)) {
      const Value bias = At0(x[layout.bias], d);
      in = in + PartOf(bias, 0, 0, gates);
      w.r_bias = PartOf(bias, 0, gates, 2 * gates);
    }
    if (Has(layout.peepholes)) w.peepholes = At0(x[layout.peepholes], d);
    in = Reshape(in, {steps, batch, gates});
    State state{.h = Start(layout.h0, d)};
    if (layout.c0 >= 0) state.c = Start(layout.c0, d);
    const bool backward = d == 1 || s.text("direction") == "reverse";
    std::vector<Value> outputs(steps);
    for (int64_t k = 0; k < steps; ++k) {
      const int64_t t = backward ? steps - 1 - k : k;
      outputs[t] = ExpandDims(Advance(w, At0(in, t), t, state), {0});
    }
    return {Concat(outputs, 0), state};
  }

  // Moves the state over step `t` and returns the step's output.
  Value Advance(const Weights& w, Value in, int64_t t, State& state) const {
    const State next = step(s, w, in, state);
    if (!Has(layout.lengths)) {
      state = next;
      return next.h;
    }
    const Value lengths = x[layout.lengths];
    const Value live = Reshape(Greater(lengths, FullLike(lengths, static_cast<double>(t))), {batch, 1});
    state.h = Where(live, next.h, state.h);
    if (next.c.valid()) state.c = Where(live, next.c, state.c);
    return Where(live, next.h, FullLike(next.h, 0));
  }
};

Value Joined(const std::vector<Value>& parts, int axis) {
  std::vector<Value> expanded;
  for (Value p : parts) expanded.push_back(ExpandDims(p, {axis}));
  return expanded.size() == 1 ? expanded[0] : Concat(expanded, axis);
}

// Without a step, an example or a hidden element the states stay.
Value Unchanged(Rule& s, const Layout& layout) {
  std::vector<Value> results = {Full(s.builder, s.op.types[0], 0)};
  for (int operand : {layout.h0, layout.c0}) {
    if (operand < 0) continue;
    const bool given = operand < static_cast<int>(s.x.size());
    results.push_back(given ? s.x[operand] : Full(s.builder, s.op.types[1], 0));
  }
  return Tuple(results);
}

Value Decomposed(Rule& s, const Layout& layout, Step step) {
  if (s.op.types[0].elements() == 0) return Unchanged(s, layout);
  const DType dtype = s.op.type().dtype;
  const bool batch_first = s.flag("batch_first");
  Recurrence recurrence{.s = s, .layout = layout, .step = step, .x = WideAll(s.x)};
  if (layout.lengths < static_cast<int>(s.x.size()) && SizeOf(s.x[layout.lengths].dtype()) < 4) {
    recurrence.x[layout.lengths] = CastTo(s.x[layout.lengths], DType::kI32);
  }
  if (batch_first) recurrence.x[0] = Transpose(recurrence.x[0], {1, 0, 2});
  recurrence.steps = recurrence.x[0].dim(0);
  recurrence.batch = recurrence.x[0].dim(1);
  recurrence.hidden = s.x[2].dim(2);
  std::vector<Value> y, h, c;
  for (int64_t d = 0; d < Directions(s); ++d) {
    const auto [outputs, state] = recurrence.Run(d);
    y.push_back(outputs);
    h.push_back(state.h);
    c.push_back(state.c);
  }
  const int axis = batch_first ? 1 : 0;
  Value all = Joined(y, 1);
  if (batch_first) all = Transpose(all, {2, 0, 1, 3});
  std::vector<Value> results = {CastTo(all, dtype), CastTo(Joined(h, axis), dtype)};
  if (layout.c0 >= 0) results.push_back(CastTo(Joined(c, axis), dtype));
  return Tuple(results);
}

constexpr AttrDef kDirection = {"direction", kString, "forward", "forward|reverse|bidirectional"};
constexpr AttrDef kBatchFirst = {"batch_first", kBool, "false"};
constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "gru", .cls = OpClass::kComposite, .arity = {3, 6}, .attrs = {kDirection, kBatchFirst, {"linear_before_reset", kBool, "false"}},
     .infer = [](const OpCall& call) { return RecurrentTypes(call, kGruLayout); },
     .decompose = [](Rule& s) { return Decomposed(s, kGruLayout, GruStep); }, .tol = kTolerance,
     .numpy = "gru(x0, x1, x2, x3, direction=direction, batch_first=batch_first, linear_before_reset=linear_before_reset)",
     .sample = {.shapes = {"f32[2,2,3]", "f32[1,6,3]", "f32[1,6,2]", "f32[1,12]"}},
     .doc = "Gated recurrent unit: x [steps, batch, in] of at most 4096 steps, w, r and, if given, bias, h0, lengths; gates z, r, h. Results: y [steps, directions, batch, hidden] "
            "and the last h [directions, batch, hidden]."},
    {.name = "lstm", .cls = OpClass::kComposite, .arity = {3, 8}, .attrs = {kDirection, kBatchFirst},
     .infer = [](const OpCall& call) { return RecurrentTypes(call, kLstmLayout); },
     .decompose = [](Rule& s) { return Decomposed(s, kLstmLayout, LstmStep); }, .tol = kTolerance,
     .numpy = "lstm(x0, x1, x2, x3, direction=direction, batch_first=batch_first)",
     .sample = {.shapes = {"f32[2,2,3]", "f32[1,8,3]", "f32[1,8,2]", "f32[1,16]"}, .attrs = "direction = \"reverse\""},
     .doc = "Long short-term memory: x [steps, batch, in] of at most 4096 steps, w, r and, if given, bias, h0, c0, lengths, peepholes; gates i, o, f, c. Results: y [steps, "
            "directions, batch, hidden], the last h and the last c [directions, batch, hidden]."},
    {.name = "rnn", .cls = OpClass::kComposite, .arity = {3, 6}, .attrs = {kDirection, kBatchFirst, {"activation", kString, "tanh", "tanh|relu"}},
     .infer = [](const OpCall& call) { return RecurrentTypes(call, kRnnLayout); },
     .decompose = [](Rule& s) { return Decomposed(s, kRnnLayout, RnnStep); }, .tol = kTolerance,
     .numpy = "rnn(x0, x1, x2, x3, direction=direction, batch_first=batch_first, activation=activation)",
     .sample = {.shapes = {"f32[2,2,3]", "f32[2,2,3]", "f32[2,2,2]", "f32[2,4]"}, .attrs = "direction = \"bidirectional\", batch_first = true"},
     .doc = "h' = tanh(x w' + h r' + bias) or relu: x [steps, batch, in] of at most 4096 steps, w, r and, if given, bias, h0, lengths. Results: y [steps, directions, batch, hidden] "
            "and the last h [directions, batch, hidden]."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kRecurrentOps(kOps);

// ---------------------------------------------------------------- functions

namespace {

// The optional operands up to the last that is given, zeros where one before it is missing; lengths of all steps.
std::vector<Value> Operands(Value x, Value w, Value r, const RecurrentOptions& o, const Layout& layout, Loc loc) {
  std::vector<Value> operands = {x, w, r};
  if (!x.valid() || !r.valid() || x.rank() != 3 || r.rank() != 3) return operands;
  const int64_t batch = x.dim(o.batch_first ? 0 : 1), steps = x.dim(o.batch_first ? 1 : 0), d = r.dim(0), h = r.dim(2);
  const Dims state = o.batch_first ? Dims{batch, d, h} : Dims{d, batch, h};
  struct Optional {
    int place;
    Value value;
    TensorType type;
    double fill;
  };
  std::vector<Optional> optional = {{layout.bias, o.bias, {x.dtype(), {d, 2 * layout.gates * h}}, 0},
                                    {layout.h0, o.h0, {x.dtype(), state}, 0},
                                    {layout.c0, o.c0, {x.dtype(), state}, 0},
                                    {layout.lengths, o.lengths, {DType::kI32, {batch}}, static_cast<double>(steps)},
                                    {layout.peepholes, o.peepholes, {x.dtype(), {d, 3 * h}}, 0}};
  int last = -1;
  for (const Optional& v : optional) {
    if (v.place >= 0 && v.value.builder != nullptr) last = std::max(last, v.place);
  }
  for (const Optional& v : optional) {  // in the order of their places
    if (v.place < 0 || v.place > last) continue;
    operands.push_back(v.value.builder != nullptr ? v.value : Full(*x.builder, v.type, v.fill, loc));
  }
  return operands;
}

std::vector<Attr> Common(const RecurrentOptions& o) {
  constexpr absl::string_view kNames[] = {"forward", "reverse", "bidirectional"};
  return {Attr{"direction", std::string(kNames[static_cast<int>(o.direction)])}, Attr{"batch_first", o.batch_first}};
}

RecurrentResult Results(Value tuple, bool has_c, Loc loc) {
  return {Get(tuple, 0, loc), Get(tuple, 1, loc), has_c ? Get(tuple, 2, loc) : Value()};
}

}  // namespace

RecurrentResult Rnn(Value x, Value w, Value r, RecurrentOptions o, Loc loc) {
  std::vector<Attr> attrs = Common(o);
  attrs.push_back({"activation", std::string(o.relu ? "relu" : "tanh")});
  return Results(Emit("rnn", Operands(x, w, r, o, kRnnLayout, loc), attrs, loc), false, loc);
}

RecurrentResult Gru(Value x, Value w, Value r, RecurrentOptions o, Loc loc) {
  std::vector<Attr> attrs = Common(o);
  attrs.push_back({"linear_before_reset", o.linear_before_reset});
  return Results(Emit("gru", Operands(x, w, r, o, kGruLayout, loc), attrs, loc), false, loc);
}

RecurrentResult Lstm(Value x, Value w, Value r, RecurrentOptions o, Loc loc) {
  return Results(Emit("lstm", Operands(x, w, r, o, kLstmLayout, loc), Common(o), loc), true, loc);
}

}  // namespace agc
