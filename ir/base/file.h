// Writing files as a whole, and what may stand before text that was read.
//   AGC_RETURN_IF_ERROR(WriteFile("w.npy", bytes));
#pragma once
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace agc {

// The file has the new contents or, on an error, the old ones: they are written beside it first. What is no regular
// file, such as a pipe, is written in place. The error names the path and the system's reason.
absl::Status WriteFile(const std::string& path, absl::string_view contents);
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> pieces);  // one after the other

// What some editors put before UTF-8; parsers skip it.
inline constexpr absl::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace agc
