// What rows of pooling share: the window that their attributes describe, and the shape it gives.
#pragma once
#include "ir/op_def.h"
#include "ir/ops/window.h"

namespace agc {

// The window of an op with attributes `window`, `stride`, `pad`, `dilation` and, where the row has it, `ceil_mode`: the
// padding behind then grows until the last window that starts on the input, or on the padding before it, is whole.
Window PoolWindow(const AttrReader& attrs, const Ints& input);
// The shape that pooling an input of shape `x` gives. Padding below the window's reach keeps every window on the input.
absl::StatusOr<Dims> Pooled(const OpCall& call, const Dims& x);
// Operand 0 is [n, c, spatial...] with as many spatial axes as `window` has numbers.
absl::Status CheckPoolRank(const OpCall& call);
// The position of a tap fits an i32.
absl::Status CheckTaps(const OpCall& call);
// Positions in the window are u8 where they fit, else i32.
DType TapDType(int64_t taps);

using PoolAttrs = absl::InlinedVector<Attr, 6>;
// The attributes of a window without ceil_mode, as rows of any rank take them.
PoolAttrs AttrsOf(const Window& window);

}  // namespace agc
