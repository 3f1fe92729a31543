// Values that are several: what a composite with several results returns from `decompose`.
//   return Tuple({y, mean, variance});          // elements are read with Get(t, 0), Get(t, 1), ...
#pragma once
#include "ir/value.h"

namespace agc {

Value Tuple(absl::Span<const Value> elements, Loc loc = Loc::Here());
const OpDef& TupleOp();

}  // namespace agc
