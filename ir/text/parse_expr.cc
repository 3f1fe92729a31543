#include "ir/text/parse_expr.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ir/text/parse_index.h"

namespace agc::text {
namespace {

// An operand: an expression, or a literal that still waits for its dtype.
struct Term {
  Expr e = {};
  Token literal = {};
  bool is_literal = false, negative = false;
  Loc loc = {};
};

class ExprParser {
 public:
  ExprParser(Cursor& c, ExprScope& scope) : c_(c), scope_(scope), pool_(*scope.pool) {}

  Expr Parse(std::optional<DType> expected) {
    const Term t = Or();
    if (t.is_literal && !expected.has_value()) return Untyped(t);
    return t.is_literal ? As(t, *expected) : t.e;
  }
  Expr Nothing() { return pool_.Int(0); }

  Expr ParseTyped(DType dtype) {
    const Term t = Or();
    return As(t, dtype);
  }

 private:
  Expr Fail(Loc loc, absl::string_view message) {
    c_.Fail(loc, message);
    return Nothing();
  }
  Expr Untyped(const Term& t) {
    return Fail(t.loc, absl::StrCat("the literal ", t.literal.text, " needs a type here, for example f32(",
                                    t.literal.text, ")"));
  }
  Term Done(Expr e, Loc loc) { return {.e = e, .loc = loc}; }

  // The term as an expression of `dtype`.
  Expr As(const Term& t, DType dtype) {
    if (!c_.ok()) return Nothing();
    if (!t.is_literal) {
      if (t.e.dtype() == dtype) return t.e;
      const absl::string_view hint = dtype == DType::kIndex ? "; make an index with index(value, lowest, highest)"
                                     : t.e.dtype() == DType::kIndex ? "; make a value with i32(index)"
                                                                    : "; convert with cast<type>(value)";
      return Fail(t.loc, absl::StrCat("expected ", Name(dtype), ", found ", Name(t.e.dtype()), hint));
    }
    const Scalar value = c_.ToScalar(t.literal, t.negative, dtype);
    if (dtype == DType::kIndex && (value.i() > kMaxInt || value.i() < -kMaxInt))
      return Fail(t.loc, "the index is too large");
    return c_.ok() ? pool_.Const(value) : Nothing();
  }

  // The dtype that operands share: that of the first which has one; index where all are literals without a fraction.
  std::optional<DType> Common(absl::Span<const Term> terms) {
    for (const Term& t : terms) {
      if (!t.is_literal) return t.e.dtype();
    }
    for (const Term& t : terms) {
      if (t.literal.kind != TokenKind::kInt) {
        Untyped(t);
        return std::nullopt;
      }
    }
    return DType::kIndex;
  }

  Term Or() {
    Term a = And();
    while (c_.Accept("|")) {
      const Term b = And();
      a = Done(Apply(*FindScalarOp("or"), {a, b}, a.loc), a.loc);
    }
    return a;
  }

  Term And() {
    Term a = Comparison();
    while (c_.Accept("&")) {
      const Term b = Comparison();
      const Expr x = As(a, DType::kBool), y = As(b, DType::kBool);
      if (!c_.ok()) return Done(Nothing(), a.loc);
      a = Done(agc::And(x, y), a.loc);
    }
    return a;
  }

  const ScalarOp* ComparisonOp() const {
    for (const ScalarOp& op : ScalarOps()) {
      if (op.typing == ScalarTyping::kCompare && !op.infix.empty() && c_.Is(op.infix)) return &op;
    }
    return nullptr;
  }

  Term Comparison() {
    const Term a = Sum();
    const ScalarOp* op = ComparisonOp();
    if (op == nullptr) return a;
    c_.Take();
    const Term b = Sum();
    const bool chain = op->name == "le" && c_.Accept("<");
    if (chain) return Done(Range(a, b, Sum()), a.loc);
    const std::optional<DType> dtype = Common({a, b});
    if (!dtype.has_value() || !c_.ok()) return Done(Nothing(), a.loc);
    if (*dtype != DType::kIndex) return Done(Apply(*op, {a, b}, a.loc), a.loc);
    const Expr x = As(a, DType::kIndex), y = As(b, DType::kIndex);
    return Done(c_.ok() ? CompareIndices(*op, x, y) : Nothing(), a.loc);
  }

