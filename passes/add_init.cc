// Writes `graph @init`, which gives every state its first value on the device. A random state draws from a stream of
// its own, numbered in the order of the states, under a key made from the seed; so the values depend on the seed and on
// the state's place, and on nothing else. A graph of that name in the module stays; it must update every state.
//   state @b: f32[10] init constant(0)    ->    graph @init(param %seed: u32[]) {
//                                                 %1: f32[10] = constant splat(0)
//                                                 update @b = %1
//                                               }
#include <algorithm>
#include <cmath>

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

// Orthogonal rows or columns, whichever are fewer, uniformly distributed: the orthogonal factor Q of the polar
// decomposition Q H of a matrix of normal numbers (Mezzadri 2007, "How to generate random matrices from the classical
// compact groups"; Q is that of any rotation of the matrix, rotated). Iterations X <- X p(X'X) move all singular values
// to 1: 16 of Jordan's quintic ("Muon", 2024), which multiplies small ones by 3.4 and leaves the others near 1, then 6
// of Newton and Schulz, each of which squares what is missing. The matrix is divided first by what no singular value
// exceeds but for one matrix in 10^7 (Davidson and Szarek 2001, theorem II.13).
Value Orthogonal(Value normal, DType dtype) {
  constexpr int kQuintic = 16, kCubic = 6;
  const Dims dims = normal.type().dims;
  const int64_t rows = dims[0], columns = rows == 0 ? 0 : normal.type().elements() / rows;
  if (rows * columns == 0) return normal;
  const bool wide = rows <= columns;
  const double bound = std::sqrt(static_cast<double>(rows)) + std::sqrt(static_cast<double>(columns)) + 6;
  Value x = Reshape(normal, {rows, columns}) / bound;
  if (dtype == DType::kF64) x = CastTo(x, dtype);
  if (!wide) x = Transpose(x, {1, 0});
  for (int i = 0; i < kQuintic; ++i) {
    const Value a = Matmul(x, Transpose(x, {1, 0}));
    x = x * 3.4445 + Matmul(a * -4.7750 + Matmul(a, a) * 2.0315, x);
  }
  for (int i = 0; i < kCubic; ++i) x = x * 1.5 - Matmul(Matmul(x, Transpose(x, {1, 0})), x) * 0.5;
  if (!wide) x = Transpose(x, {1, 0});
  return Reshape(x, dims);
}

// The first value of one state: u32[2] `key`, its own `stream`.
Value InitialValue(Builder& b, Value key, const StateDef& state, int64_t stream) {
  const Init& init = state.init;
  if (init.kind == InitKind::kConstant) return Full(b, state.type, init.a);
  Value drawn = {};
  if (init.kind == InitKind::kUniform) {
    drawn = RandomUniform(key, stream, state.type.dims) * (init.b - init.a) + init.a;
  } else if (init.kind == InitKind::kNormal) {
    drawn = RandomNormal(key, stream, state.type.dims) * init.b + init.a;
  } else {
    drawn = Orthogonal(RandomNormal(key, stream, state.type.dims), state.type.dtype) * init.a;
  }
  return drawn.type().dtype == state.type.dtype ? drawn : CastTo(drawn, state.type.dtype);
}

absl::StatusOr<Graph> InitGraph(Program& program) {
  Graph graph;
  graph.name = std::string(kInitGraph);
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
  if (const Graph* own = program.FindGraph(kInitGraph); own != nullptr) {
    AGC_RETURN_IF_ERROR(CheckOwn(program, *own));
    return false;
  }
  if (!states) return false;
  AGC_ASSIGN_OR_RETURN(Graph graph, InitGraph(program));
  program.graphs.push_back(std::move(graph));
  return true;
}

}  // namespace agc
