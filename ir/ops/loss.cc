// Losses of labels and distributions over classes, defined by other ops and computed in f32 for f16 and bf16. Classes
// are axis 1, of ctc the last.
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_index.h"
#include "ir/build_math.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- labels

// Logits [n, c, ...] with labels [n, ...] and, if given, weights [c].
absl::Status CheckLabels(const OpCall& call) {
  const TensorType &logits = call.type(0), &labels = call.type(1);
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, logits.rank() - 1));
  if (logits.dims[0] != labels.dims[0]) {
    return call.Error(absl::StrCat("logits have ", logits.dims[0], " rows and there are ", labels.dims[0], " labels"));
  }
  if (Dims(logits.dims.begin() + 2, logits.dims.end()) == Dims(labels.dims.begin() + 1, labels.dims.end())) {
    return absl::OkStatus();
  }
  return call.Error(absl::StrCat("operands are ", ToString(logits), " and ", ToString(labels),
                                 ", expected labels of the logits' shape without axis 1"));
}

absl::StatusOr<Types> ClassLossType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 2));
  const TensorType& logits = call.type(0);
  const bool soft = call.type(1) == logits;
  if (!soft) AGC_RETURN_IF_ERROR(CheckLabels(call));
  if (call.arity() == 3) AGC_RETURN_IF_ERROR(CheckParam(call, 2, "the weight", {logits.dims[1]}));
  const Ints& ignored = call.ints("ignore_index");
  if (ignored.size() > 1 || (soft && !ignored.empty())) {
    return call.Error(absl::StrCat("ignore_index = ", ToString(ignored), ", expected ",
                                   soft ? "none for probabilities" : "one label at most"));
  }
  if (logits.elements() == 0 && call.text("reduction") == "mean") {
    return call.Error(absl::StrCat("logits are ", ToString(logits), ", which has no mean"));
  }
  if (call.text("reduction") != "none") return Types(TensorType{logits.dtype, {}});
  return Types(TensorType{logits.dtype, ReducedDims(logits.dims, {1}, false)});
}

absl::StatusOr<Types> CrossEntropyType(const OpCall& call) {
  const double smoothing = call.number("label_smoothing");
  if (!(smoothing >= 0 && smoothing <= 1)) {
    return call.Error(absl::StrCat("label_smoothing is ", smoothing, ", expected 0 to 1"));
  }
  return ClassLossType(call);
}

absl::StatusOr<Types> NllType(const OpCall& call) {
  if (call.arity() > 1) AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  return ClassLossType(call);
}

// Labels in a dtype that holds the number of classes.
Value WideLabels(Value labels) { return SizeOf(labels.dtype()) < 4 ? CastTo(labels, DType::kI32) : labels; }

// Whether each label is a class.
Value IsClass(Value labels, int64_t classes) {
  labels = WideLabels(labels);
  const Value below = Less(labels, FullLike(labels, static_cast<double>(classes)));
  return IsSigned(labels.dtype()) ? LogicalAnd(below, GreaterEqual(labels, FullLike(labels, 0))) : below;
}

// Where the class is the label, of the logits' shape.
Value Hits(Value labels, const Dims& dims) {
  if (dims.size() == 2) return OneHot(labels, dims[1], DType::kBool);
  labels = WideLabels(labels);
  return Equal(ExpandDims(labels, {1}), Iota(*labels.builder, labels.dtype(), dims, 1));
}

// ---------------------------------------------------------------- weighted targets

// What a call asks for: the loss of a row is minus the sum of targets times log-probabilities.
struct Targets {
  Value shares = {};   // of each class: 0 in rows that do not count
  Value weights = {};  // [1, c, 1, ...], or invalid: 1
  Value hits = {};     // bool, of rows that count; invalid for probabilities
  Value count = {};    // what the mean divides by, or invalid: the number of rows
  Value Weighted() const { return weights.valid() ? shares * weights : shares; }
};

