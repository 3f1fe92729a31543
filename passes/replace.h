// Replaces ops of a graph by ops appended behind them, then puts the graph in order again.
//   Replacements r(graph);
//   r.Replace(old, Emit(builder, ...).id);   // users keep reading `old` until Apply
//   const bool changed = r.Apply(program);   // ids of the graph are new from here on
// A replacement must not depend on the op it replaces.
#pragma once
#include <vector>

#include "ir/program.h"

namespace agc {

class Replacements {
 public:
  explicit Replacements(Graph& graph) : graph_(graph), first_new_(graph.ops.size()) {}

  void Replace(OpId old, OpId by);
  // What stands for `id` now: itself, or the end of its chain of replacements.
  OpId Resolve(OpId id) const;
  bool Replaced(OpId id) const { return Resolve(id) != id; }

  // Redirects all users, drops replaced ops and appended ones that nobody uses, and numbers canonically. Returns
  // whether anything changed.
  bool Apply(const Program& program);

 private:
  std::vector<bool> Kept() const;
  Graph& graph_;
  const size_t first_new_;
  std::vector<OpId> by_ = {};  // by op; invalid: not replaced
};

}  // namespace agc
