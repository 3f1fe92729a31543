// The C++ functions of ir/ops/data.cc.
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "ir/ops/infer.h"

namespace agc {
namespace {

// Builder functions check what the shape rules of other ops do.
absl::Status CheckConstant(const TensorType& type, size_t elements, bool splat) {
  OpCall call;
  call.def = &ConstantOp();
  if (absl::Status s = CheckDims(call, "shape", type.dtype, type.dims); !s.ok()) return s;
  const size_t expected = splat ? 1 : static_cast<size_t>(type.elements());
  if (elements == expected) return absl::OkStatus();
  return call.Error(absl::StrCat(elements, " elements given, ", ToString(type), " has ", expected));
}

}  // namespace

Value Constant(Builder& b, TensorType type, LiteralPtr literal, Loc loc) {
  if (b.graph == nullptr) return Poison(b, loc, "constant: its trace is over");
  if (literal == nullptr) return Poison(b, loc, "constant: no elements given");
  const absl::Status valid = CheckConstant(type, literal->values.size(), literal->splat);
  if (!valid.ok()) return Poison(b, loc, valid.message());
  for (const Scalar& value : literal->values) {
    if (value.dtype == type.dtype) continue;
    return Poison(b, loc, absl::StrCat("constant: an element is ", Name(value.dtype), ", expected ", Name(type.dtype)));
  }
  const OpId id = AppendConstant(*b.graph, std::move(type), std::move(literal), b.inherit ? b.loc : loc);
  b.graph->op(id).role = b.role;
  return {&b, id, b.generation, false};
}

Value Full(Builder& b, TensorType type, double value, Loc loc) {
  if (!IsFloat(type.dtype) && (value != std::floor(value) || std::isinf(value))) {
    return Poison(b, loc,
                  absl::StrCat("constant: ", value, " is not a whole number, and the type is ", ToString(type)));
  }
  auto literal = std::make_shared<Literal>();
  literal->values.push_back(Scalar::Of(type.dtype, value));
  return Constant(b, std::move(type), std::move(literal), loc);
}

Value FullLike(Value like, double value, Loc loc) {
  if (!like.valid()) return like;
  if (like.generation != like.builder->generation)
    return Poison(*like.builder, loc, "a tensor of another trace is used");
  return Full(*like.builder, like.type(), value, loc);
}

Value Iota(Builder& b, DType dtype, Dims dims, int64_t axis, Loc loc) {
  return Emit(b, "iota", {}, {Attr{"dtype", dtype}, Attr{"shape", dims}, Attr{"axis", axis}}, loc);
}

Value RandomBits(Value key, int64_t stream, Dims dims, Loc loc) {
  return Emit("random_bits", {key}, {Attr{"stream", stream}, Attr{"shape", dims}}, loc);
}
Value RandomUniform(Value key, int64_t stream, Dims dims, Loc loc) {
  return Emit("random_uniform", {key}, {Attr{"stream", stream}, Attr{"shape", dims}}, loc);
}
Value RandomNormal(Value key, int64_t stream, Dims dims, Loc loc) {
  return Emit("random_normal", {key}, {Attr{"stream", stream}, Attr{"shape", dims}}, loc);
}

Value Get(Value tuple, int64_t index, Loc loc) { return Emit("get", {tuple}, {Attr{"index", index}}, loc); }
Value Gradient(Value loss, Value with_respect_to, Loc loc) {
  return Emit("gradient", {loss, with_respect_to}, {}, loc);
}
Value StopGradient(Value x, Loc loc) { return Emit("stop_gradient", {x}, {}, loc); }

}  // namespace agc
