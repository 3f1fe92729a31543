// rows: reductions over rows, then everything that needs their results. All stages are functions of the row axes R; a
// store covers R alone (row statistics) or R and the column axes C. A row belongs to one invocation (threads = 1) or to
// one workgroup, whose partial results are combined in a tree that does not depend on the subgroup width.
//   for workgroup row:  for each stage: partial over u*threads + t; combine;   then the stores over the columns
// split > 1: long rows that are too few to fill the device belong to several workgroups each. They write what they have
// to scratch memory, and the last one to arrive merges the parts in order.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/combine.h"
#include "passes/schedules/elements.h"
#include "passes/schedules/partials.h"
#include "passes/schedules/row_shape.h"
#include "passes/schedules/vector_width.h"

namespace agc {
namespace {

constexpr int64_t kMostResident = 64;  // elements of a row that an invocation keeps
constexpr int64_t kThreads = 256;      // of a workgroup that shares a row with others

bool Matches(const Nest& nest) {
  RowShape shape;
  return RowShapeOf(nest, shape) && ReadsStagesPlainly(nest);
}

absl::Status SplitLegal(const Nest& nest, int64_t threads, const Target& target) {
  RowShape shape;
  RowShapeOf(nest, shape);
  if (threads == 1 || !Splittable(nest, shape)) {
    return absl::InvalidArgumentError(absl::StrCat(nest.name,
                                                   ": rows are split where workgroups compute them, and neither a "
                                                   "stage nor a store along the row needs a result"));
  }
  const int64_t params = static_cast<int64_t>(nest.params.size()) + PartialParams(nest);
  const int64_t most = std::min(target.storage_buffers, target.push_constant_bytes / 8);
  if (params <= most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(nest.name, ": split rows need ", params, " buffers, the target allows ", most));
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
  const int64_t split = s.Int("split", 1);
  const int64_t vec = s.Int("vec", 1), unroll = s.Int("unroll", 1);
  if (split < 1 || unroll < 1 || unroll > 16 || vec < 1 || vec > 8) {
    return absl::InvalidArgumentError(absl::StrCat(nest.name, ": split is ", split, ", unroll ", unroll, " and vec ",
                                                   vec, ", expected at least 1, 1 to 16 and 1 to 8"));
  }
  if (threads > 1 && s.Int("resident", 0) != 0 && CeilDiv(LongestReduction(nest), threads) > kMostResident) {
    return absl::ResourceExhaustedError(
        absl::StrCat(nest.name, ": ", CeilDiv(LongestReduction(nest), threads),
                     " elements of a row would stay in the registers of an invocation, ", kMostResident, " at most"));
  }
  if (split > 1) AGC_RETURN_IF_ERROR(SplitLegal(nest, threads, target));
  int64_t bytes = threads > 1 ? CombineBytes(nest, threads, target) : 0;
  if (split > 1) bytes = 2 * bytes + 4;  // once for a part, once for all of them
  if (bytes > target.shared_bytes)
    return absl::ResourceExhaustedError(absl::StrCat(nest.name, ": the row combination needs ", bytes,
                                                     " bytes of shared memory, the target has ", target.shared_bytes));
  return absl::OkStatus();
}

// Workgroups that share a row: enough to fill the device, each with a few trips of its own. 1 where that gains less
// than the second round costs, a few microseconds.
int64_t SplitOf(const Nest& nest, const RowShape& shape, int64_t rows, int64_t length, const Target& target) {
  constexpr int64_t kTrips = 4, kGroupsPerUnit = 4;
  if (rows >= target.compute_units || length < 16 * 1024 || !Splittable(nest, shape)) return 1;
  return std::min({CeilDiv(kGroupsPerUnit * target.compute_units, rows), length / (kThreads * kTrips), kThreads});
}

// The largest power of two that is at most `limit` and gives every invocation of a row something to do.
int64_t Widest(int64_t limit, int64_t runs) {
  int64_t wide = kCombineGroup;
  while (wide * 2 <= std::min(limit, runs)) wide *= 2;
  return wide;
}

Schedule With(int64_t local, int64_t threads) {
  Schedule s{.family = "rows"};
  s.Set("local", local);
  s.Set("threads", threads);
  return s;
}

// A row by a workgroup of a GPU: a few runs of an invocation, which it keeps in registers if they fit.
Schedule Parallel(int64_t rows, int64_t length, int64_t vec, int64_t split, int64_t most, const Target& target) {
  while (vec > 1 && length / vec < target.subgroup_size) vec /= 2;  // lanes of a subgroup before vectors
  const int64_t runs = length / vec;
  int64_t threads = Widest(std::min(most, split > 1                     ? kThreads
                                          : rows < target.compute_units ? 1024
                                                                        : kThreads / 2),
                           runs);
  while (split == 1 && threads * 2 <= std::min<int64_t>(most, 512) && CeilDiv(runs, threads) > 4) threads *= 2;
  Schedule s = With(threads, threads);
  const ElementLoop loop{.lanes = threads, .vec = vec};
  const int64_t trips = CeilDiv(loop.Per(length, split), threads * vec);
  if (vec > 1) s.Set("vec", vec);
  if (split > 1) s.Set("split", split);
  if (split == 1 && trips * vec <= (threads > 512 ? 16 : 32)) {
    s.Set("resident", 1);
  } else if (trips > 1) {
    s.Set("unroll", std::min<int64_t>(4, trips));
  }
  return s;
}

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  RowShape shape;
  RowShapeOf(nest, shape);
  const int64_t rows = Extent(nest, shape.rows), length = LongestReduction(nest);
  const int64_t most = std::min(target.max_invocations, target.max_local_x);
  const int64_t lanes = target.compute_units * std::max<int64_t>(target.subgroup_size, 1);
  const Schedule serial = With(std::min<int64_t>(most, 32), 1);
  // A row to an invocation when that fills the device and rows are short; a CPU has few lanes to fill.
  const bool prefer_serial =
      kCombineGroup > most || length < 16 || (rows >= lanes && length <= (target.cpu() ? 4096 : 32));
  if (target.cpu()) {
    const int64_t wide = Widest(std::min<int64_t>(most, 64), length);
    return prefer_serial ? std::vector{serial, With(wide, wide)} : std::vector{With(wide, wide), serial};
  }
  std::vector<RunningExpr> values = RunningStages(nest);
  const std::vector<const NestStore*> wide = StoresOver(nest, shape, /*rows_only=*/false);
  for (RunningExpr& e : RunningStores(wide, shape.columns)) values.push_back(std::move(e));
  const int64_t vec = VectorWidth(nest, shape.rows, values, wide, shape.columns);
  const Schedule parallel = Parallel(rows, length, vec, 1, most, target);
  std::vector<Schedule> all = prefer_serial ? std::vector{serial, parallel} : std::vector{parallel, serial};
  const int64_t split = SplitOf(nest, shape, rows, length, target);
  if (split > 1) all.insert(all.begin(), Parallel(rows, length, vec, split, most, target));
  return all;
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  RowShape shape;
  RowShapeOf(nest, shape);
  double length = static_cast<double>(Extent(nest, shape.columns));
  for (const NestStage& stage : nest.stages) length += static_cast<double>(Extent(nest, stage.over));
  const double lanes = static_cast<double>(target.compute_units * std::max<int64_t>(target.subgroup_size, 1));
  const double work = length * static_cast<double>(Extent(nest, shape.rows));
  const int64_t invocations = Extent(nest, shape.rows) * s.Int("threads", 1) * s.Int("split", 1);
  return work / std::min(static_cast<double>(invocations), lanes) * 1e-3;
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

ElementLoop LoopOf(const Schedule& s) {
  return {.lanes = s.Int("threads", 1),
          .vec = s.Int("vec", 1),
          .unroll = s.Int("unroll", 1),
          .resident = s.Int("resident", 0) != 0};
}

// Workgroups that share a row: none of them without elements of the longest reduction.
int64_t PartsOf(const Nest& nest) {
  const int64_t length = LongestReduction(nest);
  return CeilDiv(length, LoopOf(nest.schedule).Per(length, nest.schedule.Int("split", 1)));
}

// The kernel of a workgroup per row, or of `split` workgroups per row.
class RowKernel {
 public:
  RowKernel(const Nest& nest, const RowShape& shape, const Target& target)
      : nest_(nest),
        shape_(shape),
        target_(target),
        loop_(LoopOf(nest.schedule)),
        threads_(loop_.lanes),
        parts_(PartsOf(nest)),
        b_(nest) {}

