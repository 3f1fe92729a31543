// transpose: elementwise nests whose stores run along one axis of memory and some of whose loads along another. A
// workgroup takes a tile of both axes: what runs along the other one is loaded in its own order, put in shared memory
// and read from there in the order of the stores. Rows of a tile are one word longer than it, against bank conflicts.
//   for workgroup (tiles of i, tiles of j, rest), local (x, y):
//     for u:  tile[y + rows*u][x] = %x at (i0 + y + rows*u, j0 + x);   barrier
//     for u:  store at (i0 + x, j0 + y + rows*u), with tile[x][y + rows*u] in place of the load
// Loads beyond the end repeat the last element and are not used.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/base/status.h"
#include "passes/schedules/contract_shape.h"

namespace agc {
namespace {

struct TransposeShape {
  VarId i = 0, j = 0;               // stores run along i, the turned loads along j
  std::vector<VarId> rest = {};     // in the order of the stores
  std::vector<ExprId> turned = {};  // loads
};

int64_t StrideOfStore(const Nest& nest, const NestStore& store, VarId axis) {
  std::vector<Expr> index;
  for (ExprId id : store.index) index.push_back(nest.at(id));
  const Expr linear = LinearIndex(*nest.pool, nest.params[store.param].type, index);
  if (linear == nest.pool->Var(axis)) return 1;
  for (size_t k = 0; linear.is(ExprKind::kLin) && k < linear.node().args.size(); ++k) {
    if (linear.arg(static_cast<int>(k)) == nest.pool->Var(axis)) return linear.node().coefs[k];
  }
  return 0;
}

// The loads that run along j, and steps of more than one element along i.
std::vector<ExprId> TurnedLoads(const Nest& nest, VarId i, VarId j) {
  std::vector<ExprId> turned;
  for (const NestStore& store : nest.stores) {
    for (Expr e : PostOrder(nest.at(store.value))) {
      const bool seen = std::find(turned.begin(), turned.end(), e.id) != turned.end();
      if (e.is(ExprKind::kLoad) && !seen && StrideInLoads(nest, e.id, j) == 1 && StrideInLoads(nest, e.id, i) > 1)
        turned.push_back(e.id);
    }
  }
  return turned;
}

bool ShapeOf(const Nest& nest, TransposeShape& shape) {
  if (!nest.stages.empty() || nest.stores.empty()) return false;
  const std::vector<VarId> axes = StoreAxes(nest, nest.stores[0]);
  const auto along =
      std::find_if(axes.begin(), axes.end(), [&](VarId v) { return StrideOfStore(nest, nest.stores[0], v) == 1; });
  if (along == axes.end()) return false;
  shape.i = *along;
  for (const NestStore& store : nest.stores) {
    std::vector<VarId> own = StoreAxes(nest, store);
    if (!std::is_permutation(own.begin(), own.end(), axes.begin(), axes.end())) return false;
    if (StrideOfStore(nest, store, shape.i) != 1) return false;
  }
  for (VarId v : axes) {
    if (v == shape.i || !shape.turned.empty()) continue;
    shape.turned = TurnedLoads(nest, shape.i, v);
    shape.j = v;
  }
  if (shape.turned.empty()) return false;
  std::copy_if(axes.begin(), axes.end(), std::back_inserter(shape.rest),
               [&](VarId v) { return v != shape.i && v != shape.j; });
  return true;
}

bool Matches(const Nest& nest) {
  TransposeShape shape;
  return ShapeOf(nest, shape);
}

int64_t SharedBytes(const Nest& nest, const TransposeShape& shape, int64_t tile) {
  int64_t bytes = 0;
  for (ExprId load : shape.turned) bytes += std::max<int64_t>(4, SizeOf(nest.at(load).dtype())) * tile * (tile + 1);
  return bytes;
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const int64_t tile = s.Int("tile", 32), rows = s.Int("rows", 8);
  if (tile < 1 || rows < 1 || tile > 256 || tile % rows != 0) {
    return absl::InvalidArgumentError(absl::StrCat(nest.name, ": schedule transpose: a tile of ", tile, " with ", rows,
                                                   " rows of invocations, expected 1 to 256 and a divisor of it"));
  }
  TransposeShape shape;
  ShapeOf(nest, shape);
  const int64_t bytes = SharedBytes(nest, shape, tile), most = std::min(target.max_invocations, target.max_local_x);
  if (tile * rows <= most && bytes <= target.shared_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(nest.name, ": schedule transpose: ", tile * rows, " invocations and ", bytes,
                   " bytes of shared memory, the target allows ", most, " and ", target.shared_bytes));
}

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  constexpr int64_t kShort = 16;  // whose cache lines serve neighbouring invocations as they are
  TransposeShape shape;
  ShapeOf(nest, shape);
  if (target.cpu() || std::min(nest.extent(shape.i), nest.extent(shape.j)) < kShort) return {};
  std::vector<Schedule> all;
  for (int64_t tile : {32, 16}) {
    Schedule s{.family = "transpose"};
    s.Set("tile", tile);
    s.Set("rows", 8);
    all.push_back(std::move(s));
  }
  return all;
}

double Cost(const Nest& nest, const Schedule&, const Target& target) {
  const double positions = static_cast<double>(Extent(nest, StoreAxes(nest, nest.stores[0])));
  const double lanes = static_cast<double>(target.compute_units * std::max<int64_t>(target.subgroup_size, 1));
  return 2 * positions / std::min(positions, lanes) * 1e-3;
}

// One kernel under construction.
class TransposeKernel {
 public:
  TransposeKernel(const Nest& nest, const TransposeShape& shape)
      : nest_(nest),
        shape_(shape),
        tile_(nest.schedule.Int("tile", 32)),
        rows_(nest.schedule.Int("rows", 8)),
        ni_(nest.extent(shape.i)),
        nj_(nest.extent(shape.j)),
        b_(nest) {}

