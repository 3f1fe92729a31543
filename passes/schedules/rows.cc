// rows: reductions over rows, then everything that needs their results. All stages are functions of the row axes R; a
// store covers R alone (row statistics) or R and the column axes C. A row belongs to one invocation (threads = 1) or to
// one workgroup, whose partial results are combined in a tree that does not depend on the subgroup width.
//   for workgroup row:  for each stage: partial over u*threads + t; combine;   then the stores over the columns
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/combine.h"
#include "passes/schedules/tools.h"

namespace agc {
namespace {

struct RowShape {
  std::vector<VarId> rows = {}, columns = {};
};

bool Shape(const Nest& nest, RowShape& shape) {
  if (nest.stages.empty() || nest.stores.empty()) return false;
  shape.rows = nest.components[0].axes;
  const auto in_rows = [&](VarId v) { return std::find(shape.rows.begin(), shape.rows.end(), v) != shape.rows.end(); };
  for (const Component& c : nest.components) {
    if (c.axes.size() != shape.rows.size() || !std::all_of(c.axes.begin(), c.axes.end(), in_rows)) return false;
  }
  for (const NestStage& stage : nest.stages) {
    if (stage.kind == StageKind::kContract || stage.kind == StageKind::kScan) return false;
  }
  for (const NestStore& store : nest.stores) {
    std::vector<VarId> columns, axes = StoreAxes(nest, store);
    size_t rows = 0;
    for (VarId v : axes) {
      if (in_rows(v)) ++rows;
      if (!in_rows(v)) columns.push_back(v);
    }
    if (rows != shape.rows.size()) return false;
    if (!columns.empty() && !shape.columns.empty() && columns != shape.columns) return false;
    if (!columns.empty()) shape.columns = columns;
  }
  return true;
}

bool Matches(const Nest& nest) {
  RowShape shape;
  return Shape(nest, shape) && ReadsStagesPlainly(nest);
}

// Of the reductions that look at all their elements; the others are short, but how short is known at run time only.
int64_t LongestReduction(const Nest& nest) {
  int64_t longest = 1;
  for (const NestStage& stage : nest.stages) {
    if (LiveElements(nest, stage).pool == nullptr) longest = std::max(longest, Extent(nest, stage.over));
  }
  return longest;
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const int64_t local = s.Int("local", 64), threads = s.Int("threads", 1);
  const int64_t most = std::min(target.max_invocations, target.max_local_x);
  if (local < 1 || local > most)
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": local is ", local, ", the target allows ", most));
  if (threads != 1 && threads != local)
    return absl::InvalidArgumentError(
        absl::StrCat(nest.name, ": threads is ", threads, ", expected 1 or local (", local, ")"));
  if (threads > 1 && (threads % kCombineGroup != 0 || (threads & (threads - 1)) != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(nest.name, ": threads is ", threads, ", expected a power of two from ", kCombineGroup));
  }
  const int64_t bytes = threads > 1 ? CombineBytes(nest, threads, target) : 0;
  if (bytes > target.shared_bytes)
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": the row combination needs ", bytes,
                                                     " bytes of shared memory, the target has ", target.shared_bytes));
  return absl::OkStatus();
}

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  RowShape shape;
  Shape(nest, shape);
  const int64_t rows = Extent(nest, shape.rows), length = LongestReduction(nest);
  const int64_t most = std::min(target.max_invocations, target.max_local_x);
  const int64_t lanes = target.compute_units * std::max<int64_t>(target.subgroup_size, 1);
  const auto with = [&](int64_t local, int64_t threads) {
    Schedule s{.family = "rows"};
    s.Set("local", local);
    s.Set("threads", threads);
    return s;
  };
  int64_t wide = kCombineGroup;
  while (wide * 2 <= std::min<int64_t>(most, target.cpu()                  ? 64
                                             : rows < target.compute_units ? 1024
                                                                           : 256) &&
         wide * 2 <= length)
    wide *= 2;
  const Schedule serial = with(std::min<int64_t>(most, 32), 1), parallel = with(wide, wide);
  // A row to an invocation when that fills the device and rows are short; a CPU has few lanes to fill.
  const bool prefer_serial = wide > most || length < 16 || (rows >= lanes && length <= (target.cpu() ? 4096 : 32));
  return prefer_serial ? std::vector<Schedule>{serial, parallel} : std::vector<Schedule>{parallel, serial};
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  RowShape shape;
  Shape(nest, shape);
  double length = static_cast<double>(Extent(nest, shape.columns));
  for (const NestStage& stage : nest.stages) length += static_cast<double>(Extent(nest, stage.over));
  const double lanes = static_cast<double>(target.compute_units * std::max<int64_t>(target.subgroup_size, 1));
  const double work = length * static_cast<double>(Extent(nest, shape.rows));
  return work / std::min(static_cast<double>(Extent(nest, shape.rows) * s.Int("threads", 1)), lanes) * 1e-3;
}

// The stores of row statistics, or those that cover the columns too.
std::vector<const NestStore*> StoresOver(const Nest& nest, const RowShape& shape, bool rows_only) {
  std::vector<const NestStore*> all;
  for (const NestStore& store : nest.stores) {
    if ((StoreAxes(nest, store).size() == shape.rows.size()) == rows_only) all.push_back(&store);
  }
  return all;
}

