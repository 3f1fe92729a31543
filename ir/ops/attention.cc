// Attention and the softmax it needs, computed in f32 for f16 and bf16. Only the softmax has a gradient rule of its
// own; everything else differentiates its definition.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_nn.h"
#include "ir/ops/infer.h"
#include "ir/ops/nn.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

absl::Status CheckBroadcasts(const OpCall& call, int i, absl::string_view what, const Dims& to) {
  Dims common;
  if (CommonDims(call.type(i).dims, to, common) && common == to) return absl::OkStatus();
  return call.Error(absl::StrCat(what, " is ", ToString(call.type(i)), ", which does not broadcast to ", ToString(to)));
}

// ---------------------------------------------------------------- masked_softmax

absl::StatusOr<Types> MaskedSoftmaxType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), call.type(0).rank()));
  if (call.arity() == 2) {
    AGC_RETURN_IF_ERROR(CheckDType(call, 1, DType::kBool));
    AGC_RETURN_IF_ERROR(CheckBroadcasts(call, 1, "the mask", call.type(0).dims));
  }
  return Types(call.type(0));
}

Ints AxisOf(const Rule& s) { return {PositiveAxis(s.integer("axis"), s.x[0].rank())}; }

// A row is empty where its maximum is -inf, which is exact; a sum of exponentials need not be 0 on every device.
Value MaskedSoftmaxDecompose(Rule& s) {
  if (s.x[0].type().elements() == 0) return FullLike(s.x[0], 0);
  Value x = Wide(s.x[0]);
  const Value lowest = FullLike(x, -std::numeric_limits<double>::infinity());
  if (s.x.size() == 2) x = Where(s.x[1], x, lowest);
  const Value largest = ReduceMax(x, AxisOf(s), true);
  const Value empty = Equal(largest, FullLike(largest, -std::numeric_limits<double>::infinity()));
  const Value e = Exp(x - Where(empty, FullLike(largest, 0), largest));
  return CastTo(Where(empty, FullLike(x, 0), e / ReduceSum(e, AxisOf(s), true)), s.x[0].dtype());
}

void MaskedSoftmaxVjp(Vjp& s) {
  const Value y = Wide(s.y), g = Wide(s.g);
  s.dx[0] = CastTo(y * (g - ReduceSum(g * y, AxisOf(s), true)), s.g.dtype());
}

// ---------------------------------------------------------------- attention

// Shapes of queries [..., heads, queries, depth], keys [..., kv_heads, keys, depth] and values [..., kv_heads, keys,
// out]; of rank 2: one head.
struct Heads {
  bool flat = false;  // rank 2
  Dims leading = {};
  int64_t heads = 1, kv_heads = 1, queries = 0, keys = 0, depth = 0, out = 0;
  Dims With(Dims last) const {  // `last` is heads, rows, columns
    if (flat) last.erase(last.begin());
    last.insert(last.begin(), leading.begin(), leading.end());
    return last;
  }
  Dims Scores() const { return With({heads, queries, keys}); }
};

Heads HeadsOf(const TensorType& q, const TensorType& k, const TensorType& v) {
  const size_t rank = q.dims.size();
  Heads h{.flat = rank == 2,
          .queries = q.dims[rank - 2],
          .keys = k.dims[rank - 2],
          .depth = q.dims[rank - 1],
          .out = v.dims[rank - 1]};
  if (h.flat) return h;
  h.leading.assign(q.dims.begin(), q.dims.end() - 3);
  h.heads = q.dims[rank - 3];
  h.kv_heads = k.dims[rank - 3];
  return h;
}

