// The scatters of numpy, ONNX and torch, brought to the form of scatter_rows.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/ops/index.h"
#include "ir/ops/tables.h"

namespace agc {
namespace {

using enum AttrKind;

// ---------------------------------------------------------------- index_update

absl::StatusOr<Types> IndexUpdateType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType &x = call.type(0), &indices = call.type(1), &updates = call.type(2);
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const int64_t axis = PositiveAxis(call.integer("axis"), x.rank());
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {x.dims[axis]}));
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, indices.dims));
  Dims want(x.dims.begin(), x.dims.begin() + axis);
  want.insert(want.end(), indices.dims.begin(), indices.dims.end());
  want.insert(want.end(), x.dims.begin() + axis + 1, x.dims.end());
  if (updates.dims != want)
    return call.Error(absl::StrCat("the updates are ", ToString(updates), ", expected shape ", ToString(want)));
  AGC_RETURN_IF_ERROR(CheckScatterMode(call, 2));
  return Types(x);
}

Value IndexUpdateDecompose(Rule& s) {
  const Value x = s.x[0];
  const Dims dims = x.dims();
  const int64_t axis = PositiveAxis(s.integer("axis"), x.rank()), n = s.x[1].type().elements();
  const int64_t b = Product(absl::MakeSpan(dims).first(axis)), d = Product(absl::MakeSpan(dims).subspan(axis + 1));
  const Value positions = Reshape(WrapIndex(s.x[1], dims[axis], /*drop=*/true), {1, n});
  const Value rows =
      ScatterRows(Reshape(x, {b, dims[axis], d}), positions, Reshape(s.x[2], {b, n, d}), ScatterModeOf(s));
  return Reshape(rows, dims);
}

// ---------------------------------------------------------------- scatter_elements

absl::StatusOr<Types> ScatterElementsType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 0, 1));
  const TensorType &x = call.type(0), &indices = call.type(1), &updates = call.type(2);
  AGC_RETURN_IF_ERROR(CheckRank(call, 1, x.rank()));
  AGC_RETURN_IF_ERROR(CheckAxis(call, "axis", call.integer("axis"), x.rank()));
  const int64_t axis = PositiveAxis(call.integer("axis"), x.rank());
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {x.dims[axis]}));
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, {indices.dims[axis]}));
  for (int64_t k = 0; k < x.rank(); ++k) {
    if (k == axis || indices.dims[k] <= x.dims[k]) continue;
    return call.Error(absl::StrCat("axis ", k, " of the indices has ", indices.dims[k], " elements, ", ToString(x),
                                   " has ", x.dims[k]));
  }
  if (updates.dims != indices.dims)
    return call.Error(absl::StrCat("the updates are ", ToString(updates), " and the indices ", ToString(indices),
                                   ", expected one shape"));
  AGC_RETURN_IF_ERROR(CheckScatterMode(call, 2));
  return Types(x);
}

// The axis goes last, the others become lists: as many as the operand has, where the indices have fewer.
Value ScatterElementsDecompose(Rule& s) {
  const Value x = s.x[0];
  const int64_t axis = PositiveAxis(s.integer("axis"), x.rank()), r = x.dim(static_cast<int>(axis)),
                n = s.x[1].dim(static_cast<int>(axis));
  Value positions = WrapIndex(s.x[1], r, /*drop=*/true), updates = s.x[2];
  Ints low(x.rank(), 0), high, perm(x.rank(), 0), back(x.rank(), 0);
  bool smaller = false;
  for (int k = 0; k < x.rank(); ++k) {
    high.push_back(k == axis ? 0 : x.dim(k) - positions.dim(k));
    smaller = smaller || high.back() != 0;
  }
  if (smaller) {
    positions = Pad(positions, -1, low, high);
    updates = Pad(updates, 0, low, high);
  }
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  for (size_t k = 0; k < perm.size(); ++k) back[perm[k]] = static_cast<int64_t>(k);
  const auto last = [&](Value v) { return axis == x.rank() - 1 ? v : Transpose(v, perm); };
  const Value moved = last(x);
  const int64_t b = Product(absl::MakeSpan(moved.dims()).first(x.rank() - 1));
  const Dims dims = moved.dims();
  const Value rows = ScatterRows(Reshape(moved, {b, r, 1}), Reshape(last(positions), {b, n}),
                                 Reshape(last(updates), {b, n, 1}), ScatterModeOf(s));
  const Value out = Reshape(rows, dims);
  return axis == x.rank() - 1 ? out : Transpose(out, back);
}

// ---------------------------------------------------------------- scatter_nd

