// columns: reductions whose results lie side by side in memory where their elements do not, such as sums over leading
// axes. Neighbouring invocations take neighbouring results; `ty` of them share the elements of one, and their partial
// results are merged in order through shared memory.
//   for workgroup (block of columns, part), local (x, y):  for each stage: partial over u*ty + y; merge over y
//                                                           then the stores, those over further axes shared among y
// split > 1 cuts the elements among workgroups, whose parts the last one to arrive merges in order.
// In the words of row_shape.h the results are rows, whatever lies along them columns; here a "result" is one position
// of the row axes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/schedules/contract_shape.h"
#include "passes/schedules/elements.h"
#include "passes/schedules/partials.h"
#include "passes/schedules/row_shape.h"

namespace agc {
namespace {

struct Sizes {
  int64_t tx, ty, per, split, unroll;
  int64_t results() const { return tx * per; }  // of a workgroup
};

Sizes SizesOf(const Schedule& s) {
  return {s.Int("tx", 32), s.Int("ty", 8), s.Int("per", 1), s.Int("split", 1), s.Int("unroll", 1)};
}

bool Matches(const Nest& nest) {
  RowShape shape;
  return RowShapeOf(nest, shape) && ReadsStagesPlainly(nest) && !shape.rows.empty();
}

// Partial results of all stages, each in memory of its own.
int64_t SharedBytes(const Nest& nest, const Sizes& z) {
  int64_t bytes = 0;
  for (const NestStage& stage : nest.stages) {
    for (int c = 0; stage.kind == StageKind::kReduce && c < stage.combiner->components; ++c) {
      const DType dtype = nest.components[stage.first_component + static_cast<uint32_t>(c)].dtype;
      bytes += std::max<int64_t>(4, SizeOf(dtype)) * z.results() * z.ty;
    }
  }
  return z.split > 1 ? 2 * bytes + 4 : bytes;
}

absl::Status Legal(const Nest& nest, const Schedule& s, const Target& target) {
  const Sizes z = SizesOf(s);
  const auto refuse = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat(nest.name, ": schedule columns: ", why));
  };
  if (std::min({z.tx, z.ty, z.per, z.split, z.unroll}) < 1) return refuse("sizes are at least 1");
  if (z.per > 8 || z.unroll > 16) return refuse("per is at most 8, unroll at most 16");
  RowShape shape;
  RowShapeOf(nest, shape);
  if (z.split > 1 && (!shape.columns.empty() || !Splittable(nest, shape)))
    return refuse("results are split where no stage needs another one's and nothing is stored along them");
  const int64_t most = std::min(target.max_invocations, target.max_local_x);
  const int64_t bytes = SharedBytes(nest, z);
  if (z.tx * z.ty > most || bytes > target.shared_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(nest.name, ": schedule columns: ", z.tx * z.ty, " invocations and ", bytes,
                     " bytes of shared memory, the target allows ", most, " and ", target.shared_bytes));
  }
  const int64_t params = static_cast<int64_t>(nest.params.size()) + (z.split > 1 ? PartialParams(nest) : 0);
  const int64_t buffers = std::min(target.storage_buffers, target.push_constant_bytes / 8);
  if (z.split == 1 || params <= buffers) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(nest.name, ": schedule columns: ", params, " buffers, the target allows ", buffers));
}

// Whether results lie side by side in what the reductions load, and elements do not.
bool SideBySide(const Nest& nest, const RowShape& shape) {
  bool beside = false;
  for (const NestStage& stage : nest.stages) {
    for (ExprId value : stage.values) {
      beside = beside || StrideInLoads(nest, value, shape.rows.back()) == 1;
      for (VarId axis : stage.over) {
        if (nest.extent(axis) > 1 && StrideInLoads(nest, value, axis) == 1) return false;
      }
    }
  }
  return beside;
}

int64_t PowerOfTwo(int64_t n, int64_t most) {
  int64_t p = 1;
  while (p * 2 <= std::min(n, most)) p *= 2;
  return p;
}

