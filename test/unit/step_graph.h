// Random programs at stage loop, small enough to be executed by the tests of the plan passes: kernels of one loop over
// integers that read elements straight, reversed or wrapped, states with copies at the end, temporaries, outputs.
#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/program.h"
#include "passes/flat_plan.h"
#include "passes/step_uses.h"

namespace agc::test {

using Rng = std::mt19937;
inline int Below(Rng& rng, int n) { return static_cast<int>(rng() % static_cast<uint32_t>(n)); }
inline TensorType IntType(int64_t n) { return {DType::kI32, {n}}; }

enum class Reading : uint8_t { kStraight, kReversed };
struct Operand {
  int64_t size = 0;
  Reading reading = Reading::kStraight;
};

// out_k[e] = sum over operands of (i + 2) * x_i[e or reversed] + constant + k
inline Kernel MakeKernel(std::string name, std::vector<Operand> operands, int64_t size, int outputs, int64_t constant) {
  Kernel kernel;
  kernel.name = std::move(name);
  ExprPool& pool = *kernel.pool;
  const VarId e = pool.Declare({.name = "e", .lo = 0, .hi = size - 1});
  Expr sum = pool.Const(Scalar::Int(DType::kI32, constant));
  for (uint32_t i = 0; i < operands.size(); ++i) {
    const Operand& x = operands[i];
    kernel.params.push_back({.name = absl::StrCat("x", i), .type = IntType(x.size), .stored = DType::kI32});
    Expr index = x.size < size ? Mod(pool.Var(e), x.size) : pool.Var(e);
    if (x.reading == Reading::kReversed) index = pool.Int(x.size - 1) - index;
    sum = sum + pool.Load(i, {index}, DType::kI32) * pool.Const(Scalar::Int(DType::kI32, i + 2));
  }
  Stmt loop{.kind = StmtKind::kFor, .mode = ForMode::kWorkgroup, .var = e};
  loop.begin = pool.Int(0).id;
  loop.end = pool.Int(size).id;
  for (int k = 0; k < outputs; ++k) {
    kernel.params.push_back(
        {.name = absl::StrCat("y", k), .type = IntType(size), .stored = DType::kI32, .access = KernelAccess::kWrite});
    Stmt store{.kind = StmtKind::kStore, .target = static_cast<uint32_t>(operands.size()) + k};
    store.index = {pool.Var(e).id};
    store.value = (sum + pool.Const(Scalar::Int(DType::kI32, k))).id;
    loop.body.push_back(store);
  }
  kernel.parts.push_back({.groups = {size, 1, 1}, .body = {loop}});
  return kernel;
}

inline int32_t AddBuffer(Graph& graph, std::string name, int64_t size, BufferKind kind, std::string symbol = {}) {
  Buffer b{.name = std::move(name), .type = IntType(size), .kind = kind, .symbol = std::move(symbol)};
  b.stored = DType::kI32;
  graph.buffers.push_back(std::move(b));
  return static_cast<int32_t>(graph.buffers.size() - 1);
}

inline void AddDispatch(Program& program, Graph& graph, Kernel kernel, std::vector<int32_t> args) {
  graph.steps.push_back({.kind = StepKind::kDispatch,
                         .callee = static_cast<uint32_t>(program.kernels.size()),
                         .args = std::move(args),
                         .groups = kernel.groups(),
                         .label = kernel.name});
  program.kernels.push_back(std::move(kernel));
}

inline int32_t AddState(Program& program, Graph& graph, int64_t size) {
  const std::string name = absl::StrCat("s", program.states.size());
  program.states.push_back({.name = name, .type = IntType(size)});
  return AddBuffer(graph, name, size, BufferKind::kState, name);
}

inline void AddCopy(Graph& graph, int32_t from, int32_t to) {
  graph.steps.push_back({.kind = StepKind::kCopy, .args = {from, to}});
}

struct RandomOptions {
  int steps = 12, states = 3, inputs = 2;
};

inline Program RandomProgram(Rng& rng, const RandomOptions& options) {
  static constexpr int64_t kSizes[] = {8, 24};
  Program program;
  program.stage = Stage::kLoop;
  program.graphs.emplace_back();
  Graph& graph = program.graphs[0];
  graph.name = "g";
  std::vector<int32_t> readable, states, temps;
  for (int i = 0; i < options.states; ++i) states.push_back(AddState(program, graph, kSizes[Below(rng, 2)]));
  readable = states;
  for (int i = 0; i < options.inputs; ++i) {
    readable.push_back(AddBuffer(graph, absl::StrCat("i", i), kSizes[Below(rng, 2)], BufferKind::kInput));
  }
  const auto dispatch = [&](int64_t size, std::vector<int32_t> out) {
    std::vector<Operand> operands;
    std::vector<int32_t> args;
    for (int k = 1 + Below(rng, 3); k > 0; --k) {
      // Mostly recent values, so that lives end; sometimes any.
      const int back = Below(rng, Below(rng, 4) == 0 ? static_cast<int>(readable.size()) : 4);
      const int32_t x = readable[readable.size() - 1 - std::min<size_t>(back, readable.size() - 1)];
      if (std::find(args.begin(), args.end(), x) != args.end()) continue;
      operands.push_back({graph.buffers[x].type.dims[0], Below(rng, 4) == 0 ? Reading::kReversed : Reading::kStraight});
      args.push_back(x);
    }
    args.insert(args.end(), out.begin(), out.end());
    const int number = static_cast<int>(program.kernels.size());
    AddDispatch(
        program, graph,
        MakeKernel(absl::StrCat("k", number), std::move(operands), size, static_cast<int>(out.size()), number + 1),
        args);
  };
  for (int s = 0; s < options.steps; ++s) {
    const int64_t size = kSizes[Below(rng, 2)];
    std::vector<int32_t> out;
    for (int k = 1 + (Below(rng, 4) == 0); k > 0; --k) {
      out.push_back(AddBuffer(graph, absl::StrCat("t", temps.size() + out.size()), size, BufferKind::kTemp));
    }
    dispatch(size, out);
    temps.insert(temps.end(), out.begin(), out.end());
    readable.insert(readable.end(), out.begin(), out.end());
  }
  for (int i = 0; i < 2; ++i) {
    const int64_t size = kSizes[Below(rng, 2)];
    dispatch(size, {AddBuffer(graph, absl::StrCat("o", i), size, BufferKind::kOutput)});
  }
  const int32_t copied = temps[Below(rng, static_cast<int>(temps.size()))];
  AddCopy(graph, copied, AddBuffer(graph, "oc", graph.buffers[copied].type.dims[0], BufferKind::kOutput));
  for (int32_t state : states) {
    std::vector<int32_t> fitting;
    for (int32_t t : temps) {
      if (graph.buffers[t].type == graph.buffers[state].type) fitting.push_back(t);
    }
    if (!fitting.empty()) AddCopy(graph, fitting[Below(rng, static_cast<int>(fitting.size()))], state);
  }
  return program;
}

// ---------------------------------------------------------------- execution

// Buffers as spans of words inside arenas; unplaced buffers get an arena each.
struct Memory {
  std::vector<std::vector<int32_t>> arenas = {};
  std::vector<std::pair<size_t, size_t>> place = {};  // by buffer: arena, first word
  int32_t& at(int32_t buffer, int64_t i) {
    AGC_CHECK(place[buffer].second + i < arenas[place[buffer].first].size());
    return arenas[place[buffer].first][place[buffer].second + i];
  }
};

struct Env {
  const Kernel& kernel;
  const Step& step;
  Memory& memory;
  std::map<VarId, int64_t> vars = {};
};

inline int64_t Evaluate(Env& env, Expr e) {
  const ExprNode& n = e.node();
  const auto arg = [&](int i) { return Evaluate(env, e.arg(i)); };
  switch (n.kind) {
    case ExprKind::kConst:
      return n.payload;
    case ExprKind::kVar:
      return env.vars.at(n.ref);
    case ExprKind::kMod:
      return arg(0) % n.payload;
    case ExprKind::kDiv:
      return arg(0) / n.payload;
    case ExprKind::kLoad:
      return env.memory.at(env.step.args[n.ref], arg(0));
    case ExprKind::kLin: {
      int64_t sum = n.payload;
      for (size_t i = 0; i < n.coefs.size(); ++i) sum += n.coefs[i] * arg(static_cast<int>(i));
      return sum;
    }
    case ExprKind::kAlu: {
      std::vector<Scalar> x;
      for (size_t i = 0; i < n.args.size(); ++i) x.push_back(Scalar::Int(DType::kI32, arg(static_cast<int>(i))));
      return Apply(ScalarOps()[n.ref], x).i();
    }
    default:
      AGC_CHECK(false);
      return 0;
  }
}

inline void Execute(Env& env, const std::vector<Stmt>& body, bool backwards) {
  for (const Stmt& s : body) {
    ExprPool& pool = *env.kernel.pool;
    if (s.kind == StmtKind::kFor) {
      const int64_t n = Evaluate(env, pool.at(s.end));
      for (int64_t i = 0; i < n; ++i) {
        env.vars[s.var] = backwards ? n - 1 - i : i;
        Execute(env, s.body, backwards);
      }
    } else if (s.kind == StmtKind::kRegion) {
      Execute(env, s.body, backwards);
    } else if (s.kind == StmtKind::kLet) {
      env.vars[s.var] = Evaluate(env, pool.at(s.value));
    } else {
      AGC_CHECK(s.kind == StmtKind::kStore);
      const int64_t value = Evaluate(env, pool.at(s.value));
      env.memory.at(env.step.args[s.target], Evaluate(env, pool.at(s.index[0]))) = static_cast<int32_t>(value);
    }
  }
}

inline void ExecuteStep(const Program& program, const Graph& graph, const Step& step, Memory& memory, bool backwards) {
  if (step.kind == StepKind::kDispatch) {
    Env env{.kernel = program.kernels[step.callee], .step = step, .memory = memory};
    for (const KernelPart& part : env.kernel.parts) Execute(env, part.body, backwards);
  } else if (step.kind == StepKind::kCopy) {
    for (int64_t i = 0; i < graph.buffers[step.args[0]].type.dims[0]; ++i) {
      memory.at(step.args[1], i) = memory.at(step.args[0], i);
    }
  }
}

// Runs the graph twice from fixed contents and returns what states and outputs hold. Where the buffers have places,
// they are used, and the steps between two barriers run in any order; else each buffer is its own and the list is
// followed.
inline std::map<std::string, std::vector<int32_t>> Run(const Program& program, const Graph& graph, Rng& rng) {
  const bool planned = !graph.arena_sizes.empty();
  Memory memory;
  memory.arenas.resize(planned ? graph.arena_sizes.size() : graph.buffers.size());
  for (size_t a = 0; a < memory.arenas.size(); ++a) {
    memory.arenas[a].assign(planned ? graph.arena_sizes[a] / 4 : graph.buffers[a].type.dims[0], -12345);
  }
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    const Buffer& buffer = graph.buffers[b];
    memory.place.push_back(planned ? std::pair<size_t, size_t>(buffer.arena, buffer.offset / 4)
                                   : std::pair<size_t, size_t>(b, 0));
    if (buffer.kind != BufferKind::kState && buffer.kind != BufferKind::kInput) continue;
    int32_t value = 7;
    for (char c : buffer.name) value = value * 31 + c;
    for (int64_t i = 0; i < buffer.type.dims[0]; ++i) memory.at(static_cast<int32_t>(b), i) = value * (i + 3);
  }
  for (int run = 0; run < 2; ++run) {
    std::vector<const Step*> segment;
    const auto flush = [&] {
      if (planned) std::shuffle(segment.begin(), segment.end(), rng);
      for (const Step* step : segment) ExecuteStep(program, graph, *step, memory, planned && Below(rng, 2) == 0);
      segment.clear();
    };
    for (const Step& step : graph.steps) {
      if (step.kind == StepKind::kBarrier) flush();
      if (step.kind != StepKind::kBarrier) segment.push_back(&step);
    }
    flush();
  }
  std::map<std::string, std::vector<int32_t>> result;
  for (size_t b = 0; b < graph.buffers.size(); ++b) {
    const Buffer& buffer = graph.buffers[b];
    if (buffer.kind != BufferKind::kState && buffer.kind != BufferKind::kOutput) continue;
    for (int64_t i = 0; i < buffer.type.dims[0]; ++i) {
      result[buffer.name].push_back(memory.at(static_cast<int32_t>(b), i));
    }
  }
  return result;
}

inline int Barriers(const Graph& graph) {
  int n = 0;
  for (const Step& step : graph.steps) n += step.kind == StepKind::kBarrier;
  return n;
}

}  // namespace agc::test
