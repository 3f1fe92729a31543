// Writes JSON: values are strings of JSON, put together by these functions.
//   Json::Object({{"name", Json::Of("x")}, {"shape", Json::Of(type.dims)}})   // {"name": "x", "shape": [2, 3]}
// JSON has no infinities and no NaN: they are the strings "inf", "-inf" and "nan".
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace agc::tool {

struct Json {
  std::string text = "null";

  static Json Of(absl::string_view s);  // any bytes: what is not UTF-8 becomes U+FFFD
  static Json Of(const char* s) { return Of(absl::string_view(s)); }
  static Json Of(bool b) { return {b ? "true" : "false"}; }
  static Json Of(double d);
  static Json Of(int64_t i);
  static Json Of(uint64_t i);
  static Json Of(absl::Span<const int64_t> ints);
  static Json List(const std::vector<Json>& items, bool lines = false);  // `lines`: one item a line
  static Json Object(const std::vector<std::pair<absl::string_view, Json>>& members);
};

// Prints it on stdout with a newline.
void PrintJson(const Json& json);

}  // namespace agc::tool
