// Cumulative ops, defined by prefix_reduce over short blocks: blocks are reduced whole, their totals are accumulated in
// the same way, and every element adds what its block holds before it to what the blocks before hold. An axis of n
// elements takes about n * kBlock / 2 steps in 2 log(n) / log(kBlock) kernels; the order of operations depends on n
// alone. Half floats are kept in f32 throughout and rounded once.
#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_shape.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using Values = std::vector<Value>;
using Point = absl::InlinedVector<Expr, 6>;

constexpr int64_t kBlock = 32;   // elements of a block
constexpr int64_t kDirect = 64;  // the longest axis that is not cut into blocks
constexpr double kInf = std::numeric_limits<double>::infinity();

// ---------------------------------------------------------------- prefix_reduce

absl::StatusOr<Types> PrefixTypes(const OpCall& call) {
  const TensorType& x = call.type(0);
  const int parts = FindCombiner(call.text("combiner"))->components;
  if (call.arity() != parts && (parts > 1 || call.arity() != 2)) {
    return call.Error(absl::StrCat(call.arity(), " operands given, ", call.text("combiner"), " takes ",
                                   parts == 1 ? "1 or, with a carry, 2" : absl::StrCat(parts)));
  }
  AGC_RETURN_IF_ERROR(call.text("combiner") == "softmax" ? CheckFloat(call, 0) : CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  TensorType carry = x;
  carry.dims[PositiveAxis(call.integer("axis"), x.rank())] = 1;
  Types types;
  for (int k = 0; k < call.arity(); ++k) {
    const TensorType& expected = k < parts ? x : carry;
    if (call.type(k) != expected) {
      return call.Error(absl::StrCat("operand ", k, " is ", ToString(call.type(k)), ", expected ", ToString(expected)));
    }
    if (k < parts) types.push_back(x);
  }
  return types;
}

Expr PrefixAt(At& s, Index i) {
  const Combiner& combiner = *FindCombiner(s.text("combiner"));
  const size_t axis = static_cast<size_t>(PositiveAxis(s.integer("axis"), s.out().rank()));
  const DType acc = AccumulatorOf(s.out().dtype);
  Point point(i.begin(), i.end());
  std::vector<Expr> state = s.Reduce(combiner.name, {s.dim(0, static_cast<int>(axis))}, [&](Index k) {
    point[axis] = k[0];
    std::vector<Expr> values;
    for (int c = 0; c < combiner.components; ++c) {
      values.push_back(s.Guard(
          NonNeg(i[axis] - k[0]), [&] { return Cast(s.Read(c, point), acc); },
          s.pool.Const(combiner.identity(c, acc))));
    }
    return values;
  });
  if (s.arity() > combiner.components) {  // one component and a carry
    point[axis] = s.pool.Int(0);
    const std::vector<Expr> carry = {Cast(s.Read(1, point), acc)}, own = state;
    combiner.merge(carry, own, absl::MakeSpan(state));
  }
  return Cast(state[static_cast<size_t>(s.part)], s.out().dtype);
}

// The op with a value per component.
Values PrefixReduce(absl::string_view combiner, const Values& x, const Values& carry, int64_t axis) {
  Values operands = x;
  operands.insert(operands.end(), carry.begin(), carry.end());
  const Value y = Emit("prefix_reduce", operands, {Attr{"axis", axis}, Attr{"combiner", std::string(combiner)}}, {});
  if (x.size() == 1) return {y};
  Values parts;
  for (size_t c = 0; c < x.size(); ++c) parts.push_back(Get(y, static_cast<int64_t>(c)));
  return parts;
}

// ---------------------------------------------------------------- scans of [outer, n, inner] along axis 1

Value Splat(Value like, int64_t axis, Scalar value) {
  auto literal = std::make_shared<Literal>();
  literal->values.push_back(value);
  TensorType type = like.type();
  type.dims[axis] = 1;
  return Constant(*like.builder, type, std::move(literal));
}

// Everything one place further along, `first` in front.
Value Delayed(Value x, int64_t axis, Scalar first) {
  return Concat({Splat(x, axis, first), PartOf(x, axis, 0, x.dims()[axis] - 1)}, axis);
}
Value Advanced(Value x, int64_t axis, double last) {
  return Concat({PartOf(x, axis, 1, x.dims()[axis]), Splat(x, axis, Scalar::Of(x.dtype(), last))}, axis);
}

Scalar IdentityOf(absl::string_view combiner, size_t component, DType dtype) {
  return FindCombiner(combiner)->identity(static_cast<int>(component), dtype);
}

// The combiner of two components written with tensors: six operands and results in one kernel are more than small
// devices can bind. See MergeAffine and MergeSoftmax in ir/combiner.cc.
Values Merged(absl::string_view combiner, const Values& a, const Values& b) {
  if (combiner == "affine") {
    const Value zero = FullLike(b[0], 0), kept = Mul(b[0], a[1]);
    return {Mul(a[0], b[0]), Add(b[1], Where(Equal(b[0], zero), zero, kept))};
  }
  const Value m = Maximum(a[0], b[0]);
  const auto scaled = [&](const Values& x) {
    return Where(Equal(x[0], FullLike(x[0], -kInf)), x[1], Mul(x[1], Exp(Sub(x[0], m))));
  };
  return {m, Add(scaled(a), scaled(b))};
}

Values Scan(absl::string_view combiner, const Values& x) {
  const Dims dims = x[0].dims();
  if (dims[1] <= kDirect) return PrefixReduce(combiner, x, {}, 1);
  const int64_t blocks = (dims[1] + kBlock - 1) / kBlock;
  Values cut, totals, carry, out;
  for (const Value& v : x) {  // what fills the last block up is read by nobody
    cut.push_back(Reshape(Pad(v, 0, {0, 0, 0}, {0, blocks * kBlock - dims[1], 0}), {dims[0], blocks, kBlock, dims[2]}));
  }
  const Values within = PrefixReduce(combiner, cut, {}, 2);
  for (const Value& v : within) {
    totals.push_back(Reshape(PartOf(v, 2, kBlock - 1, kBlock), {dims[0], blocks, dims[2]}));
  }
  const Values before = Scan(combiner, totals);
  for (size_t c = 0; c < x.size(); ++c) {
    const Value shifted = Delayed(before[c], 1, IdentityOf(combiner, c, x[c].dtype()));
    carry.push_back(Reshape(shifted, {dims[0], blocks, 1, dims[2]}));
  }
  for (const Value& v : x.size() == 1 ? PrefixReduce(combiner, cut, carry, 2) : Merged(combiner, carry, within)) {
    out.push_back(PartOf(Reshape(v, {dims[0], blocks * kBlock, dims[2]}), 1, 0, dims[1]));
  }
  return out;
}

// ---------------------------------------------------------------- any axis, both directions, without the element

struct Line {
  int64_t axis = 0;
  bool reverse = false, exclusive = false;
};
Line LineOf(const Rule& s) {
  return {PositiveAxis(s.integer("axis"), s.x[0].rank()), s.flag("reverse"), s.flag("exclusive")};
}

Value Turned(Value x, const Line& line) { return line.reverse ? Flip(x, {line.axis}) : x; }

// Scans along an axis of tensors that have elements, forwards and with the element.
Values ScanAxis(absl::string_view combiner, const Values& x, int64_t axis) {
  const Dims dims = x[0].dims();
  Ints shape = {1, dims[axis], 1};
  for (int64_t k = 0; k < static_cast<int64_t>(dims.size()); ++k) {
    if (k != axis) shape[k < axis ? 0 : 2] *= dims[k];
  }
  Values flat, out;
  for (const Value& v : x) flat.push_back(Reshape(v, shape));
  for (const Value& v : Scan(combiner, flat)) out.push_back(Reshape(v, dims));
  return out;
}

absl::StatusOr<Types> CumulativeTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckNumber(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), call.type(0).rank()));
  return Types(call.type(0));
}
absl::StatusOr<Types> CumulativeFloat(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  return CumulativeTypes(call);
}

