// Modules and traces: how users write graphs. A module holds graphs that share states; Graph() traces its function at
// once.
//   agc::Module m("mlp");
//   m.Graph("infer", [&](agc::Trace& t) {
//     agc::Tensor x = t.Input("x", agc::kF32, {8, 784});
//     t.Output("y", net(x));
//   });
//   AGC_RETURN_IF_ERROR(m.status());            // all diagnostics of all traces
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ir/program.h"
#include "ir/value.h"

namespace agc {

using Tensor = Value;
using TensorSpan = absl::Span<const Tensor>;

// Declares a state of the module that `like` is traced in, on first use, and reads its value at entry. A second
// declaration must have the same type; what it starts as and whether it is trainable the first one says. Layers and
// optimisers make their states with this.
Tensor State(Tensor like, absl::string_view name, TensorType type, Init init, bool trainable, Loc loc = Loc::Here());
Tensor State(Builder& builder, absl::string_view name, TensorType type, Init init, bool trainable,
             Loc loc = Loc::Here());
// The trainable states that the trace of `like` has read so far and whose names start with `prefix`, in the order of
// their declaration: what an optimiser is to train. None is an error.
//   Sgd({.lr = lr}).Minimize(loss, agc::Trainable(loss, "generator."));
std::vector<Tensor> Trainable(Tensor like, absl::string_view prefix = "", Loc loc = Loc::Here());
// The state's value after the step. A graph updates a state at most once.
void Update(Tensor like, absl::string_view state, Tensor value, Loc loc = Loc::Here());
void Update(Builder& builder, absl::string_view state, Tensor value, Loc loc = Loc::Here());

// One graph being written, inside the function given to Module::Graph; used later, it records that it is over.
class Trace {
 public:
  // What the graph is given: an input is copied for every run; a resident is bound once and only read; a param is a
  // scalar with one value per step.
  Tensor Input(absl::string_view name, DType dtype, Dims dims, Loc loc = Loc::Here());
  Tensor Resident(absl::string_view name, DType dtype, Dims dims, Loc loc = Loc::Here());
  Tensor Param(absl::string_view name, DType dtype, Loc loc = Loc::Here());
  // A state that is not trained, f32 or other; Counter: an i32 that grows by one per step, from 0.
  Tensor State(absl::string_view name, TensorType type, Init init = {}, Loc loc = Loc::Here());
  Tensor Counter(absl::string_view name, Loc loc = Loc::Here());
  void Update(absl::string_view state, Tensor value, Loc loc = Loc::Here());
  // What the graph gives: the last step's value, or every step's, as [n, ...].
  void Output(absl::string_view name, Tensor value, Loc loc = Loc::Here());
  void OutputEachStep(absl::string_view name, Tensor value, Loc loc = Loc::Here());

  Tensor Iota(DType dtype, int64_t n, Loc loc = Loc::Here());  // 0, 1, ..., n - 1
  Tensor Full(DType dtype, Dims dims, double value, Loc loc = Loc::Here());
  int64_t NewStream();  // for random ops; each call another
  Builder& builder() { return builder_; }

 private:
  friend class Module;
  Tensor Given(ParamKind kind, absl::string_view name, TensorType type, Loc loc);
  void AddOutput(absl::string_view name, Tensor value, bool each_step, Loc loc);
  Builder builder_ = {};
};

class Module {
 public:
  explicit Module(absl::string_view name);
  // Traces `fn` into a graph of that name. Diagnostics are collected in status().
  void Graph(absl::string_view name, absl::FunctionRef<void(Trace&)> fn, Loc loc = Loc::Here());
  absl::Status status() const;  // OK, or every independent error of every trace, one a line
  const Program& program() const { return *program_; }
  std::string ToText() const;  // the tensor-stage module

 private:
  std::unique_ptr<Program> program_;                 // handles point into it
  std::vector<std::unique_ptr<Trace>> traces_ = {};  // at builders too; a stale handle is still a diagnostic
  std::vector<absl::Status> errors_ = {};
};

}  // namespace agc
