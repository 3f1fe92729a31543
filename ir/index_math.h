// Arithmetic on the constants of index expressions, shared by their constructors and by interval analysis.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "ir/base/integers.h"

namespace agc {

constexpr int64_t kMaxIndex = std::numeric_limits<int64_t>::max() / 4;  // ranges saturate here

inline int64_t SaturatedIndex(__int128 v) {
  return static_cast<int64_t>(std::clamp<__int128>(v, -kMaxIndex, kMaxIndex));
}

// The coefficient of `atom` in a sum given as pairs of atom and coefficient.
template <typename Terms, typename Atom>
int64_t CoefficientOf(const Terms& terms, const Atom& atom) {
  for (const auto& [a, c] : terms) {
    if (a == atom) return c;
  }
  return 0;
}

}  // namespace agc
