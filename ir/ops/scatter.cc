// Scatter as a reduction per row of the result over the updates that name it: no atomics, so results do not depend on
// the order in which a device works. `scatter_rows` [b,r,d] is the form that all others are brought to. It is computed
//   - by `scatter_matches`: every element compares its row with all n positions and reads the updates that match,
//     b*r*d*n comparisons; or
//   - by `scatter_runs`: the positions are sorted, and every element reads the run of its row: about n^2 comparisons
//   for
//     the sort of up to 2,048 positions (n*log(n)^2 beyond), r*log(n) to find the runs, and n*d reads.
// Sums run in increasing order of the updates in both.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/index.h"
#include "ir/ops/tables.h"

namespace agc {

namespace {
constexpr absl::string_view kModeNames[] = {"set", "add", "mul", "min", "max"};
constexpr absl::string_view kModes = "set|add|mul|min|max";
}  // namespace

absl::string_view Name(ScatterMode mode) { return kModeNames[static_cast<int>(mode)]; }

ScatterMode ScatterModeOf(const AttrReader& attrs) {
  const auto* at = std::find(std::begin(kModeNames), std::end(kModeNames), attrs.text("mode"));
  return static_cast<ScatterMode>(at - std::begin(kModeNames));
}

absl::Status CheckScatterMode(const OpCall& call, int operand) {
  if (call.type(operand).dtype != call.type(0).dtype) {
    return call.Error(absl::StrCat("the updates are ", ToString(call.type(operand)), " and the operand ",
                                   ToString(call.type(0)), ", cast one of them"));
  }
  if (ScatterModeOf(call) == ScatterMode::kSet) return absl::OkStatus();
  return CheckNumber(call, 0);
}

namespace {

using enum AttrKind;

// ---------------------------------------------------------------- scatter_rows

absl::Status CheckRows(const OpCall& call, int updates) {
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 3));
  AGC_RETURN_IF_ERROR(CheckRank(call, updates, 3));
  const TensorType &x = call.type(0), &u = call.type(updates);
  if (u.dims[0] != x.dims[0] || u.dims[2] != x.dims[2]) {
    return call.Error(
        absl::StrCat("the updates are ", ToString(u), ", expected [", x.dims[0], ", n, ", x.dims[2], "]"));
  }
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {x.dims[1]}));
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {u.dims[1]}));
  return CheckScatterMode(call, updates);
}

// A list of positions of rows: i32 [b or 1, n].
absl::Status CheckPositions(const OpCall& call, int operand, int64_t n, absl::string_view what) {
  AGC_RETURN_IF_ERROR(CheckDType(call, operand, DType::kI32));
  AGC_RETURN_IF_ERROR(CheckRank(call, operand, 2));
  const Dims& p = call.type(operand).dims;
  const int64_t b = call.type(0).dims[0];
  if ((p[0] == 1 || p[0] == b) && p[1] == n) return absl::OkStatus();
  return call.Error(
      absl::StrCat("the ", what, " are ", ToString(call.type(operand)), ", expected [1 or ", b, ", ", n, "]"));
}

absl::StatusOr<Types> ScatterRowsType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRows(call, 2));
  AGC_RETURN_IF_ERROR(CheckPositions(call, 1, call.type(2).dims[1], "positions"));
  return Types(call.type(0));
}

Value Like(Value x, double v) { return FullLike(x, v); }

// Which update of every row is the last: i32 [b or 1, r, 1], -1 where there is none; and every update's number.
Value LastUpdate(Value positions, int64_t rows, Value* numbers) {
  Builder& b = *positions.builder;
  const int64_t lists = positions.dim(0), n = positions.dim(1);
  *numbers = Iota(b, DType::kI32, {lists, n, 1}, 1);
  return ScatterRows(Full(b, {DType::kI32, {lists, rows, 1}}, -1), positions, *numbers, ScatterMode::kMax);
}

void SetVjp(Vjp& s, Value positions) {
  Value numbers;
  const Value last = LastUpdate(positions, s.x[0].dim(1), &numbers);
  const Value written = Broadcast(GreaterEqual(last, Like(last, 0)), s.g.dims());
  s.dx[0] = Where(written, Like(s.g, 0), s.g);
  const Value g = GatherRows(s.g, positions);
  const Value mine = GatherRows(last, positions);
  s.dx[2] = Where(Broadcast(Equal(mine, numbers), g.dims()), g, Like(g, 0));
}

