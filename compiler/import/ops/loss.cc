// Losses: operands are [n, classes, ...], labels [n, ...].
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_nn.h"

namespace agc::onnx {
namespace {

CrossEntropyOptions OptionsOf(Call& c) {
  constexpr Reduction kReductions[] = {Reduction::kNone, Reduction::kMean, Reduction::kSum};
  CrossEntropyOptions o;
  o.reduction = kReductions[c.choice("reduction", {"none", "mean", "sum"}, "mean")];
  if (c.has_attr("ignore_index")) o.ignore_index = c.integer("ignore_index");
  o.weight = c.opt(2);
  return o;
}

void NegativeLogLikelihoodLoss(Call& c) {
  const Value x = c.in(0), labels = c.in(1);
  const CrossEntropyOptions o = OptionsOf(c);
  c.out(Nll(x, labels, o));
}

void SoftmaxCrossEntropyLoss(Call& c) {
  const Value x = c.in(0), labels = c.in(1);
  const CrossEntropyOptions o = OptionsOf(c);
  c.out(CrossEntropy(x, labels, o, Loc{}), 0);
  if (c.wants(1)) c.out(LogSoftmax(x, 1), 1);
}

// clang-format off
constexpr OpRow kRows[] = {
    {"NegativeLogLikelihoodLoss", 12, NegativeLogLikelihoodLoss}, {"SoftmaxCrossEntropyLoss", 12, SoftmaxCrossEntropyLoss},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kLossOps(kRows);

}  // namespace agc::onnx
