// The C++ functions of views, reductions, cumulative and linear-algebra ops beyond those of ir/build.h. Negative axes
// count from the end; dtypes never mix; definitions stand beside the rows in ir/ops/.
//   Value s = CumSum(Flip(x, {1}), 1, {.exclusive = true});
//   Value y = Einsum("bij,bjk->bik", {a, b});
#pragma once
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "ir/build.h"

namespace agc {

// Views.
Value Flip(Value x, Ints axes = {}, Loc loc = Loc::Here());          // reverses axes; none given: all
Value Roll(Value x, Ints shifts, Ints axes, Loc loc = Loc::Here());  // what leaves an end comes in at the other
Value Tile(Value x, Ints repeats, Loc loc = Loc::Here());            // numpy's: missing leading numbers are 1
Value RepeatInterleave(Value x, int64_t repeats, int64_t axis, Loc loc = Loc::Here());
// numpy's x[start:limit:stride] along `axes` (none given: the first ones). Negative positions count from the end,
// positions beyond an end stop there; a negative stride goes backwards. INT64_MAX and INT64_MIN as limits mean through
// the last and the first element.
Value StridedSlice(Value x, Ints start, Ints limit, Ints stride = {}, Ints axes = {}, Loc loc = Loc::Here());
Value UpdateSlice(Value x, Value update, Ints start, Loc loc = Loc::Here());  // x with `update` written at `start`
// Padding from the values of x: mirrored at the border without repeating it, the border repeated, the other end. A
// negative number crops, here and in Pad of ir/build.h.
enum class PadMode : uint8_t { kReflect, kEdge, kWrap };
Value Pad(Value x, PadMode mode, Ints low, Ints high, Loc loc = Loc::Here());
Value Stack(absl::Span<const Value> xs, int64_t axis = 0, Loc loc = Loc::Here());  // along a new axis
std::vector<Value> Split(Value x, Ints sizes, int64_t axis = 0, Loc loc = Loc::Here());
// `count` pieces of equal size, the last ones shorter or missing where the axis does not divide.
std::vector<Value> Chunk(Value x, int64_t count, int64_t axis = 0, Loc loc = Loc::Here());
std::vector<Value> Unstack(Value x, int64_t axis = 0, Loc loc = Loc::Here());  // the axis goes
Value MoveAxis(Value x, Ints from, Ints to, Loc loc = Loc::Here());
Value SwapAxes(Value x, int64_t a, int64_t b, Loc loc = Loc::Here());
Value Flatten(Value x, int64_t first = 0, int64_t last = -1, Loc loc = Loc::Here());  // axes first..last become one
// numpy's common shape of x and `shape`; -1 keeps what x has.
Value Expand(Value x, Ints shape, Loc loc = Loc::Here());
// Blocks of channels of [..., c, h, w] to squares of pixels and back. ONNX's two orders: the block index is the slow
// part of the channel (DCR) or the fast one (CRD, torch's pixel_shuffle).
enum class DepthOrder : uint8_t { kDcr, kCrd };
Value DepthToSpace(Value x, int64_t block, DepthOrder order = DepthOrder::kDcr, Loc loc = Loc::Here());
Value SpaceToDepth(Value x, int64_t block, DepthOrder order = DepthOrder::kDcr, Loc loc = Loc::Here());
Value PixelShuffle(Value x, int64_t factor, Loc loc = Loc::Here());
Value PixelUnshuffle(Value x, int64_t factor, Loc loc = Loc::Here());
Value Tril(Value x, int64_t diagonal = 0, Loc loc = Loc::Here());  // 0 above the diagonal
Value Triu(Value x, int64_t diagonal = 0, Loc loc = Loc::Here());  // 0 below it
// The elements [i, i + offset] of two axes, as a new last axis; and the reverse, with zeros elsewhere.
Value Diagonal(Value x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1, Loc loc = Loc::Here());
Value DiagEmbed(Value x, int64_t offset = 0, int64_t axis1 = -2, int64_t axis2 = -1, Loc loc = Loc::Here());
Value Diag(Value x, int64_t offset = 0, Loc loc = Loc::Here());  // a matrix of a vector, the diagonal of a matrix
Value Eye(Builder& b, DType dtype, int64_t rows, int64_t columns = -1, int64_t offset = 0, Loc loc = Loc::Here());
// Coordinates of a grid from one vector per axis; `xy` swaps the first two axes, as numpy does by default.
std::vector<Value> Meshgrid(absl::Span<const Value> xs, bool xy = false, Loc loc = Loc::Here());

// Reductions over `axes` (empty: all), which go unless keep_dims.
Value ReduceAny(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceAll(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value CountNonzero(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());  // i32
Value ReduceL1(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceL2(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceSumSquare(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceLogSum(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceLogSumExp(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceNorm(Value x, double p, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());  // p = inf: largest
// Squared deviations from the mean, divided by n - correction: numpy's ddof, 1 for the unbiased estimate.
Value ReduceVar(Value x, Ints axes = {}, double correction = 0, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceStd(Value x, Ints axes = {}, double correction = 0, bool keep_dims = false, Loc loc = Loc::Here());
Value ArgMaxLast(Value x, int64_t axis, bool keep_dims = false, Loc loc = Loc::Here());  // the last of equals
Value ArgMinLast(Value x, int64_t axis, bool keep_dims = false, Loc loc = Loc::Here());

// Cumulative ops along an axis: each element combined with those before it.
struct CumulativeOptions {
  bool reverse = false;    // from the end
  bool exclusive = false;  // without the element itself
};
Value CumSum(Value x, int64_t axis = -1, CumulativeOptions options = {}, Loc loc = Loc::Here());
Value CumProd(Value x, int64_t axis = -1, CumulativeOptions options = {}, Loc loc = Loc::Here());
Value CumMax(Value x, int64_t axis = -1, CumulativeOptions options = {}, Loc loc = Loc::Here());
Value CumMin(Value x, int64_t axis = -1, CumulativeOptions options = {}, Loc loc = Loc::Here());
Value LogCumSumExp(Value x, int64_t axis = -1, CumulativeOptions options = {}, Loc loc = Loc::Here());
// h[t] = a[t] * h[t - 1] + b[t] along an axis, with 0 before the first.
Value LinearRecurrence(Value a, Value b, int64_t axis = -1, bool reverse = false, Loc loc = Loc::Here());

// Linear algebra. Matmul of ir/build.h takes vectors and broadcasts as numpy does.
Value Einsum(absl::string_view equation, absl::Span<const Value> xs, Loc loc = Loc::Here());
Value Dot(Value a, Value b, Loc loc = Loc::Here());    // numpy.dot: last axis with the last but one
Value Inner(Value a, Value b, Loc loc = Loc::Here());  // numpy.inner: last axis with last axis
Value Outer(Value a, Value b, Loc loc = Loc::Here());  // all elements of a with all of b
Value Tensordot(Value a, Value b, Ints axes_a, Ints axes_b, Loc loc = Loc::Here());
Value Kron(Value a, Value b, Loc loc = Loc::Here());
Value Cross(Value a, Value b, int64_t axis = -1, Loc loc = Loc::Here());  // of three-vectors; broadcasts
Value TraceOf(Value x, int64_t offset = 0, int64_t axis1 = 0, int64_t axis2 = 1, Loc loc = Loc::Here());
Value Bilinear(Value a, Value b, Value w, Loc loc = Loc::Here());  // [..., i], [..., j], [o, i, j] -> [..., o]

}  // namespace agc
