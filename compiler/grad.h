// Derivatives as functions on values of a trace, and functions that bring their own gradient. Each makes ops that pass
// autograd expands, so derivatives may be differentiated again.
//   agc::Tensor g = agc::Grad(loss, w);                       // of an input, a state or any value on the way
//   auto [value, grads] = agc::ValueAndGrad(f, {x, y});       // f: Tensor(Span<const Tensor>), its value a scalar
//   agc::Tensor ty = agc::Jvp(y, x, t), dx = agc::Vjp(y, x, g), hv = agc::Hvp(loss, x, v);
// A value that is not reached gets zeros; integers have no derivative. Wrong operands are diagnostics of the trace.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/module.h"
#include "ir/op_def.h"  // before the functions that share names with its structs Vjp and Jvp

namespace agc {

using Tensors = std::vector<Tensor>;

// Gradients of a float scalar, each of the type of what it is taken with respect to; of several losses, of their sum.
Tensor Grad(Tensor loss, Tensor x, Loc loc = Loc::Here());
Tensors Grad(Tensor loss, TensorSpan xs, Loc loc = Loc::Here());
Tensors Grad(TensorSpan losses, TensorSpan xs, Loc loc = Loc::Here());

struct ValueWithGrads {
  Tensor value = {};
  Tensors grads = {};
};
// f's value at xs and its gradients with respect to each of them.
ValueWithGrads ValueAndGrad(absl::FunctionRef<Tensor(TensorSpan)> f, TensorSpan xs, Loc loc = Loc::Here());

// J'g: the cotangents g of the ys, of their types, taken back to x; for several ys, the sum over them.
Tensor Vjp(Tensor y, Tensor x, Tensor g, Loc loc = Loc::Here());
Tensors Vjp(TensorSpan ys, TensorSpan xs, TensorSpan gs, Loc loc = Loc::Here());
// Jt: what y changes by when x moves by t, of x's type; for several xs, the sum over them.
Tensor Jvp(Tensor y, Tensor x, Tensor t, Loc loc = Loc::Here());
Tensors Jvp(TensorSpan ys, TensorSpan xs, TensorSpan ts, Loc loc = Loc::Here());
// Hv: the second derivative of a float scalar times v, of x's type (Pearson 1994, "Fast exact multiplication by the
// Hessian": the tangent of the gradient). For several xs, each row of the block matrix.
Tensor Hvp(Tensor loss, Tensor x, Tensor v, Loc loc = Loc::Here());
Tensors Hvp(Tensor loss, TensorSpan xs, TensorSpan vs, Loc loc = Loc::Here());

// A graph of the module as a function of values: its ops are copied into the trace. It updates no state; its random
// streams become new ones.
//   m.Graph("f", ...);  m.Graph("df", [&](agc::Trace& t) { ...; t.Output("g", agc::Grad(agc::Call("f", {x})[0], x));
//   });
Tensors Call(absl::string_view graph, TensorSpan args, Loc loc = Loc::Here());

// A function with a gradient of its own. `vjp` gets the operands, the result and the result's cotangent, and returns a
// cotangent for each float operand (an empty Tensor: none). It builds with its arguments only, and may be
// differentiated again. One name is one function per module, traced once for each list of operand types.
//   const agc::CustomVjp clipped("clipped", [](agc::TensorSpan x) { return x[0]; },
//                                [](agc::TensorSpan x, agc::Tensor y, agc::Tensor g) { return Tensors{Clamp(g, -1, 1)};
//                                });
//   agc::Tensor y = clipped({x});
class CustomVjp {
 public:
  using Function = std::function<Tensor(TensorSpan x)>;
  using Gradient = std::function<Tensors(TensorSpan x, Tensor y, Tensor g)>;
  CustomVjp(absl::string_view name, Function f, Gradient vjp) : name_(name), f_(std::move(f)), vjp_(std::move(vjp)) {}
  Tensor operator()(TensorSpan x, Loc loc = Loc::Here()) const;

 private:
  std::string name_;
  Function f_;
  Gradient vjp_;
};

}  // namespace agc
