// Puts a global barrier before each step that touches bytes which an earlier step touched since the last barrier, one
// of the two writing. Hazards are found on byte ranges, so bytes that buffers share count too; reads never wait for
// reads.
//   dispatch @exp (%x, %a)        dispatch @exp (%x, %a)
//   dispatch @neg (%a, %y)   ->   barrier
//                                 dispatch @neg (%a, %y)
// A recording begins with a barrier and ends with one, so none stands there. For a given order of steps no placement
// has fewer.
#include <utility>
#include <vector>

#include "passes/registry.h"
#include "passes/step_uses.h"

namespace agc {
namespace {

struct Range {
  int64_t arena = 0, begin = 0, end = 0;
};

bool Overlaps(const std::vector<Range>& ranges, const Range& r) {
  for (const Range& other : ranges) {
    if (other.arena == r.arena && other.begin < r.end && r.begin < other.end) return true;
  }
  return false;
}

// Ranges touched since the last barrier.
struct Epoch {
  std::vector<Range> read = {}, written = {};
};

bool PlaceInGraph(const Program& program, Graph& graph) {
  std::vector<Step> steps;
  std::vector<uint32_t> moved(graph.steps.size());
  size_t barriers = 0, had = 0;
  bool same = true;
  Epoch now;
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    Step& step = graph.steps[s];
    if (step.kind == StepKind::kBarrier) {
      ++had;
      continue;
    }
    std::vector<std::pair<Use, Range>> touched;
    bool hazard = false;
    for (const Use& use : UsesOf(program, step)) {
      const Buffer& b = graph.buffers[use.buffer];
      const Range range{b.arena, b.offset, b.offset + b.size};
      hazard = hazard || Overlaps(now.written, range) || (use.write && Overlaps(now.read, range));
      touched.push_back({use, range});
    }
    if (hazard) {
      steps.push_back({.kind = StepKind::kBarrier});
      ++barriers;
      now = {};
    }
    for (const auto& [use, range] : touched) (use.write ? now.written : now.read).push_back(range);
    moved[s] = static_cast<uint32_t>(steps.size());
    same = same && moved[s] == s;
    steps.push_back(std::move(step));
  }
  graph.steps = std::move(steps);
  for (Buffer& b : graph.buffers) {
    if (b.first_step < moved.size()) b.first_step = moved[b.first_step];
    if (b.last_step < moved.size()) b.last_step = moved[b.last_step];
  }
  return !same || had != barriers;
}

}  // namespace

absl::StatusOr<bool> PlaceBarriers(Program& program, PassContext&) {
  bool changed = false;
  for (Graph& graph : program.graphs) changed = PlaceInGraph(program, graph) || changed;
  return changed;
}

}  // namespace agc
