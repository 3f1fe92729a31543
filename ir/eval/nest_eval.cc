#include "ir/eval/nest_eval.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/base/status.h"
#include "ir/eval/nest_memory.h"
#include "ir/eval/strip.h"
#include "ir/expand/expand_expr.h"

namespace agc {
namespace {

// Stages with fewer results than this put the reduction into the lanes instead.
constexpr int64_t kFewResults = 16;

absl::Status CheckBound(const Nest& nest, const StripMachine& m, absl::FunctionRef<bool(VarId)> bound) {
  for (const StripVar& v : m.vars()) {
    if (!bound(v.var))
      return absl::InternalError(absl::StrCat("axis ", nest.pool->var(v.var).name, " is used outside its scope"));
  }
  return absl::OkStatus();
}

// A reduction stage made ready: its values and merged state as expressions of the evaluator's own pool.
struct Reduction {
  std::vector<Expr> values = {}, merged = {};  // merged: of the state (acc variables) with the values
  std::vector<VarId> acc = {};
  std::vector<Expr> folded = {};  // merged: of acc with the `next` variables
  std::vector<VarId> next = {};
  Expr when = {};
};

class NestRun {
 public:
  NestRun(const Nest& nest, absl::Span<HostTensor* const> params, EvalMode mode,
          std::vector<std::vector<uint8_t>>* written)
      : nest_(nest), mode_(mode), pool_(*nest.pool), memory_(nest, params), written_(written) {}

  absl::Status Run() {
    for (const NestStage& stage : nest_.stages) {
      const std::string where = absl::StrCat("stage %", nest_.components[stage.first_component].name, ": ");
      AGC_RETURN_IF_ERROR(Explain(RunStage(stage), stage.loc.line != 0 ? stage.loc : nest_.loc, where));
    }
    for (const NestStore& store : nest_.stores) AGC_RETURN_IF_ERROR(Explain(RunStore(store), nest_.loc, ""));
    return absl::OkStatus();
  }

 private:
  absl::Status Explain(const absl::Status& status, Loc loc, absl::string_view where) const {
    if (status.ok()) return status;
    return ErrorAt(loc, absl::StrCat("nest @", nest_.name, ": ", where, status.message()), status.code());
  }
  Expr Own(ExprId id) { return Form(pool_.at(id)); }
  // As `mode` wants it: exact ops only, or as it is.
  Expr Form(Expr e) {
    return mode_ == EvalMode::kPortable ? ExpandAll(e, [](const ScalarOp&, DType) { return true; }) : e;
  }

  absl::Status RunStage(const NestStage& stage) {
    switch (stage.kind) {
      case StageKind::kMap:
        return RunMap(stage);
      case StageKind::kReduce:
      case StageKind::kContract:
        break;
      case StageKind::kScan:
        return absl::UnimplementedError("scan stages are not evaluated");
    }
    const int n = stage.combiner->components;
    for (int c = 1; c < n; ++c) {
      if (nest_.components[stage.first_component + c].axes != nest_.components[stage.first_component].axes) {
        return absl::UnimplementedError("components over different axes are not evaluated");
      }
    }
    const Reduction r = Prepare(stage);
    NestSpace results(nest_, nest_.components[stage.first_component].axes), over(nest_, stage.over);
    return results.size < kFewResults && over.size > results.size ? FoldStrips(stage, r, results, over)
                                                                  : MergeStrips(stage, r, results, over);
  }

  absl::Status RunMap(const NestStage& stage) {
    NestSpace space(nest_, nest_.components[stage.first_component].axes);
    StripMachine m(CompileStrip(pool_, {Own(stage.values[0])}, [](VarId) { return VarRole{}; }), kStrip, mode_);
    space.Bind(m);
    AGC_RETURN_IF_ERROR(CheckBound(nest_, m, [&](VarId v) { return space.Has(v); }));
    StripSlots& out = memory_.arrays[stage.first_component];
    for (int64_t start = 0; start < space.size; start += kStrip) {
      const int n = static_cast<int>(std::min<int64_t>(kStrip, space.size - start));
      space.Fill(start, n);
      AGC_RETURN_IF_ERROR(m.RunAll(memory_, n, nullptr));
      for (int i = 0; i < n; ++i) out[start + i] = m.result(0)[i * m.stride(0)];
    }
    return absl::OkStatus();
  }

