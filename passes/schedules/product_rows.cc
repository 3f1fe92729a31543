// product_rows: a product of matrices and reductions over its rows, or over windows that do not overlap, on a GPU:
// scores and their softmax, a convolution and its pooling, logits and the loss. A workgroup computes bm x bw whole rows
// of `columns` sums, which stay in shared memory while `lanes` invocations a row reduce and store them.
//   for workgroup (window tiles, m tiles, batch), local t:
//     for each slab:  a[kk][row], b[kk][column] = the sides' values;  acc[i][j] += a[kk][row_i] * b[kk][column_j]
//     sums[row][column] = acc;  barrier
//     for rows, `local / lanes` at a time:  reductions over the columns, stores
// The axes of the product are M on one side; on the other the rows' own N and, innermost, the columns C that everything
// else reduces. Lanes merge what each of them has in order, through shared memory.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/contract_shape.h"
#include "passes/schedules/elements.h"

namespace agc {
namespace {

struct Shape {
  std::vector<VarId> batch = {}, m = {}, n = {}, columns = {}, k = {};
  bool swapped = false;  // the side of m is the stage's second value
};

bool Contains(const std::vector<VarId>& axes, VarId v) { return std::find(axes.begin(), axes.end(), v) != axes.end(); }
bool ContainsAll(const std::vector<VarId>& axes, const std::vector<VarId>& some) {
  return std::all_of(some.begin(), some.end(), [&](VarId v) { return Contains(axes, v); });
}
bool SameAxes(const std::vector<VarId>& a, const std::vector<VarId>& b) {
  return a.size() == b.size() && ContainsAll(a, b);
}

// Reductions all go over the same axes of the product, and stores are over all of its axes or over those that are left.
bool ReducesRows(const Nest& nest, const std::vector<VarId>& all, const std::vector<VarId>& columns) {
  const auto row_like = [&](const std::vector<VarId>& axes) {
    return axes.size() + columns.size() == all.size() && ContainsAll(all, axes) &&
           std::none_of(axes.begin(), axes.end(), [&](VarId v) { return Contains(columns, v); });
  };
  for (size_t s = 1; s < nest.stages.size(); ++s) {
    const NestStage& stage = nest.stages[s];
    if (stage.kind != StageKind::kReduce || stage.over != columns || stage.when.valid()) return false;
    if (!row_like(nest.components[stage.first_component].axes)) return false;
  }
  return std::all_of(nest.stores.begin(), nest.stores.end(), [&](const NestStore& store) {
    const std::vector<VarId> axes = StoreAxes(nest, store);
    return SameAxes(axes, all) || row_like(axes);
  });
}

bool ShapeOf(const Nest& nest, Shape& shape) {
  if (nest.stages.size() < 2 || nest.stages[0].kind != StageKind::kContract || nest.stores.empty()) return false;
  const std::vector<VarId>& all = nest.components[0].axes;
  shape.columns = nest.stages[1].over;
  if (shape.columns.empty() || !ContainsAll(all, shape.columns) || !ReducesRows(nest, all, shape.columns)) return false;
  ContractAxes axes = ClassifyContraction(nest, nest.stages[0]);
  if (ContainsAll(axes.m, shape.columns)) {
    std::swap(axes.m, axes.n);
    shape.swapped = true;
  }
  if (!ContainsAll(axes.n, shape.columns)) return false;
  std::erase_if(axes.n, [&](VarId v) { return Contains(shape.columns, v); });
  shape.batch = std::move(axes.batch);
  shape.m = std::move(axes.m);
  shape.n = std::move(axes.n);
  shape.k = std::move(axes.k);
  return true;
}

bool Matches(const Nest& nest) {
  Shape shape;
  return ShapeOf(nest, shape) && ReadsStagesPlainly(nest);
}

struct Sizes {
  int64_t bm, bw, bk, tm, local, lanes, columns;
  int64_t bn() const { return bw * columns; }
  int64_t tn() const { return CeilDiv(bn(), local / (bm / tm)); }
};

Sizes SizesOf(const Schedule& s, int64_t columns) {
  return {s.Int("bm", 8),      s.Int("bw", 1),    s.Int("bk", 16), s.Int("tm", 2),
          s.Int("local", 128), s.Int("lanes", 8), columns};
}

// Tiles of both sides, the sums, and what lanes exchange.
int64_t SharedBytes(const Nest& nest, const Sizes& z) {
  int64_t words = z.bk * (z.bm + z.bn() + 2) + z.bm * (z.bn() + 1);
  if (z.lanes > 1) words += z.local * static_cast<int64_t>(nest.components.size() - 1);
  int64_t word = 4;
  for (const Component& c : nest.components) word = std::max<int64_t>(word, SizeOf(c.dtype));
  return word * words;
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  Shape shape;
  ShapeOf(nest, shape);
  const Sizes z = SizesOf(s, Extent(nest, shape.columns));
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(nest.name, ": schedule product_rows: ", why));
  };
  if (std::min({z.bm, z.bw, z.bk, z.tm, z.local, z.lanes}) < 1) return refuse("sizes are at least 1");
  if (z.bm % z.tm != 0 || z.local % (z.bm / z.tm) != 0)
    return refuse(absl::StrCat(z.bm, " rows are not whole in ", z.tm, " for each of ", z.local, " invocations"));
  if (z.local % z.lanes != 0)
    return refuse(absl::StrCat("local ", z.local, " is not whole in rows of ", z.lanes, " lanes"));
  if (z.tm * z.tn() > 128) return refuse(absl::StrCat(z.tm * z.tn(), " sums an invocation, expected 128 at most"));
  const int64_t most = std::min(target.max_invocations, target.max_local_x), bytes = SharedBytes(nest, z);
  const int64_t gx = CeilDiv(Extent(nest, shape.n), z.bw), gy = CeilDiv(Extent(nest, shape.m), z.bm);
  const int64_t gz = Extent(nest, shape.batch);
  if (z.local > most || bytes > target.shared_bytes || gx > target.max_groups_x || gy > target.max_groups_y ||
      gz > target.max_groups_z) {
    return absl::ResourceExhaustedError(absl::StrCat(
        nest.name, ": schedule product_rows: ", z.local, " invocations, ", bytes, " bytes of shared memory and ", gx,
        " x ", gy, " x ", gz, " workgroups, the target allows ", most, ", ", target.shared_bytes, " and ",
        target.max_groups_x, " x ", target.max_groups_y, " x ", target.max_groups_z));
  }
  return absl::OkStatus();
}

