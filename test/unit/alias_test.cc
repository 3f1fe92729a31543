// The element rule on kernels by hand, merged parameters, and what alias decides about states and temporaries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/element_rule.h"
#include "passes/registry.h"
#include "test/unit/step_graph.h"

namespace agc {
namespace {

using test::AddBuffer;
using test::AddCopy;
using test::AddDispatch;
using test::AddState;
using test::MakeKernel;
using test::Reading;

// A kernel over f32[rows, columns]: parameter 0 is read, 1 written.
struct Made {
  Kernel kernel = {};
  ExprPool& pool() { return *kernel.pool; }
  Made(int64_t rows, int64_t columns) {
    const TensorType type{DType::kF32, {rows, columns}};
    kernel.params = {{.name = "x", .type = type}, {.name = "y", .type = type, .access = KernelAccess::kWrite}};
    kernel.parts.emplace_back();
  }
  Expr Var(std::string name, int64_t n) { return pool().Var(pool().Declare({.name = std::move(name), .hi = n - 1})); }
  Stmt For(Expr var, ForMode mode, std::vector<Stmt> body) {
    Stmt s{.kind = StmtKind::kFor, .mode = mode, .var = var.node().ref, .body = std::move(body)};
    s.begin = pool().Int(0).id;
    s.end = pool().Int(var.node().hi + 1).id;
    return s;
  }
  Expr X(Expr i, Expr j, int lanes = 1) { return pool().Load(0, {i, j}, DType::kF32, lanes); }
  Stmt Store(Expr i, Expr j, Expr value) {
    Stmt s{.kind = StmtKind::kStore, .target = 1};
    s.index = {i.id, j.id};
    s.value = value.id;
    return s;
  }
  Expr One() { return Number(pool(), DType::kF32, 1); }
  bool Rule(std::vector<Stmt> body) {
    kernel.parts[0].body = std::move(body);
    return ElementRule(kernel, 0, 1);
  }
};

TEST(ElementRule, PointwiseOverFlattenedAndTiledIndices) {
  Made k(12, 64);
  const Expr g = k.Var("g", 3), t = k.Var("t", 64), u = k.Var("u", 4);
  const Expr flat = g * 256 + t * 4 + u, i = Div(flat, 64), j = Mod(flat, 64);
  const auto loops = [&](Expr i, Expr j, Expr value) {
    return k.For(g, ForMode::kWorkgroup,
                 {k.For(t, ForMode::kLocal, {k.For(u, ForMode::kUnroll, {k.Store(i, j, value)})})});
  };
  EXPECT_TRUE(k.Rule({loops(i, j, k.X(i, j) + k.One())}));
  EXPECT_FALSE(k.Rule({loops(i, j, k.X(i, k.pool().Int(63) - j) + k.One())}));
  EXPECT_FALSE(k.Rule({loops(i, j, k.X(i, j) + k.X(k.pool().Int(0), j))}));

  // Tiles on workgroups in one dimension: 2 by 8 tiles of 8 by 8, the last rows outside.
  const Expr tile = k.Var("w", 16), a = k.Var("a", 8), b = k.Var("b", 8);
  const Expr m = Div(tile, 8) * 8 + a, n = Mod(tile, 8) * 8 + b;
  const Stmt inner = k.For(a, ForMode::kLocal, {k.For(b, ForMode::kUnroll, {k.Store(m, n, k.X(m, n))})});
  EXPECT_TRUE(k.Rule({k.For(tile, ForMode::kWorkgroup, {inner})}));
  // Patches of 8 by 4 invocations in a tile of 16 by 8, and tiles in groups of two rows of tiles.
  const Expr all = k.Var("x", 4), lane = k.Var("l", 128), patch = Div(lane, 32), in_patch = Mod(lane, 32);
  const Expr row = Div(all, 4) * 2 + Mod(all, 2), column = Div(Mod(all, 4), 2);
  const Expr y = row * 4 + Div(patch, 2) * 4 + Div(in_patch, 8);
  const Expr x = column * 32 + Mod(patch, 2) * 8 + Mod(in_patch, 8);
  const auto patches = [&](Expr y, Expr x) {
    return k.For(all, ForMode::kWorkgroup, {k.For(lane, ForMode::kLocal, {k.Store(y, x, k.X(y, x))})});
  };
  EXPECT_FALSE(k.Rule({patches(y, x)}));  // two patches of a column of patches meet the next row of tiles
  EXPECT_TRUE(k.Rule({patches(row * 8 + Div(patch, 2) * 4 + Div(in_patch, 8), x)}));
  // Every second element: tiles overlap.
  const Expr overlapping = Mod(tile, 8) * 4 + b;
  const Stmt bad =
      k.For(a, ForMode::kLocal, {k.For(b, ForMode::kUnroll, {k.Store(m, overlapping, k.X(m, overlapping))})});
  EXPECT_FALSE(k.Rule({k.For(tile, ForMode::kWorkgroup, {bad})}));
}

TEST(ElementRule, Vectors) {
  Made k(4, 64);
  const Expr g = k.Var("g", 4), t = k.Var("t", 16);
  const auto loops = [&](Expr j, int lanes) {
    return k.For(g, ForMode::kWorkgroup, {k.For(t, ForMode::kLocal, {k.Store(g, j, k.X(g, j, lanes))})});
  };
  EXPECT_TRUE(k.Rule({loops(t * 4, 4)}));
  EXPECT_FALSE(k.Rule({loops(t * 2, 4)}));
  EXPECT_FALSE(k.Rule({loops(t, 4)}));
}

TEST(ElementRule, TimeAndPlace) {
  Made k(4, 64);
  const Expr g = k.Var("g", 4), t = k.Var("t", 64), u = k.Var("u", 64);
  const VarId v = k.pool().Declare({.name = "v", .dtype = DType::kF32});
  Stmt let{.kind = StmtKind::kLet, .var = v};
  let.value = k.X(g, t).id;
  const Stmt store = k.Store(g, t, k.pool().Var(v));
  const auto around = [&](std::vector<Stmt> body) {
    return std::vector<Stmt>{k.For(g, ForMode::kWorkgroup, {k.For(t, ForMode::kLocal, std::move(body))})};
  };
  EXPECT_TRUE(k.Rule(around({let, store})));
  EXPECT_FALSE(k.Rule(around({store, let})));  // reads what it wrote
  // A row statistic reads the row in a loop of its own.
  EXPECT_FALSE(k.Rule(around({k.For(u, ForMode::kSerial, {let}), store})));
  // All invocations read, one writes.
  Stmt one{.kind = StmtKind::kIf, .body = {k.Store(g, k.pool().Int(0), k.pool().Var(v))}};
  one.cond = EqZero(t).id;
  Stmt read = let;
  read.value = k.X(g, k.pool().Int(0)).id;
  EXPECT_FALSE(k.Rule(around({read, one})));
  // Side by side parts.
  EXPECT_FALSE(k.Rule({around({let})[0], around({store})[0]}));
  // A store that combines reads the output too.
  Stmt add = store;
  add.combiner = FindCombiner("add");
  EXPECT_FALSE(k.Rule(around({let, add})));
  // The index through a let.
  const VarId c = k.pool().Declare({.name = "c", .hi = 63});
  Stmt index{.kind = StmtKind::kLet, .var = c};
  index.value = (k.pool().Int(63) - t).id;
  EXPECT_TRUE(k.Rule(around({index, k.Store(g, k.pool().Var(c), k.X(g, k.pool().Int(63) - t))})));
}

// A register tile written out: rows 4g to 4g + 3, each below a bound and with its own store.
TEST(ElementRule, UnrolledRows) {
  for (const bool clash : {false, true}) {
    Made k(30, 64);
    const Expr g = k.Var("g", 8), t = k.Var("t", 64);
    std::vector<Stmt> body;
    for (int i = 0; i < 4; ++i) {
      const Expr row = g * 4 + (clash && i == 3 ? 4 : i);
      const VarId m = k.pool().Declare({.name = "m", .hi = 29});
      Stmt let{.kind = StmtKind::kLet, .var = m};
      let.value = row.id;
      Stmt below{.kind = StmtKind::kIf, .body = {let, k.Store(k.pool().Var(m), t, k.X(k.pool().Var(m), t))}};
      below.cond = InRange(row, 30).id;
      body.push_back(below);
    }
    EXPECT_EQ(k.Rule({k.For(g, ForMode::kWorkgroup, {k.For(t, ForMode::kLocal, body)})}), !clash);
  }
}

// One element: only the invocation that the condition picks may touch it.
TEST(ElementRule, OneInvocation) {
  Made k(1, 1);
  const Expr t = k.Var("t", 64), zero = k.pool().Int(0);
  Stmt one{.kind = StmtKind::kIf, .body = {k.Store(zero, zero, k.X(zero, zero) + k.One())}};
  one.cond = InRange(t, 1).id;
  EXPECT_TRUE(k.Rule({k.For(t, ForMode::kLocal, {one})}));
  EXPECT_FALSE(k.Rule({k.For(t, ForMode::kLocal, {k.Store(zero, zero, k.X(zero, zero) + k.One())})}));
  one.cond = InRange(t, 2).id;
  EXPECT_FALSE(k.Rule({k.For(t, ForMode::kLocal, {one})}));
}

TEST(ElementRule, TypesMustBeEqual) {
  Made k(4, 64);
  const Expr g = k.Var("g", 4), t = k.Var("t", 64);
  const Stmt loops = k.For(g, ForMode::kWorkgroup, {k.For(t, ForMode::kLocal, {k.Store(g, t, k.X(g, t))})});
  EXPECT_TRUE(k.Rule({loops}));
  k.kernel.params[1].stored = DType::kF16;
  EXPECT_FALSE(k.Rule({loops}));
  k.kernel.params[1].stored = DType::kF32;
  k.kernel.params[0].access = KernelAccess::kReadWrite;
  EXPECT_FALSE(k.Rule({loops}));
}

TEST(MergeParams, NamesLoadsByLets) {
  Made k(4, 64);
  k.kernel.params.push_back({.name = "z", .type = k.kernel.params[0].type});
  const Expr g = k.Var("g", 4), t = k.Var("t", 64);
  const Expr z = k.pool().Load(2, {g, t}, DType::kF32);
  k.kernel.parts[0].body = {
      k.For(g, ForMode::kWorkgroup, {k.For(t, ForMode::kLocal, {k.Store(g, t, k.X(g, t) * k.X(g, t) + z)})})};
  const ParamPair pair{0, 1};
  const Kernel merged = MergeParams(k.kernel, {pair});
  ASSERT_EQ(merged.params.size(), 2u);
  EXPECT_EQ(merged.params[0].name, "x");
  EXPECT_EQ(merged.params[0].access, KernelAccess::kReadWrite);
  EXPECT_EQ(merged.params[1].name, "z");
  const std::vector<Stmt>& body = merged.parts[0].body[0].body[0].body;
  ASSERT_EQ(body.size(), 2u);
  EXPECT_EQ(body[0].kind, StmtKind::kLet);
  EXPECT_EQ(merged.pool->var(body[0].var).name, "x_0");
  EXPECT_EQ(merged.pool->node(body[0].value).ref, 0u);
  EXPECT_EQ(body[1].target, 0u);
  for (Expr e : PostOrder(merged.pool->at(body[1].value))) {
    EXPECT_TRUE(!e.is(ExprKind::kLoad) || e.node().ref == 1);  // only z
  }
}

// ---------------------------------------------------------------- the pass

int Copies(const Graph& g) {
  return static_cast<int>(
      std::count_if(g.steps.begin(), g.steps.end(), [](const Step& s) { return s.kind == StepKind::kCopy; }));
}

// w is read by `reader` (if asked) and updated by a kernel that reads it as `reading`.
Program Update(Reading reading, bool reader_of_new_value, bool reader_before) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  g.name = "g";
  const int32_t x = AddBuffer(g, "x", 8, BufferKind::kInput), w = AddState(program, g, 8);
  const int32_t t = AddBuffer(g, "t", 8, BufferKind::kTemp), y = AddBuffer(g, "y", 8, BufferKind::kOutput);
  AddDispatch(program, g, MakeKernel("sgd", {{8, reading}, {8}}, 8, 1, 1), {w, x, t});
  if (reader_before) AddDispatch(program, g, MakeKernel("use", {{8, Reading::kReversed}}, 8, 1, 1), {w, y});
  if (reader_of_new_value) AddDispatch(program, g, MakeKernel("use", {{8}, {8}}, 8, 1, 1), {w, t, y});
  AddCopy(g, t, w);
  return program;
}

std::string Aliased(Program& program, bool in_place = true) {
  PassContext context;
  context.in_place = in_place;
  EXPECT_TRUE(Order(program, context).ok());
  EXPECT_TRUE(Alias(program, context).ok());
  return context.remarks.empty() ? "" : context.remarks[0];
}

TEST(Alias, UpdateInPlace) {
  Program program = Update(Reading::kStraight, false, true);
  Aliased(program);
  const Graph& g = program.graphs[0];
  EXPECT_EQ(Copies(g), 0);
  ASSERT_EQ(g.steps.size(), 2u);
  EXPECT_EQ(program.kernels[g.steps[1].callee].name, "sgd");
  EXPECT_EQ(program.kernels[g.steps[1].callee].params[0].access, KernelAccess::kReadWrite);
  EXPECT_EQ(g.steps[1].epoch, 1);
  for (const Buffer& b : g.buffers) EXPECT_NE(b.kind, BufferKind::kTemp);
}

TEST(Alias, KeepsTheCopyWhereItMust) {
  Program reversed = Update(Reading::kReversed, false, false);
  EXPECT_EQ(Aliased(reversed),
            "alias: graph @g: the update of @s0 is copied: its step reads other elements of the state than the one it "
            "writes");
  EXPECT_EQ(Copies(reversed.graphs[0]), 1);
  Program both = Update(Reading::kStraight, true, false);  // old and new value at once
  EXPECT_THAT(Aliased(both), testing::HasSubstr("reads the old value when the new one is made"));
  EXPECT_EQ(Copies(both.graphs[0]), 1);
  Program off = Update(Reading::kStraight, false, true);
  Aliased(off, false);
  EXPECT_EQ(Copies(off.graphs[0]), 1);
}

TEST(Alias, SharedKernelIsCloned) {
  Program program = Update(Reading::kStraight, false, true);
  Graph& g = program.graphs[0];
  const int32_t z = AddBuffer(g, "z", 8, BufferKind::kOutput);
  g.steps.push_back(g.steps[0]);
  g.steps.back().args = {g.steps[0].args[1], g.steps[0].args[1], z};
  Aliased(program);
  std::vector<std::string> names;
  for (const Kernel& k : program.kernels) names.push_back(k.name);
  EXPECT_THAT(names, testing::ElementsAre("sgd", "use", "sgd_inplace"));
  EXPECT_EQ(Copies(g), 0);
}

// In place one of the two would have to wait for the other, an epoch more than the copies take.
TEST(Alias, SwapIsCopied) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  const int32_t a = AddState(program, g, 8), b = AddState(program, g, 8);
  const int32_t s = AddBuffer(g, "s", 8, BufferKind::kTemp), t = AddBuffer(g, "t", 8, BufferKind::kTemp);
  AddDispatch(program, g, MakeKernel("f", {{8, Reading::kReversed}}, 8, 1, 1), {b, s});
  AddDispatch(program, g, MakeKernel("g", {{8, Reading::kReversed}}, 8, 1, 2), {a, t});
  AddCopy(g, s, a);
  AddCopy(g, t, b);
  Aliased(program);
  EXPECT_EQ(Copies(g), 2);
  EXPECT_EQ(g.steps.back().epoch, 1);
}

TEST(Alias, TemporaryTakesOverItsDyingInput) {
  Program program;
  program.graphs.emplace_back();
  Graph& g = program.graphs[0];
  const int32_t x = AddBuffer(g, "x", 8, BufferKind::kInput), y = AddBuffer(g, "y", 8, BufferKind::kOutput);
  const int32_t a = AddBuffer(g, "a", 8, BufferKind::kTemp), b = AddBuffer(g, "b", 8, BufferKind::kTemp);
  AddDispatch(program, g, MakeKernel("p", {{8}}, 8, 1, 1), {x, a});
  AddDispatch(program, g, MakeKernel("q", {{8}}, 8, 1, 2), {a, b});
  AddDispatch(program, g, MakeKernel("r", {{8}}, 8, 1, 3), {b, y});
  Program later = Clone(program);  // a is read again
  later.graphs[0].steps[2].args[0] = a;
  Aliased(program);
  EXPECT_EQ(g.buffers[b].alias, a);
  EXPECT_THAT(g.steps[1].args, testing::ElementsAre(b));
  Aliased(later);
  for (const Buffer& buffer : later.graphs[0].buffers) EXPECT_EQ(buffer.alias, -1);
}

}  // namespace
}  // namespace agc
