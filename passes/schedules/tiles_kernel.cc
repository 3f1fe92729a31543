#include "passes/schedules/tiles_kernel.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "passes/schedules/partials.h"
#include "passes/schedules/slab_side.h"

namespace agc {
namespace {

// Rows or columns of an invocation: runs of up to four neighbours, which lie `apart` runs from each other.
struct TileAxis {
  int64_t run = 1, count = 1, apart = 1;

  TileAxis(int64_t block, int64_t tile) : run(std::gcd(tile, int64_t{4})), count(tile), apart(block / tile) {}
  int64_t runs() const { return count / run; }
  // The first element of run r of invocation `i`, in units of runs.
  Expr At(Expr i, int64_t r) const { return i + r * apart; }
};

// Neighbours of a run, from its element `first` on.
struct Neighbours {
  Expr m = {}, n = {};  // where the first one is in the output
  Expr in_tile = {};    // and in the workgroup's tile, row by row
  int64_t first = 0, count = 1;
};
using RunSums = absl::FunctionRef<std::vector<Expr>(const Neighbours& place, std::vector<Stmt>& body)>;

class TilesKernel {
 public:
  TilesKernel(const Nest& nest, const ContractShape& shape, int64_t split, const Target& target)
      : nest_(nest),
        shape_(shape),
        z_(TileSizesOf(nest.schedule)),
        split_(split),
        groups_(TileGroups(nest, shape, z_, split, target)),
        b_(nest),
        m_(Extent(nest, shape.m)),
        n_(Extent(nest, shape.n)),
        k_(Extent(nest, shape.k)),
        slabs_(CeilDiv(k_, z_.bk)),
        rows_(z_.bm, z_.tm),
        columns_(z_.bn, z_.tn) {}

  // One kernel: where the slabs are cut, the last workgroup of a tile to arrive adds the parts and stores.
  Built BuildWhole(StoreSums store) {
    Built built;
    std::vector<int32_t> args = SameArgs(nest_);
    const int64_t batches = Extent(nest_, shape_.batch);
    if (split_ > 1) {
      const int64_t tiles = groups_[0] * groups_[1] * batches;
      partials_ = AddPartials(b_, nest_, {split_, batches, m_, n_}, tiles, built, args);
    }
    built.kernels.push_back({Build(store), std::move(args)});
    return built;
  }

  Kernel Build(StoreSums store) {
    VarId gx = 0, gy = 0, gz = 0, t = 0;
    const Expr x = b_.IndexVar("gx", groups_[0], &gx), y = b_.IndexVar("gy", groups_[1], &gy);
    Workgroup(x, y);
    const Expr z = b_.IndexVar("gz", groups_[2], &gz);
    const int64_t batches = Extent(nest_, shape_.batch);
    batch_ = Mod(z, batches);
    part_ = Div(z, batches);
    tile_ = (batch_ * groups_[1] + y) * groups_[0] + x;
    t_ = b_.IndexVar("t", z_.threads(), &t);
    Invocation();
    std::vector<Stmt> body;
    EmitSlabs(body);
    EmitOutputs(store, body);
    const auto loop = [&](ForMode mode, VarId v, int64_t extent, int dim) {
      body = {ForStmt(mode, v, b_.pool().Int(0), b_.pool().Int(extent), std::move(body), dim)};
    };
    loop(ForMode::kLocal, t, z_.threads(), 0);
    loop(ForMode::kWorkgroup, gx, groups_[0], 0);
    loop(ForMode::kWorkgroup, gy, groups_[1], 1);
    loop(ForMode::kWorkgroup, gz, groups_[2], 2);
    b_.kernel().local = {z_.threads(), 1, 1};
    b_.kernel().parts.push_back({.groups = groups_, .body = std::move(body)});
    return b_.Take();
  }

 private:
  // ---- who computes what
  // Workgroups that run together should share rows and columns: `raster` tiles of rows before the next column.
  void Workgroup(Expr x, Expr y) {
    Expr row = y, column = x;
    const int64_t down = CeilDiv(m_, z_.bm), across = CeilDiv(n_, z_.bn);
    if (groups_[1] == 1 && down > 1) {
      int64_t g = std::min(down, std::max<int64_t>(1, z_.raster));
      while (down % g != 0) --g;
      row = Div(x, across * g) * g + Mod(x, g);
      column = Div(Mod(x, across * g), g);
    }
    row0_ = row * z_.bm;
    column0_ = column * z_.bn;
  }

