// Values that come from attributes and shapes.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 31;

// One of several attributes holds the value.
void ConstantOp(Call& c) {
  if (c.has_attr("sparse_value")) return void(c.Fail("sparse_value: sparse tensors are not supported, make it dense"));
  if (c.has_attr("value_string") || c.has_attr("value_strings")) return void(c.Fail("strings are not supported"));
  if (const AttributeProto* a = c.attr("value", AttributeProto::kTensor); a != nullptr)
    return c.out(c.Tensor(a->tensors[0]));
  HostTensor t;
  if (c.has_attr("value_int")) {
    t = HostTensor::Zeros({DType::kI64, {}});
    t.set(0, Scalar::Int(DType::kI64, c.integer("value_int")));
  } else if (c.has_attr("value_float")) {
    t = HostTensor::Zeros({DType::kF32, {}});
    t.set(0, Scalar::Float(DType::kF32, c.number("value_float")));
  } else if (c.has_attr("value_ints")) {
    return c.out(c.Constant(DType::kI64, c.ints("value_ints")));
  } else if (c.has_attr("value_floats")) {
    const std::vector<double> values = c.numbers("value_floats");
    t = HostTensor::Zeros({DType::kF32, {static_cast<int64_t>(values.size())}});
    for (size_t k = 0; k < values.size(); ++k) t.set(static_cast<int64_t>(k), Scalar::Float(DType::kF32, values[k]));
  } else {
    return void(c.Fail("it has no value"));
  }
  c.out(c.Constant(t));
}

// A shape that is given as a value: no extent is negative, and there are no more than 2^31 elements.
Dims ShapeOf(Call& c, const Ints& ints) {
  int64_t n = 1;
  for (const int64_t d : ints) {
    if (d >= 0 && (d == 0 || n <= kMostElements / d)) {
      n *= d;
      continue;
    }
    c.Fail(absl::StrCat("the shape has an extent of ", d, " and more than 2^31 elements in all, or a negative one"));
    return {};
  }
  return Dims(ints.begin(), ints.end());
}

// A splat, f32 0 by default.
void ConstantOfShape(Call& c) {
  const Dims shape = ShapeOf(c, c.ints(0, "shape"));
  const AttributeProto* a = c.attr("value", AttributeProto::kTensor);
  if (!c.ok()) return;
  if (a == nullptr) return c.out(Full(c.builder(), {DType::kF32, shape}, 0));
  const std::optional<HostTensor> value = c.Fold(c.Tensor(a->tensors[0]));
  if (!c.ok()) return;
  if (!value.has_value() || value->type.elements() != 1) return void(c.Fail("attribute value is not one element"));
  auto literal = std::make_shared<Literal>();
  literal->values.push_back(value->at(0));
  c.out(agc::Constant(c.builder(), {value->type.dtype, shape}, std::move(literal)));
}

void ShapeOp(Call& c) {
  const Value x = c.in(0);
  const int64_t rank = x.rank();
  const auto clamp = [&](int64_t k) { return std::min(std::max<int64_t>(k < 0 ? k + rank : k, 0), rank); };
  const int64_t start = clamp(c.integer("start", 0)), end = clamp(c.integer("end", rank));
  if (!c.ok()) return;
  Ints dims;
  for (int64_t k = start; k < end; ++k) dims.push_back(x.dim(static_cast<int>(k)));
  c.out(c.Constant(DType::kI64, dims));
}

void Size(Call& c) {
  const Value x = c.in(0);
  HostTensor t = HostTensor::Zeros({DType::kI64, {}});
  t.set(0, Scalar::Int(DType::kI64, x.type().elements()));
  c.out(c.Constant(t));
}

// start + k delta, below limit. How many there are has to be known, and so all three.
void Range(Call& c) {
  const HostTensor start = c.constant(0, "start"), limit = c.constant(1, "limit"), delta = c.constant(2, "delta");
  if (!c.ok()) return;
  if (start.type.elements() != 1 || limit.type.elements() != 1 || delta.type.elements() != 1) {
    return void(c.Fail("start, limit and delta are single numbers"));
  }
  const double step = delta.at(0).AsDouble();
  if (step == 0) return void(c.Fail("delta is 0"));
  const double count = std::ceil((limit.at(0).AsDouble() - start.at(0).AsDouble()) / step);
  if (!(count <= static_cast<double>(kMostElements))) return void(c.Fail(absl::StrCat(count, " elements")));
  const int64_t n = std::max<int64_t>(0, static_cast<int64_t>(count));
  const DType dtype = start.type.dtype;
  const Value k = Iota(c.builder(), dtype, {n});
  c.out(Add(Mul(k, Reshape(c.in(2), {})), Reshape(c.in(0), {})));
}

void EyeLike(Call& c) {
  const Value x = c.in(0);
  const DType dtype = c.dtype("dtype", x.dtype());
  const int64_t k = c.integer("k", 0);
  if (!c.ok()) return;
  if (x.rank() != 2) return void(c.Fail(absl::StrCat("operand is ", ToString(x.type()), ", expected a matrix")));
  c.out(Eye(c.builder(), dtype, x.dim(0), x.dim(1), k));
}

// Indices may be floats; values are [off, on]. An index that is no class gives a row of off.
void OneHotOp(Call& c) {
  const Value indices = c.in(0), values = c.in(2);
  const HostTensor depth = c.constant(1, "depth");
  const int64_t axis = c.integer("axis", -1);
  if (!c.ok()) return;
  if (depth.type.elements() != 1) return void(c.Fail("depth is not one number"));
  if (values.rank() != 1 || values.dim(0) != 2) return void(c.Fail("values are not [off, on]"));
  const auto n = static_cast<int64_t>(depth.at(0).AsDouble());
  if (n < 1) return void(c.Fail(absl::StrCat("depth is ", n)));
  Value i = IsInt(indices.dtype()) ? indices : CastTo(indices, DType::kI64);
  if (IsUnsigned(i.dtype())) i = CastTo(i, DType::kI64);
  const Value zero = ScalarLike(i, 0, Loc{});
  i = Where(Less(i, zero), Add(i, ScalarLike(i, static_cast<double>(n), Loc{})), i);
  const Value hot = OneHot(i, n, OneHotOptions{.dtype = DType::kBool, .axis = axis, .on = 1, .off = 0});
  const auto part = [&](int64_t k) { return Reshape(Slice(values, {k}, {k + 1}, {1}), {}); };
  c.out(Where(hot, part(1), part(0)));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Constant", 1, ConstantOp}, {"ConstantOfShape", 9, ConstantOfShape}, {"EyeLike", 9, EyeLike}, {"OneHot", 9, OneHotOp},
    {"Range", 11, Range}, {"Shape", 1, ShapeOp}, {"Size", 1, Size},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kDataOps(kRows);

}  // namespace agc::onnx
