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
#include "passes/schedules/partials.h"
#include "passes/schedules/tiles_kernel.h"

namespace agc {
namespace {

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const TileSizes z = TileSizesOf(s);
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
  const bool last = s.Int("split", 1) > 1 && s.Int("last", 0) != 0;
  const int64_t bytes = word * z.shared_words() + (last ? 4 : 0);  // and how many have arrived
  if (z.threads() > most || bytes > target.shared_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": schedule tiles: ", z.threads(), " invocations and ",
                                                     bytes, " bytes of shared memory, the target allows ", most,
                                                     " and ", target.shared_bytes));
  }
  const int64_t buffers = std::min(target.storage_buffers, target.push_constant_bytes / 8);
  const int64_t params = static_cast<int64_t>(nest.params.size()) + PartialParams(nest);
  if (last && params > buffers) {
    return absl::ResourceExhaustedError(
        absl::StrCat(nest.name, ": schedule tiles: ", params, " buffers, the target allows ", buffers));
  }
  const ContractShape shape = ShapeOf(nest);
  const auto [gx, gy, gz] = TileGroups(nest, shape, z, s.Int("split", 1), target);
  if (gx > target.max_groups_x || gy > target.max_groups_y || gz > target.max_groups_z) {
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": schedule tiles: ", gx, " x ", gy, " x ", gz,
                                                     " workgroups, the target allows ", target.max_groups_x, " x ",
                                                     target.max_groups_y, " x ", target.max_groups_z));
  }
  return absl::OkStatus();
}

struct ProductSize {
  int64_t m, n, k, batch;
};
ProductSize SizeOfProduct(const Nest& nest) {
  const ContractShape shape = ShapeOf(nest);
  return {Extent(nest, shape.m), Extent(nest, shape.n), Extent(nest, shape.k), Extent(nest, shape.batch)};
}

// What cutting the slabs costs: parts are stored, and added by a second kernel or by the last workgroup of a tile,
// whose invocations have `outputs` results each. Fitted with the rest.
double NanosecondsOfParts(const ProductSize& p, int64_t split, bool last, double outputs, double rounds) {
  constexpr double kStorePart = 35.8, kLast = 1340, kLastPart = 22.2, kSecond = 3080, kSecondPart = 0.00344;
  const double parts = static_cast<double>(split);
  if (split == 1) return 0;
  const double stored = kStorePart * outputs * rounds;
  if (last) return stored + kLast + kLastPart * outputs * parts;
  return stored + kSecond + kSecondPart * static_cast<double>(p.m * p.n * p.batch) * parts;
}

// Nanoseconds of a product on a GPU. A multiprocessor issues a multiply-add per lane and cycle; besides them it reads
// four neighbours at once from shared memory and brings slabs there, decoding where each element lies. A slab waits for
// memory and two barriers, which other workgroups on the same multiprocessor hide. The constants were fitted to 1,600
// kernels of 38 products and convolutions on an H200 (tools/bench/schedules.py): what is chosen by them took 5% longer
// than the quickest there on average, and predictions for schedules near the quickest are off by a fifth (root of the
// mean square).
double Nanoseconds(const TileSizes& z, const ProductSize& p, int64_t split, bool last, const Target& target) {
  constexpr double kLanes = 128, kCycle = 0.627;                 // of a multiprocessor; nanoseconds
  constexpr double kRead = 0.546, kStage = 13.1, kAlone = 1.29;  // issue slots; factor without company
  constexpr double kLatency = 343, kTail = 17, kCombine = 3.8;   // cycles
  constexpr double kLaunch = 4030;                               // nanoseconds
  constexpr double kThreads = 2048, kRegisters = 65536, kOwnRegisters = 110, kGroups = 32, kSharedBytes = 227 * 1024;
  const auto d = [](int64_t x) { return static_cast<double>(x); };
  const double threads = d(z.threads()), sums = d(z.tm * z.tn), outputs = d(z.bm * z.bn) / threads;
  const double groups = d(CeilDiv(p.m, z.bm) * CeilDiv(p.n, z.bn) * p.batch * split);
  const double slabs = d(CeilDiv(CeilDiv(p.k, z.bk), split));
  const double staged = d((z.bm + z.bn) * z.bk);
  const double issue = threads * d(z.bk / z.ks) * (sums + kRead * d(z.tm + z.tn) / 4) + kStage * staged;
  const double work = issue / kLanes;  // of a slab
  const double alone =
      kAlone * issue / threads * std::max(1.0, threads / kLanes) + kLatency;  // of one workgroup's slab
  const double shared = kSharedBytes / (4 * d(z.shared_words()) + 1024);
  const double registers = kRegisters / (threads * (sums + kOwnRegisters + staged / threads));
  const double resident = std::max(1.0, std::floor(std::min({kThreads / threads, shared, registers, kGroups})));
  const double per_unit = std::ceil(groups / d(std::max<int64_t>(1, target.compute_units)));
  const double rounds = std::ceil(per_unit / resident);
  const double tail = kTail + (z.ks > 1 ? kCombine * d(z.ks) * outputs : 0);
  const double cycles = slabs * std::max(rounds * alone, per_unit * work) + rounds * tail;
  return cycles * kCycle + kLaunch + NanosecondsOfParts(p, split, last, outputs, rounds);
}

