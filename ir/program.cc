#include "ir/program.h"

#include <iterator>

namespace agc {
namespace {
constexpr absl::string_view kStageNames[] = {"tensor", "primitive", "nest", "scheduled", "loop", "plan"};
}

absl::string_view Name(Stage stage) { return kStageNames[static_cast<int>(stage)]; }

std::optional<Stage> StageNamed(absl::string_view name) {
  for (size_t i = 0; i < std::size(kStageNames); ++i) {
    if (kStageNames[i] == name) return static_cast<Stage>(i);
  }
  return std::nullopt;
}

absl::string_view Name(BufferKind kind) {
  static constexpr absl::string_view kNames[] = {"input",  "resident", "param",   "state",  "const",
                                                 "output", "temp",     "scratch", "counter"};
  return kNames[static_cast<int>(kind)];
}

int Program::StateIndex(absl::string_view state) const {
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i].name == state) return static_cast<int>(i);
  }
  return -1;
}

const StateDef* Program::FindState(absl::string_view state) const {
  const int i = StateIndex(state);
  return i < 0 ? nullptr : &states[i];
}

const Graph* Program::FindGraph(absl::string_view graph) const {
  for (const Graph& g : graphs) {
    if (g.name == graph) return &g;
  }
  return nullptr;
}

Graph* Program::FindGraph(absl::string_view graph) {
  return const_cast<Graph*>(static_cast<const Program*>(this)->FindGraph(graph));
}

Program Clone(const Program& p) {
  Program copy;
  copy.name = p.name;
  copy.stage = p.stage;
  copy.states = p.states;
  copy.blobs = p.blobs;
  copy.graphs = p.graphs;
  for (const Nest& nest : p.nests) copy.nests.push_back(Clone(nest));
  for (const Kernel& kernel : p.kernels) copy.kernels.push_back(Clone(kernel));
  return copy;
}

}  // namespace agc
