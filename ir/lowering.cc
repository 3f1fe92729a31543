#include "ir/lowering.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/op_def.h"
#include "ir/range.h"
#include "ir/split_axes.h"

namespace agc {

ValueRef Resolve(const Graph& graph, OpId id) {
  const Op& op = graph.op(id);
  if (op.def != &GetOp()) return {id, 0};
  return {op.operands[0], static_cast<int>(AttrReader{op.attrs}.integer("index"))};
}

const TensorType& TypeOf(const Graph& graph, ValueRef v) { return graph.op(v.op).types[v.part]; }

namespace {

using Key = std::tuple<uint32_t, int, std::vector<uint32_t>, uint32_t>;  // op, part, index, guard

class Lowering : public AtContext {
 public:
  Lowering(const Graph& graph, absl::FunctionRef<bool(OpId)> inlined) : graph_(graph), inlined_(inlined) {
    guard_ = pool().Bool(true);
  }

  absl::Status Run(absl::Span<const ValueRef> outputs) {
    // Users before producers, so that an output read by another one finds the axes it is read at.
    std::vector<size_t> order(outputs.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return outputs[b].op < outputs[a].op; });
    std::vector<NestStore> stores(outputs.size());
    for (size_t i : order) {
      const TensorType& type = TypeOf(graph_, outputs[i]);
      std::vector<Expr> index = AxesOf(outputs[i], type);
      const Expr value = ValueAt(outputs[i], index);
      for (Expr e : index) stores[i].index.push_back(e.id);
      stores[i].value = value.id;
    }
    if (!status_.ok()) return status_;
    for (size_t i = 0; i < outputs.size(); ++i) {
      stores[i].param = static_cast<uint32_t>(nest_.params.size());
      nest_.params.push_back({absl::StrCat("y", i), TypeOf(graph_, outputs[i]), true});
      nest_.stores.push_back(std::move(stores[i]));
    }
    return absl::OkStatus();
  }

  Expr Read(const Op& op, int operand, Index index) override {
    return ValueAt(Resolve(graph_, op.operands[operand]), index);
  }

  std::vector<Expr> Reduce(const Op& op, const Combiner& combiner, absl::Span<const int64_t> extents,
                           absl::FunctionRef<std::vector<Expr>(Index)> body) override {
    if (!place_.tuple) return NewReduction(op, combiner, extents, body);
    const std::pair<Key, int> key = {place_.key, place_.reductions++};
    if (const auto it = tuple_reductions_.find(key); it != tuple_reductions_.end()) return it->second;
    std::vector<Expr> results = NewReduction(op, combiner, extents, body);
    tuple_reductions_.emplace(key, results);
    return results;
  }

  Expr Guard(Expr cond, absl::FunctionRef<Expr()> then, Expr otherwise) override {
    if (cond.IsTrue()) return then();
    if (cond.IsFalse()) return otherwise;
    const Expr saved = guard_;
    guard_ = And(guard_, cond);
    const Expr value = then();
    const bool zero_outside = value.is(ExprKind::kLoad) &&
                              value.arg(static_cast<int>(value.node().args.size()) - 1) == LoadGuard() &&
                              otherwise.IsConst() && otherwise.node().payload == 0;
    guard_ = saved;
    return zero_outside ? value : Select(cond, value, otherwise);  // a guarded load already is 0 outside
  }

  Nest TakeNest() { return std::move(nest_); }
  std::vector<ValueRef> TakeInputs() { return std::move(inputs_); }

 private:
  ExprPool& pool() { return *nest_.pool; }

  std::vector<Expr> NewReduction(const Op& op, const Combiner& combiner, absl::Span<const int64_t> extents,
                                 absl::FunctionRef<std::vector<Expr>(Index)> body);

  Key KeyOf(ValueRef v, Index index) const {
    std::vector<uint32_t> ids;
    for (Expr e : index) ids.push_back(e.id.index);
    return {v.op.index, v.part, std::move(ids), guard_.id.index};
  }