// The product alone, stored as the nest's first output.
Nest ProductOf(const Nest& nest) {
  Nest product = Clone(nest);
  product.stages.resize(1);
  product.components.resize(1);
  std::erase_if(product.params, [](const NestParam& p) { return p.written; });
  NestStore store{.param = static_cast<uint32_t>(product.params.size())};
  TensorType type{product.components[0].dtype, {}};
  std::vector<Expr> index;
  for (VarId v : product.components[0].axes) {
    type.dims.push_back(product.extent(v));
    index.push_back(product.pool->Var(v));
    store.index.push_back(index.back().id);
  }
  store.value = product.pool->Stage(0, index, type.dtype).id;
  product.params.push_back({"product", std::move(type), true});
  product.stores = {std::move(store)};
  return product;
}

// Microseconds of the product by tiles of these sizes.
double CostOfProduct(const Nest& product, const Sizes& z, const Target& target) {
  Schedule s{.family = "tiles"};
  for (const auto& [key, value] :
       {std::pair("bm", z.bm), {"bn", z.bn()}, {"bk", z.bk}, {"tm", z.tm}, {"tn", z.tn()}, {"ks", int64_t{1}}})
    s.Set(key, value);
  return kTilesFamily.cost(product, s, target);
}

// What two kernels take beyond the product: waiting for each other, and the product's way through memory.
double CostOfParting(const Nest& product, const Target& target) {
  constexpr double kEpoch = 2, kBytesPerMicrosecond = 4e6;
  const auto best = kTilesFamily.candidates(product, target);
  const double bytes = 2.0 * static_cast<double>(product.params.back().type.bytes());
  return (best.empty() ? 0 : kTilesFamily.cost(product, best[0], target)) + kEpoch + bytes / kBytesPerMicrosecond;
}

Schedule ToSchedule(const Sizes& z) {
  Schedule s{.family = "product_rows"};
  s.Set("bm", z.bm);
  s.Set("bw", z.bw);
  s.Set("bk", z.bk);
  s.Set("tm", z.tm);
  s.Set("local", z.local);
  s.Set("lanes", z.lanes);
  return s;
}

// Lanes of a row: neighbouring rows to an invocation each where they are short, else as many as keep all at work.
int64_t LanesOf(int64_t rows, int64_t columns, int64_t local) {
  int64_t lanes = 1;
  while (columns >= 16 && lanes * 2 <= 16 && rows * lanes < local) lanes *= 2;
  return lanes;
}

