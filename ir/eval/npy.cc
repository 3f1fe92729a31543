#include "ir/eval/npy.h"

#include <cstring>
#include <fstream>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/base/file.h"
#include "ir/base/status.h"

namespace agc {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
// numpy's type characters in the order of DType; bf16 travels as its bits.
constexpr absl::string_view kDescr[kTensorDTypes] = {"<f8", "<f4", "<f2", "<u2", "<i8", "<i4", "<i2",
                                                     "|i1", "<u8", "<u4", "<u2", "|u1", "|b1"};

absl::Status Bad(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": not a readable .npy file: ", what));
}

// The text after `'key':` in the header, up to the end; empty if the key is missing.
absl::string_view After(absl::string_view header, absl::string_view key) {
  const size_t at = header.find(absl::StrCat("'", key, "'"));
  if (at == absl::string_view::npos) return {};
  const size_t colon = header.find(':', at);
  return colon == absl::string_view::npos ? absl::string_view()
                                          : absl::StripLeadingAsciiWhitespace(header.substr(colon + 1));
}

absl::StatusOr<DType> ParseDescr(const std::string& path, absl::string_view text) {
  if (text.empty()) return Bad(path, "no descr");
  if (text[0] != '\'') return absl::UnimplementedError(absl::StrCat(path, ": structured arrays are not supported"));
  const absl::string_view descr = text.substr(1, text.find('\'', 1) - 1);
  for (int i = 0; i < kTensorDTypes; ++i) {
    const bool bf16 = static_cast<DType>(i) == DType::kBF16;  // '<u2' without a request means u16
    if (!bf16 && descr == kDescr[i]) return static_cast<DType>(i);
  }
  return absl::UnimplementedError(absl::StrCat(path, ": dtype '", descr, "' is not supported, convert it with astype"));
}

absl::StatusOr<Dims> ParseShape(const std::string& path, absl::string_view text) {
  const size_t close = text.find(')');
  if (text.empty() || text[0] != '(' || close == absl::string_view::npos) return Bad(path, "no shape");
  Dims dims;
  int64_t elements = 1;
  for (absl::string_view part : absl::StrSplit(text.substr(1, close - 1), ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (part.empty()) continue;
    int64_t d = 0;
    if (!absl::SimpleAtoi(part, &d) || d < 0) return Bad(path, absl::StrCat("dimension ", part));
    if (d != 0 && elements > (std::numeric_limits<int64_t>::max() >> 4) / d) return Bad(path, "too many elements");
    elements *= d;
    dims.push_back(d);
  }
  return dims;
}

absl::StatusOr<TensorType> ReadHeader(const std::string& path, std::istream& in) {
  char start[8] = {};
  if (!in.read(start, 8) || absl::string_view(start, 6) != kMagic) return Bad(path, "wrong first bytes");
  uint8_t size[4] = {};
  if (!in.read(reinterpret_cast<char*>(size), start[6] == 1 ? 2 : 4)) return Bad(path, "it ends in the header");
  const uint32_t length = size[0] | size[1] << 8 | size[2] << 16 | static_cast<uint32_t>(size[3]) << 24;
  if (length > 1 << 16) return Bad(path, absl::StrCat("its header has ", length, " bytes"));
  std::string header(length, '\0');
  if (!in.read(header.data(), length)) return Bad(path, "it ends in the header");
  if (absl::StartsWith(After(header, "fortran_order"), "True")) {
    return absl::UnimplementedError(
        absl::StrCat(path, ": Fortran order is not supported, save np.ascontiguousarray(x)"));
  }
  AGC_ASSIGN_OR_RETURN(const DType dtype, ParseDescr(path, After(header, "descr")));
  AGC_ASSIGN_OR_RETURN(Dims dims, ParseShape(path, After(header, "shape")));
  return TensorType{dtype, std::move(dims)};
}

}  // namespace

absl::StatusOr<HostTensor> ReadNpy(const std::string& path, const std::optional<TensorType>& expected) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  AGC_ASSIGN_OR_RETURN(TensorType type, ReadHeader(path, in));
  const std::streampos data = in.tellg();
  in.seekg(0, std::ios::end);
  const int64_t there = static_cast<int64_t>(in.tellg() - data);
  if (there < type.bytes())
    return Bad(path, absl::StrCat("it holds ", there, " bytes of data, ", ToString(type), " has ", type.bytes()));
  if (expected.has_value()) {
    if (expected->dtype == DType::kBF16 && type.dtype == DType::kU16) type.dtype = DType::kBF16;
    if (!(type == *expected)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": it holds ", ToString(type), ", ", ToString(*expected), " expected"));
    }
  }
  HostTensor t = HostTensor::Zeros(std::move(type));
  in.seekg(data);
  in.read(reinterpret_cast<char*>(t.bytes.data()), static_cast<std::streamsize>(t.bytes.size()));
  if (!in) return Bad(path, "reading failed");
  if (in.peek() != std::ifstream::traits_type::eof()) return Bad(path, "there is more in it than its header says");
  if (t.type.dtype == DType::kBool) {
    for (uint8_t& b : t.bytes) b = b != 0;
  }
  return t;
}

absl::Status WriteNpy(const std::string& path, const HostTensor& t) {
  const std::string shape = absl::StrCat("(", absl::StrJoin(t.type.dims, ", "), t.type.rank() == 1 ? ",)" : ")");
  std::string header = absl::StrCat("{'descr': '", kDescr[static_cast<int>(t.type.dtype)],
                                    "', 'fortran_order': False, 'shape': ", shape, ", }");
  header.append(63 - (header.size() + 10) % 64, ' ');  // the data starts at a multiple of 64 bytes
  header.push_back('\n');
  std::string file = absl::StrCat(kMagic, absl::string_view("\x01\0", 2));
  file.push_back(static_cast<char>(header.size() & 255));
  file.push_back(static_cast<char>(header.size() >> 8));
  file += header;
  file.append(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  return WriteFile(path, file);
}

}  // namespace agc