  // 32 neighbouring invocations take a patch of 8 columns and 4 rows, which reads fewer words than 32 columns of a row.
  void Invocation() {
    const int64_t across = columns_.apart, down = rows_.apart;
    const Expr of_group = Mod(t_, across * down);
    tk_ = Div(t_, across * down);
    if (across % 8 == 0 && down % 4 == 0) {
      const Expr patch = Div(of_group, 32), lane = Mod(of_group, 32);
      tj_ = Mod(patch, across / 8) * 8 + Mod(lane, 8);
      ti_ = Div(patch, across / 8) * 4 + Div(lane, 8);
    } else {
      tj_ = Mod(of_group, across);
      ti_ = Div(of_group, across);
    }
  }

  // ---- the sums
  void EmitSlabs(std::vector<Stmt>& body) {
    const NestStage& stage = nest_.stages[0];
    const ExprId left = stage.values[shape_.swapped ? 1 : 0], right = stage.values[shape_.swapped ? 0 : 1];
    const DType acc = nest_.components[0].dtype;
    sum_ = b_.AddAlloc("acc", AllocSpace::kRegister, acc, {z_.tm, z_.tn});
    sides_ = {SlabSide(nest_, shape_, left, shape_.m, z_.bm, z_.bk, z_.threads()),
              SlabSide(nest_, shape_, right, shape_.n, z_.bn, z_.bk, z_.threads())};
    sides_[0].Place(b_.AddShared("a", nest_.at(left).dtype(), {z_.bk, z_.bm}, TileSizes::Skew(z_.bm), body), row0_);
    sides_[1].Place(b_.AddShared("b", nest_.at(right).dtype(), {z_.bk, z_.bn}, TileSizes::Skew(z_.bn), body), column0_);
    body.push_back(AllocStmt(sum_));
    ForTile([&](int64_t i, int64_t j) { body.push_back(SetAlloc(sum_, Ints(i, j), Number(b_.pool(), acc, 0))); });
    const int64_t per = CeilDiv(slabs_, split_);
    const Expr begin = split_ > 1 ? part_ * per : b_.pool().Int(0);
    const Expr end = split_ > 1 ? Min(begin + per, slabs_) : b_.pool().Int(slabs_);
    if (z_.ahead != 0 && per > 1) {
      EmitAhead(begin, end, body);
      return;
    }
    VarId slab = 0;
    const Expr s = b_.IndexVar("slab", slabs_, &slab);
    std::vector<Stmt> inner;
    const std::vector<StagedSlab> staged = EmitLoads(s, inner);
    EmitStage(staged, inner);
    EmitProducts(inner);
    inner.push_back(BarrierStmt(Fence::kShared));
    body.push_back(ForStmt(ForMode::kSerial, slab, begin, end, std::move(inner)));
  }

  // The loads of the next slab are under way while this one is multiplied; the last one is multiplied after the loop.
  void EmitAhead(Expr begin, Expr end, std::vector<Stmt>& body) {
    const std::vector<StagedSlab> first = EmitLoads(begin, body);
    EmitStage(first, body);
    VarId slab = 0;
    const Expr s = b_.IndexVar("slab", slabs_, &slab);
    std::vector<Stmt> inner;
    const std::vector<StagedSlab> next = EmitLoads(s, inner);
    EmitProducts(inner);
    inner.push_back(BarrierStmt(Fence::kShared));
    EmitStage(next, inner);
    body.push_back(ForStmt(ForMode::kSerial, slab, begin + 1, end, std::move(inner)));
    EmitProducts(body);
  }

  std::vector<StagedSlab> EmitLoads(Expr slab, std::vector<Stmt>& body) {
    std::vector<StagedSlab> staged;
    for (const SlabSide& side : sides_) staged.push_back(side.EmitLoads(b_, slab, batch_, t_, body));
    return staged;
  }

  void EmitStage(const std::vector<StagedSlab>& staged, std::vector<Stmt>& body) {
    for (size_t s = 0; s < sides_.size(); ++s) sides_[s].EmitStage(staged[s], body);
    body.push_back(BarrierStmt(Fence::kShared));
  }

  void EmitProducts(std::vector<Stmt>& body) {
    VarId v = 0;
    const int64_t steps = z_.bk / z_.ks;
    const Expr kk = tk_ * steps + b_.IndexVar("kk", steps, &v);
    std::vector<Stmt> inner;
    const std::vector<Expr> a = EmitReads(sides_[0], rows_, ti_, kk, inner);
    const std::vector<Expr> c = EmitReads(sides_[1], columns_, tj_, kk, inner);
    ForTile([&](int64_t i, int64_t j) {
      inner.push_back(SetAlloc(sum_, Ints(i, j), b_.Read(sum_, Ints(i, j)) + a[i] * c[j]));
    });
    body.push_back(ForStmt(ForMode::kUnroll, v, b_.pool().Int(0), b_.pool().Int(steps), std::move(inner)));
  }

