// The tables of indexing, scattering, sorting and random draws; see ir/ops/tables.h.
#pragma once
#include "ir/op_def.h"

namespace agc {

extern const absl::Span<const OpDef> kIndexOps;         // take_along_axis, gather_nd, embedding, wrap_index
extern const absl::Span<const OpDef> kDynamicOps;       // dynamic_slice, dynamic_update_slice, searchsorted
extern const absl::Span<const OpDef> kScatterOps;       // scatter_rows and the two ways to compute it
extern const absl::Span<const OpDef> kScatterIndexOps;  // index_update, scatter_elements, scatter_nd
extern const absl::Span<const OpDef> kSortOps;          // sort, argsort, top_k and their parts
extern const absl::Span<const OpDef> kRandomOps;        // random_*

}  // namespace agc
