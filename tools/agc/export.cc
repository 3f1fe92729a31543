// agc export MODEL -o MODEL.onnx: a graph of a module or bundle as an ONNX model.
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "compiler/export/onnx_export.h"
#include "ir/base/file.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "tools/agc/command.h"
#include "tools/agc/model.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

Usage ExportUsage() {
  return {.command = "export",
          .summary = "writes a graph as an ONNX model of opset 20, with the values of its states",
          .operand = "MODEL.agb|MODEL.agir|MODEL.onnx",
          .options = Join({{{"o", "FILE", "the ONNX file; default: MODEL.onnx beside the model"},
                            {"entry", "NAME", "the graph; default: the only one besides init"}},
                           ImportTable()}),
          .example = "agc export mlp.agb --entry infer -o mlp.onnx"};
}

// Of a bundle: the values of its states, which lie in it.
std::vector<Weight> WeightsOf(const Model& model) {
  if (!model.is_bundle || !model.bundle.has_state_values) return model.weights;
  std::vector<Weight> weights;
  for (const rt::State& s : model.bundle.states) {
    const TensorType type = TypeOf(s);
    weights.push_back({.name = s.name,
                       .type = type,
                       .bytes = {model.bundle.state_values.data() + s.offset, static_cast<size_t>(type.bytes())}});
  }
  return weights;
}

absl::StatusOr<std::string> GraphName(const Program& program, const std::string& asked) {
  if (!asked.empty()) return asked;
  std::string only;
  for (const Graph& g : program.graphs) {
    if (g.name == "init") continue;
    if (!only.empty()) return absl::InvalidArgumentError("choose a graph with --entry, the module has several");
    only = g.name;
  }
  return only;
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(const Model model, ReadModel(flags));
  Program program = Clone(model.program);
  if (model.is_bundle) {
    AGC_ASSIGN_OR_RETURN(program, Parse(model.bundle.ir_text, absl::StrCat(model.path, " (module)")));
  }
  AGC_ASSIGN_OR_RETURN(const std::string graph, GraphName(program, flags.Text("entry")));
  AGC_ASSIGN_OR_RETURN(const std::string bytes, ExportOnnx(program, graph, WeightsOf(model)));
  const std::string beside = std::filesystem::path(flags.operand()).replace_extension(".onnx").string();
  const std::string path = flags.Text("o", beside);
  if (path == flags.operand()) return absl::InvalidArgumentError(absl::StrCat("-o ", path, " is the model itself"));
  AGC_RETURN_IF_ERROR(WriteFile(path, bytes));
  return 0;
}

}  // namespace

int Export(const std::vector<std::string>& args) { return RunCommand(ExportUsage(), args, Run); }

}  // namespace agc::tool
