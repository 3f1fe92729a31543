// Loop trees: how a kernel computes its nest. A kernel is a list of parts (trees side by side on workgroup ranges) over
// statements; expressions inside are those of ir/expr.h over loop variables, lets, buffers and allocs.
//   shader @k1(%x: f32[8192] read, %y: f32[8192] write) local [64, 1, 1] {
//     part groups [128, 1, 1] {
//       for workgroup g in 0..128 { for local t in 0..64 {
//         let x0: f32 = %x[64*g + t]
//         store %y[64*g + t] = max(x0, 0)
//   } } } }
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/base/loc.h"
#include "ir/combiner.h"
#include "ir/expr.h"
#include "ir/type.h"

namespace agc {

enum class StmtKind : uint8_t {
  kFor,
  kIf,
  kLet,
  kAlloc,
  kStore,
  kAtomic,
  kIfLast,
  kBarrier,
  kLanes,
  kTile,
  kRegion,
};
enum class ForMode : uint8_t { kSerial, kUnroll, kWorkgroup, kLocal };
enum class AllocSpace : uint8_t { kRegister, kShared, kTile };
enum class Fence : uint8_t { kShared, kGlobal, kBoth };
enum class LanesOp : uint8_t { kShuffleXor, kBroadcast, kBallot };

struct Alloc {
  std::string name = {};  // without '%'
  AllocSpace space = AllocSpace::kRegister;
  DType dtype = DType::kF32;
  uint8_t lanes = 1;  // vector registers
  std::vector<int64_t> extents =
      {};            // empty: a scalar register; register arrays are indexed by unrolled variables only
  int64_t skew = 0;  // shared: extra elements per row, against bank conflicts
};

// One statement; which members hold is said per kind. ExprIds live in the kernel's pool.
struct Stmt {
  StmtKind kind = StmtKind::kRegion;
  // kFor: var in [begin, end) by step; workgroup and local: dimension `dim` 0..2, begin 0, constant end, step 1
  ForMode mode = ForMode::kSerial;
  VarId var = 0;  // kFor, kLet (declares it), kLanes, kAtomic: result
  ExprId begin = {}, end = {};
  int64_t step = 1;
  uint8_t dim = 0;
  // kIf: cond, body, otherwise; `uniform`: the same for all invocations of a workgroup
  ExprId cond = {};
  bool uniform = false;
  // kAlloc: alloc number. kStore: target, index, value, guard (invalid: none), combiner (null: set). kLet: value
  bool to_alloc = false;
  uint32_t target = 0;  // kStore: buffer parameter or alloc; kAlloc: alloc; kIfLast: counter buffer
  std::vector<ExprId> index = {};
  ExprId value = {};
  ExprId guard = {};
  const Combiner* combiner = nullptr;
  // kLanes: op, value, lane mask or source lane
  LanesOp lanes_op = LanesOp::kShuffleXor;
  uint32_t lane = 0;
  // kBarrier
  Fence fence = Fence::kShared;
  // kIfLast: the last workgroup of `count` to arrive at counter `index` runs body and resets the counter
  ExprId count = {};
  // kRegion: label of body
  std::string label = {};
  Loc loc = {};
  std::vector<Stmt> body = {}, otherwise = {};
};

enum class KernelAccess : uint8_t { kRead = 1, kWrite = 2, kReadWrite = 3 };
absl::string_view Name(KernelAccess access);

struct KernelParam {
  std::string name = {};
  TensorType type = {};  // logical until legalize; its element count afterwards
  DType stored = DType::kF32;
  KernelAccess access = KernelAccess::kRead;
  bool linear = false;  // legalize has run: one index, the linear element
  bool packed = false;  // legalize: elements of 8 or 16 bits lie in words of 32, which stores change bitwise
  bool coherent = false;
  bool restrict_ = false;  // proven disjoint from every other parameter
  int64_t align = 16;
};

struct KernelPart {
  std::array<int64_t, 3> groups = {1, 1, 1};
  std::vector<Stmt> body = {};  // outermost: workgroup loops, then local loops, then the rest
};

struct Kernel {
  std::string name = {};
  std::string label = {};  // nests and root ops it came from; left out of text that is compared
  std::unique_ptr<ExprPool> pool = std::make_unique<ExprPool>();
  std::vector<KernelParam> params = {};
  std::vector<Alloc> allocs = {};
  std::vector<KernelPart> parts = {};
  std::array<int64_t, 3> local = {1, 1, 1};
  std::vector<std::string> features = {};  // target features the tree uses, sorted
  bool int64_pairs = false;                // legalize: 64-bit integers are computed as two of 32 bits
  bool precise = false;                    // products and sums stay apart: no fused multiply-add
  Loc loc = {};

  std::array<int64_t, 3> groups() const;  // workgroups of all parts
  int64_t shared_bytes() const;
};

Kernel Clone(const Kernel& kernel);

// Every dtype that a kernel stores, computes or keeps in an alloc: what decides which device features it needs.
std::set<DType> DTypesOf(const Kernel& kernel);

// The Exprs a statement itself holds (not those of nested statements), for passes that read or replace them all.
std::vector<ExprId*> ExprsOf(Stmt& stmt);
std::vector<ExprId> ExprsOf(const Stmt& stmt);

}  // namespace agc
