// Kernels: header, parts and statements.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/text/parse.h"
#include "ir/text/parse_expr.h"
#include "ir/text/print.h"

namespace agc::text {
namespace {

class KernelParser {
 public:
  explicit KernelParser(Cursor& c) : c_(c) { scope_.pool = kernel_.pool.get(); }

  Kernel Parse() {
    Header();
    while (c_.Accept("alloc")) {  // of the whole kernel: without a statement
      Stmt s{.kind = StmtKind::kAlloc};
      s.loc = c_.loc();
      AllocLine(s);
    }
    while (c_.ok() && !c_.Accept("}")) Part();
    return std::move(kernel_);
  }

 private:
  void Param() {
    const Loc here = c_.loc();
    KernelParam p;
    p.name = c_.Value("a parameter");
    c_.Expect(":");
    p.type = c_.Type();
    p.stored = p.type.dtype;
    const Loc at_access = c_.loc();
    const std::string access = c_.Ident("read, write or read_write");
    if (access == "write") p.access = KernelAccess::kWrite;
    if (access == "read_write") p.access = KernelAccess::kReadWrite;
    if (Name(p.access) != access)
      c_.Fail(at_access, absl::StrCat("expected read, write or read_write, found ", access));
    if (c_.Accept("stored")) p.stored = c_.TypeName("the stored type");
    p.linear = c_.Accept("linear");
    p.packed = c_.Accept("packed");
    p.coherent = c_.Accept("coherent");
    p.restrict_ = c_.Accept("restrict");
    if (c_.Accept("align")) p.align = c_.Int("an alignment", 1, int64_t{1} << 32);
    const size_t rank = p.linear ? 1 : p.type.dims.size();
    Add(p.name, {ExprKind::kLoad, static_cast<uint32_t>(kernel_.params.size()), p.type.dtype, rank}, here);
    kernel_.params.push_back(std::move(p));
  }

  void Add(const std::string& name, Readable value, Loc here) {
    if (!scope_.values.emplace(name, std::move(value)).second)
      c_.Fail(here, absl::StrCat("%", name, " is defined twice"));
    added_.push_back(name);
  }

  std::array<int64_t, 3> Three(absl::string_view what) {
    const Loc here = c_.loc();
    const std::vector<int64_t> list = c_.IntList(what, 1, UINT32_MAX);
    std::array<int64_t, 3> three = {1, 1, 1};
    if (list.size() != 3) c_.Fail(here, absl::StrCat("expected three numbers, found ", list.size()));
    if (list.size() == 3) std::copy(list.begin(), list.end(), three.begin());
    return three;
  }

  void Header() {
    kernel_.loc = c_.loc();
    kernel_.name = c_.Symbol("the shader's name");
    c_.Expect("(");
    c_.List(")", [&] { Param(); });
    if (c_.Accept("local")) kernel_.local = Three("a count of invocations");
    if (c_.Accept("features")) {
      c_.Expect("[");
      c_.List("]", [&] { kernel_.features.push_back(c_.Word("a feature")); });
    }
    kernel_.int64_pairs = c_.Accept("int64_pairs");
    kernel_.precise = c_.Accept("precise");
    if (c_.Accept("label")) kernel_.label = c_.String("a label");
    kernel_.loc = c_.OptionalLoc(kernel_.loc);
    c_.Expect("{");
  }

  void Part() {
    c_.Expect("part");
    KernelPart part;
    if (c_.Accept("groups")) part.groups = Three("a count of workgroups");
    part.body = Block();
    kernel_.parts.push_back(std::move(part));
  }

  // `{ statements }`; what they declare is unknown afterwards.
  std::vector<Stmt> Block() {
    c_.Expect("{");
    c_.Enter();
    const size_t vars = scope_.vars.size();
    const size_t added = added_.size();
    std::vector<Stmt> body;
    while (c_.ok() && !c_.Accept("}")) {
      if (c_.Peek().kind == TokenKind::kDollar) {
        ParseShared(c_, scope_);
      } else {
        body.push_back(Statement());
      }
    }
    scope_.vars.resize(vars);
    for (size_t i = added; i < added_.size(); ++i) scope_.values.erase(added_[i]);
    added_.resize(added);
    c_.Leave();
    return body;
  }