// Takes `reverse` and `exclusive` off, applies `scan` to a wide tensor, and puts them on again; `first` stands where an
// exclusive result has nothing before it.
template <typename F>
Value Cumulate(Rule& s, F scan, Scalar first) {
  if (s.x[0].type().elements() == 0) return s.x[0];
  const Line line = LineOf(s);
  Value y = scan(Turned(Wide(s.x[0]), line), line.axis);
  if (line.exclusive) y = Delayed(y, line.axis, first);
  return CastTo(Turned(y, line), s.x[0].dtype());
}

template <StaticName combiner>
Value CumulativeDecompose(Rule& s) {
  const absl::string_view name(combiner.text, sizeof(combiner.text) - 1);
  const Scalar first = Convert(IdentityOf(name, 0, s.x[0].dtype()), AccumulatorOf(s.x[0].dtype()));
  return Cumulate(
      s, [&](Value x, int64_t axis) { return ScanAxis(name, {x}, axis)[0]; }, first);
}

// Pairs of a maximum and a sum of exponentials relative to it; -inf counts for nothing, and inf is taken as it is.
Value LogCumSumExpDecompose(Rule& s) {
  const auto scan = [](Value x, int64_t axis) {
    const Value nothing = Equal(x, FullLike(x, -kInf));
    const Values y = ScanAxis("softmax", {x, Where(nothing, FullLike(x, 0), FullLike(x, 1))}, axis);
    return Where(Equal(y[0], FullLike(y[0], kInf)), y[0], y[0] + Log(y[1]));
  };
  return Cumulate(s, scan, Scalar::Float(AccumulatorOf(s.x[0].dtype()), -kInf));
}