// Szegedy and others (2016), "Rethinking the Inception architecture", section 7: a share of the target is spread over
// all classes.
Targets TargetsOf(const Rule& s, double smoothing) {
  const Dims dims = s.x[0].dims();
  const int rank = s.x[0].rank();
  const double classes = static_cast<double>(dims[1]);
  const DType dtype = AccumulatorOf(s.x[0].dtype());
  Targets t;
  if (s.x.size() == 3) t.weights = AlongAxes(Wide(s.x[2]), rank, {1});
  if (IsFloat(s.x[1].dtype())) {
    t.shares = Wide(s.x[1]);
    if (smoothing != 0) t.shares = t.shares * (1 - smoothing) + smoothing / classes;
    return t;
  }
  const Ints ignored = s.ints("ignore_index");
  const Value labels = WideLabels(s.x[1]);
  Value counts = IsClass(s.x[1], dims[1]), kept;
  t.hits = Hits(s.x[1], dims);
  // An ignored label that the labels' dtype cannot hold is no label.
  if (!ignored.empty() && Scalar::Int(labels.dtype(), ignored[0]).i() == ignored[0]) {
    kept = NotEqual(labels, FullLike(labels, static_cast<double>(ignored[0])));
    counts = LogicalAnd(counts, kept);
    t.hits = LogicalAnd(t.hits, ExpandDims(kept, {1}));
  }
  t.shares = CastTo(t.hits, dtype);
  if (smoothing != 0) {
    t.shares = t.shares * (1 - smoothing) + CastTo(ExpandDims(counts, {1}), dtype) * (smoothing / classes);
  }
  if (t.weights.valid()) {
    t.count = ReduceSum(CastTo(t.hits, dtype) * t.weights);
  } else if (kept.valid()) {
    t.count = ReduceSum(CastTo(kept, dtype));
  }
  return t;
}

// Where nothing counts the mean is 0.
Value Divisor(const Rule& s, const Targets& t) {
  const int64_t rows = s.x[0].type().elements() / std::max<int64_t>(s.x[0].dim(1), 1);
  if (!t.count.valid()) return Full(s.builder, {AccumulatorOf(s.x[0].dtype()), {}}, static_cast<double>(rows));
  return Where(Equal(t.count, FullLike(t.count, 0)), FullLike(t.count, 1), t.count);
}

// Per row, 0 where the target is 0 even if the log-probability is -inf.
Value RowLosses(Value targets, Value logp) {
  const Value zero = FullLike(logp, 0);
  return -ReduceSum(Where(Equal(targets, zero), zero, targets * logp), {1});
}

Value Reduced(Rule& s, const Targets& t, Value rows) {
  const std::string reduction = s.text("reduction");
  if (reduction == "sum") rows = ReduceSum(rows);
  if (reduction == "mean") rows = DivOf(ReduceSum(rows), Divisor(s, t));
  return CastTo(rows, s.op.type().dtype);
}

// ---------------------------------------------------------------- cross_entropy

// Integer labels of a matrix and nothing else: what most models train with, in the fewest ops.
bool IsPlain(const Rule& s) {
  return s.x[0].rank() == 2 && s.x.size() == 2 && !IsFloat(s.x[1].dtype()) && s.number("label_smoothing") == 0 &&
         s.ints("ignore_index").empty() && s.text("reduction") == "mean";
}

Value CrossEntropyDecompose(Rule& s) {
  const Value logits = Wide(s.x[0]);
  if (s.x[0].type().elements() == 0) return Full(s.builder, s.op.type(), 0);
  if (!IsPlain(s)) {
    const Targets t = TargetsOf(s, s.number("label_smoothing"));
    return Reduced(s, t, RowLosses(t.Weighted(), LogSoftmax(logits, 1)));
  }
  const Value hit = OneHot(s.x[1], logits.dim(1), DType::kBool), logp = LogSoftmax(logits);
  // Row by row first: one kernel with the statistics of the row.
  const Value sum = ReduceSum(ReduceSum(Where(hit, logp, FullLike(logp, 0)), {1}));
  return CastTo(-sum / static_cast<double>(logits.dim(0)), s.x[0].dtype());
}

