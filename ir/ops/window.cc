#include "ir/ops/window.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

std::string Text(Extents2d e) { return absl::StrCat(e[0], "x", e[1]); }

// Larger extents could overflow sums of an index, a tap and a padding.
absl::Status CheckMost(const OpCall& call, absl::string_view what, absl::Span<const int64_t> ints) {
  for (int64_t v : ints) {
    if (v > std::numeric_limits<int32_t>::max()) return call.Error(absl::StrCat(what, " is too large (", v, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

WindowPlace InputAt(const Window2d& window, int axis, Expr out, Expr tap, int64_t inputs) {
  const Expr index = out * window.stride[axis] + tap - window.before[axis];
  return {index, InRange(index, inputs)};
}

WindowPlace OutputAt(const Window2d& window, int axis, Expr in, Expr tap, int64_t outputs) {
  const Expr offset = in - tap + window.before[axis];
  const Expr index = Div(offset, window.stride[axis]);
  return {index, And(EqZero(Mod(offset, window.stride[axis])), InRange(index, outputs))};
}

Window2d WindowOf(const AttrReader& attrs, Extents2d kernel) {
  const Ints &stride = attrs.ints("stride"), &pad = attrs.ints("pad");
  Window2d w{.kernel = kernel, .stride = kernel, .before = {pad[0], pad[1]}, .after = {pad[2], pad[3]}};
  if (!stride.empty()) w.stride = {stride[0], stride[1]};
  return w;
}

absl::StatusOr<Window2d> CheckedWindow(const OpCall& call, Extents2d kernel) {
  if (kernel[0] < 1 || kernel[1] < 1) {
    return call.Error(absl::StrCat("the window is ", Text(kernel), ", expected 1 or more along both axes"));
  }
  if (!call.ints("stride").empty()) AGC_RETURN_IF_ERROR(CheckInts(call, "stride", 2, 1));
  AGC_RETURN_IF_ERROR(CheckInts(call, "pad", 4, 0));
  AGC_RETURN_IF_ERROR(CheckMost(call, "the window", kernel));
  AGC_RETURN_IF_ERROR(CheckMost(call, "stride", call.ints("stride")));
  AGC_RETURN_IF_ERROR(CheckMost(call, "pad", call.ints("pad")));
  return WindowOf(call, kernel);
}

absl::StatusOr<Extents2d> WindowedExtents(const OpCall& call, const Window2d& window, Extents2d input) {
  AGC_RETURN_IF_ERROR(CheckMost(call, "the input's height or width", input));
  Extents2d out = {};
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t padded = input[axis] + window.before[axis] + window.after[axis];
    if (padded < window.kernel[axis]) {
      return call.Error(absl::StrCat("the window ", Text(window.kernel), " does not fit into the input ", Text(input),
                                     " with pad ", ToString(call.ints("pad"))));
    }
    out[axis] = (padded - window.kernel[axis]) / window.stride[axis] + 1;
  }
  return out;
}

}  // namespace agc
