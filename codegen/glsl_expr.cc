#include "codegen/glsl_expr.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace agc {
namespace {

bool Simple(absl::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (depth == 0 && (c == ' ' || c == '?' || (c == '-' && i == 0) || c == '!')) return false;
  }
  return true;
}

std::string Wrapped(std::string text) { return Simple(text) ? text : absl::StrCat("(", text, ")"); }

}  // namespace

absl::string_view GlslType(DType t) {
  static constexpr absl::string_view kTypes[] = {"double", "float",    "float", "float", "int64_t", "int",  "int",
                                                 "int",    "uint64_t", "uint",  "uint",  "uint",    "bool", "uint"};
  return kTypes[static_cast<int>(t)];
}

absl::string_view GlslStored(DType t) {
  static constexpr absl::string_view kTypes[] = {"double",   "float",   "float16_t", "uint16_t", "int64_t",
                                                 "int",      "int16_t", "int8_t",    "uint64_t", "uint",
                                                 "uint16_t", "uint8_t", "uint8_t",   "uint"};
  return kTypes[static_cast<int>(t)];
}

std::string GlslName(absl::string_view name) {
  static constexpr absl::string_view kWords[] = {
      "active",  "attribute", "bool",      "break",  "buffer",     "case",     "common",   "const",  "continue",
      "default", "discard",   "do",        "double", "else",       "filter",   "flat",     "float",  "for",
      "half",    "highp",     "if",        "image",  "in",         "inout",    "input",    "int",    "invariant",
      "layout",  "long",      "lowp",      "main",   "mediump",    "out",      "output",   "packed", "partition",
      "patch",   "precise",   "precision", "public", "resource",   "restrict", "return",   "sample", "shared",
      "short",   "smooth",    "static",    "struct", "subroutine", "switch",   "texture",  "this",   "uint",
      "uniform", "union",     "unsigned",  "using",  "varying",    "void",     "volatile", "while"};
  std::string out;
  for (char c : name) {
    const bool letter = absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter || (!out.empty() && out.back() != '_')) out += letter ? c : '_';
  }
  if (out.empty() || absl::ascii_isdigit(static_cast<unsigned char>(out[0])) != 0) out = "v" + out;
  const bool taken = std::find(std::begin(kWords), std::end(kWords), out) != std::end(kWords) ||
                     out.rfind("gl_", 0) == 0 || out.rfind("agc_", 0) == 0;
  return taken ? out + "_v" : out;
}

std::string GlslConstant(Scalar v) {
  switch (v.dtype) {
    case DType::kBool:
      return v.i() != 0 ? "true" : "false";
    case DType::kF64: {
      if (!std::isfinite(v.f())) return absl::StrFormat("uint64BitsToDouble(0x%xul)", v.bits);
      std::string text = absl::StrFormat("%.17g", v.f());
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text + "lf";
    }
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: {
      const float f = static_cast<float>(v.f());
      if (!std::isfinite(f) || (f == 0 && std::signbit(f)))
        return absl::StrFormat("uintBitsToFloat(0x%08xu)", std::bit_cast<uint32_t>(f));
      std::string text = ToString(Scalar::Float(DType::kF32, f));
      if (text.find_first_of(".e") == std::string::npos) text += ".0";
      return text;
    }
    case DType::kI64:
      return v.i() == INT64_MIN ? "(-9223372036854775807l - 1l)" : absl::StrCat(v.i(), "l");
    case DType::kU64:
      return absl::StrFormat("%uul", v.bits);
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
      return v.i() == INT32_MIN ? "(-2147483647 - 1)" : absl::StrCat(v.i());
    default:
      return absl::StrCat(static_cast<uint32_t>(v.i()), "u");
  }
}

