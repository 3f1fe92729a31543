// fuse-horizontally: independent kernels of one epoch become one dispatch whose parts are their loop trees, side by
// side on ranges of workgroups. A hundred updates of small parameters then cost one launch. Only small kernels of equal
// workgroups gain: one that fills the device many times over does not notice its launch.
//   dispatch @k1 groups [2, 1, 1] (%a, %x) epoch 3         dispatch @k1_x2 groups [5, 1, 1] (%a, %x, %b) epoch 3
//   dispatch @k2 groups [3, 1, 1] (%b, %x) epoch 3    ->
// Parts share register and shared memory of equal shape, and the parameters that are bound to one buffer.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "passes/pass.h"
#include "passes/registry.h"
#include "passes/step_uses.h"

namespace agc {
namespace {

constexpr int64_t kMostWaves = 16;       // how often a kernel may fill the device and still gain
constexpr size_t kMostParts = 128;       // of a kernel: drivers compile every part
constexpr int64_t kLittleShared = 4096;  // bytes that do not limit how many workgroups are resident

int64_t Product(const std::array<int64_t, 3>& n) { return n[0] * n[1] * n[2]; }

bool Fusible(const Kernel& kernel, const Target& target) {
  const int64_t invocations = Product(kernel.groups()) * Product(kernel.local);
  const int64_t resident = target.cpu() ? int64_t{1} << 20 : target.compute_units * 2048;
  return kernel.parts.size() == 1 && kernel.groups()[0] <= target.max_groups_x && invocations <= kMostWaves * resident;
}

// Kernels that may be parts of one: of equal workgroups, alike in what they keep in shared memory.
struct Likeness {
  std::array<int64_t, 3> local;
  bool precise, staged;
  friend auto operator<=>(const Likeness&, const Likeness&) = default;
};

// What becomes of the numbers of a kernel that turns into a part of another.
struct Renumbering {
  std::vector<uint32_t> allocs = {}, params = {};
  std::vector<VarId> vars = {};
  ExprPool* pool = nullptr;  // of the kernel it goes to
};

bool Declares(StmtKind kind) {
  return kind == StmtKind::kFor || kind == StmtKind::kLet || kind == StmtKind::kLanes || kind == StmtKind::kAtomic;
}

bool NamesBuffer(StmtKind kind) {
  return kind == StmtKind::kStore || kind == StmtKind::kAtomic || kind == StmtKind::kIfLast;
}

// One kernel under construction, and the step that dispatches it.
class Fusion {
 public:
  Fusion(const Graph& graph, Step step, const Kernel& kernel)
      : graph_(graph), step_(std::move(step)), kernel_(Clone(kernel)) {
    KernelPart part = std::move(kernel_.parts[0]);
    kernel_.parts.clear();
    Add(std::move(part), kernel);
    names_.insert(kernel_.name);
    for (const KernelParam& p : kernel_.params) names_.insert(p.name);
    for (VarId v = 0; v < kernel_.pool->vars(); ++v) names_.insert(kernel_.pool->var(v).name);
  }

  size_t parts() const { return kernel_.parts.size(); }

  bool Takes(const Step& step, const Kernel& kernel, const PassContext& context) const {
    if (parts() >= kMostParts) return false;
    int64_t params = static_cast<int64_t>(kernel_.params.size());
    for (int32_t b : step.args) params += std::find(step_.args.begin(), step_.args.end(), b) == step_.args.end();
    const bool bindings = context.abi == BufferAbi::kBindings;
    if (params > (bindings ? context.target.storage_buffers : context.target.push_constant_bytes / 8)) return false;
    if (kernel_.groups()[0] > context.target.max_groups_x - Product(kernel.groups())) return false;
    Kernel both;  // its allocs, for their size
    both.allocs = kernel_.allocs;
    MapAllocs(kernel, both.allocs);
    return both.shared_bytes() <=
           std::max(kLittleShared, std::max(kernel_.shared_bytes(), kernel.shared_bytes()) * 5 / 4);
  }

