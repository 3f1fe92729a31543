#include "ir/value.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/op_def.h"
#include "ir/trace.h"

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

namespace {
thread_local Builder* current_trace = nullptr;

// No value of a trace that is being written.
bool IsStale(Value x) {
  return x.builder == nullptr || x.builder->graph == nullptr || x.generation != x.builder->generation;
}
}  // namespace

Builder* CurrentTrace() { return current_trace; }
TraceScope::TraceScope(Builder& b) : before_(current_trace) { current_trace = &b; }
TraceScope::~TraceScope() { current_trace = before_; }

bool Live(Value x, Builder& b, absl::string_view what, Loc loc) {
  const bool here = x.builder == &b && x.generation == b.generation && b.graph != nullptr;
  if (here) return !x.poison;
  Poison(b, loc, absl::StrCat(what, x.builder == nullptr ? " is an empty tensor" : " belongs to another trace"));
  return false;
}

Builder* Live(Value x, absl::string_view what, Loc loc) {
  Builder* b = IsStale(x) && current_trace != nullptr ? current_trace : x.builder;
  return b != nullptr && Live(x, *b, what, loc) ? b : nullptr;
}

Value Poisoned(Value x) {
  Builder* b = current_trace != nullptr ? current_trace : x.builder;
  return {b, {}, b == nullptr ? 0 : b->generation, true};
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
    if (v.builder != &b || v.generation != b.generation) {
      Live(v, b, absl::StrCat(name, ": an operand"), loc);
      return poison;
    }
    ids.push_back(v.id);
  }
  if (b.graph == nullptr) return Poison(b, loc, absl::StrCat(name, ": its trace is over"));
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
  // A stale operand's builder may be of another module, which nobody asks for this mistake.
  for (const Value& v : operands) {
    if (!IsStale(v) || (v.builder != nullptr && current_trace == nullptr)) {
      return Emit(*v.builder, op, operands, attrs, loc);
    }
  }
  if (current_trace != nullptr) return Emit(*current_trace, op, operands, attrs, loc);
  return {nullptr, {}, 0, true};
}

namespace {
// The shape both broadcast to (numpy: aligned at the end, equal or 1); false if there is none.
bool CommonShape(const Dims& a, const Dims& b, Dims& out) {
  const size_t rank = std::max(a.size(), b.size());
  out.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

Value BroadcastTo(Value v, const Dims& dims, Loc loc) {
  if (v.dims() == dims) return v;
  return Emit("broadcast", {v}, {Attr{"shape", Ints(dims.begin(), dims.end())}}, loc);
}
}  // namespace

Value EmitBinary(absl::string_view op, Value a, Value b, Loc loc) {
  Dims shape;
  if (a.valid() && b.valid() && a.builder == b.builder && a.dims() != b.dims()) {
    if (!CommonShape(a.dims(), b.dims(), shape)) {
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
  Builder* live = Live(like, "the tensor beside a literal", loc);
  if (live == nullptr) return CurrentTrace() == nullptr ? like : Poisoned(like);
  Builder& b = *live;
  if (!IsFloat(like.dtype()) && value != std::floor(value)) {
    return Poison(b, loc,
                  absl::StrCat("literal ", value, " is not a whole number, and the tensor is ", Name(like.dtype()),
                               "; cast the tensor first"));
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
