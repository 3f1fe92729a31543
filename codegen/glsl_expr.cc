#include "codegen/glsl_expr.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "codegen/glsl_int64.h"

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

}  // namespace

std::string Wrapped(std::string text) { return Simple(text) ? text : absl::StrCat("(", text, ")"); }

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

std::string GlslVector(DType t, int lanes) {
  if (lanes == 1) return std::string(GlslType(t));
  return absl::StrCat(t == DType::kF32 ? "vec" : t == DType::kI32 ? "ivec" : "uvec", lanes);
}

std::string GlslConstant(Scalar v) {
  switch (v.dtype) {
    case DType::kBool:
      return v.i() != 0 ? "true" : "false";
    case DType::kF64: {
      if (!std::isfinite(v.f())) return absl::StrCat("double(", GlslConstant(Scalar::Float(DType::kF32, v.f())), ")");
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
// The widest access of every parameter and of every alloc.
void FindLanes(const Kernel& kernel, const std::vector<Stmt>& body, std::vector<int>& params,
               std::vector<int>& allocs) {
  const auto widen = [](int& lanes, int to) { lanes = std::max(lanes, to); };
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::kStore) widen((s.to_alloc ? allocs : params)[s.target], kernel.pool->node(s.value).lanes);
    for (ExprId id : ExprsOf(s)) {
      for (Expr e : PostOrder(kernel.pool->at(id))) {
        if (e.is(ExprKind::kLoad)) widen(params[e.node().ref], e.lanes());
        if (e.is(ExprKind::kAllocLoad)) widen(allocs[e.node().ref], e.lanes());
      }
    }
    FindLanes(kernel, s.body, params, allocs);
    FindLanes(kernel, s.otherwise, params, allocs);
  }
}
}  // namespace

GlslExpr::GlslExpr(const Kernel& kernel, const GlslNames& names, std::vector<std::string> access)
    : kernel_(kernel),
      names_(names),
      access_(std::move(access)),
      lanes_(kernel.params.size(), 1),
      alloc_lanes_(kernel.allocs.size(), 1) {
  for (const KernelPart& part : kernel.parts) FindLanes(kernel, part.body, lanes_, alloc_lanes_);
}

std::string GlslExpr::Atom(ExprId id) { return Wrapped(Print(id)); }

std::string GlslExpr::Type(DType t, int lanes) const {
  return Pair(t) ? "uvec2" : lanes > 1 ? GlslVector(t, lanes) : std::string(GlslType(t));
}

std::string GlslExpr::Constant(Scalar v) const {
  if (!Pair(v.dtype)) return GlslConstant(v);
  return absl::StrFormat("uvec2(0x%xu, 0x%xu)", v.bits & 0xffffffffu, v.bits >> 32);
}

std::string GlslExpr::Element(uint32_t param, absl::string_view index) const {
  const int lanes = lanes_[param];
  if (lanes == 1) return absl::StrCat(access_[param], "[", index, "]");
  const std::string i = Wrapped(std::string(index));
  return absl::StrCat(access_[param], "[", i, " / ", lanes, "u][", i, " % ", lanes, "u]");
}

std::string GlslExpr::LoadVector(uint32_t param, ExprId index, int lanes) {
  if (lanes == lanes_[param])
    return absl::StrCat(access_[param], "[", Print(Div(kernel_.pool->at(index), lanes).id), "]");
  std::string all;
  for (int j = 0; j < lanes; ++j)
    absl::StrAppend(&all, j == 0 ? "" : ", ", Element(param, absl::StrCat(Print(index), " + ", j, "u")));
  return absl::StrCat(GlslVector(kernel_.params[param].stored, lanes), "(", all, ")");
}

std::string GlslExpr::StoreVector(uint32_t param, ExprId index, ExprId value) {
  const int lanes = kernel_.pool->node(value).lanes;
  if (lanes == lanes_[param]) {
    const std::string vector = Print(Div(kernel_.pool->at(index), lanes).id);
    return absl::StrCat(access_[param], "[", vector, "] = ", Print(value), ";");
  }
  std::string all;
  for (int j = 0; j < lanes; ++j) {
    const std::string place = Element(param, absl::StrCat(Print(index), " + ", j, "u"));
    absl::StrAppend(&all, j == 0 ? "" : " ", place, " = ", Print(Lane(kernel_.pool->at(value), j).id), ";");
  }
  return all;
}

