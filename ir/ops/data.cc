// What a graph is given and what it makes from nothing. `input`, `state`, `blob` and `constant` are appended by their
// own functions of ir/graph.h, which know the type; asking for one by name is an error.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/tuple.h"

namespace agc {
namespace {

using enum OpClass;

absl::StatusOr<Types> Declared(const OpCall& call) {
  return call.Error("is declared with its type, it cannot be called");
}

absl::StatusOr<Types> GetTypes(const OpCall& call) {
  const int64_t index = call.integer("index"), n = static_cast<int64_t>(call.operands[0].size());
  if (n < 2) return call.Error(absl::StrCat("operand 0 is ", ToString(call.type(0)), ", expected a tuple"));
  if (index < 0 || index >= n) return call.Error(absl::StrCat("index is ", index, ", expected 0 to ", n - 1));
  return Types(call.operands[0][index]);
}

absl::StatusOr<Types> TupleTypes(const OpCall& call) {
  Types types;
  for (const Types& operand : call.operands) types.push_back(operand[0]);
  return types;
}

absl::StatusOr<Types> GradientTypes(const OpCall& call) {
  const TensorType& loss = call.type(0);
  if (!IsFloat(loss.dtype) || loss.rank() != 0) {
    return call.Error(absl::StrCat("the loss is ", ToString(loss), ", expected a float scalar; reduce it first"));
  }
  if (!IsFloat(call.type(1).dtype)) {
    return call.Error(
        absl::StrCat("the gradient with respect to ", ToString(call.type(1)), " is asked for, expected a float type"));
  }
  return Types(call.type(1));
}

absl::StatusOr<Types> IotaTypes(const OpCall& call) {
  const Ints& shape = call.ints("shape");
  const DType dtype = call.dtype("dtype");
  AGC_RETURN_IF_ERROR(CheckDims(call, "shape", dtype, shape));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), static_cast<int>(shape.size())));
  if (dtype == DType::kBool) return call.Error("dtype is bool, expected a number type");
  return Types(TensorType{dtype, shape});
}

Expr IotaAt(At& s, Index i) {
  const int64_t axis = PositiveAxis(s.integer("axis"), s.out().rank());
  const DType dtype = s.out().dtype;
  const bool direct = dtype == DType::kI64 || dtype == DType::kU64 || dtype == DType::kU32;
  const DType whole = s.out().dims[axis] > INT32_MAX ? DType::kI64 : DType::kI32;
  return Cast(FromIndex(i[axis], direct ? dtype : whole), dtype);
}

using A = AttrKind;

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "blob", .cls = kData, .infer = Declared, .doc = "Bytes of a file, named by its symbol."},
    {.name = "constant", .cls = kData, .attrs = {{"value", A::kLiteral}}, .infer = Declared, .doc = "A literal: splat(v) or dense[...]."},
    {.name = "get", .cls = kData, .arity = 1, .attrs = {{"index", A::kInt}}, .infer = GetTypes, .doc = "One element of a tuple; owns no storage."},
    {.name = "gradient", .cls = kData, .arity = 2, .infer = GradientTypes,
     .doc = "Derivative of a scalar with respect to a value; pass autograd expands it."},
    {.name = "input", .cls = kData, .infer = Declared, .doc = "A parameter of the graph, named by its symbol."},
    {.name = "iota", .cls = kData, .attrs = {{"dtype", A::kDType}, {"shape", A::kInts}, {"axis", A::kInt, "0"}}, .infer = IotaTypes,
     .at = IotaAt, .numpy = "iota(dtype, shape, axis)", .sample = {.attrs = "dtype = i32, shape = [2, 3], axis = 1", .differentiable = false},
     .doc = "Position along an axis."},
    {.name = "state", .cls = kData, .infer = Declared, .doc = "A state of the module as it was when the step began."},
    {.name = "stop_gradient", .cls = kView, .arity = 1, .infer = SameTypes, .at = [](At& s, Index i) { return s.Read(0, i); },
     .vjp = NoGradient, .numpy = "x0", .sample = {.differentiable = false}, .doc = "The operand; passes no gradient."},
    {.name = "tuple", .cls = kData, .arity = {2, 64}, .infer = TupleTypes,
     .vjp = [](Vjp& s) { std::copy(s.gs.begin(), s.gs.end(), s.dx.begin()); },
     .doc = "Several values as one, for get to take apart; what composites with several results are defined by."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kDataOps(kOps);

Value Tuple(absl::Span<const Value> elements, Loc loc) { return Emit("tuple", elements, {}, loc); }
const OpDef& TupleOp() {
  static const OpDef& op = *FindOp("tuple");
  return op;
}

}  // namespace agc