  void Take(const Step& step, const Kernel& kernel) {
    for (VarId v = 0; v < kernel.pool->vars(); ++v) names_.insert(kernel.pool->var(v).name);
    Renumbering to{.allocs = MapAllocs(kernel, kernel_.allocs), .params = MapParams(step, kernel)};
    ExprPool& pool = *kernel_.pool;
    Substitution s{.pool = &pool};
    s.context = &to;
    for (VarId v = 0; v < kernel.pool->vars(); ++v) {
      VarInfo info = kernel.pool->var(v);
      if (IsMemory(info.name)) info.name = FreshName(info.name);
      to.vars.push_back(pool.Declare(std::move(info)));
      s.vars[v] = pool.Var(to.vars.back());
    }
    to.pool = &pool;
    s.hooks.emplace_back(ExprKind::kLoad, [](void* c, Expr original, Index args) {
      const Renumbering& to = *static_cast<Renumbering*>(c);
      return to.pool->Load(to.params[original.node().ref], args.first(args.size() - 1), original.dtype(),
                           original.lanes(), args.back());
    });
    s.hooks.emplace_back(ExprKind::kAllocLoad, [](void* c, Expr original, Index args) {
      const Renumbering& to = *static_cast<Renumbering*>(c);
      return to.pool->AllocLoad(to.allocs[original.node().ref], args, original.dtype(), original.lanes());
    });
    KernelPart part = kernel.parts[0];
    Move(part.body, kernel, s, to);
    Add(std::move(part), kernel);
    std::vector<std::string>& features = kernel_.features;
    features.insert(features.end(), kernel.features.begin(), kernel.features.end());
    std::sort(features.begin(), features.end());
    features.erase(std::unique(features.begin(), features.end()), features.end());
  }

  // The finished kernel goes to the end of the program, its step is returned. `names` are those of all kernels.
  Step Finish(Program& program, std::set<std::string>& names) {
    absl::StrAppend(&kernel_.name, "_x", parts());
    const std::string base = kernel_.name;
    for (int n = 1; !names.insert(kernel_.name).second; ++n) kernel_.name = absl::StrCat(base, "_", n);
    step_.label = kernel_.name;
    step_.callee = static_cast<uint32_t>(program.kernels.size());
    step_.groups = kernel_.groups();
    MarkRestrict();
    program.kernels.push_back(std::move(kernel_));
    return std::move(step_);
  }

 private:
  // Allocs of equal shape that no alloc of `kernel` has yet, else new ones; `allocs` grows.
  static std::vector<uint32_t> MapAllocs(const Kernel& kernel, std::vector<Alloc>& allocs) {
    std::vector<uint32_t> mapped;
    std::vector<bool> taken(allocs.size());
    for (const Alloc& a : kernel.allocs) {
      size_t i = 0;
      while (i < taken.size() &&
             (taken[i] || allocs[i].space != a.space || allocs[i].dtype != a.dtype || allocs[i].lanes != a.lanes ||
              allocs[i].extents != a.extents || allocs[i].skew != a.skew))
        ++i;
      if (i == taken.size()) {
        taken.push_back(false);
        allocs.push_back(a);
        allocs.back().name = absl::StrCat(a.name, "_p", i);
      }
      taken[i] = true;
      mapped.push_back(static_cast<uint32_t>(i));
    }
    return mapped;
  }

  // Parameters bound to the same buffers, else new ones.
  std::vector<uint32_t> MapParams(const Step& step, const Kernel& kernel) {
    std::vector<uint32_t> mapped;
    for (size_t i = 0; i < step.args.size(); ++i) {
      const auto at = std::find(step_.args.begin(), step_.args.end(), step.args[i]);
      mapped.push_back(static_cast<uint32_t>(at - step_.args.begin()));
      const KernelParam& p = kernel.params[i];
      if (at == step_.args.end()) {
        step_.args.push_back(step.args[i]);
        kernel_.params.push_back(p);
        kernel_.params.back().name = FreshName(p.name);
        continue;
      }
      KernelParam& known = kernel_.params[mapped.back()];
      known.access = static_cast<KernelAccess>(static_cast<int>(known.access) | static_cast<int>(p.access));
      known.coherent = known.coherent || p.coherent;
      known.align = std::min(known.align, p.align);
    }
    return mapped;
  }

  // Variables would hide parameters and allocs of the same name.
  bool IsMemory(const std::string& name) const {
    const auto is = [&](const auto& memory) { return memory.name == name; };
    return std::any_of(kernel_.params.begin(), kernel_.params.end(), is) ||
           std::any_of(kernel_.allocs.begin(), kernel_.allocs.end(), is);
  }

  std::string FreshName(const std::string& base) {
    std::string name = base;
    for (int n = 1; !names_.insert(name).second; ++n) name = absl::StrCat(base, "_", n);
    return name;
  }

