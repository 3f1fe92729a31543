// How a side of a product comes to shared memory: slabs of `bk` steps by `width` rows (or columns), loaded by all
// invocations of a workgroup. Loading and storing are apart, so that other work can lie between.
//   SlabSide a(nest, shape, stage.values[0], shape.m, 64, 16, 128);   a.Place(alloc, first_row);
//   StagedSlab next = a.EmitLoads(b, slab, batch, t, body);   ...   a.EmitStage(next, body);   // element [kk, x]
#pragma once
#include <vector>

#include "passes/schedules/contract_shape.h"

namespace agc {

// An invocation's share of a slab, loaded but not yet in shared memory.
struct StagedSlab {
  struct Element {
    Expr kk = {}, x = {}, value = {};
  };
  std::vector<std::vector<Element>> groups = {};  // of neighbours
  std::vector<Expr> inside = {};                  // by group: whether it exists
};

class SlabSide {
 public:
  // `axes`: the side's rows or columns.
  SlabSide(const Nest& nest, const ContractShape& shape, ExprId value, const std::vector<VarId>& axes, int64_t width,
           int64_t bk, int64_t threads);

  // Where slabs lie, and the row or column of the workgroup's first.
  void Place(uint32_t alloc, Expr first) {
    alloc_ = alloc;
    first_ = first;
  }
  uint32_t alloc() const { return alloc_; }

  // Element (kk, x) of a slab is the side's value at position first + x and step slab * bk + kk, 0 beyond the last
  // step. Its loads are pinned in `body`; what is computed from them waits until it is stored.
  StagedSlab EmitLoads(KernelBuilder& b, Expr slab, Expr batch, Expr t, std::vector<Stmt>& body) const;
  void EmitStage(const StagedSlab& staged, std::vector<Stmt>& body) const;

 private:
  bool StepsAreNearer() const;
  Expr EmitLoad(KernelBuilder& b, Expr k, Expr x, Expr batch, int64_t e, std::vector<Stmt>& body) const;

  const Nest* nest_;
  const ContractShape* shape_;
  ExprId value_;
  std::vector<VarId> axes_;
  int64_t width_, bk_, threads_;
  int64_t extent_, steps_;  // rows or columns in all, and steps
  bool along_k_ = false;    // neighbours in memory are steps, not rows
  int64_t vec_ = 1;         // neighbours that are loaded at once
  uint32_t alloc_ = 0;
  Expr first_ = {};
};

}  // namespace agc
