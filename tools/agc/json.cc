#include "tools/agc/json.h"

#include <cmath>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace agc::tool {
namespace {

// Length of the UTF-8 sequence at the start of `s`, 0 if there is none.
size_t Utf8Length(absl::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
  if (length == 0 || length > s.size() || byte(0) > 0xf4) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

Json Json::Of(absl::string_view s) {
  std::string out = "\"";
  while (!s.empty()) {
    const unsigned char c = static_cast<unsigned char>(s[0]);
    const size_t length = Utf8Length(s);
    if (c == '"' || c == '\\') {
      absl::StrAppend(&out, "\\", s.substr(0, 1));
    } else if (c == '\n') {
      absl::StrAppend(&out, "\\n");
    } else if (c < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      absl::StrAppend(&out, length == 0 ? "\xef\xbf\xbd" : s.substr(0, length));
    }
    s.remove_prefix(length == 0 ? 1 : length);
  }
  return {out + "\""};
}

Json Json::Of(double d) {
  if (std::isnan(d)) return Of("nan");
  if (std::isinf(d)) return Of(d > 0 ? "inf" : "-inf");
  return {absl::StrFormat("%.17g", d)};
}

Json Json::Of(int64_t i) { return {absl::StrCat(i)}; }

Json Json::Of(uint64_t i) { return {absl::StrCat(i)}; }

Json Json::Of(absl::Span<const int64_t> ints) { return {absl::StrCat("[", absl::StrJoin(ints, ", "), "]")}; }

Json Json::List(const std::vector<Json>& items, bool lines) {
  const auto item = [](std::string* out, const Json& j) { absl::StrAppend(out, j.text); };
  if (lines && !items.empty()) return {absl::StrCat("[\n  ", absl::StrJoin(items, ",\n  ", item), "\n]")};
  return {absl::StrCat("[", absl::StrJoin(items, ", ", item), "]")};
}

Json Json::Object(const std::vector<std::pair<absl::string_view, Json>>& members) {
  return {absl::StrCat("{",
                       absl::StrJoin(members, ", ",
                                     [](std::string* out, const auto& m) {
                                       absl::StrAppend(out, Of(m.first).text, ": ", m.second.text);
                                     }),
                       "}")};
}

void PrintJson(const Json& json) { std::printf("%s\n", json.text.c_str()); }

}  // namespace agc::tool
