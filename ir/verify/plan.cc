// Storage tables and step lists, and the dispatch by stage.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

bool InTable(const Graph& graph, int32_t buffer) {
  return buffer >= 0 && static_cast<size_t>(buffer) < graph.buffers.size();
}

absl::Status CheckBuffer(const Graph& graph, const Program& program, const Buffer& b) {
  const std::string name = absl::StrCat("graph @", graph.name, ": buffer %", b.name);
  if ((b.parent >= 0 && !InTable(graph, b.parent)) || (b.alias >= 0 && !InTable(graph, b.alias))) {
    return ErrorAt(b.loc, absl::StrCat(name, " refers to a buffer that does not exist"));
  }
  size_t steps = 0;
  for (const Buffer* at = &b; at->alias >= 0; at = &graph.buffers[static_cast<size_t>(at->alias)]) {
    if (!InTable(graph, at->alias) || ++steps > graph.buffers.size())
      return ErrorAt(b.loc, absl::StrCat(name, " takes over its own storage"));
  }
  if (b.kind == BufferKind::kState && program.FindState(b.symbol) == nullptr) {
    return ErrorAt(b.loc, absl::StrCat(name, " belongs to state @", b.symbol, ", which is not declared"));
  }
  return absl::OkStatus();
}

absl::Status CheckRun(const Graph& graph, const Program& program, const Step& step) {
  if (step.callee >= program.nests.size())
    return ErrorAt(step.origin, absl::StrCat("run: nest ", step.callee, " does not exist"));
  const Nest& nest = program.nests[step.callee];
  if (step.args.size() != nest.params.size()) {
    return ErrorAt(step.origin, absl::StrCat("run @", nest.name, ": ", step.args.size(), " buffers are given, ",
                                             nest.params.size(), " expected"));
  }
  for (size_t i = 0; i < step.args.size(); ++i) {
    const Buffer& b = graph.buffers[static_cast<size_t>(step.args[i])];
    if (b.type == nest.params[i].type) continue;
    return ErrorAt(step.origin, absl::StrCat("run @", nest.name, ": %", b.name, " is ", ToString(b.type), ", %",
                                             nest.params[i].name, " is ", ToString(nest.params[i].type)));
  }
  return absl::OkStatus();
}

absl::Status CheckDispatch(const Program& program, const Step& step) {
  if (step.callee >= program.kernels.size())
    return ErrorAt(step.origin, absl::StrCat("dispatch: shader ", step.callee, " does not exist"));
  const Kernel& kernel = program.kernels[step.callee];
  if (step.args.size() != kernel.params.size()) {
    return ErrorAt(step.origin, absl::StrCat("dispatch @", kernel.name, ": ", step.args.size(), " buffers are given, ",
                                             kernel.params.size(), " expected"));
  }
  for (int64_t n : step.groups) {
    if (n < 1)
      return ErrorAt(step.origin, absl::StrCat("dispatch @", kernel.name, ": ", n, " workgroups are asked for"));
  }
  return absl::OkStatus();
}

absl::Status CheckStep(const Graph& graph, const Program& program, const Step& step) {
  for (int32_t arg : step.args) {
    if (!InTable(graph, arg))
      return ErrorAt(step.origin,
                     absl::StrCat("graph @", graph.name, ": a step uses buffer ", arg, ", which does not exist"));
  }
  const bool nests = program.stage == Stage::kNest || program.stage == Stage::kScheduled;
  switch (step.kind) {
    case StepKind::kRun:
      if (!nests)
        return ErrorAt(step.origin, absl::StrCat("run: steps of stage ", Name(program.stage), " are dispatches"));
      return CheckRun(graph, program, step);
    case StepKind::kDispatch:
      if (nests)
        return ErrorAt(step.origin, absl::StrCat("dispatch: steps of stage ", Name(program.stage), " run nests"));
      return CheckDispatch(program, step);
    case StepKind::kCopy:
      return step.args.size() == 2 ? absl::OkStatus() : ErrorAt(step.origin, "copy: takes a source and a destination");
    case StepKind::kFill:
      return step.args.size() == 1 ? absl::OkStatus() : ErrorAt(step.origin, "fill: takes one buffer");
    case StepKind::kBarrier:
      break;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status CheckUnique(const std::vector<T>& named, absl::string_view what) {
  std::set<std::string> names;
  for (const T& x : named) {
    if (!names.insert(x.name).second) return ErrorAt(x.loc, absl::StrCat(what, " @", x.name, " is defined twice"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyStorage(const Graph& graph, const Program& program) {
  std::set<std::string> names;
  if (!graph.ops.empty() && program.stage >= Stage::kNest) {
    return ErrorAt(graph.loc, absl::StrCat("graph @", graph.name, ": ops are left at stage ", Name(program.stage)));
  }
  for (const Buffer& b : graph.buffers) {
    if (!names.insert(b.name).second)
      return ErrorAt(b.loc, absl::StrCat("graph @", graph.name, ": buffer %", b.name, " is defined twice"));
    AGC_RETURN_IF_ERROR(CheckBuffer(graph, program, b));
  }
  for (const Step& step : graph.steps) AGC_RETURN_IF_ERROR(CheckStep(graph, program, step));
  return absl::OkStatus();
}

namespace {

// A resident is bound by its name once, for all graphs.
absl::Status CheckResidents(const Program& program) {
  std::map<std::string, const GraphParam*> first;
  for (const Graph& graph : program.graphs) {
    for (const GraphParam& p : graph.params) {
      if (p.kind != ParamKind::kResident) continue;
      const GraphParam& known = *first.emplace(p.name, &p).first->second;
      if (known.type == p.type) continue;
      return WithNote(
          ErrorAt(p.loc, absl::StrCat("resident %", p.name, " is ", ToString(p.type), " in graph @", graph.name,
                                      " and ", ToString(known.type), " in another; it is bound once, rename one")),
          "first here", known.loc);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Program& program) {
  AGC_RETURN_IF_ERROR(CheckUnique(program.states, "state"));
  AGC_RETURN_IF_ERROR(CheckUnique(program.blobs, "blob"));
  AGC_RETURN_IF_ERROR(CheckUnique(program.graphs, "graph"));
  AGC_RETURN_IF_ERROR(CheckUnique(program.nests, "nest"));
  AGC_RETURN_IF_ERROR(CheckUnique(program.kernels, "shader"));
  AGC_RETURN_IF_ERROR(CheckResidents(program));
  for (const Graph& graph : program.graphs) {
    AGC_RETURN_IF_ERROR(program.stage <= Stage::kPrimitive ? VerifyGraph(graph, program)
                                                           : VerifyStorage(graph, program));
  }
  for (const Nest& nest : program.nests) {
    AGC_RETURN_IF_ERROR(VerifyNest(nest));
    if (program.stage == Stage::kScheduled && nest.schedule.family.empty()) {
      return ErrorAt(nest.loc, absl::StrCat("nest @", nest.name, ": stage scheduled needs a schedule"));
    }
  }
  for (const Kernel& kernel : program.kernels) AGC_RETURN_IF_ERROR(VerifyKernel(kernel));
  return absl::OkStatus();
}

}  // namespace agc