void PlainVjp(Vjp& s) {
  const Value logits = Wide(s.x[0]), labels = s.x[1];
  const int64_t n = logits.dim(0), classes = logits.dim(1);
  const Value share = Wide(s.g) / static_cast<double>(n);
  const Value each = Where(IsClass(labels, classes), share, ScalarLike(share, 0, Loc::Here()));
  const Value difference = Softmax(logits) - OneHot(labels, classes, logits.dtype());
  s.dx[0] = CastTo(difference * Reshape(each, {n, 1}), s.x[0].dtype());
}

// The cotangent of each row's loss, with axis 1 kept.
Value RowCotangents(Vjp& s, const Targets& t) {
  const std::string reduction = s.text("reduction");
  const Value g = Wide(s.g);
  if (reduction == "none") return ExpandDims(g, {1});
  return reduction == "mean" ? DivOf(g, Divisor(s, t)) : g;
}

// With p = softmax of the logits and targets w s: p sum(w s) - w s for the logits, -w log(p) for the shares s, -s
// log(p) for the weights w, and the mean's divisor depends on the weights too.
void CrossEntropyVjp(Vjp& s) {
  if (s.x[0].type().elements() == 0) {
    for (size_t k = 0; k < s.x.size(); ++k) {
      if (IsFloat(s.x[k].dtype())) s.dx[k] = FullLike(s.x[k], 0);
    }
    return;
  }
  if (IsPlain(s)) return PlainVjp(s);
  const Value logits = Wide(s.x[0]);
  const double smoothing = s.number("label_smoothing");
  const Targets t = TargetsOf(s, smoothing);
  const Value targets = t.Weighted(), g = RowCotangents(s, t);
  s.dx[0] = CastTo((Softmax(logits, 1) * ReduceSum(targets, {1}, true) - targets) * g, s.x[0].dtype());
  const Value logp = LogSoftmax(logits, 1);
  if (IsFloat(s.x[1].dtype())) {
    const Value each = logp * g * (smoothing - 1);
    s.dx[1] = CastTo(t.weights.valid() ? each * t.weights : each, s.x[1].dtype());
  }
  if (s.x.size() < 3) return;
  const Value zero = FullLike(logp, 0);
  Value each = Where(Equal(t.shares, zero), zero, t.shares * logp * g);
  if (t.count.valid() && s.text("reduction") == "mean") each = each + CastTo(t.hits, g.dtype()) * (g * Wide(s.y));
  Ints others;
  for (int64_t k = 0; k < each.rank(); ++k) {
    if (k != 1) others.push_back(k);
  }
  s.dx[2] = CastTo(-ReduceSum(each, others), s.x[2].dtype());
}

// ---------------------------------------------------------------- nll

Value NllDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return Full(s.builder, s.op.type(), 0);
  const Targets t = TargetsOf(s, 0);
  return Reduced(s, t, RowLosses(t.Weighted(), Wide(s.x[0])));
}

// ---------------------------------------------------------------- ctc

// Scores [steps, n, c], labels [n, most], and per example the number of steps and of labels that count.
absl::StatusOr<Types> CtcType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 3));
  const Dims& scores = call.type(0).dims;
  for (int k = 1; k < 4; ++k) {
    AGC_RETURN_IF_ERROR(CheckInt(call, k));
    AGC_RETURN_IF_ERROR(CheckRank(call, k, k == 1 ? 2 : 1));
    if (call.type(k).dims[0] == scores[1]) continue;
    return call.Error(absl::StrCat("operand ", k, " is ", ToString(call.type(k)), ", expected ", scores[1],
                                   " rows, the examples of ", ToString(call.type(0))));
  }
  const int64_t blank = call.integer("blank");
  if (blank < 0 || blank >= scores[2])
    return call.Error(absl::StrCat("blank is ", blank, ", expected a class of ", ToString(call.type(0))));
  return LossType(call, {call.type(0).dtype, {scores[1]}});
}

