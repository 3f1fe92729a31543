// Importing: names and scopes, weights, nodes in order, functions, and the model's interface. What a node means is in
// ops/.
#include <algorithm>
#include <queue>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/import/onnx_importer.h"
#include "compiler/import/ops/tables.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/trace.h"

namespace agc::onnx {
namespace {

constexpr int kMostDepth = 64;           // graphs in graphs and functions in functions
constexpr int64_t kMostConstant = 1024;  // elements of an integer tensor that is a constant in the graph, not a state
constexpr size_t kMostOps = 1 << 20;     // of the graph that is built, unrolled loops included

bool IsSplat(const TensorView& v) {
  const auto size = static_cast<size_t>(SizeOf(v.type.dtype));
  return v.bytes.size() >= size &&
         std::equal(v.bytes.begin() + static_cast<std::ptrdiff_t>(size), v.bytes.end(), v.bytes.begin());
}

// "ai.onnx" is another spelling of the default domain.
std::string DomainOf(const NodeProto& node) { return node.domain == "ai.onnx" ? "" : node.domain; }

}  // namespace

Importer::Importer(const Model& model, const ImportOptions& options, Builder& builder, std::vector<Weight>& weights,
                   std::string prefix)
    : model_(model),
      options_(options),
      builder_(builder),
      weights_(weights),
      prefix_(std::move(prefix)),
      files_(model.directory),
      file_(std::make_shared<const MappedFile>(model.file)) {}

// ---------------------------------------------------------------- names and values

absl::StatusOr<Item> Importer::Lookup(Scope& scope, const std::string& name) {
  for (Scope* s = &scope; s != nullptr; s = s->outer) {
    const auto value = s->values.find(name);
    if (value != s->values.end() && value->second.kind != Item::kMissing) return value->second;
    if (value != s->values.end()) {
      return absl::UnimplementedError(absl::StrCat("'", name, "' is a result that its node does not give"));
    }
    const auto tensor = s->initializers.find(name);
    if (tensor == s->initializers.end()) continue;
    AGC_ASSIGN_OR_RETURN(const Value v, TensorValue(*tensor->second, absl::StrCat(s->prefix, name)));
    return s->values[name] = Item::Of(v);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is neither an input, an initialiser nor the result of a node"));
}

Value Importer::Constant(const HostTensor& t) {
  auto literal = std::make_shared<Literal>();
  const TensorView view{t.type, t.bytes, nullptr};
  literal->splat = t.type.elements() == 0 || IsSplat(view);
  for (int64_t i = 0; i < (literal->splat ? std::min<int64_t>(1, t.type.elements()) : t.type.elements()); ++i) {
    literal->values.push_back(t.at(i));
  }
  if (literal->values.empty()) literal->values.push_back(Scalar::Of(t.type.dtype, 0));
  const OpId id = AppendConstant(*builder_.graph, t.type, std::move(literal), builder_.loc);
  return {&builder_, id, builder_.generation, false};
}

// Single numbers and short lists of integers are constants in the graph; other tensors are states, which are trainable
// if they are floats. A tensor that several nodes name is one state.
absl::StatusOr<Value> Importer::TensorValue(const TensorProto& t, const std::string& name) {
  const auto known = tensors_.find(&t);
  if (known != tensors_.end()) return known->second;
  AGC_ASSIGN_OR_RETURN(TensorView view, ViewOf(t, files_));
  const int64_t n = view.type.elements();
  const bool whole = !IsFloat(view.type.dtype);
  Value value;
  if (n <= 1 || (whole && (n <= kMostConstant || IsSplat(view)))) {
    HostTensor host{view.type, {}};
    if (n > kMostConstant) {
      auto literal = std::make_shared<Literal>();
      literal->values = {LoadElement(view.type.dtype, view.bytes.data())};
      value = {&builder_, AppendConstant(*builder_.graph, view.type, std::move(literal), builder_.loc),
               builder_.generation, false};
    } else {
      host.bytes.assign(view.bytes.begin(), view.bytes.end());
      value = Constant(host);
    }
  } else {
    std::string unique = absl::StrCat(prefix_, name);
    for (int k = 1; builder_.program->FindState(unique) != nullptr; ++k) unique = absl::StrCat(prefix_, name, ".", k);
    const bool trainable = IsFloat(view.type.dtype);
    value = State(builder_, unique, view.type, {}, trainable, builder_.loc);
    weights_.push_back({unique, view.type, view.bytes, view.owner != nullptr ? view.owner : file_});
  }
  return tensors_[&t] = value;
}

// Short integers that follow from constants alone become constants at once, so that shape arithmetic leaves no ops.
Item Importer::Folded(Item item) {
  if (item.kind != Item::kTensor || !item.tensor.valid()) return item;
  const TensorType type = item.tensor.type();
  const bool constant = builder_.graph->op(item.tensor.id).def == &ConstantOp();
  if (constant || IsFloat(type.dtype) || type.elements() > kMostConstant) return item;
  const TensorPtr value = Fold(item.tensor, kConstants);
  if (value == nullptr) return item;
  return Item::Of(Constant(*value));
}

// ---------------------------------------------------------------- nodes

absl::StatusOr<std::vector<size_t>> SortNodes(const std::vector<NodeProto>& nodes) {
  std::map<std::string, size_t> makers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].outputs) {
      if (name.empty() || makers.emplace(name, i).second) continue;
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is the result of two nodes"));
    }
  }
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> missing(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& name : nodes[i].inputs) {
      const auto maker = name.empty() ? makers.end() : makers.find(name);
      if (maker == makers.end()) continue;
      users[maker->second].push_back(i);
      ++missing[i];
    }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const size_t user : users[order.back()]) {
      if (--missing[user] == 0) ready.push(user);
    }
  }
  if (order.size() == nodes.size()) return order;
  const auto stuck = static_cast<size_t>(std::find_if(missing.begin(), missing.end(), [](size_t m) { return m > 0; }) -
                                         missing.begin());
  return absl::InvalidArgumentError(absl::StrCat("node '", nodes[stuck].name, "' (", nodes[stuck].op,
                                                 ") needs its own result: the graph has a cycle"));
}

