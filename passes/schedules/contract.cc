// contract: sums of products by register tiles. Each invocation computes tm x tn outputs; M and N are the output axes
// of one side each, flattened (contract_shape.h). Left operands then depend on workgroup and loop variables only: one
// uniform load serves all lanes. No shared memory, no barriers: what suits a CPU-like target (docs/performance.md); for
// GPUs see tiles.cc.
//   for workgroup (n tiles, m tiles, batch x part), local t:
//     acc[i][j] = 0;   for k axes:  a_i = left(m_i, k), b_j = right(n_j, k);  acc[i][j] += a_i * b_j
//     stores with the accumulators in place of the stage
// Edges: rows and columns beyond the end repeat the last one and are never stored, so the loop has no guards of its
// own. split > 1 cuts the first reduction axis into parts; partial sums go to scratch, and a second kernel adds them in
// order.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/contract_shape.h"

namespace agc {
namespace {

constexpr int64_t kMaxTaps = 8;       // positions of the last reduction axis that are written out by choice
constexpr int64_t kMostTaps = 64;     // and that a schedule in text may ask for
constexpr int64_t kMaxTile = 64;      // accumulators of an invocation that candidates use
constexpr int64_t kMaxAccesses = 96;  // loads and stores of its epilogue

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const int64_t local = s.Int("local", 32), tm = s.Int("tm", 4), tn = s.Int("tn", 1);
  const int64_t most = std::min(target.max_invocations, target.max_local_x);
  if (local < 1 || local > most)
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": local is ", local, ", the target allows ", most));
  if (tm < 1 || tn < 1 || tm * tn > 128)
    return absl::InvalidArgumentError(
        absl::StrCat(nest.name, ": a tile of ", tm, " x ", tn, " outputs, expected 1 to 128 in all"));
  if (s.Int("split", 1) < 1)
    return absl::InvalidArgumentError(
        absl::StrCat(nest.name, ": split is ", s.Int("split", 1), ", expected 1 or more"));
  const ContractShape shape = ShapeOf(nest);
  if (s.Int("taps", 0) != 0 && !shape.k.empty() && nest.extent(shape.k.back()) > kMostTaps)
    return absl::InvalidArgumentError(absl::StrCat(nest.name, ": ", nest.extent(shape.k.back()),
                                                   " taps to be written out, expected ", kMostTaps, " at most"));
  const int64_t mt = (Extent(nest, shape.m) + tm - 1) / tm, z = Extent(nest, shape.batch) * s.Int("split", 1);
  if (mt > target.max_groups_y || z > target.max_groups_z) {
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": ", mt, " x ", z,
                                                     " workgroups in y and z, the target allows ", target.max_groups_y,
                                                     " x ", target.max_groups_z));
  }
  return absl::OkStatus();
}

// The tile height up to `most` that wastes least of m rows; the larger of equals.
int64_t TileOf(int64_t m, int64_t most) {
  int64_t best = 1;
  double waste = 1e9;
  for (int64_t t = 1; t <= std::min(m, most); ++t) {
    const double w = static_cast<double>((m + t - 1) / t * t) / static_cast<double>(m) + 0.25 / static_cast<double>(t);
    if (w <= waste) {
      waste = w;
      best = t;
    }
  }
  return best;
}

// Relative cost of one product: the multiply-add, its share of a uniform load (one serves all tn columns) and of a
// gathered load, which costs several multiply-adds and serves all tm rows. Where taps are written out and the columns
// of an invocation are neighbours, tn columns of `taps` taps need tn + taps - 1 gathers only. Idle lanes scale the
// whole. The weights were fitted to lavapipe (docs/performance.md).
double CostOfTile(int64_t m, int64_t n, int64_t innermost, int64_t taps, int64_t tm, int64_t tn, int64_t lanes) {
  const double rows = static_cast<double>(tm), columns = static_cast<double>(tn), t = static_cast<double>(taps);
  const double shared = innermost % tn == 0 ? (columns + t - 1) / (columns * t) : 1.0;
  const auto padded = [](int64_t size, int64_t unit) {
    return static_cast<double>((size + unit - 1) / unit * unit) / static_cast<double>(size);
  };
  return (1 + 1.5 / columns + 5.0 * shared / rows) * padded(m, tm) * padded(n, tn * lanes);
}

