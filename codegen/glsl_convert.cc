// Conversions between dtypes, and elements as they lie in memory.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "codegen/glsl_expr.h"
#include "codegen/glsl_int64.h"

namespace agc {
namespace {

// A float of 32 bits that rounds to a narrower one as the operand does: cut off, with the last bit set where bits were
// lost. In integers, since drivers take double(float(x)) for x and flush subnormal numbers.
constexpr absl::string_view kStickyFloatGlsl = R"(float agc_sticky(double x) {
  uvec2 w = unpackDouble2x32(x);
  uint sign = w.y & 0x80000000u, a = w.y ^ sign, lost = w.x & 0x1fffffffu;
  if (a >= 0x47f00000u) return uintBitsToFloat(sign | (a > 0x7ff00000u || (a == 0x7ff00000u && w.x != 0u) ? 0x7fc00000u : 0x7f800000u));
  int e = int(a >> 20) - 896;
  uint m = (a >= 0x100000u ? 0x800000u : 0u) | (a & 0xfffffu) << 3 | w.x >> 29, s = e > 0 ? 0u : uint(min(1 - e, 25));
  lost |= m & ((1u << s) - 1u);
  m = e > 0 ? uint(e) << 23 | (m & 0x7fffffu) : m >> s;
  return uintBitsToFloat(sign | m | uint(lost != 0u));
}
)";
constexpr absl::string_view kStickyIntGlsl = R"(float agc_sticky($t a) {
  $u x = a < 0 ? 0 - $u(a) : $u(a);
  float scale = 1.0;
  for (; x >= 0x1000000; scale *= 256.0) x = (x >> 8) | $u((x & 0xff) != 0);
  return a < 0 ? float(x) * -scale : float(x) * scale;
}
)";
// The nearest f16 and bf16, halves to even, as floats. Adding 0.5 leaves multiples of 2^-24, the subnormals of f16.
constexpr absl::string_view kF16Glsl = R"(float agc_f16(float x) {
  uint bits = floatBitsToUint(x), a = bits & 0x7fffffffu;
  if (a >= 0x7f800000u) return x;
  precise float small = abs(x) + 0.5;
  small -= 0.5;
  a = a < 0x38800000u ? floatBitsToUint(small) : a >= 0x477ff000u ? 0x7f800000u : (a + 0xfffu + ((a >> 13) & 1u)) & ~0x1fffu;
  return uintBitsToFloat(a | (bits & 0x80000000u));
}
)";
constexpr absl::string_view kBf16Glsl = R"(float agc_bf16(float x) {
  uint bits = floatBitsToUint(x);
  return (bits & 0x7fffffffu) > 0x7f800000u ? uintBitsToFloat(bits & 0xffff0000u | 0x400000u) :
      uintBitsToFloat((bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u);
}
)";

// The value of the bits of an f16, and the bits of a value that f16 holds.
constexpr absl::string_view kHalfGlsl = R"(float agc_half(uint h) {
  uint m = h & 0x7fffu;
  float x = m >= 0x7c00u ? uintBitsToFloat(m << 13 | 0x7f800000u) : m < 0x400u ? float(m) * 5.9604644775390625e-8 :
      uintBitsToFloat((m << 13) + 0x38000000u);
  return (h & 0x8000u) != 0u ? -x : x;
}
uint agc_half_bits(float x) {
  uint bits = floatBitsToUint(x), a = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  if (a >= 0x7f800000u) return sign | 0x7c00u | (a > 0x7f800000u ? 0x200u : 0u);
  return sign | (a < 0x38800000u ? uint(abs(x) * 16777216.0) : (a >> 13) - 0x1c000u);
}
)";

bool Half(DType t) { return t == DType::kF16 || t == DType::kBF16; }

absl::string_view Sign(DType t) { return IsSigned(t) ? "_i" : "_u"; }

}  // namespace

void GlslExpr::Need(absl::string_view helper, DType type) {
  const int bits = static_cast<int>(SizeOf(type) < 4 ? 4 : SizeOf(type)) * 8;
  const absl::string_view t = GlslType(type), u = bits == 64 ? "uint64_t" : "uint";
  helpers_.insert(absl::StrReplaceAll(helper, {{"$t", t},
                                               {"$u", u},
                                               {"$bits", absl::StrCat(bits)},
                                               {"$half", absl::StrCat(bits / 2)},
                                               {"$nan", absl::StrCat(t, "(uintBitsToFloat(0x7fc00000u))")}}));
}

