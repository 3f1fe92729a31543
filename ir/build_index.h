// The C++ functions of indexing, scattering, sorting and random draws, beside those of ir/build.h. Indices are integers
// of any dtype. One rule holds everywhere: a negative index counts from the end; one that still is no element is
// clamped where something is read and dropped where something is written.
//   TopKResult top = TopK(logits, 5);                    // [n,c] -> [n,5] values and i32 indices
//   Value w = IndexUpdate(table, ids, rows, ScatterMode::kAdd);
#pragma once
#include "ir/build.h"

namespace agc {

// Gather. `Take` is in ir/build.h.
Value IndexSelect(Value x, int64_t axis, Value indices, Loc loc = Loc::Here());  // `take`; indices [n]
// x and indices have one rank; the result has the shape of indices, which is no larger than x off the axis.
Value TakeAlongAxis(Value x, Value indices, int64_t axis = -1, Loc loc = Loc::Here());
// indices [batch..., m..., k] address the first k axes of x after `batch_dims` shared ones: [batch..., m..., rest...].
Value GatherNd(Value x, Value indices, int64_t batch_dims = 0, Loc loc = Loc::Here());
Value GatherRows(Value x, Value positions, Loc loc = Loc::Here());  // [b,r,d], i32 [b or 1,n] -> [b,n,d], 0 for no row
// Rows of table [v,d] at ids [...]; id `padding_idx` passes no gradient (-1: none).
Value Embedding(Value table, Value ids, int64_t padding_idx = -1, Loc loc = Loc::Here());
struct OneHotOptions {
  DType dtype = DType::kF32;
  int64_t axis = -1;  // of the result
  double on = 1, off = 0;
};
Value OneHot(Value indices, int64_t depth, const OneHotOptions& options, Loc loc = Loc::Here());
Value MaskedFill(Value x, Value mask, double value, Loc loc = Loc::Here());  // the mask broadcasts to x
// i32 positions along an axis of `size`: negative ones count from the end, others are clamped, or -1 where `drop`.
Value WrapIndex(Value indices, int64_t size, bool drop, Loc loc = Loc::Here());
// A window of `sizes` from start [rank], which is clamped so that the window lies inside.
Value DynamicSlice(Value x, Value start, Ints sizes, Loc loc = Loc::Here());
Value DynamicUpdateSlice(Value x, Value update, Value start, Loc loc = Loc::Here());
// i32 positions where `values` go into rows sorted along the last axis (rank 1: one row for all): before equal
// elements, or behind them where `right`. Bucketize has its operands the other way round, as torch does.
Value SearchSorted(Value sorted, Value values, bool right = false, Loc loc = Loc::Here());
Value Bucketize(Value x, Value boundaries, bool right = false, Loc loc = Loc::Here());

// Scatter: x with updates combined into it. Sums run in increasing order of the updates, after x; kSet keeps the last.
enum class ScatterMode : uint8_t { kSet, kAdd, kMul, kMin, kMax };
// x [b,r,d], positions i32 [b or 1,n], updates [b,n,d]; positions outside [0, r) are dropped.
Value ScatterRows(Value x, Value positions, Value updates, ScatterMode mode = ScatterMode::kSet, Loc loc = Loc::Here());
Value ScatterElements(Value x, Value indices, Value updates, int64_t axis = 0, ScatterMode mode = ScatterMode::kSet,
                      Loc loc = Loc::Here());
// indices [m..., k], updates [m..., rest...], where rest are the axes of x from the k-th on.
Value ScatterNd(Value x, Value indices, Value updates, ScatterMode mode = ScatterMode::kSet, Loc loc = Loc::Here());
// The other way round of take: updates have the shape of Take(x, indices, axis).
Value IndexUpdate(Value x, Value indices, Value updates, ScatterMode mode = ScatterMode::kSet, int64_t axis = 0,
                  Loc loc = Loc::Here());
Value IndexAdd(Value x, int64_t axis, Value indices, Value updates, Loc loc = Loc::Here());

// Sort along an axis. NaN counts as larger than every number; equals keep their order, in either direction.
Value Sort(Value x, int64_t axis = -1, bool descending = false, Loc loc = Loc::Here());
Value ArgSort(Value x, int64_t axis = -1, bool descending = false, Loc loc = Loc::Here());  // i32
Value InversePermutation(Value order, Loc loc = Loc::Here());  // i32, of every row along the last axis
struct TopKResult {
  Value values, indices;  // i32
};
TopKResult TopK(Value x, int64_t k, int64_t axis = -1, bool largest = true, Loc loc = Loc::Here());
Value KthValue(Value x, int64_t k, int64_t axis = -1,
               Loc loc = Loc::Here());                            // the k-th smallest from 1; the axis goes
Value Median(Value x, int64_t axis = -1, Loc loc = Loc::Here());  // the mean of the middle two; NaN if any is
// The different elements of x in increasing order, NaN once, cut or filled to `size`: the element, how often it is
// there, and where x's elements (flattened) are among them; `count` i32[] is how many there are.
struct UniqueResult {
  Value values, counts, inverse, count;
};
UniqueResult Unique(Value x, int64_t size, double fill = 0, Loc loc = Loc::Here());
// i32 [size, rank]: where x is not 0, in row-major order; `fill` in the rows behind the last.
Value NonZero(Value x, int64_t size, int64_t fill = -1, Loc loc = Loc::Here());
Value BinCount(Value x, int64_t bins, Loc loc = Loc::Here());  // i32 [bins]; other values are not counted
// i32 [bins]: equal bins from lo to hi, the last with its upper end; what lies outside is not counted.
Value Histogram(Value x, int64_t bins, double lo, double hi, Loc loc = Loc::Here());

// Keys are u32[2]. What comes from different keys, streams and functions of keys is independent.
Value FoldIn(Value key, Value data, Loc loc = Loc::Here());     // data integer [...]: u32[...,2], a key per number
Value SplitKey(Value key, int64_t n, Loc loc = Loc::Here());    // u32[n,2]
Value KeyAt(Value keys, int64_t index, Loc loc = Loc::Here());  // one of them
Value RandomUniform(Value key, int64_t stream, Dims dims, double lo, double hi, Loc loc = Loc::Here());  // [lo, hi)
Value RandomNormal(Value key, int64_t stream, Dims dims, double mean, double stddev, Loc loc = Loc::Here());
Value TruncatedNormal(Value key, int64_t stream, Dims dims, double lo = -2, double hi = 2, Loc loc = Loc::Here());
Value RandomExponential(Value key, int64_t stream, Dims dims, Loc loc = Loc::Here());  // rate 1
Value RandomGumbel(Value key, int64_t stream, Dims dims, Loc loc = Loc::Here());
Value RandomInt(Value key, int64_t stream, Dims dims, int64_t lo, int64_t hi, DType dtype = DType::kI32,
                Loc loc = Loc::Here());  // lo to hi - 1
Value Bernoulli(Value key, int64_t stream, Value p,
                Loc loc = Loc::Here());  // bool of p's shape, true with probability p
Value Permutation(Value key, int64_t stream, int64_t n, Loc loc = Loc::Here());  // i32[n]
Value Shuffle(Value x, Value key, int64_t stream, int64_t axis = 0, Loc loc = Loc::Here());
Value Categorical(Value key, int64_t stream, Value logits, int64_t axis = -1, Loc loc = Loc::Here());  // i32
// i32 [..., n] draws from the rows of logits [..., c]; without replacement n different ones.
Value Multinomial(Value key, int64_t stream, Value logits, int64_t n, bool replacement, Loc loc = Loc::Here());
// Dropout of whole slices: one draw for all positions along `shared` axes (channels: the axes of the image).
Value DropoutShared(Value x, Value key, int64_t stream, double rate, Ints shared, Loc loc = Loc::Here());
// Klambauer et al. (2017), "Self-normalizing neural networks": keeps mean 0 and deviation 1 behind selu.
Value AlphaDropout(Value x, Value key, int64_t stream, double rate, Loc loc = Loc::Here());

}  // namespace agc
