#include "tools/agc/model.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/agc.h"
#include "compiler/import/onnx.h"
#include "compiler/import/safetensors.h"
#include "ir/base/status.h"
#include "ir/eval/npy.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "runtime/bundle_reader.h"
#include "tools/agc/command.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

bool HasMagic(const std::string& bytes) {
  uint32_t magic = 0;
  if (bytes.size() < sizeof(magic)) return false;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic == rt::kBundleMagic;
}

absl::Status NoModel(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": neither a module in text nor a bundle"));
}

// The model of an ONNX file. Values of inputs are given to the importer too: operands that have to be known are baked.
absl::StatusOr<Model> ImportModel(const Flags& flags) {
  Model model{.path = flags.operand(), .imported = true};
  onnx::ImportOptions options;
  for (const auto& [name, value] : flags.Named("dim")) {
    if (!absl::SimpleAtoi(value, &options.dims[name]) || options.dims[name] < 0) {
      return absl::InvalidArgumentError(absl::StrCat("--dim ", name, " is ", value, ", expected a number"));
    }
  }
  for (const auto& [name, value] : flags.Named("input")) {
    if (!absl::EndsWith(value, ".npy")) continue;
    absl::StatusOr<HostTensor> t = ReadNpy(value);
    if (!t.ok()) return absl::Status(t.status().code(), absl::StrCat("input ", name, ": ", t.status().message()));
    options.types[name] = {t->type};
    options.values[name] = *std::move(t);
  }
  AGC_ASSIGN_OR_RETURN(const onnx::Model file, onnx::ReadModel(flags.operand()));
  AGC_ASSIGN_OR_RETURN(onnx::Imported imported, onnx::Import(file, options));
  for (const std::string& name : imported.baked) {
    std::fprintf(stderr, "note: the value of input %s is baked in: an operand has to be known when compiling\n",
                 name.c_str());
  }
  model.program = std::move(imported.program);
  model.weights = std::move(imported.weights);
  return model;
}

// The weights of a safetensors file take the place of the model's own.
absl::Status TakeWeights(const Flags& flags, Model& model) {
  if (!flags.Has("weights")) return absl::OkStatus();
  if (model.is_bundle) return absl::InvalidArgumentError("--weights: a bundle has its values already");
  std::map<std::string, std::string> names;
  for (const auto& [from, to] : flags.Named("rename")) names[from] = to;
  AGC_ASSIGN_OR_RETURN(const std::vector<Weight> weights, ReadSafetensors(flags.Text("weights"), names));
  for (const StateDef& state : model.program.states) {
    const auto same = [&](const Weight& w) { return w.name == state.name; };
    const auto given = std::find_if(weights.begin(), weights.end(), same);
    const auto own = std::find_if(model.weights.begin(), model.weights.end(), same);
    if (given == weights.end() && own == model.weights.end() && state.trainable) {
      return absl::InvalidArgumentError(absl::StrCat(flags.Text("weights"), " has no tensor for state @", state.name,
                                                     " of ", ToString(state.type), "; --rename maps names"));
    }
    if (given == weights.end()) continue;
    if (own != model.weights.end()) model.weights.erase(own);
    model.weights.push_back(*given);
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> ReadFile(const Flags& flags) {
  const std::string& path = flags.operand();
  if (absl::EndsWith(path, ".onnx")) return ImportModel(flags);
  Model model{.path = path == "-" ? "<stdin>" : path};
  AGC_ASSIGN_OR_RETURN(model.bytes, ReadInput(path));
  model.is_bundle = HasMagic(model.bytes) || absl::EndsWith(path, ".agb");
  if (model.is_bundle) {
    rt::StatusOr<rt::Bundle> bundle =
        rt::ReadBundle(reinterpret_cast<const uint8_t*>(model.bytes.data()), model.bytes.size());
    if (!bundle.ok()) return absl::DataLossError(absl::StrCat(model.path, ": ", bundle.status().message()));
    model.bundle = *std::move(bundle);
    return model;
  }
  if (model.bytes.find('\0') != std::string::npos) return NoModel(model.path);
  AGC_ASSIGN_OR_RETURN(model.program, Parse(model.bytes, model.path));
  AGC_RETURN_IF_ERROR(Verify(model.program));
  return model;
}

}  // namespace

absl::StatusOr<Program> ReadText(const std::string& path) {
  const std::string name = path == "-" ? "<stdin>" : path;
  AGC_ASSIGN_OR_RETURN(const std::string source, ReadInput(path));
  if (HasMagic(source)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is a bundle, a module in text is expected; agc run, check, bench and dump take bundles, ",
                     "and agc dump --ir prints the module that one was compiled from"));
  }
  if (source.find('\0') != std::string::npos) return NoModel(name);
  return Parse(source, name);
}

absl::StatusOr<Model> ReadModel(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(Model model, ReadFile(flags));
  AGC_RETURN_IF_ERROR(TakeWeights(flags, model));
  return model;
}

