// Storage tables and step lists, and the dispatch by stage.
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/address.h"
#include "ir/base/status.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 48;  // of a buffer

bool InTable(const Graph& graph, int32_t buffer) {
  return buffer >= 0 && static_cast<size_t>(buffer) < graph.buffers.size();
}

// How the elements lie: what ir/address.h and the planner multiply must be sound and small enough.
absl::Status CheckLayout(const std::string& name, const Buffer& b) {
  const auto rank = static_cast<size_t>(b.type.rank());
  if (!b.order.empty()) {
    std::vector<bool> seen(rank);
    for (int axis : b.order) {
      const bool fresh = axis >= 0 && static_cast<size_t>(axis) < rank && !seen[static_cast<size_t>(axis)];
      if (!fresh || b.order.size() != rank)
        return ErrorAt(b.loc, absl::StrCat(name, ": order is no permutation of its axes"));
      seen[static_cast<size_t>(axis)] = true;
    }
  }
  if (!b.pad.empty() && b.pad.size() != rank)
    return ErrorAt(b.loc, absl::StrCat(name, ": pad has ", b.pad.size(), " numbers for ", rank, " axes"));
  __int128 bytes = SizeOf(b.stored);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t pad = b.pad.empty() ? 0 : b.pad[i];
    if (pad < 0) return ErrorAt(b.loc, absl::StrCat(name, ": pad is ", pad));
    bytes *= static_cast<__int128>(b.type.dims[i]) + pad;
    if (bytes > kMaxBytes) return ErrorAt(b.loc, absl::StrCat(name, ": more than ", kMaxBytes, " bytes"));
  }
  if (b.align < 1 || (b.align & (b.align - 1)) != 0)
    return ErrorAt(b.loc, absl::StrCat(name, ": align is ", b.align, ", expected a power of two"));
  const bool data = b.kind == BufferKind::kConst && static_cast<int64_t>(b.data.size()) != StoredBytes(b);
  if (data || (b.kind != BufferKind::kConst && !b.data.empty())) {
    return ErrorAt(b.loc, absl::StrCat(name, ": ", b.data.size(), " bytes of data, ",
                                       b.kind == BufferKind::kConst ? StoredBytes(b) : 0, " expected"));
  }
  return absl::OkStatus();
}

absl::Status CheckPlaces(const Graph& graph, const std::string& name, const Buffer& b) {
  if ((b.parent >= 0 && !InTable(graph, b.parent)) || (b.alias >= 0 && !InTable(graph, b.alias))) {
    return ErrorAt(b.loc, absl::StrCat(name, " refers to a buffer that does not exist"));
  }
  size_t steps = 0;
  for (const Buffer* at = &b; at->alias >= 0; at = &graph.buffers[static_cast<size_t>(at->alias)]) {
    if (!InTable(graph, at->alias) || ++steps > graph.buffers.size())
      return ErrorAt(b.loc, absl::StrCat(name, " takes over its own storage"));
  }
  if (b.parent >= 0) {
    const Buffer& parent = graph.buffers[static_cast<size_t>(b.parent)];
    if (b.parent_at.size() != parent.type.dims.size()) {
      return ErrorAt(b.loc, absl::StrCat(name, ": its place in %", parent.name, " has ", b.parent_at.size(),
                                         " numbers for ", parent.type.rank(), " axes"));
    }
  }
  return absl::OkStatus();
}

// What the row holds of the interface: the parameter, output or state of that name, and its type. The ring of a param
// and of an output of each step comes first.
absl::Status CheckSymbol(const Graph& graph, const Program& program, const std::string& name, const Buffer& b) {
  const TensorType* type = nullptr;
  bool each = false;
  absl::string_view what = "parameter %";
  if (b.kind == BufferKind::kState) {
    what = "state @";
    if (const StateDef* state = program.FindState(b.symbol); state != nullptr) type = &state->type;
  } else if (b.kind == BufferKind::kOutput) {
    what = "output %";
    for (const Output& o : graph.outputs) {
      if (o.name != b.symbol) continue;
      type = &o.type;
      each = o.each_step;
    }
  } else if (b.kind == BufferKind::kInput || b.kind == BufferKind::kResident || b.kind == BufferKind::kParam) {
    for (const GraphParam& p : graph.params) {
      if (p.name != b.symbol) continue;
      type = &p.type;
      each = p.kind == ParamKind::kParam;
    }
  } else {
    return absl::OkStatus();
  }
  if (type == nullptr)
    return ErrorAt(b.loc, absl::StrCat(name, " belongs to ", what, b.symbol, ", which is not declared"));
  TensorType stored = b.type;
  if (each && b.ring && !stored.dims.empty()) stored.dims.erase(stored.dims.begin());
  if (stored == *type) return absl::OkStatus();
  return ErrorAt(b.loc, absl::StrCat(name, " is ", ToString(b.type), ", ", what, b.symbol, " is ", ToString(*type)));
}

