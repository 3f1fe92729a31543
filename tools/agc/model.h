// What the commands share: model files (.onnx by their name; .agir text or .agb bundles by their contents), the
// device, and compiling for it.
//   AGC_ASSIGN_OR_RETURN(const Model model, ReadModel(flags));
//   AGC_ASSIGN_OR_RETURN(const rt::Device device, OpenDevice(flags));    // "device: llvmpipe ..." on stderr
#pragma once
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/weights.h"
#include "compiler/options.h"
#include "ir/eval/tensor.h"
#include "ir/program.h"
#include "ir/target.h"
#include "runtime/device.h"
#include "runtime/format.h"
#include "tools/agc/flags.h"

namespace agc::tool {

struct Model {
  std::string path = {};
  bool is_bundle = false;
  std::string bytes = {};  // the file
  rt::Bundle bundle = {};  // where is_bundle
  Program program = {};    // else: the text, parsed and verified, or what was imported
  bool imported = false;
  std::vector<Weight> weights = {};  // of an imported model; they lie in its file
};

// The model that the flags name; --dim and the shapes of --input bind the dimensions of an ONNX model.
absl::StatusOr<Model> ReadModel(const Flags& flags);
// --dim, --weights, --rename.
std::vector<Option> ImportTable();
// The bundle of a model that is none yet, with the values of its weights.
absl::StatusOr<rt::Bundle> CompileModel(const Model& model, const Target& target, const CompileOptions& options);
// For commands that take modules in text only, parsed and not verified; "-" is the standard input. A bundle is refused,
// with the commands that take it.
absl::StatusOr<Program> ReadText(const std::string& path);

// --device; opening one prints on stderr which it is.
std::vector<Option> DeviceTable();
absl::StatusOr<rt::Device> OpenDevice(const Flags& flags);

// --target NAME|FILE: a built-in name or a file; without it the description of the device that `run` would take.
std::vector<Option> TargetTable();
absl::StatusOr<Target> ReadTarget(const std::string& value);
absl::StatusOr<Target> TargetOf(const Flags& flags);

// --abi, -O, --no-fuse and the other options of a compile.
std::vector<Option> CompileTable();
CompileOptions CompileOptionsOf(const Flags& flags);

// --numerics, and the evaluator that results under it compare with.
Option NumericsOption();
Numerics NumericsOf(const Flags& flags);
Option PrecisionOption();
DType PrecisionOf(const Flags& flags);
EvalMode EvaluatorFor(Numerics numerics);

// "bindings" or "addresses".
absl::string_view AbiName(rt::BufferAbi abi);

// The entry to run: the one asked for, or the only one besides `init`.
absl::StatusOr<const rt::Entry*> EntryOf(const std::vector<rt::Entry>& entries, const std::string& name);

}  // namespace agc::tool
