// A kernel made ready for execution: its statements with their expressions as strip code, and the storage of its
// variables, one slot per invocation.
//   KernelCode code(kernel, memory, options);
//   AGC_ASSIGN_OR_RETURN(std::vector<KernelNode> body, code.Compile(kernel.parts[0].body));
//   code.Storage(var, 0)[lane]
#pragma once
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/eval/kernel_memory.h"
#include "ir/eval/strip.h"
#include "ir/kernel.h"

namespace agc {

// A statement with its expressions as code.
struct KernelNode {
  const Stmt* stmt = nullptr;
  StripMachine first = {};  // for: begin, end; if: cond; store, atomic: guard; if_last: index, count
  StripMachine rest = {};   // store, atomic: index, value; let, lanes: value
  StripMachine merge = {};  // store, atomic with a combiner: of the old and the new value
  std::vector<VarId> state = {};
  int width = 1;  // lanes of the value
  DType dtype = DType::kF32;
  bool uniform = false;  // for, let: the variable has one value
  std::vector<KernelNode> body = {}, otherwise = {};
};

class KernelCode {
 public:
  KernelCode(const Kernel& kernel, const KernelMemory& memory, const KernelOptions& options);
  absl::StatusOr<std::vector<KernelNode>> Compile(const std::vector<Stmt>& list);
  // Where a component of a variable lies, one slot per invocation (the first one serves all for uniform variables).
  uint64_t* Storage(VarId v, int component);
  int lanes() const { return lanes_; }
  absl::string_view NameOf(VarId v) const { return pool_.var(v).name; }

 private:
  StripMachine Code(absl::Span<const Expr> roots);
  void SetUniform(VarId v, bool uniform);
  absl::StatusOr<KernelNode> CompileStmt(const Stmt& s);
  void CompileStore(const Stmt& s, KernelNode& n);

  const KernelMemory& memory_;
  const EvalMode mode_;
  ExprPool pool_;  // a copy, to which merges are added
  int lanes_ = 1;
  std::vector<uint8_t> uniform_ = {};                          // by variable
  std::vector<std::vector<std::vector<uint64_t>>> vars_ = {};  // by variable, component and invocation
};

// An error of a statement: "kernel @k1: <message>" at its place.
absl::Status KernelError(const Kernel& kernel, const Stmt& s, absl::string_view message,
                         absl::StatusCode code = absl::StatusCode::kInvalidArgument);

}  // namespace agc
