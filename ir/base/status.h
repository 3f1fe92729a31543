// Check-and-return macros for absl::Status and agc::rt::Status, and the check for broken invariants.
//   AGC_ASSIGN_OR_RETURN(Bundle bundle, Compile(module, target));
//   AGC_RETURN_IF_ERROR(session.Bind("images", data));
//   AGC_CHECK(id.index < ops.size()) << never: it aborts with file, line and condition.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"

namespace agc {

inline absl::Status AsStatus(absl::Status status) { return status; }

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace agc

#define AGC_CONCAT_INNER(a, b) a##b
#define AGC_CONCAT(a, b) AGC_CONCAT_INNER(a, b)
#define AGC_RETURN_IF_ERROR(expr)                                        \
  do {                                                                   \
    auto agc_status = (expr);                                            \
    if (!agc_status.ok()) return ::agc::AsStatus(std::move(agc_status)); \
  } while (0)
#define AGC_ASSIGN_OR_RETURN(lhs, expr) AGC_ASSIGN_OR_RETURN_IMPL(AGC_CONCAT(agc_or_, __LINE__), lhs, expr)
#define AGC_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr)      \
  auto tmp = (expr);                                   \
  if (!tmp.ok()) return ::agc::AsStatus(tmp.status()); \
  lhs = *std::move(tmp)
#define AGC_CHECK(condition)                                              \
  do {                                                                    \
    if (!(condition)) ::agc::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (0)
