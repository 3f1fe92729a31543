#include "passes/schedules/product_rows_kernel.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "passes/schedules/elements.h"

namespace agc {
namespace {

// One kernel under construction.
class RowsKernel {
 public:
  RowsKernel(const Nest& nest, const ProductRowsShape& shape)
      : nest_(nest),
        shape_(shape),
        z_(ProductRowsSizesOf(nest.schedule, Extent(nest, shape.columns))),
        b_(nest),
        m_(Extent(nest, shape.m)),
        n_(Extent(nest, shape.n)),
        k_(Extent(nest, shape.k)) {}

  Kernel Build() {
    const std::array<int64_t, 3> groups = {CeilDiv(n_, z_.bw), CeilDiv(m_, z_.bm), Extent(nest_, shape_.batch)};
    VarId gx = 0, gy = 0, gz = 0, t = 0;
    window0_ = b_.IndexVar("gn", groups[0], &gx) * z_.bw;
    row0_ = b_.IndexVar("gm", groups[1], &gy) * z_.bm;
    batch_ = b_.IndexVar("gz", groups[2], &gz);
    t_ = b_.IndexVar("t", z_.local, &t);
    std::vector<Stmt> body;
    EmitProduct(body);
    EmitRows(body);
    const auto loop = [&](ForMode mode, VarId v, int64_t extent, int dim) {
      body = {ForStmt(mode, v, b_.pool().Int(0), b_.pool().Int(extent), std::move(body), dim)};
    };
    loop(ForMode::kLocal, t, z_.local, 0);
    loop(ForMode::kWorkgroup, gx, groups[0], 0);
    loop(ForMode::kWorkgroup, gy, groups[1], 1);
    loop(ForMode::kWorkgroup, gz, groups[2], 2);
    b_.kernel().local = {z_.local, 1, 1};
    b_.kernel().parts.push_back({.groups = groups, .body = std::move(body)});
    return b_.Take();
  }

 private:
  // The axes of the product but for those of the reduction, at a row and window of the whole and a column.
  AxisMap At(Expr m, Expr window, Expr column) {
    AxisMap map;
    Unflatten(nest_, shape_.batch, batch_, map);
    Unflatten(nest_, shape_.m, m, map);
    Unflatten(nest_, shape_.n, window, map);
    Unflatten(nest_, shape_.columns, column, map);
    return map;
  }

  // The sums of the workgroup, in shared memory.
  void EmitProduct(std::vector<Stmt>& body) {
    const NestStage& stage = nest_.stages[0];
    const ExprId rows = stage.values[shape_.swapped ? 1 : 0], columns = stage.values[shape_.swapped ? 0 : 1];
    const DType dtype = nest_.components[0].dtype;
    const uint32_t a = Shared("a", nest_.at(rows).dtype(), {z_.bk, z_.bm}, body);
    const uint32_t c = Shared("b", nest_.at(columns).dtype(), {z_.bk, z_.bn()}, body);
    sums_ = Shared("sums", dtype, {z_.bm, z_.bn()}, body);
    const uint32_t acc = b_.AddAlloc("acc", AllocSpace::kRegister, dtype, {z_.tm, z_.tn()});
    body.push_back(AllocStmt(acc));
    ForTile([&](int64_t i, int64_t j) { body.push_back(SetAlloc(acc, Ints(i, j), Number(b_.pool(), dtype, 0))); });
    VarId slab = 0;
    const Expr s = b_.IndexVar("slab", CeilDiv(k_, z_.bk), &slab);
    std::vector<Stmt> inner;
    EmitSlab(rows, a, z_.bm, s, inner, [&](Expr x) { return At(Min(row0_ + x, m_ - 1), Zero(), Zero()); });
    EmitSlab(columns, c, z_.bn(), s, inner,
             [&](Expr x) { return At(Zero(), Min(window0_ + Div(x, z_.columns), n_ - 1), Mod(x, z_.columns)); });
    inner.push_back(BarrierStmt(Fence::kShared));
    EmitSlabProducts(a, c, acc, inner);
    inner.push_back(BarrierStmt(Fence::kShared));
    body.push_back(
        ForStmt(ForMode::kSerial, slab, b_.pool().Int(0), b_.pool().Int(CeilDiv(k_, z_.bk)), std::move(inner)));
    ForTile([&](int64_t i, int64_t j) {
      Append(body, b_.Below(Column(j), z_.bn(), "c", /*uniform=*/false, [&](Expr column) {
        return std::vector<Stmt>{SetAlloc(sums_, {Row(i), column}, b_.Read(acc, Ints(i, j)))};
      }));
    });
    body.push_back(BarrierStmt(Fence::kShared));
  }