  void Move(std::vector<Stmt>& body, const Kernel& kernel, Substitution& s, const Renumbering& to) {
    for (Stmt& stmt : body) {
      for (ExprId* id : ExprsOf(stmt)) *id = Substitute(kernel.pool->at(*id), s).id;
      if (Declares(stmt.kind)) stmt.var = to.vars[stmt.var];
      if (stmt.kind == StmtKind::kAlloc || (stmt.kind == StmtKind::kStore && stmt.to_alloc)) {
        stmt.target = to.allocs[stmt.target];
      } else if (NamesBuffer(stmt.kind)) {
        stmt.target = to.params[stmt.target];
      }
      Move(stmt.body, kernel, s, to);
      Move(stmt.otherwise, kernel, s, to);
    }
  }

  // Workgroups of a part are numbered along x; its body is marked with the kernel it was.
  void Add(KernelPart part, const Kernel& kernel) {
    std::vector<Stmt>* inside = &part.body;
    std::vector<std::pair<VarId, int64_t>> groups;  // innermost last
    while (inside->size() == 1 && (*inside)[0].kind == StmtKind::kFor && (*inside)[0].mode == ForMode::kWorkgroup) {
      groups.emplace_back((*inside)[0].var, part.groups[(*inside)[0].dim]);
      inside = &(*inside)[0].body;
    }
    std::vector<Stmt> body = std::move(*inside);
    inside = &body;
    while (inside->size() == 1 && (*inside)[0].kind == StmtKind::kFor && (*inside)[0].mode == ForMode::kLocal)
      inside = &(*inside)[0].body;
    ExprPool& pool = *kernel_.pool;
    Stmt region{.kind = StmtKind::kRegion};
    region.label = kernel.name;
    region.loc = kernel.loc;
    region.body = std::move(*inside);
    inside->clear();
    const int64_t all = Product(part.groups);
    VarId flat = groups.empty() ? 0 : groups.back().first;
    if (groups.size() > 1) {
      flat = pool.Declare({.name = "group", .lo = 0, .hi = all - 1});
      Expr rest = pool.Var(flat);
      for (size_t i = groups.size(); i-- > 0;) {
        const auto [var, extent] = groups[i];
        Stmt let{.kind = StmtKind::kLet};
        let.var = var;
        let.value = (i == 0 ? rest : Mod(rest, extent)).id;
        inside->push_back(std::move(let));
        rest = Div(rest, extent);
      }
    }
    inside->push_back(std::move(region));
    if (!groups.empty()) {
      Stmt loop{.kind = StmtKind::kFor, .mode = ForMode::kWorkgroup, .var = flat};
      loop.begin = pool.Int(0).id;
      loop.end = pool.Int(all).id;
      loop.body = std::move(body);
      body.clear();
      body.push_back(std::move(loop));
    }
    part.groups = {all, 1, 1};
    part.body = std::move(body);
    kernel_.parts.push_back(std::move(part));
  }

  // Classes that are alive in one step never share bytes.
  void MarkRestrict() {
    const std::vector<int32_t> roots = StorageRoots(graph_);
    std::map<int32_t, int> params;  // by class
    for (int32_t b : step_.args) ++params[roots[b]];
    for (size_t i = 0; i < step_.args.size(); ++i)
      kernel_.params[i].restrict_ = kernel_.params[i].restrict_ && params[roots[step_.args[i]]] == 1;
  }

  const Graph& graph_;
  Step step_;
  Kernel kernel_;
  std::set<std::string> names_ = {};
};

// The dispatches of one epoch, [first, last) of the step list, as few as may be.
std::vector<Step> FuseEpoch(Program& program, const Graph& graph, absl::Span<const Step> steps,
                            const PassContext& context, std::set<std::string>& names) {
  std::map<Likeness, std::vector<size_t>> alike;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::kDispatch) continue;
    const Kernel& kernel = program.kernels[steps[i].callee];
    if (Fusible(kernel, context.target))
      alike[{kernel.local, kernel.precise, kernel.shared_bytes() > kLittleShared}].push_back(i);
  }
  std::vector<Step> result(steps.begin(), steps.end());
  std::vector<bool> gone(steps.size());
  for (const auto& [likeness, members] : alike) {
    for (size_t first = 0; first < members.size(); ++first) {
      if (gone[members[first]]) continue;
      Fusion fusion(graph, steps[members[first]], program.kernels[steps[members[first]].callee]);
      for (size_t next = first + 1; next < members.size(); ++next) {
        const Step& step = steps[members[next]];
        if (gone[members[next]] || !fusion.Takes(step, program.kernels[step.callee], context)) continue;
        fusion.Take(step, program.kernels[step.callee]);
        gone[members[next]] = true;
      }
      if (fusion.parts() > 1) result[members[first]] = fusion.Finish(program, names);
    }
  }
  std::vector<Step> kept;
  for (size_t i = 0; i < result.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(result[i]));
  }
  return kept;
}

