// Whether the 32 bits that GLSL computes indices in hold them. Sums wrap, so only what looks at a value asks for its
// range: division, bounds, comparisons, conversions to values, places and loops.
#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"

namespace agc {
namespace {

constexpr int64_t kMaxUnsigned = (int64_t{1} << 32) - 1, kMaxSigned = (int64_t{1} << 31) - 1;

// Indices that may be negative are taken for signed.
bool Fits(const ExprNode& n) { return n.lo < 0 ? n.lo >= -kMaxSigned - 1 && n.hi <= kMaxSigned : n.hi <= kMaxUnsigned; }

bool Literal(int64_t v) { return v >= -kMaxUnsigned && v <= kMaxUnsigned; }

class IndexBits {
 public:
  explicit IndexBits(const Kernel& kernel) : kernel_(kernel), pool_(*kernel.pool), seen_(pool_.size()) {}

  absl::Status Run() {
    for (const KernelPart& part : kernel_.parts) AGC_RETURN_IF_ERROR(Block(part.body));
    return absl::OkStatus();
  }

 private:
  absl::Status Wide(Loc loc, absl::string_view what, ExprId e) const {
    const ExprNode& n = pool_.node(e);
    const std::string text = PrintExpr(pool_, e, NamesOf(kernel_));
    return ErrorAt(loc.line == 0 ? kernel_.loc : loc,
                   absl::StrCat("@", kernel_.name, ": ", what, " ", text, " in [", n.lo, ", ", n.hi,
                                "] passes 32 bits; split the tensor"),
                   absl::StatusCode::kUnimplemented);
  }

  absl::Status Block(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (s.kind == StmtKind::kFor) AGC_RETURN_IF_ERROR(Loop(s));
      for (ExprId id : ExprsOf(s)) AGC_RETURN_IF_ERROR(Tree(id, s.loc));
      for (ExprId id : s.index) AGC_RETURN_IF_ERROR(Place(id, s.loc));
      AGC_RETURN_IF_ERROR(Block(s.body));
      AGC_RETURN_IF_ERROR(Block(s.otherwise));
    }
    return absl::OkStatus();
  }

  // The variable counts past the end before the loop stops.
  absl::Status Loop(const Stmt& s) const {
    const ExprNode &begin = pool_.node(s.begin), &end = pool_.node(s.end);
    if (begin.lo < 0 || begin.hi > kMaxUnsigned) return Wide(s.loc, "the beginning of a loop", s.begin);
    const bool wide = s.step > kMaxUnsigned || end.hi > kMaxUnsigned - (s.step - 1);
    return wide || end.lo < 0 ? Wide(s.loc, "the end of a loop", s.end) : absl::OkStatus();
  }

  absl::Status Place(ExprId e, Loc loc) const {
    return pool_.node(e).hi > kMaxUnsigned ? Wide(loc, "the address", e) : absl::OkStatus();
  }

  absl::Status Tree(ExprId root, Loc loc) {
    if (seen_[root.index]) return absl::OkStatus();
    for (Expr e : PostOrder(Expr{kernel_.pool.get(), root})) {
      if (seen_[e.id.index]) continue;
      seen_[e.id.index] = true;
      AGC_RETURN_IF_ERROR(Node(e, loc));
    }
    return absl::OkStatus();
  }

  absl::Status Node(Expr e, Loc loc) const {
    const ExprNode& n = e.node();
    switch (n.kind) {
      case ExprKind::kConst:
        return n.dtype != DType::kIndex || Literal(n.payload) ? absl::OkStatus() : Wide(loc, "the constant", e.id);
      case ExprKind::kLin: {
        bool literals = Literal(n.payload);
        for (int64_t c : n.coefs) literals = literals && Literal(c);
        return literals ? absl::OkStatus() : Wide(loc, "a constant of", e.id);
      }
      case ExprKind::kDiv:
      case ExprKind::kMod:
      case ExprKind::kMin:
      case ExprKind::kMax:
        return Fits(e.arg(0).node()) && Literal(n.payload) && Fits(n) ? absl::OkStatus() : Wide(loc, "the index", e.id);
      case ExprKind::kNonNeg:
      case ExprKind::kFromIndex:
        return Fits(e.arg(0).node()) ? absl::OkStatus() : Wide(loc, "the index", n.args[0]);
      case ExprKind::kInRange: {  // a negative index wraps to one that must not be in the range
        const ExprNode& x = e.arg(0).node();
        const bool apart = x.lo >= 0 || (x.lo >= -kMaxUnsigned && x.lo + kMaxUnsigned + 1 >= n.payload);
        return apart && x.hi <= kMaxUnsigned && Literal(n.payload) ? absl::OkStatus()
                                                                   : Wide(loc, "the index", n.args[0]);
      }
      case ExprKind::kEqZero: {
        const ExprNode& x = e.arg(0).node();
        return Literal(x.lo) && Literal(x.hi) ? absl::OkStatus() : Wide(loc, "the index", n.args[0]);
      }
      case ExprKind::kLoad:
      case ExprKind::kAllocLoad: {
        const size_t places = n.args.size() - (n.kind == ExprKind::kLoad ? 1 : 0);
        for (size_t i = 0; i < places; ++i) AGC_RETURN_IF_ERROR(Place(n.args[i], loc));
        return absl::OkStatus();
      }
      default:
        return absl::OkStatus();
    }
  }

  const Kernel& kernel_;
  const ExprPool& pool_;
  std::vector<bool> seen_;
};

}  // namespace

absl::Status VerifyIndexBits(const Kernel& kernel) { return IndexBits(kernel).Run(); }

}  // namespace agc