const FunctionProto* Importer::FindFunction(const NodeProto& node) const {
  for (const FunctionProto& f : model_.functions) {
    if (f.name == node.op && (f.domain == "ai.onnx" ? "" : f.domain) == DomainOf(node)) return &f;
  }
  return nullptr;
}

// A function is its nodes with the attributes of the call, in a scope of its own.
absl::Status Importer::Function(const FunctionProto& f, const NodeProto& node, Scope& scope) {
  Scope inner{.prefix = absl::StrCat(scope.prefix, node.name.empty() ? node.op : node.name, "/"),
              .opsets = &f.opsets,
              .depth = scope.depth + 1};
  if (inner.depth > kMostDepth) return absl::InvalidArgumentError("functions call each other without an end");
  AttrEnv attrs;
  for (const AttributeProto& a : f.defaults) attrs[a.name] = &a;
  for (const AttributeProto& a : node.attrs) {
    const AttributeProto* value = &a;
    if (!a.ref.empty()) {
      const auto it = scope.attrs == nullptr ? AttrEnv::const_iterator() : scope.attrs->find(a.ref);
      value = scope.attrs == nullptr || it == scope.attrs->end() ? nullptr : it->second;
    }
    if (value != nullptr) attrs[a.name] = value;
  }
  inner.attrs = &attrs;
  for (size_t k = 0; k < f.inputs.size(); ++k) {
    if (k >= node.inputs.size() || node.inputs[k].empty()) continue;
    AGC_ASSIGN_OR_RETURN(inner.values[f.inputs[k]], Lookup(scope, node.inputs[k]));
  }
  AGC_RETURN_IF_ERROR(Nodes(f.nodes, inner));
  std::vector<Item> results;
  for (const std::string& name : f.outputs) {
    AGC_ASSIGN_OR_RETURN(Item item, Lookup(inner, name));
    results.push_back(std::move(item));
  }
  return Bind(node, std::move(results), scope);
}

absl::Status Importer::Bind(const NodeProto& node, std::vector<Item> results, Scope& scope) {
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (!node.outputs[k].empty())
      scope.values[node.outputs[k]] = k < results.size() ? Folded(std::move(results[k])) : Item();
  }
  return absl::OkStatus();
}

