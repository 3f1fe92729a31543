#include "compiler/import/onnx_tensor.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"

namespace agc::onnx {
namespace {

struct TypeRow {
  absl::string_view name = {};
  int dtype = -1;  // as DType; -1: the type system has none
};

// By TensorProto::DataType.
constexpr TypeRow kTypes[] = {
    {"undefined"},
    {"float", int(DType::kF32)},
    {"uint8", int(DType::kU8)},
    {"int8", int(DType::kI8)},
    {"uint16", int(DType::kU16)},
    {"int16", int(DType::kI16)},
    {"int32", int(DType::kI32)},
    {"int64", int(DType::kI64)},
    {"string"},
    {"bool", int(DType::kBool)},
    {"float16", int(DType::kF16)},
    {"double", int(DType::kF64)},
    {"uint32", int(DType::kU32)},
    {"uint64", int(DType::kU64)},
    {"complex64"},
    {"complex128"},
    {"bfloat16", int(DType::kBF16)},
    {"float8e4m3fn"},
    {"float8e4m3fnuz"},
    {"float8e5m2"},
    {"float8e5m2fnuz"},
    {"uint4"},
    {"int4"},
    {"float4e2m1"},
    {"float8e8m0"},
    {"uint2"},
    {"int2"},
};
constexpr int64_t kTypeCount = static_cast<int64_t>(std::size(kTypes));
constexpr int64_t kMostElements = int64_t{1} << 40;

absl::Status Bad(const TensorProto& t, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", t.name, "': ", what));
}

absl::StatusOr<TensorView> ExternalView(const TensorProto& t, TensorView view, ExternalFiles& files) {
  const auto text = [&](const char* key) {
    const auto it = t.location.find(key);
    return it == t.location.end() ? std::string() : it->second;
  };
  const absl::StatusOr<MappedFile> file = files.Open(text("location"));
  if (!file.ok())
    return absl::Status(file.status().code(), absl::StrCat("tensor '", t.name, "': ", file.status().message()));
  const auto size = static_cast<int64_t>(file->bytes().size()), need = view.type.bytes();
  int64_t offset = 0, length = need;
  const std::string at = text("offset"), bytes = text("length");
  if (!at.empty() && !absl::SimpleAtoi(at, &offset)) return Bad(t, absl::StrCat("offset is '", at, "'"));
  if (!bytes.empty() && !absl::SimpleAtoi(bytes, &length)) return Bad(t, absl::StrCat("length is '", bytes, "'"));
  if (length != need) {
    return Bad(t, absl::StrCat(length, " bytes in ", text("location"), ", ", ToString(view.type), " has ", need));
  }
  if (offset < 0 || offset > size || need > size - offset) {
    return Bad(t, absl::StrCat(text("location"), " has ", size, " bytes, those from ", offset, " to ", offset + need,
                               " are meant"));
  }
  view.owner = std::make_shared<MappedFile>(*file);
  view.bytes = file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(need));
  return view;
}

// Elements from the lists: half floats are in them as bits.
absl::StatusOr<TensorView> ListView(const TensorProto& t, const TensorType& type) {
  const size_t n = static_cast<size_t>(type.elements());
  const bool bits = type.dtype == DType::kF16 || type.dtype == DType::kBF16;
  const size_t given = type.dtype == DType::kF32   ? t.floats.size()
                       : type.dtype == DType::kF64 ? t.doubles.size()
                                                   : t.ints.size();
  if (given != n) return Bad(t, absl::StrCat(given, " elements, ", ToString(type), " has ", n));
  HostTensor host = HostTensor::Zeros(type);
  for (size_t i = 0; i < n; ++i) {
    if (bits) {
      const auto word = static_cast<uint16_t>(t.ints[i]);
      std::memcpy(host.bytes.data() + 2 * i, &word, 2);
    } else {
      const Scalar value = type.dtype == DType::kF32   ? Scalar::Float(type.dtype, t.floats[i])
                           : type.dtype == DType::kF64 ? Scalar::Float(type.dtype, t.doubles[i])
                                                       : Scalar::Int(type.dtype, t.ints[i]);
      host.set(static_cast<int64_t>(i), value);
    }
  }
  return ViewOf(std::move(host));
}

}  // namespace

std::string DataTypeName(int64_t t) {
  return t >= 0 && t < kTypeCount ? std::string(kTypes[t].name) : absl::StrCat("data type ", t);
}

absl::StatusOr<DType> DTypeOf(int64_t t) {
  if (t >= 0 && t < kTypeCount && kTypes[t].dtype >= 0) return static_cast<DType>(kTypes[t].dtype);
  return absl::UnimplementedError(absl::StrCat("element type ", DataTypeName(t), " is needed, which agc has not"));
}

int64_t DataTypeOf(DType dtype) {
  for (int64_t t = 0; t < kTypeCount; ++t) {
    if (kTypes[t].dtype == static_cast<int>(dtype)) return t;
  }
  return kUndefined;
}

absl::StatusOr<int64_t> ElementsOf(absl::Span<const int64_t> dims) {
  int64_t n = 1;
  const bool empty = std::find(dims.begin(), dims.end(), 0) != dims.end();
  for (const int64_t d : dims) {
    if (d < 0)
      return absl::InvalidArgumentError(absl::StrCat("an extent is ", d, " in [", absl::StrJoin(dims, ","), "]"));
    if (d > kMostElements || (!empty && d > kMostElements / n)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape [", absl::StrJoin(dims, ","), "] has more elements than 2^40"));
    }
    n = empty ? 0 : n * d;
    if (empty) n = 1;
  }
  return empty ? 0 : n;
}

absl::StatusOr<MappedFile> ExternalFiles::Open(const std::string& location) {
  const std::filesystem::path path = std::filesystem::path(location).lexically_normal();
  if (location.empty() || path.is_absolute() || *path.begin() == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat("external data lies at '", location, "', expected a file beside the model"));
  }
  if (directory_.empty())
    return absl::InvalidArgumentError("external data, and the model is no file that has neighbours");
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  AGC_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open((std::filesystem::path(directory_) / path).string()));
  files_.emplace(location, file);
  return file;
}

TensorView ViewOf(HostTensor tensor) {
  const auto owned = std::make_shared<const HostTensor>(std::move(tensor));
  return {owned->type, owned->bytes, owned};
}

absl::StatusOr<TensorView> ViewOf(const TensorProto& t, ExternalFiles& files) {
  const absl::StatusOr<DType> dtype = DTypeOf(t.data_type);
  if (!dtype.ok())
    return absl::Status(dtype.status().code(), absl::StrCat("tensor '", t.name, "': ", dtype.status().message()));
  const absl::StatusOr<int64_t> n = ElementsOf(t.dims);
  if (!n.ok()) return Bad(t, n.status().message());
  TensorView view{.type = {*dtype, Dims(t.dims.begin(), t.dims.end())}};
  if (t.external) return ExternalView(t, std::move(view), files);
  const bool lists = !t.floats.empty() || !t.doubles.empty() || !t.ints.empty();
  if (lists || *n == 0) return ListView(t, view.type);
  if (static_cast<int64_t>(t.raw.size()) != view.type.bytes()) {
    return Bad(t, absl::StrCat(t.raw.size(), " bytes, ", ToString(view.type), " has ", view.type.bytes()));
  }
  if (*dtype == DType::kBool && std::any_of(t.raw.begin(), t.raw.end(), [](uint8_t b) { return b > 1; })) {
    return Bad(t, "a bool that is neither 0 nor 1");
  }
  view.bytes = t.raw;
  return view;
}

}  // namespace agc::onnx
