// Division of integers rounded down, where C++ rounds towards 0.
//   FloorDiv(-1, 4) == -1
#pragma once
#include <cstdint>

namespace agc {

constexpr int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

}  // namespace agc
