// Products of two tensors summed over shared axes. Every value is a sum of products with one factor per operand,
// widened to the dtype that sums are kept in; a guard stands around the one factor it is about. All rows are linear in
// both operands and closed under differentiation, so every order of gradient works.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- matrix products

Expr Factor(At& s, int operand, Index index) { return Cast(s.Read(operand, index), AccumulatorOf(s.out().dtype)); }

// The product of the last two axes; the leading ones are equal.
absl::StatusOr<Types> ProductType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  const Dims &a = call.type(0).dims, &b = call.type(1).dims;
  const size_t rank = a.size();
  if (a[rank - 1] != b[rank - 2]) {
    return call.Error(absl::StrCat("inner dimensions differ (", a[rank - 1], " and ", b[rank - 2], ")"));
  }
  Dims out = a;
  out[rank - 1] = b[rank - 1];
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", call.type(0).dtype, out));
  return Types(TensorType{call.type(0).dtype, out});
}

absl::StatusOr<Types> MatmulType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 2));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, 2));
  return ProductType(call);
}

absl::StatusOr<Types> BatchMatmulType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, call.type(0).rank()));
  const Dims &a = call.type(0).dims, &b = call.type(1).dims;
  if (!std::equal(a.begin(), a.end() - 2, b.begin())) {
    return call.Error(
        absl::StrCat("leading dimensions differ (", ToString(call.type(0)), " and ", ToString(call.type(1)), ")"));
  }
  return ProductType(call);
}

Expr ProductAt(At& s, Index i) {
  const size_t rank = i.size();
  return s.Sum(s.dim(0, static_cast<int>(rank) - 1), [&](Expr k) {
    absl::InlinedVector<Expr, 4> left(i.begin(), i.end()), right(i.begin(), i.end());
    left[rank - 1] = k;
    right[rank - 2] = k;
    const Expr a = Factor(s, 0, left), b = Factor(s, 1, right);  // reads in one order with every compiler
    return a * b;
  });
}

void ProductVjp(Vjp& s) {
  s.dx[0] = Matmul(s.g, T(s.x[1]));
  s.dx[1] = Matmul(T(s.x[0]), s.g);
}

// ---------------------------------------------------------------- convolution

// The read of `operand`, 0 outside.
Expr GuardedFactor(At& s, const WindowPlace& y, const WindowPlace& x, int operand, Index index) {
  const Expr read = s.Guard(
      And(y.inside, x.inside), [&] { return s.Read(operand, index); }, s.Number(0));
  return Cast(read, AccumulatorOf(s.out().dtype));
}

// The type of conv2d of an input of shape `x` with a weight of shape `w`.
absl::StatusOr<TensorType> Convolved(const OpCall& call, const Dims& x, const Dims& w) {
  AGC_ASSIGN_OR_RETURN(const Window2d window, CheckedWindow(call, {w[2], w[3]}));
  if (x[1] != w[1]) {
    return call.Error(absl::StrCat("the input has ", x[1], " channels and the weight takes ", w[1]));
  }
  AGC_ASSIGN_OR_RETURN(const Extents2d out, WindowedExtents(call, window, {x[2], x[3]}));
  const TensorType type{call.type(0).dtype, {x[0], w[0], out[0], out[1]}};
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return type;
}

absl::Status CheckOperands(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 4));
  return CheckRank(call, 1, 4);
}

absl::StatusOr<Types> Conv2dType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckOperands(call));
  AGC_ASSIGN_OR_RETURN(const TensorType type, Convolved(call, call.type(0).dims, call.type(1).dims));
  return Types(type);
}

// The gradient operand must have the shape that conv2d gives.
absl::StatusOr<Types> GradType(const OpCall& call, absl::string_view attr, const TensorType& g, const Dims& x,
                               const Dims& w) {
  AGC_ASSIGN_OR_RETURN(const TensorType expected, Convolved(call, x, w));
  if (g != expected) {
    return call.Error(absl::StrCat("the gradient is ", ToString(g), ", but a convolution with ", attr, " = ",
                                   ToString(call.ints(attr)), " gives ", ToString(expected)));
  }
  return Types(TensorType{g.dtype, call.ints(attr)});
}

absl::StatusOr<Types> InputGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckOperands(call));
  AGC_RETURN_IF_ERROR(CheckInts(call, "input", 4, 0));
  AGC_RETURN_IF_ERROR(CheckDims(call, "input", call.type(0).dtype, call.ints("input")));
  return GradType(call, "input", call.type(0), call.ints("input"), call.type(1).dims);
}

