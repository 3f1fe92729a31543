#include "ir/ops/infer.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/base/status.h"
#include "ir/build.h"

namespace agc {
namespace {

std::string Operand(const OpCall& call, int i) { return absl::StrCat("operand ", i, " is ", ToString(call.type(i))); }

// `holds` of the dtype, else an error that names what was expected.
absl::Status CheckClass(const OpCall& call, int i, bool holds, absl::string_view expected) {
  if (holds) return absl::OkStatus();
  return call.Error(absl::StrCat(Operand(call, i), ", expected ", expected, "; cast it first"));
}

absl::StatusOr<Types> Same(const OpCall& call, absl::Status (*check)(const OpCall&, int)) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  AGC_RETURN_IF_ERROR(check(call, 0));
  return Types(call.type(0));
}

absl::Status CheckBool(const OpCall& call, int i) { return CheckDType(call, i, DType::kBool); }

}  // namespace

absl::StatusOr<Types> SameTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  return Types(call.type(0));
}
absl::StatusOr<Types> SameNumber(const OpCall& call) { return Same(call, CheckNumber); }
absl::StatusOr<Types> SameFloat(const OpCall& call) { return Same(call, CheckFloat); }
absl::StatusOr<Types> SameInt(const OpCall& call) { return Same(call, CheckInt); }
absl::StatusOr<Types> SameBool(const OpCall& call) { return Same(call, CheckBool); }
absl::StatusOr<Types> CompareTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  return Types(TensorType{DType::kBool, call.type(0).dims});
}

absl::StatusOr<Types> FloatClassTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return CompareTypes(call);
}

