// A module at any stage: what the passes transform. `module @m stage loop { ... }` in text; tensor is the default.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/kernel.h"
#include "ir/nest.h"

namespace agc {

enum class Stage : uint8_t { kTensor, kPrimitive, kNest, kScheduled, kLoop, kPlan };
absl::string_view Name(Stage stage);
std::optional<Stage> StageNamed(absl::string_view name);

// The hidden state that counts the steps of a run: the slot of params and each_step outputs.
inline constexpr absl::string_view kRunIndex = "run.index";

// How a state starts: `uniform(lo, hi)`, `normal(mean, std)`, `orthogonal(gain)`, `constant(v)`; written by
// `graph @init`. Orthogonal: gain times a random matrix [dims[0], all other elements] whose rows, or columns if they
// are fewer, are orthogonal and of length 1.
enum class InitKind : uint8_t { kConstant, kUniform, kNormal, kOrthogonal };
struct Init {
  InitKind kind = InitKind::kConstant;
  double a = 0, b = 0;
  friend bool operator==(const Init&, const Init&) = default;
};
inline constexpr absl::string_view kInitGraph = "init";

struct StateDef {
  std::string name = {};  // without '@'
  TensorType type = {};
  Init init = {};
  bool trainable = false;
  bool hidden = false;  // kRunIndex
  Loc loc = {};
};

// Bytes kept in a file, mapped when needed and never owned by the IR.
struct BlobDef {
  std::string name = {};
  TensorType type = {};
  std::string file = {};
  int64_t offset = 0;
  std::string hash = {};
  Loc loc = {};
};

struct Program {
  std::string name = "module";
  Stage stage = Stage::kTensor;
  std::vector<StateDef> states = {};
  std::vector<BlobDef> blobs = {};
  std::vector<Graph> graphs = {};
  std::vector<Nest> nests = {};      // nest, scheduled
  std::vector<Kernel> kernels = {};  // loop, plan

  const StateDef* FindState(absl::string_view state) const;
  int StateIndex(absl::string_view state) const;  // -1 if unknown
  const Graph* FindGraph(absl::string_view graph) const;
  Graph* FindGraph(absl::string_view graph);
};

Program Clone(const Program& program);

}  // namespace agc