  std::vector<Expr> EmitReads(const SlabSide& side, const TileAxis& axis, Expr own, Expr kk, std::vector<Stmt>& body) {
    std::vector<Expr> all;
    for (int64_t i = 0; i < axis.count; ++i) {
      VarId var = 0;
      const Expr value = b_.Read(side.alloc(), {kk, axis.At(own, i / axis.run) * axis.run + i % axis.run});
      all.push_back(b_.ValueVar(absl::StrCat(b_.kernel().allocs[side.alloc()].name, i), value.dtype(), &var));
      body.push_back(LetStmt(var, value));
    }
    return all;
  }

  // ---- the outputs
  void EmitOutputs(StoreSums store, std::vector<Stmt>& body) {
    if (!partials_.has_value()) {
      EmitSums(store, body);
      return;
    }
    const auto publish = [&](KernelBuilder&, absl::Span<const OutputSum> outputs, Expr batch, Expr part,
                             std::vector<Stmt>& out) {
      for (const OutputSum& o : outputs)
        StorePartials(*partials_, nest_.stages[0], {o.sum}, {part, batch, o.m, o.n}, out);
    };
    EmitSums(publish, body);
    std::vector<Stmt> finish;
    EmitRuns(
        store, [&](const Neighbours& place, std::vector<Stmt>& out) { return EmitParts(place, out); }, finish);
    body.push_back(IfLastStmt(partials_->counter, tile_, b_.pool().Int(split_), std::move(finish)));
  }

  // What this workgroup has added up.
  void EmitSums(StoreSums store, std::vector<Stmt>& body) {
    if (z_.ks > 1) {
      EmitCombined(store, body);
    } else {
      EmitOwn(store, body);
    }
  }

  void EmitOwn(StoreSums store, std::vector<Stmt>& body) {
    for (int64_t i = 0; i < z_.tm; ++i) {
      const Expr row = rows_.At(ti_, i / rows_.run) * rows_.run + i % rows_.run;
      for (int64_t r = 0; r < columns_.runs(); ++r) {
        const auto sums = [&](const Neighbours& place, std::vector<Stmt>&) {
          std::vector<Expr> all;
          for (int64_t e = place.first; e < place.first + place.count; ++e)
            all.push_back(b_.Read(sum_, Ints(i, r * columns_.run + e)));
          return all;
        };
        Append(body, EmitRun(store, row, columns_.At(tj_, r), sums));
      }
    }
  }

  // The sums of the ks groups, added in order.
  void EmitCombined(StoreSums store, std::vector<Stmt>& body) {
    const DType acc = nest_.components[0].dtype;
    const uint32_t all = b_.AddShared("sums", acc, {z_.ks, z_.bm * z_.bn}, 0, body);
    ForTile([&](int64_t i, int64_t j) {
      const Expr row = rows_.At(ti_, i / rows_.run) * rows_.run + i % rows_.run;
      const Expr column = columns_.At(tj_, j / columns_.run) * columns_.run + j % columns_.run;
      body.push_back(SetAlloc(all, {tk_, row * z_.bn + column}, b_.Read(sum_, Ints(i, j))));
    });
    body.push_back(BarrierStmt(Fence::kShared));
    const auto sums = [&](const Neighbours& place, std::vector<Stmt>& out) {
      std::vector<Expr> of_groups;
      for (int64_t e = 0; e < place.count; ++e) {
        Expr sum = {};
        for (int64_t s = 0; s < z_.ks; ++s) {
          VarId v = 0;
          const Expr read = b_.ValueVar(absl::StrCat("s", s), acc, &v);
          out.push_back(LetStmt(v, b_.Read(all, {b_.pool().Int(s), place.in_tile + e})));
          sum = s == 0 ? read : sum + read;
        }
        of_groups.push_back(sum);
      }
      return of_groups;
    };
    EmitRuns(store, sums, body);
  }

  // The sums of `count` neighbours over all parts, in their order.
  std::vector<Expr> EmitParts(const Neighbours& place, std::vector<Stmt>& body) {
    const NestStage& stage = nest_.stages[0];
    const DType acc = nest_.components[0].dtype;
    std::vector<uint32_t> totals;
    for (int64_t e = 0; e < place.count; ++e) {
      totals.push_back(b_.AddAlloc("total", AllocSpace::kRegister, acc));
      body.push_back(AllocStmt(totals.back()));
      body.push_back(SetAlloc(totals.back(), {}, Number(b_.pool(), acc, 0)));
    }
    int64_t unroll = 8;  // loads that are under way together
    while (split_ % unroll != 0) unroll /= 2;
    VarId p = 0;
    const Expr first = b_.IndexVar("p", split_ / unroll, &p) * unroll;
    std::vector<Stmt> loads, sums;
    for (int64_t u = 0; u < unroll; ++u) {
      for (int64_t e = 0; e < place.count; ++e) {
        VarId v = 0;
        const Expr part = LoadPartials(b_, nest_, *partials_, stage, {first + u, batch_, place.m, place.n + e})[0];
        const Expr loaded = b_.ValueVar("part", acc, &v);
        loads.push_back(LetStmt(v, part));
        sums.push_back(SetAlloc(totals[e], {}, b_.Read(totals[e]) + loaded));
      }
    }
    Append(loads, std::move(sums));
    body.push_back(ForStmt(ForMode::kSerial, p, b_.pool().Int(0), b_.pool().Int(split_ / unroll), std::move(loads)));
    std::vector<Expr> all;
    for (uint32_t total : totals) all.push_back(b_.Read(total));
    return all;
  }

