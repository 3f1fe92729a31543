#include "ir/ops/window.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

Ints OrOnes(const AttrReader& attrs, absl::string_view name, size_t rank) {
  const AttrValue* value = FindAttr(attrs.attrs, name);
  return value == nullptr || attrs.ints(name).empty() ? Ints(rank, 1) : attrs.ints(name);
}

}  // namespace

int64_t Window::taps() const {
  int64_t n = 1;
  for (int64_t k : kernel) n *= k;
  return n;
}

Ints Spatial(const Dims& dims) { return {dims.begin() + std::min<size_t>(2, dims.size()), dims.end()}; }

WindowPlace InputAt(const Window& window, int axis, Expr out, Expr tap, int64_t inputs) {
  const Expr index = out * window.stride[axis] + tap * window.dilation[axis] - window.before[axis];
  return {index, InRange(index, inputs)};
}

ReaderForm FormOf(const Window& window, int axis) {
  return window.stride[axis] > 1 && window.dilation[axis] == 1 ? ReaderForm::kPhases : ReaderForm::kTaps;
}

int64_t Readers(const Window& window, int axis, ReaderForm form) {
  const int64_t kernel = window.kernel[axis], stride = window.stride[axis];
  return form == ReaderForm::kTaps ? kernel : (kernel + stride - 1) / stride;
}

Reader OutputAt(const Window& window, int axis, Expr in, Expr number, int64_t outputs, ReaderForm form) {
  const int64_t stride = window.stride[axis];
  const Expr padded = in + window.before[axis];
  Reader r;
  if (form == ReaderForm::kPhases) {
    r.tap = Mod(padded, stride) + number * stride;
    r.is_tap = InRange(r.tap, window.kernel[axis]);
    r.index = Div(padded, stride) - number;
    r.inside = InRange(r.index, outputs);
    return r;
  }
  const Expr offset = in - number * window.dilation[axis] + window.before[axis];
  r.tap = number;
  r.is_tap = in.pool->Bool(true);
  r.index = Div(offset, stride);
  r.inside = And(EqZero(Mod(offset, stride)), InRange(r.index, outputs));
  return r;
}

Window WindowOf(const AttrReader& attrs, const Ints& kernel) {
  const Ints &stride = attrs.ints("stride"), &pad = attrs.ints("pad");
  const auto rank = static_cast<long>(kernel.size());
  Window w{.kernel = kernel, .stride = stride.empty() ? kernel : stride};
  w.before.assign(pad.begin(), pad.empty() ? pad.end() : pad.begin() + rank);
  w.after.assign(pad.empty() ? pad.end() : pad.begin() + rank, pad.end());
  if (pad.empty()) w.before = w.after = Ints(kernel.size(), 0);
  w.dilation = OrOnes(attrs, "dilation", kernel.size());
  return w;
}

absl::Status CheckMost(const OpCall& call, absl::string_view what, absl::Span<const int64_t> ints) {
  for (int64_t v : ints) {
    if (v > std::numeric_limits<int32_t>::max()) return call.Error(absl::StrCat(what, " is too large (", v, ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Window> CheckedWindow(const OpCall& call, const Ints& kernel) {
  const int rank = static_cast<int>(kernel.size());
  if (std::any_of(kernel.begin(), kernel.end(), [](int64_t k) { return k < 1; })) {
    return call.Error(absl::StrCat("the window is ", ExtentsText(kernel), ", expected 1 or more along every axis"));
  }
  AGC_RETURN_IF_ERROR(CheckMost(call, "the window", kernel));
  if (!call.ints("stride").empty()) AGC_RETURN_IF_ERROR(CheckInts(call, "stride", rank, 1));
  if (!call.ints("pad").empty()) AGC_RETURN_IF_ERROR(CheckInts(call, "pad", 2 * rank, 0));
  AGC_RETURN_IF_ERROR(CheckMost(call, "stride", call.ints("stride")));
  AGC_RETURN_IF_ERROR(CheckMost(call, "pad", call.ints("pad")));
  if (FindAttr(call.attrs, "dilation") != nullptr && !call.ints("dilation").empty()) {
    AGC_RETURN_IF_ERROR(CheckInts(call, "dilation", rank, 1));
    AGC_RETURN_IF_ERROR(CheckMost(call, "dilation", call.ints("dilation")));
  }
  Window window = WindowOf(call, kernel);
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t reach[] = {window.reach(axis)};
    AGC_RETURN_IF_ERROR(CheckMost(call, "the dilated window", reach));
  }
  return window;
}

absl::StatusOr<Ints> WindowedExtents(const OpCall& call, const Window& window, const Ints& input) {
  AGC_RETURN_IF_ERROR(CheckMost(call, "an extent of the input", input));
  Ints out;
  for (int axis = 0; axis < window.rank(); ++axis) {
    const int64_t padded = input[axis] + window.before[axis] + window.after[axis];
    if (padded < window.reach(axis)) {
      const bool dilated = window.reach(axis) != window.kernel[axis];
      return call.Error(absl::StrCat("the window ", ExtentsText(window.kernel),
                                     dilated ? absl::StrCat(" with dilation ", ToString(window.dilation)) : "",
                                     " does not fit into the input ", ExtentsText(input), " with pad ",
                                     ToString(call.ints("pad"))));
    }
    out.push_back((padded - window.reach(axis)) / window.stride[axis] + 1);
  }
  return out;
}

std::string ExtentsText(absl::Span<const int64_t> extents) { return absl::StrJoin(extents, "x"); }

}  // namespace agc