  // Element (kk, x) of the alloc is the side's value at `axes(x)` and step slab * bk + kk, 0 beyond the last.
  void EmitSlab(ExprId side, uint32_t alloc, int64_t width, Expr slab, std::vector<Stmt>& body,
                absl::FunctionRef<AxisMap(Expr x)> axes) {
    const int64_t all = width * z_.bk;
    const bool along_k = !shape_.k.empty() && StrideInLoads(nest_, side, shape_.k.back()) == 1;
    for (int64_t first = 0; first < all; first += z_.local) {
      Append(body, b_.Below(t_ + first, all, "e", /*uniform=*/false, [&](Expr flat) {
        const Expr kk = along_k ? Mod(flat, z_.bk) : Div(flat, width);
        const Expr x = along_k ? Div(flat, z_.bk) : Mod(flat, width), k = slab * z_.bk + kk;
        AxisMap map = axes(x);
        Unflatten(nest_, shape_.k, Min(k, k_ - 1), map);
        const Expr value = b_.At(side, map, {});
        const Expr staged = Select(InRange(k, k_), value, Number(b_.pool(), value.dtype(), 0));
        return std::vector<Stmt>{SetAlloc(alloc, {kk, x}, staged)};
      }));
    }
  }

  void EmitSlabProducts(uint32_t a, uint32_t c, uint32_t acc, std::vector<Stmt>& body) {
    VarId v = 0;
    const Expr kk = b_.IndexVar("kk", z_.bk, &v);
    std::vector<Stmt> inner;
    std::vector<Expr> left, right;
    for (int64_t i = 0; i < z_.tm; ++i) left.push_back(Named(absl::StrCat("a", i), b_.Read(a, {kk, Row(i)}), inner));
    for (int64_t j = 0; j < z_.tn(); ++j)
      right.push_back(Named(absl::StrCat("b", j), b_.Read(c, {kk, Min(Column(j), z_.bn() - 1)}), inner));
    ForTile([&](int64_t i, int64_t j) {
      inner.push_back(SetAlloc(acc, Ints(i, j), b_.Read(acc, Ints(i, j)) + left[i] * right[j]));
    });
    body.push_back(ForStmt(ForMode::kUnroll, v, b_.pool().Int(0), b_.pool().Int(z_.bk), std::move(inner)));
  }

  // Reductions and stores of all rows of the workgroup, local / lanes of them at a time.
  void EmitRows(std::vector<Stmt>& body) {
    const int64_t rows = z_.bm * z_.bw, at_once = z_.local / z_.lanes, rounds = CeilDiv(rows, at_once);
    lane_ = Mod(t_, z_.lanes);
    for (size_t s = 1; s < nest_.stages.size() && z_.lanes > 1; ++s) {
      for (int c = 0; c < nest_.stages[s].combiner->components; ++c) {
        const Component& component = nest_.components[nest_.stages[s].first_component + static_cast<uint32_t>(c)];
        exchange_.push_back(Shared("exchange", component.dtype, {z_.local}, body));
      }
    }
    VarId v = 0;
    const Expr round = b_.IndexVar("round", rounds, &v);
    const Expr number = Div(t_, z_.lanes) + round * at_once, row = Min(number, rows - 1);
    tile_row_ = Div(row, z_.bw);
    tile_window_ = Mod(row, z_.bw);
    const Expr m = row0_ + tile_row_, window = window0_ + tile_window_;
    m_at_ = Min(m, m_ - 1);
    window_at_ = Min(window, n_ - 1);
    stages_ = {};
    std::vector<Stmt> inner;
    size_t exchange = 0;
    for (size_t s = 1; s < nest_.stages.size(); ++s) EmitReduction(nest_.stages[s], exchange, inner);
    const Expr exists = And(InRange(number, rows), And(InRange(m, m_), InRange(window, n_)));
    std::vector<Stmt> stores;
    EmitStores(stores);
    if (exists.IsTrue()) {
      Append(inner, std::move(stores));
    } else {
      inner.push_back(IfStmt(exists, std::move(stores)));
    }
    body.push_back(ForStmt(ForMode::kSerial, v, b_.pool().Int(0), b_.pool().Int(rounds), std::move(inner)));
  }

  // This lane's columns, then those of all lanes in order.
  void EmitReduction(const NestStage& stage, size_t& exchange, std::vector<Stmt>& body) {
    const std::vector<uint32_t> acc = b_.EmitAccumulators(stage, body);
    OverColumns(stage.combiner->components > 1, body, [&](const AxisMap& map, const StageMap& stages) {
      std::vector<Expr> values;
      for (ExprId id : stage.values) values.push_back(b_.At(id, map, stages));
      std::vector<Stmt> merge;
      b_.EmitMerge(*stage.combiner, acc, values, merge);
      return merge;
    });
    const int n = stage.combiner->components;
    if (z_.lanes > 1) {
      for (int c = 0; c < n; ++c) body.push_back(SetAlloc(exchange_[exchange + c], {t_}, b_.Read(acc[c])));
      body.push_back(BarrierStmt(Fence::kShared));
      for (int c = 0; c < n; ++c) {
        const DType dtype = nest_.components[stage.first_component + static_cast<uint32_t>(c)].dtype;
        body.push_back(SetAlloc(acc[c], {}, b_.pool().Const(stage.combiner->identity(c, dtype))));
      }
      for (int64_t l = 0; l < z_.lanes; ++l) {
        std::vector<Expr> values;
        for (int c = 0; c < n; ++c)
          values.push_back(Named("part", b_.Read(exchange_[exchange + c], {t_ - lane_ + l}), body));
        b_.EmitMerge(*stage.combiner, acc, values, body);
      }
      body.push_back(BarrierStmt(Fence::kShared));
      exchange += static_cast<size_t>(n);
    }
    for (int c = 0; c < n; ++c) {
      const auto component = stage.first_component + static_cast<uint32_t>(c);
      stages_[component] = Named(nest_.components[component].name, b_.Read(acc[c]), body);
    }
  }

