#include "ir/ops/pool.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

bool AllEqual(const Ints& ints, int64_t value) {
  return std::all_of(ints.begin(), ints.end(), [&](int64_t v) { return v == value; });
}

}  // namespace

Window PoolWindow(const AttrReader& attrs, const Ints& input) {
  Window w = WindowOf(attrs, attrs.ints("window"));
  if (FindAttr(attrs.attrs, "ceil_mode") == nullptr || !attrs.flag("ceil_mode")) return w;
  for (int k = 0; k < w.rank(); ++k) {
    const int64_t room = input[k] + w.before[k] + w.after[k] - w.reach(k);
    int64_t last = CeilDiv(room, w.stride[k]) * w.stride[k];  // where the last window starts
    if (last >= input[k] + w.before[k]) last -= w.stride[k];
    w.after[k] += std::max<int64_t>(0, last - room);
  }
  return w;
}

absl::Status CheckPoolRank(const OpCall& call) {
  const int rank = static_cast<int>(call.ints("window").size());
  if (rank == 0) return call.Error("window = [] has no numbers, expected one per spatial axis");
  return CheckRank(call, 0, rank + 2);
}

absl::StatusOr<Dims> Pooled(const OpCall& call, const Dims& x) {
  const Ints kernel = call.ints("window"), input = Spatial(x);
  AGC_RETURN_IF_ERROR(CheckInts(call, "window", static_cast<int>(input.size()), 1));
  AGC_RETURN_IF_ERROR(CheckedWindow(call, kernel).status());
  AGC_RETURN_IF_ERROR(CheckMost(call, "an extent of the input", input));
  const Window window = PoolWindow(call, input);
  for (int axis = 0; axis < window.rank(); ++axis) {
    if (window.before[axis] >= window.reach(axis) || window.after[axis] >= window.reach(axis)) {
      return call.Error(absl::StrCat("pad = ", ToString(call.ints("pad")), " reaches the window ", ToString(kernel),
                                     ", a window could lie in the padding"));
    }
    if (input[axis] == 0)
      return call.Error(absl::StrCat("the input ", ToString(x), " has nothing to pool along axis ", 2 + axis));
  }
  AGC_ASSIGN_OR_RETURN(const Ints out, WindowedExtents(call, window, input));
  Dims dims = {x[0], x[1]};
  dims.insert(dims.end(), out.begin(), out.end());
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", call.type(0).dtype, dims));
  return dims;
}

absl::Status CheckTaps(const OpCall& call) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const Ints& window = call.ints("window");
  AGC_RETURN_IF_ERROR(CheckInts(call, "window", static_cast<int>(window.size()), 1));
  int64_t taps = 1;
  for (int64_t k : window) {
    if (k > kMost / taps) return call.Error(absl::StrCat("the window ", ExtentsText(window), " is too large"));
    taps *= k;
  }
  return absl::OkStatus();
}

DType TapDType(int64_t taps) { return taps <= 256 ? DType::kU8 : DType::kI32; }

PoolAttrs AttrsOf(const Window& window) {
  PoolAttrs attrs = {{"window", window.kernel}};
  if (window.stride != window.kernel) attrs.push_back({"stride", window.stride});
  if (!AllEqual(window.before, 0) || !AllEqual(window.after, 0)) {
    Ints pad = window.before;
    pad.insert(pad.end(), window.after.begin(), window.after.end());
    attrs.push_back({"pad", pad});
  }
  if (!AllEqual(window.dilation, 1)) attrs.push_back({"dilation", window.dilation});
  return attrs;
}

}  // namespace agc