// ---------------------------------------------------------------- gradients

// Differentiates the plain scan: x and the cotangent turned to it, then the result turned back. `rule` gets x, the
// cotangent and the axis.
template <typename F>
void Differentiate(Vjp& s, F rule) {
  if (s.x[0].type().elements() == 0) {
    s.dx[0] = FullLike(s.x[0], 0);
    return;
  }
  const Line line = LineOf(s);
  const Value x = Turned(Wide(s.x[0]), line);
  Value g = Turned(Wide(s.g), line);
  if (line.exclusive) g = Advanced(g, line.axis, 0);
  s.dx[0] = CastTo(Turned(rule(x, g, line.axis), line), s.x[0].dtype());
}

void CumSumVjp(Vjp& s) {
  const Line line = LineOf(s);
  s.dx[0] = CumSum(s.g, line.axis, {.reverse = !line.reverse, .exclusive = line.exclusive});
}

// The derivative by x[j] is the product before j, times the sum over i >= j of g[i] and the product after j up to i,
// which is a recurrence from the end. Nothing is divided, so zeros are no special case.
void CumProdVjp(Vjp& s) {
  Differentiate(s, [](Value x, Value g, int64_t axis) {
    return CumProd(x, axis, {.exclusive = true}) * LinearRecurrence(Advanced(x, axis, 0), g, axis, true);
  });
}

// The first of equals wins: an element is the result until a better one comes, and gets the cotangents up to there.
template <bool largest>
void CumExtremumVjp(Vjp& s) {
  Differentiate(s, [](Value x, Value g, int64_t axis) {
    const Value before = largest ? CumMax(x, axis, {.exclusive = true}) : CumMin(x, axis, {.exclusive = true});
    const Value better = largest ? Greater(x, before) : Less(x, before);
    const Value first_nan = LogicalAnd(IsNan(x), LogicalNot(IsNan(before)));
    const Value position = Iota(*x.builder, DType::kI32, x.dims(), axis);
    const Value wins = LogicalOr(LogicalOr(better, first_nan), Equal(position, FullLike(position, 0)));
    const Value stays = Advanced(CastTo(LogicalNot(wins), x.dtype()), axis, 0);
    return Where(wins, LinearRecurrence(stays, g, axis, true), FullLike(x, 0));
  });
}

