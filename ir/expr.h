// Scalar expressions, hash-consed: within a pool equal expressions have equal ids. Index expressions (dtype kIndex) are
// kept in one canonical form by the constructors: sums of variable x constant plus a constant, div/mod by positive
// constants, min/max with constants; each carries its range. Values are typed trees of scalar ops, loads and stage
// reads.
//   Expr p = pool.Var(0), r = pool.Var(1);          // axes with ranges
//   Expr i = p * 2 + r - 2;                          // kLin
//   Expr x = pool.Load(0, {i}, DType::kF32, 1, InRange(i, 28));   // 0 where the guard is false
//   Expr y = Alu("max", {x, pool.Const(Scalar::Float(DType::kF32, 0))});
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ir/scalar.h"
#include "ir/scalar_op.h"

namespace agc {

struct ExprId {
  uint32_t index = UINT32_MAX;
  bool valid() const { return index != UINT32_MAX; }
  friend bool operator==(ExprId, ExprId) = default;
  template <typename H>
  friend H AbslHashValue(H h, ExprId id) {
    return H::combine(std::move(h), id.index);
  }
};

using VarId = uint32_t;

enum class ExprKind : uint8_t {
  kConst,      // payload: bits of a Scalar of `dtype` (any tensor dtype, or index)
  kVar,        // ref: variable of the pool (axis, loop variable, let)
  kLin,        // index: sum of coefs[i] * args[i] + payload
  kDiv,        // index: floor(arg / payload), payload > 0
  kMod,        // index: arg - payload * floor(arg / payload)
  kMin,        // index: min(arg, payload)
  kMax,        // index: max(arg, payload)
  kInRange,    // bool: 0 <= arg < payload
  kNonNeg,     // bool: arg >= 0
  kEqZero,     // bool: arg == 0
  kAnd,        // bool: all args, sorted, two or more
  kLoad,       // ref: buffer parameter; args: index..., guard (a bool; true where unguarded)
  kAllocLoad,  // ref: alloc of a kernel; args: index...
  kStage,      // ref: stage component of a nest; args: index...
  kAlu,        // ref: scalar op
  kCast,       // value conversion to `dtype`
  kBitcast,    // the same bits as another dtype of the same size
  kFromIndex,  // an index as a value of `dtype` (an integer dtype)
  kToIndex,    // an integer value as an index, promised to lie in [lo, hi]
  kLane,       // payload: lane of a vector value
  kVec,        // vector value of scalar lanes
};

struct ExprNode {
  ExprKind kind = ExprKind::kConst;
  DType dtype = DType::kIndex;
  uint8_t lanes = 1;
  uint32_t ref = 0;
  int64_t payload = 0;
  absl::InlinedVector<ExprId, 4> args = {};
  absl::InlinedVector<int64_t, 4> coefs = {};
  int64_t lo = 0, hi = 0;  // inclusive range of an index expression, saturated; set by the pool, except kToIndex
  friend bool operator==(const ExprNode&, const ExprNode&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ExprNode& n) {
    return H::combine(std::move(h), n.kind, n.dtype, n.lanes, n.ref, n.payload, n.args, n.coefs, n.lo, n.hi);
  }
};

class ExprPool;

// What rules and passes write with: an id plus the pool it lives in. Data structures store ExprId only.
struct Expr {
  ExprPool* pool = nullptr;
  ExprId id = {};
  const ExprNode& node() const;
  DType dtype() const { return node().dtype; }
  int lanes() const { return node().lanes; }
  Expr arg(int i) const { return {pool, node().args[i]}; }
  bool is(ExprKind kind) const { return node().kind == kind; }
  bool IsConst() const { return is(ExprKind::kConst); }
  bool IsConst(int64_t index) const { return IsConst() && dtype() == DType::kIndex && node().payload == index; }
  bool IsTrue() const { return IsConst() && dtype() == DType::kBool && node().payload == 1; }
  bool IsFalse() const { return IsConst() && dtype() == DType::kBool && node().payload == 0; }
  friend bool operator==(Expr a, Expr b) { return a.pool == b.pool && a.id == b.id; }
};
using Index = absl::Span<const Expr>;

struct VarInfo {
  std::string name = {};
  DType dtype = DType::kIndex;
  uint8_t lanes = 1;
  int64_t lo = 0, hi = 0;  // index variables: inclusive range
};

class ExprPool {
 public:
  // Declares a variable: an axis or loop variable with its range, or a Let of any dtype.
  VarId Declare(VarInfo info);
  const VarInfo& var(VarId v) const { return vars_[v]; }
  VarInfo& var(VarId v) { return vars_[v]; }  // only to rename
  size_t vars() const { return vars_.size(); }

