// Nests: header with parameters and axes, stages, stores, schedule.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/text/parse.h"
#include "ir/text/parse_expr.h"

namespace agc::text {
namespace {

class NestParser {
 public:
  explicit NestParser(Cursor& c) : c_(c) { scope_.pool = nest_.pool.get(); }

  Nest Parse() {
    Header();
    while (c_.ok() && !c_.Accept("}")) Line();
    return std::move(nest_);
  }

 private:
  void Param(bool written) {
    const Loc here = c_.loc();
    NestParam p{.name = c_.Value("a parameter"), .written = written};
    c_.Expect(":");
    p.type = c_.Type();
    Add(p.name, {ExprKind::kLoad, static_cast<uint32_t>(nest_.params.size()), p.type.dtype, p.type.dims.size()}, here);
    nest_.params.push_back(std::move(p));
  }

  void Add(const std::string& name, Readable value, Loc here) {
    if (!scope_.values.emplace(name, std::move(value)).second)
      c_.Fail(here, absl::StrCat("%", name, " is defined twice"));
  }

  void Header() {
    nest_.loc = c_.loc();
    nest_.name = c_.Symbol("the nest's name");
    c_.Expect("(");
    c_.List(")", [&] { Param(false); });
    c_.Expect("->");
    c_.Expect("(");
    c_.List(")", [&] { Param(true); });
    if (c_.Accept("axes")) {
      while (c_.Peek().kind == TokenKind::kIdent && c_.Is(":", 1)) Axis();
    }
    if (c_.Accept("label")) nest_.label = c_.String("a label");
    nest_.loc = c_.OptionalLoc(nest_.loc);
    c_.Expect("{");
  }

  void Axis() {
    const Loc here = c_.loc();
    const std::string name = c_.Ident("an axis");
    c_.Expect(":");
    const int64_t extent = c_.Int("an extent", 1, kMaxDim);
    if (IsReserved(name)) c_.Fail(here, absl::StrCat(name, " cannot name an axis"));
    if (FindVar(scope_, name).has_value()) c_.Fail(here, absl::StrCat("axis ", name, " is declared twice"));
    scope_.vars.emplace_back(name, nest_.AddAxis(name, extent));
  }

  VarId AxisRef() {
    const Loc here = c_.loc();
    const std::string name = c_.Ident("an axis");
    const std::optional<VarId> v = FindVar(scope_, name);
    if (!v.has_value() && c_.ok())
      c_.Fail(here, absl::StrCat("unknown axis ", name, "; the header declares them, as in axes ", name, ":8"));
    return v.value_or(0);
  }

  void Line() {
    if (c_.Peek().kind == TokenKind::kDollar) return ParseShared(c_, scope_);
    if (c_.Peek().kind == TokenKind::kValue) return Stage();
    if (c_.Accept("store")) return Store();
    if (c_.Accept("schedule")) {
      nest_.schedule = ParseScheduleBody(c_);
      return;
    }
    c_.Fail(absl::StrCat("expected a stage, store, schedule or }, found ", c_.Describe()));
  }

  Component OneComponent() {
    Component component;
    component.name = c_.Value("a stage");
    c_.Expect("[");
    c_.List("]", [&] { component.axes.push_back(AxisRef()); });
    return component;
  }

  void Stage() {
    NestStage stage;
    stage.loc = c_.loc();
    std::vector<Component> results;
    do {
      results.push_back(OneComponent());
    } while (c_.Accept(","));
    c_.Expect("=");
    std::optional<DType> state = StageHead(stage);
    if (c_.Accept("if")) stage.when = ParseCondition(c_, scope_).id;
    if (stage.kind != StageKind::kMap || stage.when.valid()) c_.Expect(":");
    do {
      const Expr value = ParseExpr(c_, scope_, state);
      stage.values.push_back(value.id);
      if (stage.kind != StageKind::kContract && stage.values.size() <= results.size())
        results[stage.values.size() - 1].dtype = value.dtype();
      if (c_.ok() && value.dtype() == DType::kIndex)
        c_.Fail(stage.loc, "a stage has values, found an index; make a value with i32(index)");
    } while (c_.Accept(stage.kind == StageKind::kContract ? ";" : ","));
    if (state.has_value()) results[0].dtype = *state;
    if (c_.Accept("origin")) stage.origin = c_.String("an origin");
    CheckCounts(stage, results.size());
    stage.loc = c_.OptionalLoc(stage.loc);
    if (!c_.ok()) return;
    const Loc loc = stage.loc;
    const uint32_t first = nest_.AddStage(std::move(stage), std::move(results));
    for (uint32_t i = first; i < nest_.components.size(); ++i) {
      const Component& comp = nest_.components[i];
      Add(comp.name, {ExprKind::kStage, i, comp.dtype, comp.axes.size(), comp.axes}, loc);
    }
  }

