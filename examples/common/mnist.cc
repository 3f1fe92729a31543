#include "examples/common/mnist.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace examples {
namespace {

absl::StatusOr<std::vector<uint8_t>> ReadGzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  std::vector<uint8_t> bytes;
  uint8_t chunk[1 << 16];
  int n = 0;
  while ((n = gzread(file, chunk, sizeof chunk)) > 0) bytes.insert(bytes.end(), chunk, chunk + n);
  gzclose(file);
  if (n < 0) return absl::DataLossError(absl::StrCat(path, ": is not a whole gzip file"));
  return bytes;
}

uint32_t BigEndian(const std::vector<uint8_t>& b, size_t at) {
  return static_cast<uint32_t>(b[at]) << 24 | static_cast<uint32_t>(b[at + 1]) << 16 |
         static_cast<uint32_t>(b[at + 2]) << 8 | b[at + 3];
}

// IDX: magic 0x0000080r for r axes of bytes, the extents, the elements.
absl::StatusOr<std::vector<uint8_t>> ReadIdx(const std::string& path, size_t axes, size_t rows) {
  AGC_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, ReadGzip(path));
  const size_t head = 4 + 4 * axes, expected = head + rows * (axes == 3 ? 28 * 28 : 1);
  if (bytes.size() < head || BigEndian(bytes, 0) != 0x800 + axes)
    return absl::DataLossError(absl::StrCat(path, ": is not an IDX file of ", axes, " axes"));
  if (BigEndian(bytes, 4) != rows || bytes.size() != expected)
    return absl::DataLossError(absl::StrCat(path, ": has ", bytes.size(), " bytes, expected ", expected));
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<long>(head));
  return bytes;
}

}  // namespace

absl::StatusOr<Mnist> ReadMnist(const std::string& directory) {
  Mnist data;
  AGC_ASSIGN_OR_RETURN(data.train.images, ReadIdx(directory + "/train-images-idx3-ubyte.gz", 3, 60000));
  AGC_ASSIGN_OR_RETURN(data.train.labels, ReadIdx(directory + "/train-labels-idx1-ubyte.gz", 1, 60000));
  AGC_ASSIGN_OR_RETURN(data.test.images, ReadIdx(directory + "/t10k-images-idx3-ubyte.gz", 3, 10000));
  AGC_ASSIGN_OR_RETURN(data.test.labels, ReadIdx(directory + "/t10k-labels-idx1-ubyte.gz", 1, 10000));
  return data;
}

}  // namespace examples
