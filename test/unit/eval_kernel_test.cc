#include <cmath>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/eval/kernel_eval.h"

namespace agc {
namespace {

using Body = std::vector<Stmt>;

// A kernel over one dimension: `groups` workgroups g of `local` invocations t.
struct Grid {
  Kernel kernel = {};
  Expr g = {}, t = {};
  VarId gv = 0, tv = 0;
  int64_t groups = 1, local = 1;

  Grid(int64_t group_count, int64_t local_size) : groups(group_count), local(local_size) {
    kernel.name = "k";
    kernel.local = {local, 1, 1};
    gv = pool().Declare({.name = "g", .lo = 0, .hi = groups});  // wide enough not to fold to a constant
    tv = pool().Declare({.name = "t", .lo = 0, .hi = local});
    g = pool().Var(gv);
    t = pool().Var(tv);
  }
  ExprPool& pool() { return *kernel.pool; }
  uint32_t Param(const std::string& name, TensorType type, KernelAccess access) {
    kernel.params.push_back({.name = name, .type = type, .stored = type.dtype, .access = access});
    return static_cast<uint32_t>(kernel.params.size() - 1);
  }
  uint32_t Alloc(AllocSpace space, DType dtype, std::vector<int64_t> extents, int lanes = 1) {
    kernel.allocs.push_back({.name = "a" + std::to_string(kernel.allocs.size()),
                             .space = space,
                             .dtype = dtype,
                             .lanes = static_cast<uint8_t>(lanes),
                             .extents = std::move(extents)});
    return static_cast<uint32_t>(kernel.allocs.size() - 1);
  }
  Expr Load(uint32_t param, Expr i, Expr guard = {}) {
    return pool().Load(param, {i}, kernel.params[param].type.dtype, 1, guard);
  }
  Expr Read(uint32_t alloc, std::vector<Expr> i) {
    return pool().AllocLoad(alloc, i, kernel.allocs[alloc].dtype, kernel.allocs[alloc].lanes);
  }
  Expr F(double v) { return Number(pool(), DType::kF32, v); }
  VarId Var(DType dtype, int lanes = 1) {
    return pool().Declare({.name = "v", .dtype = dtype, .lanes = static_cast<uint8_t>(lanes)});
  }

  static Stmt Store(uint32_t param, Expr i, Expr value, Expr guard = {}) {
    Stmt s{.kind = StmtKind::kStore};
    s.target = param;
    s.index = {i.id};
    s.value = value.id;
    s.guard = guard.id;
    return s;
  }
  static Stmt Set(uint32_t alloc, std::vector<Expr> i, Expr value, const char* combiner = nullptr) {
    Stmt s{.kind = StmtKind::kStore};
    s.to_alloc = true;
    s.target = alloc;
    for (Expr e : i) s.index.push_back(e.id);
    s.value = value.id;
    if (combiner != nullptr) s.combiner = FindCombiner(combiner);
    return s;
  }
  static Stmt Let(VarId v, Expr value) {
    Stmt s{.kind = StmtKind::kLet};
    s.var = v;
    s.value = value.id;
    return s;
  }
  static Stmt For(ForMode mode, VarId v, Expr begin, Expr end, Body body) {
    Stmt s{.kind = StmtKind::kFor, .mode = mode, .var = v, .begin = begin.id, .end = end.id};
    s.body = std::move(body);
    return s;
  }
  static Stmt If(Expr cond, Body body, Body otherwise = {}, bool uniform = false) {
    Stmt s{.kind = StmtKind::kIf};
    s.cond = cond.id;
    s.uniform = uniform;
    s.body = std::move(body);
    s.otherwise = std::move(otherwise);
    return s;
  }
  static Stmt Barrier(Fence fence = Fence::kShared) {
    Stmt s{.kind = StmtKind::kBarrier};
    s.fence = fence;
    return s;
  }
  static Stmt Lanes(LanesOp op, VarId result, Expr value, uint32_t lane) {
    Stmt s{.kind = StmtKind::kLanes};
    s.lanes_op = op;
    s.var = result;
    s.value = value.id;
    s.lane = lane;
    return s;
  }

