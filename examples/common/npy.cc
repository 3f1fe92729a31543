#include "examples/common/npy.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace examples {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY\x01\x00", 8);  // version 1.0: a 16-bit header length follows

// The bytes after the header, which must name dtype `descr`.
absl::StatusOr<std::string> ReadBody(const std::string& path, absl::string_view descr) {
  std::ifstream in(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (file.size() < 10 || file.compare(0, 8, kMagic.data(), 8) != 0)
    return absl::DataLossError(absl::StrCat(path, ": is not a version 1.0 .npy file"));
  const size_t head = static_cast<uint8_t>(file[8]) + 256u * static_cast<uint8_t>(file[9]);
  if (file.size() < 10 + head || file.substr(10, head).find(std::string(descr)) == std::string::npos) {
    return absl::DataLossError(absl::StrCat(path, ": does not hold ", descr, " elements"));
  }
  return file.substr(10 + head);
}

}  // namespace

absl::Status WriteNpy(const std::string& path, const uint8_t* data, const std::vector<int64_t>& dims) {
  std::string shape, head;
  int64_t n = 1;
  for (int64_t d : dims) {
    absl::StrAppend(&shape, d, ", ");
    n *= d;
  }
  head = absl::StrCat("{'descr': '|u1', 'fortran_order': False, 'shape': (", shape, "), }");
  head.append(63 - (10 + head.size()) % 64, ' ');  // the elements start at a multiple of 64
  head += '\n';
  std::ofstream out(path, std::ios::binary);
  out << kMagic << static_cast<char>(head.size() & 255) << static_cast<char>(head.size() >> 8) << head;
  out.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(n));
  out.close();
  return out ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
}

absl::StatusOr<std::vector<int32_t>> ReadNpyI32(const std::string& path) {
  AGC_ASSIGN_OR_RETURN(const std::string body, ReadBody(path, "<i4"));
  std::vector<int32_t> values(body.size() / 4);
  std::memcpy(values.data(), body.data(), 4 * values.size());
  return values;
}

absl::StatusOr<std::vector<uint8_t>> ReadNpyU8(const std::string& path) {
  AGC_ASSIGN_OR_RETURN(const std::string body, ReadBody(path, "u1"));
  return std::vector<uint8_t>(body.begin(), body.end());
}

}  // namespace examples
