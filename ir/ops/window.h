// Windows that slide over the last two axes of NCHW tensors: what convolutions and pooling have in common. Output
// element p reads input elements p * stride + tap - before for tap in [0, kernel), where they exist.
//   AGC_ASSIGN_OR_RETURN(const Window2d window, CheckedWindow(call, {3, 3}));
//   AGC_ASSIGN_OR_RETURN(const Extents2d out, WindowedExtents(call, window, {28, 28}));
#pragma once
#include <array>

#include "ir/op_def.h"

namespace agc {

using Extents2d = std::array<int64_t, 2>;  // height, width

struct Window2d {
  Extents2d kernel = {1, 1}, stride = {1, 1}, before = {0, 0}, after = {0, 0};
  int64_t taps() const { return kernel[0] * kernel[1]; }
};

// A place along one axis, with the condition under which it lies inside the tensor.
struct WindowPlace {
  Expr index = {};
  Expr inside = {};
};
// The input element that output element `out` reads at `tap`.
WindowPlace InputAt(const Window2d& window, int axis, Expr out, Expr tap, int64_t inputs);
// The output element that reads input element `in` at `tap`, if there is one.
WindowPlace OutputAt(const Window2d& window, int axis, Expr in, Expr tap, int64_t outputs);

// From attributes `stride` (empty: the kernel) and `pad` (top, left, bottom, right), which are taken to be legal.
Window2d WindowOf(const AttrReader& attrs, Extents2d kernel);
// The same, checked: positive kernel and stride, padding of 0 and more.
absl::StatusOr<Window2d> CheckedWindow(const OpCall& call, Extents2d kernel);
// Output extents over an input; an error where the kernel does not fit into the padded input.
absl::StatusOr<Extents2d> WindowedExtents(const OpCall& call, const Window2d& window, Extents2d input);

}  // namespace agc
