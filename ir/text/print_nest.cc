// Nests and their schedules.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/text/print.h"

namespace agc {
namespace text {
namespace {

ExprNames Names(const Nest& nest, bool keep) {
  ExprNames names;
  NameScope values, vars;
  for (const NestParam& p : nest.params) {
    names.buffers.push_back(Sigil('%', values.Take(keep ? p.name : absl::StrCat("p", names.buffers.size()))));
  }
  for (const Component& c : nest.components) {
    names.components.push_back(Sigil('%', values.Take(keep ? c.name : absl::StrCat("s", names.components.size()))));
    names.component_axes.push_back(c.axes);
  }
  for (VarId v = 0; v < nest.pool->vars(); ++v) {
    names.vars.push_back(absl::StrCat("?", VarName(nest.pool->var(v).name)));
    names.var_rank.push_back(v);
  }
  for (size_t i = 0; i < nest.axes.size(); ++i) {
    const VarId v = nest.axes[i];
    if (v >= names.vars.size()) continue;
    names.vars[v] = vars.Take(keep ? VarName(nest.pool->var(v).name) : absl::StrCat("i", i));
    names.var_rank[v] = static_cast<uint32_t>(i);
  }
  return names;
}

std::string AxisName(const ExprNames& names, VarId v) {
  return v < names.vars.size() ? names.vars[v] : absl::StrCat("?", v);
}

std::string AxisList(const ExprNames& names, absl::Span<const VarId> axes, absl::string_view separator) {
  const auto each = [&](std::string* out, VarId v) { absl::StrAppend(out, AxisName(names, v)); };
  return absl::StrJoin(axes, separator, each);
}

// `place` names components as the nest prints them.
std::string ScheduleText(const Schedule& s, absl::FunctionRef<std::string(const std::string&)> component) {
  std::string out;
  for (const auto& [key, value] : s.params) {
    const int64_t* number = std::get_if<int64_t>(&value);
    absl::StrAppend(&out, out.empty() ? "" : ", ", Word(key), " = ",
                    number != nullptr ? absl::StrCat(*number) : Word(*std::get_if<std::string>(&value)));
  }
  if (!s.place.empty()) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", "place = {");
    for (size_t i = 0; i < s.place.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ", ", component(s.place[i].first), ": ", Word(s.place[i].second));
    }
    absl::StrAppend(&out, "}");
  }
  return absl::StrCat(Word(s.family), " {", out, "}");
}

class NestPrinter {
 public:
  NestPrinter(const Nest& nest, const PrintOptions& options, absl::string_view indent, std::string& out)
      : nest_(nest),
        options_(options),
        indent_(indent),
        inner_(absl::StrCat(indent, "  ")),
        out_(out),
        names_(Names(nest, options.names)) {}

  void Print() {
    Header();
    for (const NestStage& stage : nest_.stages) PrintStage(stage);
    for (const NestStore& store : nest_.stores) PrintStore(store);
    if (!nest_.schedule.family.empty()) {
      const auto component = [&](const std::string& name) {
        for (size_t i = 0; i < nest_.components.size(); ++i) {
          if (nest_.components[i].name == name) return names_.components[i];
        }
        return Sigil('%', name);
      };
      absl::StrAppend(&out_, inner_, "schedule ", ScheduleText(nest_.schedule, component), "\n");
    }
    absl::StrAppend(&out_, indent_, "}\n");
  }

 private:
  std::string Params(bool written) const {
    std::string out;
    for (size_t i = 0; i < nest_.params.size(); ++i) {
      if (nest_.params[i].written != written) continue;
      absl::StrAppend(&out, out.empty() ? "" : ", ", names_.buffers[i], ": ", ToString(nest_.params[i].type));
    }
    return out;
  }

  void Header() {
    absl::StrAppend(&out_, indent_, "nest ", options_.names ? Sigil('@', nest_.name) : "@_", "(", Params(false),
                    ") -> (", Params(true), ")");
    if (!nest_.axes.empty()) absl::StrAppend(&out_, " axes");
    for (VarId v : nest_.axes) {
      absl::StrAppend(&out_, " ", AxisName(names_, v), ":", v < nest_.pool->vars() ? nest_.extent(v) : 0);
    }
    if (options_.labels && !nest_.label.empty()) absl::StrAppend(&out_, " label ", Quote(nest_.label));
    absl::StrAppend(&out_, LocSuffix(nest_.loc, options_), " {\n");
  }

