// Ops that change places, so that fewer elements are computed or kernels need not exchange them. Bit for bit the same
// value, and the same gradient.
#include <algorithm>

#include "ir/build.h"
#include "passes/rules/rules.h"

namespace agc {
namespace {

// The largest of relu(x) is relu of the largest: relu is monotone and keeps NaN, as pooling does. Where the largest is
// positive, the first of equals is the same element before and after; else neither passes a gradient. The pooling then
// reads the unclipped values, and no kernel needs these for the gradient of relu. Every window must hold an element:
// relu of padding would be 0.
Value PoolOfRelu(Rule& r) {
  const Op* relu = Producer(r, 0, "relu");
  if (relu == nullptr) return {};
  const Ints& dilation = r.ints("dilation");
  if (std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; })) return {};
  const Loc loc = relu->loc;
  return Relu(Emit(r.op.def->name, {Operand(r, *relu, 0)}, r.op.attrs, r.op.loc), loc);
}

constexpr RewriteRule kRules[] = {
    {"max_pool1d", PoolOfRelu},
    {"max_pool2d", PoolOfRelu},
    {"max_pool3d", PoolOfRelu},
};

}  // namespace

constinit const RuleTable kMotionRules(kRules);

}  // namespace agc
