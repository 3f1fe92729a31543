// Writes ONNX messages: nodes with attributes, tensors, and the model around them.
//   OnnxWriter w;
//   w.Node("Softmax", {"x"}, {"y"}, {OnnxAttr::Int("axis", -1)});
#pragma once
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/import/wire.h"
#include "ir/type.h"

namespace agc {

// An AttributeProto, written.
struct OnnxAttr {
  std::string bytes = {};
  static OnnxAttr Int(absl::string_view name, int64_t value);
  static OnnxAttr Float(absl::string_view name, double value);
  static OnnxAttr Text(absl::string_view name, absl::string_view value);
  static OnnxAttr Ints(absl::string_view name, absl::Span<const int64_t> values);
};

class OnnxWriter {
 public:
  using Names = std::vector<std::string>;
  void Node(absl::string_view op, const Names& inputs, const Names& outputs, const std::vector<OnnxAttr>& attrs = {});
  void Initializer(const std::string& name, const TensorType& type, ByteSpan bytes);
  void Input(const std::string& name, const TensorType& type);
  void Output(const std::string& name, const TensorType& type);
  std::string Model(absl::string_view graph_name, int64_t opset) const;

 private:
  std::string nodes_ = {}, initializers_ = {}, inputs_ = {}, outputs_ = {};
  int count_ = 0;
};

}  // namespace agc
