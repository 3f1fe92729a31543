// Sorting. The order of a row of up to 2,048 elements is found by counting how many elements go before each one
// (`sort_rank`, n^2 comparisons) and turning the ranks around (`invert_permutation`). Longer rows are cut into blocks
// of 1,024 that are sorted so, and neighbouring sorted runs are merged until one is left (`merge_runs`, n*log(n)
// comparisons for each of the log2(n / 1024) rounds). Everything is stable, and NaN counts as larger than every number.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/index.h"
#include "ir/ops/tables.h"
#include "ir/tuple.h"

namespace agc {
namespace {

using enum AttrKind;
using Point = absl::InlinedVector<Expr, 6>;

constexpr int64_t kOneBlock = 2048, kBlock = 1024;

// Whether `a` must go before `b`.
Expr Precedes(At& s, Expr a, Expr b) { return s.flag("descending") ? Before(b, a) : Before(a, b); }

// ---------------------------------------------------------------- ranks

absl::Status CheckRow(const OpCall& call, int operand, absl::string_view block) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, operand, 1));
  if (call.type(operand).dims.back() > INT32_MAX)
    return call.Error(absl::StrCat("rows of ", ToString(call.type(operand)), " are too long for i32"));
  const int64_t size = call.integer(block);
  if (size < 1) return call.Error(absl::StrCat(block, " is ", size, ", expected 1 or more"));
  return absl::OkStatus();
}

absl::StatusOr<Types> SortRankType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckRow(call, 0, "block"));
  return Types(TensorType{DType::kI32, call.type(0).dims});
}

// Element t of the block that position i lies in, and whether the row has it.
struct Place {
  Expr index = {}, inside = {};
};
Place InBlock(At& s, Expr i, Expr t, int64_t n) {
  const int64_t block = std::min(s.integer("block"), n);
  const Expr j = Div(i, block) * block + t;
  return {j, InRange(j, n)};
}

// How many elements of the block go before element i: those that are less, and equals that stand before it.
Expr SortRankAt(At& s, Index i) {
  const int64_t n = s.out().dims.back(), block = std::min(s.integer("block"), n);
  const Expr x = s.Read(0, i), me = FromIndex(i.back(), DType::kI32);
  const auto count = s.Reduce("add", {block}, [&](Index t) -> std::vector<Expr> {
    const Place j = InBlock(s, i.back(), t[0], n);
    Point point(i.begin(), i.end());
    point.back() = j.index;
    return {s.Guard(
        j.inside,
        [&] {
          const Expr y = s.Read(0, point);
          const Expr earlier = Alu("lt", {FromIndex(j.index, DType::kI32), me});
          return Select(Select(earlier, Not(Precedes(s, x, y)), Precedes(s, y, x)), I32(s, 1), I32(s, 0));
        },
        I32(s, 0))};
  });
  const Expr base = Div(i.back(), block) * block;
  return base.IsConst(0) ? count[0] : count[0] + FromIndex(base, DType::kI32);
}

absl::StatusOr<Types> InvertPermutationType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckDType(call, 0, DType::kI32));
  AGC_RETURN_IF_ERROR(CheckRow(call, 0, "block"));
  return Types(call.type(0));
}

Expr InvertPermutationAt(At& s, Index i) {
  const int64_t n = s.out().dims.back(), block = std::min(s.integer("block"), n);
  const Expr me = FromIndex(i.back(), DType::kI32);
  return s.Reduce("add", {block}, [&](Index t) -> std::vector<Expr> {
    const Place j = InBlock(s, i.back(), t[0], n);
    Point point(i.begin(), i.end());
    point.back() = j.index;
    return {s.Guard(
        j.inside,
        [&] {
          return Select(Alu("eq", {s.Read(0, point), me}), FromIndex(j.index, DType::kI32), I32(s, 0));
        },
        I32(s, 0))};
  })[0];
}

// ---------------------------------------------------------------- merges

absl::StatusOr<Types> MergeRunsType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kI32));
  AGC_RETURN_IF_ERROR(CheckRow(call, 0, "run"));
  if (call.type(1).dims != call.type(0).dims) {
    return call.Error(
        absl::StrCat("the order is ", ToString(call.type(1)), ", expected the shape of ", ToString(call.type(0))));
  }
  return Types(call.type(1));
}

// Two neighbouring runs of a row, from `base`: the first has `left` elements, both have `total`.
struct Runs {
  At& s;
  Index i;
  int64_t n = 0;
  Expr base = {}, left = {}, total = {};

