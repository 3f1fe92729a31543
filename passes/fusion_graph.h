// The graph that form-groups works on: who uses what, which ops share a group, which values leave one.
//   FusionGraph g(graph);   g.Join(id, group);   g.Members(group);   g.OutputsOf(ops);
#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "ir/lowering.h"

namespace agc {

using OpSet = std::set<OpId>;

class FusionGraph {
 public:
  explicit FusionGraph(Graph& graph);

  Graph& graph() const { return graph_; }
  const Op& op(OpId id) const { return graph_.op(id); }
  // Computed ops that read some element of the result.
  const OpSet& users(OpId id) const { return users_[id.index]; }
  // Computed ops whose results are read, nearest last.
  OpSet producers(OpId id) const;
  bool leaves(OpId id) const { return leaves_[id.index]; }  // an output or the new value of a state
  bool dead(OpId id) const;
  bool UsedOnlyBy(OpId id, const OpSet& ops) const;

  int NewGroup();
  void Join(OpId id, int group);
  const OpSet& members(int group) const { return members_[group]; }
  int groups() const { return static_cast<int>(members_.size()); }
  void Merge(int from, int into);

  // Values of `ops` that are used outside, ascending.
  std::vector<ValueRef> OutputsOf(const OpSet& ops) const;
  // How many buffers these values take: one for the ops of other groups and for updates, one per output of the graph.
  int64_t BuffersOf(const OpSet& ops, const std::vector<ValueRef>& outputs) const;

  // Whether some value of `from` may reach one of `to` through ops that are in neither, where reaching one op of a
  // group reaches all of it. The walk stays below `level` if levels are known, and gives up after some steps: true.
  bool ReachesAround(const OpSet& from, const OpSet& to, int level = INT32_MAX) const;

  // A copy of `id` for its users among `ops`; Unclone takes the latest back.
  OpId Clone(OpId id, const OpSet& ops);
  void Unclone(OpId clone, OpId original);
  // An op whose last user is gone uses nothing any more.
  void Bury(OpId id);

  // Levels of groups: above those of all that they read. Merge raises what reads the two.
  void FindLevels();
  int level(int group) const { return levels_[group]; }
  // Whether the longest chain of groups gets longer where two of them are computed together.
  bool Lengthens(int a, int b) const;

 private:
  OpSet ReadersOf(int group) const;
  int LevelOf(int a, int b) const;  // of both together
  void SetLevel(int group, int level);

  Graph& graph_;
  std::vector<OpSet> users_ = {};
  std::vector<bool> leaves_ = {};
  std::vector<std::vector<std::pair<ValueRef, bool>>> roots_ = {};  // by op: outputs and (true) updates
  std::vector<OpSet> members_ = {};
  std::vector<int> levels_ = {};
  std::vector<int> heights_ = {};  // groups that follow one another after this one
  int depth_ = 0;
  mutable std::vector<uint32_t> seen_ = {};  // by op: the last walk that met it
  mutable uint32_t walk_ = 0;
};

}  // namespace agc