absl::Status Importer::Node(const NodeProto& node, size_t number, Scope& scope) {
  const std::string label = absl::StrCat(scope.prefix, node.name.empty() ? node.op : node.name);
  const RuleScope rule(builder_, {Intern(label), static_cast<uint32_t>(number + 1)}, "");
  const std::string domain = DomainOf(node);
  const auto opset = scope.opsets->find(domain);
  const int64_t version = opset == scope.opsets->end() ? 1 : opset->second;
  const FunctionProto* function = FindFunction(node);
  absl::Status status;
  if (function != nullptr) {
    status = Function(*function, node, scope);
  } else if (const OpRow* row = FindOp(domain, node.op, version); row == nullptr) {
    status = absl::UnimplementedError("the operator is not supported");
  } else {
    Call call(*this, scope, node, version);
    row->build(call);
    status = builder_.errors.empty() ? absl::OkStatus() : builder_.errors[0];
    if (status.ok()) status = call.CheckAllRead();
    if (status.ok()) status = Bind(node, call.Results(), scope);
  }
  if (status.ok() && (builder_.graph->ops.size() > kMostOps || ++imported_ > kMostOps)) {
    status = absl::ResourceExhaustedError("the graph has more than 2^20 nodes or ops; are loops unrolled too often?");
  }
  if (status.ok() || absl::StartsWith(status.message(), "node ")) return status;
  std::string text(status.message());
  const std::string place = absl::StrCat(ToString(builder_.loc), ": error: ");
  if (absl::StartsWith(text, place)) text = text.substr(place.size());
  return absl::Status(status.code(), absl::StrCat("node '", label, "' (", domain.empty() ? "" : domain + ".", node.op,
                                                  ", opset ", version, "): ", text));
}

absl::Status Importer::Nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
  AGC_ASSIGN_OR_RETURN(const std::vector<size_t> order, SortNodes(nodes));
  for (const size_t i : order) AGC_RETURN_IF_ERROR(Node(nodes[i], i, scope));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Item>> Importer::Graph(const GraphProto& graph, Scope& outer, std::vector<Item> inputs) {
  Scope scope{
      .outer = &outer, .prefix = outer.prefix, .opsets = outer.opsets, .attrs = outer.attrs, .depth = outer.depth + 1};
  if (scope.depth > kMostDepth) return absl::InvalidArgumentError("graphs lie too deep within graphs");
  if (inputs.size() != graph.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("graph '", graph.name, "' has ", graph.inputs.size(), " inputs, ", inputs.size(), " are given"));
  }
  for (size_t k = 0; k < inputs.size(); ++k) scope.values[graph.inputs[k].name] = std::move(inputs[k]);
  for (const TensorProto& t : graph.initializers) scope.initializers[t.name] = &t;
  AGC_RETURN_IF_ERROR(Nodes(graph.nodes, scope));
  std::vector<Item> results;
  for (const ValueInfo& out : graph.outputs) {
    AGC_ASSIGN_OR_RETURN(Item item, Lookup(scope, out.name));
    results.push_back(std::move(item));
  }
  return results;
}

absl::StatusOr<std::vector<Item>> Importer::Run(std::map<std::string, Item> values) {
  const GraphProto& graph = model_.graph;
  const auto opset = model_.opsets.find("");
  if (opset != model_.opsets.end() && (opset->second < 1 || opset->second > kNewestOpset)) {
    return absl::UnimplementedError(
        absl::StrCat("opset ", opset->second, " of ai.onnx, 1 to ", kNewestOpset, " are read"));
  }
  if (!graph.sparse_initializers.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("initialiser '", graph.sparse_initializers[0], "' is sparse; make it dense"));
  }
  Scope scope{.opsets = &model_.opsets, .values = std::move(values)};
  for (const TensorProto& t : graph.initializers) scope.initializers[t.name] = &t;
  const TraceScope trace(builder_);
  AGC_RETURN_IF_ERROR(Nodes(graph.nodes, scope));
  std::vector<Item> results;
  for (const ValueInfo& out : graph.outputs) {
    absl::StatusOr<Item> item = Lookup(scope, out.name);
    if (!item.ok()) return absl::Status(item.status().code(), absl::StrCat("output: ", item.status().message()));
    results.push_back(*std::move(item));
  }
  return results;
}

}  // namespace agc::onnx
