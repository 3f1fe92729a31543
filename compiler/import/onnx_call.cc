#include "compiler/import/onnx_call.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/import/onnx_importer.h"
#include "ir/build.h"
#include "ir/trace.h"

namespace agc::onnx {

Call::Call(Importer& importer, Scope& scope, const NodeProto& node, int64_t opset)
    : importer_(importer), scope_(scope), node_(node), opset_(opset), results_(node.outputs.size()) {}

Builder& Call::builder() const { return importer_.builder(); }
bool Call::ok() const { return builder().errors.empty(); }
Value Call::Fail(absl::string_view message) { return Poison(builder(), builder().loc, message); }

// ---------------------------------------------------------------- operands

bool Call::has(int k) const { return k < inputs() && !node_.inputs[k].empty(); }

Item Call::Lookup(const std::string& name) {
  absl::StatusOr<Item> item = importer_.Lookup(scope_, name);
  if (item.ok()) return *std::move(item);
  builder().errors.push_back(item.status());
  return {};
}

Item Call::item(int k) {
  read_.insert(k);
  if (!has(k)) {
    Fail(absl::StrCat("operand ", k, " is missing"));
    return {};
  }
  return Lookup(node_.inputs[k]);
}

Value Call::in(int k) {
  const Item found = item(k);
  if (found.kind == Item::kTensor) return found.tensor;
  if (!ok()) return Poisoned(Value{&builder(), {}, builder().generation, true});
  return Fail(absl::StrCat("operand ", k, " ('", node_.inputs[k], "') is ",
                           found.kind == Item::kSequence ? "a sequence" : "an optional without a value",
                           ", expected a tensor"));
}

Value Call::opt(int k) {
  read_.insert(k);
  return has(k) ? in(k) : Value();
}

std::vector<Value> Call::rest(int k) {
  std::vector<Value> values;
  for (; k < inputs(); ++k) values.push_back(in(k));
  return values;
}

bool Call::known(int k) {
  const Value v = in(k);
  return importer_.Fold(v) != nullptr;
}

std::optional<HostTensor> Call::Fold(Value v) {
  const TensorPtr t = importer_.Fold(v);
  return t == nullptr ? std::nullopt : std::optional<HostTensor>(*t);
}

HostTensor Call::constant(int k, absl::string_view what) {
  const Value v = in(k);
  if (!ok()) return HostTensor::Zeros(v.type());
  const TensorPtr t = importer_.Fold(v);
  if (t != nullptr) return *t;
  Fail(absl::StrCat(what, " (operand ", k, ", '", node_.inputs[k], "') has to be known when compiling; ",
                    importer_.why_not()));
  return HostTensor::Zeros({v.dtype(), {}});
}

Ints Call::ints(int k, absl::string_view what) {
  const HostTensor t = constant(k, what);
  if (ok() && !IsInt(t.type.dtype)) Fail(absl::StrCat(what, " is ", ToString(t.type), ", expected integers"));
  Ints values;
  for (int64_t i = 0; ok() && i < t.type.elements(); ++i) values.push_back(t.at(i).i());
  return values;
}

int64_t Call::integer(int k, absl::string_view what) {
  const Ints values = ints(k, what);
  if (values.size() == 1) return values[0];
  if (ok()) Fail(absl::StrCat(what, " has ", values.size(), " elements, expected one"));
  return 0;
}

std::vector<double> Call::numbers(int k, absl::string_view what) {
  const HostTensor t = constant(k, what);
  std::vector<double> values;
  for (int64_t i = 0; ok() && i < t.type.elements(); ++i) values.push_back(t.at(i).AsDouble());
  return values;
}

double Call::number(int k, absl::string_view what) {
  const std::vector<double> values = numbers(k, what);
  if (values.size() == 1) return values[0];
  if (ok()) Fail(absl::StrCat(what, " has ", values.size(), " elements, expected one"));
  return 0;
}

// ---------------------------------------------------------------- attributes

const AttributeProto* Call::Find(absl::string_view name) const {
  asked_.insert(std::string(name));
  for (const AttributeProto& a : node_.attrs) {
    if (a.name != name) continue;
    if (a.ref.empty()) return &a;
    if (scope_.attrs == nullptr) return nullptr;
    const auto it = scope_.attrs->find(a.ref);
    return it == scope_.attrs->end() ? nullptr : it->second;
  }
  return nullptr;
}

bool Call::has_attr(absl::string_view name) const { return Find(name) != nullptr; }
void Call::ignore(absl::string_view name) { Find(name); }

const AttributeProto* Call::attr(absl::string_view name, AttributeProto::Type type) {
  const AttributeProto* a = Find(name);
  if (a == nullptr || a->type == type) {
    const bool empty = a != nullptr && ((type == AttributeProto::kTensor && a->tensors.empty()) ||
                                        (type == AttributeProto::kGraph && a->graphs.empty()));
    if (empty) Fail(absl::StrCat("attribute ", name, " has no value"));
    return empty ? nullptr : a;
  }
  Fail(absl::StrCat("attribute ", name, " has type ", a->type, ", expected ", static_cast<int64_t>(type)));
  return nullptr;
}

namespace {
template <typename T>
T Missing(Call& call, absl::string_view name, std::optional<T> fallback) {
  if (fallback.has_value()) return *fallback;
  if (call.ok()) call.Fail(absl::StrCat("attribute ", name, " is missing"));
  return T();
}
}  // namespace

int64_t Call::integer(absl::string_view name, std::optional<int64_t> fallback) {
  const AttributeProto* a = attr(name, AttributeProto::kInt);
  return a == nullptr ? Missing(*this, name, fallback) : a->i;
}
double Call::number(absl::string_view name, std::optional<double> fallback) {
  const AttributeProto* a = attr(name, AttributeProto::kFloat);
  return a == nullptr ? Missing(*this, name, fallback) : static_cast<double>(a->f);
}
std::string Call::text(absl::string_view name, std::optional<std::string> fallback) {
  const AttributeProto* a = attr(name, AttributeProto::kString);
  return a == nullptr ? Missing(*this, name, fallback) : a->s;
}
Ints Call::ints(absl::string_view name, std::optional<Ints> fallback) {
  const AttributeProto* a = attr(name, AttributeProto::kInts);
  return a == nullptr ? Missing(*this, name, fallback) : Ints(a->ints.begin(), a->ints.end());
}
std::vector<double> Call::numbers(absl::string_view name) {
  const AttributeProto* a = attr(name, AttributeProto::kFloats);
  return a == nullptr ? std::vector<double>() : std::vector<double>(a->floats.begin(), a->floats.end());
}
std::vector<std::string> Call::texts(absl::string_view name) {
  const AttributeProto* a = attr(name, AttributeProto::kStrings);
  return a == nullptr ? std::vector<std::string>() : a->strings;
}

DType Call::dtype(absl::string_view name, std::optional<DType> fallback) {
  const AttributeProto* a = attr(name, AttributeProto::kInt);
  if (a == nullptr) return Missing(*this, name, fallback);
  const absl::StatusOr<DType> dtype = DTypeOf(a->i);
  if (dtype.ok()) return *dtype;
  Fail(absl::StrCat("attribute ", name, ": ", dtype.status().message()));
  return DType::kF32;
}

int Call::choice(absl::string_view name, std::initializer_list<absl::string_view> names, absl::string_view fallback) {
  const std::string value = text(name, std::string(fallback));
  const auto it = std::find(names.begin(), names.end(), value);
  if (it != names.end()) return static_cast<int>(it - names.begin());
  if (ok()) Fail(absl::StrCat("attribute ", name, " is '", value, "', expected ", absl::StrJoin(names, ", ")));
  return 0;
}

// ---------------------------------------------------------------- results

void Call::out_item(Item item, int k) {
  if (k < outputs()) results_[k] = std::move(item);
}

Value Call::Constant(const HostTensor& t) { return importer_.Constant(t); }

Value Call::Constant(DType dtype, absl::Span<const int64_t> values) {
  HostTensor t = HostTensor::Zeros({dtype, {static_cast<int64_t>(values.size())}});
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), Scalar::Int(DType::kI64, values[i]));
  return Constant(t);
}

Value Call::Tensor(const TensorProto& t) {
  absl::StatusOr<Value> value = importer_.TensorValue(t, node_.outputs.empty() ? node_.name : node_.outputs[0]);
  return value.ok() ? *value : Fail(value.status().message());
}

std::vector<Item> Call::Body(const GraphProto& body, std::vector<Item> values) {
  absl::StatusOr<std::vector<Item>> results = importer_.Graph(body, scope_, std::move(values));
  if (results.ok()) return *std::move(results);
  builder().errors.push_back(results.status());
  return std::vector<Item>(body.outputs.size());
}

absl::Status Call::CheckAllRead() const {
  for (const AttributeProto& a : node_.attrs) {
    if (asked_.count(a.name) != 0) continue;
    return absl::UnimplementedError(absl::StrCat("attribute ", a.name, " is not known"));
  }
  for (int k = 0; k < inputs(); ++k) {
    if (!has(k) || read_.count(k) != 0) continue;
    return absl::UnimplementedError(absl::StrCat("operand ", k, " ('", node_.inputs[k], "') is not supported"));
  }
  return absl::OkStatus();
}

}  // namespace agc::onnx
