// The kernel of family `product_rows` (product_rows.cc), and the sizes that it is built from.
#pragma once
#include "passes/schedules/contract_shape.h"

namespace agc {

struct ProductRowsShape {
  std::vector<VarId> batch = {}, m = {}, n = {}, columns = {}, k = {};
  bool swapped = false;  // the side of m is the stage's second value
};

struct ProductRowsSizes {
  int64_t bm, bw, bk, tm, local, lanes, columns;
  int64_t bn() const { return bw * columns; }
  int64_t tn() const { return CeilDiv(bn(), local / (bm / tm)); }
};

ProductRowsSizes ProductRowsSizesOf(const Schedule& schedule, int64_t columns);
Kernel BuildProductRows(const Nest& nest, const ProductRowsShape& shape);

}  // namespace agc
