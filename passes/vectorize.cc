// vectorize: neighbouring loads and stores of one block become accesses of two or four elements where the address of
// the first is proven to be a multiple of that. What is computed with them stays scalar.
//   let a: f32 = %x[4*i]   let b: f32 = %x[4*i + 1]   store %y[4*i] = a * 2   store %y[4*i + 1] = b * 2
//   => let a: f32 = lane(%x[4*i] x2, 0)   ...          store %y[4*i] = vec(a * 2, b * 2)
// For GPUs, whose buffers and shared memory serve an invocation 16 bytes at a time; software devices gather what
// neighbouring invocations ask for. Buffers of 8 and 16-bit elements keep scalar accesses.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "passes/pass.h"

namespace agc {
namespace {

// Where an access lies: buffer or shared array, its number, guard (UINT32_MAX: none), the indices of the leading axes,
// and the address along the last one without its constant.
struct Place {
  bool alloc = false;
  uint32_t target = 0, guard = UINT32_MAX;
  std::vector<uint32_t> leading = {};
  uint32_t terms = 0;

  auto Key() const { return std::tie(alloc, target, guard, leading, terms); }
  bool operator<(const Place& other) const { return Key() < other.Key(); }
  bool operator==(const Place& other) const { return Key() == other.Key(); }
  bool Same(const Stmt& store) const { return alloc == store.to_alloc && target == store.target; }
};

struct Address {
  Expr terms = {};
  int64_t constant = 0;
};

Address Split(Expr index) {
  if (!index.IsConst() && !index.is(ExprKind::kLin)) return {index, 0};
  const int64_t constant = index.node().payload;  // the pool grows below
  return {index - constant, constant};
}

// Accesses at one place, by the constant of their address.
template <typename T>
struct Neighbours {
  Expr terms = {};
  int64_t row = 4;  // elements of a row, which begins where the row before ends
  std::map<int64_t, T> at = {};

  // Calls f(first, width) for the widest aligned runs.
  template <typename F>
  void Runs(F f) const {
    for (int width : {4, 2}) {
      if (!Divisible(terms, width) || row % width != 0) continue;
      for (const auto& [first, access] : at) {
        if (((first % width) + width) % width != 0) continue;
        bool whole = true;
        for (int j = 1; j < width; ++j) whole = whole && at.count(first + j) > 0;
        if (whole) f(first, width);
      }
    }
  }
};

class Vectorizer {
 public:
  explicit Vectorizer(Kernel& kernel) : kernel_(kernel), pool_(*kernel.pool) {}

  // Whether anything changed.
  bool Run() {
    for (KernelPart& part : kernel_.parts) Block(part.body);
    return changed_;
  }

 private:
  static bool Word(DType t) { return t == DType::kF32 || t == DType::kI32 || t == DType::kU32; }
  bool Eligible(bool alloc, uint32_t target) const {
    if (alloc) {
      const Alloc& a = kernel_.allocs[target];
      return a.space == AllocSpace::kShared && a.lanes == 1 && Word(a.dtype) && !a.extents.empty();
    }
    const KernelParam& p = kernel_.params[target];
    return p.linear && !p.packed && Word(p.stored) && p.stored == p.type.dtype;
  }
  int64_t Row(const Place& place) const {
    if (!place.alloc) return 4;
    const Alloc& a = kernel_.allocs[place.target];
    return a.extents.back() + a.skew;
  }
  bool Pure(Expr load) const { return kernel_.params[load.node().ref].access == KernelAccess::kRead; }

  void Block(std::vector<Stmt>& body) {
    PureLoads(body);
    PinnedLoads(body);
    Stores(body);
    for (Stmt& s : body) {
      Block(s.body);
      Block(s.otherwise);
    }
  }

  // ---- loads of what the kernel does not write: anywhere in the expressions of the block
  void PureLoads(std::vector<Stmt>& body) {
    std::map<Place, Neighbours<Expr>> loads;
    for (const Stmt& s : body) {
      for (ExprId id : ExprsOf(s)) {
        for (Expr e : PostOrder(pool_.at(id))) {
          if (e.is(ExprKind::kLoad) && e.lanes() == 1 && Eligible(false, e.node().ref) && Pure(e)) Note(loads, e, e);
        }
      }
    }
    lane_of_.clear();
    for (const auto& group : loads)
      group.second.Runs([&](int64_t first, int width) { Widen(group.second, first, width); });
    if (lane_of_.empty()) return;
    changed_ = true;
    Substitution s{.pool = &pool_};
    s.context = this;
    s.hooks.emplace_back(ExprKind::kLoad, [](void* self, Expr original, Index args) {
      const auto& lanes = static_cast<Vectorizer*>(self)->lane_of_;
      const auto it = lanes.find(original.id.index);
      return it == lanes.end() ? Rebuild(original, args) : it->second;
    });
    for (Stmt& stmt : body) {
      for (ExprId* id : ExprsOf(stmt)) *id = Substitute(pool_.at(*id), s).id;
    }
  }

