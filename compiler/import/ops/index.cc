// Reads and writes at computed positions, sorting, and what selects elements by their values.
#include <algorithm>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "compiler/import/ops/tables.h"
#include "ir/build.h"
#include "ir/build_index.h"
#include "ir/build_math.h"
#include "ir/build_shape.h"

namespace agc::onnx {
namespace {

constexpr ScatterMode kModes[] = {ScatterMode::kSet, ScatterMode::kAdd, ScatterMode::kMul, ScatterMode::kMin,
                                  ScatterMode::kMax};

ScatterMode ModeOf(Call& c) { return kModes[c.choice("reduction", {"none", "add", "mul", "min", "max"}, "none")]; }

void Gather(Call& c) {
  const Value x = c.in(0), indices = c.in(1);
  c.out(Take(x, indices, c.integer("axis", 0)));
}
void GatherElements(Call& c) {
  const Value x = c.in(0), indices = c.in(1);
  c.out(TakeAlongAxis(x, indices, c.integer("axis", 0)));
}
void GatherNdOp(Call& c) {
  const Value x = c.in(0), indices = c.in(1);
  c.out(GatherNd(x, indices, c.integer("batch_dims", 0)));
}
void ScatterElementsOp(Call& c) {
  const Value x = c.in(0), indices = c.in(1), updates = c.in(2);
  const ScatterMode mode = c.opset() >= 16 ? ModeOf(c) : ScatterMode::kSet;
  c.out(ScatterElements(x, indices, updates, c.integer("axis", 0), mode));
}
void ScatterNdOp(Call& c) {
  const Value x = c.in(0), indices = c.in(1), updates = c.in(2);
  c.out(ScatterNd(x, indices, updates, c.opset() >= 16 ? ModeOf(c) : ScatterMode::kSet));
}

void TopKOp(Call& c) {
  const Value x = c.in(0);
  const int64_t k = c.opset() < 10 ? c.integer("k") : c.integer(1, "k");
  const int64_t axis = c.integer("axis", -1);
  const bool largest = c.flag("largest", true);
  c.flag("sorted", true);  // in order is one of the orders that unsorted allows
  if (!c.ok()) return;
  const TopKResult top = TopK(x, k, axis, largest);
  c.out(top.values, 0);
  c.out(CastTo(top.indices, DType::kI64), 1);
}

// Where the known operand is not 0, as [rank, n].
void NonZeroOp(Call& c) {
  const HostTensor x = c.constant(0, "operand X, which decides how many results there are,");
  if (!c.ok()) return;
  std::vector<int64_t> at;
  for (int64_t i = 0; i < x.type.elements(); ++i) {
    if (x.at(i).AsDouble() != 0) at.push_back(i);
  }
  const auto n = static_cast<int64_t>(at.size());
  const int64_t rank = std::max(x.type.rank(), 1);
  HostTensor t = HostTensor::Zeros({DType::kI64, {rank, n}});
  for (int64_t k = 0; k < n; ++k) {
    int64_t left = at[static_cast<size_t>(k)];
    for (int64_t axis = rank - 1; axis >= 0; --axis) {
      const int64_t extent = x.type.rank() == 0 ? 1 : x.type.dims[static_cast<size_t>(axis)];
      t.set(axis * n + k, Scalar::Int(DType::kI64, left % extent));
      left /= extent;
    }
  }
  c.out(c.Constant(t));
}

void Compress(Call& c) {
  const Value x = c.in(0);
  const HostTensor condition = c.constant(1, "condition, which decides how many results there are,");
  if (!c.ok()) return;
  std::vector<int64_t> at;
  for (int64_t i = 0; i < condition.type.elements(); ++i) {
    if (condition.at(i).i() != 0) at.push_back(i);
  }
  const bool flat = !c.has_attr("axis");
  const Value from = flat ? Reshape(x, {x.type().elements()}) : x;
  c.out(Take(from, c.Constant(DType::kI64, at), flat ? 0 : c.integer("axis")));
}

// ---------------------------------------------------------------- Unique

// Slices along `axis` of a known tensor, compared element by element.
struct Slices {
  const HostTensor& x;
  int64_t outer = 1, n = 1, inner = 1;
  double at(int64_t slice, int64_t k) const {
    const int64_t row = k / inner, column = k % inner;
    return x.at((row * n + slice) * inner + column).AsDouble();
  }
  bool Less(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < outer * inner; ++k) {
      if (at(a, k) != at(b, k)) return at(a, k) < at(b, k);
    }
    return false;
  }
};

// How many there are follows from the values, which have to be known.
void UniqueOp(Call& c) {
  const HostTensor x = c.constant(0, "operand X, which decides how many results there are,");
  const bool sorted = c.flag("sorted", true), flat = !c.has_attr("axis");
  int64_t axis = flat ? 0 : c.integer("axis");
  if (!c.ok()) return;
  axis += axis < 0 ? x.type.rank() : 0;
  if (!flat && (axis < 0 || axis >= x.type.rank()))
    return void(c.Fail(absl::StrCat("axis ", axis, " of rank ", x.type.rank())));
  Slices s{x, 1, x.type.elements(), 1};
  if (!flat) {
    s.n = x.type.dims[static_cast<size_t>(axis)];
    for (int64_t k = 0; k < x.type.rank(); ++k) {
      if (k != axis) (k < axis ? s.outer : s.inner) *= x.type.dims[static_cast<size_t>(k)];
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(s.n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return s.Less(a, b); });
  std::vector<int64_t> first, counts, inverse(order.size());
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t k : order) {
    if (groups.empty() || s.Less(groups.back()[0], k)) groups.emplace_back();
    groups.back().push_back(k);
  }
  if (!sorted) std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g][0]);
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (const int64_t k : groups[g]) inverse[static_cast<size_t>(k)] = static_cast<int64_t>(g);
  }
  const Value from = flat ? Reshape(c.in(0), {s.n}) : c.in(0);
  c.out(Take(from, c.Constant(DType::kI64, first), axis), 0);
  c.out(c.Constant(DType::kI64, first), 1);
  c.out(c.Constant(DType::kI64, inverse), 2);
  c.out(c.Constant(DType::kI64, counts), 3);
}

