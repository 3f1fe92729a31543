// Losses of margins and distances, defined by other ops and computed in f32 for f16 and bf16. Their slope is 0 where a
// margin is just kept.
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/math_rules.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- elementwise

Value HingeDecompose(Rule& s) { return ReduceLoss(s, Relu(s.number("margin") - Wide(s.x[0]) * Wide(s.x[1]))); }

Value HingeEmbeddingDecompose(Rule& s) {
  const Value x = Wide(s.x[0]), y = Wide(s.x[1]);
  return ReduceLoss(s, Where(Greater(y, FullLike(y, 0)), x, Relu(s.number("margin") - x)));
}

Value MarginRankingDecompose(Rule& s) {
  const Value first = Wide(s.x[0]) - Wide(s.x[1]);
  return ReduceLoss(s, Relu(s.number("margin") - Wide(s.x[2]) * first));
}

// ---------------------------------------------------------------- multi_margin

absl::Status CheckPower(const OpCall& call) {
  const int64_t p = call.integer("p");
  if (p == 1 || p == 2) return absl::OkStatus();
  return call.Error(absl::StrCat("p is ", p, ", expected 1 or 2"));
}

absl::StatusOr<Types> MultiMarginType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 2));
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, 1));
  AGC_RETURN_IF_ERROR(CheckPower(call));
  const TensorType& x = call.type(0);
  const int64_t rows = x.dims[0], labels = call.type(1).dims[0];
  if (rows != labels) {
    return call.Error(absl::StrCat("scores have ", rows, " rows and there are ", labels, " labels"));
  }
  if (x.dims[1] == 0) return call.Error(absl::StrCat("scores are ", ToString(x), ", which has no class"));
  return LossType(call, {x.dtype, {rows}});
}

// Weston and Watkins (1999). A label that is no class adds 0.
Value MultiMarginDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return Full(s.builder, s.op.type(), 0);
  const Value x = Wide(s.x[0]), zero = FullLike(x, 0);
  const Value hit = OneHot(s.x[1], x.dim(1), DType::kBool);
  const Value mine = ReduceSum(Where(hit, x, zero), {1}, true);
  const Value known = ReduceSum(CastTo(hit, x.dtype()), {1}, true);
  Value each = Relu(s.number("margin") + x - mine);
  if (s.integer("p") == 2) each = Square(each);
  each = Where(hit, zero, each) * known;
  return ReduceLoss(s, ReduceSum(each, {1}) / static_cast<double>(x.dim(1)));
}

// ---------------------------------------------------------------- similarity and distance

absl::StatusOr<Types> CosineType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  const TensorType& x = call.type(0);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const double epsilon = call.number("epsilon");
  if (!(epsilon > 0)) return call.Error(absl::StrCat("epsilon is ", epsilon, ", expected more than 0"));
  return Types(TensorType{x.dtype, ReducedDims(x.dims, {PositiveAxis(call.integer("axis"), x.rank())}, false)});
}

Value CosineDecompose(Rule& s) {
  const Value a = Wide(s.x[0]), b = Wide(s.x[1]);
  const Ints axes = {PositiveAxis(s.integer("axis"), a.rank())};
  const auto norm = [&](Value x) {
    const Value root = Sqrt(ReduceSum(Square(x), axes));
    return Maximum(root, FullLike(root, s.number("epsilon")));
  };
  return CastTo(ReduceSum(a * b, axes) / norm(a) / norm(b), s.x[0].dtype());
}

// Rows along the last axis: [..., size] and, for the third operand where there is a `sign`, [...].
absl::StatusOr<Types> CosineEmbeddingType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType& a = call.type(0);
  const TensorType row{a.dtype, {a.dims.begin(), a.dims.end() - 1}};
  if (call.type(1) != a || call.type(2) != row) {
    return call.Error(absl::StrCat("operands are ", ToString(a), ", ", ToString(call.type(1)), " and ",
                                   ToString(call.type(2)), ", expected two of one type and ", ToString(row)));
  }
  return LossType(call, row);
}

Value CosineEmbeddingDecompose(Rule& s) {
  const Value y = Wide(s.x[2]), cosine = CosineSimilarity(Wide(s.x[0]), Wide(s.x[1]));
  return ReduceLoss(s, Where(Greater(y, FullLike(y, 0)), 1.0 - cosine, Relu(cosine - s.number("margin"))));
}

absl::StatusOr<Types> TripletType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSame(call));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  AGC_RETURN_IF_ERROR(CheckPower(call));
  const Dims& dims = call.type(0).dims;
  return LossType(call, {call.type(0).dtype, {dims.begin(), dims.end() - 1}});
}

// Balntas and others (2016); epsilon is added to every difference, as torch does.
Value TripletDecompose(Rule& s) {
  const Value anchor = Wide(s.x[0]);
  const auto distance = [&](Value x) {
    const Value d = anchor - x + s.number("epsilon");
    return s.integer("p") == 1 ? ReduceSum(Abs(d), {-1}) : RootOf(ReduceSum(Square(d), {-1}));
  };
  return ReduceLoss(s, Relu(distance(Wide(s.x[1])) - distance(Wide(s.x[2])) + s.number("margin")));
}

