#include "tools/agc/command.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace agc::tool {

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return text;
}

int Failed(const absl::Status& status) {
  const std::string message(status.message());
  std::fprintf(stderr, "%s%s\n", absl::StrContains(message, "error: ") ? "" : "error: ", message.c_str());
  return 2;
}

bool Flag(absl::string_view arg, absl::string_view name, std::string& value) {
  if (!absl::StartsWith(arg, absl::StrCat("--", name, "="))) return false;
  value = std::string(arg.substr(name.size() + 3));
  return true;
}

}  // namespace agc::tool