  absl::Status Run(Body body, std::vector<ArenaSlice> args, KernelOptions options = {}) {
    Stmt locals = For(ForMode::kLocal, tv, pool().Int(0), pool().Int(local), std::move(body));
    Stmt grid = For(ForMode::kWorkgroup, gv, pool().Int(0), pool().Int(groups), {std::move(locals)});
    kernel.parts.clear();
    kernel.parts.push_back({.groups = {groups, 1, 1}, .body = {std::move(grid)}});
    return ExecuteKernel(kernel, kernel.groups(), args, options);
  }
};

template <typename T>
ArenaSlice Slice(std::vector<T>& v) {
  return {reinterpret_cast<uint8_t*>(v.data()), static_cast<int64_t>(v.size() * sizeof(T)), nullptr};
}
constexpr auto kRead = KernelAccess::kRead, kWrite = KernelAccess::kWrite, kReadWrite = KernelAccess::kReadWrite;
TensorType F32(int64_t n) { return {DType::kF32, {n}}; }
TensorType I32(int64_t n) { return {DType::kI32, {n}}; }

void ExpectError(const absl::Status& s, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(s.code(), code) << s;
  EXPECT_THAT(std::string(s.message()), testing::HasSubstr(text));
}

TEST(EvalKernel, RunsEveryInvocationOfEveryWorkgroup) {
  Grid k(3, 8);
  const uint32_t x = k.Param("x", F32(20), kRead), y = k.Param("y", F32(20), kWrite);
  const Expr i = k.g * 8 + k.t, inside = InRange(i, 20);
  std::vector<float> in(20), out(20);
  for (int n = 0; n < 20; ++n) in[n] = static_cast<float>(n);
  ASSERT_TRUE(k.Run({Grid::If(inside, {Grid::Store(y, i, k.Load(x, i) * k.F(2))})}, {Slice(in), Slice(out)}).ok());
  for (int n = 0; n < 20; ++n) EXPECT_EQ(out[n], 2 * n);
  // The same with guards instead of the branch.
  std::fill(out.begin(), out.end(), 0.0f);
  ASSERT_TRUE(k.Run({Grid::Store(y, i, k.Load(x, i, inside) * k.F(2), inside)}, {Slice(in), Slice(out)}).ok());
  EXPECT_EQ(out[19], 38);
}

TEST(EvalKernel, RangesOfLoadsAndStores) {
  Grid k(3, 8);
  const uint32_t x = k.Param("x", F32(20), kRead), y = k.Param("y", F32(20), kWrite);
  const Expr i = k.g * 8 + k.t;
  std::vector<float> in(20), out(20);
  ExpectError(
      k.Run({Grid::Store(y, i, k.F(2))}, {Slice(in), Slice(out)}), absl::StatusCode::kOutOfRange,
      "kernel @k: write of %y at [20] is out of range, it has extents [20], by invocation 4 of workgroup [2, 0, 0]");
  ExpectError(k.Run({Grid::Store(y, i, k.Load(x, i), InRange(i, 20))}, {Slice(in), Slice(out)}), absl::StatusCode::kOk,
              "");
  ExpectError(k.Run({Grid::Let(k.Var(DType::kF32), k.Load(x, i))}, {Slice(in), Slice(out)}),
              absl::StatusCode::kOutOfRange, "read of %x at [20]");
}

TEST(EvalKernel, ArgumentsMustFit) {
  Grid k(1, 1);
  k.Param("x", F32(20), kRead);
  std::vector<float> in(19);
  ExpectError(k.Run({}, {Slice(in)}), absl::StatusCode::kInvalidArgument, "%x needs 80 bytes, its argument has 76");
  ExpectError(k.Run({}, {}), absl::StatusCode::kInvalidArgument, "0 arguments given for 1 parameters");
  ExpectError(ExecuteKernel(k.kernel, {2, 1, 1}, {Slice(in)}), absl::StatusCode::kInvalidArgument, "");
}

TEST(EvalKernel, ReadsOfNeverWrittenBytes) {
  Grid k(1, 4);
  const uint32_t x = k.Param("x", F32(4), kReadWrite), shared = k.Alloc(AllocSpace::kShared, DType::kF32, {4}),
                 reg = k.Alloc(AllocSpace::kRegister, DType::kF32, {});
  std::vector<float> data(4);
  std::vector<uint8_t> known(16, 1);
  known[9] = 0;
  ArenaSlice slice = Slice(data);
  slice.known = known.data();
  const VarId v = k.Var(DType::kF32);
  ExpectError(k.Run({Grid::Let(v, k.Load(x, k.t))}, {slice}), absl::StatusCode::kFailedPrecondition,
              "read of %x at element 2 by invocation 2");
  ExpectError(k.Run({Grid::Store(x, k.t, k.F(1)), Grid::Let(v, k.Load(x, k.t))}, {slice}), absl::StatusCode::kOk, "");
  EXPECT_EQ(known[9], 1);
  ExpectError(k.Run({Grid::Let(v, k.Read(shared, {k.t}))}, {slice}), absl::StatusCode::kFailedPrecondition,
              "read of %a0 at element 0");
  ExpectError(k.Run({Grid::Let(v, k.Read(reg, {}))}, {slice}), absl::StatusCode::kFailedPrecondition, "read of %a1");
  // An alloc statement ends what the register held.
  Stmt alloc{.kind = StmtKind::kAlloc};
  alloc.target = reg;
  ExpectError(k.Run({Grid::Set(reg, {}, k.F(1)), alloc, Grid::Let(v, k.Read(reg, {}))}, {slice}),
              absl::StatusCode::kFailedPrecondition, "never written");
}

TEST(EvalKernel, RacesWithinAWorkgroup) {
  Grid k(2, 4);
  const uint32_t y = k.Param("y", F32(8), kWrite), shared = k.Alloc(AllocSpace::kShared, DType::kF32, {4});
  std::vector<float> out(8);
  const Expr neighbour = Mod(k.t + 1, 4), i = k.g * 4 + k.t;
  const Stmt set = Grid::Set(shared, {k.t}, FromIndex(k.t, DType::kF32)),
             use = Grid::Store(y, i, k.Read(shared, {neighbour}));
  ExpectError(k.Run({set, Grid::Barrier(), use}, {Slice(out)}), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(1, 2, 3, 0, 1, 2, 3, 0));
  ExpectError(k.Run({set, use}, {Slice(out)}), absl::StatusCode::kAborted,
              "race on element 1 of %a0: read by invocation 0 of workgroup [0, 0, 0] and invocation 1");
  ExpectError(k.Run({set, Grid::Barrier(Fence::kGlobal), use}, {Slice(out)}), absl::StatusCode::kAborted,
              "race");  // the wrong fence
  ExpectError(k.Run({set, Grid::Barrier(), use, Grid::Set(shared, {k.t}, k.F(0))}, {Slice(out)}),
              absl::StatusCode::kAborted, "write by invocation");
  ExpectError(k.Run({Grid::Set(shared, {k.pool().Int(0)}, k.F(0))}, {Slice(out)}), absl::StatusCode::kAborted,
              "race on element 0 of %a0: write");
  ExpectError(k.Run({set, use}, {Slice(out)}, {.check_races = false}), absl::StatusCode::kOk, "");
}

TEST(EvalKernel, RacesBetweenWorkgroups) {
  Grid k(2, 1);
  const uint32_t y = k.Param("y", F32(2), kReadWrite);
  std::vector<float> out(2);
  ExpectError(k.Run({Grid::Store(y, k.pool().Int(0), k.F(1))}, {Slice(out)}), absl::StatusCode::kAborted,
              "write by invocation 0 of workgroup [1, 0, 0] and workgroup number 0");
  ExpectError(k.Run({Grid::Store(y, k.g, k.Load(y, Mod(k.g + 1, 2)))}, {Slice(out)}), absl::StatusCode::kAborted,
              "race");
  ExpectError(k.Run({Grid::Store(y, k.g, k.Load(y, k.g))}, {Slice(out)}), absl::StatusCode::kOk, "");
}

TEST(EvalKernel, RacesThroughOverlappingArguments) {
  Grid k(1, 4);
  const uint32_t x = k.Param("x", F32(4), kRead), y = k.Param("y", F32(4), kWrite);
  std::vector<float> data(8);
  ArenaSlice a = Slice(data), b = a;
  a.size = b.size = 16;
  const Body shifted = {Grid::Store(y, k.t, k.Load(x, Mod(k.t + 1, 4)))}, same = {Grid::Store(y, k.t, k.Load(x, k.t))};
  ExpectError(k.Run(same, {a, b}), absl::StatusCode::kOk, "");
  ExpectError(k.Run(shifted, {a, b}), absl::StatusCode::kAborted, "race");
  b.bytes += 16;
  ExpectError(k.Run(shifted, {a, b}), absl::StatusCode::kOk, "");
}

TEST(EvalKernel, UniformFlow) {
  Grid k(1, 4);
  const Expr half = InRange(k.t, 2);
  ExpectError(k.Run({Grid::If(half, {Grid::Barrier()})}, {}), absl::StatusCode::kInvalidArgument,
              "a barrier is reached by invocation 0 but not by all");
  ExpectError(k.Run({Grid::If(half, {}, {}, true)}, {}), absl::StatusCode::kInvalidArgument,
              "marked uniform is taken by invocation 0 and not by invocation 2");
  ExpectError(k.Run({Grid::If(InRange(k.g, 1), {Grid::Barrier()}, {}, true)}, {}), absl::StatusCode::kOk, "");
  ExpectError(k.Run({Grid::If(half, {Grid::Lanes(LanesOp::kBroadcast, k.Var(DType::kF32), k.F(1), 0)})}, {}),
              absl::StatusCode::kInvalidArgument, "a lanes operation");
}

TEST(EvalKernel, LoopsWhoseBoundsDiffer) {
  Grid k(1, 5);
  const uint32_t y = k.Param("y", I32(5), kWrite), sum = k.Alloc(AllocSpace::kRegister, DType::kI32, {});
  const VarId j = k.pool().Declare({.name = "j", .lo = 0, .hi = 10});
  std::vector<int32_t> out(5);
  const Body add = {Grid::Set(sum, {}, k.Read(sum, {}) + FromIndex(k.pool().Var(j), DType::kI32))};
  const Body body = {Grid::Set(sum, {}, Number(k.pool(), DType::kI32, 0)),
                     Grid::For(ForMode::kSerial, j, k.pool().Int(0), k.t + 1, add),
                     Grid::Store(y, k.t, k.Read(sum, {}))};
  ExpectError(k.Run(body, {Slice(out)}), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(0, 1, 3, 6, 10));
  Body by_two = body;
  by_two[1].step = 2;
  ExpectError(k.Run(by_two, {Slice(out)}), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(0, 0, 2, 2, 6));
  by_two[1].step = 0;
  ExpectError(k.Run(by_two, {Slice(out)}), absl::StatusCode::kInvalidArgument, "step 0");
}

TEST(EvalKernel, LanesOperations) {
  Grid k(1, 8);
  const uint32_t y = k.Param("y", I32(8), kWrite);
  std::vector<int32_t> out(8);
  const Expr value = FromIndex(k.t, DType::kI32);
  const VarId v = k.Var(DType::kI32), b = k.Var(DType::kU32);
  const auto run = [&](Stmt lanes) {
    return k.Run({lanes, Grid::Store(y, k.t, k.pool().Var(v))}, {Slice(out)}, {.subgroup = 4});
  };
  ExpectError(run(Grid::Lanes(LanesOp::kShuffleXor, v, value, 1)), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(1, 0, 3, 2, 5, 4, 7, 6));
  ExpectError(run(Grid::Lanes(LanesOp::kBroadcast, v, value, 3)), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(3, 3, 3, 3, 7, 7, 7, 7));
  ExpectError(run(Grid::Lanes(LanesOp::kShuffleXor, v, value, 4)), absl::StatusCode::kOutOfRange,
              "asks for lane 4 of a subgroup of 4");
  const Stmt ballot = Grid::Lanes(LanesOp::kBallot, b, EqZero(Mod(k.t, 3)), 0);
  ExpectError(k.Run({ballot, Grid::Store(y, k.t, Cast(k.pool().Var(b), DType::kI32))}, {Slice(out)}, {.subgroup = 4}),
              absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(9, 9, 9, 9, 4, 4, 4, 4));
}

TEST(EvalKernel, AtomicsAndLastArriver) {
  Grid k(4, 3);
  const uint32_t part = k.Param("part", I32(4), kReadWrite), y = k.Param("y", I32(1), kWrite),
                 counter = k.Param("counter", {DType::kU32, {1}}, kReadWrite);
  k.kernel.params[part].coherent = true;
  const uint32_t shared = k.Alloc(AllocSpace::kShared, DType::kI32, {1});
  const Expr zero = k.pool().Int(0), first = EqZero(k.t);
  std::vector<int32_t> parts(4, -1), out(1);
  std::vector<uint32_t> arrived(1);
  Stmt atomic{.kind = StmtKind::kAtomic};
  atomic.var = k.Var(DType::kI32);
  atomic.to_alloc = true;
  atomic.target = shared;
  atomic.index = {zero.id};
  atomic.value = FromIndex(k.t + k.g, DType::kI32).id;
  atomic.combiner = FindCombiner("add");
  const VarId a = k.Var(DType::kI32);
  Expr all = k.Load(part, zero);
  for (int i = 1; i < 4; ++i) all = all + k.Load(part, k.pool().Int(i));
  Stmt last{.kind = StmtKind::kIfLast};
  last.target = counter;
  last.index = {zero.id};
  last.count = k.pool().Int(4).id;
  last.body = {Grid::If(first, {Grid::Let(a, all), Grid::Store(y, zero, k.pool().Var(a))})};
  const Body body = {Grid::If(first, {Grid::Set(shared, {zero}, Number(k.pool(), DType::kI32, 0))}),
                     Grid::Barrier(),
                     atomic,
                     Grid::Barrier(),
                     Grid::If(first, {Grid::Store(part, k.g, k.Read(shared, {zero}))}),
                     last};
  ExpectError(k.Run(body, {Slice(parts), Slice(out), Slice(arrived)}), absl::StatusCode::kOk, "");
  EXPECT_THAT(parts, testing::ElementsAre(3, 6, 9, 12));
  EXPECT_EQ(out[0], 30);
  EXPECT_EQ(arrived[0], 0u);  // ready for the next dispatch
  k.kernel.params[part].coherent = false;
  ExpectError(k.Run(body, {Slice(parts), Slice(out), Slice(arrived)}), absl::StatusCode::kAborted, "not coherent");
  Body unordered = body;
  unordered.pop_back();
  unordered.push_back(Grid::If(first, last.body));
  k.kernel.params[part].coherent = true;
  ExpectError(k.Run(unordered, {Slice(parts), Slice(out), Slice(arrived)}), absl::StatusCode::kAborted, "race");
}

TEST(EvalKernel, VectorsAndStoresWithACombiner) {
  Grid k(1, 4);
  const uint32_t x = k.Param("x", F32(16), kRead), y = k.Param("y", F32(16), kWrite);
  const uint32_t acc = k.Alloc(AllocSpace::kRegister, DType::kF32, {2}, 4);
  const VarId v = k.Var(DType::kF32, 4);
  const Expr vec = k.pool().Var(v), one = k.pool().Int(1);
  std::vector<float> in(16), out(16);
  for (int i = 0; i < 16; ++i) in[i] = static_cast<float>(i);
  const Body body = {Grid::Let(v, k.pool().Load(x, {k.t * 4}, DType::kF32, 4)), Grid::Set(acc, {one}, vec),
                     Grid::Set(acc, {one}, vec * k.F(10), "add"),
                     Grid::Set(acc, {one}, Vec({Lane(vec, 3), Lane(vec, 2), Lane(vec, 1), Lane(vec, 0)}), "max"),
                     Grid::Store(y, k.t * 4, k.Read(acc, {one}))};
  ExpectError(k.Run(body, {Slice(in), Slice(out)}), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(3, 11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121, 132, 143, 154, 165));
  Body outside = body;
  outside[0].value = k.pool().Load(x, {k.t * 4 + 4}, DType::kF32, 4).id;
  ExpectError(k.Run(outside, {Slice(in), Slice(out)}), absl::StatusCode::kOutOfRange,
              "read of %x at [16] (4 elements)");
  outside[0].value = k.pool().Load(x, {k.t * 2}, DType::kF32, 4).id;
  ExpectError(k.Run(outside, {Slice(in), Slice(out)}), absl::StatusCode::kOutOfRange, "is not aligned to its lanes");
}

TEST(EvalKernel, StoredFormatsAndSkewedRows) {
  Grid k(1, 3);
  const uint32_t x = k.Param("x", {DType::kBool, {3}}, kRead), y = k.Param("y", {DType::kF16, {3}}, kWrite),
                 z = k.Param("z", {DType::kU8, {3}}, kWrite);
  k.kernel.params[x].stored = DType::kU32;
  k.kernel.params[z].stored = DType::kU32;
  const uint32_t tile = k.Alloc(AllocSpace::kShared, DType::kF16, {2, 3});
  k.kernel.allocs[tile].skew = 1;
  EXPECT_EQ(k.kernel.shared_bytes(), 32);  // halves are kept as f32
  std::vector<uint32_t> in = {0, 1, 7}, bytes(3);
  std::vector<uint16_t> out(3);
  const Expr one = Number(k.pool(), DType::kF16, 1.0 / 3), row = k.pool().Int(1);
  const Expr value = Select(k.Load(x, k.t), one, Number(k.pool(), DType::kF16, 0));
  const Body body = {Grid::Set(tile, {row, k.t}, value), Grid::Store(y, k.t, k.Read(tile, {row, k.t})),
                     Grid::Store(z, k.t, Cast(k.Load(x, k.t), DType::kU8))};
  ExpectError(k.Run(body, {Slice(in), Slice(out), Slice(bytes)}), absl::StatusCode::kOk, "");
  EXPECT_THAT(out, testing::ElementsAre(0, 0x3555, 0x3555));
  EXPECT_THAT(bytes, testing::ElementsAre(0, 1, 1));
}

TEST(EvalKernel, PartsLieSideBySide) {
  Grid k(2, 2);
  const uint32_t y = k.Param("y", I32(10), kWrite);
  std::vector<int32_t> out(10, -1);
  ASSERT_TRUE(k.Run({Grid::Store(y, k.g * 2 + k.t, Number(k.pool(), DType::kI32, 1))}, {Slice(out)}).ok());
  KernelPart second = k.kernel.parts[0];
  second.groups = {3, 1, 1};
  second.body[0].end = k.pool().Int(3).id;
  second.body[0].body[0].body = {Grid::Store(y, k.g * 2 + k.t + 4, FromIndex(k.g, DType::kI32))};
  k.kernel.parts.push_back(second);
  ASSERT_TRUE(ExecuteKernel(k.kernel, {5, 1, 1}, {Slice(out)}).ok());
  EXPECT_THAT(out, testing::ElementsAre(1, 1, 1, 1, 0, 0, 1, 1, 2, 2));
  k.kernel.parts[0].groups = {1, 1, 1};
  ExpectError(ExecuteKernel(k.kernel, {4, 1, 1}, {Slice(out)}), absl::StatusCode::kInvalidArgument,
              "the workgroup loop over g ends at 2, its grid has 1");
}

TEST(EvalKernel, TilesAreNotExecuted) {
  Grid k(1, 1);
  Stmt tile{.kind = StmtKind::kTile};
  ExpectError(k.Run({tile}, {}), absl::StatusCode::kUnimplemented, "tile");
}

}  // namespace
}  // namespace agc