absl::Status CheckHeads(const OpCall& call) {
  const TensorType &q = call.type(0), &k = call.type(1), &v = call.type(2);
  const auto differ = [&](absl::string_view what) {
    return call.Error(absl::StrCat(what, " (", ToString(q), ", ", ToString(k), " and ", ToString(v), ")"));
  };
  const Heads h = HeadsOf(q, k, v);
  if (k.dims.back() != h.depth) return differ("queries and keys differ in the last dimension");
  if (v.dims[v.dims.size() - 2] != h.keys) return differ("there is not one value for each key");
  if (h.flat) return absl::OkStatus();
  if (Dims(k.dims.begin(), k.dims.end() - 3) != h.leading || Dims(v.dims.begin(), v.dims.end() - 3) != h.leading ||
      v.dims[v.dims.size() - 3] != h.kv_heads) {
    return differ("leading dimensions differ");
  }
  if (h.heads != h.kv_heads && (h.kv_heads == 0 || h.heads % h.kv_heads != 0)) {
    return call.Error(
        absl::StrCat("there are ", h.heads, " heads of queries for ", h.kv_heads, " of keys, expected a multiple"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> AttentionType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 2));
  for (int i : {1, 2}) {
    AGC_RETURN_IF_ERROR(CheckDType(call, i, call.type(0).dtype));
    AGC_RETURN_IF_ERROR(CheckRank(call, i, call.type(0).rank()));
  }
  AGC_RETURN_IF_ERROR(CheckHeads(call));
  AGC_RETURN_IF_ERROR(CheckAtLeastZero(call, "softcap"));
  const Heads h = HeadsOf(call.type(0), call.type(1), call.type(2));
  if (call.arity() == 4) {
    if (call.type(3).dtype != DType::kBool) AGC_RETURN_IF_ERROR(CheckParamDType(call, 3, "the mask"));
    AGC_RETURN_IF_ERROR(CheckBroadcasts(call, 3, "the mask", h.Scores()));
  }
  const TensorType type{call.type(0).dtype, h.With({h.heads, h.queries, h.out})};
  AGC_RETURN_IF_ERROR(CheckDims(call, "the scores", type.dtype, h.Scores()));
  return Types(type);
}

// Which keys each query sees, [queries, keys]: those up to its own position, counted from the start or from the end.
Value CausalMask(Builder& b, const Heads& h, bool from_end) {
  const Value query = Iota(b, DType::kI32, {h.queries, h.keys}, 0), key = Iota(b, DType::kI32, {h.queries, h.keys}, 1);
  const int64_t ahead = from_end ? h.keys - h.queries : 0;
  return LessEqual(key, query + FullLike(query, static_cast<double>(ahead)));
}

// Vaswani and others (2017), "Attention is all you need", equation 1. Heads that share keys are rows of one product
// (Ainslie and others 2023, "GQA").
Value AttentionDecompose(Rule& s) {
  const Heads h = HeadsOf(s.x[0].type(), s.x[1].type(), s.x[2].type());
  if (s.op.type().elements() == 0 || h.keys == 0) return Full(s.builder, s.op.type(), 0);
  const std::string causal = s.text("causal");
  const double given = s.number("scale"), softcap = s.number("softcap");
  const double scale = given != 0 ? given : h.depth == 0 ? 1 : 1 / std::sqrt(static_cast<double>(h.depth));
  const int64_t rows = h.heads / h.kv_heads * h.queries;
  const std::vector<Value> x = WideAll(s.x);
  const Value q = Reshape(x[0], h.With({h.kv_heads, rows, h.depth}));
  Value scores = Reshape(Matmul(q, T(x[1])), h.Scores()) * scale;
  if (softcap != 0) scores = Tanh(scores / softcap) * softcap;
  Value seen;
  if (causal != "none") seen = CausalMask(s.builder, h, causal == "lower_right");
  if (x.size() == 4 && x[3].dtype() == DType::kBool) seen = seen.valid() ? LogicalAnd(x[3], seen) : x[3];
  if (x.size() == 4 && x[3].dtype() != DType::kBool) scores = scores + x[3];
  const Value weights = Reshape(MaskedSoftmax(scores, seen), h.With({h.kv_heads, rows, h.keys}));
  return CastTo(Reshape(Matmul(weights, x[2]), s.op.type().dims), s.op.type().dtype);
}

constexpr Tolerance kTolerance = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "attention", .cls = OpClass::kComposite, .arity = {3, 4},
     .attrs = {{"causal", kString, "none", "none|upper_left|lower_right"}, {"scale", kFloat, "0"}, {"softcap", kFloat, "0"}},
     .infer = AttentionType, .decompose = AttentionDecompose, .tol = kTolerance,
     .numpy = "attention(x0, x1, x2, x3, causal=causal, scale=scale, softcap=softcap)",
     .sample = {.shapes = {"f32[2,4,3,5]", "f32[2,2,6,5]", "f32[2,2,6,2]", "f32[3,6]"}, .attrs = "causal = \"lower_right\""},
     .doc = "softmax(q k' * scale) v of queries [..., heads, queries, depth], keys and values, whose heads divide those of the queries. A fourth operand is "
            "a mask: bool, true where a key is seen, or added to the scores. scale 0 stands for 1 / sqrt(depth); softcap c > 0 makes scores c tanh(scores / c). A "
            "query that sees no key gives 0."},
    {.name = "masked_softmax", .cls = OpClass::kComposite, .arity = {1, 2}, .attrs = {{"axis", kInt, "-1"}}, .infer = MaskedSoftmaxType,
     .decompose = MaskedSoftmaxDecompose, .vjp = MaskedSoftmaxVjp, .tol = {.f32 = 4e-6}, .numpy = "masked_softmax(x0, x1, axis=axis)",
     .sample = {.shapes = {"f32[3,4]", "bool[3,4]"}, .lo = -4, .hi = 4},
     .doc = "softmax along one axis over the elements where the mask holds, 0 elsewhere; a row where it holds nowhere, or that is all -inf, gives 0."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kAttentionOps(kOps);

Value MaskedSoftmax(Value x, Value mask, int64_t axis, Loc loc) {
  if (mask.builder == nullptr) return Emit("masked_softmax", {x}, {Attr{"axis", axis}}, loc);
  return Emit("masked_softmax", {x, mask}, {Attr{"axis", axis}}, loc);
}

Value Attention(Value q, Value k, Value v, AttentionOptions o, Loc loc) {
  constexpr absl::string_view kNames[] = {"none", "upper_left", "lower_right"};
  std::vector<Value> operands = {q, k, v};
  if (o.mask.builder != nullptr) operands.push_back(o.mask);
  return Emit("attention", operands,
              {Attr{"causal", std::string(kNames[static_cast<int>(o.causal)])}, Attr{"scale", o.scale},
               Attr{"softcap", o.softcap}},
              loc);
}

}  // namespace agc