absl::Status CheckSameDType(const OpCall& call) {
  for (int i = 1; i < call.arity(); ++i) {
    if (call.type(i).dtype != call.type(0).dtype) {
      return call.Error(
          absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(i)), ", cast one of them"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSame(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  for (int i = 1; i < call.arity(); ++i) {
    if (call.type(i) != call.type(0)) {
      return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), " and ", ToString(call.type(i)),
                                     ", broadcast one of them"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFloat(const OpCall& call, int i) {
  return CheckClass(call, i, IsFloat(call.type(i).dtype), "a float type");
}
absl::Status CheckInt(const OpCall& call, int i) {
  return CheckClass(call, i, IsInt(call.type(i).dtype), "an integer type");
}
absl::Status CheckNumber(const OpCall& call, int i) {
  return CheckClass(call, i, call.type(i).dtype != DType::kBool, "a number type");
}
absl::Status CheckDType(const OpCall& call, int i, DType dtype) {
  return CheckClass(call, i, call.type(i).dtype == dtype, Name(dtype));
}

absl::Status CheckRank(const OpCall& call, int i, int rank) {
  if (call.type(i).rank() == rank) return absl::OkStatus();
  return call.Error(absl::StrCat(Operand(call, i), ", expected rank ", rank));
}

absl::Status CheckMinRank(const OpCall& call, int i, int rank) {
  if (call.type(i).rank() >= rank) return absl::OkStatus();
  return call.Error(absl::StrCat(Operand(call, i), ", expected rank ", rank, " or more"));
}

absl::Status CheckAxis(const OpCall& call, absl::string_view attr, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return absl::OkStatus();
  if (rank == 0) return call.Error(absl::StrCat(attr, " is ", axis, ", but a scalar has no axes"));
  return call.Error(absl::StrCat(attr, " is ", axis, ", expected ", -rank, " to ", rank - 1));
}

absl::Status CheckAxes(const OpCall& call, absl::string_view attr, const Ints& axes, int rank) {
  for (int64_t axis : axes) AGC_RETURN_IF_ERROR(CheckAxis(call, attr, axis, rank));
  if (axes.empty()) return absl::OkStatus();
  const Ints sorted = PositiveAxes(axes, rank);
  const auto* twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return absl::OkStatus();
  return call.Error(absl::StrCat(attr, " = ", ToString(axes), " names axis ", *twice, " twice"));
}

absl::Status CheckInts(const OpCall& call, absl::string_view attr, int count, int64_t least) {
  const Ints& ints = call.ints(attr);
  if (static_cast<int>(ints.size()) != count) {
    return call.Error(absl::StrCat(attr, " = ", ToString(ints), " has ", ints.size(), " numbers, expected ", count));
  }
  for (size_t i = 0; i < ints.size(); ++i) {
    if (ints[i] < least)
      return call.Error(absl::StrCat(attr, "[", i, "] is ", ints[i], ", expected ", least, " or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckDims(const OpCall& call, absl::string_view what, DType dtype, absl::Span<const int64_t> dims) {
  constexpr int64_t kMost = int64_t{1} << 60;
  int64_t bytes = SizeOf(dtype);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return call.Error(absl::StrCat(what, "[", i, "] is ", dims[i], ", expected 0 or more"));
    if (dims[i] > kMost / std::max<int64_t>(bytes, 1)) {
      return call.Error(absl::StrCat(what, " = ", ToString(dims), " is too large"));
    }
    bytes = std::max<int64_t>(bytes * dims[i], 1);  // a 0 further on must not hide an overflow of strides
  }
  return absl::OkStatus();
}

bool IsValueOf(DType dtype, double value) { return IsFloat(dtype) || Scalar::Of(dtype, value).AsDouble() == value; }

absl::Status CheckValueOf(const OpCall& call, absl::string_view what, double value, DType dtype) {
  if (IsValueOf(dtype, value)) return absl::OkStatus();
  return call.Error(absl::StrCat(what, " ", value, " is not a value of ", Name(dtype)));
}

absl::Status CheckPositionCount(const OpCall& call, absl::Span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t n : dims) count *= n;
  if (count <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
  return call.Error(absl::StrCat(ToString(dims), " are ", count, " positions, too many for i32"));
}

std::string ToString(absl::Span<const int64_t> ints) { return absl::StrCat("[", absl::StrJoin(ints, ", "), "]"); }

Ints PositiveAxes(const Ints& axes, int rank) {
  Ints out;
  for (int64_t axis : axes) out.push_back(PositiveAxis(axis, rank));
  for (int64_t axis = 0; axes.empty() && axis < rank; ++axis) out.push_back(axis);
  std::sort(out.begin(), out.end());
  return out;
}

Dims ReducedDims(const Dims& dims, const Ints& axes, bool keep_dims) {
  Dims out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end();
    if (!reduced) out.push_back(dims[i]);
    if (reduced && keep_dims) out.push_back(1);
  }
  return out;
}

bool CommonDims(const Dims& a, const Dims& b, Dims& out) {
  const size_t rank = std::max(a.size(), b.size());
  out.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

bool HasAxis(Value x, int64_t axis) { return axis >= -x.rank() && axis < x.rank(); }

void NoGradient(Vjp&) {}

Value PartOf(Value x, int64_t axis, int64_t begin, int64_t end, Loc loc) {
  Ints start(x.rank(), 0), limit = x.dims();
  start[axis] = begin;
  limit[axis] = end;
  return Slice(x, start, limit, {}, loc);
}

Value Wide(Value x) { return CastTo(x, AccumulatorOf(x.dtype())); }

// The select is on d, not on the product: the derivative with respect to g stays d wherever d is finite, also at g = 0.
Value SafeMul(Value g, Value d, Loc loc) {
  const Value finite = Less(Abs(d, loc), FullLike(d, std::numeric_limits<double>::infinity(), loc), loc);
  const Value live = LogicalOr(NotEqual(g, FullLike(g, 0, loc), loc), finite, loc);
  return Mul(g, Where(live, d, FullLike(d, 0, loc), loc), loc);
}

Value SafeDiv(Value g, Value d, Loc loc) {
  const Value regular = Greater(Abs(d, loc), FullLike(d, 0, loc), loc);
  const Value live = LogicalOr(NotEqual(g, FullLike(g, 0, loc), loc), regular, loc);
  return DivOf(g, Where(live, d, FullLike(d, 1, loc), loc), loc);
}

}  // namespace agc