  // The axes an output is stored over: those another output reads it at, else those that an output of the same leading
  // extents has, as far as they go, and new ones. Whichever of the two comes first.
  std::vector<Expr> AxesOf(ValueRef v, const TensorType& type) {
    if (const auto it = plain_reads_.find(v); it != plain_reads_.end()) return it->second;
    std::vector<Expr> index;
    for (const auto& [dims, shared] : output_indices_) {
      const size_t common = std::min(dims.size(), type.dims.size());
      if (common <= index.size() || !std::equal(dims.begin(), dims.begin() + common, type.dims.begin())) continue;
      index.assign(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(common));
    }
    if (index.size() == type.dims.size()) return index;
    for (size_t i = index.size(); i < type.dims.size(); ++i)
      index.push_back(pool().Var(nest_.AddAxis(absl::StrCat("i", output_axes_++), type.dims[i])));
    output_indices_.emplace_back(type.dims, index);
    return index;
  }

  void NotePlainRead(ValueRef v, Index index) {
    const TensorType& type = TypeOf(graph_, v);
    std::set<VarId> seen;
    for (size_t i = 0; i < index.size(); ++i) {
      const Expr e = index[i];
      if (type.dims[i] == 1 && e.IsConst(0)) continue;
      if (!e.is(ExprKind::kVar) || nest_.extent(e.node().ref) != type.dims[i] || !seen.insert(e.node().ref).second)
        return;
      if (reduction_axes_.count(e.node().ref) != 0) return;
    }
    const Types& types = graph_.op(v.op).types;
    for (int part = 0; part < static_cast<int>(types.size()); ++part) {  // elements of a tuple share axes and stages
      if (types[part].dims == type.dims) plain_reads_.try_emplace({v.op, part}, index.begin(), index.end());
    }
  }

  Expr ValueAt(ValueRef v, Index index) {
    Key key = KeyOf(v, index);
    if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
    const Op& op = graph_.op(v.op);
    const Expr value = Compute(v, op, index);
    memo_.emplace(std::move(key), value);
    return value;
  }

  Expr Compute(ValueRef v, const Op& op, Index index) {
    if (op.def == &ConstantOp()) {
      const LiteralPtr& literal = AttrReader{op.attrs}.literal("value");
      if (literal->splat || literal->values.size() == 1) return pool().Const(literal->values[0]);
    }
    const TensorType& type = TypeOf(graph_, v);
    if (!inlined_(v.op)) return pool().Load(InputNumber(v), LoadIndex(index, type), type.dtype, 1, LoadGuard());
    NotePlainRead(v, index);
    const std::vector<Expr> clamped = Clamped(index, type);
    index = clamped;
    if (op.def->at == nullptr) {
      if (status_.ok())
        status_ = ErrorAt(op.loc, absl::StrCat(op.def->name, ": has no value at an index, run decompose first"),
                          absl::StatusCode::kInternal);
      return Number(pool(), TypeOf(graph_, v).dtype, 0);
    }
    At at(graph_, op, v.part, pool(), *this);
    const Place saved = std::exchange(place_, Place{KeyOf({v.op, 0}, index), op.is_tuple(), 0});
    const Expr value = op.def->at(at, index);
    place_ = saved;
    return value;
  }

  static std::vector<Expr> Conditions(Expr guard) {
    if (!guard.is(ExprKind::kAnd)) return {guard};
    std::vector<Expr> all;
    for (size_t i = 0; i < guard.node().args.size(); ++i) all.push_back(guard.arg(static_cast<int>(i)));
    return all;
  }

  bool Guarded(Expr condition) {
    const std::vector<Expr>& all = Known();
    return std::find(all.begin(), all.end(), condition) != all.end();
  }

  // What holds under the present guard: its conditions, as they stand and with the clamps that others justify taken
  // off.
  const std::vector<Expr>& Known() {
    const auto [it, fresh] = known_.try_emplace(guard_.id.index);
    std::vector<Expr>& known = it->second;
    if (!fresh) return known;
    known = Conditions(guard_);
    for (bool grew = true; grew;) {
      grew = false;
      Substitution s = TakingOffClamps();
      for (Expr condition : Conditions(guard_)) {
        const Expr plain = Substitute(condition, s);
        if (std::find(known.begin(), known.end(), plain) != known.end()) continue;
        known.push_back(plain);
        grew = true;
      }
    }
    return known;
  }