  // Every invocation stores some runs of the tile.
  void EmitRuns(StoreSums store, RunSums sums, std::vector<Stmt>& body) {
    const int64_t runs = z_.bm * z_.bn / columns_.run, across = z_.bn / columns_.run;
    for (int64_t first = 0; first < runs; first += z_.threads()) {
      Append(body, b_.Below(t_ + first, runs, "o", /*uniform=*/false,
                            [&](Expr at) { return EmitRun(store, Div(at, across), Mod(at, across), sums); }));
    }
  }

  // Neighbouring columns of a row: row and run within the workgroup's tile. They are stored together where columns end
  // with a run.
  std::vector<Stmt> EmitRun(StoreSums store, Expr row, Expr run, RunSums sums) {
    const int64_t width = columns_.run;
    const auto outputs = [&](Expr m, Expr n, int64_t first, int64_t count) {
      std::vector<Stmt> out;
      std::vector<OutputSum> stored;
      const Neighbours place{m, n, row * z_.bn + run * width + first, first, count};
      const std::vector<Expr> values = sums(place, out);
      for (int64_t e = 0; e < count; ++e) stored.push_back(Output(m, n + e, values[e], out));
      store(b_, stored, batch_, part_, out);
      return out;
    };
    return b_.Below(row0_ + row, m_, "m", /*uniform=*/false, [&](Expr m) {
      if (n_ % width == 0) {
        return b_.Below(Div(column0_, width) + run, n_ / width, "q", /*uniform=*/false,
                        [&](Expr q) { return outputs(m, q * width, 0, width); });
      }
      std::vector<Stmt> all;
      for (int64_t e = 0; e < width; ++e) {
        Append(all, b_.Below(column0_ + run * width + e, n_, "n", /*uniform=*/false,
                             [&](Expr n) { return outputs(m, n, e, 1); }));
      }
      return all;
    });
  }

  OutputSum Output(Expr m, Expr n, Expr sum, std::vector<Stmt>& body) {
    OutputSum output{.m = m, .n = n};
    Unflatten(nest_, shape_.m, m, output.axes);
    Unflatten(nest_, shape_.n, n, output.axes);
    Unflatten(nest_, shape_.batch, batch_, output.axes);
    VarId v = 0;
    output.sum = b_.ValueVar("sum", nest_.components[0].dtype, &v);
    body.push_back(LetStmt(v, sum));
    return output;
  }

  std::vector<Expr> Ints(int64_t i, int64_t j) { return {b_.pool().Int(i), b_.pool().Int(j)}; }
  void ForTile(absl::FunctionRef<void(int64_t, int64_t)> f) const {
    for (int64_t i = 0; i < z_.tm; ++i) {
      for (int64_t j = 0; j < z_.tn; ++j) f(i, j);
    }
  }

  const Nest& nest_;
  const ContractShape& shape_;
  const TileSizes z_;
  const int64_t split_;
  const std::array<int64_t, 3> groups_;
  KernelBuilder b_;
  const int64_t m_, n_, k_, slabs_;
  const TileAxis rows_, columns_;
  std::vector<SlabSide> sides_ = {};
  std::optional<Partials> partials_ = {};
  uint32_t sum_ = 0;
  Expr row0_ = {}, column0_ = {}, batch_ = {}, part_ = {}, tile_ = {}, t_ = {}, ti_ = {}, tj_ = {}, tk_ = {};
};

}  // namespace

absl::StatusOr<Built> BuildTiles(const Nest& nest, const ContractShape& shape, int64_t split, const Target& target) {
  if (split > 1 && nest.schedule.Int("last", 0) == 0) {
    return BuildContraction(nest, shape, split, target,
                            [&](const Nest& n, int64_t parts, StoreSums store) -> absl::StatusOr<Kernel> {
                              return TilesKernel(n, shape, parts, target).Build(store);
                            });
  }
  return TilesKernel(nest, shape, split, target)
      .BuildWhole([&](KernelBuilder& b, absl::Span<const OutputSum> outputs, Expr, Expr, std::vector<Stmt>& body) {
        StoreOutputs(nest, b, outputs, body);
      });
}

}  // namespace agc