// ---------------------------------------------------------------- NonMaxSuppression

struct Box {
  double y1 = 0, x1 = 0, y2 = 0, x2 = 0;
};

Box BoxAt(const HostTensor& boxes, int64_t row, bool center) {
  double v[4];
  for (int64_t k = 0; k < 4; ++k) v[k] = boxes.at(row * 4 + k).AsDouble();
  if (center) return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

double Overlap(const Box& a, const Box& b) {
  const double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double both = std::max(h, 0.0) * std::max(w, 0.0);
  const double all = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - both;
  return all > 0 ? both / all : 0;
}

// How many boxes stay follows from their values: both operands have to be known.
void NonMaxSuppression(Call& c) {
  const bool center = c.integer("center_point_box", 0) == 1;
  const HostTensor boxes = c.constant(0, "boxes, which decide how many results there are,");
  const HostTensor scores = c.constant(1, "scores, which decide how many results there are,");
  const int64_t most = c.has(2) ? c.integer(2, "max_output_boxes_per_class") : 0;
  const double limit = c.has(3) ? c.number(3, "iou_threshold") : 0;
  const bool cut = c.has(4);
  const double least = cut ? c.number(4, "score_threshold") : 0;
  if (!c.ok()) return;
  if (boxes.type.rank() != 3 || scores.type.rank() != 3 || boxes.type.dims[2] != 4 ||
      boxes.type.dims[0] != scores.type.dims[0] || boxes.type.dims[1] != scores.type.dims[2]) {
    return void(c.Fail(absl::StrCat("boxes are ", ToString(boxes.type), ", scores ", ToString(scores.type))));
  }
  const int64_t batches = scores.type.dims[0], classes = scores.type.dims[1], n = scores.type.dims[2];
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t k = 0; k < classes; ++k) {
      const auto score = [&](int64_t i) { return scores.at((b * classes + k) * n + i).AsDouble(); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < n; ++i) {
        if (!cut || score(i) > least) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score(i) > score(j); });
      std::vector<int64_t> kept;
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const Box box = BoxAt(boxes, b * n + i, center);
        const bool covered = std::any_of(
            kept.begin(), kept.end(), [&](int64_t j) { return Overlap(box, BoxAt(boxes, b * n + j, center)) > limit; });
        if (!covered) kept.push_back(i);
      }
      for (const int64_t i : kept) rows.insert(rows.end(), {b, k, i});
    }
  }
  HostTensor t = HostTensor::Zeros({DType::kI64, {static_cast<int64_t>(rows.size()) / 3, 3}});
  for (size_t k = 0; k < rows.size(); ++k) t.set(static_cast<int64_t>(k), Scalar::Int(DType::kI64, rows[k]));
  c.out(c.Constant(t));
}

// Rows of `update` at write_indices[b] along an axis of a cache; circular ones wrap round.
void TensorScatter(Call& c) {
  const Value past = c.in(0), update = c.in(1);
  const int circular = c.choice("mode", {"linear", "circular"}, "linear");
  int64_t axis = c.integer("axis", -2);
  Value start = c.opt(2);
  if (!c.ok()) return;
  axis += axis < 0 ? past.rank() : 0;
  if (axis < 1 || axis >= past.rank() || update.rank() != past.rank()) {
    return void(
        c.Fail(absl::StrCat("axis ", axis, " of ", ToString(past.type()), " updated by ", ToString(update.type()))));
  }
  const int64_t batch = past.dim(0), steps = update.dim(static_cast<int>(axis)),
                room = past.dim(static_cast<int>(axis));
  Value at = Iota(c.builder(), DType::kI64, {batch, steps}, 1);
  if (start.valid()) at = Add(at, Broadcast(Reshape(CastTo(start, DType::kI64), {batch, 1}), {batch, steps}));
  if (circular == 1) at = Mod(at, ScalarLike(at, static_cast<double>(room), Loc{}));
  const Ints shape(update.dims().begin(), update.dims().end());
  c.out(ScatterElements(past, BroadcastAxes(at, shape, {0, axis}), update, axis));
}

// clang-format off
constexpr OpRow kRows[] = {
    {"Compress", 9, Compress, "the condition has to be known when compiling"}, {"Gather", 1, Gather}, {"GatherElements", 11, GatherElements},
    {"GatherND", 11, GatherNdOp}, {"NonMaxSuppression", 10, NonMaxSuppression, "boxes and scores have to be known when compiling"},
    {"NonZero", 9, NonZeroOp, "the operand has to be known when compiling"}, {"Scatter", 9, ScatterElementsOp},
    {"ScatterElements", 11, ScatterElementsOp}, {"ScatterND", 11, ScatterNdOp}, {"TensorScatter", 24, TensorScatter}, {"TopK", 1, TopKOp},
    {"Unique", 11, UniqueOp, "the operand has to be known when compiling"},
};
// clang-format on

}  // namespace

constinit const absl::Span<const OpRow> kIndexOps(kRows);

}  // namespace agc::onnx
