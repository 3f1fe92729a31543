// Sampling at computed places: the places of an affine map (affine_grid), and the values there (grid_sample),
// interpolated between neighbours that are taken row by row from [n, places, c]. Both are built of other ops, and so
// are their gradients. Coordinates run from -1 to 1, the last spatial axis first.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/build_index.h"
#include "ir/ops/infer.h"
#include "ir/ops/tables.h"
#include "ir/ops/window.h"

namespace agc {
namespace {

using enum AttrKind;

double Number(int64_t v) { return static_cast<double>(v); }

// ---------------------------------------------------------------- affine_grid

absl::StatusOr<Types> AffineGridType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  const Ints& size = call.ints("size");
  const int rank = static_cast<int>(size.size());
  if (rank == 0) return call.Error("size = [] has no numbers, expected one per spatial axis");
  AGC_RETURN_IF_ERROR(CheckInts(call, "size", rank, 0));
  AGC_RETURN_IF_ERROR(CheckRank(call, 0, 3));
  const Dims& theta = call.type(0).dims;
  if (theta[1] != rank || theta[2] != rank + 1) {
    return call.Error(absl::StrCat("theta is ", ToString(call.type(0)), ", expected [n,", rank, ",", rank + 1, "] for ",
                                   rank, " spatial axes"));
  }
  TensorType type{call.type(0).dtype, {theta[0]}};
  type.dims.insert(type.dims.end(), size.begin(), size.end());
  type.dims.push_back(rank);
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

// Sum over the coordinates of theta[:, :, k] * coordinate k, plus theta's last column.
Value AffineGridDecompose(Rule& s) {
  const Ints& size = s.ints("size");
  const int rank = static_cast<int>(size.size());
  const Value theta = Wide(s.x[0]);
  const int64_t n = theta.dim(0);
  const auto column = [&](int64_t k) {
    Ints shape(static_cast<size_t>(rank + 2), 1);
    shape.front() = n;
    shape.back() = rank;
    return Reshape(Slice(theta, {0, 0, k}, {n, rank, k + 1}, {1, 1, 1}), shape);
  };
  Value grid = column(rank);
  for (int k = 0; k < rank; ++k) {
    const int axis = 1 + (rank - 1 - k);
    const int64_t m = size[axis - 1];
    Dims dims(static_cast<size_t>(rank + 2), 1);
    dims[axis] = m;
    const Value i = Iota(s.builder, theta.dtype(), dims, axis);
    const bool corners = s.flag("align_corners");
    const Value place = corners && m == 1 ? i
                        : corners         ? i * 2.0 / Number(m - 1) - 1.0
                                          : (i * 2.0 + 1.0) / Number(std::max<int64_t>(m, 1)) - 1.0;
    grid = grid + column(k) * place;
  }
  if (grid.dims() != s.op.type().dims) grid = Broadcast(grid, s.op.type().dims);
  return grid.dtype() == s.op.type().dtype ? grid : CastTo(grid, s.op.type().dtype);
}

// ---------------------------------------------------------------- grid_sample

absl::StatusOr<Types> GridSampleType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckSameDType(call));
  AGC_RETURN_IF_ERROR(CheckFloat(call, 0));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 3));
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, call.type(0).rank()));
  const Dims &x = call.type(0).dims, &grid = call.type(1).dims;
  const int64_t rank = call.type(0).rank() - 2;
  if (x[0] != grid[0] || grid.back() != rank) {
    return call.Error(absl::StrCat("the input is ", ToString(call.type(0)), " and the grid ", ToString(call.type(1)),
                                   ", expected [", x[0], ",places...,", rank, "]"));
  }
  if (call.text("mode") == "cubic" && rank > 2) return call.Error("cubic takes one or two spatial axes");
  int64_t elements = 1;
  for (int64_t n : Spatial(x)) elements *= n;
  if (elements < 1 || elements > INT32_MAX / 2) {
    return call.Error(
        absl::StrCat("the input is ", ToString(call.type(0)), ", expected 1 to 2^30 elements along the spatial axes"));
  }
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {x[0], elements}));
  TensorType type{call.type(0).dtype, {x[0], x[1]}};
  type.dims.insert(type.dims.end(), grid.begin() + 1, grid.end() - 1);
  AGC_RETURN_IF_ERROR(CheckDims(call, "the result", type.dtype, type.dims));
  return Types(type);
}

// Reflects about the edges -1 and 1: the centres of the corner elements, or the corners' outer edges half a step
// beyond.
Value Reflected(Value p, int64_t size, bool corners) {
  const double low = corners ? 0 : -0.5, span = Number(corners ? size - 1 : size);
  if (span == 0) return FullLike(p, 0);
  const Value distance = Abs(p - low), flips = Floor(distance / span), extra = distance - flips * span;
  const Value odd = NotEqual(flips - Floor(flips * 0.5) * 2.0, FullLike(flips, 0));
  return Clamp(Where(odd, span - extra, extra) + low, 0, Number(size - 1));
}

Value PaddedPlace(const Rule& s, Value p, int64_t size) {
  const std::string& padding = s.text("padding");
  if (padding == "border") return Clamp(p, 0, Number(size - 1));
  return padding == "reflection" ? Reflected(p, size, s.flag("align_corners")) : p;
}

// One neighbour along an axis: a whole number as float, and its weight.
struct Neighbour {
  Value place = {}, weight = {};
};

