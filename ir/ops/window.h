// Windows that slide over the spatial axes of [n, c, spatial...] tensors: what convolutions and pooling have in common,
// for any number of axes. Output element p reads input elements p * stride + tap * dilation - before for tap in
// [0, kernel), where they exist.
//   AGC_ASSIGN_OR_RETURN(const Window window, CheckedWindow(call, {3, 3}));
//   AGC_ASSIGN_OR_RETURN(const Ints out, WindowedExtents(call, window, {28, 28}));
#pragma once
#include "ir/op_def.h"

namespace agc {

struct Window {
  Ints kernel = {}, stride = {}, before = {}, after = {}, dilation = {};  // one number per axis
  int rank() const { return static_cast<int>(kernel.size()); }
  int64_t taps() const;  // of a window that CheckTaps (ir/ops/pool.h) let through
  int64_t reach(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }  // elements from first to last tap
};

// The axes behind the first two.
Ints Spatial(const Dims& dims);

// A place along one axis, with the condition under which it lies inside the tensor.
struct WindowPlace {
  Expr index = {};
  Expr inside = {};
};
// The input element that output element `out` reads at `tap`.
WindowPlace InputAt(const Window& window, int axis, Expr out, Expr tap, int64_t inputs);

// The output elements that read input element `in`, numbered from 0 to Readers() - 1, in the order of their taps. Every
// tap is one of them and most miss (`kTaps`: the stride must divide the distance), or every stride-th tap from the one
// that fits is (`kPhases`: without dilation).
enum class ReaderForm { kTaps, kPhases };
ReaderForm FormOf(const Window& window, int axis);  // the one with fewer readers
int64_t Readers(const Window& window, int axis, ReaderForm form);
struct Reader : WindowPlace {
  Expr tap = {};
  Expr is_tap = {};  // `tap` lies inside the kernel
};
Reader OutputAt(const Window& window, int axis, Expr in, Expr number, int64_t outputs, ReaderForm form);

// From attributes `stride` (empty: the kernel), `pad` (before along every axis, then after along every axis) and
// `dilation` (where the op has it; empty: 1), which are taken to be legal.
Window WindowOf(const AttrReader& attrs, const Ints& kernel);
// The same, checked: positive kernel, stride and dilation, padding of 0 and more.
absl::StatusOr<Window> CheckedWindow(const OpCall& call, const Ints& kernel);
// Output extents over an input; an error where the kernel does not fit into the padded input.
absl::StatusOr<Ints> WindowedExtents(const OpCall& call, const Window& window, const Ints& input);
// No number of `ints` is so large that sums of an index, a tap and a padding could overflow.
absl::Status CheckMost(const OpCall& call, absl::string_view what, absl::Span<const int64_t> ints);

std::string ExtentsText(absl::Span<const int64_t> extents);  // "3x3"

}  // namespace agc