  absl::StatusOr<Built> Build() {
    Built built;
    std::vector<int32_t> args = SameArgs(nest_);
    const int64_t rows = Extent(nest_, shape_.rows);
    if (parts_ > 1) partials_ = AddPartials(b_, nest_, {rows, parts_}, rows, built, args);
    AGC_RETURN_IF_ERROR(b_.OverGroups(rows * parts_, threads_, target_, [&](Expr item, Expr t) {
      t_ = loop_.lane = t;
      row_ = Div(item, parts_);
      part_ = Mod(item, parts_);
      Unflatten(nest_, shape_.rows, row_, map_);
      return parts_ > 1 ? Part() : Whole();
    }));
    built.kernels.push_back({b_.Take(), std::move(args)});
    return built;
  }

 private:
  std::vector<Stmt> Whole() {
    std::vector<Stmt> body;
    for (const NestStage& stage : nest_.stages) {
      if (stage.kind == StageKind::kMap) {
        b_.EmitStage(stage, map_, stages_, body);
      } else {
        SetResult(stage, EmitReduction(stage, body));
      }
    }
    EmitRowStores(body);
    const int64_t columns = Extent(nest_, shape_.columns);
    EmitColumnStores({.first = b_.pool().Int(0), .per = columns, .length = columns}, body);
    return body;
  }