namespace {

// A float of 32 bits that rounds to a narrower one as the operand does: its last bit says whether bits were lost.
constexpr absl::string_view kStickyFloatGlsl = R"(float agc_sticky(double x) {
  float f = float(x);
  double lost = x - double(f);
  uint bits = floatBitsToUint(f);
  if (lost == 0.0 || isnan(f) || isinf(f) || (bits & 1u) != 0u) return f;
  if (f == 0.0) return lost > 0.0 ? uintBitsToFloat(1u) : uintBitsToFloat(0x80000001u);
  return uintBitsToFloat((lost > 0.0) == (f > 0.0) ? bits + 1u : bits - 1u);
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

bool Half(DType t) { return t == DType::kF16 || t == DType::kBF16; }

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
    const bool same = GlslType(from) == GlslType(to);
    return same ? text : absl::StrCat(GlslType(to), "(", text, ")");
  }
  std::string x = text;
  const bool exact = SizeOf(from) < 4 || from == DType::kF32;
  if (!exact) Need(IsFloat(from) ? kStickyFloatGlsl : kStickyIntGlsl, from);
  if (!IsFloat(from) || !exact) x = absl::StrCat(exact ? "float(" : "agc_sticky(", text, ")");
  Need(to == DType::kF16 ? kF16Glsl : kBf16Glsl, to);
  return absl::StrCat(to == DType::kF16 ? "agc_f16(" : "agc_bf16(", x, ")");
}

// From a float: truncates and saturates; NaN gives 0. From an integer: wraps.
std::string GlslExpr::ToInt(const std::string& text, DType from, DType to) {
  const int bits = static_cast<int>(SizeOf(to)) * 8;
  const std::string cast = absl::StrCat(GlslType(to), "(", text, ")");
  if (IsFloat(from)) {
    const std::string x = Wrapped(text);
    const double hi = std::ldexp(1.0, IsSigned(to) ? bits - 1 : bits), lo = IsSigned(to) ? -hi : 0;
    const uint64_t most = ~uint64_t{0} >> (64 - bits + (IsSigned(to) ? 1 : 0)), least = IsSigned(to) ? ~most : 0;
    const std::string top = GlslConstant(Scalar::Int(to, static_cast<int64_t>(most)));
    const std::string bottom = GlslConstant(Scalar::Int(to, static_cast<int64_t>(least)));
    return absl::StrCat(x, " >= ", GlslConstant(Scalar::Float(from, hi)), " ? ", top, " : ", x, " > ",
                        GlslConstant(Scalar::Float(from, lo)), " ? ", cast, " : isnan(", text, ") ? ",
                        GlslConstant(Scalar::Int(to, 0)), " : ", bottom);
  }
  if (from == DType::kBool || bits >= 32) return cast;
  if (!IsSigned(to)) return absl::StrFormat("%s & 0x%xu", cast, (1u << bits) - 1);
  return absl::StrFormat("bitfieldExtract(%s, 0, %d)", cast, bits);
}

std::string GlslExpr::Convert(absl::string_view text, DType from, DType to) {
  if (from == to) return std::string(text);
  if (to == DType::kBool) return absl::StrCat(Wrapped(std::string(text)), " != ", GlslConstant(Scalar::Of(from, 0)));
  return IsFloat(to) ? ToFloat(std::string(text), from, to) : ToInt(std::string(text), from, to);
}

std::string GlslExpr::FromStored(absl::string_view text, DType stored) {
  if (stored == DType::kBF16) return absl::StrCat("uintBitsToFloat(uint(", text, ") << 16)");
  if (stored == DType::kBool) return absl::StrCat("uint(", text, ") != 0u");
  return GlslStored(stored) == GlslType(stored) ? std::string(text) : absl::StrCat(GlslType(stored), "(", text, ")");
}

std::string GlslExpr::ToStored(absl::string_view text, DType stored) {
  if (stored == DType::kBF16) return absl::StrCat("uint16_t(floatBitsToUint(", text, ") >> 16)");
  if (stored == DType::kBool) return absl::StrCat("uint8_t(uint(", text, "))");
  return GlslStored(stored) == GlslType(stored) ? std::string(text) : absl::StrCat(GlslStored(stored), "(", text, ")");
}

