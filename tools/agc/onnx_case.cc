#include "tools/agc/onnx_case.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "compiler/agc.h"
#include "compiler/import/onnx.h"
#include "compiler/import/onnx_tensor.h"
#include "ir/base/status.h"
#include "tools/agc/command.h"
#include "tools/agc/json.h"
#include "tools/agc/session.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

using TensorList = std::vector<HostTensor>;  // one for a tensor, more or fewer for sequences and optionals

// Test data made with numpy, which has no bfloat16, has its bits as uint16.
absl::StatusOr<TensorList> ReadValue(const std::string& path, const onnx::TypeProto& type) {
  AGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  AGC_ASSIGN_OR_RETURN(std::vector<onnx::TensorProto> protos, onnx::ReadTensors(file, path, type.kind));
  onnx::ExternalFiles none("");
  TensorList list;
  for (onnx::TensorProto& proto : protos) {
    const bool bits = proto.data_type == onnx::kUint16 && type.data_type == onnx::kBfloat16;
    if (bits) proto.data_type = onnx::kBfloat16;
    const absl::StatusOr<onnx::TensorView> view = onnx::ViewOf(proto, none);
    if (!view.ok()) return absl::Status(view.status().code(), absl::StrCat(path, ": ", view.status().message()));
    list.push_back(view->ToHost());
  }
  return list;
}

// The values `PREFIX_0.pb`, `PREFIX_1.pb`, ... of these, in order; those without a file are left out.
absl::StatusOr<std::vector<std::pair<std::string, TensorList>>> ReadValues(const std::string& directory,
                                                                           const std::string& prefix,
                                                                           const std::vector<onnx::ValueInfo>& infos) {
  std::vector<std::pair<std::string, TensorList>> values;
  for (size_t k = 0; k < infos.size(); ++k) {
    const std::string path = absl::StrCat(directory, "/", prefix, "_", k, ".pb");
    if (!std::filesystem::exists(path)) continue;
    AGC_ASSIGN_OR_RETURN(TensorList list, ReadValue(path, infos[k].type));
    values.emplace_back(infos[k].name, std::move(list));
  }
  return values;
}

// Sequences are one value per element in a module: `name.0`, `name.1`, ...
void AppendParts(const onnx::ValueInfo& info, const std::string& name, const TensorList& list, Tensors& all) {
  for (size_t k = 0; k < list.size(); ++k) {
    const bool sequence = info.type.kind == onnx::TypeProto::kSequence;
    all.emplace_back(sequence ? absl::StrCat(name, ".", k) : name, list[k]);
  }
}

const onnx::ValueInfo& Info(const std::vector<onnx::ValueInfo>& infos, const std::string& name) {
  return *std::find_if(infos.begin(), infos.end(), [&](const onnx::ValueInfo& i) { return i.name == name; });
}

// Test data has no values for initialisers, which old files list among the inputs.
std::vector<onnx::ValueInfo> TrueInputs(const onnx::GraphProto& graph) {
  std::vector<onnx::ValueInfo> infos = graph.inputs;
  std::erase_if(infos, [&](const onnx::ValueInfo& info) {
    return std::any_of(graph.initializers.begin(), graph.initializers.end(),
                       [&](const onnx::TensorProto& t) { return t.name == info.name; });
  });
  return infos;
}

absl::StatusOr<Difference> CompareOutput(const std::string& name, const Tensors& got, const HostTensor& want,
                                         const Limits& limits) {
  const HostTensor* t = Find(got, name);
  if (t == nullptr) return absl::InternalError(absl::StrCat("output ", name, " is missing"));
  if (t->type == want.type) return Compare(name, "expectation", *t, want, limits);
  return absl::InternalError(
      absl::StrCat("output ", name, " is ", ToString(t->type), ", expected ", ToString(want.type)));
}

// Every output of one step of the compiled model.
absl::StatusOr<Tensors> RunImported(const rt::Device& device, const onnx::Imported& imported, const Tensors& inputs,
                                    const CompileOptions& options) {
  AGC_ASSIGN_OR_RETURN(const Target target, ParseTarget(device.target()));
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileProgram(Clone(imported.program), target, options));
  AGC_ASSIGN_OR_RETURN(content, WithWeights(std::move(content), imported.weights));
  const Bundle bundle(std::move(content));
  AGC_ASSIGN_OR_RETURN(rt::Session session, LoadSession(device, bundle.bytes(), true));
  return RunEntry(session, "infer", 1, {.inputs = inputs});
}