  // A part of the row; the last workgroup of the row to arrive merges all parts in order.
  std::vector<Stmt> Part() {
    std::vector<Stmt> body, publish, finish;
    for (const NestStage& stage : nest_.stages) {
      if (stage.kind == StageKind::kReduce)
        StorePartials(partials_, stage, EmitReduction(stage, body), {row_, part_}, publish);
    }
    body.push_back(IfStmt(EqZero(t_), std::move(publish)));
    const int64_t columns = Extent(nest_, shape_.columns), per = loop_.Per(columns, parts_);
    EmitColumnStores({.first = part_ * per, .per = per, .length = columns}, body);
    for (const NestStage& stage : nest_.stages) {
      if (stage.kind == StageKind::kMap) {
        b_.EmitStage(stage, map_, stages_, finish);
        continue;
      }
      const std::vector<uint32_t> acc = b_.EmitAccumulators(stage, finish);
      EmitElements(stage, b_.pool().Int(0), parts_, parts_, finish, [&](Index parts, Expr inside) {
        std::vector<Stmt> merge;
        for (Expr p : parts) {
          std::vector<Expr> values = LoadPartials(b_, nest_, partials_, stage, {row_, p});
          b_.EmitMerge(*stage.combiner, acc, OrIdentity(stage, inside, std::move(values)), merge);
        }
        return merge;
      });
      SetResult(stage, EmitCombine(b_, stage, acc, t_, threads_, target_, finish));
    }
    EmitRowStores(finish);
    body.push_back(IfLastStmt(partials_.counter, row_, b_.pool().Int(parts_), std::move(finish)));
    return body;
  }

  void SetResult(const NestStage& stage, absl::Span<const Expr> result) {
    for (size_t c = 0; c < result.size(); ++c) stages_[stage.first_component + static_cast<uint32_t>(c)] = result[c];
  }

  // The stage over this workgroup's elements of the row.
  std::vector<Expr> EmitReduction(const NestStage& stage, std::vector<Stmt>& body) {
    const std::vector<uint32_t> acc = b_.EmitAccumulators(stage, body);
    const int64_t length = Extent(nest_, stage.over), per = loop_.Per(length, parts_);
    EmitElements(stage, part_ * per, per, length, body, [&](Index elements, Expr inside) {
      std::vector<Stmt> all;
      for (Expr k : elements) {
        AxisMap inner = map_;
        Unflatten(nest_, stage.over, k, inner);
        std::vector<Expr> values;
        for (ExprId id : stage.values) values.push_back(b_.At(id, inner, stages_));
        std::vector<Stmt> merge;
        b_.EmitMerge(*stage.combiner, acc, OrIdentity(stage, inside, std::move(values)), merge);
        if (stage.when.valid()) merge = {IfStmt(b_.At(stage.when, inner, stages_), std::move(merge))};
        Append(all, std::move(merge));
      }
      return all;
    });
    return EmitCombine(b_, stage, acc, t_, threads_, target_, body);
  }