  Expr Var(VarId v);
  Expr Const(Scalar value);
  Expr Int(int64_t index) { return Const({DType::kIndex, static_cast<uint64_t>(index)}); }
  Expr Bool(bool b) { return Const({DType::kBool, b ? 1u : 0u}); }
  // A guarded load gives 0 where its guard is false; a guard that is false by its range folds to that 0.
  Expr Load(uint32_t buffer, Index index, DType dtype, int lanes = 1, Expr guard = {});
  Expr AllocLoad(uint32_t alloc, Index index, DType dtype, int lanes = 1);
  Expr Stage(uint32_t component, Index index, DType dtype);

  const ExprNode& node(ExprId id) const { return nodes_[id.index]; }
  Expr at(ExprId id) { return {this, id}; }
  size_t size() const { return nodes_.size(); }
  Expr Add(ExprNode node);                                  // hash-conses a node that already is canonical
  int depth(ExprId id) const { return depths_[id.index]; }  // nodes on the longest way to a leaf

 private:
  friend Expr Div(Expr a, int64_t c);
  friend Expr Mod(Expr a, int64_t c);
  // Quotients and remainders that were asked for: normalising a nested one asks for those inside it again and again.
  using DivisionMap = absl::flat_hash_map<std::pair<ExprId, int64_t>, ExprId>;

  std::vector<ExprNode> nodes_ = {};
  std::vector<VarInfo> vars_ = {};
  absl::flat_hash_map<ExprNode, ExprId> ids_ = {};
  std::vector<int> depths_ = {};
  DivisionMap quotients_ = {}, remainders_ = {};
};

// Index arithmetic, canonical by construction; a product needs one constant side. Values: the scalar ops of those
// names.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator+(Expr a, int64_t b);
Expr operator-(Expr a, int64_t b);
Expr operator*(Expr a, int64_t b);
Expr Div(Expr a, int64_t c);  // floor
Expr Mod(Expr a, int64_t c);
Expr Min(Expr a, int64_t c);
Expr Max(Expr a, int64_t c);
bool Divisible(Expr index, int64_t c);  // proven: every coefficient and the constant are

// Guards: conjunctions of inequalities and congruences on indices; folded by range.
Expr InRange(Expr index, int64_t n);  // 0 <= index < n
Expr NonNeg(Expr index);              // index >= 0
Expr EqZero(Expr index);              // index == 0
Expr And(Expr a, Expr b);             // any bools
Expr Or(Expr a, Expr b);
Expr Not(Expr a);

// Values.
Expr Alu(absl::string_view op, absl::Span<const Expr> args);  // typed and checked against the scalar op table
Expr Alu(const ScalarOp& op, absl::Span<const Expr> args);
Expr Select(Expr cond, Expr then, Expr otherwise);  // folds constant conditions
Expr Cast(Expr value, DType to);
Expr Bitcast(Expr value, DType to);  // dtypes of the same size, none of them bool or index
Expr FromIndex(Expr index, DType to);
Expr ToIndex(Expr value, int64_t lo, int64_t hi);  // promised range
Expr Lane(Expr vector, int lane);
Expr Vec(absl::Span<const Expr> lanes);                  // one lane: itself; lanes 0..n-1 of one vector: that vector
Expr Number(ExprPool& pool, DType dtype, double value);  // a constant of any dtype

// Structural order, independent of creation order: < 0, 0, > 0.
int Compare(Expr a, Expr b);

// Replaces variables (by id) and, where given, stage reads; rebuilds through the constructors. Every Expr of the result
// lives in `pool` (which may be another pool than that of `e`: buffers keep their numbers, unmapped variables must
// exist).
struct Substitution {
  ExprPool* pool = nullptr;
  absl::flat_hash_map<VarId, Expr> vars = {};
  // Called for kLoad, kAllocLoad and kStage nodes with the already substituted arguments; null: kept.
  std::vector<std::pair<ExprKind, Expr (*)(void* context, Expr original, Index args)>> hooks = {};
  void* context = nullptr;
  absl::flat_hash_map<ExprId, Expr> memo = {};
};
Expr Substitute(Expr e, Substitution& s);
// The same node with other arguments, through the canonical constructors.
Expr Rebuild(Expr e, Index args);

// Distinct nodes below e, arguments before users.
std::vector<Expr> PostOrder(Expr e);
// Variables below e, ascending.
std::vector<VarId> FreeVars(Expr e);

}  // namespace agc