Json CaseJson(const std::string& model, const absl::StatusOr<CaseResult>& r) {
  std::vector<std::pair<absl::string_view, Json>> members = {{"model", Json::Of(model)}};
  if (!r.ok()) {
    const bool wrong = r.status().code() == absl::StatusCode::kInternal;
    members.emplace_back("status", Json::Of(wrong ? "failed" : "refused"));
    members.emplace_back("reason", Json::Of(r.status().message()));
    return Json::Object(members);
  }
  double largest = 0;
  std::vector<Json> baked;
  for (const Difference& d : r->outputs) largest = std::max(largest, d.max_abs);
  for (const std::string& name : r->baked) baked.push_back(Json::Of(name));
  members.emplace_back("status", Json::Of(r->equal() ? "passed" : "failed"));
  members.emplace_back("largest_error", Json::Of(largest));
  members.emplace_back("baked", Json::List(baked));
  for (const Difference& d : r->outputs) {
    if (d.equal) continue;
    members.emplace_back("reason", Json::Of(DifferenceText(d)));
    break;
  }
  return Json::Object(members);
}

}  // namespace

bool CaseResult::equal() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const Difference& d) { return d.equal; });
}

absl::StatusOr<CaseResult> RunCase(const rt::Device& device, const std::string& path, const std::string& directory,
                                   const CompileOptions& options, const Limits& limits) {
  AGC_ASSIGN_OR_RETURN(const onnx::Model model, onnx::ReadModel(path));
  const std::vector<onnx::ValueInfo> true_inputs = TrueInputs(model.graph);
  const bool all_given = std::filesystem::exists(absl::StrCat(directory, "/input_", true_inputs.size(), ".pb"));
  const std::vector<onnx::ValueInfo>& infos = all_given ? model.graph.inputs : true_inputs;
  AGC_ASSIGN_OR_RETURN(const auto inputs, ReadValues(directory, "input", infos));
  AGC_ASSIGN_OR_RETURN(const auto outputs, ReadValues(directory, "output", model.graph.outputs));
  onnx::ImportOptions import;
  Tensors given;
  for (const auto& [name, list] : inputs) {
    AppendParts(Info(infos, name), name, list, given);
    for (const HostTensor& t : list) import.types[name].push_back(t.type);
    if (list.empty()) import.types[name] = {};
  }
  for (const auto& [name, t] : given) import.values[name] = t;
  AGC_ASSIGN_OR_RETURN(const onnx::Imported imported, onnx::Import(model, import));
  AGC_ASSIGN_OR_RETURN(const Tensors got, RunImported(device, imported, given, options));
  CaseResult result{.baked = imported.baked};
  for (const auto& [name, list] : outputs) {
    Tensors want;
    AppendParts(Info(model.graph.outputs, name), name, list, want);
    for (const auto& [part, t] : want) {
      AGC_ASSIGN_OR_RETURN(Difference d, CompareOutput(part, got, t, limits));
      result.outputs.push_back(std::move(d));
    }
  }
  if (!outputs.empty()) return result;
  return absl::InvalidArgumentError(absl::StrCat(directory, " has no output_0.pb to compare with"));
}

absl::StatusOr<int> RunCases(const rt::Device& device, const std::string& file, const CompileOptions& options,
                             const Limits& limits) {
  AGC_ASSIGN_OR_RETURN(const std::string text, ReadInput(file));
  bool all = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (parts.size() != 2) {
      return absl::InvalidArgumentError(absl::StrCat(file, ": '", line, "' is no line MODEL DIRECTORY"));
    }
    const absl::StatusOr<CaseResult> r = RunCase(device, parts[0], parts[1], options, limits);
    all = all && r.ok() && r->equal();
    PrintJson(CaseJson(parts[0], r));
    std::fflush(stdout);
  }
  return all ? 0 : 1;
}

}  // namespace agc::tool
