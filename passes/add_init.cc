// Writes `graph @init`, which gives every state its first value on the device. A random state draws from a stream of
// its own, numbered in the order of the states, under a key made from the seed; so the values depend on the seed and on
// the state's place, and on nothing else. A graph of that name in the module stays; it must update every state.
//   state @b: f32[10] init constant(0)    ->    graph @init(param %seed: u32[]) {
//                                                 %1: f32[10] = constant splat(0)
//                                                 update @b = %1
//                                               }
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build.h"
#include "ir/op_def.h"
#include "passes/registry.h"

namespace agc {
namespace {

Value Key(Value seed) {
  Value first = Reshape(seed, {1});
  Value second = Full(*seed.builder, {DType::kU32, {1}}, 0);
  return Concat({first, second}, 0);
}

// The first value of one state: u32[2] `key`, its own `stream`.
Value InitialValue(Builder& b, Value key, const StateDef& state, int64_t stream) {
  const Init& init = state.init;
  if (init.kind == InitKind::kConstant) return Full(b, state.type, init.a);
  Value drawn = init.kind == InitKind::kUniform
                    ? RandomUniform(key, stream, state.type.dims) * (init.b - init.a) + init.a
                    : RandomNormal(key, stream, state.type.dims) * init.b + init.a;
  return state.type.dtype == DType::kF32 ? drawn : CastTo(drawn, state.type.dtype);
}

absl::StatusOr<Graph> InitGraph(Program& program) {
  Graph graph;
  graph.name = "init";
  const OpId seed_op = AppendInput(graph, ParamKind::kParam, "seed", {DType::kU32, {}}, {});
  Builder b{.program = &program, .graph = &graph};
  const bool random = std::any_of(program.states.begin(), program.states.end(),
                                  [](const StateDef& s) { return !s.hidden && s.init.kind != InitKind::kConstant; });
  Value key = {};
  if (random) {
    const RuleScope scope(b, {}, "");
    key = Key({&b, seed_op});
  }
  for (const StateDef& state : program.states) {
    if (state.hidden) continue;
    const RuleScope scope(b, state.loc, "");
    const int64_t stream = state.init.kind == InitKind::kConstant ? 0 : graph.random_streams++;
    const Value value = InitialValue(b, key, state, stream);
    if (!b.errors.empty()) return b.status();
    graph.updates.push_back({state.name, value.id, state.loc});
  }
  Canonicalize(graph, program);
  return graph;
}

// A graph @init of the user's replaces the one made here, so it has to start every state.
absl::Status CheckOwn(const Program& program, const Graph& init) {
  for (const StateDef& state : program.states) {
    const auto starts = [&](const Update& u) { return u.state == state.name; };
    if (state.hidden || std::any_of(init.updates.begin(), init.updates.end(), starts)) continue;
    return ErrorAt(init.loc,
                   absl::StrCat("graph @init does not update state @", state.name,
                                ": it gives all states their first values; update it too, or rename the graph"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> AddInit(Program& program, PassContext&) {
  const bool states =
      std::any_of(program.states.begin(), program.states.end(), [](const StateDef& s) { return !s.hidden; });
  if (const Graph* own = program.FindGraph("init"); own != nullptr) {
    AGC_RETURN_IF_ERROR(CheckOwn(program, *own));
    return false;
  }
  if (!states) return false;
  AGC_ASSIGN_OR_RETURN(Graph graph, InitGraph(program));
  program.graphs.push_back(std::move(graph));
  return true;
}

}  // namespace agc