// The positions sorted, and the updates [b, n, d] in that order: those of a row follow each other.
struct Runs {
  Value order = {}, sorted = {}, updates = {};
  Value starts = {};  // whether an update is the first of its row
};
Runs RunsOf(Value positions, Value updates) {
  Runs r{.order = ArgSort(positions)};
  r.sorted = TakeAlongAxis(positions, r.order);
  r.updates = GatherRows(updates, r.order);
  const int64_t lists = positions.dim(0), n = positions.dim(1);
  const Value first = Full(*positions.builder, {DType::kBool, {lists, 1}}, 1);
  const Value changes = NotEqual(Slice(r.sorted, {0, 1}, {lists, n}, {}), Slice(r.sorted, {0, 0}, {lists, n - 1}, {}));
  r.starts = Broadcast(Reshape(Concat({first, changes}, 1), {lists, n, 1}), updates.dims());
  return r;
}

// The product of the other factors of an update's row: the operand's element and the updates before it, times those
// behind it. Nothing is divided, so zeros are no special case, to every order. A factor of 0 starts a row anew.
Value OtherFactors(Value x, Value positions, Value updates) {
  const Runs r = RunsOf(positions, updates);
  const Dims dims = updates.dims();
  const int64_t n = dims[1];
  const Value zero = Like(updates, 0), one = Like(updates, 1);
  Ints edge = {dims[0], 1, dims[2]};
  const Value filler = Full(*x.builder, {updates.dtype(), edge}, 0);
  const Value before = Concat({filler, Slice(r.updates, {0, 0, 0}, {dims[0], n - 1, dims[2]}, {})}, 1);
  const Value behind = Concat({Slice(r.updates, {0, 1, 0}, {dims[0], n, dims[2]}, {}), filler}, 1);
  const Value last = Full(*x.builder, {DType::kBool, edge}, 1);
  const Value ends = Concat({Slice(r.starts, {0, 1, 0}, {dims[0], n, dims[2]}, {}), last}, 1);
  const Value head = LinearRecurrence(Where(r.starts, zero, before), Where(r.starts, GatherRows(x, r.sorted), zero), 1);
  const Value tail = LinearRecurrence(Where(ends, zero, behind), Where(ends, one, zero), 1, /*reverse=*/true);
  return GatherRows(head * tail, InversePermutation(r.order));
}

void MulVjp(Vjp& s, Value positions) {
  const Value x = s.x[0], u = s.x[2], g = Wide(s.g);
  s.dx[0] = CastTo(g * ScatterRows(Like(g, 1), positions, Wide(u), ScatterMode::kMul), x.dtype());
  s.dx[2] = Like(u, 0);
  if (u.type().elements() == 0 || x.type().elements() == 0) return;
  s.dx[2] = CastTo(SafeMul(GatherRows(g, positions), OtherFactors(Wide(x), positions, Wide(u))), u.dtype());
}

// Equal winners share the cotangent, the operand's own element among them.
void ExtremumVjp(Vjp& s, Value positions) {
  const Value x = s.x[0], u = s.x[2], x_wins = Equal(x, s.y), u_wins = Equal(u, GatherRows(s.y, positions));
  const DType acc = AccumulatorOf(x.dtype());
  const Value count = ScatterRows(CastTo(x_wins, acc), positions, CastTo(u_wins, acc), ScatterMode::kAdd);
  const Value share = CastTo(DivOf(CastTo(s.g, acc), Maximum(count, Like(count, 1))), x.dtype());
  s.dx[0] = Where(x_wins, share, Like(x, 0));
  s.dx[2] = Where(u_wins, GatherRows(share, positions), Like(u, 0));
}

void ScatterRowsVjpAt(Vjp& s, Value positions) {
  if (!IsFloat(s.x[0].dtype())) return;
  switch (ScatterModeOf(s)) {
    case ScatterMode::kSet:
      return SetVjp(s, positions);
    case ScatterMode::kAdd:
      s.dx[0] = s.g;
      s.dx[2] = GatherRows(s.g, positions);
      return;
    case ScatterMode::kMul:
      return MulVjp(s, positions);
    default:
      return ExtremumVjp(s, positions);
  }
}
void ScatterRowsVjp(Vjp& s) { ScatterRowsVjpAt(s, s.x[1]); }

