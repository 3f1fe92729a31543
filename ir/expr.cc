#include "ir/expr.h"

#include <algorithm>
#include <utility>

#include "ir/base/status.h"

namespace agc {

const ExprNode& Expr::node() const { return pool->node(id); }

VarId ExprPool::Declare(VarInfo info) {
  vars_.push_back(std::move(info));
  return static_cast<VarId>(vars_.size() - 1);
}

Expr ExprPool::Add(ExprNode node) {
  const ExprId next{static_cast<uint32_t>(nodes_.size())};
  const auto [it, inserted] = ids_.try_emplace(node, next);
  if (inserted) {
    int depth = 0;
    for (ExprId arg : node.args) depth = std::max(depth, depths_[arg.index]);
    depths_.push_back(depth + 1);
    nodes_.push_back(std::move(node));
  }
  return {this, it->second};
}

Expr ExprPool::Var(VarId v) {
  const VarInfo& info = vars_[v];
  if (info.dtype == DType::kIndex && info.lo == info.hi) return Int(info.lo);
  return Add(
      {.kind = ExprKind::kVar, .dtype = info.dtype, .lanes = info.lanes, .ref = v, .lo = info.lo, .hi = info.hi});
}

Expr ExprPool::Const(Scalar value) {
  ExprNode node{.kind = ExprKind::kConst, .dtype = value.dtype, .payload = value.i()};
  if (value.dtype == DType::kIndex) node.lo = node.hi = value.i();
  return Add(std::move(node));
}

Expr ExprPool::Load(uint32_t buffer, Index index, DType dtype, int lanes, Expr guard) {
  if (guard.pool == nullptr) guard = Bool(true);
  if (guard.IsFalse() && lanes == 1) return Const(Scalar::Of(dtype, 0));
  ExprNode node{.kind = ExprKind::kLoad, .dtype = dtype, .lanes = static_cast<uint8_t>(lanes), .ref = buffer};
  for (Expr e : index) node.args.push_back(e.id);
  node.args.push_back(guard.id);
  return Add(std::move(node));
}

Expr ExprPool::AllocLoad(uint32_t alloc, Index index, DType dtype, int lanes) {
  ExprNode node{.kind = ExprKind::kAllocLoad, .dtype = dtype, .lanes = static_cast<uint8_t>(lanes), .ref = alloc};
  for (Expr e : index) node.args.push_back(e.id);
  return Add(std::move(node));
}

Expr ExprPool::Stage(uint32_t component, Index index, DType dtype) {
  ExprNode node{.kind = ExprKind::kStage, .dtype = dtype, .ref = component};
  for (Expr e : index) node.args.push_back(e.id);
  return Add(std::move(node));
}

Expr Number(ExprPool& pool, DType dtype, double value) { return pool.Const(Scalar::Of(dtype, value)); }

// ---------------------------------------------------------------- values

Expr Alu(absl::string_view name, absl::Span<const Expr> args) {
  const ScalarOp* op = FindScalarOp(name);
  AGC_CHECK(op != nullptr);
  return Alu(*op, args);
}

Expr Alu(const ScalarOp& op, absl::Span<const Expr> args) {
  AGC_CHECK(static_cast<int>(args.size()) == op.arity);
  const bool select = op.typing == ScalarTyping::kSelect;
  if (select && args[0].IsConst()) return args[0].IsTrue() ? args[1] : args[2];
  const Expr typed = args[select ? 1 : 0];
  ExprNode node{.kind = ExprKind::kAlu, .dtype = typed.dtype(), .ref = static_cast<uint32_t>(ScalarOpIndex(op))};
  if (op.typing == ScalarTyping::kCompare) node.dtype = DType::kBool;
  for (size_t i = 0; i < args.size(); ++i) {
    AGC_CHECK((select && i == 0) ? args[i].dtype() == DType::kBool : args[i].dtype() == typed.dtype());
    AGC_CHECK(args[i].dtype() != DType::kIndex);
    node.lanes = std::max<uint8_t>(node.lanes, static_cast<uint8_t>(args[i].lanes()));
    node.args.push_back(args[i].id);
  }
  return typed.pool->Add(std::move(node));
}

Expr Select(Expr cond, Expr then, Expr otherwise) {
  if (then == otherwise) return then;
  return Alu("select", {cond, then, otherwise});
}

Expr And(Expr a, Expr b) {
  if (a.IsFalse() || b.IsTrue()) return a;
  if (b.IsFalse() || a.IsTrue()) return b;
  std::vector<Expr> all;
  for (Expr side : {a, b}) {
    if (!side.is(ExprKind::kAnd)) all.push_back(side);
    if (side.is(ExprKind::kAnd)) {
      for (ExprId id : side.node().args) all.push_back(a.pool->at(id));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](Expr x, Expr y) { return Compare(x, y) < 0; });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() == 1) return all[0];
  ExprNode node{.kind = ExprKind::kAnd, .dtype = DType::kBool};
  for (Expr e : all) node.args.push_back(e.id);
  return a.pool->Add(std::move(node));
}

