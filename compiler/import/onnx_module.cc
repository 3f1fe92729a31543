// A model's interface as a module's: inputs with their extents bound, outputs, and what sequences become.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/import/onnx_importer.h"
#include "compiler/import/ops/tables.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "ir/trace.h"

namespace agc::onnx {
namespace {

absl::Status In(const Model& model, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(model.path, ": ", status.message()));
}

// What an extent of an input is called in ImportOptions::dims.
std::string DimName(const ValueInfo& info, size_t axis) {
  const std::string& name = info.type.dims[axis].name;
  return name.empty() ? absl::StrCat(info.name, ".", axis) : name;
}

// Names that no input has.
absl::Status CheckDims(const Model& model, const ImportOptions& o) {
  std::set<std::string> known;
  for (const ValueInfo& info : model.graph.inputs) {
    for (size_t k = 0; k < info.type.dims.size(); ++k) {
      if (info.type.dims[k].value < 0) known.insert(DimName(info, k));
    }
  }
  for (const auto& [name, extent] : o.dims) {
    if (known.count(name) != 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("no extent of an input is called ", name, "; those to bind are: ",
                                                   known.empty() ? "none" : absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// The extents of an input, bound by --dim or by the shape that is given.
absl::StatusOr<TensorType> TypeOfInput(const ValueInfo& info, const ImportOptions& o,
                                       std::map<std::string, int64_t>& dims) {
  const auto given = o.types.find(info.name);
  const absl::StatusOr<DType> dtype = DTypeOf(info.type.data_type);
  if (!dtype.ok())
    return absl::Status(dtype.status().code(), absl::StrCat("input '", info.name, "': ", dtype.status().message()));
  TensorType type{*dtype, {}};
  if (given != o.types.end() && given->second.size() == 1) {
    const TensorType& actual = given->second[0];
    const auto wrong = [&] {
      return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "' of ", DataTypeName(info.type.data_type),
                                                     " and rank ", info.type.dims.size(), " is given as ",
                                                     ToString(actual)));
    };
    if (actual.dtype != *dtype || (info.type.has_shape && actual.dims.size() != info.type.dims.size())) return wrong();
    for (size_t k = 0; k < info.type.dims.size(); ++k) {
      if (info.type.dims[k].value >= 0 && info.type.dims[k].value != actual.dims[k]) return wrong();
      const std::string name = DimName(info, k);
      if (const int64_t bound = dims.emplace(name, actual.dims[k]).first->second; bound != actual.dims[k]) {
        return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "' is given as ", ToString(actual),
                                                       ", but extent ", k, ", ", name, ", is ", bound));
      }
    }
    return actual;
  }
  if (!info.type.has_shape) {
    return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "' has no shape; give its value"));
  }
  for (size_t k = 0; k < info.type.dims.size(); ++k) {
    const TypeProto::Dim& d = info.type.dims[k];
    const std::string name = DimName(info, k);
    const auto bound = dims.find(name);
    if (d.value < 0 && bound == dims.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", info.name, "': extent ", k, " is not fixed; bind it with --dim ", name, "=N"));
    }
    type.dims.push_back(d.value >= 0 ? d.value : bound->second);
  }
  const absl::StatusOr<int64_t> n = ElementsOf(type.dims);
  if (!n.ok()) return absl::InvalidArgumentError(absl::StrCat("input '", info.name, "': ", n.status().message()));
  return type;
}

// Binds the inputs of a module being traced. Sequences are one input per element, `name.0`, `name.1`, ...
class Inputs {
 public:
  Inputs(const Model& model, const ImportOptions& options, Trace& trace)
      : model_(model), options_(options), trace_(trace), dims_(options.dims) {}

  absl::StatusOr<std::map<std::string, Item>> Bind() {
    AGC_RETURN_IF_ERROR(CheckDims(model_, options_));
    std::map<std::string, Item> values;
    // Given inputs first: they bind the symbolic extents of the others.
    for (const bool given : {true, false}) {
      for (const ValueInfo& info : model_.graph.inputs) {
        const bool is_given = options_.types.count(info.name) != 0;
        if (is_given != given || (!is_given && IsInitializer(info.name))) continue;
        if (info.type.kind == TypeProto::kOther || info.type.kind == TypeProto::kNone) {
          return absl::UnimplementedError(absl::StrCat("input '", info.name, "' is no tensor, sequence or optional"));
        }
        if (info.type.kind != TypeProto::kTensor) {
          AGC_ASSIGN_OR_RETURN(values[info.name], Sequence(info));
          continue;
        }
        AGC_ASSIGN_OR_RETURN(const TensorType type, TypeOfInput(info, options_, dims_));
        types_[info.name] = type;
      }
    }
    for (const ValueInfo& info : model_.graph.inputs) {  // in the order of the model
      const auto it = types_.find(info.name);
      if (it != types_.end())
        values[info.name] = Item::Of(trace_.Input(info.name, it->second.dtype, it->second.dims, Loc{}));
    }
    return values;
  }