  template <typename T>
  void Note(std::map<Place, Neighbours<T>>& all, Expr load, T access) {
    Place place{.alloc = load.is(ExprKind::kAllocLoad), .target = load.node().ref};
    std::vector<ExprId> index(load.node().args.begin(), load.node().args.end());
    if (!place.alloc) {
      place.guard = index.back().index;
      index.pop_back();
    }
    Enter(all, std::move(place), index, access);
  }
  template <typename T>
  void Enter(std::map<Place, Neighbours<T>>& all, Place place, absl::Span<const ExprId> index, T access) {
    const Address a = Split(pool_.at(index.back()));
    for (ExprId i : index.first(index.size() - 1)) place.leading.push_back(i.index);
    place.terms = a.terms.id.index;
    Neighbours<T>& near = all[place];
    near.terms = a.terms;
    near.row = Row(place);
    near.at.emplace(a.constant, access);
  }

  // Lanes of wider runs come first and stay.
  void Widen(const Neighbours<Expr>& near, int64_t first, int width) {
    const Expr scalar = near.at.at(first);
    if (lane_of_.count(scalar.id.index) > 0) return;
    const Expr guard = scalar.arg(1);
    const Expr wide = pool_.Load(scalar.node().ref, {scalar.arg(0)}, scalar.dtype(), width, guard);
    for (int j = 0; j < width; ++j) lane_of_.emplace(near.at.at(first + j).id.index, Lane(wide, j));
  }

  // ---- loads of what the kernel also writes: lets, between which nothing is written there
  void PinnedLoads(std::vector<Stmt>& body) {
    std::map<Place, Neighbours<size_t>> open;  // statements
    std::map<size_t, Stmt> before;             // wide lets, by the statement they precede
    const auto close = [&](absl::FunctionRef<bool(const Place&)> closes) {
      Close<size_t>(open, closes, [&](const Neighbours<size_t>& near, int64_t first, int width) {
        WidenLets(body, near, first, width, before);
      });
    };
    for (size_t i = 0; i < body.size(); ++i) {
      const Stmt& s = body[i];
      if (s.kind == StmtKind::kStore && s.to_alloc) {
        close([&](const Place& p) { return p.Same(s); });
      } else if (Orders(s)) {
        close([](const Place&) { return true; });
      } else if (s.kind == StmtKind::kLet && Pinned(pool_.at(s.value))) {
        Note(open, pool_.at(s.value), i);
      }
    }
    close([](const Place&) { return true; });
    for (auto it = before.rbegin(); it != before.rend(); ++it)
      body.insert(body.begin() + static_cast<std::ptrdiff_t>(it->first), std::move(it->second));
  }

  bool Pinned(Expr e) const {
    if (e.lanes() != 1) return false;
    for (int i = 0; i < static_cast<int>(e.node().args.size()); ++i) {
      if (!Movable(e.arg(i))) return false;
    }
    if (e.is(ExprKind::kAllocLoad)) return Eligible(true, e.node().ref);
    return e.is(ExprKind::kLoad) && Eligible(false, e.node().ref) && !Pure(e);
  }

  // Whether reads and writes must not move past the statement.
  static bool Orders(const Stmt& s) {
    return s.kind != StmtKind::kLet && s.kind != StmtKind::kAlloc && s.kind != StmtKind::kLanes &&
           !(s.kind == StmtKind::kStore && s.to_alloc);
  }

  template <typename T>
  void Close(std::map<Place, Neighbours<T>>& open, absl::FunctionRef<bool(const Place&)> closes,
             absl::FunctionRef<void(const Neighbours<T>&, int64_t first, int width)> widen) {
    for (auto it = open.begin(); it != open.end();) {
      if (!closes(it->first)) {
        ++it;
        continue;
      }
      it->second.Runs([&](int64_t first, int width) { widen(it->second, first, width); });
      it = open.erase(it);
    }
  }

  void WidenLets(std::vector<Stmt>& body, const Neighbours<size_t>& near, int64_t first, int width,
                 std::map<size_t, Stmt>& before) {
    const Expr scalar = pool_.at(body[near.at.at(first)].value);
    const bool alloc = scalar.is(ExprKind::kAllocLoad);
    if (!alloc && !scalar.is(ExprKind::kLoad)) return;  // a lane of a wider run
    size_t earliest = near.at.at(first);
    for (int j = 1; j < width; ++j) earliest = std::min(earliest, near.at.at(first + j));
    if (before.count(earliest) > 0) return;
    Stmt let{.kind = StmtKind::kLet};
    let.loc = body[earliest].loc;
    const uint32_t ref = scalar.node().ref;
    let.var = pool_.Declare({.name = FreshName(alloc ? kernel_.allocs[ref].name : kernel_.params[ref].name),
                             .dtype = scalar.dtype(),
                             .lanes = static_cast<uint8_t>(width)});
    std::vector<Expr> index;
    for (size_t i = 0; i < scalar.node().args.size(); ++i) index.push_back(scalar.arg(static_cast<int>(i)));
    let.value = (alloc ? pool_.AllocLoad(ref, index, scalar.dtype(), width)
                       : pool_.Load(ref, {index[0]}, scalar.dtype(), width, index[1]))
                    .id;
    for (int j = 0; j < width; ++j) body[near.at.at(first + j)].value = Lane(pool_.Var(let.var), j).id;
    before.emplace(earliest, std::move(let));
    changed_ = true;
  }