// With m the largest element so far and s the sum of exp(x - m) so far, y = m + log(s) and
//   dx[j] = exp(x[j] - m[j]) q[j],   q[j] = sum over i >= j of g[i] / s[i] exp(m[j] - m[i]),
// both recurrences. No exponent is positive, and none holds the rounding error of y: where m stays, the factor is 1.
// The identity holds whatever m is, so m is a constant to higher orders. Elements of -inf have no slope.
void LogCumSumExpVjp(Vjp& s) {
  Differentiate(s, [](Value x, Value g, int64_t axis) {
    const Value m = StopGradient(CumMax(x, axis)), none = FullLike(x, -kInf), zero = FullLike(x, 0);
    const auto exp_of = [&](Value of, Value minus) { return Exp(Where(Equal(of, none), none, of - minus)); };
    const Value before = Delayed(m, axis, Scalar::Float(m.dtype(), -kInf)), terms = exp_of(x, m);
    const Value sum = LinearRecurrence(exp_of(before, m), terms, axis);
    const Value share = g / Where(Equal(sum, zero), FullLike(x, 1), sum);
    return terms * LinearRecurrence(exp_of(m, Advanced(m, axis, kInf)), share, axis, true);
  });
}

// ---------------------------------------------------------------- linear_recurrence

absl::StatusOr<Types> RecurrenceTypes(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  return CumulativeTypes(call);
}

Value RecurrenceDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return s.x[1];
  const Line line{PositiveAxis(s.integer("axis"), s.x[0].rank()), s.flag("reverse")};
  const Values h = ScanAxis("affine", {Turned(Wide(s.x[0]), line), Turned(Wide(s.x[1]), line)}, line.axis);
  return CastTo(Turned(h[1], line), s.x[0].dtype());
}

// The cotangent of h[t] is g[t] + a[t + 1] times that of h[t + 1], the same recurrence from the other end.
void RecurrenceVjp(Vjp& s) {
  if (s.x[0].type().elements() == 0) {
    s.dx[0] = s.dx[1] = FullLike(s.x[0], 0);
    return;
  }
  const Line line{PositiveAxis(s.integer("axis"), s.x[0].rank()), s.flag("reverse")};
  const Value a = Advanced(Turned(Wide(s.x[0]), line), line.axis, 0), g = Turned(Wide(s.g), line);
  const Value h = Turned(Wide(s.y), line), d = LinearRecurrence(a, g, line.axis, true);
  const Value before = Delayed(h, line.axis, Scalar::Float(h.dtype(), 0));
  s.dx[0] = CastTo(Turned(d * before, line), s.x[0].dtype());
  s.dx[1] = CastTo(Turned(d, line), s.x[0].dtype());
}

using A = AttrKind;
using enum OpClass;
constexpr AttrList kLine = {{"axis", A::kInt, "-1"}, {"reverse", A::kBool, "false"}, {"exclusive", A::kBool, "false"}};
constexpr AttrList kDirected = {{"axis", A::kInt, "-1"}, {"reverse", A::kBool, "false"}};
constexpr AttrList kPrefix = {{"axis", A::kInt}, {"combiner", A::kString, "add", "add|affine|max|min|mul|softmax"}};
constexpr Sample kPlain = {.shapes = {"f32[2,5,3]"}, .attrs = "axis = 1"};
constexpr Sample kBackwards = {
    .shapes = {"f32[2,5,3]"}, .attrs = "axis = 1, reverse = true, exclusive = true", .lo = -2, .hi = 2};
