// ONNX models as modules. Weights become states, so that an imported model can be trained on; their values stay in the
// mapped file until a bundle is written. What an operator needs to know when compiling (shapes, axes, repeats) is
// folded from constants and from the inputs that are given.
//   AGC_ASSIGN_OR_RETURN(const onnx::Model model, onnx::ReadModel("model.onnx"));
//   AGC_ASSIGN_OR_RETURN(const onnx::Imported in, onnx::Import(model, {.dims = {{"batch", 8}}}));
//   AGC_ASSIGN_OR_RETURN(rt::Bundle b, CompileProgram(Clone(in.program), target, options));
//   AGC_ASSIGN_OR_RETURN(b, WithWeights(std::move(b), in.weights));
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/onnx_model.h"
#include "compiler/import/weights.h"
#include "compiler/module.h"

namespace agc::onnx {

struct ImportOptions {
  std::map<std::string, int64_t> dims = {};  // extents of symbolic dimensions; INPUT.AXIS for those without a name
  // Inputs whose shapes are known; those of sequence and optional type have a list of tensors.
  std::map<std::string, std::vector<TensorType>> types = {};
  // Values of inputs, for operands that have to be known when compiling. Results are right for these values only.
  std::map<std::string, HostTensor> values = {};
};

struct Imported {
  Program program = {};  // module @model with one graph, @infer
  std::vector<Weight> weights = {};
  std::vector<std::string> baked = {};  // inputs of ImportOptions::values that results depend on
};

// Errors are one line that names the file, node, operator, opset and what would be needed: Unimplemented for what the
// importer has not, InvalidArgument for what is wrong with the model.
absl::StatusOr<Imported> Import(const Model& model, const ImportOptions& options = {});

// Within a trace: the model's outputs, in order, for inputs by name. Weights that it reads are appended to `weights`;
// they are states named as in the model, behind `prefix`. A failure is also recorded in the trace.
//   m.Graph("train", [&](Trace& t) {
//     const auto y = onnx::Apply(t, model, {{"x", t.Input("x", kF32, {8, 784})}}, weights);
//     if (y.ok()) optim::Sgd({.lr = 0.1}).Minimize(CrossEntropy((*y)[0], t.Input("labels", kI32, {8})));
//   });
absl::StatusOr<std::vector<Tensor>> Apply(Trace& trace, const Model& model, const std::map<std::string, Tensor>& inputs,
                                          std::vector<Weight>& weights, const std::string& prefix = "");

// The operators that are read, from which opset of their domain ("" for ai.onnx) on, and what of them is refused.
struct Operator {
  std::string domain = {}, name = {};
  int64_t since = 1;
  std::string refused = {};  // empty: nothing
};
std::vector<Operator> Operators();  // sorted by domain and name
inline constexpr int64_t kNewestOpset = 25;

}  // namespace agc::onnx
