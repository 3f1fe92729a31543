#include "ir/base/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace agc {
namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(error)));
}

using Pieces = absl::Span<const absl::string_view>;

absl::Status WriteTo(const std::string& file, const std::string& path, Pieces pieces) {
  std::FILE* out = std::fopen(file.c_str(), "wb");
  if (out == nullptr) return CannotWrite(path, errno);
  int error = 0;
  for (const absl::string_view piece : pieces) {
    if (error == 0 && std::fwrite(piece.data(), 1, piece.size(), out) != piece.size()) error = errno;
  }
  if (std::fclose(out) != 0 && error == 0) error = errno;  // what was buffered goes out here
  return error == 0 ? absl::OkStatus() : CannotWrite(path, error);
}

}  // namespace

absl::Status WriteFile(const std::string& path, absl::string_view contents) {
  return WriteFile(path, Pieces(&contents, 1));
}

absl::Status WriteFile(const std::string& path, Pieces pieces) {
  std::error_code none;
  const std::filesystem::file_status there = std::filesystem::status(path, none);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) return WriteTo(path, path, pieces);
  const std::string beside = absl::StrCat(path, ".", getpid(), ".tmp");
  absl::Status status = WriteTo(beside, path, pieces);
  std::error_code renamed;
  if (status.ok()) std::filesystem::rename(beside, path, renamed);
  if (renamed) status = CannotWrite(path, renamed.value());
  if (!status.ok()) std::filesystem::remove(beside, none);
  return status;
}

}  // namespace agc
