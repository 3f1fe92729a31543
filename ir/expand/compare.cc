// Comparisons, and ops that choose by them: NaN passes through, zeros keep their sign.
#include "ir/expand/expand.h"

namespace agc::expand {

V Less(V a, V b) { return a < b; }
V LessEqual(V a, V b) { return a <= b; }
V Greater(V a, V b) { return a > b; }
V GreaterEqual(V a, V b) { return a >= b; }
V Equal(V a, V b) { return a == b; }
V NotEqual(V a, V b) { return a != b; }
V Larger(V a, V b) { return Select((a > b) | IsNan(a), a, b); }
V Smaller(V a, V b) { return Select((a < b) | IsNan(a), a, b); }
V Sign(V a) { return Select(IsNan(a) | (a == 0.0), a, Select(a < 0.0, -1, Constant(a, 1))); }
V Copysign(V a, V b) { return WithSign(Abs(a), b); }

}  // namespace agc::expand
