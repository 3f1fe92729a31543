// Passes: free functions over a Program, one file each, one line in passes.def each.
//   absl::StatusOr<bool> Cse(Program& program, PassContext& context);   // true: changed something
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ir/program.h"
#include "ir/target.h"

namespace agc {

enum class BufferAbi : uint8_t { kBindings, kAddresses };

// What float results depend on (docs/numerics.md). Passes record what follows: schedules, exact ops in expressions,
// Kernel::precise and Kernel::features.
enum class Numerics : uint8_t {
  kRepeatable,  // the bundle, the device and its driver
  kPortable,    // the module alone
  kFast,        // as repeatable; drivers may fuse multiply-adds everywhere
};

// What a pass may ask besides the program. Decisions are not kept here: they go into the IR.
struct PassContext {
  Target target = {};
  BufferAbi abi = BufferAbi::kBindings;
  Numerics numerics = Numerics::kRepeatable;
  DType precision = DType::kF32;          // f16, bf16: what contractions of f32 are computed with
  bool fuse = true;                       // false: one kernel per op
  bool reuse_memory = true;               // false: every temporary has bytes of its own (planned against unplanned)
  bool in_place = true;                   // false: alias decides nothing
  int64_t ring = 64;                      // slots of param rings and each_step outputs
  int64_t rewrites_left = INT64_MAX;      // --rewrite-limit: how many rewrites may still fire; each takes one
  std::vector<std::string> remarks = {};  // filled by passes: what --explain prints
};

using PassFn = absl::StatusOr<bool> (*)(Program&, PassContext&);

}  // namespace agc