std::string GlslExpr::ToFloat(const std::string& text, DType from, DType to) {
  if (!Half(to)) {
    if (Pair(from)) return absl::StrCat("agc_", Name(to), Sign(from), "(", text, ")");
    const bool same = GlslType(from) == GlslType(to);
    return same ? text : absl::StrCat(GlslType(to), "(", text, ")");
  }
  std::string x = text;
  const bool exact = SizeOf(from) < 4 || from == DType::kF32;
  if (!exact && !Pair(from)) Need(IsFloat(from) ? kStickyFloatGlsl : kStickyIntGlsl, from);
  if (Pair(from)) {
    x = absl::StrCat("agc_sticky", Sign(from), "(", text, ")");
  } else if (!IsFloat(from) || !exact) {
    x = absl::StrCat(exact ? "float(" : "agc_sticky(", text, ")");
  }
  Need(to == DType::kF16 ? kF16Glsl : kBf16Glsl, to);
  return absl::StrCat(to == DType::kF16 ? "agc_f16(" : "agc_bf16(", x, ")");
}

// From a float: truncates and saturates; NaN gives 0. From an integer: wraps.
std::string GlslExpr::ToInt(const std::string& text, DType from, DType to) {
  if (Pair(to)) return ToPair(text, from, to);
  const int bits = static_cast<int>(SizeOf(to)) * 8;
  const std::string low = Pair(from) ? absl::StrCat(Wrapped(text), ".x") : text;
  const std::string cast = absl::StrCat(GlslType(to), "(", low, ")");
  if (IsFloat(from)) {
    const std::string x = Wrapped(text);
    const double hi = std::ldexp(1.0, IsSigned(to) ? bits - 1 : bits), lo = IsSigned(to) ? -hi : 0;
    const uint64_t most = ~uint64_t{0} >> (64 - bits + (IsSigned(to) ? 1 : 0)), least = IsSigned(to) ? ~most : 0;
    const std::string top = Constant(Scalar::Int(to, static_cast<int64_t>(most)));
    const std::string bottom = Constant(Scalar::Int(to, static_cast<int64_t>(least)));
    return absl::StrCat(x, " >= ", Constant(Scalar::Float(from, hi)), " ? ", top, " : ", x, " > ",
                        Constant(Scalar::Float(from, lo)), " ? ", cast, " : isnan(", text, ") ? ",
                        Constant(Scalar::Int(to, 0)), " : ", bottom);
  }
  if (from == DType::kBool || bits >= 32) return cast;
  if (!IsSigned(to)) return absl::StrFormat("%s & 0x%xu", cast, (1u << bits) - 1);
  return absl::StrFormat("bitfieldExtract(%s, 0, %d)", cast, bits);
}

std::string GlslExpr::ToPair(const std::string& text, DType from, DType to) {
  if (Pair(from)) return text;
  if (IsFloat(from)) return absl::StrCat(IsSigned(to) ? "agc_i64" : "agc_u64", "(", text, ")");
  return IsSigned(from) ? absl::StrCat("agc_wide(", text, ")") : absl::StrCat("uvec2(", text, ", 0u)");
}

std::string GlslExpr::Convert(absl::string_view text, DType from, DType to) {
  if (from == to) return std::string(text);
  if (Pair(from) || Pair(to)) {
    helpers_.insert(std::string(PairFunctions()));
    if (from == DType::kF64 || to == DType::kF64) helpers_.insert(std::string(PairDoubleFunctions()));
  }
  if (to == DType::kBool) return absl::StrCat(Wrapped(std::string(text)), " != ", Constant(Scalar::Of(from, 0)));
  return IsFloat(to) ? ToFloat(std::string(text), from, to) : ToInt(std::string(text), from, to);
}

std::string GlslExpr::Stored(size_t param) const {
  const KernelParam& p = kernel_.params[param];
  if (lanes_[param] > 1) return GlslVector(p.stored, lanes_[param]);
  return p.packed ? "uint" : Pair(p.stored) ? "uvec2" : std::string(GlslStored(p.stored));
}

