#include "ir/op_def.h"

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/tables.h"

namespace agc {

absl::string_view Name(OpClass cls) {
  static constexpr absl::string_view kNames[] = {"elementwise", "view", "reduce", "contract",  "gather",
                                                 "scatter",     "scan", "data",   "composite", "symbol"};
  return kNames[static_cast<int>(cls)];
}

namespace {
template <typename T>
const T& Get(absl::Span<const Attr> attrs, absl::string_view name) {
  const AttrValue* value = FindAttr(attrs, name);
  AGC_CHECK(value != nullptr && std::holds_alternative<T>(*value));
  return *std::get_if<T>(value);
}
}  // namespace

const Ints& AttrReader::ints(absl::string_view name) const { return Get<Ints>(attrs, name); }
int64_t AttrReader::integer(absl::string_view name) const { return Get<int64_t>(attrs, name); }
double AttrReader::number(absl::string_view name) const { return Get<double>(attrs, name); }
bool AttrReader::flag(absl::string_view name) const { return Get<bool>(attrs, name); }
DType AttrReader::dtype(absl::string_view name) const { return Get<DType>(attrs, name); }
const std::string& AttrReader::text(absl::string_view name) const { return Get<std::string>(attrs, name); }
const std::string& AttrReader::symbol(absl::string_view name) const { return Get<Symbol>(attrs, name).name; }
const LiteralPtr& AttrReader::literal(absl::string_view name) const { return Get<LiteralPtr>(attrs, name); }

absl::Status OpCall::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(def->name, ": ", message));
}

Expr At::Sum(absl::Span<const int64_t> extents, absl::FunctionRef<Expr(Index)> body) {
  const DType acc = AccumulatorOf(out().dtype);
  const std::vector<Expr> sum = Reduce("add", extents, [&](Index k) { return std::vector<Expr>{Cast(body(k), acc)}; });
  return Cast(sum[0], out().dtype);
}

Expr At::Sum(int64_t extent, absl::FunctionRef<Expr(Expr)> body) {
  return Sum({extent}, [&](Index k) { return body(k[0]); });
}

std::vector<Expr> At::Reduce(absl::string_view combiner, absl::Span<const int64_t> extents,
                             absl::FunctionRef<std::vector<Expr>(Index)> body) {
  const Combiner* c = FindCombiner(combiner);
  AGC_CHECK(c != nullptr);
  return context.Reduce(op, *c, extents, body);
}

Rule::Rule(Builder& b, Op o) : builder(b), op(std::move(o)) {
  attrs = op.attrs;
  for (OpId id : op.operands) x.push_back({&b, id, b.generation, false});
}
Vjp::Vjp(Builder& b, Op o, OpId id) : Rule(b, std::move(o)), y{&b, id, b.generation, false} { dx.resize(x.size()); }
Jvp::Jvp(Builder& b, Op o, OpId id) : Rule(b, std::move(o)), y{&b, id, b.generation, false} { tx.resize(x.size()); }

absl::Span<const OpDef* const> AllOps() {
  static const std::vector<const OpDef*>& all = *[] {
    auto* ops = new std::vector<const OpDef*>;
    for (absl::Span<const OpDef> table : {kDataOps,
                                          kDerivativeOps,
                                          kElementwiseOps,
                                          kCompareOps,
                                          kViewOps,
                                          kPadOps,
                                          kRearrangeOps,
                                          kDiagonalOps,
                                          kReduceOps,
                                          kReduceStatsOps,
                                          kCumulativeOps,
                                          kLinalgOps,
                                          kContractOps,
                                          kConvOps,
                                          kConvTransposeOps,
                                          kUnfoldOps,
                                          kMaxPoolOps,
                                          kAdaptivePoolOps,
                                          kResizeOps,
                                          kGridOps,
                                          kPoolOps,
                                          kGatherOps,
                                          kActivationOps,
                                          kLossOps,
                                          kMathOps,
                                          kTrigOps,
                                          kBitOps,
                                          kLinearActivationOps,
                                          kSmoothActivationOps,
                                          kNormOps,
                                          kAttentionOps,
                                          kPositionOps,
                                          kRecurrentOps,
                                          kRegressionLossOps,
                                          kBinaryLossOps,
                                          kMarginLossOps,
                                          kIndexOps,
                                          kDynamicOps,
                                          kScatterOps,
                                          kScatterIndexOps,
                                          kSortOps,
                                          kRandomOps}) {
      for (const OpDef& op : table) ops->push_back(&op);
    }
    std::sort(ops->begin(), ops->end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
    return ops;
  }();
  return all;
}

const OpDef* FindOp(absl::string_view name) {
  const absl::Span<const OpDef* const> all = AllOps();
  const auto it =
      std::lower_bound(all.begin(), all.end(), name, [](const OpDef* a, absl::string_view n) { return a->name < n; });
  return it != all.end() && (*it)->name == name ? *it : nullptr;
}

namespace {
const OpDef& Named(absl::string_view name) {
  const OpDef* op = FindOp(name);
  AGC_CHECK(op != nullptr);
  return *op;
}
}  // namespace

const OpDef& InputOp() {
  static const OpDef& op = Named("input");
  return op;
}
const OpDef& StateOp() {
  static const OpDef& op = Named("state");
  return op;
}
const OpDef& BlobOp() {
  static const OpDef& op = Named("blob");
  return op;
}
const OpDef& ConstantOp() {
  static const OpDef& op = Named("constant");
  return op;
}
const OpDef& GetOp() {
  static const OpDef& op = Named("get");
  return op;
}
const OpDef& CastOp() {
  static const OpDef& op = Named("cast");
  return op;
}
const OpDef& GradientOp() {
  static const OpDef& op = Named("gradient");
  return op;
}

}  // namespace agc