  // This invocation's elements of [first, first + per), those below length.
  void EmitElements(const NestStage& stage, Expr first, int64_t per, int64_t length, std::vector<Stmt>& body,
                    ElementBody merge) {
    loop_.Emit(b_, {.first = first, .per = per, .length = length, .ordered = stage.combiner->components > 1}, body,
               merge);
  }

  // Values that change nothing where an element does not exist.
  std::vector<Expr> OrIdentity(const NestStage& stage, Expr inside, std::vector<Expr> values) {
    for (size_t c = 0; c < values.size(); ++c) {
      const Scalar identity = stage.combiner->identity(static_cast<int>(c), values[c].dtype());
      values[c] = Select(inside, values[c], b_.pool().Const(identity));
    }
    return values;
  }

  void EmitRowStores(std::vector<Stmt>& body) {
    std::vector<Stmt> first;
    b_.EmitStores(StoresOver(nest_, shape_, /*rows_only=*/true), map_, stages_, first);
    if (!first.empty()) body.push_back(IfStmt(EqZero(t_), std::move(first)));
  }

  void EmitColumnStores(const ElementRange& range, std::vector<Stmt>& body) {
    const std::vector<const NestStore*> wide = StoresOver(nest_, shape_, /*rows_only=*/false);
    if (wide.empty()) return;
    loop_.Emit(b_, range, body, [&](Index elements, Expr inside) {
      std::vector<AxisMap> maps;
      for (Expr c : elements) Unflatten(nest_, shape_.columns, c, maps.emplace_back(map_));
      std::vector<Stmt> stores;
      b_.EmitStores(wide, maps, {stages_}, stores);
      return inside.IsTrue() ? std::move(stores) : std::vector<Stmt>{IfStmt(inside, std::move(stores))};
    });
  }

  const Nest& nest_;
  const RowShape& shape_;
  const Target& target_;
  ElementLoop loop_;
  const int64_t threads_, parts_;
  KernelBuilder b_;
  Partials partials_ = {};
  Expr t_ = {}, row_ = {}, part_ = {};
  AxisMap map_ = {};
  StageMap stages_ = {};
};

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  RowShape shape;
  RowShapeOf(nest, shape);
  if (nest.schedule.Int("threads", 1) > 1) return RowKernel(nest, shape, target).Build();
  KernelBuilder b(nest);
  AGC_RETURN_IF_ERROR(b.OverFlat(Extent(nest, shape.rows), nest.schedule.Int("local", 64), target,
                                 [&](Expr row) { return SerialRow(b, nest, shape, row); }));
  Built built;
  built.kernels.push_back({b.Take(), SameArgs(nest)});
  return built;
}

void InOrder(Schedule& s) {
  for (absl::string_view key : {"threads", "split"}) s.Set(key, 1);
}

constexpr ScheduleParam kParams[] = {{"local", 64, "invocations of a workgroup"},
                                     {"threads", 1, "invocations per row: 1, or local"},
                                     {"split", 1, "workgroups that share a row; the last one merges their parts"},
                                     {"vec", 1, "neighbouring elements an invocation takes at a time"},
                                     {"unroll", 1, "such runs in a loop, whose loads wait for no guard"},
                                     {"resident", 0, "1: a row stays in registers between its reductions"}};

}  // namespace

const ScheduleFamily kRowsFamily = {
    .name = "rows",
    .params = kParams,
    .matches = Matches,
    .legal = Legal,
    .candidates = Candidates,
    .in_order = InOrder,
    .cost = Cost,
    .build = Build,
    .doc = "reductions over rows and what follows from them, a row per invocation or workgroup"};

}  // namespace agc
