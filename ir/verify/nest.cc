#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/injective.h"
#include "ir/range.h"
#include "ir/recompute.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

bool Has(absl::Span<const VarId> vars, VarId v) { return std::find(vars.begin(), vars.end(), v) != vars.end(); }

class NestVerifier {
 public:
  explicit NestVerifier(const Nest& nest) : nest_(nest), pool_(*nest.pool) {}

  absl::Status Run() {
    AGC_RETURN_IF_ERROR(Names());
    uint32_t next = 0;
    for (size_t i = 0; i < nest_.stages.size(); ++i) {
      AGC_RETURN_IF_ERROR(Stage(i, next));
      next += static_cast<uint32_t>(Results(nest_.stages[i]));
    }
    if (next != nest_.components.size())
      return Error(nest_.loc, absl::StrCat(nest_.components.size() - next, " components belong to no stage"));
    return Stores();
  }

 private:
  absl::Status Error(Loc loc, absl::string_view message) const {
    return ErrorAt(loc.line == 0 ? nest_.loc : loc, absl::StrCat("nest @", nest_.name, ": ", message));
  }
  std::string Text(ExprId e) const { return PrintExpr(pool_, e, NamesOf(nest_)); }
  std::string AxisName(VarId v) const { return v < pool_.vars() ? pool_.var(v).name : absl::StrCat("variable ", v); }

  absl::Status Names() const {
    std::set<std::string> values, axes;
    bool written = false;
    for (const NestParam& p : nest_.params) {
      if (!values.insert(p.name).second) return Error(nest_.loc, absl::StrCat("%", p.name, " is defined twice"));
      if (written && !p.written) return Error(nest_.loc, absl::StrCat("input %", p.name, " follows an output"));
      written = p.written;
    }
    for (const Component& c : nest_.components) {
      if (!values.insert(c.name).second) return Error(nest_.loc, absl::StrCat("%", c.name, " is defined twice"));
    }
    for (VarId v : nest_.axes) {
      if (v >= pool_.vars()) return Error(nest_.loc, absl::StrCat("axis ", v, " is no variable"));
      if (!axes.insert(pool_.var(v).name).second)
        return Error(nest_.loc, absl::StrCat("axis ", pool_.var(v).name, " is declared twice"));
      if (pool_.var(v).lo != 0 || pool_.var(v).hi < 0)
        return Error(nest_.loc, absl::StrCat("axis ", pool_.var(v).name, " is empty"));
    }
    return absl::OkStatus();
  }

  static size_t Results(const NestStage& s) {
    return s.combiner != nullptr ? static_cast<size_t>(s.combiner->components) : s.values.size();
  }

  absl::Status Shape(size_t number, uint32_t next) const {
    const NestStage& s = nest_.stages[number];
    if ((s.kind == StageKind::kMap) != (s.combiner == nullptr))
      return Error(s.loc, absl::StrCat(Name(s.kind), ": a combiner belongs to all stages but maps"));
    const size_t results = Results(s), values = s.kind == StageKind::kContract ? 2 : results;
    if (s.values.size() != values)
      return Error(s.loc,
                   absl::StrCat(Name(s.kind), ": ", values, " values are expected, ", s.values.size(), " are given"));
    if (s.first_component != next || next + results > nest_.components.size())
      return Error(s.loc, "components are not numbered in order of the stages");
    for (size_t i = 0; i < results; ++i) {
      const Component& c = nest_.components[next + i];
      if (c.stage != number)
        return Error(s.loc, absl::StrCat("%", c.name, " says it is of stage ", c.stage, ", it is of ", number));
      for (VarId v : c.axes) {
        if (!Has(nest_.axes, v))
          return Error(s.loc, absl::StrCat("%", c.name, ": ", AxisName(v), " is no axis of the nest"));
      }
      if (std::set<VarId>(c.axes.begin(), c.axes.end()).size() != c.axes.size())
        return Error(s.loc, absl::StrCat("%", c.name, ": an axis is named twice"));
      for (VarId v : s.over) {
        if (!Has(nest_.axes, v))
          return Error(s.loc, absl::StrCat("%", c.name, ": ", AxisName(v), " is no axis of the nest"));
        if (Has(c.axes, v) != (s.kind == StageKind::kScan)) {
          return Error(s.loc,
                       absl::StrCat("%", c.name, ": axis ", AxisName(v),
                                    s.kind == StageKind::kScan ? " of the scan is missing" : " is reduced away"));
        }
      }
      const bool typed = s.kind == StageKind::kContract || pool_.node(s.values[i]).dtype == c.dtype;
      if (!typed)
        return Error(s.loc, absl::StrCat("%", c.name, " is ", Name(c.dtype), ", its value is ",
                                         Name(pool_.node(s.values[i]).dtype)));
    }
    return absl::OkStatus();
  }

