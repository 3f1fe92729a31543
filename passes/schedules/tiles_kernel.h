// The kernel of family `tiles` (tiles.cc), under construction.
#pragma once
#include "passes/schedules/contract_shape.h"

namespace agc {

struct TileSizes {
  int64_t bm, bn, bk, tm, tn, ks;
  int64_t ahead = 1, raster = 8;

  int64_t threads() const { return bm / tm * (bn / tn) * ks; }
  // Elements behind the bm or bn of a row of a slab, so that steps lie in other banks and vectors stay aligned.
  static int64_t Skew(int64_t width) { return width % 4 == 0 ? 4 : 1; }
  int64_t shared_words() const { return bk * (bm + Skew(bm) + bn + Skew(bn)) + (ks > 1 ? ks * bm * bn : 0); }
};

TileSizes TileSizesOf(const Schedule& schedule);
// Workgroups in x, y and z: tiles are counted along x alone where the target allows that many, so that those that run
// together share operands (raster).
std::array<int64_t, 3> TileGroups(const Nest& nest, const ContractShape& shape, const TileSizes& sizes, int64_t split,
                                  const Target& target);

// One kernel, or with a split whose parts a second kernel adds, two.
absl::StatusOr<Built> BuildTiles(const Nest& nest, const ContractShape& shape, int64_t split, const Target& target);

}  // namespace agc
