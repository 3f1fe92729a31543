#include "compiler/import/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace agc {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::NotFoundError(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  struct stat info = {};
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = static_cast<size_t>(regular ? info.st_size : 0);
  void* data = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int mapped = errno;
  close(fd);
  if (!regular) return absl::InvalidArgumentError(absl::StrCat(path, " is no regular file"));
  if (data == MAP_FAILED) return absl::NotFoundError(absl::StrCat("cannot map ", path, ": ", std::strerror(mapped)));
  MappedFile file;
  if (size == 0) return file;
  file.owner_ = std::shared_ptr<const void>(data, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  file.bytes_ = {static_cast<const uint8_t*>(data), size};
  return file;
}

}  // namespace agc
