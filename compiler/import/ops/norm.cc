// Normalisation, dropout, attention and its position encoding.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/random.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_math.h"
#include "ir/build_nn.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

// Statistics are the given ones; in training those of the batch, and the running ones are updated.
void BatchNormalization(Call& c) {
  const Value x = c.in(0), scale = c.in(1), shift = c.in(2), mean = c.in(3), variance = c.in(4);
  const double epsilon = c.number("epsilon", 1e-5), momentum = c.number("momentum", 0.9);
  bool train = c.flag("training_mode", false);
  if (c.opset() < 7) {
    c.ignore("consumed_inputs");
    train = !c.flag("is_test", false);
    if (train && !c.wants(1)) train = false;  // files of that time leave is_test out
  }
  if (c.opset() < 9 && !c.flag("spatial", true))
    return void(c.Fail("spatial = 0: statistics per element are not supported"));
  if (c.opset() < 14 && c.wants(1)) return void(c.Fail("statistics as results: that needs training_mode of opset 14"));
  if (!c.ok()) return;
  if (!train) return c.out(BatchNorm(x, mean, variance, scale, shift, epsilon));
  const BatchNormResult r = BatchNormTrain(x, scale, shift, epsilon);
  const auto running = [&](Value old, Value now) { return old * momentum + CastTo(now, old.dtype()) * (1 - momentum); };
  c.out(r.y, 0);
  if (c.wants(1)) c.out(running(mean, r.mean), 1);
  if (c.wants(2)) c.out(running(variance, r.variance), 2);
}

void InstanceNormalization(Call& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  const Value x = c.in(0), scale = c.in(1), shift = c.in(2);
  c.out(InstanceNorm(x, scale, shift, c.number("epsilon", 1e-5)));
}

// Scale and shift are per group before opset 21, per channel from there on.
void GroupNormalization(Call& c) {
  const Value x = c.in(0);
  Value scale = c.in(1), shift = c.in(2);
  const int64_t groups = c.integer("num_groups");
  const double epsilon = c.number("epsilon", 1e-5);
  c.ignore("stash_type");  // statistics are never kept in less than f32
  if (!c.ok()) return;
  if (groups < 1 || x.dim(1) % groups != 0)
    return void(c.Fail(absl::StrCat(groups, " groups of ", x.dim(1), " channels")));
  if (c.opset() < 21) {
    scale = RepeatInterleave(scale, x.dim(1) / groups, 0);
    shift = RepeatInterleave(shift, x.dim(1) / groups, 0);
  }
  c.out(GroupNorm(x, scale, shift, groups, epsilon));
}

Ints AxesFrom(int64_t axis, int64_t rank) {
  Ints axes;
  for (int64_t k = axis; k < rank; ++k) axes.push_back(k);
  return axes;
}

// The first axis that is normalised; -1 after an error.
int64_t FirstAxis(Call& c, Value x) {
  const int64_t axis = c.integer("axis", -1);
  const int64_t first = axis < 0 ? axis + x.rank() : axis;
  if (c.ok() && first >= 0 && first < x.rank()) return first;
  if (c.ok()) c.Fail(absl::StrCat("axis ", axis, " of ", ToString(x.type())));
  return -1;
}

// Whether `scale` has exactly the axes that are normalised; others broadcast.
bool Exact(Value x, Value scale, int64_t first) {
  return std::equal(scale.dims().begin(), scale.dims().end(), x.dims().begin() + first, x.dims().end());
}

Value InF32(Value x) { return x.dtype() == DType::kF16 || x.dtype() == DType::kBF16 ? CastTo(x, DType::kF32) : x; }