std::string GlslExpr::Load(uint32_t param, ExprId index) {
  const KernelParam& p = kernel_.params[param];
  const DType t = p.stored;
  if (!p.packed) {
    const std::string text = Element(param, Print(index));
    if (t == DType::kBF16) return absl::StrCat("uintBitsToFloat(uint(", text, ") << 16)");
    if (t == DType::kBool) return absl::StrCat("uint(", text, ") != 0u");
    return GlslStored(t) == GlslType(t) ? text : absl::StrCat(GlslType(t), "(", text, ")");
  }
  const int per_word = static_cast<int>(4 / SizeOf(t)), bits = 32 / per_word;
  const std::string i = Atom(index);
  const std::string word = Element(param, absl::StrCat(i, " / ", per_word, "u"));
  const std::string field = absl::StrFormat("bitfieldExtract(%s(%s), int(%s %% %du) * %d, %d)",
                                            IsSigned(t) ? "int" : "uint", word, i, per_word, bits, bits);
  if (t == DType::kBF16) return absl::StrCat("uintBitsToFloat(", field, " << 16)");
  if (t == DType::kBool) return absl::StrCat(field, " != 0u");
  if (t != DType::kF16) return field;
  Need(kHalfGlsl, t);
  return absl::StrCat("agc_half(", field, ")");
}

std::string GlslExpr::Store(uint32_t param, ExprId index, const std::string& value) {
  const KernelParam& p = kernel_.params[param];
  const DType t = p.stored;
  if (!p.packed) {
    const std::string place = Element(param, Print(index));
    if (t == DType::kBF16) return absl::StrCat(place, " = uint16_t(floatBitsToUint(", value, ") >> 16);");
    if (t == DType::kBool) return absl::StrCat(place, " = uint8_t(uint(", value, "));");
    const bool same = GlslStored(t) == GlslType(t);
    return absl::StrCat(place, " = ", same ? value : absl::StrCat(GlslStored(t), "(", value, ")"), ";");
  }
  const int per_word = static_cast<int>(4 / SizeOf(t)), bits = 32 / per_word;
  const std::string i = Atom(index), mask = absl::StrFormat("0x%xu", (uint64_t{1} << bits) - 1);
  const std::string place = Element(param, absl::StrCat(i, " / ", per_word, "u"));
  const std::string shift = absl::StrCat("(", i, " % ", per_word, "u) * ", bits, "u");
  if (t == DType::kF16) Need(kHalfGlsl, t);
  const std::string field = t == DType::kF16    ? absl::StrCat("agc_half_bits(", value, ")")
                            : t == DType::kBF16 ? absl::StrCat("floatBitsToUint(", value, ") >> 16")
                                                : absl::StrCat("uint(", value, ") & ", mask);
  return absl::StrCat("atomicAnd(", place, ", ~(", mask, " << ", shift, ")); atomicOr(", place, ", (", field, ") << ",
                      shift, ");");
}

std::string GlslExpr::Bitcast(absl::string_view text, DType from, DType to) {
  if (IsInt(from) && IsInt(to)) return Convert(text, from, to);
  const auto call = [&](absl::string_view f) { return absl::StrCat(f, "(", text, ")"); };
  const DType integer = IsInt(from) ? from : to;
  switch (IsInt(from) ? to : from) {
    case DType::kF64:
      if (Pair(integer)) return call(from == integer ? "packDouble2x32" : "unpackDouble2x32");
      if (from == integer) return call(IsSigned(integer) ? "int64BitsToDouble" : "uint64BitsToDouble");
      return call(IsSigned(integer) ? "doubleBitsToInt64" : "doubleBitsToUint64");
    case DType::kF32:
      if (from == integer) return call(IsSigned(integer) ? "intBitsToFloat" : "uintBitsToFloat");
      return call(IsSigned(integer) ? "floatBitsToInt" : "floatBitsToUint");
    case DType::kF16:  // the lower half of a word
      if (from == integer) return absl::StrCat("unpackHalf2x16(uint(", text, ")).x");
      return Convert(absl::StrCat("packHalf2x16(vec2(", text, ", 0.0))"), DType::kU32, to);
    default:  // bf16: the upper half of an f32
      if (from == integer) return absl::StrCat("uintBitsToFloat(uint(", text, ") << 16)");
      return Convert(absl::StrCat("floatBitsToUint(", text, ") >> 16"), DType::kU32, to);
  }
}

}  // namespace agc