  std::string FreshName(const std::string& base) const {
    for (int n = 0;; ++n) {
      std::string name = base + "_v" + std::to_string(n);
      bool taken = false;
      for (VarId v = 0; v < pool_.vars() && !taken; ++v) taken = pool_.var(v).name == name;
      if (!taken) return name;
    }
  }

  // ---- stores
  // Whether a value may be computed later in its block: it reads nothing that statements between could change.
  bool Movable(Expr value) const {
    const std::vector<Expr> nodes = PostOrder(value);
    return std::none_of(nodes.begin(), nodes.end(),
                        [&](Expr e) { return e.is(ExprKind::kAllocLoad) || (e.is(ExprKind::kLoad) && !Pure(e)); });
  }

  bool Joins(const Stmt& s) const {
    const std::vector<ExprId> ids = ExprsOf(s);  // index, value and guard
    return s.kind == StmtKind::kStore && s.combiner == nullptr && Eligible(s.to_alloc, s.target) &&
           pool_.at(s.value).lanes() == 1 &&
           std::all_of(ids.begin(), ids.end(), [&](ExprId id) { return Movable(pool_.at(id)); });
  }

  void Stores(std::vector<Stmt>& body) {
    std::map<Place, Neighbours<size_t>> open;
    std::vector<bool> gone(body.size());
    const auto close = [&](absl::FunctionRef<bool(const Place&)> closes) {
      Close<size_t>(open, closes, [&](const Neighbours<size_t>& near, int64_t first, int width) {
        WidenStores(body, near, first, width, gone);
      });
    };
    for (size_t i = 0; i < body.size(); ++i) {
      const Stmt& s = body[i];
      if (!Joins(s)) {
        if (s.kind != StmtKind::kAlloc) close([&](const Place& p) { return Orders(s) || Touches(s, p); });
        continue;
      }
      std::map<Place, Neighbours<size_t>> one;
      Enter(one, {.alloc = s.to_alloc, .target = s.target, .guard = s.guard.index}, s.index, i);
      const auto& [place, access] = *one.begin();
      close([&, &own = place](const Place& p) { return p.Same(s) && !(p == own); });
      const auto it = open.find(place);
      if (it != open.end() && it->second.at.count(access.at.begin()->first) > 0)
        close([&, &own = place](const Place& p) { return p == own; });  // stored twice: the second one counts
      Neighbours<size_t>& near = open.emplace(place, Neighbours<size_t>{access.terms, access.row}).first->second;
      near.at.insert(*access.at.begin());
    }
    close([](const Place&) { return true; });
    size_t kept = 0;
    for (size_t i = 0; i < body.size(); ++i) {
      if (!gone[i] && kept++ != i) body[kept - 1] = std::move(body[i]);
    }
    body.resize(kept);
  }

  // Whether the statement reads or writes the buffer or array.
  bool Touches(const Stmt& s, const Place& p) const {
    if (s.kind == StmtKind::kStore && p.Same(s)) return true;
    const ExprKind read = p.alloc ? ExprKind::kAllocLoad : ExprKind::kLoad;
    for (ExprId id : ExprsOf(s)) {
      for (Expr e : PostOrder(pool_.at(id))) {
        if (e.is(read) && e.node().ref == p.target) return true;
      }
    }
    return false;
  }

  // The last store of the run writes all of them.
  void WidenStores(std::vector<Stmt>& body, const Neighbours<size_t>& near, int64_t first, int width,
                   std::vector<bool>& gone) {
    std::vector<Expr> values;
    size_t last = 0;
    for (int j = 0; j < width; ++j) {
      const size_t i = near.at.at(first + j);
      const Expr value = pool_.at(body[i].value);
      if (gone[i] || value.lanes() > 1) return;  // part of a wider run
      values.push_back(value);
      last = std::max(last, i);
    }
    const std::vector<ExprId> index = body[near.at.at(first)].index;
    for (int j = 0; j < width; ++j) gone[near.at.at(first + j)] = near.at.at(first + j) != last;
    body[last].index = index;
    body[last].value = Vec(values).id;
    changed_ = true;
  }

  Kernel& kernel_;
  ExprPool& pool_;
  std::map<uint32_t, Expr> lane_of_ = {};  // by scalar load
  bool changed_ = false;
};

}  // namespace

absl::StatusOr<bool> Vectorize(Program& program, PassContext& context) {
  if (context.target.cpu()) return false;
  bool changed = false;
  for (Kernel& kernel : program.kernels) changed = Vectorizer(kernel).Run() || changed;
  return changed;
}

}  // namespace agc