  std::string ExprText(ExprId id, std::optional<DType> expected) const {
    return PrintExpr(*nest_.pool, id, names_, expected);
  }

  // The dtype that the text names, which literals of all components take.
  std::optional<DType> StateType(const NestStage& stage) const {
    if (stage.kind == StageKind::kMap || stage.first_component >= nest_.components.size()) return std::nullopt;
    return nest_.components[stage.first_component].dtype;
  }

  size_t Components(const NestStage& stage) const {
    const size_t wanted =
        stage.combiner != nullptr ? static_cast<size_t>(stage.combiner->components) : stage.values.size();
    return std::min(wanted, nest_.components.size() - std::min<size_t>(stage.first_component, nest_.components.size()));
  }

  void PrintStage(const NestStage& stage) {
    std::vector<ExprId> roots = stage.values;
    if (stage.when.valid()) roots.push_back(stage.when);
    PrintShared(*nest_.pool, roots, names_, inner_, out_);
    absl::StrAppend(&out_, inner_);
    for (size_t i = 0; i < Components(stage); ++i) {
      const size_t c = stage.first_component + i;
      absl::StrAppend(&out_, i == 0 ? "" : ", ", names_.components[c], "[",
                      AxisList(names_, nest_.components[c].axes, ", "), "]");
    }
    absl::StrAppend(&out_, " = ", Name(stage.kind));
    const std::optional<DType> state = StateType(stage);
    if (state.has_value())
      absl::StrAppend(&out_, " ", stage.combiner != nullptr ? stage.combiner->name : "?", ":", Name(*state));
    if (stage.kind == StageKind::kScan) absl::StrAppend(&out_, " along ", AxisList(names_, stage.over, " "));
    if (stage.kind == StageKind::kReduce || stage.kind == StageKind::kContract) {
      absl::StrAppend(&out_, " over", stage.over.empty() ? "" : " ", AxisList(names_, stage.over, " "));
    }
    if (stage.when.valid()) absl::StrAppend(&out_, " if ", ExprText(stage.when, std::nullopt));
    const absl::string_view colon = stage.kind == StageKind::kMap && !stage.when.valid() ? " " : " : ";
    for (size_t i = 0; i < stage.values.size(); ++i) {
      absl::StrAppend(&out_,
                      i == 0                               ? colon
                      : stage.kind == StageKind::kContract ? " ; "
                                                           : ", ",
                      ExprText(stage.values[i], state));
    }
    if (options_.labels && !stage.origin.empty()) absl::StrAppend(&out_, " origin ", Quote(stage.origin));
    absl::StrAppend(&out_, LocSuffix(stage.loc, options_), "\n");
  }

  void PrintStore(const NestStore& store) {
    std::vector<ExprId> roots = store.index;
    roots.push_back(store.value);
    PrintShared(*nest_.pool, roots, names_, inner_, out_);
    const bool known = store.param < nest_.params.size();
    absl::StrAppend(&out_, inner_, "store ", known ? names_.buffers[store.param] : "%?", "[");
    for (size_t i = 0; i < store.index.size(); ++i) {
      absl::StrAppend(&out_, i == 0 ? "" : ", ", ExprText(store.index[i], DType::kIndex));
    }
    const std::optional<DType> dtype = known ? std::optional(nest_.params[store.param].type.dtype) : std::nullopt;
    absl::StrAppend(&out_, "] = ", ExprText(store.value, dtype), "\n");
  }

  const Nest& nest_;
  const PrintOptions& options_;
  const absl::string_view indent_;
  const std::string inner_;
  std::string& out_;
  ExprNames names_;
};

}  // namespace

void PrintNest(const Nest& nest, const PrintOptions& options, absl::string_view indent, std::string& out) {
  NestPrinter(nest, options, indent, out).Print();
}

}  // namespace text

ExprNames NamesOf(const Nest& nest) { return text::Names(nest, true); }

std::string Print(const Schedule& schedule) {
  return text::ScheduleText(schedule, [](const std::string& name) { return text::Sigil('%', name); });
}

}  // namespace agc
