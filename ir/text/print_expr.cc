// Expressions. Parentheses follow precedence: 1 or, 2 and, 3 comparison, 4 sum, 5 product, 6 unary, 7 primary. A
// literal prints bare where another operand or the place says its dtype.
#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/text/print.h"

namespace agc {
namespace text {
namespace {

enum Level { kOrLevel = 1, kAndLevel, kCompareLevel, kSumLevel, kProductLevel, kUnaryLevel, kPrimary };

int LevelOf(absl::string_view infix) {
  if (infix == "|") return kOrLevel;
  if (infix == "&") return kAndLevel;
  if (infix == "+" || infix == "-") return kSumLevel;
  if (infix == "*" || infix == "/") return kProductLevel;
  return kCompareLevel;
}

std::string NameAt(const std::vector<std::string>& names, uint32_t i, absl::string_view prefix) {
  return i < names.size() ? names[i] : absl::StrCat(prefix, i);
}

uint32_t RankAt(const std::vector<uint32_t>& ranks, uint32_t i) { return i < ranks.size() ? ranks[i] : i; }

// The order of terms and conjuncts that the constructors give them when variables are numbered as in the text.
struct TextOrder {
  const ExprPool& pool;
  const ExprNames& names;

  std::vector<size_t> Order(const ExprNode& n) const {
    std::vector<size_t> order(n.args.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (n.kind != ExprKind::kLin && n.kind != ExprKind::kAnd) return order;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return Compare(n.args[a], n.args[b]) < 0; });
    return order;
  }

  // agc::Compare by rank instead of number.
  int Compare(ExprId a, ExprId b) const {
    if (a == b) return 0;
    const ExprNode &x = pool.node(a), &y = pool.node(b);
    const auto order = [](auto p, auto q) { return p < q ? -1 : q < p ? 1 : 0; };
    if (x.kind != y.kind) return order(x.kind, y.kind);
    if (x.dtype != y.dtype) return order(x.dtype, y.dtype);
    if (x.ref != y.ref) return order(Rank(x), Rank(y));
    if (x.args.size() != y.args.size()) return order(x.args.size(), y.args.size());
    const std::vector<size_t> p = Order(x), q = Order(y);
    for (size_t i = 0; i < x.args.size(); ++i) {
      if (const int c = Compare(x.args[p[i]], y.args[q[i]]); c != 0) return c;
    }
    for (size_t i = 0; i < x.coefs.size(); ++i) {
      if (x.coefs[p[i]] != y.coefs[q[i]]) return order(x.coefs[p[i]], y.coefs[q[i]]);
    }
    if (x.payload != y.payload) return order(x.payload, y.payload);
    if (x.lanes != y.lanes) return order(x.lanes, y.lanes);
    return x.lo != y.lo ? order(x.lo, y.lo) : order(x.hi, y.hi);
  }
  uint32_t Rank(const ExprNode& n) const {
    if (n.kind == ExprKind::kVar) return RankAt(names.var_rank, n.ref);
    return n.kind == ExprKind::kAllocLoad ? RankAt(names.alloc_rank, n.ref) : n.ref;
  }
};

class ExprPrinter {
 public:
  ExprPrinter(const ExprPool& pool, const ExprNames& names) : pool_(pool), names_(names), order_{pool, names} {}

  std::string Print(ExprId id, int level, std::optional<DType> expected) const {
    if (id.index >= pool_.size()) return "?";
    for (const auto& [bound, name] : names_.bound) {
      if (bound == id) return name;
    }
    const ExprNode& n = pool_.node(id);
    switch (n.kind) {
      case ExprKind::kConst:
        return Literal(n, expected);
      case ExprKind::kVar:
        return NameAt(names_.vars, n.ref, "v");
      case ExprKind::kLin:
        return Paren(Sum(n), n.args.size() == 1 && n.payload == 0 ? kProductLevel : kSumLevel, level);
      case ExprKind::kDiv:
        return Paren(absl::StrCat(Arg(n, 0, kProductLevel), " / ", n.payload), kProductLevel, level);
      case ExprKind::kMod:
        return Paren(absl::StrCat(Arg(n, 0, kProductLevel), " % ", n.payload), kProductLevel, level);
      case ExprKind::kMin:
        return absl::StrCat("min(", Arg(n, 0), ", ", n.payload, ")");
      case ExprKind::kMax:
        return absl::StrCat("max(", Arg(n, 0), ", ", n.payload, ")");
      case ExprKind::kInRange:
        return Paren(absl::StrCat("0<=", Arg(n, 0, kSumLevel), "<", n.payload), kCompareLevel, level);
      case ExprKind::kNonNeg:
        return Paren(absl::StrCat(Arg(n, 0, kSumLevel), ">=0"), kCompareLevel, level);
      case ExprKind::kEqZero:
        return Paren(absl::StrCat(Congruence(n.args[0]), "==0"), kCompareLevel, level);
      case ExprKind::kAnd:
        return Paren(Conjunction(n), kAndLevel, level);
      case ExprKind::kLoad:
      case ExprKind::kAllocLoad:
      case ExprKind::kStage:
        return Read(n);
      case ExprKind::kAlu:
        return Alu(n, level);
      case ExprKind::kCast:
        return absl::StrCat("cast<", Name(n.dtype), ">(", Arg(n, 0), ")");
      case ExprKind::kBitcast:
        return absl::StrCat("bitcast<", Name(n.dtype), ">(", Arg(n, 0), ")");
      case ExprKind::kFromIndex:
        return absl::StrCat(Name(n.dtype), "(", Arg(n, 0), ")");
      case ExprKind::kToIndex:
        return absl::StrCat("index(", Arg(n, 0), ", ", n.lo, ", ", n.hi, ")");
      case ExprKind::kLane:
        return absl::StrCat("lane(", Arg(n, 0), ", ", n.payload, ")");
      case ExprKind::kVec:
        return absl::StrCat("vec(", List(n), ")");
    }
    return "?";
  }

