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

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/product_rows_kernel.h"

namespace agc {
namespace {

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

bool ShapeOf(const Nest& nest, ProductRowsShape& shape) {
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
  ProductRowsShape shape;
  return ShapeOf(nest, shape) && ReadsStagesPlainly(nest);
}

// Tiles of both sides, the sums, and what lanes exchange.
int64_t SharedBytes(const Nest& nest, const ProductRowsSizes& z) {
  int64_t words = z.bk * (z.bm + z.bn() + 2) + z.bm * (z.bn() + 1);
  if (z.lanes > 1) words += z.local * static_cast<int64_t>(nest.components.size() - 1);
  int64_t word = 4;
  for (const Component& c : nest.components) word = std::max<int64_t>(word, SizeOf(c.dtype));
  return word * words;
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  ProductRowsShape shape;
  ShapeOf(nest, shape);
  const ProductRowsSizes z = ProductRowsSizesOf(s, Extent(nest, shape.columns));
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
double CostOfProduct(const Nest& product, const ProductRowsSizes& z, const Target& target) {
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

Schedule ToSchedule(const ProductRowsSizes& z) {
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
  ProductRowsShape shape;
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
          ProductRowsSizes z{bm, bw, bk, tm, local, 1, columns};
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

absl::StatusOr<Built> Build(const Nest& nest, const Target&) {
  ProductRowsShape shape;
  ShapeOf(nest, shape);
  Built built;
  built.kernels.push_back({BuildProductRows(nest, shape), SameArgs(nest)});
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
    .build = Build,
    .doc = "a product of matrices and reductions over its rows or windows, on a GPU"};

}  // namespace agc
