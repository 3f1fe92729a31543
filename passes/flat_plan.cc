#include "passes/flat_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "passes/step_uses.h"

namespace agc {
namespace {

absl::Status Broken(const Graph& graph, absl::string_view what) {
  return absl::InternalError(absl::StrCat("graph @", graph.name, ": ", what));
}

rt::Access AccessOf(const Use& use) {
  return static_cast<rt::Access>((use.read ? static_cast<int>(rt::Access::kRead) : 0) |
                                 (use.write ? static_cast<int>(rt::Access::kWrite) : 0));
}

absl::StatusOr<rt::FlatStep> FillStep(const Program& program, const Graph& graph, size_t number) {
  const Step& step = graph.steps[number];
  rt::FlatStep flat;
  switch (step.kind) {
    case StepKind::kDispatch:
      flat.kind = rt::StepKind::kDispatch;
      break;
    case StepKind::kCopy:
      flat.kind = rt::StepKind::kCopy;
      break;
    case StepKind::kFill:
      flat.kind = rt::StepKind::kFill;
      break;
    case StepKind::kBarrier:
      flat.kind = rt::StepKind::kBarrier;
      return flat;
    case StepKind::kRun:
      return Broken(graph, absl::StrCat("step ", number, " runs a nest"));
  }
  if (step.kind == StepKind::kDispatch) {
    const std::vector<KernelParam>& params = program.kernels[step.callee].params;
    if (params.size() != step.args.size()) {
      return Broken(graph, absl::StrCat("step ", number, " has ", step.args.size(), " arguments, kernel @",
                                        program.kernels[step.callee].name, " has ", params.size(), " parameters"));
    }
    flat.kernel = step.callee;
    for (size_t d = 0; d < 3; ++d) {
      if (step.groups[d] < 1 || step.groups[d] > UINT32_MAX) {
        return Broken(graph, absl::StrCat("step ", number, " has ", step.groups[d], " workgroups"));
      }
      flat.groups[d] = static_cast<uint32_t>(step.groups[d]);
    }
  }
  for (const Use& use : UsesOf(program, step)) {
    flat.args.push_back({.buffer = static_cast<uint32_t>(use.buffer),
                         .size = static_cast<uint64_t>(graph.buffers[use.buffer].size),
                         .access = AccessOf(use)});
  }
  flat.fill_word = step.fill_word;
  flat.label = step.label;
  flat.origin = ToString(step.origin);
  return flat;
}

}  // namespace

absl::StatusOr<rt::FlatPlan> FillFlatPlan(const Program& program, const Graph& graph) {
  rt::FlatPlan plan;
  plan.arena_sizes = graph.arena_sizes;
  for (const Buffer& b : graph.buffers) {
    if (b.arena < 0 || b.offset < 0 || b.size <= 0)
      return Broken(graph, absl::StrCat("buffer %", b.name, " has no place"));
    plan.buffers.push_back({.name = b.name,
                            .kind = static_cast<rt::BufferKind>(b.kind),
                            .arena = static_cast<uint32_t>(b.arena),
                            .offset = static_cast<uint64_t>(b.offset),
                            .size = static_cast<uint64_t>(b.size),
                            .first_step = b.first_step,
                            .last_step = b.last_step,
                            .alias = b.alias});
  }
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    AGC_ASSIGN_OR_RETURN(rt::FlatStep step, FillStep(program, graph, s));
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

int64_t PlanAlignment(const Target& target) { return std::max<int64_t>(16, target.offset_align); }

StateLayout LayoutStates(const Program& program, const Target& target) {
  const int64_t align = PlanAlignment(target);
  StateLayout layout;
  for (const StateDef& state : program.states) {
    const int64_t bytes = std::max<int64_t>(16, (state.type.bytes() + 15) / 16 * 16);
    layout.offsets.push_back((layout.bytes + align - 1) / align * align);
    layout.bytes = layout.offsets.back() + bytes;
  }
  return layout;
}

std::vector<uint8_t> ConstantBytes(const Program& program) {
  std::vector<uint8_t> bytes;
  for (const Graph& graph : program.graphs) {
    for (const Buffer& b : graph.buffers) {
      if (b.kind != BufferKind::kConst || b.arena != rt::kConstArena) continue;
      bytes.resize(std::max(bytes.size(), static_cast<size_t>(b.offset + b.size)));
      std::copy(b.data.begin(), b.data.end(), bytes.begin() + b.offset);
    }
  }
  return bytes;
}

}  // namespace agc