Expr Or(Expr a, Expr b) {
  if (a.IsTrue() || b.IsFalse()) return a;
  if (b.IsTrue() || a.IsFalse()) return b;
  return Alu("or", {a, b});
}

Expr Not(Expr a) { return a.IsConst() ? a.pool->Bool(a.IsFalse()) : Alu("not", {a}); }

Expr Cast(Expr value, DType to) {
  if (value.dtype() == to) return value;
  if (value.IsConst())
    return value.pool->Const(Convert({value.dtype(), static_cast<uint64_t>(value.node().payload)}, to));
  return value.pool->Add(
      {.kind = ExprKind::kCast, .dtype = to, .lanes = static_cast<uint8_t>(value.lanes()), .args = {value.id}});
}

Expr Bitcast(Expr value, DType to) {
  const DType from = value.dtype();
  AGC_CHECK(CanBitcast(from, to));
  if (from == to) return value;
  if (value.IsConst()) return value.pool->Const(BitsAs({from, static_cast<uint64_t>(value.node().payload)}, to));
  if (value.is(ExprKind::kBitcast)) return Bitcast(value.arg(0), to);
  return value.pool->Add(
      {.kind = ExprKind::kBitcast, .dtype = to, .lanes = static_cast<uint8_t>(value.lanes()), .args = {value.id}});
}

Expr FromIndex(Expr index, DType to) {
  if (index.IsConst()) return index.pool->Const(Scalar::Of(to, static_cast<double>(index.node().payload)));
  return index.pool->Add({.kind = ExprKind::kFromIndex, .dtype = to, .args = {index.id}});
}

Expr ToIndex(Expr value, int64_t lo, int64_t hi) {
  if (lo == hi) return value.pool->Int(lo);
  if (value.IsConst() && value.node().payload >= lo && value.node().payload <= hi)
    return value.pool->Int(value.node().payload);
  if (value.is(ExprKind::kFromIndex) && value.arg(0).node().lo >= lo && value.arg(0).node().hi <= hi)
    return value.arg(0);
  return value.pool->Add({.kind = ExprKind::kToIndex, .args = {value.id}, .lo = lo, .hi = hi});
}

Expr Lane(Expr vector, int lane) {
  if (vector.lanes() == 1) return vector;
  if (vector.is(ExprKind::kVec)) return vector.arg(lane);
  return vector.pool->Add({.kind = ExprKind::kLane, .dtype = vector.dtype(), .payload = lane, .args = {vector.id}});
}

Expr Vec(absl::Span<const Expr> lanes) {
  if (lanes.size() == 1) return lanes[0];
  bool whole = lanes[0].is(ExprKind::kLane) && lanes[0].arg(0).lanes() == static_cast<int>(lanes.size());
  ExprNode node{.kind = ExprKind::kVec, .dtype = lanes[0].dtype(), .lanes = static_cast<uint8_t>(lanes.size())};
  for (size_t i = 0; i < lanes.size(); ++i) {
    node.args.push_back(lanes[i].id);
    whole = whole && lanes[i].is(ExprKind::kLane) && lanes[i].node().payload == static_cast<int64_t>(i) &&
            lanes[i].arg(0) == lanes[0].arg(0);
  }
  return whole ? lanes[0].arg(0) : lanes[0].pool->Add(std::move(node));
}

// ---------------------------------------------------------------- traversal

int Compare(Expr a, Expr b) {
  if (a == b) return 0;
  const ExprNode &x = a.node(), &y = b.node();
  const auto order = [](auto p, auto q) { return p < q ? -1 : q < p ? 1 : 0; };
  if (x.kind != y.kind) return order(x.kind, y.kind);
  if (x.dtype != y.dtype) return order(x.dtype, y.dtype);
  if (x.ref != y.ref) return order(x.ref, y.ref);
  if (x.args.size() != y.args.size()) return order(x.args.size(), y.args.size());
  for (size_t i = 0; i < x.args.size(); ++i) {
    if (const int c = Compare(a.arg(static_cast<int>(i)), b.arg(static_cast<int>(i))); c != 0) return c;
  }
  for (size_t i = 0; i < x.coefs.size(); ++i) {
    if (x.coefs[i] != y.coefs[i]) return order(x.coefs[i], y.coefs[i]);
  }
  if (x.payload != y.payload) return order(x.payload, y.payload);
  if (x.lanes != y.lanes) return order(x.lanes, y.lanes);
  return x.lo != y.lo ? order(x.lo, y.lo) : order(x.hi, y.hi);
}

