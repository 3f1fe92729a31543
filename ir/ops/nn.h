// What the rows of normalisation, attention, recurrence and losses share: arithmetic in the dtype that sums are kept
// in, parameters that may be wider than the input, and the attribute `reduction`.
//   Value x = Wide(s.x[0]);                       // f32 for f16 and bf16
//   return ReduceLoss(s, Square(x - Wide(s.x[1])));
#pragma once
#include "ir/build_nn.h"
#include "ir/ops/infer.h"

namespace agc {

std::vector<Value> WideAll(absl::Span<const Value> xs);

// Operand `i` is a float of shape `dims`, in the dtype of operand 0 or in the one its sums are kept in.
absl::Status CheckParam(const OpCall& call, int i, absl::string_view what, absl::Span<const int64_t> dims);
absl::Status CheckParamDType(const OpCall& call, int i, absl::string_view what);
absl::Status CheckAtLeastZero(const OpCall& call, absl::string_view attr);

// Operand `i` with its axis k as axis axes[k] of a shape of `rank` axes, which is 1 elsewhere.
Value AlongAxes(Value x, int rank, const Ints& axes);

inline constexpr AttrDef kReduction = {"reduction", AttrKind::kString, "mean", "none|mean|sum"};
Attr ReductionAttr(Reduction reduction);
// The type of a loss with one value per element of `each`: that, or a scalar. A mean of nothing is an error.
absl::StatusOr<Types> LossType(const OpCall& call, const TensorType& each);
// For rows whose operands and elementwise loss have one float type.
absl::StatusOr<Types> ElementwiseLoss(const OpCall& call);
// `each` reduced as the attribute says, in the dtype of the op's result.
Value ReduceLoss(Rule& s, Value each);
// The cotangent of every element of the shape `dims` of the loss, wide.
Value SpreadLoss(Vjp& s, Dims dims);

}  // namespace agc