  // `reduce add:f32 over a b`; the dtype if one is named.
  std::optional<DType> StageHead(NestStage& stage) {
    const Loc here = c_.loc();
    const std::string kind = c_.Ident("a kind of stage");
    if (kind == "map") return std::nullopt;
    stage.kind = kind == "reduce" ? StageKind::kReduce : kind == "contract" ? StageKind::kContract : StageKind::kScan;
    if (stage.kind == StageKind::kScan && kind != "scan") {
      c_.Fail(here, absl::StrCat("unknown kind of stage ", kind, ", expected map, reduce, contract or scan"));
    }
    const Loc at_combiner = c_.loc();
    const std::string name = c_.Ident("a combiner");
    stage.combiner = FindCombiner(name);
    if (stage.combiner == nullptr) {
      std::vector<std::string> names;
      for (const Combiner& combiner : Combiners()) names.emplace_back(combiner.name);
      c_.Fail(at_combiner, absl::StrCat("unknown combiner ", name, Nearest(name, names)));
    }
    c_.Expect(":");
    const DType dtype = c_.TypeName("the type that the state is kept in");
    c_.Expect(stage.kind == StageKind::kScan ? "along" : "over");
    while (c_.Peek().kind == TokenKind::kIdent && !c_.Is("if")) stage.over.push_back(AxisRef());
    if (c_.ok() && stage.kind == StageKind::kScan && stage.over.size() != 1)
      c_.Fail(here, "a scan goes along one axis");
    return dtype;
  }

  void CheckCounts(const NestStage& stage, size_t results) {
    const size_t components = stage.combiner != nullptr ? static_cast<size_t>(stage.combiner->components) : results;
    const size_t values = stage.kind == StageKind::kContract ? 2 : components;
    if (results != components)
      c_.Fail(stage.loc,
              absl::StrCat(stage.combiner->name, " has ", components, " components, ", results, " are named"));
    if (stage.values.size() != values)
      c_.Fail(stage.loc, absl::StrCat(values, " values are expected, ", stage.values.size(), " are given"));
  }

  void Store() {
    const Loc here = c_.loc();
    NestStore store;
    const std::string name = c_.Value("an output");
    const auto it =
        std::find_if(nest_.params.begin(), nest_.params.end(), [&](const NestParam& p) { return p.name == name; });
    if (c_.ok() && it == nest_.params.end()) c_.Fail(here, absl::StrCat("unknown output %", name));
    if (!c_.ok()) return;
    store.param = static_cast<uint32_t>(it - nest_.params.begin());
    const Place place = ParsePlace(c_, scope_, name, it->type.dims.size());
    if (c_.ok() && !place.guard.IsTrue()) c_.Fail(here, "a store of a nest takes no guard");
    for (Expr e : place.index) store.index.push_back(e.id);
    c_.Expect("=");
    const Expr value = ParseExpr(c_, scope_, it->type.dtype);
    if (c_.ok() && value.dtype() != it->type.dtype) {
      c_.Fail(here, absl::StrCat("%", name, " holds ", Name(it->type.dtype), ", the value is ", Name(value.dtype()),
                                 "; convert with cast<", Name(it->type.dtype), ">(value)"));
    }
    store.value = value.id;
    nest_.stores.push_back(std::move(store));
  }

  Cursor& c_;
  Nest nest_ = {};
  ExprScope scope_ = {};
};

void ParsePlaces(Cursor& c, Schedule& s) {
  c.Expect("{");
  c.List("}", [&] {
    const std::string component = c.Value("a stage");
    c.Expect(":");
    s.place.emplace_back(component, c.Word("a place"));
  });
}

}  // namespace

Schedule ParseScheduleBody(Cursor& c) {
  Schedule s;
  s.family = c.Word("a schedule family");
  c.Expect("{");
  c.List("}", [&] {
    const std::string key = c.Word("a parameter");
    c.Expect("=");
    if (key == "place" && c.Is("{")) return ParsePlaces(c, s);
    if (c.Peek().kind == TokenKind::kInt || c.Is("-")) {
      s.params.emplace_back(key, c.Int(key, INT64_MIN, INT64_MAX));
    } else {
      s.params.emplace_back(key, c.Word(key));
    }
  });
  return s;
}

void ParseNest(ModuleParser& m) { m.program.nests.push_back(NestParser(m.c).Parse()); }

}  // namespace agc::text