void LayerNormalization(Call& c) {
  const Value x = c.in(0), scale = c.in(1), shift = c.opt(2);
  const double epsilon = c.number("epsilon", 1e-5);
  c.ignore("stash_type");
  const int64_t first = FirstAxis(c, x);
  if (!c.ok()) return;
  const Ints axes = AxesFrom(first, x.rank());
  if (Exact(x, scale, first) && (!shift.valid() || shift.dims() == scale.dims())) {
    c.out(shift.valid() ? LayerNorm(x, scale, shift, epsilon) : LayerNorm(x, scale, epsilon), 0);
  } else {
    const Value y = Mul(MeanVarianceNorm(x, axes, epsilon), scale);
    c.out(shift.valid() ? Add(y, shift) : y, 0);
  }
  const Value wide = InF32(x);
  if (c.wants(1)) c.out(ReduceMean(wide, axes, true), 1);
  if (c.wants(2)) c.out(Rsqrt(ReduceVar(wide, axes, 0, true) + epsilon), 2);
}

void RmsNormalization(Call& c) {
  const Value x = c.in(0), scale = c.in(1);
  const double epsilon = c.number("epsilon", 1e-5);
  c.ignore("stash_type");
  const int64_t first = FirstAxis(c, x);
  if (!c.ok()) return;
  if (Exact(x, scale, first)) return c.out(RmsNorm(x, scale, epsilon));
  const Value wide = InF32(x);
  const Value y = Mul(wide, Rsqrt(ReduceMean(Square(wide), AxesFrom(first, x.rank()), true) + epsilon));
  c.out(Mul(CastTo(y, x.dtype()), scale));
}

void LrnOp(Call& c) {
  const LrnOptions o{.size = c.integer("size"),
                     .alpha = c.number("alpha", 1e-4),
                     .beta = c.number("beta", 0.75),
                     .bias = c.number("bias", 1)};
  c.out(Lrn(c.in(0), o));
}

void LpNormalization(Call& c) {
  const int64_t axis = c.integer("axis", -1), p = c.integer("p", 2);
  c.out(LpNormalize(c.in(0), axis, p, 0));
}

// (x - mean) / (deviation + 1e-9), as the operator's function has it.
void MeanVarianceNormalization(Call& c) {
  const Value x = c.in(0);
  const Ints axes = c.ints("axes", Ints{0, 2, 3});
  if (!c.ok()) return;
  const Value centred = Sub(x, ReduceMean(x, axes, true));
  c.out(DivOf(centred, Sqrt(ReduceMean(Square(centred), axes, true)) + 1e-9));
}

// Without training the operand; with it, elements are dropped with probability `ratio` and the others grow.
void DropoutOp(Call& c) {
  const Value x = c.in(0);
  double ratio = 0.5;
  bool train = false;
  if (c.opset() < 12) {
    ratio = c.number("ratio", 0.5);
    if (c.opset() < 7) c.ignore("is_test");  // files of that time leave it out
    if (c.opset() < 6) c.ignore("consumed_inputs");
  } else {
    if (c.has(1)) ratio = c.number(1, "ratio");
    if (c.has(2)) train = c.number(2, "training_mode") != 0;
  }
  c.ignore("seed");
  if (!c.ok()) return;
  const Dims dims = x.dims();
  if (!train || ratio == 0) {
    c.out(x, 0);
    c.out(Full(c.builder(), {DType::kBool, dims}, 1), 1);
    return;
  }
  const Value keep = GreaterEqual(UniformDraw(c, dims), Full(c.builder(), {DType::kF32, dims}, ratio));
  c.out(ratio >= 1 ? FullLike(x, 0) : Where(keep, x * (1 / (1 - ratio)), FullLike(x, 0)), 0);
  c.out(keep, 1);
}

// clang-format off
constexpr OpRow kRows[] = {
    {"BatchNormalization", 1, BatchNormalization, "spatial = 0; statistics as results before opset 14"}, {"Dropout", 1, DropoutOp},
    {"GroupNormalization", 18, GroupNormalization}, {"InstanceNormalization", 1, InstanceNormalization}, {"LRN", 1, LrnOp},
    {"LayerNormalization", 1, LayerNormalization}, {"LpNormalization", 1, LpNormalization},
    {"MeanVarianceNormalization", 9, MeanVarianceNormalization}, {"RMSNormalization", 23, RmsNormalization},
    {"SimplifiedLayerNormalization", 1, RmsNormalization},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kNormOps(kRows);

}  // namespace agc::onnx