  // lo <= x < hi
  Expr Range(const Term& a, const Term& b, const Term& d) {
    const Expr lo = As(a, DType::kIndex), x = As(b, DType::kIndex), hi = As(d, DType::kIndex);
    if (!c_.ok()) return Nothing();
    if (!lo.IsConst() || !hi.IsConst()) return Fail(a.loc, "the bounds of lo <= x < hi are constants");
    return InRange(x - lo, hi.node().payload - lo.node().payload);
  }

  Term Sum() {
    Term a = Product();
    while (c_.Is("+") || c_.Is("-")) {
      const bool plus = c_.Take().text == "+";
      const Term b = Product();
      a = Done(Arithmetic(plus ? "add" : "sub", a, b), a.loc);
    }
    return a;
  }

  Term Product() {
    Term a = Unary();
    while (c_.Is("*") || c_.Is("/") || c_.Is("%")) {
      const std::string op = c_.Take().text;
      const Term b = Unary();
      a = Done(Arithmetic(op == "*" ? "mul" : op == "/" ? "div" : "rem", a, b), a.loc);
    }
    return a;
  }

  Expr Arithmetic(absl::string_view name, const Term& a, const Term& b) {
    const std::optional<DType> dtype = c_.ok() ? Common({a, b}) : std::nullopt;
    if (!dtype.has_value()) return Nothing();
    if (*dtype != DType::kIndex) return Apply(*FindScalarOp(name), {a, b}, a.loc);
    const Expr x = As(a, DType::kIndex), y = As(b, DType::kIndex);
    if (!c_.ok()) return Nothing();
    return IndexArithmetic(c_, name, x, y, a.loc);
  }

  Term Unary() {
    const Loc here = c_.loc();
    if (!c_.Accept("-")) return Primary();
    c_.Enter();
    Term t = Unary();
    c_.Leave();
    t.loc = here;
    if (!c_.ok()) return Done(Nothing(), here);
    if (t.is_literal) {
      t.negative = !t.negative;
      return t;
    }
    return Done(t.e.dtype() == DType::kIndex ? IndexArithmetic(c_, "mul", t.e, pool_.Int(-1), here)
                                             : Apply(*FindScalarOp("neg"), {t}, here),
                here);
  }

  Term Primary() {
    const Loc here = c_.loc();
    c_.Enter();
    Term t = c_.ok() ? PrimaryInside(here) : Term();
    c_.Leave();
    if (!c_.ok()) return Done(Nothing(), here);
    return t;
  }

  Term PrimaryInside(Loc here) {
    switch (c_.Peek().kind) {
      case TokenKind::kInt:
      case TokenKind::kFloat: {
        const Term number{.literal = c_.Take(), .is_literal = true, .loc = here};
        const Token& next = c_.Peek();
        if (next.kind != TokenKind::kIdent || !next.glued) return number;
        return Done(Arithmetic("mul", number, Primary()), here);
      }
      case TokenKind::kIdent:
        return Named(here);
      case TokenKind::kValue:
        return Done(Read(here), here);
      case TokenKind::kDollar: {
        const auto it = scope_.shared.find(c_.Take().text);
        return Done(it != scope_.shared.end() ? it->second : Fail(here, "unknown shared expression"), here);
      }
      default:
        break;
    }
    if (!c_.Accept("(")) return Done(Fail(here, absl::StrCat("expected an expression, found ", c_.Describe())), here);
    Term t = Or();
    c_.Expect(")");
    return t;
  }

  Term Named(Loc here) {
    const std::string name = c_.Peek().text;
    if (name == "inf" || name == "nan") return {.literal = c_.Take(), .is_literal = true, .loc = here};
    c_.Take();
    if (name == "true" || name == "false") return Done(pool_.Bool(name == "true"), here);
    if (name == "cast" || name == "bitcast") return Done(CastTo(name == "bitcast", here), here);
    if (c_.Accept("(")) return Done(Call(name, here), here);
    const std::optional<VarId> v = FindVar(scope_, name);
    if (v.has_value()) return Done(pool_.Var(*v), here);
    std::vector<std::string> names;
    for (const auto& var : scope_.vars) names.push_back(var.first);
    return Done(Fail(here, absl::StrCat("unknown variable ", name, Nearest(name, names))), here);
  }