// Sorting pays where comparing every row with every position is dearer; kernels cost something too.
bool SortingPays(int64_t b, int64_t r, int64_t d, int64_t lists, int64_t n) {
  const double direct =
      static_cast<double>(b) * static_cast<double>(r) * static_cast<double>(d) * static_cast<double>(n);
  const double width = static_cast<double>(std::min<int64_t>(n, 2048)), deep = std::log2(static_cast<double>(n) + 2);
  const double sorted = static_cast<double>(lists) * static_cast<double>(n) * (2 * width + 8 * deep * deep) +
                        static_cast<double>(lists) * static_cast<double>(r) * 8 * deep +
                        static_cast<double>(b) * static_cast<double>(r) * static_cast<double>(d) * 4;
  return direct > 4 * sorted + (1 << 22);
}

Value ScatterRowsDecompose(Rule& s) {
  const Value x = s.x[0], positions = s.x[1], updates = s.x[2];
  const int64_t b = x.dim(0), r = x.dim(1), d = x.dim(2), lists = positions.dim(0), n = positions.dim(1);
  const Attr mode{"mode", s.text("mode")};
  if (x.type().elements() == 0 || n == 0) return x;
  if (!SortingPays(b, r, d, lists, n)) return Emit("scatter_matches", {x, positions, updates}, {mode}, {});
  const Value order = ArgSort(positions), sorted = TakeAlongAxis(positions, order);
  const Value first = SearchSorted(sorted, Iota(s.builder, DType::kI32, {lists, r + 1}, 1));
  return Emit("scatter_runs", {x, order, first, updates}, {mode}, {});
}

// ---------------------------------------------------------------- by comparing

// The dtype a combination is kept in, its combiner, and the element that changes nothing.
struct Combination {
  DType acc = DType::kF32;
  const Combiner* combiner = nullptr;
  Expr identity = {};
};
Combination CombinationOf(At& s) {
  Combination c{AccumulatorOf(s.out().dtype), FindCombiner(s.text("mode"))};
  c.identity = s.pool.Const(c.combiner->identity(0, c.acc));
  return c;
}

// x and the reduction of the updates, rounded once.
Expr Combined(At& s, const Combination& c, Expr x, Expr updates) {
  std::vector<Expr> out(1);
  c.combiner->merge({Cast(x, c.acc)}, {updates}, absl::MakeSpan(out));
  return Cast(out[0], s.out().dtype);
}

Expr ScatterMatchesAt(At& s, Index i) {
  const int64_t n = s.dim(1, 1);
  const Expr list = s.dim(1, 0) == 1 ? s.pool.Int(0) : i[0], row = FromIndex(i[1], DType::kI32);
  if (ScatterModeOf(s) == ScatterMode::kSet) {
    const Expr last = s.Reduce("max", {n}, [&](Index k) -> std::vector<Expr> {
      return {Select(Alu("eq", {s.Read(1, {list, k[0]}), row}), FromIndex(k[0], DType::kI32), I32(s, -1))};
    })[0];
    return Select(Alu("ge", {last, I32(s, 0)}), s.Read(2, {i[0], ClampedIndex(last, n), i[2]}), s.Read(0, i));
  }
  const Combination c = CombinationOf(s);
  const Expr sum = s.Reduce(s.text("mode"), {n}, [&](Index k) -> std::vector<Expr> {
    const Expr mine = Alu("eq", {s.Read(1, {list, k[0]}), row});
    return {s.Guard(
        mine,
        [&] {
          return Cast(s.Read(2, {i[0], k[0], i[2]}), c.acc);
        },
        c.identity)};
  })[0];
  return Combined(s, c, s.Read(0, i), sum);
}

// ---------------------------------------------------------------- by runs

absl::StatusOr<Types> ScatterRunsType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckRows(call, 3));
  AGC_RETURN_IF_ERROR(CheckPositions(call, 1, call.type(3).dims[1], "numbers"));
  AGC_RETURN_IF_ERROR(CheckPositions(call, 2, call.type(0).dims[1] + 1, "beginnings"));
  return Types(call.type(0));
}

