#include "passes/schedules/tools.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"

namespace agc {
namespace {
constexpr int64_t kMaxInvocations = (int64_t{1} << 32) - 1;  // item numbers are 32 bits wide in shaders
}

Stmt ForStmt(ForMode mode, VarId var, Expr begin, Expr end, std::vector<Stmt> body, int dim) {
  Stmt s{.kind = StmtKind::kFor};
  s.mode = mode;
  s.var = var;
  s.begin = begin.id;
  s.end = end.id;
  s.dim = static_cast<uint8_t>(dim);
  s.body = std::move(body);
  return s;
}

Stmt IfStmt(Expr cond, std::vector<Stmt> body, bool uniform) {
  Stmt s{.kind = StmtKind::kIf};
  s.cond = cond.id;
  s.uniform = uniform;
  s.body = std::move(body);
  return s;
}

Stmt LetStmt(VarId var, Expr value, Loc loc) {
  Stmt s{.kind = StmtKind::kLet};
  s.var = var;
  s.value = value.id;
  s.loc = loc;
  return s;
}

Stmt SetAlloc(uint32_t alloc, std::vector<Expr> index, Expr value) {
  Stmt s{.kind = StmtKind::kStore};
  s.to_alloc = true;
  s.target = alloc;
  for (Expr e : index) s.index.push_back(e.id);
  s.value = value.id;
  return s;
}

Stmt SetBuffer(uint32_t param, absl::Span<const Expr> index, Expr value, Loc loc) {
  Stmt s{.kind = StmtKind::kStore};
  s.target = param;
  for (Expr e : index) s.index.push_back(e.id);
  s.value = value.id;
  s.loc = loc;
  return s;
}

Stmt AllocStmt(uint32_t alloc) {
  Stmt s{.kind = StmtKind::kAlloc};
  s.target = alloc;
  return s;
}

Stmt BarrierStmt(Fence fence) {
  Stmt s{.kind = StmtKind::kBarrier};
  s.fence = fence;
  return s;
}

Stmt IfLastStmt(uint32_t counter, Expr index, Expr count, std::vector<Stmt> body) {
  Stmt s{.kind = StmtKind::kIfLast};
  s.target = counter;
  s.index = {index.id};
  s.count = count.id;
  s.body = std::move(body);
  return s;
}

void Append(std::vector<Stmt>& body, std::vector<Stmt> more) {
  body.insert(body.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

int64_t Extent(const Nest& nest, absl::Span<const VarId> axes) {
  int64_t n = 1;
  for (VarId v : axes) n *= nest.extent(v);
  return n;
}

void Unflatten(const Nest& nest, absl::Span<const VarId> axes, Expr flat, AxisMap& map) {
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t n = nest.extent(axes[i]);
    map[axes[i]] = i == 0 ? flat : Mod(flat, n);
    flat = Div(flat, n);
  }
}

std::vector<VarId> StoreAxes(const Nest& nest, const NestStore& store) {
  std::vector<VarId> axes;
  const auto add = [&](ExprId id) {
    for (VarId v : FreeVars(nest.at(id))) {
      if (std::find(axes.begin(), axes.end(), v) == axes.end()) axes.push_back(v);
    }
  };
  for (ExprId id : store.index) add(id);
  add(store.value);
  return axes;
}

bool ReadsStagesPlainly(const Nest& nest) {
  const auto plain = [&](ExprId id) {
    for (Expr e : PostOrder(nest.at(id))) {
      if (!e.is(ExprKind::kStage)) continue;
      const std::vector<VarId>& axes = nest.components[e.node().ref].axes;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (!(e.arg(static_cast<int>(i)) == nest.pool->Var(axes[i]))) return false;
      }
    }
    return true;
  };
  for (const NestStage& stage : nest.stages) {
    if (!std::all_of(stage.values.begin(), stage.values.end(), plain) || (stage.when.valid() && !plain(stage.when)))
      return false;
  }
  return std::all_of(nest.stores.begin(), nest.stores.end(), [&](const NestStore& s) {
    return plain(s.value) && std::all_of(s.index.begin(), s.index.end(), plain);
  });
}

std::vector<const NestStore*> StoresOf(const Nest& nest) {
  std::vector<const NestStore*> all;
  for (const NestStore& store : nest.stores) all.push_back(&store);
  return all;
}

std::vector<int32_t> SameArgs(const Nest& nest) {
  std::vector<int32_t> args(nest.params.size());
  for (size_t i = 0; i < args.size(); ++i) args[i] = static_cast<int32_t>(i);
  return args;
}

KernelBuilder::KernelBuilder(const Nest& nest) : nest_(nest) {
  kernel_.name = nest.name;
  kernel_.label = nest.label;
  kernel_.loc = nest.loc;
  // Elementwise arithmetic is the same in every kernel; only contractions leave multiply-adds to the driver.
  kernel_.precise = std::none_of(nest.stages.begin(), nest.stages.end(),
                                 [](const NestStage& s) { return s.kind == StageKind::kContract; });
  for (const NestParam& p : nest.params) {
    names_[p.name] = 0;
    kernel_.params.push_back({.name = p.name,
                              .type = p.type,
                              .stored = p.type.dtype,
                              .access = p.written ? KernelAccess::kWrite : KernelAccess::kRead});
  }
}

std::string KernelBuilder::Unique(absl::string_view name) {
  const auto [it, fresh] = names_.try_emplace(std::string(name), 0);
  return fresh ? std::string(name) : Unique(absl::StrCat(name, "_", ++it->second));
}

Expr KernelBuilder::IndexVar(absl::string_view name, int64_t extent, VarId* id) {
  *id = pool().Declare({.name = Unique(name), .lo = 0, .hi = extent - 1});
  return pool().Var(*id);
}

Expr KernelBuilder::ValueVar(absl::string_view name, DType dtype, VarId* id) {
  *id = pool().Declare({.name = Unique(name), .dtype = dtype});
  return pool().Var(*id);
}

uint32_t KernelBuilder::AddAlloc(absl::string_view name, AllocSpace space, DType dtype, std::vector<int64_t> extents) {
  kernel_.allocs.push_back({.name = Unique(name), .space = space, .dtype = dtype, .extents = std::move(extents)});
  return static_cast<uint32_t>(kernel_.allocs.size() - 1);
}

uint32_t KernelBuilder::AddParam(absl::string_view name, TensorType type, KernelAccess access, bool coherent) {
  const DType stored = type.dtype;
  kernel_.params.push_back(
      {.name = Unique(name), .type = std::move(type), .stored = stored, .access = access, .coherent = coherent});
  return static_cast<uint32_t>(kernel_.params.size() - 1);
}

uint32_t KernelBuilder::AddShared(absl::string_view name, DType dtype, std::vector<int64_t> extents, int64_t skew,
                                  std::vector<Stmt>& body) {
  const uint32_t alloc = AddAlloc(name, AllocSpace::kShared, dtype, std::move(extents));
  kernel_.allocs[alloc].skew = skew;
  body.push_back(AllocStmt(alloc));
  return alloc;
}

Expr KernelBuilder::Read(uint32_t alloc, Index index) {
  return pool().AllocLoad(alloc, index, kernel_.allocs[alloc].dtype);
}

Expr KernelBuilder::At(ExprId value, const AxisMap& axes, const StageMap& stages, const LoadMap& loads) {
  struct Values {
    const StageMap& stages;
    const LoadMap& loads;
  } values{stages, loads};
  Substitution s{.pool = &pool()};
  for (const auto& [axis, e] : axes) s.vars[axis] = e;
  s.context = &values;
  s.hooks.emplace_back(ExprKind::kStage, [](void* context, Expr original, Index) {
    const StageMap& map = static_cast<const Values*>(context)->stages;
    const auto it = map.find(original.node().ref);
    AGC_CHECK(it != map.end());
    return it->second;
  });
  s.hooks.emplace_back(ExprKind::kLoad, [](void* context, Expr original, Index args) {
    const LoadMap& map = static_cast<const Values*>(context)->loads;
    const auto it = map.find(original.id.index);
    return it == map.end() ? Rebuild(original, args) : it->second;
  });
  return Substitute(nest_.at(value), s);
}

void KernelBuilder::EmitMerge(const Combiner& combiner, absl::Span<const uint32_t> acc, absl::Span<const Expr> values,
                              std::vector<Stmt>& body) {
  std::vector<Expr> state, merged(acc.size());
  for (uint32_t a : acc) state.push_back(Read(a));
  combiner.merge(state, values, absl::MakeSpan(merged));
  if (acc.size() == 1) {
    body.push_back(SetAlloc(acc[0], {}, merged[0]));
    return;
  }
  std::vector<Expr> named;  // all components are computed from the old state before any is set
  for (size_t c = 0; c < acc.size(); ++c) {
    VarId v = 0;
    named.push_back(ValueVar("next", merged[c].dtype(), &v));
    body.push_back(LetStmt(v, merged[c]));
  }
  for (size_t c = 0; c < acc.size(); ++c) body.push_back(SetAlloc(acc[c], {}, named[c]));
}

std::vector<uint32_t> KernelBuilder::EmitAccumulators(const NestStage& stage, std::vector<Stmt>& body) {
  std::vector<uint32_t> acc;
  for (int c = 0; c < stage.combiner->components; ++c) {
    const Component& component = nest_.components[stage.first_component + static_cast<uint32_t>(c)];
    acc.push_back(AddAlloc(component.name, AllocSpace::kRegister, component.dtype));
    body.push_back(AllocStmt(acc.back()));
    body.push_back(SetAlloc(acc.back(), {}, pool().Const(stage.combiner->identity(c, component.dtype))));
  }
  return acc;
}

namespace {
// The values a stage merges at one element: its own, or the product of a contraction's sides.
std::vector<Expr> ElementOf(KernelBuilder& b, const NestStage& stage, const AxisMap& axes, const StageMap& stages) {
  std::vector<Expr> values;
  for (ExprId id : stage.values) values.push_back(b.At(id, axes, stages));
  if (stage.kind == StageKind::kContract) values = {values[0] * values[1]};
  return values;
}
}  // namespace

Expr LiveElements(const Nest& nest, const NestStage& stage) {
  if (stage.kind != StageKind::kReduce || stage.over.size() != 1) return {};
  Expr bound = {};
  for (size_t c = 0; c < stage.values.size(); ++c) {
    const Expr e = nest.at(stage.values[c]);
    if (!e.is(ExprKind::kAlu) || ScalarOps()[e.node().ref].name != "select") return {};
    const Expr cond = e.arg(0), otherwise = e.arg(2);
    if (!cond.is(ExprKind::kAlu) || ScalarOps()[cond.node().ref].name != "lt" || !otherwise.IsConst()) return {};
    const Expr number = cond.arg(0), end = cond.arg(1);
    if (!number.is(ExprKind::kFromIndex) || !(number.arg(0) == nest.pool->Var(stage.over[0]))) return {};
    // Numbers of elements wrap where the dtype does not hold them, and so would the bound n of the loop's end.
    const int64_t n = nest.extent(stage.over[0]);
    if (Scalar::Int(end.dtype(), n).i() != n) return {};
    const std::vector<VarId> vars = FreeVars(end);
    if (std::find(vars.begin(), vars.end(), stage.over[0]) != vars.end()) return {};
    const Scalar identity = stage.combiner->identity(static_cast<int>(c), otherwise.dtype());
    if (!(Scalar{otherwise.dtype(), static_cast<uint64_t>(otherwise.node().payload)} == identity)) return {};
    if (bound.pool != nullptr && !(bound == end)) return {};
    bound = end;
  }
  return bound;
}

// Where the serial loop of a reduction over one axis ends: at its extent, or before elements that change nothing.
Expr KernelBuilder::EndOf(const NestStage& stage, VarId axis, const AxisMap& axes, const StageMap& stages) {
  const int64_t n = nest_.extent(axis);
  const Expr live = LiveElements(nest_, stage);
  if (live.pool == nullptr) return pool().Int(n);
  const Expr end = At(live.id, axes, stages);
  const auto number = [&](int64_t v) { return Number(pool(), end.dtype(), static_cast<double>(v)); };
  return ToIndex(Alu("min", {Alu("max", {end, number(0)}), number(n)}), 0, n);
}

void KernelBuilder::EmitStage(const NestStage& stage, const AxisMap& axes, StageMap& stages, std::vector<Stmt>& body) {
  if (stage.kind == StageKind::kMap) {
    for (size_t c = 0; c < stage.values.size(); ++c) {
      VarId v = 0;
      const Component& component = nest_.components[stage.first_component + c];
      const Expr value = At(stage.values[c], axes, stages);
      stages[stage.first_component + static_cast<uint32_t>(c)] = ValueVar(component.name, component.dtype, &v);
      body.push_back(LetStmt(v, value, stage.loc));
    }
    return;
  }
  const std::vector<uint32_t> acc = EmitAccumulators(stage, body);
  AxisMap inner = axes;
  std::vector<VarId> vars;
  for (VarId axis : stage.over) {
    VarId v = 0;
    inner[axis] = IndexVar(nest_.pool->var(axis).name, nest_.extent(axis), &v);
    vars.push_back(v);
  }
  std::vector<Stmt> loop;
  EmitMerge(*stage.combiner, acc, ElementOf(*this, stage, inner, stages), loop);
  if (stage.when.valid()) loop = {IfStmt(At(stage.when, inner, stages), std::move(loop))};
  for (size_t i = vars.size(); i-- > 0;) {
    const Expr end = EndOf(stage, stage.over[i], axes, stages);
    loop = {ForStmt(ForMode::kSerial, vars[i], pool().Int(0), end, std::move(loop))};
  }
  Append(body, std::move(loop));
  for (size_t c = 0; c < acc.size(); ++c) {
    VarId v = 0;
    const Component& component = nest_.components[stage.first_component + c];
    const Expr value = Read(acc[c]);
    stages[stage.first_component + static_cast<uint32_t>(c)] = ValueVar(component.name, component.dtype, &v);
    body.push_back(LetStmt(v, value, stage.loc));
  }
}

void KernelBuilder::EmitStores(absl::Span<const NestStore* const> stores, const AxisMap& axes, const StageMap& stages,
                               std::vector<Stmt>& body, const LoadMap& loads) {
  EmitStores(stores, absl::MakeConstSpan(&axes, 1), absl::MakeConstSpan(&stages, 1), body, loads);
}

void KernelBuilder::EmitStores(absl::Span<const NestStore* const> stores, absl::Span<const AxisMap> positions,
                               absl::Span<const StageMap> stages, std::vector<Stmt>& body, const LoadMap& loads) {
  std::vector<Stmt> writes;
  for (size_t i = 0; i < positions.size(); ++i) {
    const AxisMap& axes = positions[i];
    const StageMap& here = stages[stages.size() == 1 ? 0 : i];
    for (const NestStore* store : stores) {
      Expr value = At(store->value, axes, here, loads);
      if (stores.size() * positions.size() > 1 && !value.is(ExprKind::kVar) && !value.IsConst()) {
        VarId v = 0;
        const Expr name = ValueVar("out", value.dtype(), &v);
        body.push_back(LetStmt(v, value, nest_.loc));
        value = name;
      }
      std::vector<Expr> index;
      for (ExprId id : store->index) index.push_back(At(id, axes, here));
      writes.push_back(SetBuffer(store->param, index, value, nest_.loc));
    }
  }
  Append(body, std::move(writes));
}

std::vector<Stmt> KernelBuilder::Below(Expr index, int64_t n, absl::string_view name, bool uniform,
                                       absl::FunctionRef<std::vector<Stmt>(Expr)> make) {
  if (index.node().hi < n) return make(index);
  VarId v = 0;
  const Expr proven = IndexVar(name, n, &v);
  std::vector<Stmt> body = {LetStmt(v, index)};
  std::vector<Stmt> rest = make(proven);
  Append(body, std::move(rest));
  return {IfStmt(InRange(index, n), std::move(body), uniform)};
}

absl::Status KernelBuilder::Over(int64_t groups, int64_t local, const Target& target,
                                 absl::FunctionRef<std::vector<Stmt>(Expr group, Expr t)> make) {
  if (groups > kMaxInvocations / local) {
    return absl::UnimplementedError(
        absl::StrCat(nest_.name, ": more than 2^32 invocations are needed; split the tensor"));
  }
  const int64_t gx = std::min(groups, target.max_groups_x), gy = (groups + gx - 1) / gx;
  if (gy > target.max_groups_y) {
    return absl::ResourceExhaustedError(absl::StrCat(nest_.name, ": ", groups,
                                                     " workgroups are needed, the target allows ", target.max_groups_x,
                                                     " x ", target.max_groups_y));
  }
  VarId x = 0, y = 0, t = 0;
  const Expr group = IndexVar("g", gx, &x) + (gy > 1 ? IndexVar("gy", gy, &y) * gx : pool().Int(0));
  std::vector<Stmt> body = make(group, IndexVar("t", local, &t));
  const auto loop = [&](ForMode mode, VarId v, int64_t n, int dim) {
    body = {ForStmt(mode, v, pool().Int(0), pool().Int(n), std::move(body), dim)};
  };
  loop(ForMode::kLocal, t, local, 0);
  loop(ForMode::kWorkgroup, x, gx, 0);
  if (gy > 1) loop(ForMode::kWorkgroup, y, gy, 1);
  kernel_.local = {local, 1, 1};
  kernel_.parts.push_back({.groups = {gx, gy, 1}, .body = std::move(body)});
  return absl::OkStatus();
}

absl::Status KernelBuilder::OverFlat(int64_t total, int64_t local, const Target& target,
                                     absl::FunctionRef<std::vector<Stmt>(Expr flat)> make) {
  return Over((total + local - 1) / local, local, target,
              [&](Expr group, Expr t) { return Below(group * local + t, total, "i", /*uniform=*/false, make); });
}

absl::Status KernelBuilder::OverGroups(int64_t items, int64_t threads, const Target& target,
                                       absl::FunctionRef<std::vector<Stmt>(Expr item, Expr t)> make) {
  return Over(items, threads, target, [&](Expr item, Expr t) {
    return Below(item, items, "row", /*uniform=*/true, [&](Expr row) { return make(row, t); });
  });
}

}  // namespace agc