constexpr TileSizes kSizes[] = {
    {128, 128, 16, 8, 8, 1}, {64, 128, 16, 8, 8, 1}, {128, 64, 16, 8, 8, 1}, {64, 64, 16, 8, 8, 1},
    {128, 128, 8, 16, 8, 1}, {64, 64, 16, 8, 4, 1},  {64, 64, 16, 4, 8, 1},  {64, 64, 16, 4, 4, 1},
    {64, 128, 16, 8, 4, 1},  {32, 64, 16, 4, 4, 1},  {64, 32, 16, 4, 4, 1},  {32, 32, 16, 4, 4, 1},
    {32, 32, 32, 4, 4, 4},   {32, 32, 32, 4, 2, 2},  {16, 128, 16, 4, 4, 1}, {16, 64, 16, 4, 4, 1},
    {16, 256, 16, 4, 8, 1},  {8, 256, 16, 4, 4, 1},  {8, 128, 16, 4, 4, 1},  {8, 128, 16, 4, 4, 2},
    {16, 64, 32, 4, 4, 4},   {16, 32, 32, 4, 4, 4},  {16, 16, 32, 4, 4, 8},  {16, 16, 32, 2, 2, 4},
    {16, 16, 64, 4, 4, 16},  {8, 64, 32, 4, 4, 4},   {8, 32, 32, 4, 4, 8},   {8, 16, 64, 4, 4, 16},
    {8, 8, 64, 4, 4, 32},    {8, 8, 64, 2, 2, 16},   {128, 16, 16, 4, 4, 1}, {64, 16, 32, 4, 4, 4}};

// More parts take the last workgroup, which has the whole device to itself, longer than a second kernel: 128 parts of a
// convolution's gradient took it 90 us.
constexpr int64_t kMostForLast = 8;

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  if (target.cpu()) return {};
  const ProductSize p = SizeOfProduct(nest);
  if (p.k < 4) return {};  // an outer product has nothing to stage
  std::vector<std::pair<double, Schedule>> all;
  for (const TileSizes& z : kSizes) {
    for (int64_t split = 1; split <= CeilDiv(p.k, z.bk) && split <= 256; split *= 2) {
      for (bool last : {false, true}) {
        if (last && (split == 1 || split > kMostForLast)) continue;
        Schedule s{.family = "tiles"};
        s.Set("bm", z.bm);
        s.Set("bn", z.bn);
        s.Set("bk", z.bk);
        s.Set("tm", z.tm);
        s.Set("tn", z.tn);
        s.Set("ks", z.ks);
        s.Set("ahead", 1);
        s.Set("split", split);
        if (split > 1) s.Set("last", last ? 1 : 0);
        all.emplace_back(Nanoseconds(z, p, split, last, target), std::move(s));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Schedule> best;
  for (auto& [cost, schedule] : all) best.push_back(std::move(schedule));
  return best;
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  return 1e-3 * Nanoseconds(TileSizesOf(s), SizeOfProduct(nest), s.Int("split", 1), s.Int("last", 0) != 0, target);
}

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  const ContractShape shape = ShapeOf(nest);
  const int64_t slabs = CeilDiv(Extent(nest, shape.k), nest.schedule.Int("bk", 16));
  const int64_t split = CeilDiv(slabs, CeilDiv(slabs, nest.schedule.Int("split", 1)));  // no part is empty
  return BuildTiles(nest, shape, split, target);
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
                                     {"ahead", 0, "1: the next slab is loaded while this one is multiplied"},
                                     {"raster", 8, "tiles of rows that run together; 0: rows in y, columns in x"},
                                     {"split", 1, "parts of the slabs"},
                                     {"last", 0, "1: the last workgroup of a tile adds its parts; 0: a second kernel"},
                                     {"in_order", 0, "1: reduction axes run as the nest has them, not as memory does"}};

}  // namespace

TileSizes TileSizesOf(const Schedule& s) {
  return {s.Int("bm", 32), s.Int("bn", 32), s.Int("bk", 16),   s.Int("tm", 2),
          s.Int("tn", 2),  s.Int("ks", 1),  s.Int("ahead", 0), s.Int("raster", 8)};
}

std::array<int64_t, 3> TileGroups(const Nest& nest, const ContractShape& shape, const TileSizes& z, int64_t split,
                                  const Target& target) {
  const int64_t across = CeilDiv(Extent(nest, shape.n), z.bn), down = CeilDiv(Extent(nest, shape.m), z.bm);
  const int64_t deep = Extent(nest, shape.batch) * split;
  if (z.raster > 0 && across * down <= target.max_groups_x) return {across * down, 1, deep};
  return {across, down, deep};
}

const ScheduleFamily kTilesFamily = {.name = "tiles",
                                     .params = kParams,
                                     .matches = IsContraction,
                                     .legal = Legal,
                                     .candidates = Candidates,
                                     .in_order = InOrder,
                                     .cost = Cost,
                                     .measured = true,
                                     .build = Build,
                                     .doc = "sums of products by tiles in shared memory, on a GPU"};

}  // namespace agc
