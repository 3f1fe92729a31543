#include "passes/schedules/vector_width.h"

#include <algorithm>

#include "ir/address.h"

namespace agc {
namespace {

// The neighbours' positions: element e of a run of `width`.
class Neighbourhood {
 public:
  Neighbourhood(const Nest& nest, const std::vector<VarId>& fixed, int64_t width)
      : nest_(nest), b_(nest), width_(width) {
    VarId v = 0;
    Unflatten(nest, fixed, b_.IndexVar("fixed", Extent(nest, fixed), &v), fixed_);
  }

  bool Whole(const std::vector<VarId>& axes) const { return Extent(nest_, axes) % width_ == 0; }

  // Whether what is at `index` of a parameter is one access; counts those that take neighbours.
  bool OneAccess(uint32_t param, absl::Span<const ExprId> index, ExprId guard, const std::vector<VarId>& axes) {
    std::vector<Expr> address, guards;
    for (int64_t e = 0; e < width_; ++e) {
      const AxisMap map = At(axes, e);
      std::vector<Expr> place;
      for (ExprId id : index) place.push_back(b_.At(id, map, {}));
      address.push_back(LinearIndex(b_.pool(), nest_.params[param].type, place));
      if (guard.valid()) guards.push_back(b_.At(guard, map, {}));
    }
    const auto same = [&](Expr g) { return g == guards[0]; };
    if (!std::all_of(guards.begin(), guards.end(), same)) return false;
    const Expr step = address[1] - address[0];
    if (step.IsConst(0)) return std::all_of(address.begin(), address.end(), [&](Expr a) { return a == address[0]; });
    for (int64_t e = 1; e < width_; ++e) {
      if (!(address[e] - address[0]).IsConst(e)) return false;
    }
    ++neighbours_;
    const DType t = nest_.params[param].type.dtype;
    return (t == DType::kF32 || t == DType::kI32 || t == DType::kU32) && Divisible(address[0], width_);
  }

  int neighbours() const { return neighbours_; }

 private:
  AxisMap At(const std::vector<VarId>& axes, int64_t e) {
    const auto [it, fresh] = runs_.try_emplace(axes, Expr{});
    VarId v = 0;
    if (fresh) it->second = b_.IndexVar("run", std::max<int64_t>(1, Extent(nest_, axes) / width_), &v);
    AxisMap map = fixed_;
    Unflatten(nest_, axes, it->second * width_ + e, map);
    return map;
  }

  const Nest& nest_;
  KernelBuilder b_;
  const int64_t width_;
  AxisMap fixed_ = {};
  std::map<std::vector<VarId>, Expr> runs_ = {};
  int neighbours_ = 0;
};

bool Fits(const Nest& nest, Neighbourhood& near, const RunningExpr& running) {
  if (!near.Whole(running.axes)) return false;
  for (Expr e : PostOrder(nest.at(running.value))) {
    if (!e.is(ExprKind::kLoad)) continue;
    const std::vector<Expr> below = PostOrder(e);  // where a stage's result says what to load, nothing is known
    if (std::any_of(below.begin(), below.end(), [](Expr x) { return x.is(ExprKind::kStage); })) return false;
    const auto& args = e.node().args;
    const ExprId guard = e.arg(static_cast<int>(args.size()) - 1).IsTrue() ? ExprId{} : args.back();
    if (!near.OneAccess(e.node().ref, absl::MakeConstSpan(args).first(args.size() - 1), guard, running.axes))
      return false;
  }
  return true;
}

}  // namespace

std::vector<RunningExpr> RunningStores(const std::vector<const NestStore*>& stores, const std::vector<VarId>& axes) {
  std::vector<RunningExpr> all;
  for (const NestStore* store : stores) all.push_back({store->value, axes});
  return all;
}

std::vector<RunningExpr> RunningStages(const Nest& nest) {
  std::vector<RunningExpr> all;
  for (const NestStage& stage : nest.stages) {
    for (ExprId value : stage.values) all.push_back({value, stage.over});
    if (stage.when.valid()) all.push_back({stage.when, stage.over});
  }
  return all;
}

int64_t VectorWidth(const Nest& nest, const std::vector<VarId>& fixed, const std::vector<RunningExpr>& values,
                    const std::vector<const NestStore*>& stores, const std::vector<VarId>& store_axes) {
  for (int64_t width : {4, 2}) {
    Neighbourhood near(nest, fixed, width);
    const bool loads =
        std::all_of(values.begin(), values.end(), [&](const RunningExpr& v) { return Fits(nest, near, v); });
    const bool fits = loads && std::all_of(stores.begin(), stores.end(), [&](const NestStore* s) {
                        return near.Whole(store_axes) && near.OneAccess(s->param, s->index, {}, store_axes);
                      });
    if (fits && near.neighbours() > 0) return width;
  }
  return 1;
}

}  // namespace agc