std::string GlslExpr::AllocType(uint32_t alloc) const { return Type(kernel_.allocs[alloc].dtype, alloc_lanes_[alloc]); }

// Row-major, the last row padded by the skew; in units of `lanes` elements, which rows are whole multiples of.
std::string GlslExpr::AllocIndex(uint32_t alloc, absl::Span<const ExprId> index, int lanes) {
  const Alloc& a = kernel_.allocs[alloc];
  std::string flat;
  int64_t known = 0, stride = 1;
  for (size_t i = a.extents.size(); i-- > 0;) {
    const Expr e = kernel_.pool->at(index[i]), at = i + 1 == a.extents.size() && lanes > 1 ? Div(e, lanes) : e;
    if (at.IsConst()) {
      known += at.node().payload * stride;
    } else {
      absl::StrAppend(&flat, flat.empty() ? "" : " + ", Atom(at.id),
                      stride == 1 ? "" : absl::StrCat(" * ", stride, "u"));
    }
    stride *= i + 1 == a.extents.size() ? (a.extents[i] + a.skew) / lanes : a.extents[i];
  }
  if (flat.empty() || known != 0) absl::StrAppend(&flat, flat.empty() ? "" : " + ", known, "u");
  return flat;
}

std::string GlslExpr::AllocElement(uint32_t alloc, absl::Span<const ExprId> index) {
  if (kernel_.allocs[alloc].extents.empty()) return names_.alloc(alloc);
  const int lanes = alloc_lanes_[alloc];
  const std::string vector = absl::StrCat(names_.alloc(alloc), "[", AllocIndex(alloc, index, lanes), "]");
  if (lanes == 1) return vector;
  return absl::StrCat(vector, "[", Print(Mod(kernel_.pool->at(index.back()), lanes).id), "]");
}

std::string GlslExpr::LoadAllocVector(uint32_t alloc, absl::Span<const ExprId> index, int lanes) {
  if (lanes == alloc_lanes_[alloc]) return absl::StrCat(names_.alloc(alloc), "[", AllocIndex(alloc, index, lanes), "]");
  std::string all;
  std::vector<ExprId> place(index.begin(), index.end());
  for (int j = 0; j < lanes; ++j) {
    place.back() = (kernel_.pool->at(index.back()) + j).id;
    absl::StrAppend(&all, j == 0 ? "" : ", ", AllocElement(alloc, place));
  }
  return absl::StrCat(GlslVector(kernel_.allocs[alloc].dtype, lanes), "(", all, ")");
}

