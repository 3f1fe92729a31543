// 64-bit integers on devices without them: a value is uvec2(low word, high word), for i64 and u64 alike, and every
// scalar op on it is a function of the text below.
//   PairSpelling("mul") == "agc_mul($0, $1)"
#pragma once
#include "absl/strings/string_view.h"

namespace agc {

// How a scalar op is spelled on pairs; $s is "i" for i64 and "u" for u64. Empty: it has no spelling.
absl::string_view PairSpelling(absl::string_view scalar_op);

absl::string_view PairFunctions();        // what spellings and conversions call
absl::string_view PairDoubleFunctions();  // conversions from and to f64

}  // namespace agc