// `per` results an invocation, and enough workgroups for the device if the elements suffice.
Schedule Candidate(const Nest& nest, const RowShape& shape, int64_t per, const Target& target) {
  constexpr int64_t kTrips = 8, kGroupsPerUnit = 4, kMostParts = 256;
  const int64_t results = Extent(nest, shape.rows), length = LongestReduction(nest);
  const int64_t tx = PowerOfTwo(2 * CeilDiv(results, per) - 1, 32), blocks = CeilDiv(results, tx * per);
  const auto rows = [&](int64_t threads) {
    return PowerOfTwo(length / 2, std::min({threads, target.max_invocations, target.max_local_x}) / tx);
  };
  int64_t ty = rows(256);
  int64_t split =
      std::min({CeilDiv(kGroupsPerUnit * target.compute_units, blocks), length / (ty * kTrips), kMostParts});
  if (split < 2 || blocks >= 2 * target.compute_units || !shape.columns.empty() || !Splittable(nest, shape)) split = 1;
  if (split == 1 && blocks < target.compute_units) ty = rows(512);
  Schedule s{.family = "columns"};
  s.Set("tx", tx);
  s.Set("ty", ty);
  s.Set("per", per);
  s.Set("split", split);
  s.Set("unroll", std::clamp<int64_t>(length / (ty * split), 1, 4));
  return s;
}

std::vector<Schedule> Candidates(const Nest& nest, const Target& target) {
  constexpr int64_t kElements = 8192;  // of a multiprocessor, from which on vectors gain more than invocations
  RowShape shape;
  RowShapeOf(nest, shape);
  const int64_t results = Extent(nest, shape.rows), length = LongestReduction(nest);
  // A software device gains nothing from barriers, and short reductions are one invocation's work.
  if (target.cpu() || length < 16 || !SideBySide(nest, shape)) return {};
  std::vector<Schedule> all;
  for (int64_t per : {4, 2, 1}) {
    const bool few = per > 1 && results * length < kElements * target.compute_units;
    if (few || nest.extent(shape.rows.back()) % per != 0 || results < per * 16) continue;
    all.push_back(Candidate(nest, shape, per, target));
    if (all.back().Int("split", 1) == 1) continue;
    all.push_back(all.back());
    all.back().Set("split", 1);
  }
  return all;
}

double Cost(const Nest& nest, const Schedule& s, const Target& target) {
  RowShape shape;
  RowShapeOf(nest, shape);
  const Sizes z = SizesOf(s);
  double work = static_cast<double>(Extent(nest, shape.columns));
  for (const NestStage& stage : nest.stages) work += static_cast<double>(Extent(nest, stage.over));
  const double results = static_cast<double>(Extent(nest, shape.rows));
  const double lanes = static_cast<double>(target.compute_units * std::max<int64_t>(target.subgroup_size, 1));
  return work * results / std::min(results / static_cast<double>(z.per) * static_cast<double>(z.ty * z.split), lanes) *
         1e-3;
}

ElementLoop LoopOf(const Sizes& z, Expr y) { return {.lane = y, .lanes = z.ty, .unroll = z.unroll}; }

// One kernel under construction.
class ColumnKernel {
 public:
  ColumnKernel(const Nest& nest, const RowShape& shape, const Target& target)
      : nest_(nest),
        shape_(shape),
        target_(target),
        z_(SizesOf(nest.schedule)),
        results_(Extent(nest, shape.rows)),
        blocks_(CeilDiv(results_, z_.results())),
        length_(LongestReduction(nest)),
        parts_(CeilDiv(length_, LoopOf(z_, {}).Per(length_, z_.split))),
        b_(nest) {}

  absl::StatusOr<Built> Build() {
    Built built;
    std::vector<int32_t> args = SameArgs(nest_);
    if (parts_ > 1) partials_ = AddPartials(b_, nest_, {parts_, results_}, blocks_, built, args);
    AGC_RETURN_IF_ERROR(b_.OverGroups(blocks_ * parts_, z_.tx * z_.ty, target_, [&](Expr item, Expr t) {
      Place(item, t);
      return parts_ > 1 ? Part() : Whole();
    }));
    built.kernels.push_back({b_.Take(), std::move(args)});
    return built;
  }

 private:
  // Neighbouring workgroups take neighbouring blocks.
  void Place(Expr item, Expr t) {
    block_ = Mod(item, blocks_);
    part_ = Div(item, blocks_);
    x_ = Mod(t, z_.tx);
    y_ = Div(t, z_.tx);
    const Expr group = block_ * z_.tx + x_;
    for (int64_t j = 0; j < z_.per; ++j) {
      result_.push_back(group * z_.per + j);
      // What lies beyond the last result repeats it and is not stored; whole groups repeat together.
      const Expr inside =
          results_ % z_.per == 0 ? Min(group, results_ / z_.per - 1) * z_.per + j : Min(result_.back(), results_ - 1);
      clamped_.push_back(inside);
      maps_.emplace_back();
      stages_.emplace_back();
      Unflatten(nest_, shape_.rows, inside, maps_.back());
    }
  }