std::string GlslExpr::StoreAllocVector(uint32_t alloc, absl::Span<const ExprId> index, ExprId value) {
  const int lanes = kernel_.pool->node(value).lanes;
  if (lanes == alloc_lanes_[alloc])
    return absl::StrCat(names_.alloc(alloc), "[", AllocIndex(alloc, index, lanes), "] = ", Print(value), ";");
  std::string all;
  std::vector<ExprId> place(index.begin(), index.end());
  for (int j = 0; j < lanes; ++j) {
    place.back() = (kernel_.pool->at(index.back()) + j).id;
    absl::StrAppend(&all, j == 0 ? "" : " ", AllocElement(alloc, place), " = ",
                    Print(Lane(kernel_.pool->at(value), j).id), ";");
  }
  return all;
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

// An index that may be negative is taken for signed, which wider types extend.
std::string GlslExpr::FromIndex(const ExprNode& n) {
  const ExprNode& x = kernel_.pool->node(n.args[0]);
  const std::string text = Print(n.args[0]);
  if (x.lo < 0 && SizeOf(n.dtype) == 8) return Convert(absl::StrCat("int(", text, ")"), DType::kI32, n.dtype);
  const bool held = Scalar::Int(n.dtype, x.lo).i() == x.lo && Scalar::Int(n.dtype, x.hi).i() == x.hi;
  if (Pair(n.dtype) || !held) return Convert(text, DType::kU32, n.dtype);
  return absl::StrCat(GlslType(n.dtype), "(", text, ")");
}

std::string GlslExpr::Call(const ExprNode& n) {
  const ScalarOp& op = ScalarOps()[n.ref];
  const DType typed = kernel_.pool->node(n.args[op.typing == ScalarTyping::kSelect ? 1 : 0]).dtype;
  absl::string_view form = !IsFloat(typed) && !op.glsl_int.empty() ? op.glsl_int : op.glsl;
  if (Pair(typed)) {
    form = PairSpelling(op.name);
    helpers_.insert(std::string(PairFunctions()));
  }
  const absl::string_view helper = !IsFloat(typed) && !op.glsl_int_helper.empty() ? op.glsl_int_helper : op.glsl_helper;
  if (!Pair(typed) && !helper.empty() && form.find("agc_") != absl::string_view::npos) Need(helper, typed);
  if ((form.empty() || (typed == DType::kF64 && !op.glsl_f64)) && unsupported_.empty())
    unsupported_ = absl::StrCat(op.name, " on ", agc::Name(typed), Pair(typed) ? " in pairs" : "");
  std::vector<std::pair<std::string, std::string>> parts;
  const bool call = form.find('(') != absl::string_view::npos && form[0] != '$';
  for (size_t i = 0; i < n.args.size(); ++i)
    parts.emplace_back(absl::StrCat("$", i), call ? Print(n.args[i]) : Atom(n.args[i]));
  parts.emplace_back("$t", Type(typed));
  parts.emplace_back("$s", IsSigned(typed) ? "i" : "u");
  const std::string text = absl::StrReplaceAll(form, parts);
  // Narrow integers are computed in 32 bits; every result wraps, as its evaluator's does.
  const bool narrow = op.typing == ScalarTyping::kSame && IsInt(n.dtype) && SizeOf(n.dtype) < 4;
  return narrow ? Convert(text, IsSigned(n.dtype) ? DType::kI32 : DType::kU32, n.dtype) : text;
}

std::string GlslExpr::Print(ExprId id) {
  const ExprNode n = kernel_.pool->node(id);  // NOLINT(performance-unnecessary-copy-initialization): the pool grows
  switch (n.kind) {
    case ExprKind::kConst:
      return n.dtype == DType::kIndex ? absl::StrCat(static_cast<uint32_t>(n.payload), "u")
                                      : Constant({n.dtype, static_cast<uint64_t>(n.payload)});
    case ExprKind::kVar:
      return names_.var(n.ref);
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
      const std::string value = n.lanes > 1 ? LoadVector(n.ref, n.args[0], n.lanes)
                                            : Convert(Load(n.ref, n.args[0]), kernel_.params[n.ref].stored, n.dtype);
      if (kernel_.pool->at(n.args.back()).IsTrue()) return value;
      return absl::StrCat(Atom(n.args.back()), " ? ", Wrapped(value), " : ",
                          n.lanes > 1 ? absl::StrCat(Type(n.dtype, n.lanes), "(0)") : Constant(Scalar::Of(n.dtype, 0)));
    }
    case ExprKind::kAllocLoad:
      return n.lanes > 1 ? LoadAllocVector(n.ref, n.args, n.lanes) : AllocElement(n.ref, n.args);
    case ExprKind::kAlu:
      return Call(n);
    case ExprKind::kCast:
      return Convert(Print(n.args[0]), kernel_.pool->node(n.args[0]).dtype, n.dtype);
    case ExprKind::kBitcast:
      return Bitcast(Print(n.args[0]), kernel_.pool->node(n.args[0]).dtype, n.dtype);
    case ExprKind::kFromIndex:
      return FromIndex(n);
    case ExprKind::kToIndex:
      return Pair(kernel_.pool->node(n.args[0]).dtype) ? absl::StrCat(Atom(n.args[0]), ".x")
                                                       : absl::StrCat("uint(", Print(n.args[0]), ")");
    case ExprKind::kLane:
      return absl::StrCat(Atom(n.args[0]), ".", std::string(1, "xyzw"[n.payload]));
    case ExprKind::kVec: {
      std::string all;
      for (ExprId a : n.args) absl::StrAppend(&all, all.empty() ? "" : ", ", Print(a));
      return absl::StrCat(GlslVector(n.dtype, n.lanes), "(", all, ")");
    }
    case ExprKind::kStage:
      return "";
  }
  return "";
}

}  // namespace agc