// Stands for log(0): sums of thousands of these stay finite, so that no difference of infinities makes a NaN.
constexpr double kNever = -1e30;

// [n, places]: everything `by` places further along.
Value Later(Value x, int64_t by) {
  const int64_t most = x.dim(1);
  const Value padded = Pad(x, kNever, {0, by}, {0, 0});
  return Slice(padded, {0, 0}, {x.dim(0), most}, {});
}

Value LogSumOfThree(Value a, Value b, Value c) {
  const Value m = StopGradient(Maximum(Maximum(a, b), c));
  return m + Log(Exp(a - m) + Exp(b - m) + Exp(c - m));
}

// A number per example as i32 [n, 1], limited to [0, most].
Value LengthsOf(Value lengths, int64_t most) {
  const Value wide = CastTo(lengths, DType::kI64);
  return ExpandDims(CastTo(Clamp(wide, 0, static_cast<double>(most)), DType::kI32), {1});
}

// The loss from the sums over alignments: those that end with the last label or with a blank behind it.
Value CtcLoss(Rule& s, Value alpha, Value count) {
  const Value place = count * 2.0, zero = FullLike(count, 0), blank = TakeAlongAxis(alpha, place, 1);
  const Value label = TakeAlongAxis(alpha, Maximum(place - 1.0, zero), 1);
  const Value sum = LogAddExp(blank, Where(Equal(count, zero), FullLike(label, kNever), label));
  const double impossible = s.flag("zero_infinity") ? 0 : std::numeric_limits<double>::infinity();
  Value each = Where(Greater(sum, FullLike(sum, kNever / 2)), -sum, FullLike(sum, impossible));
  if (s.text("reduction") == "mean") each = each / CastTo(Maximum(count, FullLike(count, 1)), each.dtype());
  return ReduceLoss(s, Reshape(each, {each.dim(0)}));
}

// Graves and others (2006), "Connectionist temporal classification", section 4.1, in logarithms: alpha[l] is the sum
// over all alignments up to a step that end at place l of the labels with blanks between and around them. Before the
// first step only place 0 counts, as if a blank had been there.
Value CtcDecompose(Rule& s) {
  const Value scores = Wide(s.x[0]);
  const int64_t steps = scores.dim(0), n = scores.dim(1), most = s.x[1].dim(1), places = 2 * most + 1;
  if (n == 0) return Full(s.builder, s.op.type(), 0);
  const TensorType row{scores.dtype(), {n, places}};
  const Value place = Iota(s.builder, DType::kI32, row.dims, 1), one = FullLike(place, 1);
  const Value labels = Pad(WrapIndex(s.x[1], scores.dim(2), /*drop=*/false), 0, {0, 0}, {0, 1});
  const Value is_label = Equal(BitAnd(place, one), one);
  const Value classes = Where(is_label, TakeAlongAxis(labels, ShiftRight(place, one), 1),
                              FullLike(place, static_cast<double>(s.integer("blank"))));
  // Between different labels the blank may be left out.
  const Value before = Slice(Pad(classes, -1, {0, 2}, {0, 0}), {0, 0}, row.dims, {});
  const Value skips = LogicalAnd(LogicalAnd(is_label, Greater(place, one)), NotEqual(classes, before));
  const Value taken = TakeAlongAxis(scores, Broadcast(classes, {steps, n, places}), 2);
  const Value at = Maximum(taken, FullLike(taken, kNever)), end = Broadcast(LengthsOf(s.x[2], steps), row.dims);
  const Value never = Full(s.builder, row, kNever);
  Value alpha = Where(Equal(place, FullLike(place, 0)), FullLike(never, 0), never);
  for (int64_t t = 0; t < steps; ++t) {
    const Value score = Reshape(Slice(at, {t, 0, 0}, {t + 1, n, places}, {}), row.dims);
    const Value sum = LogSumOfThree(alpha, Later(alpha, 1), Where(skips, Later(alpha, 2), never));
    alpha = Where(Greater(end, FullLike(end, static_cast<double>(t))), sum + score, alpha);
  }
  return CtcLoss(s, alpha, LengthsOf(s.x[3], most));
}

