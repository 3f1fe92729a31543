// Whether index expressions tell the places of different iterations apart.
//   Determined known(pool, {});  known.Add(8*i + j, 1);  known.Knows(j)   // true where 0 <= j < 8
#pragma once
#include <map>
#include <vector>

#include "ir/expr.h"

namespace agc {

using Lets = std::map<VarId, Expr>;  // index variables named by a let, and what they stand for

// What follows from the values of the expressions that were added: sums whose terms do not mix (as the digits of a
// number in mixed radix) give their terms, and x follows from x % c and x / c.
class Determined {
 public:
  Determined(ExprPool& pool, const Lets& lets) : pool_(pool), lets_(lets) {}

  void Add(Expr e, int64_t lanes);  // `lanes` neighbours from e on are touched
  void Assume(Expr condition);      // it holds: e == 0, or 0 <= e < 1
  void Close();                     // draws the conclusions; before Knows
  bool Knows(Expr e) const;

 private:
  bool Separates(Expr sum, int64_t lanes) const;

  ExprPool& pool_;
  const Lets& lets_;
  std::vector<Expr> known_ = {};
};

}  // namespace agc
