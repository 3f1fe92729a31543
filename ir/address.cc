#include "ir/address.h"

#include "ir/base/status.h"

namespace agc {
namespace {

// Strides of `row` and, as the return value, the elements it spans.
int64_t FillStrides(const Buffer& row, Dims& strides) {
  const int rank = row.type.rank();
  AGC_CHECK(row.order.empty() || static_cast<int>(row.order.size()) == rank);
  AGC_CHECK(row.pad.empty() || static_cast<int>(row.pad.size()) == rank);
  strides.assign(rank, 1);
  int64_t elements = 1;
  for (int k = rank - 1; k >= 0; --k) {
    const int axis = row.order.empty() ? k : row.order[k];
    strides[axis] = elements;
    elements *= row.type.dims[axis] + (row.pad.empty() ? 0 : row.pad[axis]);
  }
  return elements;
}

Expr Dot(ExprPool& pool, const Dims& strides, Index logical) {
  AGC_CHECK(logical.size() == strides.size());
  Expr sum = pool.Int(0);
  for (size_t i = 0; i < logical.size(); ++i) sum = sum + logical[i] * strides[i];
  return sum;
}

}  // namespace

Dims Strides(const TensorType& type) {
  Dims strides(type.dims.size(), 1);
  for (int k = type.rank() - 2; k >= 0; --k) strides[k] = strides[k + 1] * type.dims[k + 1];
  return strides;
}

Dims Strides(const Buffer& row) {
  Dims strides;
  FillStrides(row, strides);
  return strides;
}

Expr LinearIndex(ExprPool& pool, const TensorType& type, Index logical) { return Dot(pool, Strides(type), logical); }

Expr LinearIndex(ExprPool& pool, const Buffer& row, Index logical) { return Dot(pool, Strides(row), logical); }

int64_t LinearIndex(const Buffer& row, absl::Span<const int64_t> logical) {
  const Dims strides = Strides(row);
  AGC_CHECK(logical.size() == strides.size());
  int64_t sum = 0;
  for (size_t i = 0; i < logical.size(); ++i) sum += logical[i] * strides[i];
  return sum;
}

int64_t StoredElements(const Buffer& row) {
  Dims strides;
  return FillStrides(row, strides);
}

int64_t StoredBytes(const Buffer& row) { return StoredElements(row) * SizeOf(row.stored); }

}  // namespace agc