std::vector<Option> ImportTable() {
  return {{"dim", "NAME=N", "extent of a symbolic dimension of an ONNX model; INPUT.AXIS for one without a name"},
          {"weights", "FILE", "values of the states, a safetensors file"},
          {"rename", "NAME=STATE", "what a tensor of --weights is called in the model; NAME* and STATE* for heads"}};
}

absl::StatusOr<rt::Bundle> CompileModel(const Model& model, const Target& target, const CompileOptions& options) {
  AGC_ASSIGN_OR_RETURN(rt::Bundle bundle, CompileProgram(Clone(model.program), target, options));
  if (model.weights.empty()) return bundle;
  return WithWeights(std::move(bundle), model.weights);
}

std::vector<Option> DeviceTable() {
  return {{"device", "NAME", "part of a device's name, or its number in `agc devices`"},
          {"validate", "", "run with the Vulkan validation layer; messages go to stderr"}};
}

absl::StatusOr<rt::Device> OpenDevice(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(rt::Device device,
                       rt::Device::Open({.name_or_index = flags.Text("device"), .validation = flags.Has("validate")}));
  std::fprintf(stderr, "device: %s\n", device.description().c_str());
  return device;
}

std::vector<Option> TargetTable() {
  return {{"target", "TARGET", "lavapipe, h200, tiny or a file with a description; default: the device's own"}};
}

absl::StatusOr<Target> ReadTarget(const std::string& value) {
  absl::StatusOr<Target> built_in = FakeTarget(value);
  if (built_in.ok()) return built_in;
  const absl::StatusOr<std::string> text = ReadInput(value);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--target is ", value, ", expected lavapipe, h200, tiny or a file that can be read"));
  }
  absl::StatusOr<Target> target = ParseTarget(*text);
  if (!target.ok()) return absl::InvalidArgumentError(absl::StrCat(value, ": ", target.status().message()));
  return target;
}

absl::StatusOr<Target> TargetOf(const Flags& flags) {
  if (flags.Has("target")) return ReadTarget(flags.Text("target"));
  AGC_ASSIGN_OR_RETURN(const rt::Device device, OpenDevice(flags));
  return ParseTarget(device.target());
}

std::vector<Option> CompileTable() {
  return {{"abi", "bindings|addresses", "how kernels reach buffers; addresses need --trusted to load"},
          {"O", "0|1|2", "SPIR-V optimisation: 0 none, 1 a short list (default), 2 all performance passes"},
          NumericsOption(),
          PrecisionOption(),
          {"no-fuse", "", "one kernel per op"},
          {"no-reuse", "", "every temporary has bytes of its own"},
          {"no-in-place", "", "no result takes over storage"},
          {"ring", "N", "steps that one submission can hold"}};
}

CompileOptions CompileOptionsOf(const Flags& flags) {
  CompileOptions o;
  o.abi = flags.Text("abi") == "addresses" ? BufferAbi::kAddresses : BufferAbi::kBindings;
  o.optimize = static_cast<int>(flags.Count("O", o.optimize));
  o.numerics = NumericsOf(flags);
  o.precision = PrecisionOf(flags);
  o.fuse = !flags.Has("no-fuse");
  o.reuse_memory = !flags.Has("no-reuse");
  o.in_place = !flags.Has("no-in-place");
  o.ring = flags.Count("ring", o.ring);
  return o;
}

Option NumericsOption() {
  return {
      "numerics", "repeatable|portable|fast",
      "what float results depend on: the device and driver (default), the module alone, or that and fused arithmetic"};
}

Numerics NumericsOf(const Flags& flags) {
  const std::string given = flags.Text("numerics");
  return given == "portable" ? Numerics::kPortable : given == "fast" ? Numerics::kFast : Numerics::kRepeatable;
}

Option PrecisionOption() {
  return {"precision", "f32|f16|bf16", "operands of products and convolutions of f32 (default: f32); results stay f32"};
}

DType PrecisionOf(const Flags& flags) { return *DTypeNamed(flags.Text("precision", "f32")); }

EvalMode EvaluatorFor(Numerics numerics) {
  return numerics == Numerics::kPortable ? EvalMode::kPortable : EvalMode::kExact;
}

absl::string_view AbiName(rt::BufferAbi abi) { return abi == rt::BufferAbi::kBindings ? "bindings" : "addresses"; }

absl::StatusOr<const rt::Entry*> EntryOf(const std::vector<rt::Entry>& entries, const std::string& name) {
  if (!name.empty()) return Named(entries, "entry", name, "the model");
  const rt::Entry* only = nullptr;
  std::vector<std::string> names;
  for (const rt::Entry& e : entries) {
    if (e.name == "init") continue;
    only = &e;
    names.push_back(e.name);
  }
  if (names.size() == 1) return only;
  return absl::InvalidArgumentError(absl::StrCat("choose an entry with --entry; the model has ",
                                                 names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace agc::tool
