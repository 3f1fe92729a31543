// Views of views and views that change nothing. A view of a splat is a splat.
#include <algorithm>

#include "ir/build.h"
#include "passes/rules/rules.h"

namespace agc {
namespace {

Value ViewOfSplat(Rule& r) {
  const std::optional<Scalar> splat = Splat(r, 0);
  return splat.has_value() ? SplatOf(r, *splat) : Value();
}

Value SameShape(Rule& r) { return SameType(r, 0) ? r.x[0] : Value(); }

Ints ShapeOf(const Rule& r) { return r.op.type().dims; }

Value ReshapeOfReshape(Rule& r) {
  const Op* inner = Producer(r, 0, "reshape");
  return inner != nullptr ? Reshape(Operand(r, *inner, 0), ShapeOf(r)) : Value();
}

Value IdentityTranspose(Rule& r) {
  const Ints& perm = r.ints("perm");
  return std::is_sorted(perm.begin(), perm.end()) ? r.x[0] : Value();
}

// Axis i of the result is axis perm[i] of the operand.
Value TransposeOfTranspose(Rule& r) {
  const Op* inner = Producer(r, 0, "transpose");
  if (inner == nullptr) return {};
  const Ints first = AttrReader{inner->attrs}.ints("perm");
  Ints perm = r.ints("perm");
  for (int64_t& axis : perm) axis = first[axis];
  return Transpose(Operand(r, *inner, 0), perm);
}

// Where only axes of extent 1 move, the elements keep their order.
Value TransposeAsReshape(Rule& r) {
  int64_t last = -1;
  for (int64_t axis : r.ints("perm")) {
    if (r.x[0].dims()[axis] == 1) continue;
    if (axis < last) return {};
    last = axis;
  }
  return Reshape(r.x[0], ShapeOf(r));
}

Value NoPad(Rule& r) {
  const auto zero = [](int64_t v) { return v == 0; };
  const Ints &low = r.ints("low"), &high = r.ints("high");
  return std::all_of(low.begin(), low.end(), zero) && std::all_of(high.begin(), high.end(), zero) ? r.x[0] : Value();
}

Value FlipOfFlip(Rule& r) {
  const Op* inner = Producer(r, 0, "flip");
  return inner != nullptr && AttrReader{inner->attrs}.ints("axes") == r.ints("axes") ? Operand(r, *inner, 0) : Value();
}

Value ConcatOfOne(Rule& r) { return r.x.size() == 1 ? r.x[0] : Value(); }

Value ConcatWithoutEmpty(Rule& r) {
  std::vector<Value> kept;
  for (const Value& x : r.x) {
    if (x.type().elements() > 0) kept.push_back(x);
  }
  return kept.empty() || kept.size() == r.x.size() ? Value() : Concat(kept, r.integer("axis"));
}

constexpr RewriteRule kRules[] = {
    {"broadcast", ViewOfSplat},
    {"broadcast", SameShape},
    {"concat", ConcatOfOne},
    {"concat", ConcatWithoutEmpty},
    {"flip", ViewOfSplat},
    {"flip", FlipOfFlip},
    {"pad", NoPad},
    {"reshape", ViewOfSplat},
    {"reshape", SameShape},
    {"reshape", ReshapeOfReshape},
    {"roll", ViewOfSplat},
    {"slice", ViewOfSplat},
    {"slice", SameShape},
    {"transpose", ViewOfSplat},
    {"transpose", IdentityTranspose},
    {"transpose", TransposeOfTranspose},
    {"transpose", TransposeAsReshape},
};

}  // namespace

constinit const RuleTable kViewRules(kRules);

}  // namespace agc
