#include "ir/combiner.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace agc {
namespace {

Scalar Zero(int, DType t) { return Scalar::Of(t, 0); }
Scalar One(int, DType t) { return Scalar::Of(t, 1); }
// The smallest and largest value: identity of max and min.
Scalar Lowest(int, DType t) {
  if (IsFloat(t)) return Scalar::Float(t, -std::numeric_limits<double>::infinity());
  if (!IsSigned(t)) return Scalar::Int(t, 0);
  return Scalar::Int(t, static_cast<int64_t>(~uint64_t{0} << (SizeOf(t) * 8 - 1)));
}
Scalar Highest(int, DType t) {
  if (IsFloat(t)) return Scalar::Float(t, std::numeric_limits<double>::infinity());
  if (!IsSigned(t)) return Scalar::Int(t, -1);
  return Scalar::Int(t, static_cast<int64_t>(~(~uint64_t{0} << (SizeOf(t) * 8 - 1))));
}
// Component 1 is the position of the winner, -1 where there is no element yet.
Scalar None(DType t) { return Scalar::Of(t, -1); }
Scalar ArgLowest(int c, DType t) { return c == 0 ? Lowest(c, t) : None(t); }
Scalar ArgHighest(int c, DType t) { return c == 0 ? Highest(c, t) : None(t); }

using In = absl::Span<const Expr>;
using Out = absl::Span<Expr>;
void MergeAdd(In a, In b, Out out) { out[0] = Alu("add", {a[0], b[0]}); }
void MergeMul(In a, In b, Out out) { out[0] = Alu("mul", {a[0], b[0]}); }
void MergeMax(In a, In b, Out out) { out[0] = Alu("max", {a[0], b[0]}); }
void MergeMin(In a, In b, Out out) { out[0] = Alu("min", {a[0], b[0]}); }
void MergeAnd(In a, In b, Out out) { out[0] = Alu("and", {a[0], b[0]}); }
void MergeOr(In a, In b, Out out) { out[0] = Alu("or", {a[0], b[0]}); }
// A later element wins only if it is strictly better, or the first NaN: ties and NaNs keep the first.
Expr Better(absl::string_view than, Expr later, Expr earlier) {
  const Expr better = Alu(than, {later, earlier});
  if (!IsFloat(later.dtype())) return better;
  return Or(better, And(Alu("isnan", {later}), Not(Alu("isnan", {earlier}))));
}
// Every element beats no element: it may equal the value that no element has.
void MergeArg(absl::string_view than, In a, In b, Out out) {
  const Expr none = Alu("lt", {a[1], Number(*a[1].pool, a[1].dtype(), 0)});
  const Expr wins = Or(none, Better(than, b[0], a[0]));
  out[0] = Select(wins, b[0], a[0]);
  out[1] = Select(wins, b[1], a[1]);
}
void MergeArgMax(In a, In b, Out out) { MergeArg("gt", a, b, out); }
void MergeArgMin(In a, In b, Out out) { MergeArg("lt", a, b, out); }
// The map h -> a * h + b after an earlier one: Blelloch (1990), "Prefix sums and their applications", section 1.4. A
// factor of 0 forgets what was before, also infinity and NaN.
Scalar NoChange(int c, DType t) { return Scalar::Of(t, c == 0 ? 1 : 0); }
void MergeAffine(In a, In b, Out out) {
  const Expr zero = Number(*a[0].pool, a[0].dtype(), 0);
  out[0] = a[0] * b[0];
  out[1] = b[1] + Select(Alu("eq", {b[0], zero}), zero, b[0] * a[1]);
}
// Running maximum and sum of exponentials relative to it: Milakov and Gimelshein (2018), algorithm 3.
void MergeSoftmax(In a, In b, Out out) {
  const Expr m = Alu("max", {a[0], b[0]});
  const Expr lowest = a[0].pool->Const(Lowest(0, a[0].dtype()));
  const auto scaled = [&](In x) {  // an empty side has sum 0 and must not make -inf - -inf
    return Select(Alu("eq", {x[0], lowest}), x[1], x[1] * Alu("exp", {x[0] - m}));
  };
  out[0] = m;
  out[1] = scaled(a) + scaled(b);
}
Scalar SoftmaxIdentity(int c, DType t) { return c == 0 ? Lowest(c, t) : Zero(c, t); }

constexpr Combiner kCombiners[] = {
    {.name = "add", .identity = Zero, .merge = MergeAdd, .doc = "Sum."},
    {.name = "affine",
     .components = 2,
     .identity = NoChange,
     .merge = MergeAffine,
     .doc = "Factor and summand of one affine map after another."},
    {.name = "and", .identity = One, .merge = MergeAnd, .doc = "All hold."},
    {.name = "argmax",
     .components = 2,
     .identity = ArgLowest,
     .merge = MergeArgMax,
     .doc = "Largest and its position; the first of equals, the first NaN."},
    {.name = "argmin",
     .components = 2,
     .identity = ArgHighest,
     .merge = MergeArgMin,
     .doc = "Smallest and its position; the first of equals, the first NaN."},
    {.name = "max", .identity = Lowest, .merge = MergeMax, .doc = "Largest; NaN if any is."},
    {.name = "min", .identity = Highest, .merge = MergeMin, .doc = "Smallest; NaN if any is."},
    {.name = "mul", .identity = One, .merge = MergeMul, .doc = "Product."},
    {.name = "or", .identity = Zero, .merge = MergeOr, .doc = "Any holds."},
    {.name = "softmax",
     .components = 2,
     .identity = SoftmaxIdentity,
     .merge = MergeSoftmax,
     .doc = "Maximum and sum of exponentials relative to it."},
};

}  // namespace

absl::Span<const Combiner> Combiners() { return kCombiners; }

const Combiner* FindCombiner(absl::string_view name) {
  const auto* it =
      std::find_if(std::begin(kCombiners), std::end(kCombiners), [&](const Combiner& c) { return c.name == name; });
  return it != std::end(kCombiners) ? it : nullptr;
}

DType AccumulatorOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return DType::kF32;
    case DType::kI8:
    case DType::kI16:
    case DType::kU8:
    case DType::kU16:
    case DType::kBool:
      return DType::kI32;
    default:
      return dtype;
  }
}

}  // namespace agc