// Nanoseconds on a GPU, where operands come through the caches: every invocation issues its loads and multiply-adds,
// and waits for memory in each step unless others hide that. Taps that are written out share loads. The constants were
// fitted to 480 kernels of 12 products and convolutions on an H200 (tools/bench/schedules.py), off by a fifth.
double Nanoseconds(const Schedule& s, int64_t m, int64_t n, int64_t k, int64_t batch, const Target& target) {
  constexpr double kLanes = 128, kCycle = 0.481, kLaunch = 3440;
  constexpr double kUniform = 7.28, kGather = 6.63, kShared = 0.713, kStep = 1.87;  // issue slots
  constexpr double kLatency = 15.7, kAlone = 2.89;                                  // cycles of a step
  constexpr double kThreads = 2048, kRegisters = 65536, kGroups = 32;
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  const int64_t tm = s.Int("tm", 4), tn = s.Int("tn", 1), local = s.Int("local", 32);
  const double loads = (d(tm) * kUniform + d(tn) * kGather) * (s.Int("taps", 0) != 0 ? kShared : 1);
  const double issue = d(local) * d(k) * (d(tm * tn) + loads + kStep);
  const double alone = d(k) * (kLatency + kAlone * (d(tm * tn) + loads));
  const double registers = kRegisters / (d(local) * (d(tm * tn) + 4));
  const double resident = std::max(1.0, std::floor(std::min({kThreads / d(local), registers, kGroups})));
  const double groups = d(CeilDiv(m, tm) * CeilDiv(n, tn * local) * batch * s.Int("split", 1));
  const double per_unit = std::ceil(groups / d(std::max<int64_t>(1, target.compute_units)));
  return std::max(std::ceil(per_unit / resident) * alone, per_unit * issue / kLanes) * kCycle + kLaunch;
}