  void EmitStores(std::vector<Stmt>& body) {
    std::vector<const NestStore*> rows, columns;
    for (const NestStore& store : nest_.stores) {
      const bool wide = StoreAxes(nest_, store).size() == nest_.components[0].axes.size();
      (wide ? columns : rows).push_back(&store);
    }
    std::vector<Stmt> first;
    b_.EmitStores(rows, At(m_at_, window_at_, Zero()), stages_, first);
    const Expr leads = EqZero(lane_);
    if (!first.empty() && !leads.IsTrue()) first = {IfStmt(leads, std::move(first))};
    Append(body, std::move(first));
    if (columns.empty()) return;
    OverColumns(/*ordered=*/false, body, [&](const AxisMap& map, const StageMap& stages) {
      std::vector<Stmt> wide;
      b_.EmitStores(columns, map, stages, wide);
      return wide;
    });
  }

  // `make` at each of this lane's columns, with the product there.
  void OverColumns(bool ordered, std::vector<Stmt>& body,
                   absl::FunctionRef<std::vector<Stmt>(const AxisMap&, const StageMap&)> make) {
    const ElementLoop loop{.lane = lane_, .lanes = z_.lanes};
    const ElementRange range{.first = Zero(), .per = z_.columns, .length = z_.columns, .ordered = ordered};
    loop.Emit(b_, range, body, [&](Index k, Expr) {
      std::vector<Stmt> all;
      StageMap stages = stages_;
      stages[0] = Named("sum", b_.Read(sums_, {tile_row_, tile_window_ * z_.columns + k[0]}), all);
      Append(all, make(At(m_at_, window_at_, k[0]), stages));
      return all;
    });
  }

  // Rows and columns of an invocation lie apart.
  Expr Row(int64_t i) { return Div(t_, z_.local / (z_.bm / z_.tm)) + i * (z_.bm / z_.tm); }
  Expr Column(int64_t j) {
    const int64_t across = z_.local / (z_.bm / z_.tm);
    return Mod(t_, across) + j * across;
  }
  Expr Zero() { return b_.pool().Int(0); }
  std::vector<Expr> Ints(int64_t i, int64_t j) { return {b_.pool().Int(i), b_.pool().Int(j)}; }
  void ForTile(absl::FunctionRef<void(int64_t, int64_t)> f) const {
    for (int64_t i = 0; i < z_.tm; ++i) {
      for (int64_t j = 0; j < z_.tn(); ++j) f(i, j);
    }
  }
  Expr Named(absl::string_view name, Expr value, std::vector<Stmt>& body) {
    VarId v = 0;
    const Expr var = b_.ValueVar(name, value.dtype(), &v);
    body.push_back(LetStmt(v, value));
    return var;
  }
  uint32_t Shared(absl::string_view name, DType dtype, std::vector<int64_t> extents, std::vector<Stmt>& body) {
    const int64_t skew = extents.size() > 1 ? 1 : 0;
    return b_.AddShared(name, dtype, std::move(extents), skew, body);
  }

  const Nest& nest_;
  const ProductRowsShape& shape_;
  const ProductRowsSizes z_;
  KernelBuilder b_;
  const int64_t m_, n_, k_;
  uint32_t sums_ = 0;
  std::vector<uint32_t> exchange_ = {};  // by component of the reductions
  Expr window0_ = {}, row0_ = {}, batch_ = {}, t_ = {}, lane_ = {};
  Expr tile_row_ = {}, tile_window_ = {}, m_at_ = {}, window_at_ = {};  // the row that lanes are at
  StageMap stages_ = {};
};

}  // namespace

ProductRowsSizes ProductRowsSizesOf(const Schedule& s, int64_t columns) {
  return {s.Int("bm", 8),      s.Int("bw", 1),    s.Int("bk", 16), s.Int("tm", 2),
          s.Int("local", 128), s.Int("lanes", 8), columns};
}

Kernel BuildProductRows(const Nest& nest, const ProductRowsShape& shape) { return RowsKernel(nest, shape).Build(); }

}  // namespace agc
