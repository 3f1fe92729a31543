// The operator table: a span of rows per family and domain, sorted by name. A family is a file of this directory; to
// add one, declare it here and list it in ops/tables.cc.
#pragma once
#include "absl/types/span.h"
#include "compiler/import/onnx_call.h"

namespace agc::onnx {

struct Family {
  absl::string_view domain = {};
  absl::Span<const OpRow> rows = {};
};

extern const absl::Span<const OpRow> kActivationOps;
extern const absl::Span<const OpRow> kAttentionOps;
extern const absl::Span<const OpRow> kControlOps;
extern const absl::Span<const OpRow> kConvolutionOps;
extern const absl::Span<const OpRow> kDataOps;
extern const absl::Span<const OpRow> kElementwiseOps;
extern const absl::Span<const OpRow> kImageOps;
extern const absl::Span<const OpRow> kIndexOps;
extern const absl::Span<const OpRow> kLossOps;
extern const absl::Span<const OpRow> kMicrosoftOps;
extern const absl::Span<const OpRow> kNormOps;
extern const absl::Span<const OpRow> kQuantisedOps;
extern const absl::Span<const OpRow> kRandomOps;
extern const absl::Span<const OpRow> kRecurrentOps;
extern const absl::Span<const OpRow> kReduceOps;
extern const absl::Span<const OpRow> kResizeOps;
extern const absl::Span<const OpRow> kSequenceOps;
extern const absl::Span<const OpRow> kShapeOps;
extern const absl::Span<const OpRow> kSignalOps;
extern const absl::Span<const OpRow> kTextOps;
extern const absl::Span<const OpRow> kTrainingOps;
extern const absl::Span<const OpRow> kTransformerOps;

absl::Span<const Family> Families();
// The row for an operator at an opset: the newest that is not newer; null where there is none.
const OpRow* FindOp(absl::string_view domain, absl::string_view name, int64_t opset);

}  // namespace agc::onnx
