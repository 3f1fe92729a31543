#include "ir/kernel.h"

#include <algorithm>

namespace agc {
namespace {

bool HasIfLast(const std::vector<Stmt>& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    return s.kind == StmtKind::kIfLast || HasIfLast(s.body) || HasIfLast(s.otherwise);
  });
}

}  // namespace

absl::string_view Name(KernelAccess access) {
  return access == KernelAccess::kRead ? "read" : access == KernelAccess::kWrite ? "write" : "read_write";
}

std::array<int64_t, 3> Kernel::groups() const {
  std::array<int64_t, 3> all = {0, 1, 1};
  for (const KernelPart& part : parts) {
    all[0] += part.groups[0];
    all[1] = std::max(all[1], part.groups[1]);
    all[2] = std::max(all[2], part.groups[2]);
  }
  return all;
}

int64_t Kernel::shared_bytes() const {
  int64_t bytes = 0;
  for (const Alloc& a : allocs) {
    if (a.space != AllocSpace::kShared) continue;
    int64_t elements = a.lanes;
    for (size_t i = 0; i < a.extents.size(); ++i) elements *= a.extents[i] + (i + 1 == a.extents.size() ? a.skew : 0);
    bytes += elements * std::max<int64_t>(SizeOf(a.dtype), 4);  // narrow values are kept in 32 bits
  }
  const bool counts =
      std::any_of(parts.begin(), parts.end(), [](const KernelPart& part) { return HasIfLast(part.body); });
  return bytes + (counts ? 4 : 0);  // the number of arrivals, told to all invocations
}

Kernel Clone(const Kernel& k) {
  Kernel copy;
  copy.name = k.name;
  copy.label = k.label;
  copy.pool = std::make_unique<ExprPool>(*k.pool);
  copy.params = k.params;
  copy.allocs = k.allocs;
  copy.parts = k.parts;
  copy.local = k.local;
  copy.features = k.features;
  copy.int64_pairs = k.int64_pairs;
  copy.precise = k.precise;
  copy.loc = k.loc;
  return copy;
}

std::vector<ExprId*> ExprsOf(Stmt& s) {
  std::vector<ExprId*> all;
  for (ExprId* id : {&s.begin, &s.end, &s.cond, &s.value, &s.guard, &s.count}) {
    if (id->valid()) all.push_back(id);
  }
  for (ExprId& id : s.index) all.push_back(&id);
  return all;
}

std::vector<ExprId> ExprsOf(const Stmt& s) {
  std::vector<ExprId> all;
  for (ExprId id : {s.begin, s.end, s.cond, s.value, s.guard, s.count}) {
    if (id.valid()) all.push_back(id);
  }
  for (ExprId id : s.index) all.push_back(id);
  return all;
}

namespace {
void AddDTypes(const Kernel& kernel, const std::vector<Stmt>& body, std::set<DType>& dtypes) {
  for (const Stmt& s : body) {
    for (ExprId id : ExprsOf(s)) {
      for (Expr e : PostOrder(kernel.pool->at(id))) dtypes.insert(e.dtype());
    }
    AddDTypes(kernel, s.body, dtypes);
    AddDTypes(kernel, s.otherwise, dtypes);
  }
}
}  // namespace

std::set<DType> DTypesOf(const Kernel& kernel) {
  std::set<DType> dtypes;
  for (const KernelParam& p : kernel.params) dtypes.insert({p.stored, p.type.dtype});
  for (const Alloc& a : kernel.allocs) dtypes.insert(a.dtype);
  for (const KernelPart& part : kernel.parts) AddDTypes(kernel, part.body, dtypes);
  return dtypes;
}

}  // namespace agc
