// Expressions as linear code over strips of lanes: one instruction computes its value for every lane before the next
// one starts. The nest evaluator runs it over consecutive elements, the loop executor over the invocations of a
// workgroup.
//   StripCode code = CompileStrip(pool, {value}, [](VarId v) { return VarRole{.uniform = v == k, .inner = v == k}; });
//   StripMachine m(code, 256, EvalMode::kExact);
//   m.BindVar(i, positions.data());  AGC_RETURN_IF_ERROR(m.RunOuter(memory, 256, nullptr));  m.result(0)[lane]
// A register holds 64 bits per lane: doubles for floats, integers otherwise; values of more lanes take several
// registers. About 3e8 scalar operations per second and core for chains of f32 arithmetic (-O2, 256 lanes).
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/eval/tensor.h"
#include "ir/expr.h"

namespace agc {

struct VarRole {
  bool uniform = false;  // one value for all lanes
  bool inner = false;  // changes between RunInner calls; what does not depend on such variables is computed by RunOuter
};

struct StripInstr {
  ExprKind kind = ExprKind::kConst;
  DType dtype = DType::kIndex, from = DType::kIndex;  // of the result, of the (typed) operand
  uint8_t width = 1;                                  // loads: registers filled, beginning at out
  bool uniform = false;                               // computed once for all lanes
  uint32_t ref = 0;                                   // loads: buffer, alloc or component; alu: scalar op
  int64_t payload = 0, lo = 0, hi = 0;
  uint32_t out = 0;
  absl::InlinedVector<uint32_t, 4> args = {};  // registers; of loads the indices
  absl::InlinedVector<int64_t, 4> coefs = {};
  uint32_t guard = UINT32_MAX;  // loads: register, or none
};

struct StripVar {
  VarId var = 0;
  uint32_t reg = 0;
  uint8_t width = 1;
  bool uniform = false;
};

struct StripCode {
  std::vector<StripInstr> code = {};
  size_t inner = 0;                // instructions from here on depend on inner variables
  std::vector<bool> uniform = {};  // per register
  std::vector<StripVar> vars = {};
  std::vector<std::pair<uint32_t, Scalar>> constants = {};
  std::vector<uint32_t> roots = {};  // first register of each root
};

// Loads for which `varying_load` holds are made per lane even where their indices are uniform.
StripCode CompileStrip(
    ExprPool& pool, absl::Span<const Expr> roots, absl::FunctionRef<VarRole(VarId)> role,
    absl::FunctionRef<bool(const ExprNode&)> varying_load = [](const ExprNode&) { return false; });

// Operands of a load, resolved to memory.
struct StripLoad {
  const StripInstr* instr = nullptr;
  int lanes = 1;                    // lanes to fill: 1 for a uniform load
  const uint8_t* active = nullptr;  // per lane; null: all. Others, and those whose guard is 0, get 0
  absl::InlinedVector<const uint64_t*, 4> index = {};
  absl::InlinedVector<int, 4> stride = {};  // 0: the index is uniform
  absl::InlinedVector<uint64_t*, 4> out = {};
  int64_t At(size_t axis, int lane) const { return static_cast<int64_t>(index[axis][lane * stride[axis]]); }
  bool Active(int lane) const { return active == nullptr || active[lane] != 0; }
};
class StripMemory {
 public:
  virtual ~StripMemory() = default;
  virtual absl::Status Load(const StripLoad& load) = 0;
};

class StripMachine {
 public:
  StripMachine() = default;
  StripMachine(StripCode code, int capacity, EvalMode mode);
  StripMachine(StripMachine&&) = default;  // registers are pointers into the slots, which a move keeps
  StripMachine& operator=(StripMachine&&) = default;
  // Where the lanes of a variable lie (one value for a uniform one); `data` must outlive the runs. Unused ones are
  // ignored.
  void BindVar(VarId var, uint64_t* data, int component = 0);
  absl::Span<const StripVar> vars() const { return code_.vars; }
  absl::Status RunOuter(StripMemory& memory, int lanes, const uint8_t* active) {
    return Run(0, code_.inner, memory, lanes, active);
  }
  absl::Status RunInner(StripMemory& memory, int lanes, const uint8_t* active) {
    return Run(code_.inner, code_.code.size(), memory, lanes, active);
  }
  absl::Status RunAll(StripMemory& memory, int lanes, const uint8_t* active) {
    return Run(0, code_.code.size(), memory, lanes, active);
  }
  const uint64_t* result(size_t root, int component = 0) const { return regs_[code_.roots[root] + component]; }
  int stride(size_t root) const { return code_.uniform[code_.roots[root]] ? 0 : 1; }  // 0: one value for all lanes

 private:
  absl::Status Run(size_t begin, size_t end, StripMemory& memory, int lanes, const uint8_t* active);
  absl::Status RunLoad(const StripInstr& instr, StripMemory& memory, int lanes, const uint8_t* active);

  StripCode code_ = {};
  EvalMode mode_ = EvalMode::kExact;
  std::vector<uint64_t> slots_ = {};
  std::vector<uint64_t*> regs_ = {};
  std::vector<uint8_t> mask_ = {};
};

// Rounds a computed float to its dtype as `mode` says.
double RoundFor(EvalMode mode, DType dtype, double value);
// out[i] = the element at `elements[i]` (0 where that is negative), as register bits.
void DecodeElements(DType dtype, const uint8_t* bytes, const int64_t* elements, int n, uint64_t* out);

}  // namespace agc