  // While a guard says that an index is in range, inlined ops see it clamped to that range, so that their own index
  // arithmetic (a reshape's div and mod, say) folds; at the load the clamps are taken off again.
  std::vector<Expr> Clamped(Index index, const TensorType& type) {
    std::vector<Expr> out(index.begin(), index.end());
    for (size_t i = 0; i < out.size(); ++i) {
      const Expr inside = InRange(out[i], type.dims[i]);
      if (!inside.IsConst() && Guarded(inside)) out[i] = Max(Min(out[i], type.dims[i] - 1), 0);
    }
    return out;
  }

  // The index of a load without the clamps, where the guard still proves that it is in range.
  std::vector<Expr> LoadIndex(Index index, const TensorType& type) {
    const ExprId guard = LoadGuard().id;
    Substitution s = TakingOffClamps();
    std::vector<Expr> out;
    for (size_t i = 0; i < index.size(); ++i) {
      const Expr plain = Substitute(index[i], s);
      const IndexRange range = RangeUnder(pool(), plain.id, {guard});
      out.push_back(range.lo >= 0 && range.hi < type.dims[i] ? plain : index[i]);
    }
    return out;
  }

  // The guard of a load, without clamps too: each condition may rely on the others.
  Expr LoadGuard() {
    Known();
    Substitution s = TakingOffClamps();
    Expr all = pool().Bool(true);
    for (Expr condition : Conditions(guard_)) all = And(all, Substitute(condition, s));
    return all;
  }

  Substitution TakingOffClamps() {
    Substitution s{.pool = &pool()};
    s.context = this;
    s.hooks.emplace_back(ExprKind::kMin, [](void* self, Expr original, Index args) {
      const bool idle = static_cast<Lowering*>(self)->Guarded(InRange(args[0], original.node().payload + 1));
      return idle ? args[0] : Min(args[0], original.node().payload);
    });
    s.hooks.emplace_back(ExprKind::kMax, [](void* self, Expr original, Index args) {
      const bool idle = original.node().payload == 0 && static_cast<Lowering*>(self)->GuardedBelow(args[0]);
      return idle ? args[0] : Max(args[0], original.node().payload);
    });
    return s;
  }

  // Some guard says that the index is not negative.
  bool GuardedBelow(Expr index) {
    const std::vector<Expr>& all = Known();
    return std::any_of(all.begin(), all.end(), [&](Expr g) {
      return (g.is(ExprKind::kInRange) || g.is(ExprKind::kNonNeg)) && g.arg(0) == index;
    });
  }

  uint32_t InputNumber(ValueRef v) {
    const auto it = std::find(inputs_.begin(), inputs_.end(), v);
    if (it != inputs_.end()) return static_cast<uint32_t>(it - inputs_.begin());
    inputs_.push_back(v);
    nest_.params.push_back({absl::StrCat("x", inputs_.size() - 1), TypeOf(graph_, v), false});
    return static_cast<uint32_t>(inputs_.size() - 1);
  }

  // Where an op is being evaluated. The elements of a tuple op make the same reductions in the same order, so the n-th
  // one at a place is found again by the next element.
  struct Place {
    Key key = {};
    bool tuple = false;
    int reductions = 0;
  };

