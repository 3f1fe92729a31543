// What the steps of a graph (loop and plan stage) do to its buffers: who reads, who writes, who must come before whom,
// and from when to when the bytes of a temporary are needed.
//   for (const Use& use : UsesOf(program, step)) ...   // copy {%a, %b}: reads %a, writes %b
#pragma once
#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace agc {

struct Use {
  int32_t buffer = 0;
  uint32_t arg = 0;  // position in Step::args
  bool read = false, write = false;
};
std::vector<Use> UsesOf(const Program& program, const Step& step);

// By buffer: the one whose storage it lies in, at the end of its chain of aliases. Buffers with one root are one class.
std::vector<int32_t> StorageRoots(const Graph& graph);

// Bytes a buffer needs: its elements as stored, in whole 16 bytes, never 0.
int64_t PaddedBytes(const Buffer& buffer);
// Temporaries are what the planner may overlay.
bool IsTemporary(const Buffer& buffer);

// Direct predecessors of each step that keep the meaning of the list: reads after writes, writes after reads and writes
// of one class, in the order of the list.
std::vector<std::vector<int32_t>> Dependences(const Program& program, const Graph& graph);

// Closed range of times, by class root; first < 0 where nothing uses it. `times` holds the time of each step.
struct Life {
  int64_t first = -1, last = -1;
};
std::vector<Life> LivesOf(const Program& program, const Graph& graph, const std::vector<int64_t>& times);
// Epochs, or step numbers while some step has none.
std::vector<int64_t> EpochsOf(const Graph& graph);

// Drops temporaries that no step uses and renumbers; whether there were any.
bool EraseUnusedTemporaries(Graph& graph);

}  // namespace agc