constexpr Tolerance kLoose = {.f32 = 4e-6};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cummax", .cls = kComposite, .arity = 1, .attrs = kLine, .infer = CumulativeTypes, .decompose = CumulativeDecompose<"max">, .vjp = CumExtremumVjp<true>,
     .numpy = "cumulative(np.maximum, x0, axis, reverse, exclusive)", .sample = kPlain,
     .doc = "Largest element so far along an axis, NaN from the first NaN on; the first of equals gets the gradient. Exclusive: the lowest value first."},
    {.name = "cummin", .cls = kComposite, .arity = 1, .attrs = kLine, .infer = CumulativeTypes, .decompose = CumulativeDecompose<"min">, .vjp = CumExtremumVjp<false>,
     .numpy = "cumulative(np.minimum, x0, axis, reverse, exclusive)", .sample = kPlain,
     .doc = "Smallest element so far along an axis, NaN from the first NaN on; the first of equals gets the gradient. Exclusive: the highest value first."},
    {.name = "cumprod", .cls = kComposite, .arity = 1, .attrs = kLine, .infer = CumulativeTypes, .decompose = CumulativeDecompose<"mul">, .vjp = CumProdVjp,
     .tol = kLoose, .numpy = "cumulative(np.multiply, x0, axis, reverse, exclusive)", .sample = kBackwards,
     .doc = "Product so far along an axis; integers wrap. Exclusive: 1 first."},
    {.name = "cumsum", .cls = kComposite, .arity = 1, .attrs = kLine, .infer = CumulativeTypes, .decompose = CumulativeDecompose<"add">, .vjp = CumSumVjp,
     .numpy = "cumulative(np.add, x0, axis, reverse, exclusive)", .sample = kBackwards, .doc = "Sum so far along an axis; integers wrap. Exclusive: 0 first."},
    {.name = "linear_recurrence", .cls = kComposite, .arity = 2, .attrs = kDirected, .infer = RecurrenceTypes, .decompose = RecurrenceDecompose, .vjp = RecurrenceVjp,
     .tol = kLoose, .numpy = "linear_recurrence(x0, x1, axis, reverse)", .sample = {.shapes = {"f32[2,5,3]", "f32[2,5,3]"}, .attrs = "axis = 1"},
     .doc = "h[t] = x0[t] * h[t - 1] + x1[t] along an axis, with 0 before the first; a factor of 0 forgets also infinity and NaN."},
    {.name = "logcumsumexp", .cls = kComposite, .arity = 1, .attrs = kLine, .infer = CumulativeFloat, .decompose = LogCumSumExpDecompose, .vjp = LogCumSumExpVjp,
     .tol = kLoose, .numpy = "cumulative(np.logaddexp, x0, axis, reverse, exclusive)", .sample = {.shapes = {"f32[2,5,3]"}, .attrs = "axis = 1", .lo = -4, .hi = 4},
     .doc = "Logarithm of the sum of exponentials so far along an axis. Exclusive: -inf first."},
    {.name = "prefix_reduce", .cls = kReduce, .arity = {1, 2}, .attrs = kPrefix, .infer = PrefixTypes, .at = PrefixAt, .tol = kLoose,
     .numpy = "cumulative(np.add, x0, axis) + x1", .sample = {.shapes = {"f32[2,5,3]", "f32[2,1,3]"}, .attrs = "axis = 1", .differentiable = false},
     .doc = "Each element combined with all before it on its axis, one operand and result per component of the combiner; a combiner of one component may start from a carry, the second operand. Takes time quadratic in the extent: what cumsum and its kin are made of, block by block."},
};
// clang-format on
static_assert(CheckOps(kOps));

Value Cumulative(absl::string_view op, Value x, int64_t axis, CumulativeOptions o, Loc loc) {
  return Emit(op, {x}, {Attr{"axis", axis}, Attr{"reverse", o.reverse}, Attr{"exclusive", o.exclusive}}, loc);
}

}  // namespace

constinit const absl::Span<const OpDef> kCumulativeOps(kOps);

Value CumSum(Value x, int64_t axis, CumulativeOptions o, Loc loc) { return Cumulative("cumsum", x, axis, o, loc); }
Value CumProd(Value x, int64_t axis, CumulativeOptions o, Loc loc) { return Cumulative("cumprod", x, axis, o, loc); }
Value CumMax(Value x, int64_t axis, CumulativeOptions o, Loc loc) { return Cumulative("cummax", x, axis, o, loc); }
Value CumMin(Value x, int64_t axis, CumulativeOptions o, Loc loc) { return Cumulative("cummin", x, axis, o, loc); }
Value LogCumSumExp(Value x, int64_t axis, CumulativeOptions o, Loc loc) {
  return Cumulative("logcumsumexp", x, axis, o, loc);
}
Value LinearRecurrence(Value a, Value b, int64_t axis, bool reverse, Loc loc) {
  return Emit("linear_recurrence", {a, b}, {Attr{"axis", axis}, Attr{"reverse", reverse}}, loc);
}

}  // namespace agc