  const Graph& graph_;
  absl::FunctionRef<bool(OpId)> inlined_;
  Nest nest_ = {};
  absl::Status status_ = absl::OkStatus();
  std::vector<ValueRef> inputs_ = {};
  std::map<Key, Expr> memo_ = {};
  Place place_ = {};
  std::map<std::pair<Key, int>, std::vector<Expr>> tuple_reductions_ = {};
  std::map<ValueRef, std::vector<Expr>> plain_reads_ = {};
  std::vector<std::pair<Dims, std::vector<Expr>>> output_indices_ = {};
  std::set<VarId> reduction_axes_ = {};
  Expr guard_ = {};
  std::map<uint32_t, std::vector<Expr>> known_ = {};  // by guard
  int output_axes_ = 0, stages_ = 0;
};

std::vector<Expr> Lowering::NewReduction(const Op& op, const Combiner& combiner, absl::Span<const int64_t> extents,
                                         absl::FunctionRef<std::vector<Expr>(Index)> body) {
  NestStage stage{
      .kind = StageKind::kReduce, .combiner = &combiner, .loc = op.loc, .origin = std::string(op.def->name)};
  const bool empty = std::any_of(extents.begin(), extents.end(), [](int64_t n) { return n == 0; });
  std::vector<Expr> over;
  for (int64_t n : extents) {
    if (n > 1) {
      const VarId axis = nest_.AddAxis(absl::StrCat("r", reduction_axes_.size()), n);
      reduction_axes_.insert(axis);
      stage.over.push_back(axis);
    }
    over.push_back(n > 1 ? pool().Var(stage.over.back()) : pool().Int(0));
  }
  const std::vector<Expr> values = body(over);
  std::vector<Expr> results;
  if (empty) {
    for (int c = 0; c < combiner.components; ++c)
      results.push_back(pool().Const(combiner.identity(c, values[c].dtype())));
    return results;
  }
  if (stage.over.empty()) return values;  // one element
  std::set<VarId> free;
  for (Expr e : values) {
    stage.values.push_back(e.id);
    const std::vector<VarId> vars = FreeVars(e);
    free.insert(vars.begin(), vars.end());
  }
  for (VarId v : stage.over) free.erase(v);
  std::vector<Component> components;
  const char* suffix[] = {"", "_1", "_2"};
  for (int c = 0; c < combiner.components; ++c) {
    components.push_back({.name = absl::StrCat("s", stages_, suffix[c]),
                          .axes = {free.begin(), free.end()},
                          .dtype = values[c].dtype()});
  }
  ++stages_;
  const uint32_t first = nest_.AddStage(std::move(stage), std::move(components));
  std::vector<Expr> index;
  for (VarId v : free) index.push_back(pool().Var(v));
  for (int c = 0; c < combiner.components; ++c) results.push_back(pool().Stage(first + c, index, values[c].dtype()));
  return results;
}

}  // namespace

absl::StatusOr<LoweredNest> LowerToNest(const Graph& graph, absl::Span<const ValueRef> outputs,
                                        absl::FunctionRef<bool(OpId)> inlined) {
  Lowering lowering(graph, inlined);
  AGC_RETURN_IF_ERROR(lowering.Run(outputs));
  LoweredNest low{lowering.TakeNest(), lowering.TakeInputs()};
  DropDeadStages(low.nest);  // indices that were reduced for, and can only be 0
  const Op& root = graph.op(outputs[0].op);
  low.nest.label = std::string(root.def->name);
  low.nest.loc = root.loc;
  return low;
}

bool SplitProduct(Expr value, Expr& left, Expr& right) {
  if (!value.is(ExprKind::kAlu) || ScalarOps()[value.node().ref].name != "mul") return false;
  left = value.arg(0);
  right = value.arg(1);
  return true;
}

namespace {
bool HasLoad(Expr e) {
  const std::vector<Expr> nodes = PostOrder(e);
  return std::any_of(nodes.begin(), nodes.end(), [](Expr x) { return x.is(ExprKind::kLoad); });
}
}  // namespace

bool FormContractions(Nest& nest) {
  bool changed = false;
  for (size_t k = 0; k < nest.stages.size(); ++k) {
    const NestStage stage = nest.stages[k];
    if (stage.kind != StageKind::kReduce || stage.combiner != FindCombiner("add") || stage.when.valid()) continue;
    Expr left, right;
    if (!SplitProduct(nest.at(stage.values[0]), left, right) || !HasLoad(left) || !HasLoad(right)) continue;
    NestStage& candidate = nest.stages[k];
    candidate.kind = StageKind::kContract;
    candidate.values = {left.id, right.id};
    SplitBatchAxes(nest, k);
    const ContractAxes axes = ClassifyContraction(nest, nest.stages[k]);
    if (axes.m.empty() && axes.n.empty()) {  // both sides mention every axis: a reduction like any other
      nest.stages[k] = stage;
      continue;
    }
    SplitReductionAxes(nest, k);
    changed = true;
  }
  return changed;
}

}  // namespace agc
