// tiles: sums of products on a GPU. A workgroup computes bm x bn outputs; slabs of bk steps of both sides are staged in
// shared memory, and every invocation keeps tm x tn sums in registers, of rows and columns that lie apart, so that
// neighbours read neighbouring words. ks > 1 cuts each slab among ks groups of invocations, whose sums are added in
// order through shared memory: small products fill the device that way. split > 1 cuts the slabs among workgroups,
// whose sums a second kernel adds.
//   for workgroup (n tiles, m tiles, batch x part), local t:
//     for each slab:  a[kk][row], b[kk][column] = the sides' values, 0 beyond the end;  barrier
//                     for kk:  acc[i][j] += a[kk][row_i] * b[kk][column_j];             barrier
//     stores with the sums in place of the stage
// K is flattened in the order of memory, so a convolution is a product whose sides are loads with guards.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/contract_shape.h"

namespace agc {
namespace {

struct Sizes {
  int64_t bm, bn, bk, tm, tn, ks;
  int64_t threads() const { return bm / tm * (bn / tn) * ks; }
  int64_t shared_words() const { return bk * (bm + bn + 2) + (ks > 1 ? ks * bm * bn : 0); }
};

Sizes SizesOf(const Schedule& s) {
  return {s.Int("bm", 32), s.Int("bn", 32), s.Int("bk", 16), s.Int("tm", 2), s.Int("tn", 2), s.Int("ks", 1)};
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const Sizes z = SizesOf(s);
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(nest.name, ": schedule tiles: ", why));
  };
  if (std::min({z.bm, z.bn, z.bk, z.tm, z.tn, z.ks, s.Int("split", 1)}) < 1) return refuse("sizes are at least 1");
  if (z.bm % z.tm != 0 || z.bn % z.tn != 0)
    return refuse(absl::StrCat("a tile of ", z.bm, " x ", z.bn, " is not whole in ", z.tm, " x ", z.tn));
  if (z.bk % z.ks != 0) return refuse(absl::StrCat("a slab of ", z.bk, " steps is not whole in ", z.ks, " parts"));
  if (z.tm * z.tn > 128) return refuse(absl::StrCat(z.tm * z.tn, " sums an invocation, expected 128 at most"));
  const int64_t most = std::min(target.max_invocations, target.max_local_x);
  const int64_t word = std::max<int64_t>(4, SizeOf(nest.components[0].dtype));
  if (z.threads() > most || word * z.shared_words() > target.shared_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(nest.name, ": schedule tiles: ", z.threads(), " invocations and ", word * z.shared_words(),
                     " bytes of shared memory, the target allows ", most, " and ", target.shared_bytes));
  }
  const ContractShape shape = ShapeOf(nest);
  const int64_t gy = CeilDiv(Extent(nest, shape.m), z.bm), gz = Extent(nest, shape.batch) * s.Int("split", 1);
  const int64_t gx = CeilDiv(Extent(nest, shape.n), z.bn);
  if (gx > target.max_groups_x || gy > target.max_groups_y || gz > target.max_groups_z) {
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": schedule tiles: ", gx, " x ", gy, " x ", gz,
                                                     " workgroups, the target allows ", target.max_groups_x, " x ",
                                                     target.max_groups_y, " x ", target.max_groups_z));
  }
  return absl::OkStatus();
}

