// The meaning of a nest, computed on the host: stages in order, each over its axes, kept in arrays; reductions merge in
// increasing order of their axes.
//   AGC_ASSIGN_OR_RETURN(std::vector<HostTensor> y, EvaluateNest(nest, {x, w}, EvalMode::kExact));
// Errors name nest, stage, buffer and index: OutOfRange for a load, store or computed index that leaves its range,
// InvalidArgument for tensors that do not fit the parameters, Unimplemented for scans.
#pragma once
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/eval/tensor.h"
#include "ir/nest.h"

namespace agc {

// The written parameters' values, given those that are only read, both in the order of nest.params. Every element must
// be written. The types are those of the parameters, f64 for floats under kDouble (inputs may be either).
absl::StatusOr<std::vector<HostTensor>> EvaluateNest(const Nest& nest, absl::Span<const HostTensor* const> inputs,
                                                     EvalMode mode);
absl::StatusOr<std::vector<HostTensor>> EvaluateNest(const Nest& nest, absl::Span<const HostTensor> inputs,
                                                     EvalMode mode);
// The same in place: one tensor per parameter; written ones keep the elements that no store reaches.
absl::Status RunNest(const Nest& nest, absl::Span<HostTensor* const> params, EvalMode mode);

}  // namespace agc
