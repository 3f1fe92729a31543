// The C++ functions of ir/ops/elementwise.cc and compare.cc.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/build.h"
#include "ir/ops/infer.h"

namespace agc {

Value Add(Value a, Value b, Loc loc) { return EmitBinary("add", a, b, loc); }
Value Sub(Value a, Value b, Loc loc) { return EmitBinary("sub", a, b, loc); }
Value Mul(Value a, Value b, Loc loc) { return EmitBinary("mul", a, b, loc); }
Value DivOf(Value a, Value b, Loc loc) { return EmitBinary("div", a, b, loc); }
Value FloorDiv(Value a, Value b, Loc loc) { return EmitBinary("floor_div", a, b, loc); }
Value Rem(Value a, Value b, Loc loc) { return EmitBinary("rem", a, b, loc); }
Value Pow(Value a, Value b, Loc loc) { return EmitBinary("pow", a, b, loc); }
Value Maximum(Value a, Value b, Loc loc) { return EmitBinary("maximum", a, b, loc); }
Value Minimum(Value a, Value b, Loc loc) { return EmitBinary("minimum", a, b, loc); }
Value Neg(Value x, Loc loc) { return Emit("neg", {x}, {}, loc); }
Value Abs(Value x, Loc loc) { return Emit("abs", {x}, {}, loc); }
Value Sign(Value x, Loc loc) { return Emit("sign", {x}, {}, loc); }
Value Exp(Value x, Loc loc) { return Emit("exp", {x}, {}, loc); }
Value Log(Value x, Loc loc) { return Emit("log", {x}, {}, loc); }
Value Sqrt(Value x, Loc loc) { return Emit("sqrt", {x}, {}, loc); }
Value Rsqrt(Value x, Loc loc) { return Emit("rsqrt", {x}, {}, loc); }
Value Square(Value x, Loc loc) { return Emit("square", {x}, {}, loc); }
Value Reciprocal(Value x, Loc loc) { return Emit("reciprocal", {x}, {}, loc); }
Value Sin(Value x, Loc loc) { return Emit("sin", {x}, {}, loc); }
Value Cos(Value x, Loc loc) { return Emit("cos", {x}, {}, loc); }
Value Tanh(Value x, Loc loc) { return Emit("tanh", {x}, {}, loc); }
Value Floor(Value x, Loc loc) { return Emit("floor", {x}, {}, loc); }
Value Ceil(Value x, Loc loc) { return Emit("ceil", {x}, {}, loc); }
Value Round(Value x, Loc loc) { return Emit("round", {x}, {}, loc); }
Value BitAnd(Value a, Value b, Loc loc) { return EmitBinary("bit_and", a, b, loc); }
Value BitOr(Value a, Value b, Loc loc) { return EmitBinary("bit_or", a, b, loc); }
Value BitXor(Value a, Value b, Loc loc) { return EmitBinary("bit_xor", a, b, loc); }
Value ShiftLeft(Value a, Value b, Loc loc) { return EmitBinary("shift_left", a, b, loc); }
Value ShiftRight(Value a, Value b, Loc loc) { return EmitBinary("shift_right", a, b, loc); }

Value Equal(Value a, Value b, Loc loc) { return EmitBinary("eq", a, b, loc); }
Value NotEqual(Value a, Value b, Loc loc) { return EmitBinary("ne", a, b, loc); }
Value Less(Value a, Value b, Loc loc) { return EmitBinary("lt", a, b, loc); }
Value LessEqual(Value a, Value b, Loc loc) { return EmitBinary("le", a, b, loc); }
Value Greater(Value a, Value b, Loc loc) { return EmitBinary("gt", a, b, loc); }
Value GreaterEqual(Value a, Value b, Loc loc) { return EmitBinary("ge", a, b, loc); }
Value IsNan(Value x, Loc loc) { return Emit("isnan", {x}, {}, loc); }
Value LogicalAnd(Value a, Value b, Loc loc) { return EmitBinary("logical_and", a, b, loc); }
Value LogicalOr(Value a, Value b, Loc loc) { return EmitBinary("logical_or", a, b, loc); }
Value LogicalNot(Value x, Loc loc) { return Emit("logical_not", {x}, {}, loc); }

Value Where(Value cond, Value then, Value otherwise, Loc loc) {
  if (cond.valid() && then.valid() && otherwise.valid()) {
    Dims branches, dims;
    if (!CommonDims(then.dims(), otherwise.dims(), branches) || !CommonDims(cond.dims(), branches, dims)) {
      return Poison(*cond.builder, loc,
                    absl::StrCat("select: shapes do not broadcast (", ToString(cond.type()), ", ",
                                 ToString(then.type()), " and ", ToString(otherwise.type()), ")"));
    }
    for (Value* v : {&cond, &then, &otherwise}) {
      if (v->dims() != dims) *v = Broadcast(*v, dims, loc);
    }
  }
  return Emit("select", {cond, then, otherwise}, {}, loc);
}

Value Clamp(Value x, double lo, double hi, Loc loc) {
  return Emit("clamp", {x}, {Attr{"lo", lo}, Attr{"hi", hi}}, loc);
}

Value CastTo(Value x, DType dtype, Loc loc) {
  if (x.valid() && x.dtype() == dtype) return x;
  return Emit("cast", {x}, {Attr{"dtype", dtype}}, loc);
}

}  // namespace agc