  Reduction Prepare(const NestStage& stage) {
    Reduction r;
    if (stage.kind == StageKind::kContract) {
      const DType acc = nest_.components[stage.first_component].dtype;
      r.values.push_back(Cast(Own(stage.values[0]), acc) * Cast(Own(stage.values[1]), acc));
    } else {
      for (ExprId id : stage.values) r.values.push_back(Own(id));
    }
    std::vector<Expr> acc, next;
    for (Expr value : r.values) {
      r.acc.push_back(pool_.Declare({.name = "acc", .dtype = value.dtype()}));
      r.next.push_back(pool_.Declare({.name = "next", .dtype = value.dtype()}));
      acc.push_back(pool_.Var(r.acc.back()));
      next.push_back(pool_.Var(r.next.back()));
    }
    r.merged.resize(r.values.size());
    r.folded.resize(r.values.size());
    stage.combiner->merge(acc, r.values, absl::MakeSpan(r.merged));
    stage.combiner->merge(acc, next, absl::MakeSpan(r.folded));
    for (std::vector<Expr>* all : {&r.merged, &r.folded}) {
      for (Expr& e : *all) e = Form(e);
    }
    if (stage.when.valid()) r.when = Own(stage.when);
    return r;
  }

  std::vector<StripSlots> Identity(const NestStage& stage, const Reduction& r, size_t lanes) const {
    std::vector<StripSlots> acc;
    for (size_t c = 0; c < r.values.size(); ++c) {
      acc.emplace_back(lanes, stage.combiner->identity(static_cast<int>(c), r.values[c].dtype()).bits);
    }
    return acc;
  }

  // Lanes are results; the reduction is the loop.
  absl::Status MergeStrips(const NestStage& stage, const Reduction& r, NestSpace& results, NestSpace& over) {
    const auto role = [&](VarId v) {
      const bool reduced = over.Has(v), acc = std::find(r.acc.begin(), r.acc.end(), v) != r.acc.end();
      return VarRole{.uniform = reduced, .inner = reduced || acc};
    };
    StripMachine merge(CompileStrip(pool_, r.merged, role), kStrip, mode_), when;
    if (r.when.pool != nullptr) when = StripMachine(CompileStrip(pool_, {r.when}, role), kStrip, mode_);
    const auto bound = [&](VarId v) { return results.Has(v) || role(v).inner; };
    AGC_RETURN_IF_ERROR(CheckBound(nest_, merge, bound));
    AGC_RETURN_IF_ERROR(CheckBound(nest_, when, bound));
    for (StripMachine* m : {&merge, &when}) {
      results.Bind(*m);
      over.Bind(*m);
    }
    for (int64_t start = 0; start < results.size; start += kStrip) {
      const int n = static_cast<int>(std::min<int64_t>(kStrip, results.size - start));
      results.Fill(start, n);
      std::vector<StripSlots> acc = Identity(stage, r, static_cast<size_t>(n));
      for (size_t c = 0; c < acc.size(); ++c) merge.BindVar(r.acc[c], acc[c].data());
      AGC_RETURN_IF_ERROR(MergeStrip(r, over, n, merge, when, acc));
      for (size_t c = 0; c < acc.size(); ++c)
        std::copy(acc[c].begin(), acc[c].end(), memory_.arrays[stage.first_component + c].begin() + start);
    }
    return absl::OkStatus();
  }

  absl::Status MergeStrip(const Reduction& r, NestSpace& over, int n, StripMachine& merge, StripMachine& when,
                          std::vector<StripSlots>& acc) {
    uint8_t active[kStrip] = {};
    const bool masked = r.when.pool != nullptr;
    if (masked) AGC_RETURN_IF_ERROR(when.RunOuter(memory_, n, nullptr));
    // What depends on the results alone is computed once, unless `when` might forbid it.
    if (!masked) AGC_RETURN_IF_ERROR(merge.RunOuter(memory_, n, nullptr));
    for (int64_t k = 0; k < over.size; ++k) {
      over.Fill(k, 1);
      if (masked) {
        AGC_RETURN_IF_ERROR(when.RunInner(memory_, n, nullptr));
        for (int i = 0; i < n; ++i) active[i] = when.result(0)[i * when.stride(0)] != 0;
        if (std::count(active, active + n, 0) == n) continue;
        AGC_RETURN_IF_ERROR(merge.RunAll(memory_, n, active));
      } else {
        AGC_RETURN_IF_ERROR(merge.RunInner(memory_, n, nullptr));
      }
      for (size_t c = 0; c < acc.size(); ++c) {
        const uint64_t* merged = merge.result(c);
        const int step = merge.stride(c);
        for (int i = 0; i < n; ++i) {
          if (!masked || active[i] != 0) acc[c][i] = merged[i * step];
        }
      }
    }
    return absl::OkStatus();
  }