  Expr CastTo(bool bits, Loc here) {
    c_.Expect("<");
    const DType to = c_.TypeName("a type");
    c_.Expect(">");
    c_.Expect("(");
    const Expr x = NoIndex(Parse(std::nullopt), c_.loc());
    c_.Expect(")");
    if (c_.ok() && bits && !CanBitcast(x.dtype(), to))
      Fail(here, absl::StrCat("bitcast: ", Name(x.dtype()), " and ", Name(to), " are not numbers of the same size"));
    return !c_.ok() ? Nothing() : bits ? Bitcast(x, to) : Cast(x, to);
  }

  Expr NoIndex(Expr x, Loc loc) {
    return c_.ok() && x.dtype() == DType::kIndex
               ? Fail(loc, "expected a value, found an index; make a value with i32(index)")
               : x;
  }

  Expr Call(const std::string& name, Loc here) {
    if (const std::optional<DType> dtype = DTypeNamed(name); dtype.has_value()) return Typed(*dtype, here);
    if (name == "index") return Index(here);
    if (name == "lane") return LaneOf(here);
    std::vector<Term> args;
    c_.List(")", [&] { args.push_back(Or()); });
    if (!c_.ok()) return Nothing();
    if (name == "vec") return VecOf(args, here);
    const ScalarOp* op = FindScalarOp(name);
    if (op == nullptr) {
      std::vector<std::string> names = {"bitcast", "cast", "index", "lane", "vec"};
      for (const ScalarOp& o : ScalarOps()) names.emplace_back(o.name);
      return Fail(here, absl::StrCat("unknown function ", name, Nearest(name, names)));
    }
    if ((name == "min" || name == "max") && args.size() == 2) {
      const std::optional<DType> dtype = Common(args);
      if (!dtype.has_value()) return Nothing();
      if (*dtype == DType::kIndex) return Bound(name == "min", args, here);
    }
    return Apply(*op, args, here);
  }

  // f32(0.5), or an index as a value: i32(2*p + 1)
  Expr Typed(DType dtype, Loc here) {
    const Term t = Or();
    c_.Expect(")");
    if (t.is_literal) return As(t, dtype);
    const Expr x = As(t, DType::kIndex);
    if (!c_.ok()) return Nothing();
    return dtype == DType::kBool ? Fail(here, "an index is no bool; compare it") : FromIndex(x, dtype);
  }

  Expr Bound(bool min, absl::Span<const Term> args, Loc here) {
    Expr x = As(args[0], DType::kIndex), y = As(args[1], DType::kIndex);
    if (!c_.ok()) return Nothing();
    if (x.IsConst()) std::swap(x, y);
    if (!y.IsConst()) return Fail(here, "min and max of indices take one constant");
    return min ? Min(x, y.node().payload) : Max(x, y.node().payload);
  }

  Expr Index(Loc here) {
    const Expr x = NoIndex(Parse(std::nullopt), here);
    c_.Expect(",");
    const int64_t lo = c_.Int("the lowest index", -kMaxInt, kMaxInt);
    c_.Expect(",");
    const int64_t hi = c_.Int("the highest index", -kMaxInt, kMaxInt);
    c_.Expect(")");
    if (!c_.ok()) return Nothing();
    if (lo > hi) return Fail(here, absl::StrCat("index: the lowest, ", lo, ", is above the highest, ", hi));
    return IsInt(x.dtype()) ? ToIndex(x, lo, hi)
                            : Fail(here, absl::StrCat("index: expected an integer, found ", Name(x.dtype())));
  }

  Expr LaneOf(Loc here) {
    const Expr x = NoIndex(Parse(std::nullopt), here);
    c_.Expect(",");
    const int64_t lane = c_.Int("a lane", 0, 15);
    c_.Expect(")");
    if (!c_.ok()) return Nothing();
    return lane < x.lanes() ? Lane(x, static_cast<int>(lane))
                            : Fail(here, absl::StrCat("lane ", lane, " of ", x.lanes(), " lanes"));
  }

  Expr VecOf(absl::Span<const Term> args, Loc here) {
    const std::optional<DType> dtype = args.empty() ? std::nullopt : Common(args);
    if (!c_.ok() || !dtype.has_value() || *dtype == DType::kIndex || args.size() > 16)
      return Fail(here, "vec takes 1 to 16 values of one type");
    std::vector<Expr> lanes;
    for (const Term& t : args) {
      lanes.push_back(As(t, *dtype));
      if (c_.ok() && lanes.back().lanes() != 1) Fail(here, "vec takes scalars");
    }
    return c_.ok() ? Vec(lanes) : Nothing();
  }

