#include "compiler/grad.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/derivative.h"
#include "ir/text/text.h"
#include "ir/trace.h"

namespace agc {
namespace {

Tensors OfEach(TensorSpan xs, absl::FunctionRef<Tensor(Tensor)> f) {
  Tensors out;
  for (const Tensor& x : xs) out.push_back(f(x));
  return out;
}

// Whether lists that belong together do; else poison is recorded where a trace is known.
bool Fit(absl::string_view what, TensorSpan values, TensorSpan vectors, Loc loc) {
  if (values.size() == vectors.size() && !values.empty()) return true;
  Builder* b = CurrentTrace();
  for (TensorSpan list : {values, vectors}) {
    if (b == nullptr && !list.empty()) b = list[0].builder;
  }
  if (b != nullptr) {
    Poison(*b, loc,
           absl::StrCat(what, ": ", values.size(), " values and ", vectors.size(),
                        " vectors are given, expected as many of both and at least one"));
  }
  return false;
}

}  // namespace

Tensor Grad(Tensor loss, Tensor x, Loc loc) { return Gradient(loss, x, loc); }

Tensors Grad(Tensor loss, TensorSpan xs, Loc loc) {
  return OfEach(xs, [&](Tensor x) { return Gradient(loss, x, loc); });
}

Tensors Grad(TensorSpan losses, TensorSpan xs, Loc loc) {
  Tensor sum;
  for (const Tensor& loss : losses) sum = sum.builder == nullptr ? loss : Add(sum, loss, loc);
  return Grad(sum, xs, loc);
}

ValueWithGrads ValueAndGrad(absl::FunctionRef<Tensor(TensorSpan)> f, TensorSpan xs, Loc loc) {
  const Tensor value = f(xs);
  return {value, Grad(value, xs, loc)};
}

Tensor Vjp(Tensor y, Tensor x, Tensor g, Loc loc) { return VectorJacobian({y}, {g}, x, loc); }

Tensors Vjp(TensorSpan ys, TensorSpan xs, TensorSpan gs, Loc loc) {
  if (!Fit("vjp", ys, gs, loc)) return OfEach(xs, Poisoned);
  return OfEach(xs, [&](Tensor x) { return VectorJacobian(ys, gs, x, loc); });
}

Tensor Jvp(Tensor y, Tensor x, Tensor t, Loc loc) { return JacobianVector(y, {x}, {t}, loc); }

Tensors Jvp(TensorSpan ys, TensorSpan xs, TensorSpan ts, Loc loc) {
  if (!Fit("jvp", xs, ts, loc)) return OfEach(ys, Poisoned);
  return OfEach(ys, [&](Tensor y) { return JacobianVector(y, xs, ts, loc); });
}

Tensor Hvp(Tensor loss, Tensor x, Tensor v, Loc loc) { return Jvp(Grad(loss, x, loc), x, v, loc); }

Tensors Hvp(Tensor loss, TensorSpan xs, TensorSpan vs, Loc loc) { return Jvp(Grad(loss, xs, loc), xs, vs, loc); }

Tensors Call(absl::string_view graph, TensorSpan args, Loc loc) {
  Builder* b = CurrentTrace();
  for (const Tensor& x : args) b = b == nullptr ? x.builder : b;
  if (b == nullptr) return {Tensor{.poison = true}};
  if (b->graph == nullptr) return {Poison(*b, loc, absl::StrCat("call of @", graph, ": its trace is over"))};
  const Graph* callee = b->program->FindGraph(graph);
  if (callee == nullptr) return {Poison(*b, loc, absl::StrCat("call: the module has no graph @", graph))};
  const int64_t streams = b->graph->random_streams;
  b->graph->random_streams += callee->random_streams;
  return Inline(*b, *callee, args, streams, loc);
}

// ---------------------------------------------------------------- custom gradients

namespace {

// Generations of functions' values: those of traces count up from 1, these down.
uint32_t NextGeneration() {
  static std::atomic<uint32_t> last = UINT32_MAX;
  return --last;
}

// The function's parameters as GraphParams, for finding one of these types.
bool HasParams(const Graph& function, absl::Span<const TensorType> types) {
  return std::equal(function.params.begin(), function.params.end(), types.begin(), types.end(),
                    [](const GraphParam& p, const TensorType& t) { return p.type == t; });
}

Graph WithParams(absl::string_view name, absl::Span<const TensorType> types, Loc loc) {
  Graph graph;
  graph.name = std::string(name);
  graph.loc = loc;
  for (size_t k = 0; k < types.size(); ++k) {
    const size_t xs = types.size() - 2;
    AppendInput(graph, ParamKind::kInput, k < xs ? absl::StrCat("x", k) : k == xs ? "y" : "g", types[k], loc);
  }
  return graph;
}

// Gradients being traced in this thread, which may use themselves.
std::vector<std::string>& Traced() {
  thread_local std::vector<std::string> names;
  return names;
}
bool IsTraced(const std::string& name) { return std::find(Traced().begin(), Traced().end(), name) != Traced().end(); }

// Traces the gradient into `graph`, whose parameters are there.
void TraceGradient(const CustomVjp::Gradient& vjp, const FunctionTypes& types, Program* program, Graph& graph,
                   std::vector<absl::Status>& errors, Loc loc) {
  Builder b{.program = program, .graph = &graph, .generation = NextGeneration()};
  const TraceScope scope(b);
  Traced().push_back(graph.name);
  Tensors args;
  for (const GraphParam& p : graph.params) args.push_back({&b, p.op, b.generation, false});
  const TensorSpan xs = absl::MakeSpan(args).subspan(0, args.size() - 2);
  Tensors dx = vjp(xs, args[args.size() - 2], args[args.size() - 1]);
  Traced().pop_back();
  if (dx.size() != types.results.size()) {
    Poison(b, loc,
           absl::StrCat("custom_vjp: @", graph.name, " gives ", dx.size(), " cotangents, ", types.results.size(),
                        " of its operands are float"));
    dx.clear();
  }
  for (size_t k = 0; k < dx.size(); ++k) {
    const TensorType& want = types.results[k];
    if (dx[k].poison) continue;  // its diagnostic is recorded
    if (dx[k].builder == nullptr) dx[k] = Full(b, want, 0, loc);
    if (dx[k].builder != &b || dx[k].generation != b.generation) {
      Poison(b, loc, absl::StrCat("custom_vjp: cotangent ", k, " of @", graph.name, " belongs to another trace"));
    } else if (dx[k].type() != want) {
      Poison(b, loc,
             absl::StrCat("custom_vjp: cotangent ", k, " of @", graph.name, " is ", ToString(dx[k].type()),
                          ", expected ", ToString(want)));
    } else {
      graph.outputs.push_back({absl::StrCat("dx", k), want, false, dx[k].id, loc});
    }
  }
  errors.insert(errors.end(), b.errors.begin(), b.errors.end());
  if (b.errors.empty()) Canonicalize(graph, *program);
}

// The name of the function for these types, which is traced at its first use. One that is being traced may use itself.
std::string FunctionFor(absl::string_view name, const CustomVjp::Gradient& vjp, const FunctionTypes& types, Builder& b,
                        Loc loc) {
  Program& program = *b.program;
  std::string chosen = absl::StrCat(name, ".vjp");
  for (int n = 1; program.FindGraph(chosen) != nullptr; ++n) {
    const Graph& known = *program.FindGraph(chosen);
    if (HasParams(known, types.params)) {
      if (IsTraced(chosen)) return chosen;
      Graph again = WithParams(chosen, types.params, loc);
      const std::string before = Print(known, program, {});
      TraceGradient(vjp, types, &program, again, b.errors, loc);
      if (Print(again, program, {}) != before)
        Poison(b, loc, absl::StrCat("custom_vjp: another function is called ", name, " in this module, rename one"));
      return chosen;
    }
    chosen = absl::StrCat(name, ".", n, ".vjp");
  }
  program.graphs.push_back(WithParams(chosen, types.params, loc));
  Graph graph = program.graphs.back();
  TraceGradient(vjp, types, &program, graph, b.errors, loc);
  const auto here =
      std::find_if(program.graphs.begin(), program.graphs.end(), [&](const Graph& f) { return f.name == chosen; });
  *here = std::move(graph);
  return chosen;
}

}  // namespace

Tensor CustomVjp::operator()(TensorSpan x, Loc loc) const {
  const Tensor y = f_(x);
  if (!y.valid()) return y;
  std::vector<TensorType> types;
  for (const Tensor& v : x) {
    if (!v.valid()) return v;
    types.push_back(v.type());
  }
  Builder& b = *y.builder;
  Tensors operands = {y};
  operands.insert(operands.end(), x.begin(), x.end());
  const Tensor out = Emit("custom_vjp", operands, {}, loc);
  if (out.valid()) b.graph->op(out.id).symbol = FunctionFor(name_, vjp_, CustomVjpTypes(y.type(), types), b, loc);
  return out;
}

}  // namespace agc