// None where separate kernels are quicker, as they are for large products. What an invocation stages of a slab is
// written out, so it is limited.
std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  constexpr int64_t kMostStaged = 16;
  Shape shape;
  if (target.cpu() || !ShapeOf(nest, shape)) return {};
  const int64_t m = Extent(nest, shape.m), n = Extent(nest, shape.n), columns = Extent(nest, shape.columns);
  const Nest product = ProductOf(nest);
  const double most = CostOfParting(product, target);
  std::vector<std::pair<double, Schedule>> all;
  for (const auto& [bm, tm] : {std::pair<int64_t, int64_t>{32, 8},
                               {32, 4},
                               {16, 4},
                               {16, 8},
                               {8, 4},
                               {8, 2},
                               {4, 2},
                               {4, 4},
                               {2, 2},
                               {1, 1},
                               {6, 6}}) {
    if (bm > 1 && CeilDiv(m, bm) * bm > m + m / 2) continue;
    for (int64_t wide : {64, 256}) {
      const int64_t bw = std::clamp<int64_t>(wide / columns, 1, n);
      for (int64_t local : {64, 256}) {
        if (local % (bm / tm) != 0) continue;
        for (int64_t bk : {16, 32, 64}) {
          Sizes z{bm, bw, bk, tm, local, 1, columns};
          if (z.tm * z.tn() > 32 || bk * z.bn() > kMostStaged * local) continue;
          z.lanes = LanesOf(bm * bw, columns, local);
          Schedule s = ToSchedule(z);
          if (!Legal(nest, s, target).ok()) continue;
          const double cost = CostOfProduct(product, z, target);
          if (cost <= most) all.emplace_back(cost, std::move(s));
        }
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Schedule> best;
  for (auto& [cost, schedule] : all) best.push_back(std::move(schedule));
  return best;
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  Shape shape;
  ShapeOf(nest, shape);
  return CostOfProduct(ProductOf(nest), SizesOf(s, Extent(nest, shape.columns)), target);
}

// One kernel under construction.
class RowsKernel {
 public:
  RowsKernel(const Nest& nest, const Shape& shape)
      : nest_(nest),
        shape_(shape),
        z_(SizesOf(nest.schedule, Extent(nest, shape.columns))),
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
    Declare(acc, body);
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
    const uint32_t alloc = b_.AddAlloc(name, AllocSpace::kShared, dtype, std::move(extents));
    b_.kernel().allocs[alloc].skew = skew;
    Declare(alloc, body);
    return alloc;
  }
  static void Declare(uint32_t alloc, std::vector<Stmt>& body) {
    Stmt s{.kind = StmtKind::kAlloc};
    s.target = alloc;
    body.push_back(std::move(s));
  }

  const Nest& nest_;
  const Shape& shape_;
  const Sizes z_;
  KernelBuilder b_;
  const int64_t m_, n_, k_;
  uint32_t sums_ = 0;
  std::vector<uint32_t> exchange_ = {};  // by component of the reductions
  Expr window0_ = {}, row0_ = {}, batch_ = {}, t_ = {}, lane_ = {};
  Expr tile_row_ = {}, tile_window_ = {}, m_at_ = {}, window_at_ = {};  // the row that lanes are at
  StageMap stages_ = {};
};

absl::StatusOr<Built> Build(const Nest& nest, const Target&) {
  Shape shape;
  ShapeOf(nest, shape);
  Built built;
  built.kernels.push_back({RowsKernel(nest, shape).Build(), SameArgs(nest)});
  return built;
}

constexpr ScheduleParam kParams[] = {{"bm", 8, "rows of one side of a workgroup"},
                                     {"bw", 1, "rows (windows) of the other side, each of all its columns"},
                                     {"bk", 16, "steps of a slab in shared memory"},
                                     {"tm", 2, "rows of an invocation in the product"},
                                     {"local", 128, "invocations of a workgroup"},
                                     {"lanes", 8, "invocations that reduce a row"}};

}  // namespace

const ScheduleFamily kProductRowsFamily = {
    .name = "product_rows",
    .params = kParams,
    .matches = Matches,
    .legal = Legal,
    .candidates = Candidates,
    .in_order = [](Schedule& s) { s.Set("lanes", 1); },
    .cost = Cost,
    .build = Build,
    .doc = "a product of matrices and reductions over its rows or windows, on a GPU"};

}  // namespace agc