 private:
  static std::string Paren(std::string text, int own, int level) {
    return own < level ? absl::StrCat("(", text, ")") : text;
  }
  std::string Arg(const ExprNode& n, size_t i, int level = 0) const {
    return Print(n.args[i], level,
                 pool_.node(n.args[i]).dtype == DType::kIndex ? std::optional(DType::kIndex) : std::nullopt);
  }

  static std::string Literal(const ExprNode& n, std::optional<DType> expected) {
    const std::string text = ToString(Scalar{n.dtype, static_cast<uint64_t>(n.payload)});
    if (expected == n.dtype || n.dtype == DType::kIndex || n.dtype == DType::kBool) return text;
    return absl::StrCat(Name(n.dtype), "(", text, ")");
  }

  // `p%2` inside guards, without spaces.
  std::string Congruence(ExprId id) const {
    const ExprNode& n = pool_.node(id);
    const bool bound =
        std::any_of(names_.bound.begin(), names_.bound.end(), [&](const auto& b) { return b.first == id; });
    if (n.kind != ExprKind::kMod || bound) return Print(id, kSumLevel, DType::kIndex);
    return absl::StrCat(Arg(n, 0, kUnaryLevel), "%", n.payload);
  }

  std::string Sum(const ExprNode& n) const {
    std::string out;
    for (size_t i : order_.Order(n)) {
      const int64_t c = n.coefs[i];
      absl::StrAppend(&out, out.empty() ? (c < 0 ? "-" : "") : c < 0 ? " - " : " + ");
      if (c != 1 && c != -1) absl::StrAppend(&out, c < 0 ? -c : c, "*");
      absl::StrAppend(&out, Print(n.args[i], kUnaryLevel, DType::kIndex));
    }
    if (n.payload != 0) absl::StrAppend(&out, n.payload < 0 ? " - " : " + ", n.payload < 0 ? -n.payload : n.payload);
    return out;
  }

  std::string Conjunction(const ExprNode& n) const {
    std::string out;
    for (size_t i : order_.Order(n)) absl::StrAppend(&out, out.empty() ? "" : " & ", Arg(n, i, kCompareLevel));
    return out;
  }

  std::string List(const ExprNode& n) const {
    // The first literal says its dtype if no other operand does.
    const bool typed = std::any_of(n.args.begin(), n.args.end(), [&](ExprId id) { return SaysType(id); });
    std::string out;
    for (size_t i = 0; i < n.args.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : ", ",
                      Print(n.args[i], 0, typed || i > 0 ? std::optional(pool_.node(n.args[i]).dtype) : std::nullopt));
    }
    return out;
  }
  bool SaysType(ExprId id) const { return pool_.node(id).kind != ExprKind::kConst; }

  bool IsIdentity(const ExprNode& n) const {
    if (n.kind != ExprKind::kStage || n.ref >= names_.component_axes.size()) return false;
    const std::vector<VarId>& axes = names_.component_axes[n.ref];
    if (axes.size() != n.args.size()) return false;
    for (size_t i = 0; i < axes.size(); ++i) {
      const ExprNode& a = pool_.node(n.args[i]);
      const VarInfo& axis = pool_.var(axes[i]);
      const bool fixed = axis.lo == axis.hi && a.kind == ExprKind::kConst && a.payload == axis.lo;
      if (!fixed && (a.kind != ExprKind::kVar || a.ref != axes[i])) return false;
    }
    return true;
  }

