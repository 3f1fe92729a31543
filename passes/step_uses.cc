#include "passes/step_uses.h"

#include <algorithm>

#include "ir/address.h"
#include "ir/base/status.h"

namespace agc {

std::vector<Use> UsesOf(const Program& program, const Step& step) {
  const bool dispatch = step.kind == StepKind::kDispatch;
  AGC_CHECK(!dispatch || step.args.size() == program.kernels[step.callee].params.size());
  std::vector<Use> uses;
  for (uint32_t i = 0; i < step.args.size(); ++i) {
    Use use{.buffer = step.args[i], .arg = i};
    if (dispatch) {
      const int access = static_cast<int>(program.kernels[step.callee].params[i].access);
      use.read = (access & static_cast<int>(KernelAccess::kRead)) != 0;
      use.write = (access & static_cast<int>(KernelAccess::kWrite)) != 0;
    } else {
      use.read = step.kind == StepKind::kCopy && i == 0;
      use.write = !use.read;
    }
    uses.push_back(use);
  }
  return uses;
}

std::vector<int32_t> StorageRoots(const Graph& graph) {
  std::vector<int32_t> roots(graph.buffers.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    int32_t at = static_cast<int32_t>(i);
    for (size_t hops = 0; graph.buffers[at].alias >= 0; ++hops) {
      AGC_CHECK(hops < roots.size());
      at = graph.buffers[at].alias;
    }
    roots[i] = at;
  }
  return roots;
}

int64_t PaddedBytes(const Buffer& buffer) { return std::max<int64_t>(16, (StoredBytes(buffer) + 15) / 16 * 16); }

bool IsTemporary(const Buffer& buffer) {
  return buffer.kind == BufferKind::kTemp || buffer.kind == BufferKind::kScratch;
}

std::vector<std::vector<int32_t>> Dependences(const Program& program, const Graph& graph) {
  const std::vector<int32_t> roots = StorageRoots(graph);
  std::vector<int32_t> writer(graph.buffers.size(), -1);
  std::vector<std::vector<int32_t>> readers(graph.buffers.size());  // since the last write
  std::vector<std::vector<int32_t>> before(graph.steps.size());
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    const int32_t step = static_cast<int32_t>(s);
    const std::vector<Use> uses = UsesOf(program, graph.steps[s]);
    for (const Use& use : uses) {
      const int32_t root = roots[use.buffer];
      if (writer[root] >= 0 && writer[root] != step) before[s].push_back(writer[root]);
      if (!use.write) continue;
      for (int32_t reader : readers[root]) {
        if (reader != step) before[s].push_back(reader);
      }
    }
    for (const Use& use : uses) {
      if (use.write) {
        writer[roots[use.buffer]] = step;
        readers[roots[use.buffer]].clear();
      }
    }
    for (const Use& use : uses) {
      if (!use.write) readers[roots[use.buffer]].push_back(step);
    }
    std::sort(before[s].begin(), before[s].end());
    before[s].erase(std::unique(before[s].begin(), before[s].end()), before[s].end());
  }
  return before;
}

std::vector<Life> LivesOf(const Program& program, const Graph& graph, const std::vector<int64_t>& times) {
  const std::vector<int32_t> roots = StorageRoots(graph);
  std::vector<Life> lives(graph.buffers.size());
  for (size_t s = 0; s < graph.steps.size(); ++s) {
    for (const Use& use : UsesOf(program, graph.steps[s])) {
      Life& life = lives[roots[use.buffer]];
      life.first = life.first < 0 ? times[s] : std::min(life.first, times[s]);
      life.last = std::max(life.last, times[s]);
    }
  }
  return lives;
}

std::vector<int64_t> EpochsOf(const Graph& graph) {
  std::vector<int64_t> times(graph.steps.size());
  bool known = true;
  for (size_t s = 0; s < times.size(); ++s) {
    times[s] = graph.steps[s].epoch;
    known = known && times[s] >= 0 && (s == 0 || times[s] >= times[s - 1]);
  }
  for (size_t s = 0; s < times.size() && !known; ++s) times[s] = static_cast<int64_t>(s);
  return times;
}

bool EraseUnusedTemporaries(Graph& graph) {
  std::vector<int32_t> renamed(graph.buffers.size(), -1);
  std::vector<bool> used(graph.buffers.size());
  for (const Step& step : graph.steps) {
    for (int32_t b : step.args) {
      for (int32_t at = b; at >= 0; at = graph.buffers[at].alias) used[at] = true;
    }
  }
  std::vector<Buffer> kept;
  for (size_t i = 0; i < graph.buffers.size(); ++i) {
    if (!used[i] && IsTemporary(graph.buffers[i])) continue;
    renamed[i] = static_cast<int32_t>(kept.size());
    kept.push_back(std::move(graph.buffers[i]));
  }
  const bool changed = kept.size() != graph.buffers.size();
  graph.buffers = std::move(kept);
  for (Buffer& b : graph.buffers) {
    if (b.alias >= 0) b.alias = renamed[b.alias];
    if (b.parent >= 0) b.parent = renamed[b.parent];
  }
  for (Step& step : graph.steps) {
    for (int32_t& b : step.args) b = renamed[b];
  }
  return changed;
}

}  // namespace agc
