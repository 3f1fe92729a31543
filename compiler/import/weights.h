// Values of states that come from a file, as views into the mapped file: nothing is copied before a bundle is written.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/wire.h"
#include "ir/type.h"
#include "runtime/format.h"

namespace agc {

struct Weight {
  std::string name = {};  // of the state
  TensorType type = {};
  ByteSpan bytes = {};                     // row-major, in host-visible form
  std::shared_ptr<const void> owner = {};  // keeps the bytes
};

// The bundle with these values of its states; states that are not among them start as 0, weights that are no states are
// passed over. InvalidArgument for one of another type than its state.
absl::StatusOr<rt::Bundle> WithWeights(rt::Bundle bundle, const std::vector<Weight>& weights);

}  // namespace agc
