#include "passes/schedules/combine.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace agc {
namespace {

constexpr absl::string_view kShuffleFeature = "subgroup_shuffle";

// 32-bit floats and integers can be shuffled everywhere that shuffles exist.
bool Shuffles(DType dtype) { return dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kU32; }

struct State {
  std::vector<Expr> value = {};         // this invocation's components, as lets
  std::vector<uint32_t> exchange = {};  // shared arrays of `threads` elements, when there are no shuffles
};

uint32_t Shared(KernelBuilder& b, absl::string_view name, DType dtype, int64_t extent, std::vector<Stmt>& body) {
  Stmt alloc{.kind = StmtKind::kAlloc};
  alloc.target = b.AddAlloc(name, AllocSpace::kShared, dtype, {extent});
  body.push_back(alloc);
  return alloc.target;
}

Expr Named(KernelBuilder& b, absl::string_view name, Expr value, std::vector<Stmt>& body) {
  VarId v = 0;
  const Expr var = b.ValueVar(name, value.dtype(), &v);
  body.push_back(LetStmt(v, value));
  return var;
}

std::vector<Expr> Partner(KernelBuilder& b, const State& s, Expr t, int64_t mask, std::vector<Stmt>& body) {
  std::vector<Expr> other;
  if (s.exchange.empty()) {
    for (Expr e : s.value) {
      VarId v = 0;
      other.push_back(b.ValueVar("other", e.dtype(), &v));
      Stmt lanes{.kind = StmtKind::kLanes};
      lanes.var = v;
      lanes.value = e.id;
      lanes.lane = static_cast<uint32_t>(mask);
      body.push_back(std::move(lanes));
    }
    return other;
  }
  for (size_t c = 0; c < s.value.size(); ++c) body.push_back(SetAlloc(s.exchange[c], {t}, s.value[c]));
  body.push_back(BarrierStmt(Fence::kShared));
  // t ^ mask = t + mask - 2 * mask * (bit of t)
  const Expr partner = t + mask - Mod(Div(t, mask), 2) * (2 * mask);
  for (size_t c = 0; c < s.value.size(); ++c)
    other.push_back(Named(b, "other", b.Read(s.exchange[c], {partner}), body));
  body.push_back(BarrierStmt(Fence::kShared));
  return other;
}

}  // namespace

bool CombinesByShuffle(const Target& target, int64_t threads) {
  return target.has(kShuffleFeature) && target.subgroup_min >= kCombineGroup &&
         target.subgroup_min == target.subgroup_max && threads % std::max<int64_t>(target.subgroup_max, 1) == 0;
}

int64_t CombineBytes(const Nest& nest, int64_t threads, const Target& target) {
  int64_t bytes = 0;
  for (const NestStage& stage : nest.stages) {
    if (stage.kind == StageKind::kMap) continue;
    bool shuffle = CombinesByShuffle(target, threads);
    int64_t element = 0;
    for (int c = 0; c < stage.combiner->components; ++c) {
      const DType dtype = nest.components[stage.first_component + static_cast<uint32_t>(c)].dtype;
      shuffle = shuffle && Shuffles(dtype);
      element += std::max<int64_t>(SizeOf(dtype), 4);
    }
    bytes += element * (threads / kCombineGroup + (shuffle ? 0 : threads));
  }
  return bytes;
}

std::vector<Expr> EmitCombine(KernelBuilder& b, const NestStage& stage, absl::Span<const uint32_t> acc, Expr t,
                              int64_t threads, const Target& target, std::vector<Stmt>& body) {
  State s;
  const Combiner& combiner = *stage.combiner;
  const size_t n = acc.size();
  bool shuffle = CombinesByShuffle(target, threads);
  for (uint32_t a : acc) {
    s.value.push_back(Named(b, "part", b.Read(a), body));
    shuffle = shuffle && Shuffles(s.value.back().dtype());
  }
  if (shuffle &&
      std::find(b.kernel().features.begin(), b.kernel().features.end(), kShuffleFeature) == b.kernel().features.end()) {
    b.kernel().features.emplace_back(kShuffleFeature);
  }
  for (size_t c = 0; c < n && !shuffle; ++c) {
    s.exchange.push_back(Shared(b, "exchange", s.value[c].dtype(), threads, body));
  }
  for (int64_t mask = 1; mask < kCombineGroup; mask *= 2) {
    const std::vector<Expr> other = Partner(b, s, t, mask, body);
    const Expr upper = Not(EqZero(Mod(Div(t, mask), 2)));  // this invocation's value is the later one
    std::vector<Expr> first, second, merged(n);
    for (size_t c = 0; c < n; ++c) {
      first.push_back(Select(upper, other[c], s.value[c]));
      second.push_back(Select(upper, s.value[c], other[c]));
    }
    combiner.merge(first, second, absl::MakeSpan(merged));
    for (size_t c = 0; c < n; ++c) s.value[c] = Named(b, "part", merged[c], body);
  }
  std::vector<uint32_t> words;
  std::vector<Stmt> publish;
  for (size_t c = 0; c < n; ++c) {
    words.push_back(Shared(b, "word", s.value[c].dtype(), threads / kCombineGroup, body));
    publish.push_back(SetAlloc(words[c], {Div(t, kCombineGroup)}, s.value[c]));
  }
  body.push_back(IfStmt(EqZero(Mod(t, kCombineGroup)), std::move(publish)));
  body.push_back(BarrierStmt(Fence::kShared));
  std::vector<Expr> result;
  for (size_t c = 0; c < n; ++c) result.push_back(Named(b, "row", b.Read(words[c], {b.pool().Int(0)}), body));
  for (int64_t i = 1; i < threads / kCombineGroup; ++i) {
    std::vector<Expr> next, merged(n);
    for (size_t c = 0; c < n; ++c) next.push_back(Named(b, "row", b.Read(words[c], {b.pool().Int(i)}), body));
    combiner.merge(result, next, absl::MakeSpan(merged));
    for (size_t c = 0; c < n; ++c) result[c] = Named(b, "row", merged[c], body);
  }
  return result;
}

}  // namespace agc
