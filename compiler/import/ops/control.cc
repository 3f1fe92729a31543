// If, Loop and Scan: branches that are known are taken, loops whose number of turns is known are unrolled.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

constexpr int64_t kMostTurns = 1 << 12;

// Either operand, by a condition of the device.
Item Choose(Call& c, Value cond, const Item& then, const Item& otherwise, absl::string_view what) {
  if (then.kind == Item::kTensor && otherwise.kind == Item::kTensor && then.tensor.type() == otherwise.tensor.type()) {
    return Item::Of(Where(cond, then.tensor, otherwise.tensor));
  }
  c.Fail(absl::StrCat(what, " has to be known when compiling, as the types of the results depend on it"));
  return {};
}

// A condition that is not known picks among the results of both branches, which have no side effects.
void If(Call& c) {
  const Value cond = c.in(0);
  const AttributeProto* then = c.attr("then_branch", AttributeProto::kGraph);
  const AttributeProto* otherwise = c.attr("else_branch", AttributeProto::kGraph);
  if (!c.ok()) return;
  if (then == nullptr || otherwise == nullptr) return void(c.Fail("a branch is missing"));
  if (cond.type().elements() != 1) return void(c.Fail("the condition is not one value"));
  const std::optional<HostTensor> known = c.Fold(cond);
  std::vector<Item> results;
  if (known.has_value()) {
    results = c.Body(known->at(0).i() != 0 ? then->graphs[0] : otherwise->graphs[0], {});
  } else {
    results = c.Body(then->graphs[0], {});
    if (!c.ok()) return;
    const std::vector<Item> others = c.Body(otherwise->graphs[0], {});
    if (!c.ok()) return;
    if (results.size() != others.size()) return void(c.Fail("the branches have different numbers of results"));
    const Value one = Reshape(cond, {});
    for (size_t k = 0; k < results.size(); ++k) results[k] = Choose(c, one, results[k], others[k], "the condition");
  }
  for (size_t k = 0; k < results.size(); ++k) c.out_item(results[k], static_cast<int>(k));
}

// Values along a new axis, in order.
Value Stacked(Call& c, const std::vector<Value>& values, int64_t axis) {
  if (values.empty()) return c.Fail("a result per turn, and no turn: its shape is not known");
  return Stack(values, axis);
}

// A loop with what changes from turn to turn.
struct LoopState {
  std::vector<Item> carried = {};
  std::vector<std::vector<Value>> scans = {};
  Value running = {};  // empty: known to run
};

// One turn; false where the loop is known to end.
bool Turn(Call& c, const GraphProto& body, int64_t turn, LoopState& s) {
  HostTensor number = HostTensor::Zeros({DType::kI64, {}}), yes = HostTensor::Zeros({DType::kBool, {}});
  number.set(0, Scalar::Int(DType::kI64, turn));
  yes.set(0, Scalar::Int(DType::kBool, 1));
  std::vector<Item> inputs = {Item::Of(c.Constant(number)), Item::Of(c.Constant(yes))};
  inputs.insert(inputs.end(), s.carried.begin(), s.carried.end());
  const std::vector<Item> results = c.Body(body, std::move(inputs));
  if (!c.ok()) return false;
  const size_t n = s.carried.size();
  if (results.size() < n + 1) return c.Fail("the body gives fewer values than the loop carries"), false;
  for (size_t k = 0; k < n; ++k) {
    s.carried[k] =
        s.running.valid() ? Choose(c, s.running, results[k + 1], s.carried[k], "the condition") : results[k + 1];
  }
  s.scans.resize(results.size() - n - 1);
  for (size_t k = 0; k < s.scans.size(); ++k) s.scans[k].push_back(results[n + 1 + k].tensor);
  const std::optional<HostTensor> goes_on = c.Fold(results[0].tensor);
  if (goes_on.has_value()) return goes_on->at(0).i() != 0;
  if (!s.scans.empty())
    return c.Fail("the condition has to be known when compiling, as the extent of a result depends on it"), false;
  const Value cond = Reshape(results[0].tensor, {});
  s.running = s.running.valid() ? LogicalAnd(s.running, cond) : cond;
  return c.ok();
}

void Loop(Call& c) {
  const AttributeProto* body = c.attr("body", AttributeProto::kGraph);
  const bool counted = c.has(0);
  const int64_t turns = counted ? c.integer(0, "the number of turns") : kMostTurns;
  LoopState s;
  for (int k = 2; k < c.inputs(); ++k) s.carried.push_back(c.item(k));
  bool runs = true;
  if (c.has(1)) {
    const std::optional<HostTensor> cond = c.Fold(c.in(1));
    if (cond.has_value())
      runs = cond->at(0).i() != 0;
    else
      s.running = Reshape(c.in(1), {});
  }
  c.ignore_operand(0);
  c.ignore_operand(1);
  if (!c.ok() || body == nullptr) return;
  if (turns > kMostTurns) return void(c.Fail(absl::StrCat(turns, " turns, at most ", kMostTurns, " are unrolled")));
  int64_t turn = 0;
  for (; runs && turn < turns; ++turn) {
    runs = Turn(c, body->graphs[0], turn, s);
    if (!c.ok()) return;
  }
  if (runs && !counted) return void(c.Fail("the loop has no end that is known when compiling"));
  const auto n = static_cast<int>(s.carried.size());
  for (int k = 0; k < n; ++k) c.out_item(s.carried[static_cast<size_t>(k)], k);
  s.scans.resize(static_cast<size_t>(std::max(0, c.outputs() - n)));
  for (size_t k = 0; k < s.scans.size() && c.ok(); ++k) c.out(Stacked(c, s.scans[k], 0), n + static_cast<int>(k));
}

