#include "ir/ops/nn.h"

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"

namespace agc {

std::vector<Value> WideAll(absl::Span<const Value> xs) {
  std::vector<Value> wide;
  for (Value x : xs) wide.push_back(IsFloat(x.dtype()) ? Wide(x) : x);
  return wide;
}

absl::Status CheckParamDType(const OpCall& call, int i, absl::string_view what) {
  const DType x = call.type(0).dtype, wide = AccumulatorOf(x), have = call.type(i).dtype;
  if (have == x || have == wide) return absl::OkStatus();
  return call.Error(absl::StrCat(what, " is ", ToString(call.type(i)), ", expected ", Name(x),
                                 wide != x ? absl::StrCat(" or ", Name(wide)) : "", "; cast it first"));
}

absl::Status CheckParam(const OpCall& call, int i, absl::string_view what, absl::Span<const int64_t> dims) {
  if (call.type(i).dims != Dims(dims.begin(), dims.end())) {
    return call.Error(absl::StrCat(what, " is ", ToString(call.type(i)), ", expected ",
                                   ToString(TensorType{call.type(0).dtype, {dims.begin(), dims.end()}})));
  }
  return CheckParamDType(call, i, what);
}

absl::Status CheckAtLeastZero(const OpCall& call, absl::string_view attr) {
  const double value = call.number(attr);
  if (value >= 0) return absl::OkStatus();
  return call.Error(absl::StrCat(attr, " is ", value, ", expected 0 or more"));
}

Value AlongAxes(Value x, int rank, const Ints& axes) {
  Ints shape(rank, 1);
  for (size_t k = 0; k < axes.size(); ++k) shape[axes[k]] = x.dim(static_cast<int>(k));
  return Reshape(x, shape);
}

Attr ReductionAttr(Reduction reduction) {
  constexpr absl::string_view kNames[] = {"none", "mean", "sum"};
  return {"reduction", std::string(kNames[static_cast<int>(reduction)])};
}

absl::StatusOr<Types> LossType(const OpCall& call, const TensorType& each) {
  const std::string& reduction = call.text("reduction");
  if (reduction == "none") return Types(each);
  if (reduction != "sum" && each.elements() == 0) {
    return call.Error(absl::StrCat("operands are ", ToString(call.type(0)), ", which has no mean"));
  }
  return Types(TensorType{each.dtype, {}});
}

absl::StatusOr<Types> ElementwiseLoss(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return LossType(call, call.type(0));
}

Value ReduceLoss(Rule& s, Value each) {
  const std::string& reduction = s.text("reduction");
  if (reduction == "mean") each = ReduceMean(each);
  if (reduction == "sum") each = ReduceSum(each);
  return CastTo(each, s.op.type().dtype);
}

Value SpreadLoss(Vjp& s, Dims dims) {
  const std::string& reduction = s.text("reduction");
  const Value g = Wide(s.g);
  if (reduction == "none") return g;
  const double n = static_cast<double>(TensorType{g.dtype(), dims}.elements());
  return Broadcast(reduction == "mean" ? g / n : g, dims);
}

}  // namespace agc
