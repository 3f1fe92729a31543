// The loop executor: runs a loop tree over bytes, workgroup by workgroup, all invocations of a workgroup in lock-step.
// It is the meaning of a kernel, and it finds what devices leave undefined.
//   std::vector<uint8_t> x = ..., y(4 * n);
//   AGC_RETURN_IF_ERROR(ExecuteKernel(kernel, kernel.groups(), {{x.data(), 4 * n}, {y.data(), 4 * n}}));
// Typed errors, naming kernel, parameter or alloc, element, invocation and workgroup:
//   OutOfRange          an index outside its parameter or alloc, or a computed index outside its declared range
//   FailedPrecondition  a read of bytes that were never written
//   Aborted             a race: two invocations touch the same element, one of them writes, and no barrier (within a
//                       workgroup) or `if_last` (between workgroups) orders them
//   InvalidArgument     a barrier, lanes op, if_last or `uniform` if in flow that is not uniform; arguments that do
//                       not fit
//   Unimplemented       tile statements
#pragma once
#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/eval/tensor.h"
#include "ir/kernel.h"

namespace agc {

// The bytes of one argument. `known` (one byte per byte, or null: all are) says which hold a value; stores set it.
struct ArenaSlice {
  uint8_t* bytes = nullptr;
  int64_t size = 0;
  uint8_t* known = nullptr;
};

struct KernelOptions {
  EvalMode mode = EvalMode::kExact;  // kDouble: registers keep f64; bytes always are of the stored dtype
  int subgroup = 32;                 // lanes of a subgroup: consecutive invocations
  bool check_races = true;
};

// Parameters are read with several indices, row-major by their type, or one element number (KernelParam::linear).
// Arguments may overlap: races are found by byte, whichever parameters they go through.
absl::Status ExecuteKernel(const Kernel& kernel, std::array<int64_t, 3> groups, absl::Span<const ArenaSlice> args,
                           const KernelOptions& options = {});

}  // namespace agc