// On a GPU: small tiles, many workgroups, the cheapest first.
std::vector<Schedule> GpuCandidates(const Nest& nest, const Target& target) {
  const ContractShape shape = ShapeOf(nest);
  const int64_t m = Extent(nest, shape.m), n = Extent(nest, shape.n), k = Extent(nest, shape.k);
  const int64_t batch = Extent(nest, shape.batch);
  const int64_t taps = shape.k.empty() ? 1 : nest.extent(shape.k.back());
  std::vector<std::pair<double, Schedule>> all;
  for (int64_t tm : {1, 2, 4}) {
    for (int64_t tn : {1, 2, 4}) {
      for (int64_t local : {64, 128}) {
        Schedule s{.family = "contract"};
        s.Set("tm", tm);
        s.Set("tn", tn);
        s.Set("taps", taps > 1 && taps <= kMaxTaps ? 1 : 0);
        s.Set("local", local);
        s.Set("split", 1);
        if (tm == 1 || tm <= m) all.emplace_back(Nanoseconds(s, m, n, k, batch, target), std::move(s));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Schedule> best;
  for (auto& [cost, schedule] : all) best.push_back(std::move(schedule));
  return best;
}

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  if (!target.cpu()) return GpuCandidates(nest, target);
  const ContractShape shape = ShapeOf(nest);
  const int64_t m = Extent(nest, shape.m), n = Extent(nest, shape.n), batch = Extent(nest, shape.batch);
  const int64_t lanes = std::max<int64_t>(target.subgroup_size, 1),
                most = std::min(target.max_invocations, target.max_local_x);
  const int64_t wanted = target.compute_units * 8;  // workgroups, to fill the device evenly
  const int64_t last = shape.k.empty() ? 1 : nest.extent(shape.k.back()), taps = last <= kMaxTaps ? last : 1;
  const int64_t tm = TileOf(m, 10), innermost = shape.n.empty() ? 1 : nest.extent(shape.n.back());
  // Every output repeats the epilogue's loads and stores: long epilogues get small tiles, or drivers take seconds.
  const int64_t accesses = std::max<int64_t>(1, static_cast<int64_t>(nest.params.size()) - 2);
  const int64_t most_outputs = std::clamp<int64_t>(kMaxAccesses / accesses, tm, kMaxTile);
  std::vector<std::pair<double, Schedule>> all;
  for (int64_t tn : {8, 7, 5, 4, 2, 1}) {
    Schedule s{.family = "contract"};
    const int64_t columns = (n + tn - 1) / tn;
    int64_t local = lanes;
    while (local * 2 <= std::min<int64_t>(most, 64) && local < columns) local *= 2;
    const int64_t groups = (columns + local - 1) / local * ((m + tm - 1) / tm) * batch;
    const int64_t first = shape.k.empty() ? 1 : nest.extent(shape.k[0]), length = Extent(nest, shape.k);
    int64_t split = 1;
    if (groups < wanted && length >= 1024) split = std::min(first, (wanted + groups - 1) / groups);
    if (tm * tn > (split > 1 ? kMaxTile : most_outputs)) continue;  // parts are only stored
    s.Set("tm", tm);
    s.Set("tn", tn);
    s.Set("taps", taps > 1 ? 1 : 0);
    s.Set("local", local);
    s.Set("split", split);
    all.emplace_back(CostOfTile(m, n, innermost, taps, tm, tn, lanes), std::move(s));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Schedule> best;
  for (auto& [cost, schedule] : all) best.push_back(std::move(schedule));
  return best;
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  const ContractShape shape = ShapeOf(nest);
  return 1e-3 * Nanoseconds(s, Extent(nest, shape.m), Extent(nest, shape.n), Extent(nest, shape.k),
                            Extent(nest, shape.batch), target);
}

// One kernel under construction.
class Tile {
 public:
  Tile(const Nest& nest, const ContractShape& shape, const Target& target, int64_t split)
      : nest_(nest),
        stage_(nest.stages[0]),
        shape_(shape),
        target_(target),
        split_(split),
        b_(nest),
        tm_(nest.schedule.Int("tm", 4)),
        tn_(nest.schedule.Int("tn", 1)),
        local_(nest.schedule.Int("local", 32)),
        m_(Extent(nest, shape.m)),
        n_(Extent(nest, shape.n)),
        z_(Extent(nest, shape.batch)) {}

  absl::StatusOr<Kernel> Build(StoreSums store) {
    const int64_t nt = (n_ + tn_ * local_ - 1) / (tn_ * local_), mt = (m_ + tm_ - 1) / tm_, zt = z_ * split_;
    if (nt > target_.max_groups_x)
      return absl::ResourceExhaustedError(
          absl::StrCat(nest_.name, ": ", nt, " workgroups in x, the target allows ", target_.max_groups_x));
    VarId x = 0, y = 0, z = 0, t = 0;
    const Expr gx = b_.IndexVar("gn", nt, &x), gy = b_.IndexVar("gm", mt, &y), gz = b_.IndexVar("gz", zt, &z);
    const Expr lane = b_.IndexVar("t", local_, &t);
    batch_ = Mod(gz, z_);
    part_ = Div(gz, z_);
    for (int64_t i = 0; i < tm_; ++i) row_.push_back(gy * tm_ + i);
    quad_ = gx * local_ + lane;
    for (int64_t j = 0; j < tn_; ++j) column_.push_back(quad_ * tn_ + j);
    std::vector<Stmt> body;
    EmitSums(body);
    EmitStores(store, body);
    const auto loop = [&](ForMode mode, VarId v, int64_t extent, int dim) {
      body = {ForStmt(mode, v, b_.pool().Int(0), b_.pool().Int(extent), std::move(body), dim)};
    };
    loop(ForMode::kLocal, t, local_, 0);
    loop(ForMode::kWorkgroup, x, nt, 0);
    loop(ForMode::kWorkgroup, y, mt, 1);
    loop(ForMode::kWorkgroup, z, zt, 2);
    b_.kernel().local = {local_, 1, 1};
    b_.kernel().parts.push_back({.groups = {nt, mt, zt}, .body = std::move(body)});
    return b_.Take();
  }

 private:
  void EmitSums(std::vector<Stmt>& body) {
    const DType acc = nest_.components[0].dtype;
    sum_ = b_.AddAlloc("acc", AllocSpace::kRegister, acc, {tm_, tn_});
    Stmt alloc{.kind = StmtKind::kAlloc};
    alloc.target = sum_;
    body.push_back(alloc);
    ForTile([&](int64_t i, int64_t j) { body.push_back(SetAlloc(sum_, At(i, j), Number(b_.pool(), acc, 0))); });
    AxisMap k_map;
    std::vector<Stmt> inner;
    std::vector<VarId> vars(shape_.k.size());
    const bool expand = nest_.schedule.Int("taps", 0) != 0 && (split_ == 1 || shape_.k.size() > 1);
    const size_t loops = shape_.k.size() - (expand ? 1 : 0);
    for (size_t i = 0; i < loops; ++i) {
      k_map[shape_.k[i]] = b_.IndexVar(nest_.pool->var(shape_.k[i]).name, nest_.extent(shape_.k[i]), &vars[i]);
    }
    for (int64_t tap = 0; expand && tap < nest_.extent(shape_.k.back()); ++tap) {
      k_map[shape_.k.back()] = b_.pool().Int(tap);
      EmitProducts(k_map, inner);
    }
    if (!expand) EmitProducts(k_map, inner);
    for (size_t i = loops; i-- > 0;) {
      Expr begin = b_.pool().Int(0), end = b_.pool().Int(nest_.extent(shape_.k[i]));
      if (i == 0 && split_ > 1) {
        const int64_t per = (nest_.extent(shape_.k[0]) + split_ - 1) / split_;
        begin = part_ * per;
        end = Min(begin + per, nest_.extent(shape_.k[0]));
      }
      inner = {ForStmt(ForMode::kSerial, vars[i], begin, end, std::move(inner))};
    }
    Append(body, std::move(inner));
  }

  void EmitProducts(const AxisMap& k_map, std::vector<Stmt>& body) {
    const ExprId left = stage_.values[shape_.swapped ? 1 : 0], right = stage_.values[shape_.swapped ? 0 : 1];
    std::vector<Expr> a, c;
    const auto load = [&](ExprId side, absl::string_view name, const AxisMap& map) {
      VarId v = 0;
      const Expr value = b_.At(side, map, {});
      const Expr var = b_.ValueVar(name, value.dtype(), &v);
      body.push_back(LetStmt(v, value, stage_.loc));
      return var;
    };
    for (int64_t i = 0; i < tm_; ++i) {
      AxisMap map = k_map;
      Unflatten(nest_, shape_.m, Min(row_[i], m_ - 1), map);
      Unflatten(nest_, shape_.batch, batch_, map);
      a.push_back(load(left, absl::StrCat("a", i), map));
    }
    for (int64_t j = 0; j < tn_; ++j) {
      AxisMap map = k_map;
      // Whole groups of columns are clamped together, so that neighbours stay neighbours.
      Unflatten(nest_, shape_.n, n_ % tn_ == 0 ? Min(quad_, n_ / tn_ - 1) * tn_ + j : Min(column_[j], n_ - 1), map);
      Unflatten(nest_, shape_.batch, batch_, map);
      c.push_back(load(right, absl::StrCat("b", j), map));
    }
    ForTile(
        [&](int64_t i, int64_t j) { body.push_back(SetAlloc(sum_, At(i, j), b_.Read(sum_, At(i, j)) + a[i] * c[j])); });
  }

  void EmitStores(StoreSums store, std::vector<Stmt>& body) {
    const bool whole = n_ % tn_ == 0;  // then a group of columns is inside or outside as one
    std::vector<Stmt> all =
        b_.Below(quad_, whole ? n_ / tn_ : quad_.node().hi + 1, "q", /*uniform=*/false, [&](Expr quad) {
          std::vector<Stmt> rows;
          for (int64_t i = 0; i < tm_; ++i) {
            Append(rows,
                   b_.Below(row_[i], m_, "m", /*uniform=*/true, [&](Expr m) { return EmitRow(store, i, m, quad); }));
          }
          return rows;
        });
    Append(body, std::move(all));
  }

  std::vector<Stmt> EmitRow(StoreSums store, int64_t i, Expr m, Expr quad) {
    std::vector<Stmt> columns;
    for (int64_t j = 0; j < tn_; ++j) {
      Append(columns, b_.Below(quad * tn_ + j, n_, "n", /*uniform=*/false, [&](Expr n) {
        AxisMap map;
        Unflatten(nest_, shape_.m, m, map);
        Unflatten(nest_, shape_.n, n, map);
        Unflatten(nest_, shape_.batch, batch_, map);
        VarId v = 0;
        std::vector<Stmt> out;
        const Expr sum = b_.ValueVar("sum", nest_.components[0].dtype, &v);
        out.push_back(LetStmt(v, b_.Read(sum_, At(i, j))));
        store(b_, {{map, m, n, sum}}, batch_, part_, out);
        return out;
      }));
    }
    return columns;
  }

  std::vector<Expr> At(int64_t i, int64_t j) { return {b_.pool().Int(i), b_.pool().Int(j)}; }
  void ForTile(absl::FunctionRef<void(int64_t, int64_t)> f) {
    for (int64_t i = 0; i < tm_; ++i) {
      for (int64_t j = 0; j < tn_; ++j) f(i, j);
    }
  }

  const Nest& nest_;
  const NestStage& stage_;
  const ContractShape& shape_;
  const Target& target_;
  int64_t split_;
  KernelBuilder b_;
  int64_t tm_, tn_, local_, m_, n_, z_;
  uint32_t sum_ = 0;
  Expr batch_ = {}, part_ = {}, quad_ = {};
  std::vector<Expr> row_ = {}, column_ = {};
};

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  const ContractShape shape = ShapeOf(nest);
  const int64_t first = shape.k.empty() ? 1 : nest.extent(shape.k[0]);
  const int64_t per = (first + nest.schedule.Int("split", 1) - 1) / nest.schedule.Int("split", 1);
  const int64_t split = (first + per - 1) / per;  // no part is empty
  return BuildContraction(nest, shape, split, target, [&](const Nest& n, int64_t parts, StoreSums store) {
    return Tile(n, shape, target, parts).Build(store);
  });
}

void InOrder(Schedule& s) {
  s.Set("split", 1);
  s.Set("in_order", 1);
}

constexpr ScheduleParam kParams[] = {{"tm", 4, "rows of an invocation's tile"},
                                     {"tn", 1, "columns of an invocation's tile"},
                                     {"taps", 0, "1: the last reduction axis is written out, so that taps share loads"},
                                     {"local", 32, "invocations of a workgroup, along the columns"},
                                     {"split", 1, "parts of the first reduction axis, added by a second kernel"},
                                     {"in_order", 0, "1: reduction axes run as the nest has them, not as memory does"}};

}  // namespace

const ScheduleFamily kContractFamily = {
    .name = "contract",
    .params = kParams,
    .matches = IsContraction,
    .legal = Legal,
    .candidates = Candidates,
    .in_order = InOrder,
    .cost = Cost,
    .measured = true,
    .build = Build,
    .doc = "sums of products by register tiles, convolutions and their gradients too"};

}  // namespace agc