// Nanoseconds of a product on a GPU. A multiprocessor issues 128 multiply-adds or 32 shared reads a cycle, about 1.7 a
// nanosecond; a slab waits for memory and two barriers once, which other workgroups on the same multiprocessor hide.
// The constants are fitted to the measured kernels of docs/performance.md.
double Nanoseconds(const Sizes& z, int64_t m, int64_t n, int64_t k, int64_t batch, int64_t split,
                   const Target& target) {
  constexpr double kLanes = 128, kCycle = 0.6, kLatency = 900, kFinish = 2500, kStage = 6, kRead = 3;
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  const double threads = d(z.threads());
  const double groups = d(CeilDiv(m, z.bm) * CeilDiv(n, z.bn) * batch * split);
  const double slabs = d(CeilDiv(CeilDiv(k, z.bk), split));
  const double steps = d(z.bk / z.ks);
  const double issue = threads * steps * (d(z.tm * z.tn) + kRead * d(z.tm + z.tn)) + kStage * d((z.bm + z.bn) * z.bk);
  const double work = issue / kLanes;  // cycles of the multiprocessor per slab
  const double own = issue / threads * std::max(1.0, threads / kLanes) + kLatency;  // of a workgroup alone
  const double shared_fit = d(target.shared_bytes) * 4 / std::max(1.0, 4 * d(z.shared_words()));
  const double resident =
      std::max(1.0, std::min({2048 / threads, shared_fit, 65536 / (threads * d(z.tm * z.tn + 40))}));
  const double units = d(std::max<int64_t>(1, target.compute_units));
  const double per_unit = std::ceil(groups / units);
  const double rounds = std::ceil(per_unit / resident);
  const double cycles = slabs * std::max(rounds * own, per_unit * work);
  const double finish = split > 1 ? kFinish + d(m * n * batch * split) * 8e-3 : 0;
  return cycles * kCycle + finish;
}