std::string Dims3(const std::array<int64_t, 3>& n) { return absl::StrCat(n[0], " x ", n[1], " x ", n[2]); }

// Why two dispatches of an epoch were left apart, and what would join them.
std::string WhyApart(const Kernel& a, const Kernel& b, const Target& target) {
  for (const Kernel* k : {&a, &b}) {
    if (k->parts.size() == 1 && !Fusible(*k, target))
      return absl::StrCat("@", k->name, " fills the device often enough, nothing would be gained");
  }
  if (a.local != b.local) {
    return absl::StrCat("workgroups of ", Dims3(a.local), " and of ", Dims3(b.local),
                        "; schedules with equal ones would do");
  }
  if (a.precise != b.precise) return "only one of them may fuse multiply-adds; --numerics=fast takes no notice";
  if ((a.shared_bytes() > kLittleShared) != (b.shared_bytes() > kLittleShared))
    return "only one of them keeps much in shared memory, which would thin out the other's workgroups";
  return "together they have too many parts, parameters, workgroups or bytes of shared memory; --abi=bindings allows "
         "more "
         "parameters";
}

// One remark for each dispatch and the one after it.
void Remark(const Program& program, const Graph& graph, PassContext& context) {
  const Step* before = nullptr;
  for (const Step& step : graph.steps) {
    if (step.kind != StepKind::kDispatch) continue;
    if (before != nullptr && before->epoch == step.epoch && step.epoch >= 0) {
      const Kernel &a = program.kernels[before->callee], &b = program.kernels[step.callee];
      context.remarks.push_back(absl::StrCat("fuse-horizontally: graph @", graph.name, ": epoch ", step.epoch, ": @",
                                             a.name, " and @", b.name,
                                             " are two dispatches: ", WhyApart(a, b, context.target)));
    }
    before = &step;
  }
}

void DropUnusedKernels(Program& program) {
  std::vector<bool> used(program.kernels.size());
  for (const Graph& graph : program.graphs) {
    for (const Step& step : graph.steps) {
      if (step.kind == StepKind::kDispatch) used[step.callee] = true;
    }
  }
  std::vector<uint32_t> renamed(used.size());
  std::vector<Kernel> kept;
  for (size_t k = 0; k < used.size(); ++k) {
    renamed[k] = static_cast<uint32_t>(kept.size());
    if (used[k]) kept.push_back(std::move(program.kernels[k]));
  }
  program.kernels = std::move(kept);
  for (Graph& graph : program.graphs) {
    for (Step& step : graph.steps) {
      if (step.kind == StepKind::kDispatch) step.callee = renamed[step.callee];
    }
  }
}

}  // namespace

absl::StatusOr<bool> FuseHorizontally(Program& program, PassContext& context) {
  if (!context.fuse) return false;
  bool changed = false;
  std::set<std::string> names;
  for (const Kernel& kernel : program.kernels) names.insert(kernel.name);
  for (Graph& graph : program.graphs) {
    std::vector<Step> steps;
    for (size_t first = 0; first < graph.steps.size();) {
      size_t last = first + 1;
      const int32_t epoch = graph.steps[first].epoch;
      while (epoch >= 0 && last < graph.steps.size() && graph.steps[last].epoch == epoch) ++last;
      std::vector<Step> fused =
          FuseEpoch(program, graph, absl::MakeSpan(graph.steps).subspan(first, last - first), context, names);
      steps.insert(steps.end(), std::make_move_iterator(fused.begin()), std::make_move_iterator(fused.end()));
      first = last;
    }
    changed = changed || steps.size() != graph.steps.size();
    graph.steps = std::move(steps);
  }
  if (changed) DropUnusedKernels(program);
  for (const Graph& graph : program.graphs) Remark(program, graph, context);
  return changed;
}

}  // namespace agc
