// Ops that stand for derivatives until pass autograd expands them, and the op that brings its own gradient:
//   %3: f32[2] = gradient %loss, %x                    d loss / d x
//   %4: f32[2] = vjp %y, %g, %x                        J'g: the cotangent g of y taken back to x
//   %5: f32[3] = jvp %y, %x, %t                        Jt: the tangent t of x carried on to y
//   %6: f32[3] = custom_vjp %y, %x @swish.vjp          y; its cotangent goes to graph @swish.vjp(x, y, g) -> (dx)
// `vjp` takes several values with their cotangents (`outputs = 2`: y0, y1, g0, g1, x), `jvp` several values with their
// tangents (`inputs = 2`: y, x0, x1, t0, t1). A tangent moves its value where it is read, on top of what the others do
// to it, so that <u, Jt> = <J'u, t> whatever depends on what.
#pragma once
#include <vector>

#include "ir/op_def.h"
#include "ir/program.h"
#include "ir/value.h"

namespace agc {

const OpDef& VjpOp();
const OpDef& JvpOp();
const OpDef& CustomVjpOp();
// `gradient`, `vjp` and `jvp`, which have no value of their own.
bool IsDerivative(const OpDef& def);

// The operands of a derivative by their part. For `gradient` and `vjp`: ys, their cotangents (none: 1), one x. For
// `jvp`: one y, xs and their tangents.
struct DerivativeOperands {
  std::vector<OpId> ys = {}, xs = {}, vectors = {};
};
DerivativeOperands OperandsOf(const Op& derivative);

// The ops `vjp` and `jvp`.
Value VectorJacobian(absl::Span<const Value> ys, absl::Span<const Value> gs, Value x, Loc loc = Loc::Here());
Value JacobianVector(Value y, absl::Span<const Value> xs, absl::Span<const Value> ts, Loc loc = Loc::Here());

// Whether the graph is the gradient of a custom function, by its name's end ".vjp": no entry of the bundle, gone when
// pass autograd is through.
bool IsGradientFunction(const Graph& graph);
// What such a graph takes and gives: the operands x, y and y's cotangent; one value for each float x.
struct FunctionTypes {
  std::vector<TensorType> params = {}, results = {};
};
FunctionTypes CustomVjpTypes(const TensorType& y, absl::Span<const TensorType> xs);

// Copies the body of `callee` behind the ops being built, with `args` for its parameters; returns its outputs. Poison
// where the arguments do not fit. `streams` is added to the streams of random ops.
std::vector<Value> Inline(Builder& builder, const Graph& callee, absl::Span<const Value> args, int64_t streams = 0,
                          Loc loc = Loc::Here());

}  // namespace agc
