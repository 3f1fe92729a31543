// What ops that read or write at computed positions share: a negative index counts from the end; positions that no
// element has are clamped by reads and dropped by writes.
#pragma once
#include "ir/build_index.h"
#include "ir/ops/infer.h"

namespace agc {

// An integer dtype that holds every value of `index` and the numbers up to `n`.
DType WideIndex(DType index, int64_t n);
// The position along an axis of n elements that an index stands for, clamped.
Expr Position(Expr v, int64_t n);
// An i32 value as an index below n; values outside are clamped.
Expr ClampedIndex(Expr v, int64_t n);

Expr I32(const At& s, int64_t v);  // a literal

// Whether `a` goes before `b` in increasing order: a < b, and NaN behind all numbers.
Expr Before(Expr a, Expr b);

// Results without elements need no element to read.
absl::Status CheckTaken(const OpCall& call, const TensorType& result, int64_t axis);
absl::Status CheckScatterMode(const OpCall& call, int operand);  // arithmetic modes need numbers

absl::string_view Name(ScatterMode mode);
ScatterMode ScatterModeOf(const AttrReader& attrs);

// i32 positions in row-major order over `dims`, from indices [..., dims.size()]; dropped ones are -1.
Value LinearPositions(Value indices, absl::Span<const int64_t> dims, bool drop);

int64_t Product(absl::Span<const int64_t> dims);

}  // namespace agc
