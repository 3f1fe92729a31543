#include "compiler/export/onnx_writer.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/import/onnx_model.h"

namespace agc {
namespace {

constexpr int64_t kIrVersion = 9;

void AppendVarint(std::string& out, uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void Int(std::string& out, uint32_t field, int64_t value) {
  AppendVarint(out, field << 3);
  AppendVarint(out, static_cast<uint64_t>(value));
}

void Bytes(std::string& out, uint32_t field, absl::string_view bytes) {
  AppendVarint(out, field << 3 | 2);
  AppendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

// ValueInfoProto.
std::string Value(const std::string& name, const TensorType& type) {
  std::string shape, tensor, outer, value;
  for (const int64_t d : type.dims) {
    std::string dim;
    Int(dim, 1, d);
    Bytes(shape, 1, dim);
  }
  Int(tensor, 1, onnx::DataTypeOf(type.dtype));
  Bytes(tensor, 2, shape);
  Bytes(outer, 1, tensor);
  Bytes(value, 1, name);
  Bytes(value, 2, outer);
  return value;
}

std::string Named(absl::string_view name, int64_t type) {
  std::string out;
  Bytes(out, 1, name);
  Int(out, 20, type);
  return out;
}

}  // namespace

OnnxAttr OnnxAttr::Int(absl::string_view name, int64_t value) {
  OnnxAttr a{Named(name, onnx::AttributeProto::kInt)};
  agc::Int(a.bytes, 3, value);
  return a;
}

OnnxAttr OnnxAttr::Float(absl::string_view name, double value) {
  OnnxAttr a{Named(name, onnx::AttributeProto::kFloat)};
  const auto narrow = static_cast<float>(value);
  char bits[sizeof(narrow)];
  std::memcpy(bits, &narrow, sizeof(narrow));
  AppendVarint(a.bytes, 2 << 3 | 5);
  a.bytes.append(bits, sizeof(bits));
  return a;
}

OnnxAttr OnnxAttr::Text(absl::string_view name, absl::string_view value) {
  OnnxAttr a{Named(name, onnx::AttributeProto::kString)};
  Bytes(a.bytes, 4, value);
  return a;
}

OnnxAttr OnnxAttr::Ints(absl::string_view name, absl::Span<const int64_t> values) {
  OnnxAttr a{Named(name, onnx::AttributeProto::kInts)};
  for (const int64_t v : values) agc::Int(a.bytes, 8, v);
  return a;
}

void OnnxWriter::Node(absl::string_view op, const Names& inputs, const Names& outputs,
                      const std::vector<OnnxAttr>& attrs) {
  std::string node;
  for (const std::string& name : inputs) Bytes(node, 1, name);
  for (const std::string& name : outputs) Bytes(node, 2, name);
  Bytes(node, 3, absl::StrCat(op, "_", count_++));
  Bytes(node, 4, op);
  for (const OnnxAttr& a : attrs) Bytes(node, 5, a.bytes);
  Bytes(nodes_, 1, node);
}

void OnnxWriter::Initializer(const std::string& name, const TensorType& type, ByteSpan bytes) {
  std::string tensor;
  for (const int64_t d : type.dims) Int(tensor, 1, d);
  Int(tensor, 2, onnx::DataTypeOf(type.dtype));
  Bytes(tensor, 8, name);
  Bytes(tensor, 9, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  Bytes(initializers_, 5, tensor);
}

void OnnxWriter::Input(const std::string& name, const TensorType& type) { Bytes(inputs_, 11, Value(name, type)); }
void OnnxWriter::Output(const std::string& name, const TensorType& type) { Bytes(outputs_, 12, Value(name, type)); }

std::string OnnxWriter::Model(absl::string_view graph_name, int64_t opset) const {
  std::string graph = nodes_, set, model;
  Bytes(graph, 2, graph_name);
  graph += initializers_;
  graph += inputs_;
  graph += outputs_;
  Bytes(set, 1, "");
  Int(set, 2, opset);
  Int(model, 1, kIrVersion);
  Bytes(model, 2, "agc");
  Bytes(model, 7, graph);
  Bytes(model, 8, set);
  return model;
}

}  // namespace agc