// Weights of the cubic kernel of Keys (1981) with a = -0.75 at distances 1 + t, t, 1 - t, 2 - t.
std::vector<Value> CubicWeights(Value t) {
  constexpr double a = -0.75;
  const auto near = [&](Value d) { return (d * (a + 2) - (a + 3)) * d * d + 1.0; };
  const auto far = [&](Value d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
}

std::vector<Neighbour> NeighboursOf(const Rule& s, Value coordinate, int64_t size) {
  const double n = Number(size);
  const bool corners = s.flag("align_corners");
  const Value place = corners ? (coordinate + 1.0) * ((n - 1) / 2) : (coordinate + 1.0) * (n / 2) - 0.5;
  const std::string& mode = s.text("mode");
  if (mode == "nearest") return {{Round(PaddedPlace(s, place, size)), Value()}};
  if (mode == "linear") {
    const Value p = PaddedPlace(s, place, size), floor = Floor(p), t = p - floor;
    return {{floor, 1.0 - t}, {floor + 1.0, t}};
  }
  const Value floor = Floor(place);
  const std::vector<Value> weights = CubicWeights(place - floor);
  std::vector<Neighbour> all;
  for (int k = 0; k < 4; ++k) all.push_back({PaddedPlace(s, floor + (k - 1.0), size), weights[k]});
  return all;
}

// Where all neighbours of one choice per axis lie among the input's places, and their weight; places outside are -1.
struct Corner {
  Value position = {}, inside = {}, weight = {};
};
Corner CornerOf(absl::Span<const Neighbour* const> along, const Ints& extents) {
  Corner c;
  for (size_t k = 0; k < along.size(); ++k) {
    const Value place = along[k]->place, zero = FullLike(place, 0), end = FullLike(place, Number(extents[k]));
    const Value inside = LogicalAnd(GreaterEqual(place, zero), Less(place, end));
    const Value index = CastTo(Where(inside, place, zero), DType::kI32);
    c.inside = k == 0 ? inside : LogicalAnd(c.inside, inside);
    c.position = k == 0 ? index : c.position * Number(extents[k]) + index;
    const Value weight = along[k]->weight;
    c.weight = !c.weight.valid() ? weight : weight.valid() ? c.weight * weight : c.weight;
  }
  return c;
}

// [n, places, c]: rows of x [n, elements, c] at positions [n, places], 0 where there is none.
Value RowsAt(Value x, const Corner& c) { return GatherRows(x, Where(c.inside, c.position, FullLike(c.position, -1))); }

Value GridSampleDecompose(Rule& s) {
  const Dims in = s.x[0].dims();
  const Ints extents = Spatial(in);
  const int rank = static_cast<int>(extents.size());
  const Value x = Wide(s.x[0]), grid = Wide(s.x[1]);
  int64_t elements = 1, places = 1;
  for (int64_t n : extents) elements *= n;
  for (int k = 1; k <= rank; ++k) places *= grid.dim(k);
  const Value rows = Transpose(Reshape(x, {in[0], in[1], elements}), {0, 2, 1});
  const Value flat = Reshape(grid, {in[0], places, rank});
  std::vector<std::vector<Neighbour>> neighbours;
  size_t corners = 1;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t k = rank - 1 - axis;
    const Value coordinate = Reshape(Slice(flat, {0, 0, k}, {in[0], places, k + 1}, {1, 1, 1}), {in[0], places});
    neighbours.push_back(NeighboursOf(s, coordinate, extents[axis]));
    corners *= neighbours.back().size();
  }
  Value sum;
  for (size_t corner = 0; corner < corners; ++corner) {
    std::vector<const Neighbour*> along(neighbours.size());
    size_t rest = corner;
    for (size_t axis = neighbours.size(); axis-- > 0;) {
      along[axis] = &neighbours[axis][rest % neighbours[axis].size()];
      rest /= neighbours[axis].size();
    }
    const Corner c = CornerOf(along, extents);
    const Value values = RowsAt(rows, c);
    const Value term = c.weight.valid() ? values * ExpandDims(c.weight, {2}) : values;
    sum = sum.valid() ? sum + term : term;
  }
  const Value y = Reshape(Transpose(sum, {0, 2, 1}), s.op.type().dims);
  return y.dtype() == s.op.type().dtype ? y : CastTo(y, s.op.type().dtype);
}

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "affine_grid", .cls = OpClass::kComposite, .arity = 1, .attrs = {{"size", kInts}, {"align_corners", kBool, "false"}},
     .infer = AffineGridType, .decompose = AffineGridDecompose, .tol = {.f32 = 1e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "affine_grid(x0, size, align_corners)", .sample = {.shapes = {"f32[2,2,3]"}, .attrs = "size = [3, 4]"},
     .doc = "Places [n,size...,k] of the elements of a grid with k spatial axes under the affine maps theta [n,k,k+1]. Coordinates run from -1 to 1, the last axis first; align_corners: -1 and 1 are the centres of the corner elements, not their outer edges."},
    {.name = "grid_sample", .cls = OpClass::kComposite, .arity = 2,
     .attrs = {{"mode", kString, "linear", "nearest|linear|cubic"}, {"padding", kString, "zeros", "zeros|border|reflection"}, {"align_corners", kBool, "false"}},
     .infer = GridSampleType, .decompose = GridSampleDecompose, .tol = {.f32 = 2e-5, .f16 = 4e-3, .bf16 = 3e-2},
     .numpy = "grid_sample(x0, x1, mode, padding, align_corners)",
     .sample = {.shapes = {"f32[2,3,4,5]", "f32[2,2,3,2]"}, .lo = -1.4, .hi = 1.4},
     .doc = "Values of an input [n,c,spatial...] at the places of a grid [n,places...,k], interpolated between 2^k (cubic 4^k) neighbours; places as in affine_grid. Beyond the edge lie zeros, the elements at the edge, or the input reflected."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kGridOps(kOps);

}  // namespace agc
