#include "compiler/import/weights.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace agc {

absl::StatusOr<rt::Bundle> WithWeights(rt::Bundle bundle, const std::vector<Weight>& weights) {
  if (bundle.states.empty()) return bundle;
  bundle.state_values.assign(bundle.state_bytes, 0);
  for (const Weight& w : weights) {
    const auto state = std::find_if(bundle.states.begin(), bundle.states.end(),
                                    [&](const rt::State& s) { return !s.hidden && s.name == w.name; });
    if (state == bundle.states.end()) continue;  // nothing reads it
    const TensorType type{static_cast<DType>(state->dtype), {state->dims.begin(), state->dims.end()}};
    if (!(type == w.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("state @", w.name, " is ", ToString(type), ", its weight ", ToString(w.type)));
    }
    if (!w.bytes.empty()) std::memcpy(bundle.state_values.data() + state->offset, w.bytes.data(), w.bytes.size());
  }
  bundle.has_state_values = true;
  return bundle;
}

}  // namespace agc