  std::string Read(const ExprNode& n) const {
    std::string out = n.kind == ExprKind::kLoad        ? NameAt(names_.buffers, n.ref, "%b")
                      : n.kind == ExprKind::kAllocLoad ? NameAt(names_.allocs, n.ref, "%a")
                                                       : NameAt(names_.components, n.ref, "%s");
    if (IsIdentity(n)) return out;
    const size_t axes = n.args.size() - (n.kind == ExprKind::kLoad ? 1 : 0);
    absl::StrAppend(&out, "[");
    for (size_t i = 0; i < axes; ++i) absl::StrAppend(&out, i == 0 ? "" : ", ", Arg(n, i));
    if (axes < n.args.size()) {
      const ExprNode& guard = pool_.node(n.args[axes]);
      if (guard.kind != ExprKind::kConst || guard.payload != 1)
        absl::StrAppend(&out, axes == 0 ? "if " : " if ", Arg(n, axes));
    }
    absl::StrAppend(&out, "]");
    if (n.lanes != 1) absl::StrAppend(&out, "x", static_cast<int>(n.lanes));
    return out;
  }

  std::string Alu(const ExprNode& n, int level) const {
    const ScalarOp& op = ScalarOps()[n.ref];
    const size_t first = op.typing == ScalarTyping::kSelect ? 1 : 0;
    const bool typed = std::any_of(n.args.begin() + first, n.args.end(), [&](ExprId id) { return SaysType(id); });
    // `&` makes kAnd, and a value op named like an index one needs a value to be told apart: operands say their type.
    const bool infix = !op.infix.empty() && op.infix != "&";
    const int own = infix ? LevelOf(op.infix) : kPrimary;
    std::string out = infix ? "" : absl::StrCat(op.name, "(");
    for (size_t i = 0; i < n.args.size(); ++i) {
      if (i > 0) absl::StrAppend(&out, infix ? absl::StrCat(" ", op.infix, " ") : ", ");
      const std::optional<DType> expected =
          typed || i > first ? std::optional(pool_.node(n.args[i]).dtype) : std::nullopt;
      const int inner = !infix ? 0 : own == kCompareLevel || i > 0 ? own + 1 : own;
      absl::StrAppend(&out, Print(n.args[i], inner, expected));
    }
    return infix ? Paren(out, own, level) : out + ")";
  }

  const ExprPool& pool_;
  const ExprNames& names_;
  const TextOrder order_;
};

// Finds what to bind: nodes used more than once whose text is long, and cuts in very deep trees.
class Sharing {
 public:
  Sharing(const ExprPool& pool, const ExprNames& names) : pool_(pool), text_{pool, names} {}

  std::vector<ExprId> Plan(absl::Span<const ExprId> roots) {
    double total = 0;
    for (ExprId id : roots) {
      Visit(id);
      total += size_[id.index];
    }
    const bool deep = std::any_of(order_.begin(), order_.end(), [&](ExprId id) { return depth_[id.index] > kDeep; });
    std::vector<ExprId> bound;
    if (total <= kSmall && !deep) return bound;
    for (ExprId id : roots) ++uses_[id.index];
    for (ExprId id : order_) {  // arguments first: sizes shrink as they are bound
      const ExprNode& n = pool_.node(id);
      double size = 1;
      int depth = 1;
      for (ExprId arg : n.args) {
        size += size_[arg.index];
        depth = std::max(depth, depth_[arg.index] + 1);
      }
      const bool leaf = n.kind == ExprKind::kConst || n.kind == ExprKind::kVar;
      const bool bind = !leaf && ((uses_[id.index] > 1 && size >= 5) || depth > kDeep);
      size_[id.index] = bind ? 1 : size;
      depth_[id.index] = bind ? 1 : depth;
      if (bind) bound.push_back(id);
    }
    return bound;
  }

 private:
  static constexpr double kSmall = 100;
  static constexpr int kDeep = 60;

  void Visit(ExprId id) {
    if (id.index >= pool_.size() || size_.contains(id.index)) return;
    const ExprNode& n = pool_.node(id);
    double size = 1;
    int depth = 1;
    for (size_t i : text_.Order(n)) {
      const ExprId arg = n.args[i];
      Visit(arg);
      ++uses_[arg.index];
      size += size_[arg.index];
      depth = std::max(depth, depth_[arg.index] + 1);
    }
    size_[id.index] = size;
    depth_[id.index] = depth;
    order_.push_back(id);
  }

  const ExprPool& pool_;
  const TextOrder text_;
  absl::flat_hash_map<uint32_t, double> size_ = {};
  absl::flat_hash_map<uint32_t, int> depth_ = {}, uses_ = {};
  std::vector<ExprId> order_ = {};
};

}  // namespace

void PrintShared(const ExprPool& pool, absl::Span<const ExprId> roots, ExprNames& names, absl::string_view indent,
                 std::string& out) {
  names.bound.clear();
  for (ExprId id : Sharing(pool, names).Plan(roots)) {
    const std::string name = absl::StrCat("$", names.bound.size());
    absl::StrAppend(&out, indent, name, " = ", ExprPrinter(pool, names).Print(id, 0, std::nullopt), "\n");
    names.bound.emplace_back(id, name);
  }
}

}  // namespace text

std::string PrintExpr(const ExprPool& pool, ExprId e, const ExprNames& names, std::optional<DType> expected) {
  return text::ExprPrinter(pool, names).Print(e, 0, expected);
}

}  // namespace agc