  // Lanes are elements of the reduction, merged one after the other: for few results.
  absl::Status FoldStrips(const NestStage& stage, const Reduction& r, NestSpace& results, NestSpace& over) {
    const auto role = [&](VarId v) { return VarRole{.uniform = results.Has(v), .inner = false}; };
    StripMachine values(CompileStrip(pool_, r.values, role), kStrip, mode_), when;
    if (r.when.pool != nullptr) when = StripMachine(CompileStrip(pool_, {r.when}, role), kStrip, mode_);
    const auto bound = [&](VarId v) { return results.Has(v) || over.Has(v); };
    AGC_RETURN_IF_ERROR(CheckBound(nest_, values, bound));
    AGC_RETURN_IF_ERROR(CheckBound(nest_, when, bound));
    for (StripMachine* m : {&values, &when}) {
      results.Bind(*m);
      over.Bind(*m);
    }
    uint8_t active[kStrip] = {};
    for (int64_t point = 0; point < results.size; ++point) {
      results.Fill(point, 1);
      std::vector<StripSlots> acc = Identity(stage, r, 1);
      for (int64_t start = 0; start < over.size; start += kStrip) {
        const int n = static_cast<int>(std::min<int64_t>(kStrip, over.size - start));
        over.Fill(start, n);
        if (r.when.pool != nullptr) {
          AGC_RETURN_IF_ERROR(when.RunAll(memory_, n, nullptr));
          for (int i = 0; i < n; ++i) active[i] = when.result(0)[i * when.stride(0)] != 0;
        }
        const uint8_t* mask = r.when.pool != nullptr ? active : nullptr;
        AGC_RETURN_IF_ERROR(values.RunAll(memory_, n, mask));
        AGC_RETURN_IF_ERROR(Fold(r, values, n, mask, acc));
      }
      for (size_t c = 0; c < acc.size(); ++c) memory_.arrays[stage.first_component + c][point] = acc[c][0];
    }
    return absl::OkStatus();
  }

  // Merges the lanes into `acc` in order.
  absl::Status Fold(const Reduction& r, const StripMachine& values, int n, const uint8_t* mask,
                    std::vector<StripSlots>& acc) {
    const Expr folded = r.folded[0];
    const DType dtype = folded.dtype();
    // The common case, one scalar op of state and value, needs no machine.
    if (r.folded.size() == 1 && folded.is(ExprKind::kAlu) && folded.node().args.size() == 2 &&
        folded.arg(0) == pool_.Var(r.acc[0]) && folded.arg(1) == pool_.Var(r.next[0])) {
      const ScalarOp& op = ScalarOps()[folded.node().ref];
      for (int i = 0; i < n; ++i) {
        if (mask != nullptr && mask[i] == 0) continue;
        const uint64_t next = values.result(0)[i * values.stride(0)];
        if (IsFloat(dtype)) {
          const double x[2] = {std::bit_cast<double>(acc[0][0]), std::bit_cast<double>(next)};
          acc[0][0] = std::bit_cast<uint64_t>(RoundFor(mode_, dtype, op.f(x)));
        } else {
          const int64_t x[2] = {static_cast<int64_t>(acc[0][0]), static_cast<int64_t>(next)};
          acc[0][0] = static_cast<uint64_t>(WrapTo(dtype, op.i(dtype, x)));
        }
      }
      return absl::OkStatus();
    }
    StripMachine m(CompileStrip(pool_, r.folded, [](VarId) { return VarRole{}; }), 1, mode_);
    StripSlots next(acc.size());
    for (size_t c = 0; c < acc.size(); ++c) {
      m.BindVar(r.acc[c], acc[c].data());
      m.BindVar(r.next[c], &next[c]);
    }
    for (int i = 0; i < n; ++i) {
      if (mask != nullptr && mask[i] == 0) continue;
      for (size_t c = 0; c < acc.size(); ++c) next[c] = values.result(c)[i * values.stride(c)];
      AGC_RETURN_IF_ERROR(m.RunAll(memory_, 1, nullptr));
      for (size_t c = 0; c < acc.size(); ++c) acc[c][0] = *m.result(c);
    }
    return absl::OkStatus();
  }

  absl::Status RunStore(const NestStore& store) {
    std::vector<Expr> roots;
    std::vector<VarId> used, indexed;
    for (ExprId id : store.index) roots.push_back(Own(id));
    for (Expr e : roots) {
      for (VarId v : FreeVars(e)) indexed.push_back(v);
    }
    roots.push_back(Own(store.value));
    for (VarId v : FreeVars(roots.back())) used.push_back(v);
    used.insert(used.end(), indexed.begin(), indexed.end());
    std::vector<VarId> axes;
    for (VarId v : nest_.axes) {
      if (std::find(used.begin(), used.end(), v) != used.end()) axes.push_back(v);
    }
    const NestPlace& place = memory_.params[store.param];
    if (!nest_.params[store.param].written || store.index.size() != place.strides.size() ||
        roots.back().dtype() != place.type.dtype) {
      return absl::InternalError(
          absl::StrCat("the store to %", place.name, " does not fit its type ", ToString(place.type)));
    }
    NestSpace space(nest_, axes);
    StripMachine m(CompileStrip(pool_, roots, [](VarId) { return VarRole{}; }), kStrip, mode_);
    space.Bind(m);
    AGC_RETURN_IF_ERROR(CheckBound(nest_, m, [&](VarId v) { return space.Has(v); }));
    for (int64_t start = 0; start < space.size; start += kStrip) {
      const int n = static_cast<int>(std::min<int64_t>(kStrip, space.size - start));
      space.Fill(start, n);
      AGC_RETURN_IF_ERROR(m.RunAll(memory_, n, nullptr));
      for (int i = 0; i < n; ++i) AGC_RETURN_IF_ERROR(StoreLane(store, place, m, i));
    }
    return absl::OkStatus();
  }