 private:
  bool IsInitializer(const std::string& name) const {
    const auto& all = model_.graph.initializers;
    return std::any_of(all.begin(), all.end(), [&](const TensorProto& t) { return t.name == name; });
  }
  absl::StatusOr<Item> Sequence(const ValueInfo& info) {
    const auto given = options_.types.find(info.name);
    if (given == options_.types.end()) {
      return absl::UnimplementedError(absl::StrCat(
          "input '", info.name, "' is a sequence or optional: its length has to be known, give its value"));
    }
    const auto& types = given->second;
    if (info.type.kind == TypeProto::kOptional) {
      if (types.empty()) return Item{Item::kNone, {}, {}};
      return Item::Of(trace_.Input(info.name, types[0].dtype, types[0].dims, Loc{}));
    }
    Item list{Item::kSequence, {}, {}};
    for (size_t k = 0; k < types.size(); ++k) {
      list.items.push_back(
          Item::Of(trace_.Input(absl::StrCat(info.name, ".", k), types[k].dtype, types[k].dims, Loc{})));
    }
    return list;
  }

  const Model& model_;
  const ImportOptions& options_;
  Trace& trace_;
  std::map<std::string, int64_t> dims_ = {};
  std::map<std::string, TensorType> types_ = {};
};

// Outputs of sequence type are one output per element.
absl::Status Give(Trace& trace, const std::string& name, const Item& item) {
  if (item.kind == Item::kTensor) {
    trace.Output(name, item.tensor, Loc{});
    return absl::OkStatus();
  }
  if (item.kind != Item::kSequence) return absl::UnimplementedError(absl::StrCat("output '", name, "' has no value"));
  for (size_t k = 0; k < item.items.size(); ++k) {
    AGC_RETURN_IF_ERROR(Give(trace, absl::StrCat(name, ".", k), item.items[k]));
  }
  return absl::OkStatus();
}

absl::Status ImportInto(const Model& model, const ImportOptions& options, Trace& trace, Imported& imported) {
  Inputs inputs(model, options, trace);
  AGC_ASSIGN_OR_RETURN(auto values, inputs.Bind());
  Importer importer(model, options, trace.builder(), imported.weights, "");
  AGC_ASSIGN_OR_RETURN(const std::vector<Item> outputs, importer.Run(std::move(values)));
  for (size_t k = 0; k < outputs.size(); ++k) {
    AGC_RETURN_IF_ERROR(Give(trace, model.graph.outputs[k].name, outputs[k]));
  }
  imported.baked.assign(importer.baked().begin(), importer.baked().end());
  return trace.builder().status();
}

// What no output needs: shape arithmetic that was folded, above all. States that nothing reads any more go too.
void DropUnused(Program& program, std::vector<Weight>& weights) {
  Graph& graph = program.graphs[0];
  std::vector<bool> keep(graph.ops.size(), false);
  for (const GraphParam& p : graph.params) keep[p.op.index] = true;
  for (const Output& out : graph.outputs) keep[out.value.index] = true;
  for (const struct Update& update : graph.updates) keep[update.value.index] = true;
  for (size_t i = graph.ops.size(); i-- > 0;) {
    for (const OpId operand : graph.ops[i].operands) keep[operand.index] = keep[operand.index] || keep[i];
  }
  Erase(graph, keep);
  Canonicalize(graph, program);
  const auto is_updated = [&](const StateDef& s) {
    return std::any_of(graph.updates.begin(), graph.updates.end(),
                       [&](const struct Update& u) { return u.state == s.name; });
  };
  std::erase_if(program.states, [&](const StateDef& s) { return !graph.FindState(s.name).valid() && !is_updated(s); });
  std::erase_if(weights, [&](const Weight& w) { return program.FindState(w.name) == nullptr; });
}

}  // namespace

absl::StatusOr<Imported> Import(const Model& model, const ImportOptions& options) {
  Imported imported;
  absl::Status status;
  Module module("model");
  module.Graph(
      "infer", [&](Trace& trace) { status = ImportInto(model, options, trace, imported); }, Loc{});
  if (!status.ok()) return In(model, status);
  imported.program = Clone(module.program());
  DropUnused(imported.program, imported.weights);
  return imported;
}

absl::StatusOr<std::vector<Tensor>> Apply(Trace& trace, const Model& model, const std::map<std::string, Tensor>& inputs,
                                          std::vector<Weight>& weights, const std::string& prefix) {
  std::map<std::string, Item> values;
  for (const auto& [name, tensor] : inputs) values[name] = Item::Of(tensor);
  const ImportOptions options;
  Importer importer(model, options, trace.builder(), weights, prefix);
  absl::StatusOr<std::vector<Item>> results = importer.Run(std::move(values));
  absl::Status status = results.status();
  std::vector<Tensor> tensors;
  for (size_t k = 0; status.ok() && k < results->size(); ++k) {
    const Item& item = (*results)[k];
    if (item.kind == Item::kTensor)
      tensors.push_back(item.tensor);
    else
      status = absl::UnimplementedError(absl::StrCat("output '", model.graph.outputs[k].name, "' is no tensor"));
  }
  if (status.ok()) return tensors;
  if (trace.builder().errors.empty()) Poison(trace.builder(), Loc{}, In(model, status).message());
  return In(model, status);
}

std::vector<Operator> Operators() {
  std::vector<Operator> all;
  for (const Family& f : Families()) {
    for (const OpRow& row : f.rows)
      all.push_back({std::string(f.domain), std::string(row.name), row.since, std::string(row.doc)});
  }
  std::sort(all.begin(), all.end(), [](const Operator& a, const Operator& b) {
    return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
  });
  return all;
}

}  // namespace agc::onnx