constexpr AttrDef kMargin1 = {"margin", kFloat, "1"}, kMargin0 = {"margin", kFloat, "0"};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "cosine_embedding", .cls = OpClass::kComposite, .arity = 3, .attrs = {kMargin0, kReduction}, .infer = CosineEmbeddingType,
     .decompose = CosineEmbeddingDecompose, .tol = {.f32 = 4e-6}, .numpy = "cosine_embedding(x0, x1, x2, margin=margin, reduction=reduction)",
     .sample = {.shapes = {"f32[3,4]", "f32[3,4]", "f32[3]"}, .attrs = "margin = -0.5"},
     .doc = "1 - cosine of rows of the last axis where y is positive, else by how much the cosine exceeds the margin."},
    {.name = "cosine_similarity", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"axis", kInt, "-1"}, {"epsilon", kFloat, "1e-08"}},
     .infer = CosineType, .decompose = CosineDecompose, .tol = {.f32 = 4e-6}, .numpy = "cosine_similarity(x0, x1, axis=axis, epsilon=epsilon)",
     .sample = {.shapes = {"f32[3,4]", "f32[3,4]"}},
     .doc = "Sum of products over an axis, which goes, divided by both norms, each epsilon at least."},
    {.name = "hinge", .cls = OpClass::kComposite, .arity = 2, .attrs = {kMargin1, kReduction}, .infer = ElementwiseLoss, .decompose = HingeDecompose,
     .numpy = "reduce_loss(np.maximum(margin - x0 * x1, 0), reduction)", .doc = "max(0, margin - x y) of x and y, which is 1 or -1."},
    {.name = "hinge_embedding", .cls = OpClass::kComposite, .arity = 2, .attrs = {kMargin1, kReduction}, .infer = ElementwiseLoss,
     .decompose = HingeEmbeddingDecompose, .numpy = "reduce_loss(np.where(x1 > 0, x0, np.maximum(margin - x0, 0)), reduction)",
     .sample = {.lo = -2, .hi = 2}, .doc = "x where y is positive, else max(0, margin - x)."},
    {.name = "margin_ranking", .cls = OpClass::kComposite, .arity = 3, .attrs = {kMargin0, kReduction}, .infer = ElementwiseLoss,
     .decompose = MarginRankingDecompose, .numpy = "reduce_loss(np.maximum(margin - x2 * (x0 - x1), 0), reduction)", .sample = {.attrs = "margin = 0.5"},
     .doc = "max(0, margin - y (a - b)) of a, b and y, which is 1 where a should be the larger, else -1."},
    {.name = "multi_margin", .cls = OpClass::kComposite, .arity = 2, .attrs = {{"p", kInt, "1"}, kMargin1, kReduction}, .infer = MultiMarginType,
     .decompose = MultiMarginDecompose, .tol = {.f32 = 4e-6}, .numpy = "multi_margin(x0, x1, p=p, margin=margin, reduction=reduction)",
     .sample = {.shapes = {"f32[3,4]", "i32[3]"}, .attrs = "p = 2", .lo = 0, .hi = 3},
     .doc = "Mean over the classes but the label of max(0, margin - x[label] + x)^p, divided by the number of all classes; p is 1 or 2."},
    {.name = "triplet_margin", .cls = OpClass::kComposite, .arity = 3, .attrs = {kMargin1, {"p", kInt, "2"}, {"epsilon", kFloat, "1e-06"}, kReduction},
     .infer = TripletType, .decompose = TripletDecompose, .tol = {.f32 = 4e-6},
     .numpy = "triplet_margin(x0, x1, x2, margin=margin, p=p, epsilon=epsilon, reduction=reduction)",
     .sample = {.shapes = {"f32[3,4]", "f32[3,4]", "f32[3,4]"}},
     .doc = "max(0, distance of anchor and positive - distance of anchor and negative + margin) over rows of the last axis; p is 1 or 2."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kMarginLossOps(kOps);

Value Hinge(Value x, Value y, double margin, Reduction r, Loc loc) {
  return Emit("hinge", {x, y}, {Attr{"margin", margin}, ReductionAttr(r)}, loc);
}
Value HingeEmbedding(Value x, Value y, double margin, Reduction r, Loc loc) {
  return Emit("hinge_embedding", {x, y}, {Attr{"margin", margin}, ReductionAttr(r)}, loc);
}
Value MarginRanking(Value a, Value b, Value y, double margin, Reduction r, Loc loc) {
  return Emit("margin_ranking", {a, b, y}, {Attr{"margin", margin}, ReductionAttr(r)}, loc);
}
Value MultiMargin(Value x, Value labels, int64_t p, double margin, Reduction r, Loc loc) {
  return Emit("multi_margin", {x, labels}, {Attr{"p", p}, Attr{"margin", margin}, ReductionAttr(r)}, loc);
}
Value CosineSimilarity(Value a, Value b, int64_t axis, double epsilon, Loc loc) {
  return Emit("cosine_similarity", {a, b}, {Attr{"axis", axis}, Attr{"epsilon", epsilon}}, loc);
}
Value CosineEmbedding(Value a, Value b, Value y, double margin, Reduction r, Loc loc) {
  return Emit("cosine_embedding", {a, b, y}, {Attr{"margin", margin}, ReductionAttr(r)}, loc);
}
Value TripletMargin(Value anchor, Value positive, Value negative, TripletMarginOptions o, Loc loc) {
  return Emit("triplet_margin", {anchor, positive, negative},
              {Attr{"margin", o.margin}, Attr{"p", o.p}, Attr{"epsilon", o.epsilon}, ReductionAttr(o.reduction)}, loc);
}

}  // namespace agc