  Expr Least(Expr a, Expr b) const { return Alu("min", {a, b}); }
  // The element that the order names k-th from the base; k is clamped to the row.
  Expr Number(Expr k) const {
    Point point(i.begin(), i.end());
    point.back() = ClampedIndex(base + k, n);
    return s.Read(1, point);
  }
  Expr Key(Expr number) const {
    Point point(i.begin(), i.end());
    point.back() = ClampedIndex(number, n);
    return s.Read(0, point);
  }
};

// Merge path (Odeh, Green, Mwassi, Shmueli and Birk, 2012): of the first k elements of the merged runs, `taken` come
// from the first run, found by binary search without branches: the largest number whose last element does not go behind
// the next one of the second run.
Expr MergeRunsAt(At& s, Index i) {
  const int64_t n = s.out().dims.back(), run = std::min(s.integer("run"), std::max<int64_t>(n, 1));
  const Expr first = Div(i.back(), 2 * run) * (2 * run);
  Runs r{s, i, n};
  r.base = FromIndex(first, DType::kI32);
  r.total = r.Least(I32(s, std::min(2 * run, n)), I32(s, n) - r.base);
  r.left = r.Least(I32(s, run), r.total);
  const Expr k = FromIndex(i.back() - first, DType::kI32), right = r.total - r.left;
  const Expr most = r.Least(k, r.left);
  Expr taken = Alu("max", {k - right, I32(s, 0)});
  int64_t step = 1;
  while (step * 2 <= run) step *= 2;
  for (; step > 0; step /= 2) {
    const Expr next = taken + I32(s, step);
    const Expr a = r.Key(r.Number(next - I32(s, 1))), b = r.Key(r.Number(r.left + k - next));
    taken = Select(And(Alu("le", {next, most}), Not(Precedes(s, b, a))), next, taken);
  }
  const Expr a = r.Number(taken), b = r.Number(r.left + k - taken);
  const Expr only_left = Alu("ge", {k - taken, right});
  const Expr from_left = And(Alu("lt", {taken, r.left}), Or(only_left, Not(Precedes(s, r.Key(b), r.Key(a)))));
  return Select(from_left, a, b);
}

// ---------------------------------------------------------------- composites

absl::StatusOr<Types> SortType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const int64_t axis = PositiveAxis(call.integer("axis"), x.rank());
  if (x.dims[axis] > INT32_MAX)
    return call.Error(absl::StrCat("axis ", axis, " of ", ToString(x), " is too long for positions of i32"));
  return Types(x);
}

absl::StatusOr<Types> ArgSortType(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(Types types, SortType(call));
  types[0].dtype = DType::kI32;
  return types;
}

// The axes with `axis` moved to the end, and the way back.
Ints ToEnd(int rank, int64_t axis) {
  Ints perm(rank, 0);
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  return perm;
}
Ints FromEnd(int rank, int64_t axis) {
  Ints perm(rank, 0);
  std::iota(perm.begin(), perm.end(), 0);
  perm.pop_back();
  perm.insert(perm.begin() + axis, rank - 1);
  return perm;
}

Value ArgSortDecompose(Rule& s) {
  Value x = s.x[0];
  const int rank = x.rank();
  const int64_t axis = PositiveAxis(s.integer("axis"), rank), n = x.dim(static_cast<int>(axis));
  if (x.type().elements() == 0) return Full(s.builder, s.op.type(), 0);
  if (x.dtype() == DType::kBool) x = CastTo(x, DType::kU8);
  if (axis != rank - 1) x = Transpose(x, ToEnd(rank, axis));
  const Attr descending{"descending", s.flag("descending")};
  const int64_t block = n <= kOneBlock ? n : kBlock;
  Value order = Emit("sort_rank", {x}, {descending, Attr{"block", block}}, {});
  order = Emit("invert_permutation", {order}, {Attr{"block", block}}, {});
  for (int64_t run = block; run < n; run *= 2)
    order = Emit("merge_runs", {x, order}, {descending, Attr{"run", run}}, {});
  return axis == rank - 1 ? order : Transpose(order, FromEnd(rank, axis));
}

Value SortDecompose(Rule& s) {
  const int64_t axis = s.integer("axis");
  return TakeAlongAxis(s.x[0], ArgSort(s.x[0], axis, s.flag("descending")), axis);
}

