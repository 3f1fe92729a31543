// What the functions of the operator table work with: one node's operands, attributes and results. Errors stick in the
// builder, as they do for users: after the first one operands are poison, and building with poison is silent.
//   void LeakyRelu(Call& c) { c.out(agc::LeakyRelu(c.in(0), c.number("alpha", 0.01))); }
// Every attribute and operand that a function did not ask for is an error, so nothing is left out by accident.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compiler/import/onnx_model.h"
#include "ir/eval/tensor.h"
#include "ir/value.h"

namespace agc::onnx {

class Importer;
struct Scope;

// What a name stands for.
struct Item {
  enum Kind : uint8_t { kMissing, kTensor, kSequence, kNone };  // kNone: an optional without a value
  Kind kind = kMissing;
  Value tensor = {};
  std::vector<Item> items = {};  // of a sequence
  static Item Of(Value v) { return {kTensor, v, {}}; }
};

class Call {
 public:
  Call(Importer& importer, Scope& scope, const NodeProto& node, int64_t opset);

  const NodeProto& node() const { return node_; }
  int64_t opset() const { return opset_; }
  Builder& builder() const;
  bool ok() const;
  // Records what is wrong, or what is not supported, and returns poison.
  Value Fail(absl::string_view message);

  // ---- operands
  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  bool has(int k) const;           // given, and not left out by an empty name
  Value in(int k);                 // a tensor; missing ones are an error
  Value opt(int k);                // the same, or an empty tensor where it is missing
  std::vector<Value> rest(int k);  // all from the k-th on
  Item item(int k);

  // Operands that have to be known when compiling: folded from constants, weights and the given inputs; `what` names
  // them in the error. Zeros where they are not known.
  bool known(int k);
  HostTensor constant(int k, absl::string_view what);
  Ints ints(int k, absl::string_view what);  // of integers, any shape
  int64_t integer(int k, absl::string_view what);
  double number(int k, absl::string_view what);
  std::vector<double> numbers(int k, absl::string_view what);
  std::optional<HostTensor> Fold(Value v);  // a value made along the way

  // ---- attributes: with a fallback, or required
  bool has_attr(absl::string_view name) const;
  int64_t integer(absl::string_view name, std::optional<int64_t> fallback = {});
  bool flag(absl::string_view name, bool fallback) { return integer(name, fallback ? 1 : 0) != 0; }
  double number(absl::string_view name, std::optional<double> fallback = {});
  std::string text(absl::string_view name, std::optional<std::string> fallback = {});
  Ints ints(absl::string_view name, std::optional<Ints> fallback = {});
  std::vector<double> numbers(absl::string_view name);
  std::vector<std::string> texts(absl::string_view name);
  const AttributeProto* attr(absl::string_view name, AttributeProto::Type type);  // null where it is missing
  void ignore(absl::string_view name);                                            // says nothing about the result
  void ignore_operand(int k) { read_.insert(k); }
  DType dtype(absl::string_view name, std::optional<DType> fallback = {});  // a data type, or one that is refused
  // One of `names`, by its number in them.
  int choice(absl::string_view name, std::initializer_list<absl::string_view> names, absl::string_view fallback);

  // ---- results
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  bool wants(int k) const { return k < outputs() && !node_.outputs[k].empty(); }
  void out(Value v, int k = 0) { out_item(Item::Of(v), k); }
  void out_item(Item item, int k = 0);

  // ---- what needs more than values
  Value Constant(const HostTensor& t);
  Value Constant(DType dtype, absl::Span<const int64_t> values);  // [n]
  Value Tensor(const TensorProto& t);                             // a weight or a constant
  // Imports a graph attribute with its inputs bound to `values`: its outputs.
  std::vector<Item> Body(const GraphProto& body, std::vector<Item> values);
  Item Lookup(const std::string& name);  // in the scope of the node
  std::vector<Item> Results() { return std::move(results_); }
  absl::Status CheckAllRead() const;

 private:
  const AttributeProto* Find(absl::string_view name) const;
  absl::string_view OperandName(int k) const;
  Importer& importer_;
  Scope& scope_;
  const NodeProto& node_;
  int64_t opset_;
  mutable std::set<std::string, std::less<>> asked_ = {};  // attributes
  std::set<int> read_ = {};                                // operands
  std::vector<Item> results_ = {};
};

struct OpRow {
  absl::string_view name = {};
  int64_t since = 1;  // the first opset in which `build` is right
  void (*build)(Call&) = nullptr;
  absl::string_view doc = {};  // what of the operator is refused, for docs/onnx.md; empty: nothing
};

}  // namespace agc::onnx