  std::vector<Stmt> Whole() {
    std::vector<Stmt> body;
    for (const NestStage& stage : nest_.stages) {
      if (stage.kind == StageKind::kMap) {
        EmitMap(stage, body);
      } else {
        const Accumulators acc = EmitElements(stage, body);
        EmitMerged(stage, acc, body);
      }
    }
    EmitStores(body);
    return body;
  }

  std::vector<Stmt> Part() {
    std::vector<Stmt> body, finish;
    for (const NestStage& stage : nest_.stages) {
      if (stage.kind == StageKind::kMap) continue;
      const Accumulators acc = EmitElements(stage, body);
      EmitMerged(stage, acc, body);
      for (int64_t j = 0; j < z_.per; ++j) {
        std::vector<Stmt> publish = b_.Below(result_[j], results_, "c", /*uniform=*/false, [&](Expr c) {
          std::vector<Stmt> store;
          StorePartials(partials_, stage, ResultOf(stage, j), {part_, c}, store);
          return store;
        });
        body.push_back(IfStmt(EqZero(y_), std::move(publish)));
      }
    }
    for (const NestStage& stage : nest_.stages) {
      if (stage.kind == StageKind::kMap) {
        EmitMap(stage, finish);
      } else {
        EmitMerged(stage, EmitParts(stage, finish), finish);
      }
    }
    EmitStores(finish);
    body.push_back(IfLastStmt(partials_.counter, block_, b_.pool().Int(parts_), std::move(finish)));
    return body;
  }

  using Accumulators = std::vector<std::vector<uint32_t>>;  // by result of the invocation, then component

  Accumulators Declare(const NestStage& stage, std::vector<Stmt>& body) {
    Accumulators acc;
    for (int64_t j = 0; j < z_.per; ++j) acc.push_back(b_.EmitAccumulators(stage, body));
    return acc;
  }

  void EmitMap(const NestStage& stage, std::vector<Stmt>& body) {
    for (int64_t j = 0; j < z_.per; ++j) b_.EmitStage(stage, maps_[j], stages_[j], body);
  }

  ElementLoop Lanes() const { return LoopOf(z_, y_); }

  // The stage's elements that fall to this invocation.
  Accumulators EmitElements(const NestStage& stage, std::vector<Stmt>& body) {
    Accumulators acc = Declare(stage, body);
    const int64_t length = Extent(nest_, stage.over), per = Lanes().Per(length, parts_);
    const ElementRange range{
        .first = part_ * per, .per = per, .length = length, .ordered = stage.combiner->components > 1};
    Lanes().Emit(b_, range, body, [&](Index k, Expr) {
      std::vector<Stmt> all;
      for (int64_t j = 0; j < z_.per; ++j) {
        AxisMap inner = maps_[j];
        Unflatten(nest_, stage.over, k[0], inner);
        std::vector<Expr> values;
        for (ExprId id : stage.values) values.push_back(b_.At(id, inner, stages_[j]));
        std::vector<Stmt> merge;
        b_.EmitMerge(*stage.combiner, acc[j], values, merge);
        if (stage.when.valid()) merge = {IfStmt(b_.At(stage.when, inner, stages_[j]), std::move(merge))};
        Append(all, std::move(merge));
      }
      return all;
    });
    return acc;
  }

  // The parts that fall to this invocation.
  Accumulators EmitParts(const NestStage& stage, std::vector<Stmt>& body) {
    Accumulators acc = Declare(stage, body);
    const ElementRange range{
        .first = b_.pool().Int(0), .per = parts_, .length = parts_, .ordered = stage.combiner->components > 1};
    Lanes().Emit(b_, range, body, [&](Index p, Expr) {
      std::vector<Stmt> merge;
      for (int64_t j = 0; j < z_.per; ++j)
        b_.EmitMerge(*stage.combiner, acc[j], LoadPartials(b_, nest_, partials_, stage, {p[0], clamped_[j]}), merge);
      return merge;
    });
    return acc;
  }