constexpr Sizes kSizes[] = {
    {128, 128, 16, 8, 8, 1}, {64, 64, 16, 8, 4, 1}, {64, 64, 16, 4, 4, 1},  {32, 64, 16, 4, 4, 1},
    {64, 32, 16, 4, 4, 1},   {32, 32, 32, 4, 2, 2}, {32, 32, 32, 4, 4, 4},  {16, 64, 32, 4, 4, 4},
    {16, 128, 16, 4, 4, 1},  {8, 128, 16, 4, 4, 2}, {16, 32, 32, 2, 4, 4},  {16, 16, 32, 2, 2, 4},
    {16, 16, 64, 2, 2, 8},   {8, 64, 32, 4, 2, 4},  {8, 32, 64, 2, 2, 4},   {64, 16, 32, 4, 4, 4},
    {8, 16, 64, 2, 2, 8},    {8, 8, 64, 1, 2, 16},  {128, 16, 16, 4, 4, 2}, {128, 64, 16, 8, 4, 1}};

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  if (target.cpu()) return {};
  const ContractShape shape = ShapeOf(nest);
  const int64_t m = Extent(nest, shape.m), n = Extent(nest, shape.n), k = Extent(nest, shape.k);
  const int64_t batch = Extent(nest, shape.batch);
  if (k < 4) return {};  // an outer product has nothing to stage
  std::vector<std::pair<double, Schedule>> all;
  for (const Sizes& z : kSizes) {
    for (int64_t split = 1; split <= CeilDiv(k, z.bk) && split <= 256; split *= 2) {
      Schedule s{.family = "tiles"};
      s.Set("bm", z.bm);
      s.Set("bn", z.bn);
      s.Set("bk", z.bk);
      s.Set("tm", z.tm);
      s.Set("tn", z.tn);
      s.Set("ks", z.ks);
      s.Set("split", split);
      all.emplace_back(Nanoseconds(z, m, n, k, batch, split, target), std::move(s));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Schedule> best;
  for (auto& [cost, schedule] : all) best.push_back(std::move(schedule));
  return best;
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  const ContractShape shape = ShapeOf(nest);
  return 1e-3 * Nanoseconds(SizesOf(s), Extent(nest, shape.m), Extent(nest, shape.n), Extent(nest, shape.k),
                            Extent(nest, shape.batch), s.Int("split", 1), target);
}

// One kernel under construction.
class TilesKernel {
 public:
  TilesKernel(const Nest& nest, const ContractShape& shape, int64_t split)
      : nest_(nest),
        shape_(shape),
        z_(SizesOf(nest.schedule)),
        split_(split),
        b_(nest),
        m_(Extent(nest, shape.m)),
        n_(Extent(nest, shape.n)),
        k_(Extent(nest, shape.k)),
        slabs_(CeilDiv(k_, z_.bk)) {}

  Kernel Build(StoreSum store) {
    const int64_t batches = Extent(nest_, shape_.batch);
    const std::array<int64_t, 3> groups = {CeilDiv(n_, z_.bn), CeilDiv(m_, z_.bm), batches * split_};
    VarId gx = 0, gy = 0, gz = 0, t = 0;
    column0_ = b_.IndexVar("gn", groups[0], &gx) * z_.bn;
    row0_ = b_.IndexVar("gm", groups[1], &gy) * z_.bm;
    const Expr z = b_.IndexVar("gz", groups[2], &gz);
    batch_ = Mod(z, batches);
    part_ = Div(z, batches);
    t_ = b_.IndexVar("t", z_.threads(), &t);
    tj_ = Mod(t_, z_.bn / z_.tn);
    ti_ = Mod(Div(t_, z_.bn / z_.tn), z_.bm / z_.tm);
    tk_ = Div(t_, z_.bm / z_.tm * (z_.bn / z_.tn));
    std::vector<Stmt> body;
    EmitSums(body);
    if (z_.ks > 1) {
      EmitCombined(store, body);
    } else {
      EmitOwn(store, body);
    }
    const auto loop = [&](ForMode mode, VarId v, int64_t extent, int dim) {
      body = {ForStmt(mode, v, b_.pool().Int(0), b_.pool().Int(extent), std::move(body), dim)};
    };
    loop(ForMode::kLocal, t, z_.threads(), 0);
    loop(ForMode::kWorkgroup, gx, groups[0], 0);
    loop(ForMode::kWorkgroup, gy, groups[1], 1);
    loop(ForMode::kWorkgroup, gz, groups[2], 2);
    b_.kernel().local = {z_.threads(), 1, 1};
    b_.kernel().parts.push_back({.groups = groups, .body = std::move(body)});
    return b_.Take();
  }

 private:
  void EmitSums(std::vector<Stmt>& body) {
    const NestStage& stage = nest_.stages[0];
    const ExprId left = stage.values[shape_.swapped ? 1 : 0], right = stage.values[shape_.swapped ? 0 : 1];
    const DType acc = nest_.components[0].dtype;
    sum_ = b_.AddAlloc("acc", AllocSpace::kRegister, acc, {z_.tm, z_.tn});
    a_ = Shared("a", nest_.at(left).dtype(), {z_.bk, z_.bm}, 1, body);
    bs_ = Shared("b", nest_.at(right).dtype(), {z_.bk, z_.bn}, 1, body);
    Declare(sum_, body);
    ForTile([&](int64_t i, int64_t j) { body.push_back(SetAlloc(sum_, Ints(i, j), Number(b_.pool(), acc, 0))); });
    VarId slab = 0;
    const Expr s = b_.IndexVar("slab", slabs_, &slab);
    std::vector<Stmt> inner;
    EmitStage(left, a_, z_.bm, shape_.m, row0_, m_, s, inner);
    EmitStage(right, bs_, z_.bn, shape_.n, column0_, n_, s, inner);
    inner.push_back(BarrierStmt(Fence::kShared));
    EmitProducts(inner);
    inner.push_back(BarrierStmt(Fence::kShared));
    const int64_t per = CeilDiv(slabs_, split_);
    const Expr begin = split_ > 1 ? part_ * per : b_.pool().Int(0);
    const Expr end = split_ > 1 ? Min(begin + per, slabs_) : b_.pool().Int(slabs_);
    body.push_back(ForStmt(ForMode::kSerial, slab, begin, end, std::move(inner)));
  }

  // One slab of a side: element (kk, x) of the alloc is the side's value at position base + x and step slab * bk + kk.
  void EmitStage(ExprId side, uint32_t alloc, int64_t width, const std::vector<VarId>& axes, Expr base, int64_t extent,
                 Expr slab, std::vector<Stmt>& body) {
    // Neighbouring invocations load along the axis that is contiguous in memory.
    const bool along_k = !shape_.k.empty() && StrideInLoads(nest_, side, shape_.k.back()) == 1 &&
                         (axes.empty() || StrideInLoads(nest_, side, axes.back()) != 1 ||
                          nest_.extent(shape_.k.back()) > nest_.extent(axes.back()));
    const int64_t all = width * z_.bk;
    for (int64_t first = 0; first < all; first += z_.threads()) {
      const Expr flat = t_ + first;
      const Expr kk = along_k ? Mod(flat, z_.bk) : Div(flat, width), x = along_k ? Div(flat, z_.bk) : Mod(flat, width);
      const Expr k = slab * z_.bk + kk;
      AxisMap map;
      Unflatten(nest_, axes, Min(base + x, extent - 1), map);
      Unflatten(nest_, shape_.k, Min(k, k_ - 1), map);
      Unflatten(nest_, shape_.batch, batch_, map);
      const Expr value = b_.At(side, map, {});
      const Expr staged = Select(InRange(k, k_), value, Number(b_.pool(), value.dtype(), 0));
      std::vector<Stmt> store = {SetAlloc(alloc, {kk, x}, staged)};
      const Expr inside = InRange(flat, all);
      if (inside.IsTrue()) {
        body.push_back(std::move(store[0]));
      } else {
        body.push_back(IfStmt(inside, std::move(store)));
      }
    }
  }

  void EmitProducts(std::vector<Stmt>& body) {
    VarId v = 0;
    const int64_t steps = z_.bk / z_.ks;
    const Expr kk = tk_ * steps + b_.IndexVar("kk", steps, &v);
    std::vector<Stmt> inner;
    std::vector<Expr> a, c;
    const auto named = [&](absl::string_view name, uint32_t alloc, Expr x) {
      VarId var = 0;
      const Expr value = b_.Read(alloc, {kk, x});
      const Expr read = b_.ValueVar(name, value.dtype(), &var);
      inner.push_back(LetStmt(var, value));
      return read;
    };
    for (int64_t i = 0; i < z_.tm; ++i) a.push_back(named(absl::StrCat("a", i), a_, ti_ + i * (z_.bm / z_.tm)));
    for (int64_t j = 0; j < z_.tn; ++j) c.push_back(named(absl::StrCat("b", j), bs_, tj_ + j * (z_.bn / z_.tn)));
    ForTile([&](int64_t i, int64_t j) {
      inner.push_back(SetAlloc(sum_, Ints(i, j), b_.Read(sum_, Ints(i, j)) + a[i] * c[j]));
    });
    body.push_back(ForStmt(ForMode::kUnroll, v, b_.pool().Int(0), b_.pool().Int(steps), std::move(inner)));
  }

  void EmitOwn(StoreSum store, std::vector<Stmt>& body) {
    ForTile([&](int64_t i, int64_t j) {
      Append(body, EmitStore(store, ti_ + i * (z_.bm / z_.tm), tj_ + j * (z_.bn / z_.tn),
                             [&](std::vector<Stmt>&) { return b_.Read(sum_, Ints(i, j)); }));
    });
  }

  // The sums of the ks groups, added in order; every invocation stores some of the outputs.
  void EmitCombined(StoreSum store, std::vector<Stmt>& body) {
    const DType acc = nest_.components[0].dtype;
    const uint32_t all = Shared("sums", acc, {z_.ks, z_.bm * z_.bn}, 0, body);
    ForTile([&](int64_t i, int64_t j) {
      const Expr at = (ti_ + i * (z_.bm / z_.tm)) * z_.bn + tj_ + j * (z_.bn / z_.tn);
      body.push_back(SetAlloc(all, {tk_, at}, b_.Read(sum_, Ints(i, j))));
    });
    body.push_back(BarrierStmt(Fence::kShared));
    for (int64_t first = 0; first < z_.bm * z_.bn; first += z_.threads()) {
      Append(body, b_.Below(t_ + first, z_.bm * z_.bn, "o", /*uniform=*/false, [&](Expr at) {
        return EmitStore(store, Div(at, z_.bn), Mod(at, z_.bn), [&](std::vector<Stmt>& out) {
          Expr sum = {};
          for (int64_t s = 0; s < z_.ks; ++s) {
            VarId v = 0;
            const Expr read = b_.ValueVar(absl::StrCat("s", s), acc, &v);
            out.push_back(LetStmt(v, b_.Read(all, {b_.pool().Int(s), at})));
            sum = s == 0 ? read : sum + read;
          }
          return sum;
        });
      }));
    }
  }

  std::vector<Stmt> EmitStore(StoreSum store, Expr row, Expr column,
                              absl::FunctionRef<Expr(std::vector<Stmt>& body)> value) {
    return b_.Below(row0_ + row, m_, "m", /*uniform=*/false, [&](Expr m) {
      return b_.Below(column0_ + column, n_, "n", /*uniform=*/false, [&](Expr n) {
        AxisMap map;
        Unflatten(nest_, shape_.m, m, map);
        Unflatten(nest_, shape_.n, n, map);
        Unflatten(nest_, shape_.batch, batch_, map);
        std::vector<Stmt> out;
        VarId v = 0;
        const Expr made = value(out);
        const Expr sum = b_.ValueVar("sum", nest_.components[0].dtype, &v);
        out.push_back(LetStmt(v, made));
        store(b_, map, m, n, batch_, part_, sum, out);
        return out;
      });
    });
  }

  uint32_t Shared(absl::string_view name, DType dtype, std::vector<int64_t> extents, int64_t skew,
                  std::vector<Stmt>& body) {
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
  std::vector<Expr> Ints(int64_t i, int64_t j) { return {b_.pool().Int(i), b_.pool().Int(j)}; }
  void ForTile(absl::FunctionRef<void(int64_t, int64_t)> f) const {
    for (int64_t i = 0; i < z_.tm; ++i) {
      for (int64_t j = 0; j < z_.tn; ++j) f(i, j);
    }
  }

  const Nest& nest_;
  const ContractShape& shape_;
  const Sizes z_;
  const int64_t split_;
  KernelBuilder b_;
  const int64_t m_, n_, k_, slabs_;
  uint32_t sum_ = 0, a_ = 0, bs_ = 0;
  Expr row0_ = {}, column0_ = {}, batch_ = {}, part_ = {}, t_ = {}, ti_ = {}, tj_ = {}, tk_ = {};
};

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  const ContractShape shape = ShapeOf(nest);
  const int64_t slabs = CeilDiv(Extent(nest, shape.k), nest.schedule.Int("bk", 16));
  const int64_t split = CeilDiv(slabs, CeilDiv(slabs, nest.schedule.Int("split", 1)));  // no part is empty
  return BuildContraction(nest, shape, split, target,
                          [&](const Nest& n, int64_t parts, StoreSum store) -> absl::StatusOr<Kernel> {
                            return TilesKernel(n, shape, parts).Build(store);
                          });
}

void InOrder(Schedule& s) {
  for (absl::string_view key : {"ks", "split"}) s.Set(key, 1);
  s.Set("in_order", 1);
}

constexpr ScheduleParam kParams[] = {{"bm", 32, "rows of a workgroup's tile"},
                                     {"bn", 32, "columns of a workgroup's tile"},
                                     {"bk", 16, "steps of a slab in shared memory"},
                                     {"tm", 2, "rows of an invocation"},
                                     {"tn", 2, "columns of an invocation"},
                                     {"ks", 1, "groups of invocations that share the steps of a slab"},
                                     {"split", 1, "parts of the slabs, added by a second kernel"},
                                     {"in_order", 0, "1: reduction axes run as the nest has them, not as memory does"}};

}  // namespace

const ScheduleFamily kTilesFamily = {.name = "tiles",
                                     .params = kParams,
                                     .matches = IsContraction,
                                     .legal = Legal,
                                     .candidates = Candidates,
                                     .in_order = InOrder,
                                     .cost = Cost,
                                     .build = Build,
                                     .doc = "sums of products by tiles in shared memory, on a GPU"};

}  // namespace agc
