// Storage tables and step lists.
#include "absl/strings/str_cat.h"
#include "ir/text/print.h"

namespace agc::text {
namespace {

std::string BufferName(const std::vector<std::string>& names, int32_t i) {
  return i >= 0 && static_cast<size_t>(i) < names.size() ? names[static_cast<size_t>(i)] : std::string("%?");
}

void PrintBuffer(const Buffer& b, absl::string_view name, const std::vector<std::string>& names,
                 const PrintOptions& options, std::string& out) {
  absl::StrAppend(&out, "    buffer ", name, ": ", ToString(b.type), " kind ", Name(b.kind));
  if (!b.symbol.empty()) absl::StrAppend(&out, " ", Sigil(b.kind == BufferKind::kState ? '@' : '%', b.symbol));
  if (b.each_step) absl::StrAppend(&out, " each_step");
  if (b.ring) absl::StrAppend(&out, " ring");
  if (b.stored != b.type.dtype) absl::StrAppend(&out, " stored ", Name(b.stored));
  if (!b.order.empty()) absl::StrAppend(&out, " order ", IntList(Dims(b.order.begin(), b.order.end())));
  if (!b.pad.empty()) absl::StrAppend(&out, " pad ", IntList(b.pad));
  if (b.parent >= 0) absl::StrAppend(&out, " in ", BufferName(names, b.parent));
  if (!b.parent_at.empty()) absl::StrAppend(&out, " at ", IntList(b.parent_at));
  if (b.align != 16) absl::StrAppend(&out, " align ", b.align);
  if (b.alias >= 0) absl::StrAppend(&out, " alias ", BufferName(names, b.alias));
  if (!b.data.empty()) {
    absl::StrAppend(&out, " data ", Hex({reinterpret_cast<const char*>(b.data.data()), b.data.size()}));
  }
  if (b.arena != -1 || b.offset != 0 || b.size != 0) {
    absl::StrAppend(&out, " arena ", b.arena, " offset ", b.offset, " size ", b.size);
  }
  if (b.arena != -1 || b.first_step != 0 || b.last_step != 0) {
    absl::StrAppend(&out, " life [", b.first_step, ", ", b.last_step, "]");
  }
  absl::StrAppend(&out, LocSuffix(b.loc, options), "\n");
}

std::string Args(const Step& step, size_t begin, size_t end, const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = begin; i < end; ++i) absl::StrAppend(&out, i == begin ? "" : ", ", BufferName(names, step.args[i]));
  return out;
}

void PrintRun(const Step& step, const Program& program, const std::vector<std::string>& names, std::string& out) {
  if (step.callee >= program.nests.size()) {
    absl::StrAppend(&out, "run @? (", Args(step, 0, step.args.size(), names), ")");
    return;
  }
  const Nest& nest = program.nests[step.callee];
  size_t inputs = 0;
  while (inputs < step.args.size() && inputs < nest.params.size() && !nest.params[inputs].written) ++inputs;
  absl::StrAppend(&out, "run ", Sigil('@', nest.name), "(", Args(step, 0, inputs, names), ") -> (",
                  Args(step, inputs, step.args.size(), names), ")");
}

void PrintStep(const Step& step, const Program& program, const std::vector<std::string>& names,
               const PrintOptions& options, std::string& out) {
  const auto arg = [&](size_t i) { return i < step.args.size() ? BufferName(names, step.args[i]) : std::string("%?"); };
  absl::StrAppend(&out, "    ");
  switch (step.kind) {
    case StepKind::kRun:
      PrintRun(step, program, names, out);
      break;
    case StepKind::kDispatch:
      absl::StrAppend(
          &out, "dispatch ",
          step.callee < program.kernels.size() ? Sigil('@', program.kernels[step.callee].name) : std::string("@?"),
          " groups ", IntList(step.groups), " (", Args(step, 0, step.args.size(), names), ")");
      break;
    case StepKind::kCopy:
      absl::StrAppend(&out, "copy ", arg(0), " -> ", arg(1));
      break;
    case StepKind::kFill:
      absl::StrAppend(&out, "fill ", arg(0), " word ", step.fill_word);
      break;
    case StepKind::kBarrier:
      absl::StrAppend(&out, "barrier");
      break;
  }
  if (step.epoch != -1) absl::StrAppend(&out, " epoch ", step.epoch);
  if (options.labels && !step.label.empty()) absl::StrAppend(&out, " label ", Quote(step.label));
  absl::StrAppend(&out, LocSuffix(step.origin, options), "\n");
}

}  // namespace

void PrintStorage(const Graph& graph, const Program& program, const PrintOptions& options, std::string& out) {
  std::vector<std::string> names;
  NameScope taken;
  for (const Buffer& b : graph.buffers) names.push_back(Sigil('%', taken.Take(b.name)));
  for (size_t i = 0; i < graph.buffers.size(); ++i) PrintBuffer(graph.buffers[i], names[i], names, options, out);
  if (!graph.arena_sizes.empty()) {
    absl::StrAppend(&out, "    arenas ",
                    IntList(std::vector<int64_t>(graph.arena_sizes.begin(), graph.arena_sizes.end())), "\n");
  }
  if (graph.bound_bytes != 0) absl::StrAppend(&out, "    bound ", graph.bound_bytes, "\n");
  for (const Step& step : graph.steps) PrintStep(step, program, names, options, out);
}

}  // namespace agc::text
