#include "tools/agc/values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/base/status.h"
#include "ir/eval/npy.h"

namespace agc::tool {
namespace {

constexpr int64_t kPrinted = 64;  // elements that a printed tensor shows in full
constexpr int64_t kStart = 8;     // elements shown of larger ones

absl::Status Bad(absl::string_view what, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", message));
}

// The element that `text` spells, if the dtype holds it.
bool Fits(DType dtype, absl::string_view text, Scalar& value) {
  if (dtype == DType::kBool) {
    bool b = false;
    if (!absl::SimpleAtob(text, &b)) return false;
    value = Scalar::Int(dtype, b ? 1 : 0);
    return true;
  }
  if (IsFloat(dtype)) {
    double d = 0;
    if (!absl::SimpleAtod(text, &d)) return false;
    value = Scalar::Float(dtype, d);
    return true;
  }
  if (dtype == DType::kU64) {
    uint64_t u = 0;
    if (!absl::SimpleAtoi(text, &u)) return false;
    value = Scalar::Int(dtype, static_cast<int64_t>(u));
    return true;
  }
  int64_t i = 0;
  if (!absl::SimpleAtoi(text, &i)) return false;
  value = Scalar::Int(dtype, i);
  return value.i() == i;
}

absl::StatusOr<HostTensor> FromList(absl::string_view what, const std::string& text, const TensorType& type,
                                    std::optional<int64_t> steps) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  const auto count = static_cast<int64_t>(parts.size());
  TensorType full = type;
  const bool each = steps.has_value() && *steps != 1 && count == *steps * type.elements();
  if (each) full.dims.insert(full.dims.begin(), *steps);
  const int64_t n = full.elements();
  if (count != 1 && count != n) {
    std::string counts = "an .npy file or one number";
    if (type.elements() != 1) absl::StrAppend(&counts, ", or ", type.elements(), " numbers");
    if (steps.has_value() && *steps != 1) absl::StrAppend(&counts, ", or ", *steps * type.elements(), " for the steps");
    return Bad(what, absl::StrCat(count, " numbers for ", ToString(type), ", expected ", counts));
  }
  HostTensor t = HostTensor::Zeros(full);
  std::vector<Scalar> values;
  for (absl::string_view part : parts) {
    Scalar value;
    if (!Fits(type.dtype, part, value)) {
      return Bad(what, absl::StrCat("'", part, "' is no ", Name(type.dtype), " and no .npy file"));
    }
    values.push_back(value);
  }
  for (int64_t i = 0; i < n; ++i) t.set(i, values[count == 1 ? 0 : static_cast<size_t>(i)]);
  return t;
}

// Nested brackets of the elements from `first` on; axis by axis.
void AppendElements(const HostTensor& t, int axis, int64_t& next, std::string& out) {
  if (axis == t.type.rank()) {
    absl::StrAppend(&out, ToString(t.at(next++)));
    return;
  }
  absl::StrAppend(&out, "[");
  for (int64_t i = 0; i < t.type.dims[axis]; ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ");
    AppendElements(t, axis + 1, next, out);
  }
  absl::StrAppend(&out, "]");
}

}  // namespace

absl::StatusOr<HostTensor> TensorOf(absl::string_view what, const std::string& value, const TensorType& type,
                                    std::optional<int64_t> steps) {
  if (!absl::EndsWith(value, ".npy")) return FromList(what, value, type, steps);
  absl::StatusOr<HostTensor> t = ReadNpy(value);
  if (t.ok() && type.dtype == DType::kBF16 && t->type.dtype == DType::kU16) t->type.dtype = DType::kBF16;
  if (!t.ok()) return absl::Status(t.status().code(), absl::StrCat(what, ": ", t.status().message()));
  TensorType each = type;
  if (steps.has_value()) each.dims.insert(each.dims.begin(), *steps);
  if (t->type == type || t->type == each) return t;
  return Bad(what, absl::StrCat(value, " holds ", ToString(t->type), ", expected ", ToString(type),
                                steps.has_value() ? absl::StrCat(" or ", ToString(each)) : ""));
}

std::string TensorText(absl::string_view name, const HostTensor& t) {
  const int64_t n = t.type.elements();
  std::string out = absl::StrCat(name, ": ", ToString(t.type), " = ");
  if (n <= kPrinted) {
    int64_t next = 0;
    AppendElements(t, 0, next, out);
    return out;
  }
  for (int64_t i = 0; i < kStart; ++i) absl::StrAppend(&out, i == 0 ? "[" : ", ", ToString(t.at(i)));
  int64_t least = 0, most = 0;
  for (int64_t i = 1; i < n; ++i) {
    const double v = t.at(i).AsDouble();
    if (v < t.at(least).AsDouble()) least = i;
    if (v > t.at(most).AsDouble()) most = i;
  }
  absl::StrAppend(&out, ", ...] (least ", ToString(t.at(least)), ", greatest ", ToString(t.at(most)), ")");
  return out;
}

Json TensorJson(const HostTensor& t) {
  std::vector<Json> items;
  for (int64_t i = 0; i < t.type.elements(); ++i) {
    const Scalar s = t.at(i);
    items.push_back(s.dtype == DType::kBool  ? Json::Of(s.i() != 0)
                    : s.dtype == DType::kU64 ? Json::Of(s.bits)
                    : IsFloat(s.dtype)       ? Json::Of(s.f())
                                             : Json::Of(s.i()));
  }
  return Json::List(items);
}

std::string ElementText(const TensorType& type, int64_t element) {
  std::vector<int64_t> index(type.dims.size());
  for (int axis = type.rank() - 1; axis >= 0; --axis) {
    index[axis] = element % type.dims[axis];
    element /= type.dims[axis];
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

TensorType TypeOf(const rt::Signature& s) { return {static_cast<DType>(s.dtype), Dims(s.dims.begin(), s.dims.end())}; }

TensorType TypeOf(const rt::State& s) { return {static_cast<DType>(s.dtype), Dims(s.dims.begin(), s.dims.end())}; }

HostTensor TensorOf(rt::Value value) {
  return {{static_cast<DType>(value.dtype), Dims(value.dims.begin(), value.dims.end())}, std::move(value.bytes)};
}

absl::Status NoSuch(absl::string_view what, const std::string& name, absl::string_view where,
                    const std::vector<std::string>& names) {
  return absl::InvalidArgumentError(absl::StrCat(where, " has no ", what, " ", name, "; it has ",
                                                 names.empty() ? "none" : absl::StrJoin(names, ", ")));
}

}  // namespace agc::tool