absl::Status CheckBuffer(const Graph& graph, const Program& program, const Buffer& b) {
  const std::string name = absl::StrCat("graph @", graph.name, ": buffer %", b.name);
  AGC_RETURN_IF_ERROR(CheckPlaces(graph, name, b));
  if (b.alias >= 0) {
    const Buffer& other = graph.buffers[static_cast<size_t>(b.alias)];
    if (StoredBytes(b) > StoredBytes(other)) {
      return ErrorAt(b.loc, absl::StrCat(name, " of ", StoredBytes(b), " bytes takes over %", other.name, " of ",
                                         StoredBytes(other)));
    }
  }
  return CheckSymbol(graph, program, name, b);
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

absl::Status CheckDispatch(const Graph& graph, const Program& program, const Step& step) {
  if (step.callee >= program.kernels.size())
    return ErrorAt(step.origin, absl::StrCat("dispatch: shader ", step.callee, " does not exist"));
  const Kernel& kernel = program.kernels[step.callee];
  if (step.args.size() != kernel.params.size()) {
    return ErrorAt(step.origin, absl::StrCat("dispatch @", kernel.name, ": ", step.args.size(), " buffers are given, ",
                                             kernel.params.size(), " expected"));
  }
  if (step.groups != kernel.groups()) {
    return ErrorAt(step.origin,
                   absl::StrCat("dispatch @", kernel.name, ": groups are ", absl::StrJoin(step.groups, ", "),
                                ", the shader has ", absl::StrJoin(kernel.groups(), ", ")));
  }
  for (size_t i = 0; i < step.args.size(); ++i) {
    const Buffer& b = graph.buffers[static_cast<size_t>(step.args[i])];
    const KernelParam& p = kernel.params[i];
    const bool fits =
        p.linear ? p.type.dtype == b.type.dtype && p.type.elements() == StoredElements(b) : p.type == b.type;
    if (fits && p.stored == b.stored) continue;
    return ErrorAt(step.origin, absl::StrCat("dispatch @", kernel.name, ": %", b.name, " is ", ToString(b.type), " of ",
                                             StoredElements(b), " elements stored as ", Name(b.stored), ", %", p.name,
                                             " is ", ToString(p.type), " stored as ", Name(p.stored)));
  }
  return absl::OkStatus();
}

absl::Status CheckCopy(const Graph& graph, const Step& step) {
  if (step.args.size() != 2) return ErrorAt(step.origin, "copy: takes a source and a destination");
  const Buffer& from = graph.buffers[static_cast<size_t>(step.args[0])];
  const Buffer& to = graph.buffers[static_cast<size_t>(step.args[1])];
  if (StoredBytes(from) == StoredBytes(to) && from.stored == to.stored) return absl::OkStatus();
  return ErrorAt(step.origin, absl::StrCat("copy: %", from.name, " has ", StoredBytes(from), " bytes, %", to.name,
                                           " has ", StoredBytes(to)));
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
      return CheckDispatch(graph, program, step);
    case StepKind::kCopy:
      return CheckCopy(graph, step);
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
    AGC_RETURN_IF_ERROR(CheckLayout(absl::StrCat("graph @", graph.name, ": buffer %", b.name), b));
  }
  for (const Buffer& b : graph.buffers) AGC_RETURN_IF_ERROR(CheckBuffer(graph, program, b));
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

// What a state may start with.
absl::Status CheckInit(const StateDef& state) {
  const Init& init = state.init;
  std::string wrong;
  // Values are drawn in f32; orthogonal ones are f64 where the state is.
  const bool wide = init.kind == InitKind::kOrthogonal && state.type.dtype == DType::kF64;
  const double most = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double span = init.kind == InitKind::kUniform ? std::abs(init.b - init.a) : 0;
  if (init.kind != InitKind::kConstant && !(std::abs(init.a) <= most && std::abs(init.b) <= most && span <= most))
    wrong = absl::StrCat("numbers, and what lies between the ends of uniform, are at most ", most);
  if (init.kind == InitKind::kUniform && init.a > init.b)
    wrong =
        absl::StrCat("uniform(", init.a, ", ", init.b, ") has no values between its ends, put the smaller one first");
  if (init.kind == InitKind::kNormal && init.b < 0)
    wrong = absl::StrCat("normal has a deviation of ", init.b, ", 0 or more is expected");
  if (init.kind == InitKind::kOrthogonal && (state.type.rank() < 2 || !IsFloat(state.type.dtype)))
    wrong = absl::StrCat("orthogonal is for floats of two axes or more, not for ", ToString(state.type));
  return wrong.empty() ? absl::OkStatus() : ErrorAt(state.loc, absl::StrCat("state @", state.name, ": ", wrong));
}

}  // namespace

absl::Status Verify(const Program& program) {
  AGC_RETURN_IF_ERROR(CheckUnique(program.states, "state"));
  for (const StateDef& state : program.states) AGC_RETURN_IF_ERROR(CheckInit(state));
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