Expr Rebuild(Expr e, Index args) {
  const ExprNode n = e.node();
  ExprPool& pool = args.empty() ? *e.pool : *args[0].pool;
  switch (n.kind) {
    case ExprKind::kConst:
    case ExprKind::kVar:
      return e;
    case ExprKind::kLin: {
      Expr sum = pool.Int(n.payload);
      for (size_t i = 0; i < args.size(); ++i) sum = sum + args[i] * n.coefs[i];
      return sum;
    }
    case ExprKind::kDiv:
      return Div(args[0], n.payload);
    case ExprKind::kMod:
      return Mod(args[0], n.payload);
    case ExprKind::kMin:
      return Min(args[0], n.payload);
    case ExprKind::kMax:
      return Max(args[0], n.payload);
    case ExprKind::kInRange:
      return InRange(args[0], n.payload);
    case ExprKind::kNonNeg:
      return NonNeg(args[0]);
    case ExprKind::kEqZero:
      return EqZero(args[0]);
    case ExprKind::kAnd: {
      Expr all = args[0];
      for (size_t i = 1; i < args.size(); ++i) all = And(all, args[i]);
      return all;
    }
    case ExprKind::kLoad:
      return pool.Load(n.ref, args.first(args.size() - 1), n.dtype, n.lanes, args.back());
    case ExprKind::kAllocLoad:
      return pool.AllocLoad(n.ref, args, n.dtype, n.lanes);
    case ExprKind::kStage:
      return pool.Stage(n.ref, args, n.dtype);
    case ExprKind::kAlu:
      return Alu(ScalarOps()[n.ref], args);
    case ExprKind::kCast:
      return Cast(args[0], n.dtype);
    case ExprKind::kBitcast:
      return Bitcast(args[0], n.dtype);
    case ExprKind::kFromIndex:
      return FromIndex(args[0], n.dtype);
    case ExprKind::kToIndex:
      return ToIndex(args[0], n.lo, n.hi);
    case ExprKind::kLane:
      return Lane(args[0], static_cast<int>(n.payload));
    case ExprKind::kVec:
      return Vec(args);
  }
  return e;
}

Expr Substitute(Expr e, Substitution& s) {
  const auto found = s.memo.find(e.id);
  if (found != s.memo.end()) return found->second;
  const ExprNode n = e.node();
  Expr result = e;
  if (n.kind == ExprKind::kVar) {
    const auto it = s.vars.find(n.ref);
    result = it != s.vars.end() ? it->second : s.pool->Var(n.ref);
  } else if (n.kind == ExprKind::kConst) {
    result = s.pool->Add(n);
  } else {
    absl::InlinedVector<Expr, 4> args;
    bool same = s.pool == e.pool;
    for (size_t i = 0; i < n.args.size(); ++i) {
      args.push_back(Substitute(e.arg(static_cast<int>(i)), s));
      same = same && args.back().id == n.args[i];
    }
    const auto hook = std::find_if(s.hooks.begin(), s.hooks.end(), [&](const auto& h) { return h.first == n.kind; });
    if (hook != s.hooks.end()) {
      result = hook->second(s.context, e, args);
    } else if (!same) {
      result = args.empty() ? s.pool->Add(n) : Rebuild(e, args);
    }
  }
  s.memo.emplace(e.id, result);
  return result;
}

namespace {
void Visit(Expr e, std::vector<bool>& seen, std::vector<Expr>& out) {
  if (seen[e.id.index]) return;
  seen[e.id.index] = true;
  for (size_t i = 0; i < e.node().args.size(); ++i) Visit(e.arg(static_cast<int>(i)), seen, out);
  out.push_back(e);
}
}  // namespace

std::vector<Expr> PostOrder(Expr e) {
  std::vector<bool> seen(e.id.index + 1);
  std::vector<Expr> out;
  Visit(e, seen, out);
  return out;
}

std::vector<VarId> FreeVars(Expr e) {
  std::vector<VarId> vars;
  for (Expr x : PostOrder(e)) {
    if (x.is(ExprKind::kVar)) vars.push_back(x.node().ref);
  }
  std::sort(vars.begin(), vars.end());
  return vars;
}

}  // namespace agc
