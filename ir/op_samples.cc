#include "ir/op_samples.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "ir/base/status.h"
#include "ir/program.h"
#include "ir/text/text.h"

namespace agc {
namespace {

using Extents = std::map<int64_t, int64_t>;  // new ones by old ones

constexpr int64_t kLongExtent = 1031;       // a prime: no tile divides it
constexpr int64_t kMostElements = 1 << 18;  // of a call: tests make thousands of them

// Infers the results; false where the row does not take the call.
bool Complete(OpSample& s) {
  Graph scratch;
  std::vector<OpId> operands;
  for (const TensorType& type : s.operands) operands.push_back(AppendInput(scratch, ParamKind::kInput, "x", type, {}));
  const absl::StatusOr<OpId> id = AppendChecked(scratch, *s.op, operands, s.attrs, {});
  if (!id.ok()) return false;
  s.attrs.assign(scratch.op(*id).attrs.begin(), scratch.op(*id).attrs.end());
  s.results = scratch.op(*id).types;
  return true;
}

absl::StatusOr<OpSample> OwnSample(const OpDef& op) {
  OpSample s{.op = &op};
  for (absl::string_view shape : op.sample.shapes) {
    if (shape.empty()) continue;
    AGC_ASSIGN_OR_RETURN(TensorType type, ParseType(shape));
    s.operands.push_back(std::move(type));
  }
  while (static_cast<int>(s.operands.size()) < op.arity.min) s.operands.push_back({DType::kF32, {2, 3}});
  AGC_ASSIGN_OR_RETURN(s.attrs, ParseAttrs(op, op.sample.attrs));
  if (Complete(s)) return s;
  return absl::InternalError(absl::StrCat("the sample of ", op.name, " is wrong"));
}

// ---------------------------------------------------------------- sizes

// Extents of the operands, those of the first one's last axes first; of what has no operands, those of `shape`.
std::vector<int64_t> ExtentsOf(const OpSample& s) {
  std::vector<int64_t> extents;
  const auto add = [&](absl::Span<const int64_t> dims) {
    for (size_t k = dims.size(); k-- > 0;) {
      if (std::find(extents.begin(), extents.end(), dims[k]) == extents.end()) extents.push_back(dims[k]);
    }
  };
  for (const TensorType& t : s.operands) add(t.dims);
  if (s.operands.empty()) {
    for (const TensorType& t : s.results) add(t.dims);
  }
  return extents;
}

// The sample with other extents, in the operands and, if that is not taken, in lists of integers too.
bool Resized(const OpSample& own, const Extents& extents, OpSample& out) {
  const auto rename = [&](int64_t& n) {
    const auto it = extents.find(n);
    if (it != extents.end()) n = it->second;
  };
  OpSample s = own;
  for (TensorType& t : s.operands) std::for_each(t.dims.begin(), t.dims.end(), rename);
  bool fits = !own.operands.empty() && Complete(s);
  for (Attr& a : s.attrs) {
    Ints* ints = std::get_if<Ints>(&a.value);
    if (!fits && ints != nullptr) std::for_each(ints->begin(), ints->end(), rename);
  }
  fits = fits || Complete(s);
  if (fits) out = std::move(s);
  return fits;
}

// As many extents as the row lets change one after the other.
bool Greedy(const OpSample& own, int64_t (*resize)(int64_t), OpSample& out) {
  Extents all, taken;
  for (int64_t e : ExtentsOf(own)) all[e] = resize(e);
  if (Resized(own, all, out)) return out.operands != own.operands || out.results != own.results;
  for (const auto& [from, to] : all) {
    Extents more = taken;
    more[from] = to;
    if (from != to && Resized(own, more, out)) taken = more;
  }
  return !taken.empty() && Resized(own, taken, out);
}

int64_t Elements(absl::Span<const TensorType> types) {
  int64_t n = 0;
  for (const TensorType& t : types) n += t.elements();
  return n;
}

// The first extent that the row lets change so. Where several axes are equal they change together, which makes long
// samples large; then another extent does.
bool FirstOf(const OpSample& own, int64_t extent, OpSample& out) {
  for (int64_t e : ExtentsOf(own)) {
    if (e == extent || !Resized(own, {{e, extent}}, out)) continue;
    if (Elements(out.operands) + Elements(out.results) <= kMostElements) return true;
  }
  return false;
}

bool OfSize(const OpSample& own, SampleSize size, OpSample& out) {
  switch (size) {
    case SampleSize::kOrdinary:
      out = own;
      return true;
    case SampleSize::kOne:
      return Greedy(
          own, [](int64_t) -> int64_t { return 1; }, out);
    case SampleSize::kOdd:
      return Greedy(
          own, [](int64_t e) -> int64_t { return e == 1 ? 1 : 2 * e + 1; }, out);
    case SampleSize::kLong:
      return FirstOf(own, kLongExtent, out);
    case SampleSize::kEmpty:
      return FirstOf(own, 0, out);
  }
  return false;
}

double OperandsPerResult(const OpSample& s) {
  return (1 + static_cast<double>(Elements(s.operands))) / (1 + static_cast<double>(Elements(s.results)));
}

// ---------------------------------------------------------------- dtypes

constexpr DType kEveryDType[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                                 DType::kI32, DType::kI16, DType::kI8,  DType::kU64,  DType::kU32,
                                 DType::kU16, DType::kU8,  DType::kBool};

// The dtypes that operands and attributes name, in order.
std::vector<DType> DTypesOf(const OpSample& s) {
  std::vector<DType> dtypes;
  const auto add = [&](DType t) {
    if (std::find(dtypes.begin(), dtypes.end(), t) == dtypes.end()) dtypes.push_back(t);
  };
  for (const TensorType& t : s.operands) add(t.dtype);
  for (const Attr& a : s.attrs) {
    if (const DType* t = std::get_if<DType>(&a.value)) add(*t);
  }
  return dtypes;
}

OpSample WithDType(const OpSample& own, DType from, DType to) {
  OpSample s = own;
  for (TensorType& t : s.operands) {
    if (t.dtype == from) t.dtype = to;
  }
  for (Attr& a : s.attrs) {
    if (DType* t = std::get_if<DType>(&a.value); t != nullptr && *t == from) *t = to;
  }
  s.dtype = std::string(Name(to));
  if (DTypesOf(own).size() > 1) s.dtype = absl::StrCat(Name(from), "_as_", s.dtype);
  return s;
}

// The row's own, then one dtype after the other in place of each that it names.
std::vector<OpSample> Retyped(const OpSample& own) {
  std::vector<OpSample> all = {own};
  for (DType from : DTypesOf(own)) {
    for (DType to : kEveryDType) {
      OpSample s = WithDType(own, from, to);
      if (to != from && Complete(s)) all.push_back(std::move(s));
    }
  }
  return all;
}

}  // namespace

absl::string_view Name(SampleSize size) {
  static constexpr absl::string_view kNames[] = {"ordinary", "one", "odd", "long", "empty"};
  return kNames[static_cast<int>(size)];
}

absl::StatusOr<std::vector<OpSample>> SamplesOf(const OpDef& op, SampleSet set) {
  AGC_ASSIGN_OR_RETURN(const OpSample own, OwnSample(op));
  std::vector<OpSample> all;
  const auto add = [&](const OpSample& typed, SampleSize size) {
    if (size == SampleSize::kLong && set != SampleSet::kAll) return false;  // minutes, in all
    OpSample s;
    if (!OfSize(typed, size, s)) return false;
    s.size = size;
    s.name = std::string(op.name);
    if (!s.dtype.empty()) absl::StrAppend(&s.name, "_", s.dtype);
    if (size != SampleSize::kOrdinary) absl::StrAppend(&s.name, "_", Name(size));
    s.growth = std::max(1.0, OperandsPerResult(s) / OperandsPerResult(own));
    all.push_back(std::move(s));
    return true;
  };
  const std::vector<OpSample> dtypes = set == SampleSet::kOwn ? std::vector<OpSample>{own} : Retyped(own);
  size_t turn = op.name.size();  // rows start at different sizes, so that each dtype meets each size somewhere
  for (size_t k = 0; k < dtypes.size(); ++k) {
    if (k == 0 || set == SampleSet::kAll) {
      for (int size = 0; size < (set == SampleSet::kOwn ? 1 : kSampleSizes); ++size)
        add(dtypes[k], static_cast<SampleSize>(size));
      continue;
    }
    for (int tries = 0; tries < kSampleSizes; ++tries) {
      if (add(dtypes[k], static_cast<SampleSize>(turn++ % kSampleSizes))) break;
    }
  }
  return all;
}

Graph GraphOf(const OpSample& s, absl::string_view name) {
  Graph graph;
  graph.name = std::string(name);
  std::vector<OpId> operands;
  for (const TensorType& type : s.operands)
    operands.push_back(AppendInput(graph, ParamKind::kInput, absl::StrCat("x", operands.size()), type, {}));
  const OpId id = *AppendChecked(graph, *s.op, operands, s.attrs, {});
  for (size_t part = 0; part < s.results.size(); ++part) {
    const Attr index{"index", static_cast<int64_t>(part)};
    const OpId value = s.results.size() == 1 ? id : *AppendChecked(graph, GetOp(), {id}, {index}, {});
    graph.outputs.push_back({absl::StrCat("y", part), s.results[part], false, value, {}});
  }
  return graph;
}

}  // namespace agc