// The cotangent goes back to where the elements came from, which is a sort by the order.
void SortVjp(Vjp& s) {
  if (!IsFloat(s.x[0].dtype())) return;
  const int64_t axis = s.integer("axis");
  s.dx[0] = TakeAlongAxis(s.g, ArgSort(ArgSort(s.x[0], axis, s.flag("descending")), axis), axis);
}

absl::StatusOr<Types> TopKTypes(const OpCall& call) {
  AGC_ASSIGN_OR_RETURN(Types types, SortType(call));
  TensorType& values = types[0];
  const int64_t axis = PositiveAxis(call.integer("axis"), values.rank()), k = call.integer("k");
  if (k < 0 || k > values.dims[axis])
    return call.Error(absl::StrCat("k is ", k, ", expected 0 to the ", values.dims[axis], " elements of axis ", axis));
  values.dims[axis] = k;
  return Types{values, TensorType{DType::kI32, values.dims}};
}

Value TopKDecompose(Rule& s) {
  const Value x = s.x[0];
  const int64_t axis = PositiveAxis(s.integer("axis"), x.rank());
  Ints limit = x.dims();
  limit[axis] = s.integer("k");
  const Value order = ArgSort(x, axis, s.flag("largest"));
  const Value first = Slice(order, Ints(x.rank(), 0), limit, {});
  return Tuple({TakeAlongAxis(x, first, axis), first});
}

constexpr AttrList kSortAttrs = {{"axis", kInt, "-1"}, {"descending", kBool, "false"}};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "argsort", .cls = OpClass::kComposite, .arity = 1, .attrs = kSortAttrs, .infer = ArgSortType, .decompose = ArgSortDecompose, .vjp = NoGradient,
     .numpy = "argsort(x0, axis, descending)", .sample = {.shapes = {"f32[2,9,3]"}, .attrs = "axis = 1", .differentiable = false},
     .doc = "i32 positions of the elements along an axis in increasing (or decreasing) order; equals keep their order, NaN counts as larger than every number."},
    {.name = "invert_permutation", .cls = OpClass::kReduce, .arity = 1, .attrs = {{"block", kInt, "1073741824"}}, .infer = InvertPermutationType, .at = InvertPermutationAt,
     .vjp = NoGradient, .numpy = "invert_permutation(x0, block)", .sample = {.shapes = {"i32[4,1]"}, .lo = 0, .hi = 0, .differentiable = false},
     .doc = "The permutation that undoes an i32 permutation of every row, which keeps blocks of `block` elements apart; by n^2 comparisons."},
    {.name = "merge_runs", .cls = OpClass::kGather, .arity = 2, .attrs = {{"run", kInt}, {"descending", kBool, "false"}}, .infer = MergeRunsType, .at = MergeRunsAt,
     .vjp = NoGradient, .numpy = "merge_runs(x0, x1, run, descending)", .sample = {.shapes = {"f32[3,2]", "i32[3,2]"}, .attrs = "run = 1", .lo = 0, .hi = 1, .differentiable = false},
     .doc = "An order of every row in which runs of `run` elements are sorted, to one in which runs of twice as many are."},
    {.name = "sort", .cls = OpClass::kComposite, .arity = 1, .attrs = kSortAttrs, .infer = SortType, .decompose = SortDecompose, .vjp = SortVjp,
     .numpy = "sort(x0, axis, descending)", .sample = {.shapes = {"f32[2,9,3]"}, .attrs = "axis = 1"},
     .doc = "The elements along an axis in increasing (or decreasing) order, NaN as larger than every number."},
    {.name = "sort_rank", .cls = OpClass::kReduce, .arity = 1, .attrs = {{"descending", kBool, "false"}, {"block", kInt, "1073741824"}}, .infer = SortRankType, .at = SortRankAt,
     .vjp = NoGradient, .numpy = "sort_rank(x0, descending, block)", .sample = {.shapes = {"f32[2,9]"}, .attrs = "block = 4", .differentiable = false},
     .doc = "The i32 position that every element takes when its block of `block` elements of the row is sorted; by n * block comparisons."},
    {.name = "top_k", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"k", kInt}, {"axis", kInt, "-1"}, {"largest", kBool, "true"}}, .infer = TopKTypes, .decompose = TopKDecompose,
     .numpy = "top_k(x0, k, axis, largest)", .sample = {.shapes = {"f32[2,9,3]"}, .attrs = "k = 4, axis = 1"},
     .doc = "The k largest (or smallest) elements along an axis, sorted, and their i32 positions; of equals the first."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kSortOps(kOps);

}  // namespace agc