  // A scalar op, checked as its row asks.
  Expr Apply(const ScalarOp& op, absl::Span<const Term> args, Loc here) {
    if (!c_.ok()) return Nothing();
    if (static_cast<int>(args.size()) != op.arity) {
      return Fail(here, absl::StrCat(op.name, ": ", args.size(), " operands given, ", op.arity, " expected"));
    }
    const size_t first = op.typing == ScalarTyping::kSelect ? 1 : 0;
    const std::optional<DType> dtype = Common(args.subspan(first));
    if (!dtype.has_value()) return Nothing();
    if (!Allows(op, *dtype))
      return Fail(here, absl::StrCat(op.name, ": not defined for ", Name(*dtype),
                                     dtype == DType::kIndex ? "; write literals as f32(1)" : ""));
    std::vector<Expr> operands;
    int lanes = 1;
    for (size_t i = 0; i < args.size(); ++i) {
      operands.push_back(As(args[i], i < first ? DType::kBool : *dtype));
      const int n = operands.back().lanes();
      if (n > 1 && lanes > 1 && n != lanes)
        return Fail(here, absl::StrCat(op.name, ": operands have ", lanes, " and ", n, " lanes"));
      lanes = std::max(lanes, n);
    }
    return c_.ok() ? Alu(op, operands) : Nothing();
  }

  static bool Allows(const ScalarOp& op, DType dtype) {
    if (dtype == DType::kIndex || (op.typing == ScalarTyping::kBool && dtype != DType::kBool)) return false;
    switch (op.domain) {
      case ScalarDomain::kFloat:
        return IsFloat(dtype);
      case ScalarDomain::kInt:
        return IsInt(dtype);
      case ScalarDomain::kNumber:
        return IsFloat(dtype) || IsInt(dtype);
      case ScalarDomain::kAny:
        return true;
      case ScalarDomain::kBits:
        return !IsFloat(dtype);
    }
    return false;
  }

  Expr Read(Loc here) {
    const std::string name = c_.Value("a value");
    const auto it = scope_.values.find(name);
    if (!c_.ok()) return Nothing();
    if (it == scope_.values.end()) {
      std::vector<std::string> names;
      for (const auto& [other, value] : scope_.values) names.push_back(other);
      return Fail(here, absl::StrCat("unknown value %", name, Nearest(name, names)));
    }
    const Readable& r = it->second;
    if (r.kind == ExprKind::kStage && !c_.Is("[")) {
      std::vector<Expr> index;
      for (VarId v : r.axes) index.push_back(pool_.Var(v));
      return pool_.Stage(r.ref, index, r.dtype);
    }
    const Place place = ParsePlace(c_, scope_, name, r.rank);
    int lanes = 1;
    if (const Token& t = c_.Peek(); t.kind == TokenKind::kIdent && t.glued && t.text.size() > 1 && t.text[0] == 'x') {
      if (!absl::SimpleAtoi(t.text.substr(1), &lanes) || lanes < 1 || lanes > 16)
        Fail(here, absl::StrCat("expected lanes such as x4, found ", t.text));
      c_.Take();
    }
    if (!c_.ok()) return Nothing();
    if (r.kind == ExprKind::kLoad) return pool_.Load(r.ref, place.index, r.dtype, lanes, place.guard);
    if (!place.guard.IsTrue())
      return Fail(here, absl::StrCat("only loads of buffers take a guard, %", name, " is none"));
    if (r.kind == ExprKind::kAllocLoad) return pool_.AllocLoad(r.ref, place.index, r.dtype, lanes);
    return lanes == 1 ? pool_.Stage(r.ref, place.index, r.dtype) : Fail(here, "a stage has no lanes");
  }

  Cursor& c_;
  ExprScope& scope_;
  ExprPool& pool_;
};

}  // namespace

Expr ParseExpr(Cursor& c, ExprScope& scope, std::optional<DType> expected) {
  return ExprParser(c, scope).Parse(expected);
}

Expr ParseIndex(Cursor& c, ExprScope& scope) { return ExprParser(c, scope).ParseTyped(DType::kIndex); }
Expr ParseCondition(Cursor& c, ExprScope& scope) { return ExprParser(c, scope).ParseTyped(DType::kBool); }

}  // namespace agc::text