absl::StatusOr<Types> ScatterNdType(const OpCall& call) {
  AGC_RETURN_IF_ERROR(CheckInt(call, 1));
  AGC_RETURN_IF_ERROR(CheckMinRank(call, 1, 1));
  const TensorType &x = call.type(0), &indices = call.type(1), &updates = call.type(2);
  const int64_t depth = indices.dims.back();
  if (depth > x.rank()) {
    return call.Error(
        absl::StrCat("indices of ", depth, " numbers address ", ToString(x), ", which has ", x.rank(), " axes"));
  }
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, absl::MakeSpan(x.dims).first(depth)));
  AGC_RETURN_IF_ERROR(CheckPositionCount(call, absl::MakeSpan(indices.dims).first(indices.dims.size() - 1)));
  Dims want(indices.dims.begin(), indices.dims.end() - 1);
  want.insert(want.end(), x.dims.begin() + depth, x.dims.end());
  if (updates.dims != want)
    return call.Error(absl::StrCat("the updates are ", ToString(updates), ", expected shape ", ToString(want)));
  AGC_RETURN_IF_ERROR(CheckScatterMode(call, 2));
  return Types(x);
}

Value ScatterNdDecompose(Rule& s) {
  const Value x = s.x[0];
  const Dims dims = x.dims();
  const int64_t depth = s.x[1].dim(-1);
  const absl::Span<const int64_t> all = absl::MakeSpan(dims);
  const int64_t r = Product(all.first(depth)), d = Product(all.subspan(depth));
  const Value positions = LinearPositions(s.x[1], all.first(depth), /*drop=*/true);
  const int64_t n = positions.type().elements();
  const Value rows =
      ScatterRows(Reshape(x, {1, r, d}), Reshape(positions, {1, n}), Reshape(s.x[2], {1, n, d}), ScatterModeOf(s));
  return Reshape(rows, dims);
}

constexpr absl::string_view kModes = "set|add|mul|min|max";
constexpr AttrList kAlongAxis = {{"axis", kInt, "0"}, {"mode", kString, "set", kModes}};

// clang-format off
constexpr OpDef kOps[] = {
    {.name = "index_update", .cls = OpClass::kComposite, .arity = 3, .attrs = kAlongAxis, .infer = IndexUpdateType, .decompose = IndexUpdateDecompose,
     .tol = {.f32 = 4e-6}, .numpy = "index_update(x0, x1, x2, axis, mode)",
     .sample = {.shapes = {"f32[2,4,3]", "i32[2,2]", "f32[2,2,2,3]"}, .attrs = "axis = 1", .lo = -6, .hi = 6},
     .doc = "Updates, shaped as `take` would give them, combined into the elements along `axis` that the indices name; negative indices count from the end, others that are no element are dropped. `set` keeps the last update; sums run in increasing order of the updates and are then added to the operand."},
    {.name = "scatter_elements", .cls = OpClass::kComposite, .arity = 3, .attrs = kAlongAxis, .infer = ScatterElementsType, .decompose = ScatterElementsDecompose,
     .tol = {.f32 = 4e-6}, .numpy = "scatter_elements(x0, x1, x2, axis, mode)",
     .sample = {.shapes = {"f32[3,4,2]", "i32[2,5,2]", "f32[2,5,2]"}, .attrs = "axis = 1, mode = \"mul\"", .lo = -6, .hi = 6},
     .doc = "Updates combined into the elements at their own place, but along `axis` at the position that the index at that place holds; the rules are those of `index_update`."},
    {.name = "scatter_nd", .cls = OpClass::kComposite, .arity = 3, .attrs = {{"mode", kString, "set", kModes}}, .infer = ScatterNdType, .decompose = ScatterNdDecompose,
     .tol = {.f32 = 4e-6}, .numpy = "scatter_nd(x0, x1, x2, mode)",
     .sample = {.shapes = {"f32[3,4,2]", "i32[5,2]", "f32[5,2]"}, .attrs = "mode = \"max\"", .lo = -5, .hi = 5},
     .doc = "Updates combined into the slices that the last axis of the indices addresses; the rules are those of `index_update`."},
};
// clang-format on
static_assert(CheckOps(kOps));

}  // namespace

constinit const absl::Span<const OpDef> kScatterIndexOps(kOps);

Value ScatterElements(Value x, Value indices, Value updates, int64_t axis, ScatterMode mode, Loc loc) {
  return Emit("scatter_elements", {x, indices, updates}, {Attr{"axis", axis}, Attr{"mode", std::string(Name(mode))}},
              loc);
}
Value ScatterNd(Value x, Value indices, Value updates, ScatterMode mode, Loc loc) {
  return Emit("scatter_nd", {x, indices, updates}, {Attr{"mode", std::string(Name(mode))}}, loc);
}
Value IndexUpdate(Value x, Value indices, Value updates, ScatterMode mode, int64_t axis, Loc loc) {
  return Emit("index_update", {x, indices, updates}, {Attr{"axis", axis}, Attr{"mode", std::string(Name(mode))}}, loc);
}
Value IndexAdd(Value x, int64_t axis, Value indices, Value updates, Loc loc) {
  return IndexUpdate(x, indices, updates, ScatterMode::kAdd, axis, loc);
}

}  // namespace agc
