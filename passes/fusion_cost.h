// What fusion weighs: the scalar operations of an op and of a nest, and whether a schedule family computes the nest.
//   AGC_ASSIGN_OR_RETURN(const OpFacts facts, FactsOf(graph, id, target));   // facts.cost: 9 for %y = exp(%x) + 1
#pragma once
#include <map>

#include "absl/status/statusor.h"
#include "ir/graph.h"
#include "ir/nest.h"
#include "ir/target.h"

namespace agc {

// What one op does by itself.
struct OpFacts {
  double cost = 0;  // of its scalar operations, per element
  bool reduces = false;
  bool product = false;            // of matrices, that tiles in shared memory compute
  int64_t read = 0;                // bytes of its operands
  double overlap = 1;              // how often its reductions read an element of its largest operand
  double work = 0;                 // scalar operations for all elements
  std::map<OpId, int> loads = {};  // how many elements of an operand one element of the result reads, sums apart
};
absl::StatusOr<OpFacts> FactsOf(const Graph& graph, OpId id, const Target& target);

// Scalar operations of the whole nest. On a GPU each side of a product of matrices counts as often as tiles in shared
// memory compute it, elsewhere as often as it is multiplied.
double WorkOf(const Nest& nest, const Target& target);

// Scalar operations that take as long on the device as waiting for one more kernel, where so many elements can be
// computed side by side.
double WorkPerEpoch(const Target& target, double elements);

// Turns the products of matrices in a nest into contractions, as long as a family computes the nest then. A product of
// a matrix and a vector stays a reduction where other work stands beside it. False: no family computes the nest well.
bool FormFittingContractions(Nest& nest, const Target& target);

}  // namespace agc
