// The C++ function of every op, which users and gradient rules build graphs with. Binary functions broadcast as numpy
// does; dtypes must be equal. Definitions stand beside the rows in ir/ops/.
//   Value y = Relu(Matmul(x, w) + b);
#pragma once
#include <string>
#include <vector>

#include "ir/value.h"

namespace agc {

// Data.
Value Constant(Builder& b, TensorType type, LiteralPtr literal, Loc loc = Loc::Here());
Value Full(Builder& b, TensorType type, double value, Loc loc = Loc::Here());             // a splat
Value FullLike(Value like, double value, Loc loc = Loc::Here());                          // same type as `like`
Value Iota(Builder& b, DType dtype, Dims dims, int64_t axis = 0, Loc loc = Loc::Here());  // position along axis
// u32[dims]: Philox-4x32-10 words of the element index under key u32[2]; pure. Streams are given out by the trace.
Value RandomBits(Value key, int64_t stream, Dims dims, Loc loc = Loc::Here());
Value RandomUniform(Value key, int64_t stream, Dims dims, Loc loc = Loc::Here());  // f32 in [0, 1)
Value RandomNormal(Value key, int64_t stream, Dims dims, Loc loc = Loc::Here());   // f32, mean 0, deviation 1
Value Get(Value tuple, int64_t index, Loc loc = Loc::Here());
Value Gradient(Value loss, Value with_respect_to, Loc loc = Loc::Here());  // type of the second
Value StopGradient(Value x, Loc loc = Loc::Here());

// Elementwise.
Value Add(Value a, Value b, Loc loc = Loc::Here());
Value Sub(Value a, Value b, Loc loc = Loc::Here());
Value Mul(Value a, Value b, Loc loc = Loc::Here());
Value DivOf(Value a, Value b, Loc loc = Loc::Here());  // `div`
Value FloorDiv(Value a, Value b, Loc loc = Loc::Here());
Value Rem(Value a, Value b, Loc loc = Loc::Here());  // sign of the dividend
Value Pow(Value a, Value b, Loc loc = Loc::Here());
Value Maximum(Value a, Value b, Loc loc = Loc::Here());  // NaN if either is; ties split the gradient evenly
Value Minimum(Value a, Value b, Loc loc = Loc::Here());
Value Neg(Value x, Loc loc = Loc::Here());
Value Abs(Value x, Loc loc = Loc::Here());
Value Sign(Value x, Loc loc = Loc::Here());
Value Exp(Value x, Loc loc = Loc::Here());
Value Log(Value x, Loc loc = Loc::Here());
Value Sqrt(Value x, Loc loc = Loc::Here());
Value Rsqrt(Value x, Loc loc = Loc::Here());
Value Square(Value x, Loc loc = Loc::Here());
Value Reciprocal(Value x, Loc loc = Loc::Here());
Value Sin(Value x, Loc loc = Loc::Here());
Value Cos(Value x, Loc loc = Loc::Here());
Value Tanh(Value x, Loc loc = Loc::Here());
Value Floor(Value x, Loc loc = Loc::Here());
Value Ceil(Value x, Loc loc = Loc::Here());
Value Round(Value x, Loc loc = Loc::Here());  // halves to even
Value BitAnd(Value a, Value b, Loc loc = Loc::Here());
Value BitOr(Value a, Value b, Loc loc = Loc::Here());
Value BitXor(Value a, Value b, Loc loc = Loc::Here());
Value ShiftLeft(Value a, Value b, Loc loc = Loc::Here());
Value ShiftRight(Value a, Value b, Loc loc = Loc::Here());

// Compare, select, cast.
Value Equal(Value a, Value b, Loc loc = Loc::Here());
Value NotEqual(Value a, Value b, Loc loc = Loc::Here());
Value Less(Value a, Value b, Loc loc = Loc::Here());
Value LessEqual(Value a, Value b, Loc loc = Loc::Here());
Value Greater(Value a, Value b, Loc loc = Loc::Here());
Value GreaterEqual(Value a, Value b, Loc loc = Loc::Here());
Value IsNan(Value x, Loc loc = Loc::Here());
Value LogicalAnd(Value a, Value b, Loc loc = Loc::Here());
Value LogicalOr(Value a, Value b, Loc loc = Loc::Here());
Value LogicalNot(Value x, Loc loc = Loc::Here());
Value Where(Value cond, Value then, Value otherwise, Loc loc = Loc::Here());  // op `select`
Value Clamp(Value x, double lo, double hi, Loc loc = Loc::Here());
Value CastTo(Value x, DType dtype, Loc loc = Loc::Here());  // op `cast`

// Views.
Value Reshape(Value x, Ints shape, Loc loc = Loc::Here());  // one -1 is worked out
Value Transpose(Value x, Ints perm, Loc loc = Loc::Here());
Value T(Value x, Loc loc = Loc::Here());                                     // swaps the last two axes
Value Broadcast(Value x, Ints shape, Loc loc = Loc::Here());                 // numpy alignment
Value BroadcastAxes(Value x, Ints shape, Ints axes, Loc loc = Loc::Here());  // axis k of x becomes axis axes[k]
Value Slice(Value x, Ints start, Ints limit, Ints stride, Loc loc = Loc::Here());
Value Pad(Value x, double value, Ints low, Ints high, Loc loc = Loc::Here());
Value Concat(absl::Span<const Value> xs, int64_t axis, Loc loc = Loc::Here());
Value ExpandDims(Value x, Ints axes, Loc loc = Loc::Here());  // a reshape
Value Squeeze(Value x, Ints axes, Loc loc = Loc::Here());     // a reshape

// Reductions over `axes` (empty: all; negative counts from the end), which go unless keep_dims.
Value ReduceSum(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceMean(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceMax(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());  // ties split the gradient
Value ReduceMin(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ReduceProd(Value x, Ints axes = {}, bool keep_dims = false, Loc loc = Loc::Here());
Value ArgMax(Value x, int64_t axis, bool keep_dims = false, Loc loc = Loc::Here());  // i32, the first of equals
Value ArgMin(Value x, int64_t axis, bool keep_dims = false, Loc loc = Loc::Here());
// Sums over the axes that broadcasting to x's type had added, so that the result has shape `dims`.
Value SumTo(Value x, const Dims& dims, Loc loc = Loc::Here());

// Contractions.
Value Matmul(Value a, Value b, Loc loc = Loc::Here());  // [m,k] x [k,n]; rank 3 and more: `batch_matmul`
struct Conv2dOptions {
  Ints stride = {1, 1};
  Ints pad = {0, 0, 0, 0};  // top, left, bottom, right
};
Value Conv2d(Value x, Value w, Conv2dOptions options = {}, Loc loc = Loc::Here());  // NCHW, OIHW
// Gradients of conv2d: with respect to its input of shape `input` and to its weight of shape `weight`.
Value Conv2dInputGrad(Value g, Value w, Ints input, Conv2dOptions options, Loc loc = Loc::Here());
Value Conv2dWeightGrad(Value x, Value g, Ints weight, Conv2dOptions options, Loc loc = Loc::Here());

// Pooling over NCHW; stride 0 means the window.
struct PoolOptions {
  Ints window = {2, 2};
  Ints stride = {};
  Ints pad = {0, 0, 0, 0};
};
Value MaxPool2d(Value x, PoolOptions options = {}, Loc loc = Loc::Here());
Value MaxPool2dWithIndex(Value x, PoolOptions options = {}, Loc loc = Loc::Here());  // (value, u8 position in window)
Value AvgPool2d(Value x, PoolOptions options = {}, Loc loc = Loc::Here());

// Gather.
Value Take(Value x, Value indices, int64_t axis = 0, Loc loc = Loc::Here());  // clamps; negative counts from the end
Value OneHot(Value indices, int64_t depth, DType dtype, Loc loc = Loc::Here());

// Activations, normalisation, losses.
Value Relu(Value x, Loc loc = Loc::Here());
Value Sigmoid(Value x, Loc loc = Loc::Here());
Value Gelu(Value x, Loc loc = Loc::Here());  // with erf; GeluTanh is in build_math.h
Value Silu(Value x, Loc loc = Loc::Here());
Value Softplus(Value x, Loc loc = Loc::Here());
Value LeakyRelu(Value x, double slope = 0.01, Loc loc = Loc::Here());
Value Softmax(Value x, int64_t axis = -1, Loc loc = Loc::Here());
Value LogSoftmax(Value x, int64_t axis = -1, Loc loc = Loc::Here());
Value LogSumExp(Value x, int64_t axis = -1, Loc loc = Loc::Here());  // the axis goes
Value Dropout(Value x, Value key, int64_t stream, double rate, Loc loc = Loc::Here());
Value LayerNorm(Value x, Value scale, Value shift, double epsilon = 1e-5, Loc loc = Loc::Here());  // last axis
Value CrossEntropy(Value logits, Value labels, Loc loc = Loc::Here());  // [n,c], i32[n]; mean over n
Value Mse(Value x, Value y, Loc loc = Loc::Here());                     // mean squared difference

}  // namespace agc
