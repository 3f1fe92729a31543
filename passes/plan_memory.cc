// Gives every buffer an arena, an offset and a size. Temporaries of one graph overlay each other in the temp arena
// where their lives, counted in barrier epochs, are apart; a class of aliases is placed as one. States lie at the same
// offsets in every graph, constants in one arena of the module, inputs, params and outputs in the host arena, and each
// resident in an arena of its own.
//   buffer %a: f32[64] kind temp   ->   buffer %a: f32[64] kind temp arena 1 offset 0 size 256 life [0, 1]
//   buffer %b: f32[64] kind temp        buffer %b: f32[64] kind temp arena 1 offset 256 size 256 life [1, 2]
//   buffer %c: f32[64] kind temp        buffer %c: f32[64] kind temp arena 1 offset 0 size 256 life [2, 3]
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/status.h"
#include "passes/flat_plan.h"
#include "passes/memory/planner.h"
#include "passes/registry.h"
#include "passes/step_uses.h"

namespace agc {
namespace {

// Hands out bytes of an arena one after another.
struct Bump {
  int64_t align = 16, end = 0;
  int64_t Take(const Buffer& b) {
    const int64_t unit = std::max(align, b.align);
    const int64_t offset = (end + unit - 1) / unit * unit;
    end = offset + b.size;
    return offset;
  }
};

void Place(Buffer& b, int64_t arena, int64_t offset) {
  b.arena = arena;
  b.offset = offset;
}

// Arena 2 of the module: equal contents share their bytes.
int64_t PlaceConstants(Program& program, int64_t align) {
  Bump bump{.align = align};
  std::map<std::vector<uint8_t>, int64_t> seen;
  for (Graph& graph : program.graphs) {
    for (Buffer& b : graph.buffers) {
      if (b.kind != BufferKind::kConst) continue;
      const auto it = seen.find(b.data);
      const bool shared = it != seen.end() && !b.data.empty();
      Place(b, rt::kConstArena, shared ? it->second : bump.Take(b));
      seen.try_emplace(b.data, b.offset);
    }
  }
  return bump.end;
}

absl::Status PlaceStates(const Program& program, const StateLayout& layout, int64_t align, Graph& graph) {
  Bump counters{.align = align, .end = layout.bytes};
  for (Buffer& b : graph.buffers) {
    if (b.kind == BufferKind::kCounter) Place(b, rt::kStateArena, counters.Take(b));
    if (b.kind != BufferKind::kState) continue;
    const int state = program.StateIndex(b.symbol);
    if (state < 0 || b.type != program.states[state].type) {
      return ErrorAt(b.loc, absl::StrCat("graph @", graph.name, ": buffer %", b.name, " of type ", ToString(b.type),
                                         " is not state @", b.symbol));
    }
    Place(b, rt::kStateArena, layout.offsets[state]);
  }
  graph.arena_sizes[rt::kStateArena] = counters.end;
  return absl::OkStatus();
}

// Residents in the order of the graph's parameters.
void PlaceInterface(int64_t align, Graph& graph) {
  Bump host{.align = align};
  for (Buffer& b : graph.buffers) {
    if (b.kind == BufferKind::kInput || b.kind == BufferKind::kParam || b.kind == BufferKind::kOutput) {
      Place(b, rt::kHostArena, host.Take(b));
    }
  }
  graph.arena_sizes[rt::kHostArena] = host.end;
  const auto place_resident = [&](Buffer& b) {
    Place(b, static_cast<int64_t>(graph.arena_sizes.size()), 0);
    graph.arena_sizes.push_back(b.size);
  };
  for (const GraphParam& p : graph.params) {
    for (Buffer& b : graph.buffers) {
      if (b.kind == BufferKind::kResident && b.arena < 0 && b.symbol == p.name) place_resident(b);
    }
  }
  for (Buffer& b : graph.buffers) {
    if (b.kind == BufferKind::kResident && b.arena < 0) place_resident(b);
  }
}

void PlaceTemporaries(const Program& program, PassContext& context, int64_t align, Graph& graph) {
  const std::vector<int32_t> roots = StorageRoots(graph);
  const std::vector<Life> lives = LivesOf(program, graph, EpochsOf(graph));
  std::vector<memory::Interval> intervals;
  std::vector<int64_t> interval(graph.buffers.size(), -1);
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    const int32_t root = roots[b];
    if (!IsTemporary(graph.buffers[root])) continue;
    if (interval[root] < 0) {
      interval[root] = static_cast<int64_t>(intervals.size());
      intervals.push_back({.first = lives[root].first, .last = lives[root].last});
    }
    align = std::max(align, graph.buffers[b].align);
    memory::Interval& i = intervals[interval[root]];
    i.size = std::max(i.size, graph.buffers[b].size);
  }
  const int64_t bound = memory::LiveBound(intervals, align);
  if (!context.reuse_memory) {
    for (memory::Interval& i : intervals) i.first = 0, i.last = 0;
  }
  const memory::PackResult packed = memory::Pack(absl::MakeSpan(intervals), {.align = align});
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    if (IsTemporary(graph.buffers[roots[b]]))
      Place(graph.buffers[b], rt::kTempArena, intervals[interval[roots[b]]].offset);
  }
  graph.arena_sizes[rt::kTempArena] = packed.height;
  graph.bound_bytes = bound;
  context.remarks.push_back(absl::StrFormat(
      "plan-memory: graph @%s: temporaries take %d bytes in %d places, bound %d "
      "(ratio %.4f, %s)",
      graph.name, packed.height, intervals.size(), bound, bound == 0 ? 1.0 : static_cast<double>(packed.height) / bound,
      packed.method.empty() ? "nothing to place" : packed.method));
}