  absl::Status Stage(size_t number, uint32_t next) {
    AGC_RETURN_IF_ERROR(Shape(number, next));
    const NestStage& s = nest_.stages[number];
    std::vector<VarId> all = s.over;
    for (size_t i = 0; i < Results(s); ++i) {
      const std::vector<VarId>& axes = nest_.components[next + i].axes;
      all.insert(all.end(), axes.begin(), axes.end());
    }
    if (s.when.valid()) {
      if (pool_.node(s.when).dtype != DType::kBool) return Error(s.loc, "the condition of a stage is no bool");
      AGC_RETURN_IF_ERROR(Value(s.when, all, next, {}, s.loc));
    }
    for (size_t i = 0; i < s.values.size(); ++i) {
      std::vector<VarId> axes = s.over;
      const std::vector<VarId>& own = nest_.components[next + (s.kind == StageKind::kContract ? 0 : i)].axes;
      axes.insert(axes.end(), own.begin(), own.end());
      AGC_RETURN_IF_ERROR(
          Value(s.values[i], axes, next, s.when.valid() ? std::vector<ExprId>{s.when} : std::vector<ExprId>{}, s.loc));
    }
    const bool reduces = s.kind == StageKind::kReduce || s.kind == StageKind::kContract;
    const double factor = reduces ? RecomputeFactor(nest_, s) : 1;
    if (factor > 1 && !MayRecompute(next)) {
      return Error(
          s.loc, absl::StrCat("%", nest_.components[next].name, " is a reduction that would be computed ", factor,
                              " times per element; place it recompute in the schedule or give it a kernel of its own"));
    }
    return absl::OkStatus();
  }

  bool MayRecompute(uint32_t component) const {
    if (nest_.schedule.Int("recompute", 0) != 0) return true;
    return std::any_of(nest_.schedule.place.begin(), nest_.schedule.place.end(), [&](const auto& p) {
      return p.first == nest_.components[component].name && (p.second == "recompute" || p.second == "inline");
    });
  }

  // An expression over `axes` that may read components before `next`.
  absl::Status Value(ExprId root, absl::Span<const VarId> axes, uint32_t next, const std::vector<ExprId>& when,
                     Loc loc) const {
    if (root.index >= pool_.size()) return Error(loc, "an expression is missing");
    for (Expr e : PostOrder(nest_.at(root))) {
      const ExprNode& n = e.node();
      if (n.kind == ExprKind::kVar && !Has(axes, n.ref)) {
        return Error(loc, absl::StrCat(Text(root), ": ", AxisName(n.ref), " is no axis of this stage"));
      }
      if (n.kind == ExprKind::kAllocLoad) return Error(loc, "a nest reads no allocs");
      if (n.kind == ExprKind::kStage) AGC_RETURN_IF_ERROR(StageRead(e, next, when, loc));
      if (n.kind == ExprKind::kLoad) AGC_RETURN_IF_ERROR(Load(e, when, loc));
    }
    return absl::OkStatus();
  }

  absl::Status StageRead(Expr e, uint32_t next, const std::vector<ExprId>& when, Loc loc) const {
    const ExprNode& n = e.node();
    if (n.ref >= next) return Error(loc, absl::StrCat("component ", n.ref, " is read before its stage"));
    const Component& c = nest_.components[n.ref];
    if (n.dtype != c.dtype)
      return Error(loc, absl::StrCat("%", c.name, " is ", Name(c.dtype), ", it is read as ", Name(n.dtype)));
    Dims dims;
    for (VarId v : c.axes) dims.push_back(nest_.extent(v));
    return InBounds(c.name, n.args, dims, when, loc, "read");
  }

  absl::Status Load(Expr e, std::vector<ExprId> when, Loc loc) const {
    const ExprNode& n = e.node();
    if (n.ref >= nest_.params.size()) return Error(loc, absl::StrCat("buffer ", n.ref, " does not exist"));
    const NestParam& p = nest_.params[n.ref];
    if (p.written) return Error(loc, absl::StrCat("output %", p.name, " is read"));
    if (n.dtype != p.type.dtype)
      return Error(loc, absl::StrCat("%", p.name, " holds ", Name(p.type.dtype), ", it is read as ", Name(n.dtype)));
    when.push_back(n.args.back());
    return InBounds(p.name, absl::MakeSpan(n.args).first(n.args.size() - 1), p.type.dims, when, loc, "read");
  }

