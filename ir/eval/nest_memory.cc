#include "ir/eval/nest_memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/address.h"
#include "ir/base/status.h"

namespace agc {

NestSpace::NestSpace(const Nest& nest, absl::Span<const VarId> axes)
    : vars(axes.begin(), axes.end()), lanes(axes.size(), StripSlots(kStrip)) {
  for (VarId v : axes) {
    extents.push_back(nest.extent(v));
    size *= extents.back();
  }
}

void NestSpace::Fill(int64_t start, int n) {
  int64_t inner = 1;
  for (size_t k = vars.size(); k-- > 0;) {
    int64_t value = start / inner % extents[k], rest = start % inner;
    for (int i = 0; i < n; ++i) {
      lanes[k][i] = static_cast<uint64_t>(value);
      if (++rest < inner) continue;
      rest = 0;
      if (++value == extents[k]) value = 0;
    }
    inner *= extents[k];
  }
}

void NestSpace::Bind(StripMachine& m) {
  for (size_t k = 0; k < vars.size(); ++k) m.BindVar(vars[k], lanes[k].data());
}

bool NestSpace::Has(VarId v) const { return std::find(vars.begin(), vars.end(), v) != vars.end(); }

NestMemory::NestMemory(const Nest& nest, absl::Span<HostTensor* const> tensors) {
  for (size_t i = 0; i < nest.params.size(); ++i) {
    const NestParam& p = nest.params[i];
    params.push_back({p.name, p.type, Strides(p.type), tensors[i]->bytes.data(), tensors[i]->type.dtype});
  }
  arrays.reserve(nest.components.size());
  for (const Component& c : nest.components) {
    TensorType type{c.dtype, {}};
    for (VarId v : c.axes) type.dims.push_back(nest.extent(v));
    arrays.emplace_back(static_cast<size_t>(type.elements()));
    Dims strides = Strides(type);
    components.push_back(
        {c.name, std::move(type), std::move(strides), reinterpret_cast<uint8_t*>(arrays.back().data()), DType::kI64});
  }
}

namespace {
// Some lane is out of range on `axis`; an error if it is one that counts.
absl::Status CheckLanes(const StripLoad& load, const NestPlace& place, size_t axis) {
  for (int i = 0; i < load.lanes; ++i) {
    const int64_t v = load.At(axis, i);
    if (!load.Active(i) || (v >= 0 && v < place.type.dims[axis])) continue;
    std::vector<int64_t> index;
    for (size_t k = 0; k < load.index.size(); ++k) index.push_back(load.At(k, i));
    return absl::OutOfRangeError(absl::StrCat("load of %", place.name, " at [", absl::StrJoin(index, ", "),
                                              "] is out of range, it is ", ToString(place.type)));
  }
  return absl::OkStatus();
}
}  // namespace

absl::Status NestMemory::Load(const StripLoad& load) {
  const bool stage = load.instr->kind == ExprKind::kStage;
  const std::vector<NestPlace>& places = stage ? components : params;
  if (load.instr->kind == ExprKind::kAllocLoad || load.instr->width != 1 || load.instr->ref >= places.size()) {
    return absl::InternalError("an expression reads what a nest has not (an alloc, a vector or an unknown buffer)");
  }
  const NestPlace& place = places[load.instr->ref];
  if (load.index.size() != place.strides.size()) {
    return absl::InternalError(absl::StrCat("%", place.name, " is read with ", load.index.size(), " indices, it has ",
                                            place.strides.size(), " axes"));
  }
  int64_t at[kStrip];
  uint64_t base = 0;  // of the uniform indices
  for (size_t k = 0; k < load.index.size(); ++k) {
    if (load.stride[k] != 0) continue;
    if (*load.index[k] >= static_cast<uint64_t>(place.type.dims[k])) AGC_RETURN_IF_ERROR(CheckLanes(load, place, k));
    base += *load.index[k] * static_cast<uint64_t>(place.strides[k]);
  }
  std::fill(at, at + load.lanes, static_cast<int64_t>(base));
  for (size_t k = 0; k < load.index.size(); ++k) {
    if (load.stride[k] == 0) continue;
    const uint64_t dim = static_cast<uint64_t>(place.type.dims[k]), stride = static_cast<uint64_t>(place.strides[k]);
    const uint64_t* index = load.index[k];
    bool outside = false;
    for (int i = 0; i < load.lanes; ++i) {
      outside |= index[i] >= dim;
      at[i] += static_cast<int64_t>(index[i] * stride);
    }
    if (outside) AGC_RETURN_IF_ERROR(CheckLanes(load, place, k));
  }
  if (load.active != nullptr) {
    for (int i = 0; i < load.lanes; ++i) at[i] = load.active[i] != 0 ? at[i] : -1;
  }
  DecodeElements(place.stored, place.bytes, at, load.lanes, load.out[0]);
  return absl::OkStatus();
}

}  // namespace agc
