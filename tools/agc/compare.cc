#include "tools/agc/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/agc/values.h"

namespace agc::tool {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What sums of a few thousand elements in another order stay within.
Limits DefaultLimits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return {1e-9, 1e-12};
    case DType::kF32:
      return {1e-4, 1e-5};
    case DType::kF16:
      return {1e-2, 1e-3};
    case DType::kBF16:
      return {5e-2, 1e-2};
    default:
      return {0, 0};
  }
}

double ErrorOf(Scalar got, Scalar want) {
  if (got == want) return 0;
  const double a = got.AsDouble(), b = want.AsDouble();
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (IsFloat(got.dtype)) return a == b ? 0 : std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : kInfinity;
  return std::max(std::abs(a - b), 1.0);  // 64-bit integers may differ where their doubles do not
}

}  // namespace

std::vector<Option> LimitTable() {
  return {{"rtol", "R", "relative error that counts as equal; default by dtype, f32: 1e-4"},
          {"atol", "R", "absolute error that counts as equal; default by dtype, f32: 1e-5"}};
}

Limits LimitsOf(const Flags& flags) { return {flags.Number("rtol", -1), flags.Number("atol", -1)}; }

Difference Compare(std::string name, std::string against, const HostTensor& got, const HostTensor& want,
                   const Limits& limits) {
  Difference d{.name = std::move(name), .against = std::move(against), .type = want.type};
  Limits l = DefaultLimits(want.type.dtype);
  if (IsFloat(want.type.dtype)) l = {limits.rtol < 0 ? l.rtol : limits.rtol, limits.atol < 0 ? l.atol : limits.atol};
  double largest = 0;
  for (int64_t i = 0; limits.scale > 0 && i < want.type.elements(); ++i) {
    const double size = std::abs(want.at(i).AsDouble());
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  if (IsFloat(want.type.dtype)) l.atol += limits.scale * largest;
  double worst = -1;
  for (int64_t i = 0; i < want.type.elements(); ++i) {
    const Scalar a = got.at(i), b = want.at(i);
    const double error = ErrorOf(a, b), size = std::abs(b.AsDouble());
    const double allowed = l.atol + (std::isfinite(size) ? l.rtol * size : 0);
    const double score = error == 0 ? 0 : allowed == 0 ? kInfinity : error / allowed;
    d.max_abs = std::max(d.max_abs, error);
    d.max_rel = std::max(d.max_rel, error == 0 ? 0 : size == 0 ? kInfinity : error / size);
    d.equal = d.equal && score <= 1;
    if (score <= worst) continue;
    worst = score;
    d.element = i;
    d.got = a;
    d.want = b;
  }
  return d;
}

std::string DifferenceText(const Difference& d) {
  const std::string head = absl::StrCat(d.equal ? "equal      " : "DIFFERENT  ", d.name, ": ", ToString(d.type),
                                        " and the ", d.against, ": ");
  if (d.type.elements() == 0) return absl::StrCat(head, "no elements");
  if (d.max_abs == 0) return absl::StrCat(head, "no error");
  return absl::StrCat(head, absl::StrFormat("largest error %.3g, relative %.3g", d.max_abs, d.max_rel), "; worst at ",
                      ElementText(d.type, d.element), ": ", ToString(d.got), ", ", d.against, " ", ToString(d.want));
}

Json DifferenceJson(const Difference& d) {
  return Json::Object({{"name", Json::Of(d.name)},
                       {"against", Json::Of(d.against)},
                       {"dtype", Json::Of(Name(d.type.dtype))},
                       {"shape", Json::Of(d.type.dims)},
                       {"equal", Json::Of(d.equal)},
                       {"max_abs_error", Json::Of(d.max_abs)},
                       {"max_rel_error", Json::Of(d.max_rel)}});
}

}  // namespace agc::tool
