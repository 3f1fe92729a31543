// The state of one import: scopes of names, weights, and what is folded. Used by the importer's own files only.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/onnx.h"
#include "compiler/import/onnx_call.h"
#include "compiler/import/onnx_tensor.h"
#include "ir/eval/graph_eval.h"

namespace agc::onnx {

using AttrEnv = std::map<std::string, const AttributeProto*, std::less<>>;

// Names that the nodes of a graph or function see.
struct Scope {
  Scope* outer = nullptr;   // of the node that holds the graph; null for the model's graph and for functions
  std::string prefix = {};  // of weights and locations
  const Opsets* opsets = nullptr;
  const AttrEnv* attrs = nullptr;  // of the function
  int depth = 0;
  std::map<std::string, Item> values = {};
  std::map<std::string, const TensorProto*> initializers = {};
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options, Builder& builder, std::vector<Weight>& weights,
           std::string prefix);

  // Imports all nodes of the model's graph with its inputs bound in `values`; the outputs.
  absl::StatusOr<std::vector<Item>> Run(std::map<std::string, Item> values);
  const std::set<std::string>& baked() const { return baked_; }
  ExternalFiles& files() { return files_; }

  // ---- for Call
  Builder& builder() { return builder_; }
  absl::StatusOr<Item> Lookup(Scope& scope, const std::string& name);
  absl::StatusOr<Value> TensorValue(const TensorProto& t, const std::string& name);
  absl::StatusOr<std::vector<Item>> Graph(const GraphProto& graph, Scope& outer, std::vector<Item> inputs);
  Value Constant(const HostTensor& t);
  // The value if it follows from constants (kConstants), or from constants, weights and given inputs (kGiven), and is
  // not too much work; else null. Inputs that are read under kGiven are baked in.
  enum FoldFrom : uint8_t { kConstants, kGiven };
  TensorPtr Fold(Value v, FoldFrom from = kGiven);
  // Why the last Fold gave nothing, as the end of a sentence.
  const std::string& why_not() const { return why_not_; }

 private:
  using Parts = std::vector<TensorPtr>;
  absl::Status Nodes(const std::vector<NodeProto>& nodes, Scope& scope);
  absl::Status Node(const NodeProto& node, size_t number, Scope& scope);
  absl::Status Function(const FunctionProto& f, const NodeProto& node, Scope& scope);
  absl::Status Bind(const NodeProto& node, std::vector<Item> results, Scope& scope);
  Item Folded(Item item);
  const FunctionProto* FindFunction(const NodeProto& node) const;
  struct Folding {
    Parts parts = {};  // none: it does not fold
    std::string why_not = {};
  };
  Folding FoldOp(const Op& op, FoldFrom from);
  const Folding& FoldAll(OpId root, FoldFrom from);
  std::string FoldLeaf(const Op& op, Parts& parts);

  const Model& model_;
  const ImportOptions& options_;
  Builder& builder_;
  std::vector<Weight>& weights_;
  std::string prefix_;
  ExternalFiles files_;
  std::shared_ptr<const MappedFile> file_;  // the model's own: what weights lie in
  std::map<const TensorProto*, Value> tensors_ = {};
  std::map<uint32_t, Folding> folded_[2] = {};  // by op, for each FoldFrom
  std::set<std::string> baked_ = {};
  std::string why_not_ = {};
  size_t imported_ = 0;  // nodes so far, those of unrolled loops each time
};

// Nodes by number, each behind those whose results it reads. The error names a node of the cycle.
absl::StatusOr<std::vector<size_t>> SortNodes(const std::vector<NodeProto>& nodes);

}  // namespace agc::onnx
