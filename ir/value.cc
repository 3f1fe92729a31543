#include "ir/value.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/ops/infer.h"

namespace agc {

absl::Status Builder::status() const {
  if (errors.empty()) return absl::OkStatus();
  const auto each = [](std::string* out, const absl::Status& s) { absl::StrAppend(out, s.message()); };
  return absl::Status(errors[0].code(), absl::StrJoin(errors, "\n", each));
}

RuleScope::RuleScope(Builder& b, Loc l, absl::string_view r)
    : builder(b), inherit(b.inherit), loc(b.loc), role(b.role) {
  b.inherit = true;
  b.loc = l;
  b.role = std::string(r);
}
RuleScope::~RuleScope() {
  builder.inherit = inherit;
  builder.loc = loc;
  builder.role = role;
}

const TensorType& Value::type() const {
  static const TensorType& none = *new TensorType;
  const bool live = valid() && builder->graph != nullptr && generation == builder->generation;
  return live ? builder->graph->op(id).type() : none;
}

int64_t Value::dim(int axis) const {
  const Dims& d = type().dims;
  const int i = axis < 0 ? axis + static_cast<int>(d.size()) : axis;
  return i >= 0 && i < static_cast<int>(d.size()) ? d[i] : 1;
}

Value Poison(Builder& b, Loc loc, absl::string_view message) {
  b.errors.push_back(ErrorAt(b.inherit ? b.loc : loc, message));
  return {&b, {}, b.generation, true};
}

Value Emit(Builder& b, absl::string_view name, absl::Span<const Value> operands, absl::Span<const Attr> attrs,
           Loc loc) {
  const Value poison{&b, {}, b.generation, true};
  absl::InlinedVector<OpId, 3> ids;
  for (const Value& v : operands) {
    if (v.poison) return poison;
    if (v.builder == nullptr) return Poison(b, loc, absl::StrCat(name, ": an operand is an empty tensor"));
    if (v.builder != &b || v.generation != b.generation) {
      return Poison(b, loc, absl::StrCat(name, ": an operand belongs to another trace"));
    }
    ids.push_back(v.id);
  }
  const OpDef* def = FindOp(name);
  if (def == nullptr) return Poison(b, loc, absl::StrCat("unknown op ", name));
  const absl::StatusOr<OpId> id = AppendChecked(*b.graph, *def, ids, attrs, b.inherit ? b.loc : loc);
  if (!id.ok()) {
    b.errors.push_back(id.status());
    return poison;
  }
  b.graph->op(*id).role = b.role;
  return {&b, *id, b.generation, false};
}

Value Emit(absl::string_view op, absl::Span<const Value> operands, absl::Span<const Attr> attrs, Loc loc) {
  for (const Value& v : operands) {
    if (v.builder != nullptr) return Emit(*v.builder, op, operands, attrs, loc);
  }
  return {nullptr, {}, 0, true};
}

namespace {
Value BroadcastTo(Value v, const Dims& dims, Loc loc) {
  if (v.dims() == dims) return v;
  return Emit("broadcast", {v}, {Attr{"shape", Ints(dims.begin(), dims.end())}}, loc);
}
}  // namespace

Value EmitBinary(absl::string_view op, Value a, Value b, Loc loc) {
  Dims shape;
  if (a.valid() && b.valid() && a.builder == b.builder && a.dims() != b.dims()) {
    if (!CommonDims(a.dims(), b.dims(), shape)) {
      return Poison(
          *a.builder, loc,
          absl::StrCat(op, ": shapes do not broadcast (", ToString(a.type()), " and ", ToString(b.type()), ")"));
    }
    a = BroadcastTo(a, shape, loc);
    b = BroadcastTo(b, shape, loc);
  }
  return Emit(op, {a, b}, {}, loc);
}

Value ScalarLike(Value like, double value, Loc loc) {
  if (!like.valid()) return like;
  Builder& b = *like.builder;
  if (like.generation != b.generation) return Poison(b, loc, "a tensor of another trace is used");
  if (!IsValueOf(like.dtype(), value)) {
    return Poison(
        b, loc, absl::StrCat("literal ", value, " is not a value of ", Name(like.dtype()), "; cast the tensor first"));
  }
  auto literal = std::make_shared<Literal>();
  literal->values.push_back(Scalar::Of(like.dtype(), value));
  const OpId id = AppendConstant(*b.graph, {like.dtype(), {}}, std::move(literal), b.inherit ? b.loc : loc);
  b.graph->op(id).role = b.role;
  return {&b, id, b.generation, false};
}

Value operator+(Lhs a, Value b) { return EmitBinary("add", a.v, b, a.loc); }
Value operator-(Lhs a, Value b) { return EmitBinary("sub", a.v, b, a.loc); }
Value operator*(Lhs a, Value b) { return EmitBinary("mul", a.v, b, a.loc); }
Value operator/(Lhs a, Value b) { return EmitBinary("div", a.v, b, a.loc); }
Value operator+(Lhs a, double b) { return EmitBinary("add", a.v, ScalarLike(a.v, b, a.loc), a.loc); }
Value operator-(Lhs a, double b) { return EmitBinary("sub", a.v, ScalarLike(a.v, b, a.loc), a.loc); }
Value operator*(Lhs a, double b) { return EmitBinary("mul", a.v, ScalarLike(a.v, b, a.loc), a.loc); }
Value operator/(Lhs a, double b) { return EmitBinary("div", a.v, ScalarLike(a.v, b, a.loc), a.loc); }
Value operator+(double a, Lhs b) { return EmitBinary("add", ScalarLike(b.v, a, b.loc), b.v, b.loc); }
Value operator-(double a, Lhs b) { return EmitBinary("sub", ScalarLike(b.v, a, b.loc), b.v, b.loc); }
Value operator*(double a, Lhs b) { return EmitBinary("mul", ScalarLike(b.v, a, b.loc), b.v, b.loc); }
Value operator/(double a, Lhs b) { return EmitBinary("div", ScalarLike(b.v, a, b.loc), b.v, b.loc); }
Value operator-(Lhs a) { return Emit("neg", {a.v}, {}, a.loc); }

}  // namespace agc
