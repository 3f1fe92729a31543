// The messages of onnx.proto, field by field. Field numbers are those of the format; other fields (documentation,
// metadata, quantisation annotations) say nothing about results and are passed over.
#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "compiler/import/onnx_model.h"
#include "ir/base/status.h"

namespace agc::onnx {
namespace {

constexpr int kMostDepth = 64;  // graphs within attributes, types within types

void Read(WireReader in, std::pair<std::string, std::string>& entry) {
  while (in.Next()) {
    if (in.field() == 1) in.Text(entry.first);
    if (in.field() == 2) in.Text(entry.second);
  }
}

void Read(WireReader in, TensorProto& t) {
  std::string text;
  int64_t number = 0;
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        in.Ints(t.dims);
        break;
      case 2:
        in.Int(t.data_type);
        break;
      case 4:
        in.Floats(t.floats);
        break;
      case 6:
        in.Bytes();
        ++t.strings;
        break;
      case 5:
      case 7:
      case 11:
        in.Ints(t.ints);
        break;
      case 8:
        in.Text(t.name);
        break;
      case 9:
        t.raw = in.Bytes();
        break;
      case 10:
        in.Doubles(t.doubles);
        break;
      case 13: {
        std::pair<std::string, std::string> entry;
        Read(in.Message("StringStringEntryProto"), entry);
        t.location.insert(entry);
        break;
      }
      case 14:
        in.Int(number);
        t.external = number == 1;
        break;
      default:
        break;
    }
  }
}

void ReadShape(WireReader in, TypeProto& type) {
  type.has_shape = true;
  while (in.Next()) {
    if (in.field() != 1) continue;
    TypeProto::Dim& dim = type.dims.emplace_back();
    for (WireReader d = in.Message("TensorShapeProto.Dimension"); d.Next();) {
      if (d.field() == 1) d.Int(dim.value);
      if (d.field() == 2) d.Text(dim.name);
    }
  }
}

void Read(WireReader in, TypeProto& type, int depth = 0) {
  while (in.Next()) {
    const uint32_t field = in.field();
    if (field == 1) {
      if (type.kind == TypeProto::kNone) type.kind = TypeProto::kTensor;
      for (WireReader tensor = in.Message("TypeProto.Tensor"); tensor.Next();) {
        if (tensor.field() == 1) tensor.Int(type.data_type);
        if (tensor.field() == 2) ReadShape(tensor.Message("TensorShapeProto"), type);
      }
    } else if ((field == 4 || field == 9) && depth < kMostDepth) {
      if (type.kind != TypeProto::kSequence) type.kind = field == 4 ? TypeProto::kSequence : TypeProto::kOptional;
      for (WireReader inner = in.Message("TypeProto.Sequence"); inner.Next();) {
        if (inner.field() == 1) Read(inner.Message("TypeProto"), type, depth + 1);
      }
    } else if (field == 5 || field == 7 || field == 8) {
      type.kind = TypeProto::kOther;
    }
  }
}

void Read(WireReader in, ValueInfo& value) {
  while (in.Next()) {
    if (in.field() == 1) in.Text(value.name);
    if (in.field() == 2) Read(in.Message("TypeProto"), value.type);
  }
}

void Read(WireReader in, GraphProto& graph, int depth);

void Read(WireReader in, AttributeProto& a, int depth) {
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        in.Text(a.name);
        break;
      case 2:
        in.Float(a.f);
        break;
      case 3:
        in.Int(a.i);
        break;
      case 4:
        in.Text(a.s);
        break;
      case 5:
      case 10:
        Read(in.Message("TensorProto"), a.tensors.emplace_back());
        break;
      case 6:
      case 11:
        if (depth < kMostDepth) Read(in.Message("GraphProto"), a.graphs.emplace_back(), depth + 1);
        break;
      case 7:
        in.Floats(a.floats);
        break;
      case 8:
        in.Ints(a.ints);
        break;
      case 9:
        in.Text(a.strings.emplace_back());
        break;
      case 14:
        Read(in.Message("TypeProto"), a.type_proto);
        break;
      case 20:
        in.Int(a.type);
        break;
      case 21:
        in.Text(a.ref);
        break;
      case 22:
      case 23:
        a.sparse = true;
        break;
      default:
        break;
    }
  }
}

void Read(WireReader in, NodeProto& node, int depth) {
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        in.Text(node.inputs.emplace_back());
        break;
      case 2:
        in.Text(node.outputs.emplace_back());
        break;
      case 3:
        in.Text(node.name);
        break;
      case 4:
        in.Text(node.op);
        break;
      case 5:
        Read(in.Message("AttributeProto"), node.attrs.emplace_back(), depth);
        break;
      case 7:
        in.Text(node.domain);
        break;
      default:
        break;
    }
  }
}

