// What the families for contractions share: which axes are rows, columns and steps of the product, and in which order.
//   ContractShape s = ShapeOf(nest);     // matmul: m = {i}, n = {j}, k = {l}
#pragma once
#include <vector>

#include "absl/functional/function_ref.h"
#include "passes/schedules/tools.h"

namespace agc {

// N is the side whose axis is contiguous in the output, so that neighbouring invocations store neighbours. Output axes
// are in the order of the output, k axes in that of the operands' memory.
struct ContractShape {
  std::vector<VarId> batch = {}, m = {}, n = {}, k = {};
  bool swapped = false;  // the left side of the product is the stage's second value
};

// Whether the nest is one contraction whose results are stored element by element.
bool IsContraction(const Nest& nest);
ContractShape ShapeOf(const Nest& nest);
// The largest stride that an axis has in the loads below `side`, in elements; 0: it does not occur.
int64_t StrideInLoads(const Nest& nest, ExprId side, VarId axis);

// The finished sum of one output: its axes, its flat row and column.
struct OutputSum {
  AxisMap axes = {};
  Expr m = {}, n = {}, sum = {};
};

// Stores the sums of neighbouring outputs of one batch and part.
using StoreSums = absl::FunctionRef<void(KernelBuilder&, absl::Span<const OutputSum> outputs, Expr batch, Expr part,
                                         std::vector<Stmt>& body)>;

// The nest's stores, with the sums in place of its stage.
void StoreOutputs(const Nest& nest, KernelBuilder& b, absl::Span<const OutputSum> outputs, std::vector<Stmt>& body);

// The kernel of a nest whose reduction is cut into `split` parts.
using TileKernel = absl::FunctionRef<absl::StatusOr<Kernel>(const Nest&, int64_t split, StoreSums store)>;

// One kernel; or with split > 1 one that writes partial sums to scratch, and one that adds them in order.
absl::StatusOr<Built> BuildContraction(const Nest& nest, const ContractShape& shape, int64_t split,
                                       const Target& target, TileKernel tile);

}  // namespace agc
