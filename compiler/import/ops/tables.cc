#include "compiler/import/ops/tables.h"

namespace agc::onnx {

constexpr absl::string_view kTraining = "ai.onnx.preview.training", kMicrosoft = "com.microsoft";

absl::Span<const Family> Families() {
  static const Family families[] = {
      {"", kActivationOps},
      {"", kControlOps},
      {"", kConvolutionOps},
      {"", kDataOps},
      {"", kElementwiseOps},
      {"", kImageOps},
      {"", kIndexOps},
      {"", kLossOps},
      {"", kNormOps},
      {"", kQuantisedOps},
      {"", kRandomOps},
      {"", kRecurrentOps},
      {"", kReduceOps},
      {"", kResizeOps},
      {"", kAttentionOps},
      {"", kSequenceOps},
      {"", kShapeOps},
      {"", kSignalOps},
      {"", kTextOps},
      {kTraining, kTrainingOps},
      {kMicrosoft, kMicrosoftOps},
      {kMicrosoft, kTransformerOps},
  };
  return families;
}

const OpRow* FindOp(absl::string_view domain, absl::string_view name, int64_t opset) {
  const OpRow* best = nullptr;
  for (const Family& f : Families()) {
    if (f.domain != domain) continue;
    for (const OpRow& row : f.rows) {
      if (row.name == name && row.since <= opset && (best == nullptr || row.since > best->since)) best = &row;
    }
  }
  return best;
}

}  // namespace agc::onnx
