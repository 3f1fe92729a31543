#include "passes/schedules/elements.h"

#include <algorithm>

namespace agc {
namespace {

// The elements of run number `run`.
std::vector<Expr> Run(Expr run, int64_t width) {
  std::vector<Expr> k;
  for (int64_t e = 0; e < width; ++e) k.push_back(run * width + e);
  return k;
}

}  // namespace

int64_t ElementLoop::Per(int64_t length, int64_t parts) const {
  return parts == 1 ? length : CeilDiv(CeilDiv(length, parts), lanes * vec) * lanes * vec;
}

void ElementLoop::EmitResident(const ElementRange& range, std::vector<Stmt>& body, ElementBody make) const {
  const int64_t width = Width(range), runs = range.length / width;
  for (int64_t u = 0; u < CeilDiv(runs, lanes); ++u) {
    const Expr run = lane + u * lanes;
    Append(body, make(Run(Min(run, runs - 1), width), InRange(run, runs)));
  }
}

// Rounds of `unroll` runs a lane, which lie inside as a whole.
void ElementLoop::EmitRounds(KernelBuilder& b, const ElementRange& range, Expr rounds, std::vector<Stmt>& body,
                             ElementBody make) const {
  const int64_t width = Width(range);
  VarId r = 0;
  const Expr round = b.IndexVar("r", std::max<int64_t>(1, rounds.node().hi), &r);
  std::vector<Stmt> inner;
  for (int64_t j = 0; j < unroll; ++j) {
    VarId k = 0;
    const Expr run = Div(range.first, width) + round * (lanes * unroll) + lane + j * lanes;
    const Expr proven = b.IndexVar("k", range.length / width, &k);
    inner.push_back(LetStmt(k, run));
    Append(inner, make(Run(proven, width), b.pool().Bool(true)));
  }
  body.push_back(ForStmt(ForMode::kSerial, r, b.pool().Int(0), rounds, std::move(inner)));
}

void ElementLoop::Emit(KernelBuilder& b, const ElementRange& range, std::vector<Stmt>& body, ElementBody make) const {
  if (resident && !range.ordered && range.per == range.length) return EmitResident(range, body, make);
  const int64_t width = Width(range), trips = CeilDiv(range.per, lanes * width);
  Expr begin = b.pool().Int(0);
  if (!range.ordered && unroll > 1 && trips >= unroll) {
    const Expr left = Max(b.pool().Int(range.length) - range.first, 0);
    const Expr rounds = Div(Min(left, range.per), lanes * width * unroll);
    if (!rounds.IsConst(0)) EmitRounds(b, range, rounds, body, make);
    begin = rounds * unroll;
    if (begin.IsConst(trips)) return;
  }
  VarId u = 0;
  const Expr trip = b.IndexVar("u", trips, &u);
  const Expr run = Div(range.first, width) + (range.ordered ? lane * trips + trip : trip * lanes + lane);
  std::vector<Stmt> rest = b.Below(run, range.length / width, "k", /*uniform=*/false,
                                   [&](Expr k) { return make(Run(k, width), b.pool().Bool(true)); });
  body.push_back(ForStmt(ForMode::kSerial, u, begin, b.pool().Int(trips), std::move(rest)));
}

}  // namespace agc
