// Linear element numbers of storage rows.
#include "ir/address.h"

#include <gtest/gtest.h>

namespace agc {
namespace {

Buffer Row(Dims dims, absl::InlinedVector<int, 6> order = {}, Dims pad = {}) {
  Buffer row;
  row.type = {DType::kF32, std::move(dims)};
  row.order = std::move(order);
  row.pad = std::move(pad);
  return row;
}

TEST(Address, RowMajor) {
  ExprPool pool;
  const Expr i = pool.Var(pool.Declare({.name = "i", .lo = 0, .hi = 3}));
  const Expr j = pool.Var(pool.Declare({.name = "j", .lo = 0, .hi = 29}));
  const Buffer row = Row({4, 30});
  EXPECT_EQ(LinearIndex(pool, row, {i, j}), i * 30 + j);
  EXPECT_EQ(LinearIndex(pool, row.type, {i, j}), i * 30 + j);
  EXPECT_EQ(StoredElements(row), 120);
}

TEST(Address, OrderAndPad) {
  ExprPool pool;
  const Expr i = pool.Var(pool.Declare({.name = "i", .lo = 0, .hi = 3}));
  const Expr j = pool.Var(pool.Declare({.name = "j", .lo = 0, .hi = 29}));
  Buffer row = Row({4, 30}, {1, 0}, {2, 0});
  row.stored = DType::kF16;
  EXPECT_EQ(LinearIndex(pool, row, {i, j}), j * 6 + i);
  EXPECT_EQ(LinearIndex(row, {3, 29}), 6 * 29 + 3);
  EXPECT_EQ(StoredElements(row), 180);
  EXPECT_EQ(StoredBytes(row), 360);
}

TEST(Address, Scalar) {
  ExprPool pool;
  EXPECT_TRUE(LinearIndex(pool, Row({}), {}).IsConst(0));
  EXPECT_EQ(StoredElements(Row({})), 1);
}

// Every element of a padded, permuted row has a number of its own within the row.
TEST(Address, Injective) {
  const Buffer row = Row({2, 3, 4}, {2, 0, 1}, {1, 0, 2});
  std::vector<int> seen(StoredElements(row));
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t c = 0; c < 4; ++c) ++seen[LinearIndex(row, {a, b, c})];
    }
  }
  for (int n : seen) EXPECT_LE(n, 1);
}

}  // namespace
}  // namespace agc
