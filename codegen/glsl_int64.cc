#include "codegen/glsl_int64.h"

#include <algorithm>
#include <iterator>

namespace agc {
namespace {

struct Row {
  absl::string_view op, spelling;
};
constexpr Row kRows[] = {
    {"abs", "agc_abs_$s($0)"},      {"add", "agc_add($0, $1)"},
    {"bit_and", "$0 & $1"},         {"bit_not", "~$0"},
    {"bit_or", "$0 | $1"},          {"bit_xor", "$0 ^ $1"},
    {"div", "agc_div_$s($0, $1)"},  {"eq", "$0 == $1"},
    {"ge", "!agc_less_$s($0, $1)"}, {"gt", "agc_less_$s($1, $0)"},
    {"le", "!agc_less_$s($1, $0)"}, {"lt", "agc_less_$s($0, $1)"},
    {"max", "agc_max_$s($0, $1)"},  {"min", "agc_min_$s($0, $1)"},
    {"mul", "agc_mul($0, $1)"},     {"ne", "$0 != $1"},
    {"neg", "agc_neg($0)"},         {"popcount", "uvec2(bitCount($0.x) + bitCount($0.y), 0u)"},
    {"rem", "agc_rem_$s($0, $1)"},  {"select", "mix($2, $1, bvec2($0))"},
    {"shl", "agc_shl($0, $1)"},     {"shr", "agc_shr_$s($0, $1)"},
    {"sign", "agc_sign_$s($0)"},    {"sub", "agc_sub($0, $1)"},
};

// Division is by long division; the quotient of the smallest i64 and -1 wraps. agc_top has the leading 24 to 32 bits of
// a value, the last of them set if any bit was lost, so that a float of it, times 2^shift, is rounded once.
constexpr absl::string_view kFunctions = R"(uvec2 agc_add(uvec2 a, uvec2 b) {
  uint carry, low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
uvec2 agc_neg(uvec2 a) { return agc_add(~a, uvec2(1u, 0u)); }
uvec2 agc_sub(uvec2 a, uvec2 b) { return agc_add(a, agc_neg(b)); }
uvec2 agc_mul(uvec2 a, uvec2 b) {
  uint high, low;
  umulExtended(a.x, b.x, high, low);
  return uvec2(low, high + a.x * b.y + a.y * b.x);
}
uvec2 agc_wide(int a) { return uvec2(uint(a), a < 0 ? ~0u : 0u); }
bool agc_less_u(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }
bool agc_less_i(uvec2 a, uvec2 b) { return int(a.y) < int(b.y) || (a.y == b.y && a.x < b.x); }
uvec2 agc_max_u(uvec2 a, uvec2 b) { return agc_less_u(a, b) ? b : a; }
uvec2 agc_max_i(uvec2 a, uvec2 b) { return agc_less_i(a, b) ? b : a; }
uvec2 agc_min_u(uvec2 a, uvec2 b) { return agc_less_u(b, a) ? b : a; }
uvec2 agc_min_i(uvec2 a, uvec2 b) { return agc_less_i(b, a) ? b : a; }
uvec2 agc_abs_u(uvec2 a) { return a; }
uvec2 agc_abs_i(uvec2 a) { return int(a.y) < 0 ? agc_neg(a) : a; }
uvec2 agc_sign_u(uvec2 a) { return uvec2(a == uvec2(0u) ? 0u : 1u, 0u); }
uvec2 agc_sign_i(uvec2 a) { return int(a.y) < 0 ? uvec2(~0u) : agc_sign_u(a); }
uvec2 agc_shl(uvec2 a, uvec2 n) {
  if (n.y != 0u || n.x >= 64u) return uvec2(0u);
  if (n.x == 0u) return a;
  return n.x >= 32u ? uvec2(0u, a.x << (n.x - 32u)) : uvec2(a.x << n.x, a.y << n.x | a.x >> (32u - n.x));
}
uvec2 agc_shr_u(uvec2 a, uvec2 n) {
  if (n.y != 0u || n.x >= 64u) return uvec2(0u);
  if (n.x == 0u) return a;
  return n.x >= 32u ? uvec2(a.y >> (n.x - 32u), 0u) : uvec2(a.x >> n.x | a.y << (32u - n.x), a.y >> n.x);
}
uvec2 agc_shr_i(uvec2 a, uvec2 n) { return int(a.y) < 0 ? ~agc_shr_u(~a, n) : agc_shr_u(a, n); }
void agc_divide(uvec2 a, uvec2 b, out uvec2 quotient, out uvec2 rest) {
  quotient = rest = uvec2(0u);
  for (uint i = 0u; i < 64u; ++i) {
    bool carry = int(rest.y) < 0;
    rest = uvec2(rest.x << 1 | a.y >> 31, rest.y << 1 | rest.x >> 31);
    a = uvec2(a.x << 1, a.y << 1 | a.x >> 31);
    bool fits = carry || !agc_less_u(rest, b);
    if (fits) rest = agc_sub(rest, b);
    quotient = uvec2(quotient.x << 1 | uint(fits), quotient.y << 1 | quotient.x >> 31);
  }
}
uvec2 agc_div_u(uvec2 a, uvec2 b) {
  uvec2 q, r;
  if (b == uvec2(0u)) return b;
  agc_divide(a, b, q, r);
  return q;
}
uvec2 agc_rem_u(uvec2 a, uvec2 b) {
  uvec2 q, r;
  if (b == uvec2(0u)) return a;
  agc_divide(a, b, q, r);
  return r;
}
uvec2 agc_div_i(uvec2 a, uvec2 b) {
  uvec2 q = agc_div_u(agc_abs_i(a), agc_abs_i(b));
  return int(a.y ^ b.y) < 0 ? agc_neg(q) : q;
}
uvec2 agc_rem_i(uvec2 a, uvec2 b) {
  uvec2 r = agc_rem_u(agc_abs_i(a), agc_abs_i(b));
  return int(a.y) < 0 ? agc_neg(r) : r;
}
uint agc_top(uvec2 a, out int shift) {
  shift = a.y != 0u ? findMSB(a.y) + 1 : 0;
  uvec2 cut = agc_shr_u(a, uvec2(shift, 0u));
  return cut.x | uint(agc_shl(cut, uvec2(shift, 0u)) != a);
}
float agc_sticky_u(uvec2 a) {
  int shift;
  uint top = agc_top(a, shift);
  uint keep = top >> 8 | uint((top & 0xffu) != 0u);
  return ldexp(top < 0x1000000u ? float(top) : float(keep) * 256.0, shift);
}
float agc_sticky_i(uvec2 a) { return int(a.y) < 0 ? -agc_sticky_u(agc_neg(a)) : agc_sticky_u(a); }
float agc_f32_u(uvec2 a) {
  int shift;
  uint top = agc_top(a, shift);
  return ldexp(float(top), shift);
}
float agc_f32_i(uvec2 a) { return int(a.y) < 0 ? -agc_f32_u(agc_neg(a)) : agc_f32_u(a); }
uvec2 agc_u64(float x) {
  if (!(x >= 1.0)) return uvec2(0u);
  if (x >= 18446744073709551616.0) return uvec2(~0u);
  uint bits = floatBitsToUint(x);
  int shift = int(bits >> 23) - 150;
  uvec2 mantissa = uvec2(bits & 0x7fffffu | 0x800000u, 0u);
  return shift < 0 ? uvec2(mantissa.x >> -shift, 0u) : agc_shl(mantissa, uvec2(shift, 0u));
}
uvec2 agc_i64(float x) {
  if (abs(x) < 9223372036854775808.0) return x < 0.0 ? agc_neg(agc_u64(-x)) : agc_u64(x);
  return x > 0.0 ? uvec2(~0u, 0x7fffffffu) : x < 0.0 ? uvec2(0u, 0x80000000u) : uvec2(0u);
}
)";

constexpr absl::string_view kDoubleFunctions =
    R"(double agc_f64_u(uvec2 a) { return double(a.y) * 4294967296.0 + double(a.x); }
double agc_f64_i(uvec2 a) { return double(int(a.y)) * 4294967296.0 + double(a.x); }
uvec2 agc_u64(double x) {
  if (!(x >= 1.0)) return uvec2(0u);
  if (x >= 18446744073709551616.0) return uvec2(~0u);
  uint high = uint(floor(x / 4294967296.0));
  return uvec2(uint(floor(x - double(high) * 4294967296.0)), high);
}
uvec2 agc_i64(double x) {
  if (abs(x) < 9223372036854775808.0) {
    uvec2 a = agc_u64(abs(x));
    return x < 0.0 ? uvec2(~a.x + 1u, ~a.y + uint(a.x == 0u)) : a;
  }
  return x > 0.0 ? uvec2(~0u, 0x7fffffffu) : x < 0.0 ? uvec2(0u, 0x80000000u) : uvec2(0u);
}
)";

}  // namespace

absl::string_view PairSpelling(absl::string_view scalar_op) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& r) { return r.op == scalar_op; });
  return row == std::end(kRows) ? absl::string_view() : row->spelling;
}

absl::string_view PairFunctions() { return kFunctions; }
absl::string_view PairDoubleFunctions() { return kDoubleFunctions; }

}  // namespace agc