  absl::Status InBounds(absl::string_view name, absl::Span<const ExprId> index, const Dims& dims,
                        const std::vector<ExprId>& when, Loc loc, absl::string_view what) const {
    if (index.size() != dims.size())
      return Error(loc, absl::StrCat("%", name, " takes ", dims.size(), " indices, found ", index.size()));
    bool reached = true;
    std::string out_of_range;
    for (size_t i = 0; i < dims.size(); ++i) {
      const IndexRange r = RangeUnder(pool_, index[i], when);
      reached = reached && r.lo <= r.hi;
      if (r.lo >= 0 && r.hi < dims[i]) continue;
      out_of_range = absl::StrCat("%", name, " is ", what, " at axis ", i, " with ", Text(index[i]), " in [", r.lo,
                                  ", ", r.hi, "], expected 0 to ", dims[i] - 1, "; add a guard");
      if (reached) break;
    }
    return reached && !out_of_range.empty() && CanHold(pool_, when) ? Error(loc, out_of_range) : absl::OkStatus();
  }

  absl::Status Stores() const {
    std::set<uint32_t> stored;
    for (const NestStore& s : nest_.stores) {
      if (s.param >= nest_.params.size() || !nest_.params[s.param].written)
        return Error(nest_.loc, absl::StrCat("a store goes to parameter ", s.param, ", which is no output"));
      const NestParam& p = nest_.params[s.param];
      if (!stored.insert(s.param).second) return Error(nest_.loc, absl::StrCat("output %", p.name, " is stored twice"));
      const uint32_t all = static_cast<uint32_t>(nest_.components.size());
      AGC_RETURN_IF_ERROR(Value(s.value, nest_.axes, all, {}, nest_.loc));
      for (ExprId i : s.index) AGC_RETURN_IF_ERROR(Value(i, nest_.axes, all, {}, nest_.loc));
      if (pool_.node(s.value).dtype != p.type.dtype)
        return Error(nest_.loc, absl::StrCat("%", p.name, " holds ", Name(p.type.dtype), ", ",
                                             Name(pool_.node(s.value).dtype), " is stored"));
      AGC_RETURN_IF_ERROR(InBounds(p.name, s.index, p.type.dims, {}, nest_.loc, "stored"));
      AGC_RETURN_IF_ERROR(EachOnce(s, p));
    }
    for (uint32_t i = 0; i < nest_.params.size(); ++i) {
      if (nest_.params[i].written && !stored.contains(i))
        return Error(nest_.loc, absl::StrCat("output %", nest_.params[i].name, " is never stored"));
    }
    return absl::OkStatus();
  }

  // Every element of an output is stored by exactly one position of the store's axes: none is left out, none is left to
  // a race.
  absl::Status EachOnce(const NestStore& s, const NestParam& p) const {
    const Lets none;
    Determined known(*nest_.pool, none);
    std::set<VarId> axes;
    const auto mention = [&](ExprId id) {
      for (VarId v : FreeVars(nest_.at(id))) axes.insert(v);
    };
    __int128 elements = 1;
    for (size_t k = 0; k < s.index.size(); ++k) {
      const Expr index = nest_.at(s.index[k]);
      known.Add(index, 1);
      mention(index.id);
      // A slot that is read from memory is the only one of its axis that this run stores.
      if (index.IsConst() || !FreeVars(index).empty()) elements *= p.type.dims[k];
    }
    mention(s.value);
    known.Close();
    __int128 positions = 1;
    for (VarId v : axes) {
      if (!known.Knows(nest_.pool->Var(v)))
        return Error(nest_.loc, absl::StrCat("output %", p.name, " may be stored at one place for several values of ",
                                             AxisName(v)));
      positions = std::min<__int128>(positions * nest_.extent(v), int64_t{1} << 62);
    }
    if (positions == elements) return absl::OkStatus();
    return Error(nest_.loc, absl::StrCat("output %", p.name, " has ", static_cast<int64_t>(elements), " elements, ",
                                         static_cast<int64_t>(positions), " are stored"));
  }

  const Nest& nest_;
  const ExprPool& pool_;
};

}  // namespace

absl::Status VerifyNest(const Nest& nest) { return NestVerifier(nest).Run(); }

}  // namespace agc
