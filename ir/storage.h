// The storage table and the step list: a graph's body from the nest stage on.
//   buffer %b3: f32[32,784] kind temp align 16 alias %b2
//   run @k1(%b0, %b1) -> (%b3)                       // nest, scheduled
//   dispatch @k1 groups [4, 1, 1] (%b0, %b1, %b3)    // loop, plan
//   barrier
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/base/loc.h"
#include "ir/type.h"

namespace agc {

enum class BufferKind : uint8_t { kInput, kResident, kParam, kState, kConst, kOutput, kTemp, kScratch, kCounter };
absl::string_view Name(BufferKind kind);  // the order and names of rt::BufferKind

// One row of the storage table. Logical type first; stored/order/pad/parent say how its elements lie in memory.
struct Buffer {
  std::string name = {};  // without '%'
  TensorType type = {};   // logical; params and each_step outputs have their ring as the first axis
  BufferKind kind = BufferKind::kTemp;
  std::string symbol = {};                 // input/resident/param/output: interface name; state: state name
  DType stored = DType::kF32;              // element format in memory
  absl::InlinedVector<int, 6> order = {};  // axis order, empty: row-major
  Dims pad = {};                           // extra elements per axis, empty: none
  int32_t parent = -1;                     // packed inside this buffer, at element index `parent_at` [reserve]
  Dims parent_at = {};
  int64_t align = 16;
  int32_t alias = -1;              // takes over the storage of this buffer (in-place, donation)
  bool each_step = false;          // output: one slice per step
  bool ring = false;               // param or each_step output: first axis is indexed by run.index
  std::vector<uint8_t> data = {};  // const: its bytes
  // plan stage: place and life (closed range of step numbers)
  int64_t arena = -1, offset = 0, size = 0;
  uint32_t first_step = 0, last_step = 0;
  Loc loc = {};
};

enum class StepKind : uint8_t { kRun, kDispatch, kCopy, kFill, kBarrier };

// kRun (nest and scheduled): callee is an index into Program::nests; inputs then outputs bind the nest's parameters.
// kDispatch (loop and plan): callee is an index into Program::kernels; args bind the kernel's parameters in order.
struct Step {
  StepKind kind = StepKind::kRun;
  uint32_t callee = 0;
  std::vector<int32_t> args = {};  // buffers; copy: {source, destination}; fill: {destination}
  std::array<int64_t, 3> groups = {1, 1, 1};
  uint32_t fill_word = 0;
  int32_t epoch = -1;      // barrier epoch, written by `order`
  std::string label = {};  // "<kernel>_<root op>"
  Loc origin = {};
};

}  // namespace agc