std::string GlslExpr::Atom(ExprId id) { return Wrapped(Print(id)); }

std::string GlslExpr::Element(uint32_t param, absl::string_view index) const {
  return absl::StrCat(access_[param], "[", index, "]");
}

std::string GlslExpr::AllocElement(uint32_t alloc, const std::vector<ExprId>& index) {
  const Alloc& a = kernel_.allocs[alloc];
  if (a.extents.empty()) return GlslName(a.name);
  std::string flat;
  int64_t known = 0, stride = 1;
  for (size_t i = a.extents.size(); i-- > 0;) {  // row-major, the last row padded by the skew
    const ExprNode& n = kernel_.pool->node(index[i]);
    if (n.kind == ExprKind::kConst) {
      known += n.payload * stride;
    } else {
      absl::StrAppend(&flat, flat.empty() ? "" : " + ", Atom(index[i]),
                      stride == 1 ? "" : absl::StrCat(" * ", stride, "u"));
    }
    stride *= a.extents[i] + (i + 1 == a.extents.size() ? a.skew : 0);
  }
  if (flat.empty() || known != 0) absl::StrAppend(&flat, flat.empty() ? "" : " + ", known, "u");
  return absl::StrCat(GlslName(a.name), "[", flat, "]");
}

std::string GlslExpr::Sum(const ExprNode& n) {
  std::string text;
  const auto term = [&](size_t i, bool positive) {
    const int64_t c = n.coefs[i];
    if ((c > 0) != positive) return;
    const std::string atom = Atom(n.args[i]);
    const std::string product = std::abs(c) == 1 ? atom : absl::StrCat(atom, " * ", std::abs(c), "u");
    absl::StrAppend(&text, text.empty() ? (positive ? "" : "0u - ") : positive ? " + " : " - ", product);
  };
  for (size_t i = 0; i < n.args.size(); ++i) term(i, true);
  for (size_t i = 0; i < n.args.size(); ++i) term(i, false);
  if (n.payload != 0) absl::StrAppend(&text, n.payload > 0 ? " + " : " - ", std::abs(n.payload), "u");
  return text;
}

// Index arithmetic is done in uint, which wraps; only comparisons with negative values look at the sign.
std::string GlslExpr::Index(const ExprNode& n) {
  const std::string x = Atom(n.args[0]);
  const bool negative = kernel_.pool->node(n.args[0]).lo < 0;
  switch (n.kind) {
    case ExprKind::kDiv:
      return absl::StrCat(x, " / ", n.payload, "u");
    case ExprKind::kMod:
      return absl::StrCat(x, " % ", n.payload, "u");
    case ExprKind::kMin:
    case ExprKind::kMax: {
      const absl::string_view f = n.kind == ExprKind::kMin ? "min" : "max";
      return negative ? absl::StrCat("uint(", f, "(int(", x, "), ", n.payload, "))")
                      : absl::StrCat(f, "(", x, ", ", n.payload, "u)");
    }
    case ExprKind::kInRange:
      return absl::StrCat(x, " < ", n.payload, "u");  // a negative index wraps to a large one
    case ExprKind::kNonNeg:
      return absl::StrCat("int(", x, ") >= 0");
    case ExprKind::kEqZero:
      return absl::StrCat(x, " == 0u");
    default:
      return "";
  }
}