// Lives in step numbers, from first to last use.
void WriteLives(const Program& program, Graph& graph) {
  std::vector<bool> seen(graph.buffers.size());
  for (uint32_t s = 0; s < graph.steps.size(); ++s) {
    for (const Use& use : UsesOf(program, graph.steps[s])) {
      Buffer& b = graph.buffers[use.buffer];
      if (!seen[use.buffer]) b.first_step = s;
      seen[use.buffer] = true;
      b.last_step = s;
    }
  }
}

absl::Status SizeBuffers(const PassContext& context, Graph& graph) {
  for (Buffer& b : graph.buffers) {
    if (b.parent >= 0) return absl::UnimplementedError(absl::StrCat("buffer %", b.name, ": packed buffers"));
    b.size = PaddedBytes(b);
    if (context.abi == BufferAbi::kBindings && b.size > context.target.storage_range) {
      return ErrorAt(
          b.loc,
          absl::StrCat("graph @", graph.name, ": ", Name(b.kind), " buffer %", b.name, " of type ", ToString(b.type),
                       " takes ", b.size, " bytes, target ", context.target.name, " binds at most ",
                       context.target.storage_range, "; compile with --abi=addresses or make it smaller"),
          absl::StatusCode::kResourceExhausted);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> PlanMemory(Program& program, PassContext& context) {
  const int64_t align = PlanAlignment(context.target);
  const StateLayout states = LayoutStates(program, context.target);
  for (Graph& graph : program.graphs) {
    EraseUnusedTemporaries(graph);
    AGC_RETURN_IF_ERROR(SizeBuffers(context, graph));
  }
  const int64_t const_bytes = PlaceConstants(program, align);
  uint64_t state_bytes = 0;
  for (Graph& graph : program.graphs) {
    graph.arena_sizes.assign(rt::kFirstResidentArena, 0);
    graph.arena_sizes[rt::kConstArena] = const_bytes;
    AGC_RETURN_IF_ERROR(PlaceStates(program, states, align, graph));
    state_bytes = std::max(state_bytes, graph.arena_sizes[rt::kStateArena]);
    PlaceInterface(align, graph);
    PlaceTemporaries(program, context, align, graph);
    WriteLives(program, graph);
  }
  for (Graph& graph : program.graphs) graph.arena_sizes[rt::kStateArena] = state_bytes;
  return true;
}

}  // namespace agc
