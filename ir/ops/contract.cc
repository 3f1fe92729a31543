// Products of two tensors summed over shared axes. Every value is a sum of products with one factor per operand,
// widened to the dtype that sums are kept in. All rows are linear in both operands and closed under differentiation, so
// every order of gradient works.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

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

constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "batch_matmul", .cls = OpClass::kContract, .arity = 2, .infer = BatchMatmulType, .at = ProductAt, .vjp = ProductVjp,
     .tol = kTolerance, .numpy = "np.matmul(x0, x1)", .sample = {.shapes = {"f32[2,3,4]", "f32[2,4,5]"}},
     .doc = "Matrix products of the last two axes; all axes before them are equal. Rank 3 and more."},
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

}  // namespace agc
