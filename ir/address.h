// Where an element lies: the one function from (storage row, logical index) to the element's number in its buffer, for
// `legalize`, for the schedules' proofs of vector width and for evaluators.
//   buffer %b: f32[4,30] order [1,0] pad [2,0]   // 30 rows of 4 + 2 elements
//   LinearIndex(pool, b, {i, j}) == 6*j + i
#pragma once
#include "absl/types/span.h"
#include "ir/expr.h"
#include "ir/storage.h"

namespace agc {

// Elements between neighbours along each logical axis; row-major without padding for a plain type.
Dims Strides(const TensorType& type);
Dims Strides(const Buffer& row);

// Sum of index times stride; `logical` has one index per axis of the type.
Expr LinearIndex(ExprPool& pool, const TensorType& type, Index logical);
Expr LinearIndex(ExprPool& pool, const Buffer& row, Index logical);
int64_t LinearIndex(const Buffer& row, absl::Span<const int64_t> logical);

// Elements that a row occupies, padding included, and their bytes in the stored format.
int64_t StoredElements(const Buffer& row);
int64_t StoredBytes(const Buffer& row);

}  // namespace agc