  Stmt Statement() {
    Stmt s;
    s.loc = c_.loc();
    if (c_.Accept("for")) {
      For(s);
    } else if (c_.Accept("if")) {
      If(s);
    } else if (c_.Accept("let")) {
      Let(s);
    } else if (c_.Accept("alloc")) {
      AllocLine(s);
    } else if (c_.Accept("store")) {
      Store(s);
    } else if (c_.Accept("atomic")) {
      Atomic(s);
    } else if (c_.Accept("if_last")) {
      IfLast(s);
    } else if (c_.Accept("barrier")) {
      s.kind = StmtKind::kBarrier;
      s.fence = static_cast<Fence>(OneOf({"shared", "global", "both"}));
      s.loc = c_.OptionalLoc(s.loc);
    } else if (c_.Accept("lanes")) {
      Lanes(s);
    } else if (c_.Accept("tile")) {
      s.kind = StmtKind::kTile;
      s.loc = c_.OptionalLoc(s.loc);
    } else if (c_.Accept("region")) {
      if (c_.Peek().kind == TokenKind::kString) s.label = c_.Take().text;
      s.loc = c_.OptionalLoc(s.loc);
      s.body = Block();
    } else {
      c_.Fail(absl::StrCat("expected a statement or }, found ", c_.Describe()));
    }
    return s;
  }

  // The number of the word that comes next.
  int OneOf(std::initializer_list<absl::string_view> words) {
    int i = 0;
    std::string all;
    for (absl::string_view word : words) {
      if (c_.Accept(word)) return i;
      absl::StrAppend(&all, i == 0 ? "" : ", ", word);
      ++i;
    }
    c_.Fail(absl::StrCat("expected one of ", all, ", found ", c_.Describe()));
    return 0;
  }

  std::string VarToken() {
    const Loc here = c_.loc();
    const std::string name = c_.Ident("a variable");
    if (IsReserved(name)) c_.Fail(here, absl::StrCat(name, " cannot name a variable"));
    return name;
  }

  VarId Declare(const std::string& name, DType dtype, int lanes, int64_t lo, int64_t hi) {
    const VarId v =
        kernel_.pool->Declare({.name = name, .dtype = dtype, .lanes = static_cast<uint8_t>(lanes), .lo = lo, .hi = hi});
    scope_.vars.emplace_back(name, v);
    return v;
  }

  std::pair<int64_t, int64_t> Range(std::pair<int64_t, int64_t> fallback) {
    const Loc here = c_.loc();
    if (!c_.Accept("range")) return fallback;
    c_.Expect("[");
    const int64_t lo = c_.Int("the lowest value", -kMaxInt, kMaxInt);
    c_.Expect(",");
    const int64_t hi = c_.Int("the highest value", -kMaxInt, kMaxInt);
    c_.Expect("]");
    if (lo > hi) c_.Fail(here, absl::StrCat("the range [", lo, ", ", hi, "] is empty"));
    return {lo, std::max(lo, hi)};
  }

  void For(Stmt& s) {
    s.kind = StmtKind::kFor;
    s.mode = static_cast<ForMode>(OneOf({"serial", "unroll", "workgroup", "local"}));
    const std::string name = VarToken();
    c_.Expect("in");
    const Expr begin = ParseIndex(c_, scope_);
    c_.Expect("..");
    const Expr end = ParseIndex(c_, scope_);
    if (c_.Accept("step")) s.step = c_.Int("a step", 1, kMaxInt);
    if (c_.Accept("dim")) s.dim = static_cast<uint8_t>(c_.Int("a dimension", 0, 2));
    s.begin = begin.id;
    s.end = end.id;
    if (!c_.ok()) return;
    const auto [lo, hi] = Range(LoopRange(begin.node(), end.node(), s.step));
    s.loc = c_.OptionalLoc(s.loc);
    s.var = Declare(name, DType::kIndex, 1, lo, hi);
    s.body = Block();
    scope_.vars.pop_back();
  }

  void If(Stmt& s) {
    s.kind = StmtKind::kIf;
    s.uniform = c_.Accept("uniform");
    s.cond = ParseCondition(c_, scope_).id;
    s.loc = c_.OptionalLoc(s.loc);
    s.body = Block();
    if (c_.Accept("else")) s.otherwise = Block();
  }

  void Let(Stmt& s) {
    s.kind = StmtKind::kLet;
    const std::string name = VarToken();
    c_.Expect(":");
    const auto [dtype, lanes] = ParseLanesType(c_);
    c_.Expect("=");
    const Expr value = ParseExpr(c_, scope_, dtype);
    s.value = value.id;
    if (!c_.ok()) return;
    if (value.dtype() != dtype || value.lanes() != lanes) {
      return c_.Fail(s.loc, absl::StrCat(name, " is ", TypeWithLanes(dtype, lanes), ", the value is ",
                                         TypeWithLanes(value.dtype(), value.lanes())));
    }
    std::pair<int64_t, int64_t> range = {0, 0};
    if (dtype == DType::kIndex) range = Range({value.node().lo, value.node().hi});
    s.loc = c_.OptionalLoc(s.loc);
    s.var = Declare(name, dtype, lanes, range.first, range.second);
  }