absl::StatusOr<Types> WeightGradType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckOperands(call));
  AGC_RETURN_IF_ERROR(CheckInts(call, "weight", 4, 0));
  AGC_RETURN_IF_ERROR(CheckDims(call, "weight", call.type(0).dtype, call.ints("weight")));
  return GradType(call, "weight", call.type(1), call.type(0).dims, call.ints("weight"));
}

Expr Conv2dAt(At& s, Index i) {
  const Window2d window = WindowOf(s, {s.dim(1, 2), s.dim(1, 3)});
  return s.Sum({s.dim(1, 1), s.dim(1, 2), s.dim(1, 3)}, [&](Index k) {
    const WindowPlace y = InputAt(window, 0, i[2], k[1], s.dim(0, 2)), x = InputAt(window, 1, i[3], k[2], s.dim(0, 3));
    const Expr a = GuardedFactor(s, y, x, 0, {i[0], k[0], y.index, x.index}),
               b = Factor(s, 1, {i[1], k[0], k[1], k[2]});
    return a * b;
  });
}

Expr InputGradAt(At& s, Index i) {
  const Window2d window = WindowOf(s, {s.dim(1, 2), s.dim(1, 3)});
  return s.Sum({s.dim(1, 0), s.dim(1, 2), s.dim(1, 3)}, [&](Index k) {
    const WindowPlace y = OutputAt(window, 0, i[2], k[1], s.dim(0, 2)),
                      x = OutputAt(window, 1, i[3], k[2], s.dim(0, 3));
    const Expr a = GuardedFactor(s, y, x, 0, {i[0], k[0], y.index, x.index}),
               b = Factor(s, 1, {k[0], i[1], k[1], k[2]});
    return a * b;
  });
}

Expr WeightGradAt(At& s, Index i) {
  const Window2d window = WindowOf(s, {s.out().dims[2], s.out().dims[3]});
  return s.Sum({s.dim(1, 0), s.dim(1, 2), s.dim(1, 3)}, [&](Index k) {
    const WindowPlace y = InputAt(window, 0, k[1], i[2], s.dim(0, 2)), x = InputAt(window, 1, k[2], i[3], s.dim(0, 3));
    const Expr a = GuardedFactor(s, y, x, 0, {k[0], i[1], y.index, x.index}),
               b = Factor(s, 1, {k[0], i[0], k[1], k[2]});
    return a * b;
  });
}

Conv2dOptions Options(const AttrReader& a) { return {.stride = a.ints("stride"), .pad = a.ints("pad")}; }

void Conv2dVjp(Vjp& s) {
  s.dx[0] = Conv2dInputGrad(s.g, s.x[1], s.x[0].dims(), Options(s));
  s.dx[1] = Conv2dWeightGrad(s.x[0], s.g, s.x[1].dims(), Options(s));
}
void InputGradVjp(Vjp& s) {
  s.dx[0] = Conv2d(s.g, s.x[1], Options(s));
  s.dx[1] = Conv2dWeightGrad(s.g, s.x[0], s.x[1].dims(), Options(s));
}
void WeightGradVjp(Vjp& s) {
  s.dx[0] = Conv2dInputGrad(s.x[1], s.g, s.x[0].dims(), Options(s));
  s.dx[1] = Conv2d(s.x[0], s.g, Options(s));
}

constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "batch_matmul", .cls = OpClass::kContract, .arity = 2, .infer = BatchMatmulType, .at = ProductAt, .vjp = ProductVjp,
     .tol = kTolerance, .numpy = "np.matmul(x0, x1)", .sample = {.shapes = {"f32[2,3,4]", "f32[2,4,5]"}},
     .doc = "Matrix products of the last two axes; all axes before them are equal. Rank 3 and more."},
    {.name = "conv2d", .cls = OpClass::kContract, .arity = 2, .attrs = {{"stride", kInts, "[1, 1]"}, {"pad", kInts, "[0, 0, 0, 0]"}},
     .infer = Conv2dType, .at = Conv2dAt, .vjp = Conv2dVjp, .tol = kTolerance, .numpy = "conv2d(x0, x1, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,2,5,6]", "f32[3,2,3,2]"}, .attrs = "stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Cross-correlation of an input [n,c,h,w] with a weight [o,c,kh,kw], without flipping it; pad is top, left, bottom, right, filled with 0."},
    {.name = "conv2d_input_grad", .cls = OpClass::kContract, .arity = 2,
     .attrs = {{"input", kInts}, {"stride", kInts, "[1, 1]"}, {"pad", kInts, "[0, 0, 0, 0]"}},
     .infer = InputGradType, .at = InputGradAt, .vjp = InputGradVjp, .tol = kTolerance,
     .numpy = "conv2d_input_grad(x0, x1, input=input, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,3,3,6]", "f32[3,2,3,2]"}, .attrs = "input = [2, 2, 5, 6], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Gradient of conv2d with respect to its input of shape `input`, from the gradient of its result and the weight; a transposed convolution."},
    {.name = "conv2d_weight_grad", .cls = OpClass::kContract, .arity = 2,
     .attrs = {{"weight", kInts}, {"stride", kInts, "[1, 1]"}, {"pad", kInts, "[0, 0, 0, 0]"}},
     .infer = WeightGradType, .at = WeightGradAt, .vjp = WeightGradVjp, .tol = kTolerance,
     .numpy = "conv2d_weight_grad(x0, x1, weight=weight, stride=stride, pad=pad)",
     .sample = {.shapes = {"f32[2,2,5,6]", "f32[2,3,3,6]"}, .attrs = "weight = [3, 2, 3, 2], stride = [2, 1], pad = [1, 0, 1, 1]"},
     .doc = "Gradient of conv2d with respect to its weight of shape `weight`, from the input and the gradient of its result."},
    {.name = "matmul", .cls = OpClass::kContract, .arity = 2, .infer = MatmulType, .at = ProductAt, .vjp = ProductVjp,
     .tol = kTolerance, .numpy = "np.matmul(x0, x1)", .sample = {.shapes = {"f32[3,4]", "f32[4,5]"}},
     .doc = "Matrix product [m,k] x [k,n]; f16 and bf16 are summed in f32, narrow integers in i32."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kContractOps(kOps);

// ---------------------------------------------------------------- functions

namespace {
// numpy's rule: a vector is a row on the left and a column on the right, and that axis goes again.
Value VectorProduct(Value a, Value b, Loc loc) {
  const bool row = a.rank() == 1, column = b.rank() == 1;
  const Value y = Matmul(row ? Reshape(a, {1, a.dim(0)}, loc) : a, column ? Reshape(b, {b.dim(0), 1}, loc) : b, loc);
  Ints shape = y.dims();
  if (!y.valid()) return y;
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return Reshape(y, shape, loc);
}
}  // namespace

Value Matmul(Value a, Value b, Loc loc) {
  if (a.valid() && b.valid() && std::min(a.rank(), b.rank()) == 1) return VectorProduct(a, b, loc);
  if (!a.valid() || !b.valid() || (a.rank() <= 2 && b.rank() <= 2)) return Emit("matmul", {a, b}, {}, loc);
  if (b.rank() == 2) {  // one product over all leading axes
    Ints shape = a.dims();
    int64_t rows = 1;
    for (size_t k = 0; k + 1 < shape.size(); ++k) rows *= shape[k];
    const Value flat = Emit("matmul", {Reshape(a, {rows, a.dim(-1)}, loc), b}, {}, loc);
    shape.back() = b.dim(-1);
    return Reshape(flat, shape, loc);
  }
  Dims leading_a = a.dims(), leading_b = b.dims(), leading;
  leading_a.resize(std::max(a.rank() - 2, 0));
  leading_b.resize(b.rank() - 2);
  if (a.rank() >= 2 && leading_a != leading_b && CommonDims(leading_a, leading_b, leading)) {
    const auto with_leading = [&](Value v) {
      Ints shape = leading;
      shape.push_back(v.dim(-2));
      shape.push_back(v.dim(-1));
      return v.dims() == shape ? v : Broadcast(v, shape, loc);
    };
    a = with_leading(a);
    b = with_leading(b);
  }
  return Emit("batch_matmul", {a, b}, {}, loc);
}

Value Conv2d(Value x, Value w, Conv2dOptions options, Loc loc) {
  return Emit("conv2d", {x, w}, {Attr{"stride", options.stride}, Attr{"pad", options.pad}}, loc);
}

Value Conv2dInputGrad(Value g, Value w, Ints input, Conv2dOptions options, Loc loc) {
  return Emit("conv2d_input_grad", {g, w},
              {Attr{"input", input}, Attr{"stride", options.stride}, Attr{"pad", options.pad}}, loc);
}

Value Conv2dWeightGrad(Value x, Value g, Ints weight, Conv2dOptions options, Loc loc) {
  return Emit("conv2d_weight_grad", {x, g},
              {Attr{"weight", weight}, Attr{"stride", options.stride}, Attr{"pad", options.pad}}, loc);
}

}  // namespace agc