Value Step(Value x, int64_t axis, int64_t k) {
  Ints start(static_cast<size_t>(x.rank()), 0), limit(x.dims().begin(), x.dims().end()), one(start.size(), 1), shape;
  start[static_cast<size_t>(axis)] = k;
  limit[static_cast<size_t>(axis)] = k + 1;
  for (int a = 0; a < x.rank(); ++a) {
    if (a != axis) shape.push_back(x.dim(a));
  }
  return Reshape(Slice(x, start, limit, one), shape);
}

// Unrolled: one turn per element of the scanned axes.
std::vector<Value> ScanOver(Call& c, const GraphProto& body, std::vector<Value> states, const std::vector<Value>& xs,
                            const Ints& axes, const Ints& backwards, const Ints& out_axes, const Ints& out_backwards) {
  const auto at = [](const Ints& list, size_t k) { return k < list.size() ? list[k] : 0; };
  const int64_t steps = xs.empty() ? 0 : xs[0].dim(static_cast<int>(at(axes, 0)));
  std::vector<std::vector<Value>> scans(body.outputs.size() - std::min(states.size(), body.outputs.size()));
  for (int64_t t = 0; t < steps && c.ok(); ++t) {
    std::vector<Item> inputs;
    for (const Value& s : states) inputs.push_back(Item::Of(s));
    for (size_t k = 0; k < xs.size(); ++k) {
      const int64_t axis = at(axes, k) < 0 ? at(axes, k) + xs[k].rank() : at(axes, k);
      if (axis < 0 || axis >= xs[k].rank() || xs[k].dim(static_cast<int>(axis)) != steps) {
        c.Fail(absl::StrCat("scanned operand ", k, " is ", ToString(xs[k].type()), ", expected ", steps,
                            " elements along axis ", axis));
        return {};
      }
      inputs.push_back(Item::Of(Step(xs[k], axis, at(backwards, k) == 1 ? steps - 1 - t : t)));
    }
    const std::vector<Item> results = c.Body(body, std::move(inputs));
    if (!c.ok()) return {};
    for (size_t k = 0; k < states.size(); ++k) states[k] = results[k].tensor;
    for (size_t k = 0; k < scans.size(); ++k) scans[k].push_back(results[states.size() + k].tensor);
  }
  for (size_t k = 0; k < scans.size() && c.ok(); ++k) {
    if (at(out_backwards, k) == 1) std::reverse(scans[k].begin(), scans[k].end());
    states.push_back(Stacked(c, scans[k], at(out_axes, k)));
  }
  return states;
}

// Opset 8 has sequence lengths first and a batch axis in everything; the body sees one example.
void BatchedScan(Call& c, const GraphProto& body, int64_t scanned) {
  if (c.has(0)) return void(c.Fail("sequence_lens: sequences of different lengths are not supported"));
  const Ints backwards = c.ints("directions", Ints());
  const std::vector<Value> all = c.rest(1);
  if (!c.ok() || all.empty()) return;
  const size_t n = all.size() - static_cast<size_t>(scanned);
  std::vector<std::vector<Value>> results;
  for (int64_t b = 0; b < all[0].dim(0) && c.ok(); ++b) {
    std::vector<Value> states, xs;
    for (size_t k = 0; k < all.size(); ++k) (k < n ? states : xs).push_back(Step(all[k], 0, b));
    const std::vector<Value> one = ScanOver(c, body, states, xs, {}, backwards, {}, {});
    results.resize(one.size());
    for (size_t k = 0; k < one.size(); ++k) results[k].push_back(one[k]);
  }
  for (size_t k = 0; k < results.size() && c.ok(); ++k) c.out(Stack(results[k], 0), static_cast<int>(k));
}

void Scan(Call& c) {
  const AttributeProto* body = c.attr("body", AttributeProto::kGraph);
  const int64_t scanned = c.integer("num_scan_inputs");
  if (!c.ok() || body == nullptr) return;
  const int64_t operands = c.opset() < 9 ? c.inputs() - 1 : c.inputs();
  if (scanned < 1 || scanned > operands)
    return void(c.Fail(absl::StrCat("num_scan_inputs is ", scanned, " of ", operands)));
  if (body->graphs[0].outputs.size() < static_cast<size_t>(operands - scanned))
    return void(c.Fail("the body gives too few values"));
  if (c.opset() < 9) return BatchedScan(c, body->graphs[0], scanned);
  const Ints axes = c.ints("scan_input_axes", Ints()), backwards = c.ints("scan_input_directions", Ints());
  const Ints out_axes = c.ints("scan_output_axes", Ints()), out_backwards = c.ints("scan_output_directions", Ints());
  std::vector<Value> states = c.rest(0), xs;
  if (!c.ok()) return;
  xs.assign(states.end() - scanned, states.end());
  states.resize(states.size() - static_cast<size_t>(scanned));
  const std::vector<Value> results = ScanOver(c, body->graphs[0], states, xs, axes, backwards, out_axes, out_backwards);
  for (size_t k = 0; k < results.size(); ++k) c.out(results[k], static_cast<int>(k));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"If", 1, If, "a condition that is not known when compiling, where the branches give other types"},
    {"Loop", 1, Loop, "a number of turns that is not known when compiling"}, {"Scan", 8, Scan, "sequence_lens of opset 8"},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kControlOps(kRows);

}  // namespace agc::onnx
