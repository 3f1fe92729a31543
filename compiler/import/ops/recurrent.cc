// RNN, GRU and LSTM: operands and results are laid out as agc's own.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_nn.h"

namespace agc::onnx {
namespace {

// The activations of all directions have to be `expected`, in any case.
bool HasActivations(Call& c, const std::vector<std::string>& expected) {
  const std::vector<std::string> given = c.texts("activations");
  const auto lower = [](std::string s) {
    std::transform(s.begin(), s.end(), s.begin(), [](char x) { return static_cast<char>(std::tolower(x)); });
    return s;
  };
  for (size_t k = 0; k < given.size(); ++k) {
    if (lower(given[k]) != lower(expected[k % expected.size()])) return false;
  }
  return true;
}

RecurrentOptions OptionsOf(Call& c) {
  constexpr Direction kDirections[] = {Direction::kForward, Direction::kReverse, Direction::kBidirectional};
  RecurrentOptions o;
  o.direction = kDirections[c.choice("direction", {"forward", "reverse", "bidirectional"}, "forward")];
  o.bias = c.opt(3);
  o.lengths = c.opt(4);
  o.h0 = c.opt(5);
  o.batch_first = c.opset() >= 14 && c.integer("layout", 0) == 1;
  c.ignore("hidden_size");  // also the extent of R
  c.ignore("output_sequence");
  if (c.has_attr("clip")) c.Fail("attribute clip: limits before the activations are not supported");
  if (c.has_attr("activation_alpha") || c.has_attr("activation_beta")) {
    c.Fail("attributes activation_alpha and activation_beta: only activations without parameters are supported");
  }
  return o;
}

void Give(Call& c, const RecurrentResult& r) {
  c.out(r.y, 0);
  c.out(r.h, 1);
  if (r.c.valid()) c.out(r.c, 2);
}

void RnnOp(Call& c) {
  const Value x = c.in(0), w = c.in(1), r = c.in(2);
  RecurrentOptions o = OptionsOf(c);
  o.relu = c.has_attr("activations") && HasActivations(c, {"Relu"});
  if (!o.relu && !HasActivations(c, {"Tanh"}))
    return void(c.Fail("attribute activations: only Tanh and Relu are supported"));
  Give(c, Rnn(x, w, r, o));
}

void GruOp(Call& c) {
  const Value x = c.in(0), w = c.in(1), r = c.in(2);
  RecurrentOptions o = OptionsOf(c);
  o.linear_before_reset = c.flag("linear_before_reset", false);
  if (!HasActivations(c, {"Sigmoid", "Tanh"}))
    return void(c.Fail("attribute activations: only Sigmoid, Tanh is supported"));
  Give(c, Gru(x, w, r, o));
}

void LstmOp(Call& c) {
  const Value x = c.in(0), w = c.in(1), r = c.in(2);
  RecurrentOptions o = OptionsOf(c);
  o.c0 = c.opt(6);
  o.peepholes = c.opt(7);
  if (c.integer("input_forget", 0) != 0) c.Fail("attribute input_forget = 1: coupled gates are not supported");
  if (!HasActivations(c, {"Sigmoid", "Tanh", "Tanh"})) {
    return void(c.Fail("attribute activations: only Sigmoid, Tanh, Tanh is supported"));
  }
  Give(c, Lstm(x, w, r, o));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"GRU", 3, GruOp, "clip; activations other than Sigmoid and Tanh"},
    {"LSTM", 1, LstmOp, "clip; input_forget; activations other than Sigmoid and Tanh"},
    {"RNN", 1, RnnOp, "clip; activations other than Tanh and Relu"},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kRecurrentOps(kRows);

}  // namespace agc::onnx