  void AllocLine(Stmt& s) {
    s.kind = StmtKind::kAlloc;
    s.target = static_cast<uint32_t>(kernel_.allocs.size());
    Alloc a;
    a.name = c_.Value("an alloc");
    c_.Expect(":");
    a.space = static_cast<AllocSpace>(OneOf({"register", "shared", "tile"}));
    const auto [dtype, lanes] = ParseLanesType(c_);
    a.dtype = dtype;
    a.lanes = static_cast<uint8_t>(lanes);
    double elements = 1;
    c_.Expect("[");
    c_.List("]", [&] {
      a.extents.push_back(c_.Int("an extent", 1, kMaxDim));
      elements *= static_cast<double>(a.extents.back());
    });
    if (c_.Accept("skew")) a.skew = c_.Int("a skew", 0, 1 << 20);
    if (elements > 1e12) c_.Fail(s.loc, absl::StrCat("alloc %", a.name, " has too many elements"));
    s.loc = c_.OptionalLoc(s.loc);
    Add(a.name, {ExprKind::kAllocLoad, s.target, a.dtype, a.extents.size()}, s.loc);
    kernel_.allocs.push_back(std::move(a));
  }

  // Where a store, an atomic or if_last writes; the dtype of it.
  DType Target(Stmt& s) {
    const Loc here = c_.loc();
    const std::string name = c_.Value("a buffer or alloc");
    const auto it = scope_.values.find(name);
    if (it == scope_.values.end()) {
      if (c_.ok()) c_.Fail(here, absl::StrCat("unknown buffer or alloc %", name));
      return DType::kF32;
    }
    const Readable target = it->second;
    s.to_alloc = target.kind == ExprKind::kAllocLoad;
    s.target = target.ref;
    const Place place = ParsePlace(c_, scope_, name, target.rank);
    for (Expr e : place.index) s.index.push_back(e.id);
    if (!place.guard.IsTrue()) s.guard = place.guard.id;
    return target.dtype;
  }

  void Store(Stmt& s) {
    s.kind = StmtKind::kStore;
    const Loc here = c_.loc();
    if (c_.Peek().kind == TokenKind::kIdent) Combine(s);
    const DType dtype = Target(s);
    c_.Expect("=");
    const Expr value = ParseExpr(c_, scope_, dtype);
    s.value = value.id;
    if (c_.ok() && value.dtype() != dtype) {
      c_.Fail(here, absl::StrCat("the target holds ", Name(dtype), ", the value is ", Name(value.dtype())));
    }
    s.loc = c_.OptionalLoc(s.loc);
  }

  void Combine(Stmt& s) {
    const Loc here = c_.loc();
    const std::string name = c_.Ident("a combiner");
    s.combiner = FindCombiner(name);
    if (s.combiner == nullptr) c_.Fail(here, absl::StrCat("unknown combiner ", name));
  }

  void Atomic(Stmt& s) {
    s.kind = StmtKind::kAtomic;
    const std::string name = VarToken();
    c_.Expect(":");
    const auto [dtype, lanes] = ParseLanesType(c_);
    c_.Expect("=");
    Combine(s);
    const DType held = Target(s);
    c_.Expect(",");
    s.value = ParseExpr(c_, scope_, held).id;
    s.loc = c_.OptionalLoc(s.loc);
    s.var = Declare(name, dtype, lanes, 0, 0);
  }

  void Lanes(Stmt& s) {
    s.kind = StmtKind::kLanes;
    const std::string name = VarToken();
    c_.Expect(":");
    const auto [dtype, lanes] = ParseLanesType(c_);
    c_.Expect("=");
    s.lanes_op = static_cast<LanesOp>(OneOf({"shuffle_xor", "broadcast", "ballot"}));
    s.value = ParseExpr(c_, scope_).id;
    c_.Expect(",");
    s.lane = static_cast<uint32_t>(c_.Int("a lane", 0, UINT32_MAX));
    s.loc = c_.OptionalLoc(s.loc);
    s.var = Declare(name, dtype, lanes, 0, 0);
  }

  void IfLast(Stmt& s) {
    s.kind = StmtKind::kIfLast;
    Target(s);
    c_.Expect("of");
    s.count = ParseIndex(c_, scope_).id;
    s.loc = c_.OptionalLoc(s.loc);
    s.body = Block();
  }

  Cursor& c_;
  Kernel kernel_ = {};
  ExprScope scope_ = {};
  std::vector<std::string> added_ = {};  // values of the open blocks, in order
};

}  // namespace

void ParseKernel(ModuleParser& m) { m.program.kernels.push_back(KernelParser(m.c).Parse()); }

}  // namespace agc::text
