// What families build with: a kernel under construction, axes mapped to expressions of loop variables, and stages
// evaluated inside one invocation. A family only says which expression stands for each axis and wraps the substituted
// values in statements; the canonical index arithmetic does the rest.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "passes/schedules/family.h"

namespace agc {

using AxisMap = std::map<VarId, Expr>;      // nest axis -> expression in the kernel's pool
using StageMap = std::map<uint32_t, Expr>;  // component of the nest -> its value here
using LoadMap = std::map<uint32_t, Expr>;   // load of the nest (its ExprId) -> its value here

Stmt ForStmt(ForMode mode, VarId var, Expr begin, Expr end, std::vector<Stmt> body, int dim = 0);
Stmt IfStmt(Expr cond, std::vector<Stmt> body, bool uniform = false);
Stmt LetStmt(VarId var, Expr value, Loc loc = {});
Stmt SetAlloc(uint32_t alloc, std::vector<Expr> index, Expr value);
Stmt SetBuffer(uint32_t param, absl::Span<const Expr> index, Expr value, Loc loc = {});
Stmt BarrierStmt(Fence fence);
Stmt AllocStmt(uint32_t alloc);
// `body` in the last of `count` workgroups to arrive at the counter.
Stmt IfLastStmt(uint32_t counter, Expr index, Expr count, std::vector<Stmt> body);

void Append(std::vector<Stmt>& body, std::vector<Stmt> more);

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Product of extents.
int64_t Extent(const Nest& nest, absl::Span<const VarId> axes);
// Values of `axes` at a mixed-radix position, the last axis fastest.
void Unflatten(const Nest& nest, absl::Span<const VarId> axes, Expr flat, AxisMap& map);
// Axes that a store's index and value mention, in the order of the index.
std::vector<VarId> StoreAxes(const Nest& nest, const NestStore& store);

class KernelBuilder {
 public:
  explicit KernelBuilder(const Nest& nest);

  ExprPool& pool() { return *kernel_.pool; }
  Kernel& kernel() { return kernel_; }
  Expr IndexVar(absl::string_view name, int64_t extent, VarId* id);  // unique name, range [0, extent - 1]
  Expr ValueVar(absl::string_view name, DType dtype, VarId* id);
  uint32_t AddAlloc(absl::string_view name, AllocSpace space, DType dtype, std::vector<int64_t> extents = {});
  // A shared array that is declared here; `skew` more elements lie behind each row.
  uint32_t AddShared(absl::string_view name, DType dtype, std::vector<int64_t> extents, int64_t skew,
                     std::vector<Stmt>& body);
  Expr Read(uint32_t alloc, Index index = {});
  // A parameter beyond those of the nest.
  uint32_t AddParam(absl::string_view name, TensorType type, KernelAccess access, bool coherent);

  // An expression of the nest with its axes, its stage reads and the given loads replaced. Stage reads must be at the
  // stage's own axes.
  Expr At(ExprId value, const AxisMap& axes, const StageMap& stages, const LoadMap& loads = {});

  // Evaluates a stage serially in one invocation, its result in registers; appends to `body` and adds to `stages`.
  void EmitStage(const NestStage& stage, const AxisMap& axes, StageMap& stages, std::vector<Stmt>& body);
  // Stores at one position, in order. All values are computed before the first is stored, so that an output may take
  // over the storage of an input that another value reads too.
  void EmitStores(absl::Span<const NestStore* const> stores, const AxisMap& axes, const StageMap& stages,
                  std::vector<Stmt>& body, const LoadMap& loads = {});
  // The same at several positions, which share the stages, or have one map of them each.
  void EmitStores(absl::Span<const NestStore* const> stores, absl::Span<const AxisMap> positions,
                  absl::Span<const StageMap> stages, std::vector<Stmt>& body, const LoadMap& loads = {});
  // acc := merge(acc, values); acc are register allocs, one per component.
  void EmitMerge(const Combiner& combiner, absl::Span<const uint32_t> acc, absl::Span<const Expr> values,
                 std::vector<Stmt>& body);
  std::vector<uint32_t> EmitAccumulators(const NestStage& stage, std::vector<Stmt>& body);  // set to the identity

  // `make` for an index below n: under a guard where the range does not prove it, with a let of the proven range.
  std::vector<Stmt> Below(Expr index, int64_t n, absl::string_view name, bool uniform,
                          absl::FunctionRef<std::vector<Stmt>(Expr)> make);
  // Workgroups of `local` invocations over `total` items, folded over x and y within the target's limits; the item
  // number is passed to `make`.
  absl::Status OverFlat(int64_t total, int64_t local, const Target& target,
                        absl::FunctionRef<std::vector<Stmt>(Expr flat)> make);
  // One workgroup of `threads` invocations per item.
  absl::Status OverGroups(int64_t items, int64_t threads, const Target& target,
                          absl::FunctionRef<std::vector<Stmt>(Expr item, Expr t)> make);
  Kernel Take() { return std::move(kernel_); }

 private:
  std::string Unique(absl::string_view name);
  Expr EndOf(const NestStage& stage, VarId axis, const AxisMap& axes, const StageMap& stages);
  absl::Status Over(int64_t groups, int64_t local, const Target& target,
                    absl::FunctionRef<std::vector<Stmt>(Expr group, Expr t)> make);
  const Nest& nest_;
  Kernel kernel_ = {};
  std::map<std::string, int, std::less<>> names_ = {};
};

// How many elements a reduction over one axis k needs to look at, as a value of the nest that does not depend on k: e,
// where every component is select(k < e, ..., the combiner's identity). No pool: all of them.
Expr LiveElements(const Nest& nest, const NestStage& stage);
// Whether every stage is read at its own axes only: what families can compute in registers.
bool ReadsStagesPlainly(const Nest& nest);
std::vector<const NestStore*> StoresOf(const Nest& nest);

// Binds every kernel parameter to the nest parameter of the same number.
std::vector<int32_t> SameArgs(const Nest& nest);

}  // namespace agc
