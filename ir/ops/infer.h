// Shape rules and checks that rows of the op table share. Every message shows the offending values and, where it is not
// obvious, what to do; AppendChecked puts the location in front.
//   .infer = SameFloat                                   // a row whose operands and result have one float type
//   AGC_RETURN_IF_ERROR(CheckRank(call, 0, 2));          // "matmul: operand 0 is f32[3], expected rank 2"
#pragma once
#include "ir/op_def.h"

namespace agc {

// Rules for a row as they are: all operands have one type, which is the result's.
absl::StatusOr<Types> SameTypes(const OpCall& call);   // any dtype
absl::StatusOr<Types> SameNumber(const OpCall& call);  // float or integer
absl::StatusOr<Types> SameFloat(const OpCall& call);
absl::StatusOr<Types> SameInt(const OpCall& call);
absl::StatusOr<Types> SameBool(const OpCall& call);
absl::StatusOr<Types> CompareTypes(const OpCall& call);     // operands of one type, any dtype; the result is bool
absl::StatusOr<Types> FloatClassTypes(const OpCall& call);  // the same of floats

// Checks for rules of one's own. `operand` counts from 0.
absl::Status CheckSame(const OpCall& call);       // all operands have one type
absl::Status CheckSameDType(const OpCall& call);  // all operands have one dtype
absl::Status CheckFloat(const OpCall& call, int operand);
absl::Status CheckInt(const OpCall& call, int operand);
absl::Status CheckNumber(const OpCall& call, int operand);  // float or integer
absl::Status CheckDType(const OpCall& call, int operand, DType dtype);
absl::Status CheckRank(const OpCall& call, int operand, int rank);                               // exactly
absl::Status CheckMinRank(const OpCall& call, int operand, int rank);                            // at least
absl::Status CheckAxis(const OpCall& call, absl::string_view attr, int64_t axis, int rank);      // in [-rank, rank)
absl::Status CheckAxes(const OpCall& call, absl::string_view attr, const Ints& axes, int rank);  // and none twice
// The attribute has `count` numbers, each of `least` or more.
absl::Status CheckInts(const OpCall& call, absl::string_view attr, int count, int64_t least);
// A literal of the dtype: integers must be whole and in range. "<what> 300 is not a value of u8"
absl::Status CheckValueOf(const OpCall& call, absl::string_view what, double value, DType dtype);
// Row-major positions over `dims` fit the i32 that ops keep them in.
absl::Status CheckPositionCount(const OpCall& call, absl::Span<const int64_t> dims);
// No negative dimension, and the bytes stay within 2^60.
absl::Status CheckDims(const OpCall& call, absl::string_view what, DType dtype, absl::Span<const int64_t> dims);

std::string ToString(absl::Span<const int64_t> ints);  // "[2, 3]"
inline int64_t PositiveAxis(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }
bool HasAxis(Value x, int64_t axis);            // in [-rank, rank)
Ints PositiveAxes(const Ints& axes, int rank);  // sorted; empty: every axis
// The shape without `axes` (from PositiveAxes), or with 1 there.
Dims ReducedDims(const Dims& dims, const Ints& axes, bool keep_dims);
// Whether the number is one of the dtype's, for floats but for rounding.
bool IsValueOf(DType dtype, double value);
// numpy's common shape of a and b; false if there is none.
bool CommonDims(const Dims& a, const Dims& b, Dims& out);

// A gradient rule that lets nothing through: floor, sign, comparisons.
void NoGradient(Vjp& s);
// Elements [begin, end) of an axis.
Value PartOf(Value x, int64_t axis, int64_t begin, int64_t end, Loc loc = Loc::Here());
// In the dtype that sums of it are kept in: f32 for f16 and bf16.
Value Wide(Value x);
// g * d and g / d, but 0 where g is 0 and the plain result would be NaN (d infinite, zero or NaN): branches that
// `select` did not take have g = 0 and must stay silent. Differentiable again in both operands.
Value SafeMul(Value g, Value d, Loc loc = Loc::Here());
Value SafeDiv(Value g, Value d, Loc loc = Loc::Here());

}  // namespace agc