std::string GlslExpr::Call(const ExprNode& n) {
  const ScalarOp& op = ScalarOps()[n.ref];
  const DType typed = kernel_.pool->node(n.args[op.typing == ScalarTyping::kSelect ? 1 : 0]).dtype;
  const absl::string_view form = !IsFloat(typed) && !op.glsl_int.empty() ? op.glsl_int : op.glsl;
  const bool integers = !IsFloat(typed);
  const absl::string_view helper = integers && !op.glsl_int_helper.empty() ? op.glsl_int_helper : op.glsl_helper;
  if (!helper.empty() && form.find("agc_") != absl::string_view::npos) Need(helper, typed);
  if (typed == DType::kF64 && !op.glsl_f64 && unsupported_.empty())
    unsupported_ = absl::StrCat(op.name, " on ", agc::Name(typed));
  std::vector<std::pair<std::string, std::string>> parts;
  const bool call = form.find('(') != absl::string_view::npos && form[0] != '$';
  for (size_t i = 0; i < n.args.size(); ++i)
    parts.emplace_back(absl::StrCat("$", i), call ? Print(n.args[i]) : Atom(n.args[i]));
  parts.emplace_back("$t", std::string(GlslType(typed)));
  const std::string text = absl::StrReplaceAll(form, parts);
  // Narrow integers are computed in 32 bits; every result wraps, as its evaluator's does.
  const bool narrow = op.typing == ScalarTyping::kSame && IsInt(n.dtype) && SizeOf(n.dtype) < 4;
  return narrow ? Convert(text, IsSigned(n.dtype) ? DType::kI32 : DType::kU32, n.dtype) : text;
}

std::string GlslExpr::Print(ExprId id) {
  const ExprNode& n = kernel_.pool->node(id);
  switch (n.kind) {
    case ExprKind::kConst:
      return n.dtype == DType::kIndex ? absl::StrCat(static_cast<uint32_t>(n.payload), "u")
                                      : GlslConstant({n.dtype, static_cast<uint64_t>(n.payload)});
    case ExprKind::kVar:
      return GlslName(kernel_.pool->var(n.ref).name);
    case ExprKind::kLin:
      return Sum(n);
    case ExprKind::kDiv:
    case ExprKind::kMod:
    case ExprKind::kMin:
    case ExprKind::kMax:
    case ExprKind::kInRange:
    case ExprKind::kNonNeg:
    case ExprKind::kEqZero:
      return Index(n);
    case ExprKind::kAnd: {
      std::string all = Atom(n.args[0]);
      for (size_t i = 1; i < n.args.size(); ++i) absl::StrAppend(&all, " && ", Atom(n.args[i]));
      return all;
    }
    case ExprKind::kLoad: {
      const DType stored = kernel_.params[n.ref].stored;
      const std::string value = Convert(FromStored(Element(n.ref, Print(n.args[0])), stored), stored, n.dtype);
      const ExprNode& guard = kernel_.pool->node(n.args.back());
      if (guard.kind == ExprKind::kConst && guard.payload == 1) return value;
      return absl::StrCat(Atom(n.args.back()), " ? ", Wrapped(value), " : ", GlslConstant(Scalar::Of(n.dtype, 0)));
    }
    case ExprKind::kAllocLoad:
      return AllocElement(n.ref, {n.args.begin(), n.args.end()});
    case ExprKind::kAlu:
      return Call(n);
    case ExprKind::kCast:
      return Convert(Print(n.args[0]), kernel_.pool->node(n.args[0]).dtype, n.dtype);
    case ExprKind::kFromIndex:
      return absl::StrCat(GlslType(n.dtype), "(", IsSigned(n.dtype) ? "int(" : "", Print(n.args[0]),
                          IsSigned(n.dtype) ? ")" : "", ")");
    case ExprKind::kToIndex:
      return absl::StrCat("uint(", Print(n.args[0]), ")");
    case ExprKind::kLane:
      return absl::StrCat(Atom(n.args[0]), ".", std::string(1, "xyzw"[n.payload]));
    case ExprKind::kVec: {
      std::string all;
      for (ExprId a : n.args) absl::StrAppend(&all, all.empty() ? "" : ", ", Print(a));
      return absl::StrCat(n.dtype == DType::kF32 ? "vec" : "uvec", n.lanes, "(", all, ")");
    }
    case ExprKind::kStage:
      return "";
  }
  return "";
}

}  // namespace agc
