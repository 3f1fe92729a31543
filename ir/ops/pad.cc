// pad: every output element reads one input element, or none. The gradient of the modes that read elements several
// times adds up runs of outputs that read neighbouring elements.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using Point = absl::InlinedVector<Expr, 6>;

absl::Status CheckPadding(const OpCall& call, int axis, int64_t low, int64_t high) {
  constexpr int64_t kMost = int64_t{1} << 60;
  if (std::max(low, high) > kMost || std::min(low, high) < -kMost) {
    return call.Error(absl::StrCat("padding of ", low, " and ", high, " is too large"));
  }
  const TensorType& x = call.type(0);
  if (low + x.dims[axis] + high < 0) {
    return call.Error(absl::StrCat("axis ", axis, " of ", ToString(x), " is padded by ", low, " and ", high,
                                   ", which leaves less than nothing"));
  }
  if (x.dims[axis] == 0 && low + high > 0 && call.text("mode") != "constant") {
    return call.Error(absl::StrCat("axis ", axis, " of ", ToString(x), " is empty, there is nothing to pad it with"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> PadTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckInts(call, "low", x.rank(), INT64_MIN));
  AGC_RETURN_IF_ERROR(CheckInts(call, "high", x.rank(), INT64_MIN));
  AGC_RETURN_IF_ERROR(CheckValueOf(call, "value", call.number("value"), x.dtype));
  Dims dims;
  for (int k = 0; k < x.rank(); ++k) {
    const int64_t low = call.ints("low")[k], high = call.ints("high")[k];
    AGC_RETURN_IF_ERROR(CheckPadding(call, k, low, high));
    dims.push_back(low + x.dims[k] + high);
  }
  AGC_RETURN_IF_ERROR(CheckDims(call, "padded shape", x.dtype, dims));
  return Types(TensorType{x.dtype, dims});
}

// The element that position p reads along an axis of n elements, p counted from its first one.
Expr SourceOf(absl::string_view mode, Expr p, int64_t n, int64_t low) {
  const auto inside = [&](Expr e) { return Max(Min(e, n - 1), 0); };
  if (mode == "edge" || n == 1) return inside(p);
  const int64_t period = mode == "wrap" ? n : 2 * (n - 1);
  const int64_t lift = low > 0 ? (low + period - 1) / period * period : 0;  // no negative dividends
  const Expr m = Mod(p + lift, period);
  return mode == "wrap" ? m : inside(m - Max(m * 2 - period, 0));
}

Expr PadAt(At& s, Index i) {
  const std::string& mode = s.text("mode");
  if (s.type(0).elements() == 0) return s.Number(s.number("value"));
  const Ints &low = s.ints("low"), &high = s.ints("high");
  Point point;
  Expr inside = s.pool.Bool(true);
  for (size_t k = 0; k < low.size(); ++k) {
    const int64_t n = s.dim(0, static_cast<int>(k));
    const Expr p = i[k] - low[k];
    const bool within = low[k] <= 0 && high[k] <= 0;
    point.push_back(mode == "constant" || within ? p : SourceOf(mode, p, n, low[k]));
    if (mode == "constant") inside = And(inside, InRange(p, n));
  }
  return s.Guard(
      inside, [&] { return s.Read(0, point); }, s.Number(s.number("value")));
}

// Positions [begin, end) of `axis`, which starts at position `from`; summed up if `joined`, they stand at `at` of n.
Value Placed(Value g, int axis, int64_t from, int64_t begin, int64_t end, bool joined, int64_t at, int64_t n) {
  if (begin >= end) return {};
  Ints start(g.rank(), 0), limit = g.dims(), before(g.rank(), 0), after(g.rank(), 0);
  start[axis] = begin - from;
  limit[axis] = end - from;
  Value part = Slice(g, start, limit, {});
  if (joined) part = ReduceSum(part, {axis}, true);
  before[axis] = at;
  after[axis] = n - at - part.dim(axis);
  return Pad(part, 0, before, after);
}

// What lies beyond an end was read from the element there.
Value UnpadEdge(Value g, int axis, int64_t n, int64_t low, int64_t high) {
  const int64_t from = -low, to = n + high, first = std::clamp<int64_t>(from, 0, n);
  Value sum;
  for (const Value part : {Placed(g, axis, from, from, std::min<int64_t>(to, 0), true, 0, n),
                           Placed(g, axis, from, first, std::clamp<int64_t>(to, 0, n), false, first, n),
                           Placed(g, axis, from, std::max(from, n), to, true, n - 1, n)}) {
    if (part.valid()) sum = sum.valid() ? sum + part : part;
  }
  return sum;
}

// Elements are read again after each period: with zeros up to whole periods these are the rows of a matrix, whose
// columns are summed. In mode reflect the second half of a period goes back over the elements between the ends.
Value UnpadPeriods(Value g, absl::string_view mode, int axis, int64_t n, int64_t low) {
  const int64_t period = mode == "wrap" ? n : 2 * (n - 1), lead = ((-low) % period + period) % period;
  Ints before(g.rank(), 0), after(g.rank(), 0), shape = g.dims();
  before[axis] = lead;
  after[axis] = (period - (lead + g.dim(axis)) % period) % period;
  shape[axis] = (lead + g.dim(axis) + after[axis]) / period;
  shape.insert(shape.begin() + axis + 1, period);
  const Value sum = ReduceSum(Reshape(Pad(g, 0, before, after), shape), {axis});
  if (period == n) return sum;
  const Value back = Placed(sum, axis, 0, n, period, false, 0, period - n);
  const Value ahead = Placed(sum, axis, 0, 0, n, false, 0, n);
  if (!back.valid()) return ahead;
  Ints inner(g.rank(), 0);
  inner[axis] = 1;
  return ahead + Pad(Flip(back, {axis}), 0, inner, inner);
}

// The cotangent of an operand that is padded along one axis.
Value Unpad(Value g, absl::string_view mode, int axis, int64_t n, int64_t low, int64_t high) {
  if (mode == "edge" || n == 1) return UnpadEdge(g, axis, n, low, high);
  return UnpadPeriods(g, mode, axis, n, low);
}

void PadVjp(Vjp& s) {
  const Dims dims = s.x[0].dims();
  const std::string mode = s.text("mode");
  Ints low = s.ints("low"), high = s.ints("high");
  if (s.x[0].type().elements() == 0 || s.g.type().elements() == 0) {
    s.dx[0] = FullLike(s.x[0], 0);
    return;
  }
  s.dx[0] = s.g;
  for (int k = 0; k < static_cast<int>(dims.size()) && mode != "constant"; ++k) {
    if (low[k] > 0 || high[k] > 0) {
      s.dx[0] = Unpad(s.dx[0], mode, k, dims[k], low[k], high[k]);
      low[k] = high[k] = 0;
    }
  }
  for (Ints* side : {&low, &high}) {
    for (int64_t& v : *side) v = -v;
  }
  s.dx[0] = Pad(s.dx[0], 0, low, high);
}

using A = AttrKind;

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "pad", .cls = OpClass::kView, .arity = 1,
     .attrs = {{"low", A::kInts}, {"high", A::kInts}, {"value", A::kFloat, "0"}, {"mode", A::kString, "constant", "constant|reflect|edge|wrap"}},
     .infer = PadTypes, .at = PadAt, .vjp = PadVjp, .numpy = "pad(x0, low, high, value, mode)",
     .sample = {.shapes = {"f32[2,3]"}, .attrs = "low = [1, 0], high = [0, 2], value = 0.5"},
     .doc = "Adds elements before and after each axis: one value, or in mode reflect, edge or wrap elements of the operand, as numpy does. A negative number crops."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kPadOps(kOps);

Value Pad(Value x, PadMode mode, Ints low, Ints high, Loc loc) {
  constexpr const char* kModes[] = {"reflect", "edge", "wrap"};
  return Emit("pad", {x},
              {Attr{"low", low}, Attr{"high", high}, Attr{"mode", std::string(kModes[static_cast<int>(mode)])}}, loc);
}

}  // namespace agc
