// The handle that users and rules write graphs with, cheap to copy: x * y + Tanh(z). agc::Tensor is this type.
// A failing op records its diagnostic and returns poison; ops on poison stay silent; a value used outside its trace is
// a diagnostic. Operators broadcast as numpy does, by inserting `broadcast` ops; dtypes never mix silently.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/base/loc.h"
#include "ir/graph.h"

namespace agc {

// Collects ops of one graph and independent errors.
struct Builder {
  Program* program = nullptr;  // may be null in tests: states and symbols are then unknown
  Graph* graph = nullptr;
  uint32_t generation = 0;  // of the trace; a handle of another generation is stale
  std::vector<absl::Status> errors = {};
  // While a rule runs, ops it builds take this location and role instead of the caller's.
  bool inherit = false;
  Loc loc = {};
  std::string role = {};
  absl::Status status() const;  // OK, or all errors joined by newlines
};

// While alive, ops built take `loc` and `role`.
struct RuleScope {
  Builder& builder;
  bool inherit;
  Loc loc;
  std::string role;
  RuleScope(Builder& b, Loc l, absl::string_view r);
  ~RuleScope();
};

struct Value {
  Builder* builder = nullptr;
  OpId id = {};
  uint32_t generation = 0;
  bool poison = false;

  bool valid() const { return builder != nullptr && !poison; }  // default-made or poisoned handles are not
  const TensorType& type() const;                               // f32[] for invalid ones
  DType dtype() const { return type().dtype; }
  int rank() const { return type().rank(); }
  int64_t dim(int axis) const;  // negative counts from the end; 1 if out of range
  const Dims& dims() const { return type().dims; }
};

// Left operand of an operator: an operator cannot take a default argument, a conversion can.
struct Lhs {
  Value v;
  Loc loc;
  Lhs(Value value, Loc here = Loc::Here()) : v(value), loc(here) {}  // NOLINT
};

// Appends an op. Operands of other traces, unknown ops and rule errors are recorded in the builder.
Value Emit(absl::string_view op, absl::Span<const Value> operands, absl::Span<const Attr> attrs, Loc loc);
// For ops without operands.
Value Emit(Builder& builder, absl::string_view op, absl::Span<const Value> operands, absl::Span<const Attr> attrs,
           Loc loc);
// A binary op after broadcasting both sides to their common shape.
Value EmitBinary(absl::string_view op, Value a, Value b, Loc loc);
// Records `message` at `loc` and returns poison.
Value Poison(Builder& builder, Loc loc, absl::string_view message);
// A constant with the dtype of `like` and no axes; integers must be whole.
Value ScalarLike(Value like, double value, Loc loc);

Value operator+(Lhs a, Value b);
Value operator-(Lhs a, Value b);
Value operator*(Lhs a, Value b);
Value operator/(Lhs a, Value b);
Value operator+(Lhs a, double b);
Value operator-(Lhs a, double b);
Value operator*(Lhs a, double b);
Value operator/(Lhs a, double b);
Value operator+(double a, Lhs b);
Value operator-(double a, Lhs b);
Value operator*(double a, Lhs b);
Value operator/(double a, Lhs b);
Value operator-(Lhs a);

}  // namespace agc