constexpr AttrDef kIgnore = {"ignore_index", kInts, "[]"};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cross_entropy", .cls = OpClass::kComposite, .arity = {2, 3},
     .attrs = {{"label_smoothing", kFloat, "0"}, kIgnore, kReduction}, .infer = CrossEntropyType, .decompose = CrossEntropyDecompose,
     .vjp = CrossEntropyVjp, .tol = {.f32 = 4e-6},
     .numpy = "cross_entropy(x0, x1, label_smoothing=label_smoothing, ignore_index=ignore_index, reduction=reduction)",
     .sample = {.shapes = {"f32[3,4]", "i32[3]"}, .lo = 0, .hi = 3},
     .doc = "-log_softmax of the logits [n, classes, ...] at the labels [n, ...], or weighted by probabilities of the logits' type; a third operand has a weight "
            "per class. The mean divides by the weights of the labels, or by the rows that are not ignored. A label outside [0, classes) contributes 0 and no gradient."},
    {.name = "ctc", .cls = OpClass::kComposite, .arity = 4, .attrs = {{"blank", kInt, "0"}, {"zero_infinity", kBool, "false"}, kReduction},
     .infer = CtcType, .decompose = CtcDecompose, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "ctc(x0, x1, x2, x3, blank, zero_infinity, reduction)",
     .sample = {.shapes = {"f32[6,2,3]", "i32[2,4]", "i32[2]", "i32[2]"}, .attrs = "zero_infinity = true", .lo = -2, .hi = 4},
     .doc = "Minus the logarithm of the probability of labels [n, most] under log-probabilities [steps, n, c]: the sum over all alignments, in which labels repeat "
            "and blanks stand between. The last operands are the numbers of steps and of labels per example. Without an alignment it is infinite, or 0 where asked. "
            "The mean divides by the number of labels first."},
    {.name = "nll", .cls = OpClass::kComposite, .arity = {2, 3}, .attrs = {kIgnore, kReduction}, .infer = NllType, .decompose = NllDecompose,
     .numpy = "nll(x0, x1, ignore_index=ignore_index, reduction=reduction)", .sample = {.shapes = {"f32[3,4]", "i32[3]"}, .lo = 0, .hi = 3},
     .doc = "Negative log-likelihood: cross_entropy of log-probabilities instead of logits."},
};
// clang-format on
static_assert(CheckOps(kOps));

std::vector<Attr> Attrs(const CrossEntropyOptions& o) {
  const Ints ignored = o.ignore_index.has_value() ? Ints{*o.ignore_index} : Ints{};
  return {Attr{"ignore_index", ignored}, ReductionAttr(o.reduction)};
}

std::vector<Value> Operands(Value x, Value labels, const CrossEntropyOptions& o) {
  if (o.weight.builder == nullptr) return {x, labels};
  return {x, labels, o.weight};
}

}  // namespace

constinit const absl::Span<const OpDef> kLossOps(kOps);

Value CrossEntropy(Value logits, Value labels, Loc loc) { return Emit("cross_entropy", {logits, labels}, {}, loc); }
Value CrossEntropy(Value logits, Value labels, CrossEntropyOptions o, Loc loc) {
  std::vector<Attr> attrs = Attrs(o);
  attrs.push_back({"label_smoothing", o.label_smoothing});
  return Emit("cross_entropy", Operands(logits, labels, o), attrs, loc);
}
Value Ctc(Value log_probabilities, Value labels, Value steps, Value lengths, CtcOptions o, Loc loc) {
  return Emit("ctc", {log_probabilities, labels, steps, lengths},
              {Attr{"blank", o.blank}, Attr{"zero_infinity", o.zero_infinity}, ReductionAttr(o.reduction)}, loc);
}
Value Nll(Value log_probabilities, Value labels, CrossEntropyOptions o, Loc loc) {
  return Emit("nll", Operands(log_probabilities, labels, o), Attrs(o), loc);
}

}  // namespace agc
