#include "tools/agc/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace agc::tool {

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  // C's files, because a stream throws where a directory is read.
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  std::string text;
  bool good = file != nullptr;
  char chunk[65536];
  for (size_t n = 1; good && n > 0;) {
    n = std::fread(chunk, 1, sizeof(chunk), file);
    text.append(chunk, n);
    good = std::ferror(file) == 0;
  }
  const std::string why = good ? "" : std::strerror(errno);
  if (file != nullptr && file != stdin) std::fclose(file);
  if (!good) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", why));
  return text;
}

int Failed(const absl::Status& status) {
  const std::string message(status.message());
  std::fprintf(stderr, "%s%s\n", absl::StrContains(message, "error: ") ? "" : "error: ", message.c_str());
  return 2;
}

}  // namespace agc::tool
