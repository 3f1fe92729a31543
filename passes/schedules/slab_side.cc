#include "passes/schedules/slab_side.h"

#include <algorithm>
#include <numeric>

#include "passes/schedules/vector_width.h"

namespace agc {
namespace {
// A position beyond the end repeats the last one; neighbours are clamped together and stay neighbours.
Expr Clamp(Expr position, int64_t extent, int64_t vec, int64_t e) {
  if (vec == 1) return Min(position, extent - 1);
  return Min(Div(position, vec), extent / vec - 1) * vec + e;
}
}  // namespace

SlabSide::SlabSide(const Nest& nest, const ContractShape& shape, ExprId value, const std::vector<VarId>& axes,
                   int64_t width, int64_t bk, int64_t threads)
    : nest_(&nest),
      shape_(&shape),
      value_(value),
      axes_(axes),
      width_(width),
      bk_(bk),
      threads_(threads),
      extent_(Extent(nest, axes)),
      steps_(Extent(nest, shape.k)) {
  const auto neighbours = [&](const std::vector<VarId>& run, const std::vector<VarId>& rest, int64_t unit) {
    std::vector<VarId> fixed = shape.batch;
    fixed.insert(fixed.end(), rest.begin(), rest.end());
    return std::gcd(VectorWidth(nest, fixed, {{value, run}}, {}, {}), unit);
  };
  const int64_t along_k = neighbours(shape.k, axes, bk), along_x = neighbours(axes, shape.k, width);
  vec_ = std::max(along_k, along_x);
  along_k_ = along_k > along_x || (along_k == along_x && StepsAreNearer());
}

// Whether neighbouring steps, not neighbouring rows, lie next to each other in memory.
bool SlabSide::StepsAreNearer() const {
  const std::vector<VarId>& k = shape_->k;
  return !k.empty() && StrideInLoads(*nest_, value_, k.back()) == 1 &&
         (axes_.empty() || StrideInLoads(*nest_, value_, axes_.back()) != 1 ||
          nest_->extent(k.back()) > nest_->extent(axes_.back()));
}

StagedSlab SlabSide::EmitLoads(KernelBuilder& b, Expr slab, Expr batch, Expr t, std::vector<Stmt>& body) const {
  StagedSlab staged;
  const int64_t groups = width_ * bk_ / vec_;
  for (int64_t g = 0; g < groups; g += threads_) {
    staged.inside.push_back(InRange(t + g, groups));
    const Expr i = Min(t + g, groups - 1);
    std::vector<StagedSlab::Element> neighbours;
    for (int64_t e = 0; e < vec_; ++e) {
      StagedSlab::Element at;
      if (along_k_) {
        at.kk = Mod(i, bk_ / vec_) * vec_ + e;
        at.x = Div(i, bk_ / vec_);
      } else {
        at.x = Mod(i, width_ / vec_) * vec_ + e;
        at.kk = Div(i, width_ / vec_);
      }
      at.value = EmitLoad(b, slab * bk_ + at.kk, first_ + at.x, batch, e, body);
      neighbours.push_back(at);
    }
    staged.groups.push_back(std::move(neighbours));
  }
  return staged;
}

Expr SlabSide::EmitLoad(KernelBuilder& b, Expr k, Expr x, Expr batch, int64_t e, std::vector<Stmt>& body) const {
  AxisMap map;
  Unflatten(*nest_, axes_, Clamp(x, extent_, along_k_ ? 1 : vec_, e), map);
  Unflatten(*nest_, shape_->k, Clamp(k, steps_, along_k_ ? vec_ : 1, e), map);
  Unflatten(*nest_, shape_->batch, batch, map);
  LoadMap loads;
  for (Expr load : PostOrder(nest_->at(value_))) {
    if (!load.is(ExprKind::kLoad)) continue;
    VarId v = 0;
    const Expr value = b.At(load.id, map, {}, loads);
    loads[load.id.index] = b.ValueVar("next", value.dtype(), &v);
    body.push_back(LetStmt(v, value, nest_->stages[0].loc));
  }
  const Expr value = b.At(value_, map, {}, loads);
  return Select(InRange(k, steps_), value, Number(b.pool(), value.dtype(), 0));
}

void SlabSide::EmitStage(const StagedSlab& staged, std::vector<Stmt>& body) const {
  for (size_t g = 0; g < staged.groups.size(); ++g) {
    std::vector<Stmt> stores;
    for (const StagedSlab::Element& e : staged.groups[g]) stores.push_back(SetAlloc(alloc_, {e.kk, e.x}, e.value));
    if (!staged.inside[g].IsTrue()) stores = {IfStmt(staged.inside[g], std::move(stores))};
    Append(body, std::move(stores));
  }
}

}  // namespace agc
