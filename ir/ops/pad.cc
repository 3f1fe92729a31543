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
  const double value = call.number("value");
  if (!IsFloat(x.dtype) && Scalar::Of(x.dtype, value).AsDouble() != value) {
    return call.Error(absl::StrCat("value ", value, " is not a value of ", Name(x.dtype)));
  }
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

// Positions begin..end-1 along an axis, counted from its first element, that read elements from `source` on in steps of
// 1, -1 or 0.
struct Run {
  int64_t begin = 0, end = 0, source = 0;
  int step = 0;
};
std::vector<Run> RunsOf(absl::string_view mode, int64_t n, int64_t low, int64_t high) {
  std::vector<Run> runs;
  for (int64_t p = -low; p < n + high;) {
    Run run{.begin = p, .end = n + high};
    if (mode == "edge" || n == 1) {
      run.source = std::clamp<int64_t>(p, 0, n - 1);
      run.step = p >= 0 && p < n ? 1 : 0;
      if (p < n) run.end = std::min(run.end, p < 0 ? 0 : n);
    } else {
      const int64_t length = mode == "wrap" ? n : n - 1, turn = (p - (p < 0 ? length - 1 : 0)) / length;
      const bool back = mode == "reflect" && turn % 2 != 0;
      run.step = back ? -1 : 1;
      run.source = back ? n - 1 - (p - turn * length) : p - turn * length;
      run.end = std::min(run.end, (turn + 1) * length);
    }
    runs.push_back(run);
    p = run.end;
  }
  return runs;
}

// The cotangent of an operand that is padded along one axis.
Value Unpad(Value g, absl::string_view mode, int axis, int64_t n, int64_t low, int64_t high) {
  Value sum;
  for (const Run& run : RunsOf(mode, n, low, high)) {
    Ints start(g.rank(), 0), limit = g.dims(), before(g.rank(), 0), after(g.rank(), 0);
    start[axis] = run.begin + low;
    limit[axis] = run.end + low;
    Value part = Slice(g, start, limit, {});
    if (run.step == 0) part = ReduceSum(part, {axis}, true);
    if (run.step < 0) part = Flip(part, {axis});
    const int64_t length = part.dim(axis);
    before[axis] = run.step < 0 ? run.source - length + 1 : run.source;
    after[axis] = n - before[axis] - length;
    part = Pad(part, 0, before, after);
    sum = sum.valid() ? sum + part : part;
  }
  return sum;
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
