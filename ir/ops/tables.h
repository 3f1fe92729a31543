// One table per family of ops, named here: a static library drops objects that nobody refers to, so nothing registers
// itself. AllOps() reads this list.
#pragma once
#include "ir/op_def.h"

namespace agc {

extern const absl::Span<const OpDef> kDataOps;         // input, state, constant, blob, get, gradient, iota, random_bits
extern const absl::Span<const OpDef> kDerivativeOps;   // vjp, jvp, custom_vjp, call
extern const absl::Span<const OpDef> kElementwiseOps;  // unary and binary maths
extern const absl::Span<const OpDef> kMathOps;         // exponentials, logarithms, roots, rounding, extremes
extern const absl::Span<const OpDef> kTrigOps;         // trigonometric and hyperbolic, hypot
extern const absl::Span<const OpDef> kBitOps;          // bits, classes of floats
extern const absl::Span<const OpDef> kCompareOps;      // compare, select, cast, logic
extern const absl::Span<const OpDef> kViewOps;         // reshape, transpose, broadcast, slice, concat
extern const absl::Span<const OpDef> kPadOps;          // pad
extern const absl::Span<const OpDef> kRearrangeOps;    // flip, roll, tile, stack, depth_to_space, update_slice
extern const absl::Span<const OpDef> kDiagonalOps;     // tril, triu, diagonal, diag_embed, trace
extern const absl::Span<const OpDef> kReduceOps;       // sum, mean, largest, smallest, product, argmax
extern const absl::Span<const OpDef> kReduceStatsOps;  // composites: logic, counts, norms, variances
extern const absl::Span<const OpDef> kCumulativeOps;   // cumsum and its kin, linear_recurrence, prefix_reduce
extern const absl::Span<const OpDef> kLinalgOps;       // composites: einsum, dot, outer, kron, cross
extern const absl::Span<const OpDef> kContractOps;     // matmul, batch_matmul
extern const absl::Span<const OpDef> kConvOps;         // conv1d, conv2d, conv3d and their gradients
extern const absl::Span<const OpDef> kConvTransposeOps;  // conv_transpose1d, 2d, 3d
extern const absl::Span<const OpDef> kUnfoldOps;         // windows as tensors
extern const absl::Span<const OpDef> kMaxPoolOps;        // maximum pooling with positions, and its gradients
extern const absl::Span<const OpDef> kPoolOps;          // composites: max_pool2d, avg_pool2d, lp_pool2d, global pooling
extern const absl::Span<const OpDef> kAdaptivePoolOps;  // pooling to a given size
extern const absl::Span<const OpDef> kResizeOps;        // resize, resample
extern const absl::Span<const OpDef> kGridOps;          // affine_grid, grid_sample
extern const absl::Span<const OpDef> kGatherOps;        // take, one_hot
extern const absl::Span<const OpDef> kActivationOps;  // composites: relu, sigmoid, gelu, softmax, log_softmax, dropout
extern const absl::Span<const OpDef> kLinearActivationOps;  // relu6, hard_*, prelu, shrink
extern const absl::Span<const OpDef> kSmoothActivationOps;  // elu, mish, glu, swish, log_sigmoid
extern const absl::Span<const OpDef> kNormOps;              // composites: layer_norm, batch_norm, lrn
extern const absl::Span<const OpDef> kAttentionOps;         // composites: attention, masked_softmax
extern const absl::Span<const OpDef> kPositionOps;          // composites: rotary_embedding, sinusoidal_positions, alibi
extern const absl::Span<const OpDef> kRecurrentOps;         // composites: rnn, gru, lstm
extern const absl::Span<const OpDef> kLossOps;              // composites, of classes: cross_entropy, nll
extern const absl::Span<const OpDef> kRegressionLossOps;    // composites: mse, huber, gaussian_nll
extern const absl::Span<const OpDef> kBinaryLossOps;        // composites: bce, bce_with_logits, sigmoid_focal
extern const absl::Span<const OpDef> kMarginLossOps;        // composites: hinge, cosine_embedding, triplet_margin
extern const absl::Span<const OpDef> kIndexOps;             // take_along_axis, gather_nd, embedding, wrap_index
extern const absl::Span<const OpDef> kDynamicOps;           // dynamic_slice, dynamic_update_slice, searchsorted
extern const absl::Span<const OpDef> kScatterOps;           // scatter_rows and the two ways to compute it
extern const absl::Span<const OpDef> kScatterIndexOps;      // index_update, scatter_elements, scatter_nd
extern const absl::Span<const OpDef> kSortOps;              // sort, argsort, top_k and their parts
extern const absl::Span<const OpDef> kRandomOps;            // random_*

}  // namespace agc
