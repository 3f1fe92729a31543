// Source locations that travel with every op, and the shape of every diagnostic.
//   Value Tanh(Value x, Loc loc = Loc::Here());     // the caller's line, with g++ 12 and clang 14
//   return ErrorAt(loc, "matmul: inner dimensions differ (784 and 512)");   // "mlp.cc:40: error: matmul: ..."
// Locations never enter a hash, a comparison or an ordering: compilers disagree about lines of multi-line expressions.
#pragma once
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace agc {

struct Loc {
  absl::string_view file = {};  // static or interned
  uint32_t line = 0;            // 0: unknown
  static constexpr Loc Here(const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};

std::string ToString(Loc loc);  // "mlp.cc:40", or "" if unknown

// A copy of `text` that lives as long as the process; equal texts share one copy. Thread-safe.
absl::string_view Intern(absl::string_view text);

// "<file>:<line>: error: <message>"; without a location just "error: <message>". The default code is the user's
// mistake.
absl::Status ErrorAt(Loc loc, absl::string_view message, absl::StatusCode code = absl::StatusCode::kInvalidArgument);
// The same status with "\nnote: <note>" appended ("<file>:<line>: note: ..." where the place is known).
absl::Status WithNote(const absl::Status& status, absl::string_view note, Loc loc = {});

}  // namespace agc