Expr ScatterRunsAt(At& s, Index i) {
  const int64_t n = s.dim(1, 1);
  if (n == 0) return s.Read(0, i);
  const Expr list = s.dim(1, 0) == 1 ? s.pool.Int(0) : i[0], list_of = s.dim(2, 0) == 1 ? s.pool.Int(0) : i[0];
  const Expr first = s.Read(2, {list_of, i[1]}), end = s.Read(2, {list_of, i[1] + 1});
  const auto update = [&](Expr k) {
    const Expr number = s.Read(1, {list, ClampedIndex(k, n)});
    return s.Read(3, {i[0], ClampedIndex(number, n), i[2]});
  };
  if (ScatterModeOf(s) == ScatterMode::kSet)
    return Select(Alu("lt", {first, end}), update(end - I32(s, 1)), s.Read(0, i));
  const Combination c = CombinationOf(s);
  const Expr length = end - first;
  const Expr sum = s.Reduce(s.text("mode"), {n}, [&](Index k) -> std::vector<Expr> {
    const Expr number = FromIndex(k[0], DType::kI32);
    return {Select(Alu("lt", {number, length}), Cast(update(first + number), c.acc), c.identity)};
  })[0];
  return Combined(s, c, s.Read(0, i), sum);
}

// The positions again: the k-th of the sorted ones is the row whose run k lies in.
void ScatterRunsVjp(Vjp& s) {
  if (!IsFloat(s.x[0].dtype())) return;
  const Value order = s.x[1], first = s.x[2];
  const int64_t lists = std::max(order.dim(0), first.dim(0)), n = order.dim(1);
  const Value orders = Broadcast(order, {lists, n}), firsts = Broadcast(first, {lists, first.dim(1)});
  const Value sorted = SearchSorted(firsts, Iota(s.builder, DType::kI32, {lists, n}, 1), /*right=*/true) - 1.0;
  const Value positions = TakeAlongAxis(sorted, InversePermutation(orders));
  Vjp rows = s;
  rows.x = {s.x[0], positions, s.x[3]};
  ScatterRowsVjpAt(rows, positions);
  s.dx[0] = rows.dx[0];
  s.dx[3] = rows.dx[2];
}

constexpr AttrList kMode = {{"mode", kString, "set", kModes}};
constexpr Sample kRows = {
    .shapes = {"f32[2,4,2]", "i32[1,5]", "f32[2,5,2]"}, .attrs = "mode = \"add\"", .lo = -1, .hi = 4};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "scatter_matches", .cls = OpClass::kScatter, .arity = 3, .attrs = kMode, .infer = ScatterRowsType, .at = ScatterMatchesAt, .vjp = ScatterRowsVjp,
     .tol = {.f32 = 4e-6}, .numpy = "scatter_rows(x0, x1, x2, mode)", .sample = kRows,
     .doc = "`scatter_rows` by comparing every row with every position."},
    {.name = "scatter_rows", .cls = OpClass::kComposite, .arity = 3, .attrs = kMode, .infer = ScatterRowsType, .decompose = ScatterRowsDecompose, .vjp = ScatterRowsVjp,
     .tol = {.f32 = 4e-6}, .numpy = "scatter_rows(x0, x1, x2, mode)", .sample = kRows,
     .doc = "[b,r,d] with updates [b,n,d] combined into the rows at i32 positions [b,n] or [1,n]; a position that is no row is dropped. `set` keeps the last update; sums run in increasing order of the updates and are then added to the operand."},
    {.name = "scatter_runs", .cls = OpClass::kScatter, .arity = 4, .attrs = kMode, .infer = ScatterRunsType, .at = ScatterRunsAt, .vjp = ScatterRunsVjp,
     .tol = {.f32 = 4e-6}, .numpy = "scatter_runs(x0, x1, x2, x3, mode)",
     .sample = {.shapes = {"f32[2,1,2]", "i32[1,1]", "i32[1,2]", "f32[2,1,2]"}, .attrs = "mode = \"add\"", .lo = 0, .hi = 1},
     .doc = "`scatter_rows` of updates in the order of their rows: order[k] is the update that stands k-th, and row r has those from first[r] up to first[r + 1]."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kScatterOps(kOps);

Value ScatterRows(Value x, Value positions, Value updates, ScatterMode mode, Loc loc) {
  return Emit("scatter_rows", {x, positions, updates}, {Attr{"mode", std::string(Name(mode))}}, loc);
}

}  // namespace agc
