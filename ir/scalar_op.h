// The scalar op table: what Alu nodes mean. One row says typing, meaning in C++, spelling in GLSL, cost and, for ops
// that devices compute loosely, `expand`: the same op as an expression of exact ops.
//   const ScalarOp* tanh = FindScalarOp("tanh");   tanh->glsl == "tanh($0)"
#pragma once
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/scalar.h"

namespace agc {

struct Expr;

enum class ScalarTyping : uint8_t {
  kSame,     // all operands and the result have one dtype
  kCompare,  // operands have one dtype, the result is bool
  kSelect,   // bool, then two of one dtype, which is the result's
  kBool,     // bool operands and result
};

// Which dtypes an op is defined for, besides what typing says.
enum class ScalarDomain : uint8_t { kFloat, kInt, kNumber, kAny, kBits };

struct ScalarOp {
  absl::string_view name = {};
  int arity = 1;
  ScalarTyping typing = ScalarTyping::kSame;
  ScalarDomain domain = ScalarDomain::kNumber;
  double (*f)(const double* x) = nullptr;                 // meaning on floats, before rounding to the dtype
  int64_t (*i)(DType dtype, const int64_t* x) = nullptr;  // meaning on integers and bool, before wrapping
  bool (*fp)(const double* x) = nullptr;                  // comparisons of floats
  absl::string_view infix = {};                           // text form `a + b`, when it has one
  absl::string_view glsl = {};  // "$0 + $1"; floats and, where glsl_int is empty, integers; $t: type
  absl::string_view glsl_int = {};
  // The function agc_<name> that the spellings call, printed once per type that it is called with. In it, $t is that
  // type, $u its unsigned one, $bits its width, $half half of it, $nan a NaN. Integers: glsl_int_helper where given.
  absl::string_view glsl_helper = {};
  absl::string_view glsl_int_helper = {};
  bool glsl_f64 = true;  // the spelling exists for f64 too
  double cost = 1;       // relative to an add
  Expr (*expand)(absl::Span<const Expr> x) = nullptr;
  absl::string_view doc = {};
};

absl::Span<const ScalarOp> ScalarOps();                // sorted by name
const ScalarOp* FindScalarOp(absl::string_view name);  // nullptr if unknown
int ScalarOpIndex(const ScalarOp& op);                 // position in ScalarOps()

// Applies the meaning: operands as the typing says; the result is rounded or wrapped to its dtype.
Scalar Apply(const ScalarOp& op, absl::Span<const Scalar> x);

}  // namespace agc
