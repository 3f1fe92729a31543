// The elements of a reduction, or of what is stored along a row, among the invocations that share them: each takes
// every lanes-th run of `vec` neighbours, or one long run where the combiner minds the order.
//   ElementLoop loop{.lane = t, .lanes = 256, .unroll = 4};
//   loop.Emit(b, {.first = part * per, .per = per, .length = n}, body, [&](Index k, Expr inside) { ... merge ... });
#pragma once
#include <vector>

#include "passes/schedules/tools.h"

namespace agc {

struct ElementRange {
  Expr first = {};       // of the workgroup
  int64_t per = 1;       // elements of a workgroup: whole rounds of its lanes, unless it has all
  int64_t length = 1;    // of the row: those from here on do not exist
  bool ordered = false;  // every lane takes one run
};

// What to do with neighbouring elements k. `inside` is true, or where it is false k repeats the last ones.
using ElementBody = absl::FunctionRef<std::vector<Stmt>(Index k, Expr inside)>;

struct ElementLoop {
  Expr lane = {};  // of this invocation
  int64_t lanes = 1;
  int64_t vec = 1;        // neighbours taken at a time, where they divide the length
  int64_t unroll = 1;     // runs written out in a loop, whose loads wait for no guard
  bool resident = false;  // all is written out: what is loaded once stays in registers for the next loop over the row

  // Elements per workgroup where `parts` share `length` of them.
  int64_t Per(int64_t length, int64_t parts) const;
  void Emit(KernelBuilder& b, const ElementRange& range, std::vector<Stmt>& body, ElementBody make) const;

 private:
  int64_t Width(const ElementRange& range) const { return range.ordered || range.length % vec != 0 ? 1 : vec; }
  void EmitResident(const ElementRange& range, std::vector<Stmt>& body, ElementBody make) const;
  void EmitRounds(KernelBuilder& b, const ElementRange& range, Expr rounds, std::vector<Stmt>& body,
                  ElementBody make) const;
};

}  // namespace agc