  absl::StatusOr<Built> Build(const Target& target) {
    const int64_t ti = CeilDiv(ni_, tile_), tj = CeilDiv(nj_, tile_), rest = Extent(nest_, shape_.rest);
    AGC_RETURN_IF_ERROR(b_.OverGroups(ti * tj * rest, tile_ * rows_, target, [&](Expr item, Expr t) {
      i0_ = Mod(item, ti) * tile_;
      j0_ = Mod(Div(item, ti), tj) * tile_;
      x_ = Mod(t, tile_);
      y_ = Div(t, tile_);
      Unflatten(nest_, shape_.rest, Div(item, ti * tj), map_);
      std::vector<Stmt> body;
      EmitLoads(body);
      body.push_back(BarrierStmt(Fence::kShared));
      for (int64_t u = 0; u < tile_; u += rows_) EmitStores(y_ + u, body);
      return body;
    }));
    Built built;
    built.kernels.push_back({b_.Take(), SameArgs(nest_)});
    return built;
  }

 private:
  void EmitLoads(std::vector<Stmt>& body) {
    for (ExprId load : shape_.turned) {
      tiles_.push_back(b_.AddAlloc("tile", AllocSpace::kShared, nest_.at(load).dtype(), {tile_, tile_}));
      b_.kernel().allocs[tiles_.back()].skew = 1;
      Stmt alloc{.kind = StmtKind::kAlloc};
      alloc.target = tiles_.back();
      body.push_back(std::move(alloc));
    }
    for (int64_t u = 0; u < tile_; u += rows_) {
      AxisMap map = map_;
      map[shape_.i] = Min(i0_ + y_ + u, ni_ - 1);
      map[shape_.j] = Min(j0_ + x_, nj_ - 1);
      for (size_t k = 0; k < tiles_.size(); ++k)
        body.push_back(SetAlloc(tiles_[k], {y_ + u, x_}, b_.At(shape_.turned[k], map, {})));
    }
  }

  // Row jj of the tile, as the stores see it.
  void EmitStores(Expr jj, std::vector<Stmt>& body) {
    LoadMap read;
    std::vector<Stmt> rows = b_.Below(i0_ + x_, ni_, "i", /*uniform=*/false, [&](Expr i) {
      return b_.Below(j0_ + jj, nj_, "j", /*uniform=*/false, [&](Expr j) {
        std::vector<Stmt> inner;
        for (size_t k = 0; k < tiles_.size(); ++k) {
          VarId v = 0;
          const Expr value = b_.Read(tiles_[k], {x_, jj});
          read[shape_.turned[k].index] = b_.ValueVar("turned", value.dtype(), &v);
          inner.push_back(LetStmt(v, value));
        }
        AxisMap map = map_;
        map[shape_.i] = i;
        map[shape_.j] = j;
        b_.EmitStores(StoresOf(nest_), map, {}, inner, read);
        return inner;
      });
    });
    Append(body, std::move(rows));
  }

  const Nest& nest_;
  const TransposeShape& shape_;
  const int64_t tile_, rows_, ni_, nj_;
  KernelBuilder b_;
  Expr i0_ = {}, j0_ = {}, x_ = {}, y_ = {};
  AxisMap map_ = {};
  std::vector<uint32_t> tiles_ = {};  // by turned load
};

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  TransposeShape shape;
  ShapeOf(nest, shape);
  return TransposeKernel(nest, shape).Build(target);
}

constexpr ScheduleParam kParams[] = {{"tile", 32, "positions of a tile along both axes"},
                                     {"rows", 8, "rows of a tile that a workgroup takes at a time"}};

}  // namespace

const ScheduleFamily kTransposeFamily = {.name = "transpose",
                                         .params = kParams,
                                         .matches = Matches,
                                         .legal = Legal,
                                         .candidates = Candidates,
                                         .in_order = [](Schedule&) {},
                                         .cost = Cost,
                                         .build = Build,
                                         .doc =
                                             "elementwise, stores along another axis than loads, by tiles in shared "
                                             "memory, on a GPU"};

}  // namespace agc