  absl::Status StoreLane(const NestStore& store, const NestPlace& place, const StripMachine& m, int lane) {
    const size_t rank = store.index.size();
    int64_t at = 0;
    for (size_t k = 0; k < rank; ++k) {
      const int64_t v = static_cast<int64_t>(m.result(k)[lane * m.stride(k)]);
      if (v < 0 || v >= place.type.dims[k]) {
        return absl::OutOfRangeError(
            absl::StrCat("store to %", place.name, " has index ", v, " on axis ", k, ", it is ", ToString(place.type)));
      }
      at += v * place.strides[k];
    }
    StoreElement({place.stored, m.result(rank)[lane * m.stride(rank)]}, place.bytes + at * SizeOf(place.stored));
    if (written_ != nullptr) (*written_)[store.param][static_cast<size_t>(at)] = 1;
    return absl::OkStatus();
  }

  const Nest& nest_;
  const EvalMode mode_;
  ExprPool pool_;  // a copy, to which merges are added
  NestMemory memory_;
  std::vector<std::vector<uint8_t>>* written_;  // per parameter and element, or null
};

absl::Status CheckParams(const Nest& nest, absl::Span<HostTensor* const> params, EvalMode mode) {
  if (params.size() != nest.params.size()) {
    return absl::InvalidArgumentError(absl::StrCat("nest @", nest.name, ": ", params.size(), " tensors given for ",
                                                   nest.params.size(), " parameters"));
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const NestParam& p = nest.params[i];
    const TensorType& given = params[i]->type;
    const bool fits = given == p.type ? !(mode == EvalMode::kDouble && p.written && IsFloat(given.dtype) &&
                                          given.dtype != DType::kF64)
                                      : given == EvalType(p.type, mode);
    if (!fits || static_cast<int64_t>(params[i]->bytes.size()) != given.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat("nest @", nest.name, ": %", p.name, " is ", ToString(p.type),
                                                     ", a tensor of ", ToString(given), " is given"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunNest(const Nest& nest, absl::Span<HostTensor* const> params, EvalMode mode) {
  AGC_RETURN_IF_ERROR(CheckParams(nest, params, mode));
  return NestRun(nest, params, mode, nullptr).Run();
}

absl::StatusOr<std::vector<HostTensor>> EvaluateNest(const Nest& nest, absl::Span<const HostTensor* const> inputs,
                                                     EvalMode mode) {
  std::vector<HostTensor> all;  // of the written parameters
  std::vector<HostTensor*> params;
  std::vector<std::vector<uint8_t>> written;
  size_t next = 0;
  all.reserve(nest.params.size());
  for (const NestParam& p : nest.params) {
    if (!p.written && next == inputs.size())
      return absl::InvalidArgumentError(absl::StrCat("nest @", nest.name, ": no tensor for %", p.name));
    all.push_back(p.written ? HostTensor::Zeros(EvalType(p.type, mode)) : HostTensor());
    params.push_back(p.written ? &all.back() : const_cast<HostTensor*>(inputs[next++]));  // only read
    written.emplace_back(p.written ? static_cast<size_t>(p.type.elements()) : 0);
  }
  if (next != inputs.size())
    return absl::InvalidArgumentError(absl::StrCat("nest @", nest.name, ": more tensors than inputs"));
  AGC_RETURN_IF_ERROR(CheckParams(nest, params, mode));
  AGC_RETURN_IF_ERROR(NestRun(nest, params, mode, &written).Run());
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!nest.params[i].written) continue;
    const auto hole = std::find(written[i].begin(), written[i].end(), 0);
    if (hole != written[i].end()) {
      return absl::InternalError(absl::StrCat("nest @", nest.name, ": element ", hole - written[i].begin(), " of %",
                                              nest.params[i].name, " is never written"));
    }
    outputs.push_back(std::move(all[i]));
  }
  return outputs;
}

absl::StatusOr<std::vector<HostTensor>> EvaluateNest(const Nest& nest, absl::Span<const HostTensor> inputs,
                                                     EvalMode mode) {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& t : inputs) pointers.push_back(&t);
  return EvaluateNest(nest, absl::Span<const HostTensor* const>(pointers), mode);
}

}  // namespace agc