// One row per invocation.
std::vector<Stmt> SerialRow(KernelBuilder& b, const Nest& nest, const RowShape& shape, Expr row) {
  AxisMap map;
  Unflatten(nest, shape.rows, row, map);
  StageMap stages;
  std::vector<Stmt> body, wide;
  for (const NestStage& stage : nest.stages) b.EmitStage(stage, map, stages, body);
  VarId c = 0;
  const int64_t columns = Extent(nest, shape.columns);
  Unflatten(nest, shape.columns, b.IndexVar("c", columns, &c), map);
  b.EmitStores(StoresOver(nest, shape, /*rows_only=*/true), map, stages, body);
  b.EmitStores(StoresOver(nest, shape, /*rows_only=*/false), map, stages, wide);
  if (!wide.empty())
    body.push_back(ForStmt(ForMode::kSerial, c, b.pool().Int(0), b.pool().Int(columns), std::move(wide)));
  return body;
}

// Partial result of thread t, which takes elements u*threads + t; combiners that depend on order take a run of
// neighbouring elements per thread instead.
void EmitPartial(KernelBuilder& b, const Nest& nest, const NestStage& stage, Expr t, int64_t threads,
                 const AxisMap& map, const StageMap& stages, absl::Span<const uint32_t> acc, std::vector<Stmt>& body) {
  const int64_t length = Extent(nest, stage.over), trips = (length + threads - 1) / threads;
  VarId u = 0;
  const Expr trip = b.IndexVar("u", trips, &u);
  const Expr element = stage.combiner->components == 1 ? trip * threads + t : t * trips + trip;
  std::vector<Stmt> loop = b.Below(element, length, "k", /*uniform=*/false, [&](Expr k) {
    AxisMap inner = map;
    Unflatten(nest, stage.over, k, inner);
    std::vector<Expr> values;
    for (ExprId id : stage.values) values.push_back(b.At(id, inner, stages));
    std::vector<Stmt> merge;
    b.EmitMerge(*stage.combiner, acc, values, merge);
    if (stage.when.valid()) merge = {IfStmt(b.At(stage.when, inner, stages), std::move(merge))};
    return merge;
  });
  body.push_back(ForStmt(ForMode::kSerial, u, b.pool().Int(0), b.pool().Int(trips), std::move(loop)));
}

std::vector<Stmt> WorkgroupRow(KernelBuilder& b, const Nest& nest, const RowShape& shape, Expr row, Expr t,
                               int64_t threads, const Target& target) {
  AxisMap map;
  Unflatten(nest, shape.rows, row, map);
  StageMap stages;
  std::vector<Stmt> body;
  for (const NestStage& stage : nest.stages) {
    if (stage.kind == StageKind::kMap) {
      b.EmitStage(stage, map, stages, body);
      continue;
    }
    const std::vector<uint32_t> acc = b.EmitAccumulators(stage, body);
    EmitPartial(b, nest, stage, t, threads, map, stages, acc, body);
    const std::vector<Expr> result = EmitCombine(b, stage, acc, t, threads, target, body);
    for (size_t c = 0; c < result.size(); ++c) stages[stage.first_component + static_cast<uint32_t>(c)] = result[c];
  }
  VarId u = 0;
  const int64_t columns = Extent(nest, shape.columns), trips = (columns + threads - 1) / threads;
  const Expr column = b.IndexVar("u", trips, &u) * threads + t;
  const auto stores = [&](bool rows_only) {
    std::vector<Stmt> all;
    b.EmitStores(StoresOver(nest, shape, rows_only), map, stages, all);
    return all;
  };
  if (std::vector<Stmt> narrow = stores(true); !narrow.empty()) body.push_back(IfStmt(EqZero(t), std::move(narrow)));
  if (shape.columns.empty()) return body;
  std::vector<Stmt> wide = b.Below(column, columns, "c", /*uniform=*/false, [&](Expr c) {
    Unflatten(nest, shape.columns, c, map);
    return stores(false);
  });
  body.push_back(ForStmt(ForMode::kSerial, u, b.pool().Int(0), b.pool().Int(trips), std::move(wide)));
  return body;
}

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  RowShape shape;
  Shape(nest, shape);
  KernelBuilder b(nest);
  const int64_t rows = Extent(nest, shape.rows), local = nest.schedule.Int("local", 64),
                threads = nest.schedule.Int("threads", 1);
  if (threads == 1) {
    AGC_RETURN_IF_ERROR(b.OverFlat(rows, local, target, [&](Expr row) { return SerialRow(b, nest, shape, row); }));
  } else {
    AGC_RETURN_IF_ERROR(b.OverGroups(rows, threads, target, [&](Expr row, Expr t) {
      return WorkgroupRow(b, nest, shape, row, t, threads, target);
    }));
  }
  Built built;
  built.kernels.push_back({b.Take(), SameArgs(nest)});
  return built;
}

constexpr ScheduleParam kParams[] = {{"local", 64, "invocations of a workgroup"},
                                     {"threads", 1, "invocations per row: 1, or local"}};

}  // namespace

const ScheduleFamily kRowsFamily = {
    .name = "rows",
    .params = kParams,
    .matches = Matches,
    .legal = Legal,
    .candidates = Candidates,
    .in_order = [](Schedule& s) { s.Set("threads", 1); },
    .cost = Cost,
    .build = Build,
    .doc = "reductions over rows and what follows from them, a row per invocation or workgroup"};

}  // namespace agc