// The name of a sparse tensor is that of its values.
void ReadSparse(WireReader in, std::string& name) {
  while (in.Next()) {
    TensorProto values;
    if (in.field() == 1) Read(in.Message("TensorProto"), values);
    if (in.field() == 1) name = values.name;
  }
}

void Read(WireReader in, GraphProto& graph, int depth) {
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        Read(in.Message("NodeProto"), graph.nodes.emplace_back(), depth);
        break;
      case 2:
        in.Text(graph.name);
        break;
      case 5:
        Read(in.Message("TensorProto"), graph.initializers.emplace_back());
        break;
      case 11:
        Read(in.Message("ValueInfoProto"), graph.inputs.emplace_back());
        break;
      case 12:
        Read(in.Message("ValueInfoProto"), graph.outputs.emplace_back());
        break;
      case 15:
        ReadSparse(in.Message("SparseTensorProto"), graph.sparse_initializers.emplace_back());
        break;
      default:
        break;
    }
  }
}

// "ai.onnx" is another spelling of the default domain.
std::string Domain(std::string name) { return name == "ai.onnx" ? "" : name; }

void Read(WireReader in, Opsets& opsets) {
  std::string domain;
  int64_t version = 0;
  while (in.Next()) {
    if (in.field() == 1) in.Text(domain);
    if (in.field() == 2) in.Int(version);
  }
  opsets[Domain(domain)] = version;
}

void Read(WireReader in, FunctionProto& f) {
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        in.Text(f.name);
        break;
      case 4:
        in.Text(f.inputs.emplace_back());
        break;
      case 5:
        in.Text(f.outputs.emplace_back());
        break;
      case 6:
        in.Text(f.attr_names.emplace_back());
        break;
      case 7:
        Read(in.Message("NodeProto"), f.nodes.emplace_back(), 0);
        break;
      case 9:
        Read(in.Message("OperatorSetIdProto"), f.opsets);
        break;
      case 10:
        in.Text(f.domain);
        break;
      case 11:
        Read(in.Message("AttributeProto"), f.defaults.emplace_back(), 0);
        break;
      default:
        break;
    }
  }
}

// Whether there was a graph.
bool Read(WireReader in, Model& model) {
  bool graph = false;
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        in.Int(model.ir_version);
        break;
      case 2:
        in.Text(model.producer);
        break;
      case 7:
        graph = true;
        Read(in.Message("GraphProto"), model.graph, 0);
        break;
      case 8:
        Read(in.Message("OperatorSetIdProto"), model.opsets);
        break;
      case 25:
        Read(in.Message("FunctionProto"), model.functions.emplace_back());
        break;
      default:
        break;
    }
  }
  return graph;
}

absl::Status Malformed(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, ": not an ONNX file: ", what));
}

// SequenceProto (tensors in field 3) and OptionalProto (a tensor in field 3, a sequence in field 5) in one: the
// tensors that are there.
void ReadNested(WireReader in, std::vector<TensorProto>& tensors, int depth) {
  while (in.Next()) {
    if (in.field() == 3) Read(in.Message("TensorProto"), tensors.emplace_back());
    if (in.field() == 5 && depth < kMostDepth) ReadNested(in.Message("SequenceProto"), tensors, depth + 1);
  }
}

}  // namespace

absl::StatusOr<Model> ParseModel(ByteSpan bytes, const std::string& path, const std::string& directory) {
  Model model{.path = path, .directory = directory};
  WireError error{.base = bytes.data()};
  const bool graph = Read(WireReader(bytes, "ModelProto", error), model);
  if (!error.ok()) return Malformed(path, error.message);
  if (!graph) return Malformed(path, "it has no graph");
  if (model.opsets.empty()) return Malformed(path, "it names no operator set (opset_import)");
  return model;
}

absl::StatusOr<Model> ReadModel(const std::string& path) {
  AGC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const std::string directory = std::filesystem::path(path).parent_path().string();
  AGC_ASSIGN_OR_RETURN(Model model, ParseModel(file.bytes(), path, directory.empty() ? "." : directory));
  model.file = std::move(file);
  return model;
}

absl::StatusOr<std::vector<TensorProto>> ReadTensors(const MappedFile& file, const std::string& path,
                                                     TypeProto::Kind kind) {
  std::vector<TensorProto> tensors;
  WireError error{.base = file.bytes().data()};
  if (kind == TypeProto::kTensor) {
    Read(WireReader(file.bytes(), "TensorProto", error), tensors.emplace_back());
  } else {
    ReadNested(WireReader(file.bytes(), "SequenceProto", error), tensors, 0);
  }
  if (!error.ok()) return Malformed(path, error.message);
  return tensors;
}

}  // namespace agc::onnx