  // What the invocations of one result have, merged in their order; all of them get it.
  void EmitMerged(const NestStage& stage, const Accumulators& acc, std::vector<Stmt>& body) {
    const size_t n = acc[0].size();
    std::vector<uint32_t> shared;
    for (size_t c = 0; c < n; ++c) {
      const DType dtype = nest_.components[stage.first_component + c].dtype;
      shared.push_back(b_.AddAlloc("shares", AllocSpace::kShared, dtype, {z_.ty, z_.results()}));
      Stmt alloc{.kind = StmtKind::kAlloc};
      alloc.target = shared.back();
      body.push_back(std::move(alloc));
    }
    // Neighbouring invocations use neighbouring words.
    const auto place = [&](Expr y, int64_t j) { return std::vector<Expr>{y, x_ + j * z_.tx}; };
    for (int64_t j = 0; j < z_.per; ++j) {
      for (size_t c = 0; c < n; ++c) body.push_back(SetAlloc(shared[c], place(y_, j), b_.Read(acc[j][c])));
    }
    body.push_back(BarrierStmt(Fence::kShared));
    for (int64_t j = 0; j < z_.per; ++j) {
      std::vector<Expr> result(n);
      for (int64_t y = 0; y < z_.ty; ++y) {
        std::vector<Expr> next, merged(n);
        for (size_t c = 0; c < n; ++c) next.push_back(Named(b_.Read(shared[c], place(b_.pool().Int(y), j)), body));
        if (y == 0) {
          result = next;
          continue;
        }
        stage.combiner->merge(result, next, absl::MakeSpan(merged));
        for (size_t c = 0; c < n; ++c) result[c] = Named(merged[c], body);
      }
      for (size_t c = 0; c < n; ++c) stages_[j][stage.first_component + static_cast<uint32_t>(c)] = result[c];
    }
  }

  Expr Named(Expr value, std::vector<Stmt>& body) {
    VarId v = 0;
    const Expr var = b_.ValueVar("share", value.dtype(), &v);
    body.push_back(LetStmt(v, value));
    return var;
  }

  std::vector<Expr> ResultOf(const NestStage& stage, int64_t j) const {
    std::vector<Expr> values;
    for (int c = 0; c < stage.combiner->components; ++c)
      values.push_back(stages_[j].at(stage.first_component + static_cast<uint32_t>(c)));
    return values;
  }

  void EmitStores(std::vector<Stmt>& body) {
    const int64_t columns = Extent(nest_, shape_.columns);
    const auto stores = [&](bool rows_only, int64_t j, Expr c) {
      return b_.Below(result_[j], results_, "c", /*uniform=*/false, [&](Expr result) {
        AxisMap map = maps_[j];
        Unflatten(nest_, shape_.rows, result, map);
        if (!rows_only) Unflatten(nest_, shape_.columns, c, map);
        std::vector<Stmt> all;
        b_.EmitStores(StoresOver(nest_, shape_, rows_only), map, stages_[j], all);
        return all;
      });
    };
    std::vector<Stmt> narrow;
    for (int64_t j = 0; j < z_.per && !StoresOver(nest_, shape_, true).empty(); ++j)
      Append(narrow, stores(true, j, {}));
    if (!narrow.empty()) body.push_back(IfStmt(EqZero(y_), std::move(narrow)));
    if (shape_.columns.empty()) return;
    const ElementRange range{.first = b_.pool().Int(0), .per = columns, .length = columns};
    Lanes().Emit(b_, range, body, [&](Index c, Expr) {
      std::vector<Stmt> wide;
      for (int64_t j = 0; j < z_.per; ++j) Append(wide, stores(false, j, c[0]));
      return wide;
    });
  }

  const Nest& nest_;
  const RowShape& shape_;
  const Target& target_;
  const Sizes z_;
  const int64_t results_, blocks_, length_, parts_;
  KernelBuilder b_;
  Partials partials_ = {};
  Expr block_ = {}, part_ = {}, x_ = {}, y_ = {};
  std::vector<Expr> result_ = {}, clamped_ = {};  // by result of the invocation
  std::vector<AxisMap> maps_ = {};
  std::vector<StageMap> stages_ = {};
};

absl::StatusOr<Built> Build(const Nest& nest, const Target& target) {
  RowShape shape;
  RowShapeOf(nest, shape);
  return ColumnKernel(nest, shape, target).Build();
}

void InOrder(Schedule& s) {
  for (absl::string_view key : {"ty", "split"}) s.Set(key, 1);
}

constexpr ScheduleParam kParams[] = {{"tx", 32, "invocations of a workgroup side by side"},
                                     {"ty", 8, "invocations that share the elements of a result"},
                                     {"per", 1, "neighbouring results of an invocation"},
                                     {"split", 1, "workgroups that share a result; the last one merges their parts"},
                                     {"unroll", 1, "elements of an invocation whose loads wait for no guard"}};

}  // namespace

const ScheduleFamily kColumnsFamily = {
    .name = "columns",
    .params = kParams,
    .matches = Matches,
    .legal = Legal,
    .candidates = Candidates,
    .in_order = InOrder,
    .cost = Cost,
    .build = Build,
    .doc = "reductions over leading axes, neighbouring results by neighbouring invocations, on a GPU"};

}  // namespace agc
