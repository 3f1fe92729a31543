#include "ir/eval/kernel_memory.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/address.h"
#include "ir/base/status.h"

namespace agc {
namespace {
constexpr uint32_t kMany = UINT32_MAX, kAtomicGroup = UINT32_MAX - 1;
constexpr int32_t kManyLanes = -2, kAtomicLanes = -3;
}  // namespace

KernelMemory::KernelMemory(const Kernel& kernel, absl::Span<const ArenaSlice> args, const KernelOptions& options)
    : kernel_(kernel),
      options_(options),
      lanes_(static_cast<int>(kernel.local[0] * kernel.local[1] * kernel.local[2])) {
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const KernelParam& p = kernel.params[i];
    Arg arg{.slice = args[i], .stored = p.stored, .size = SizeOf(p.stored)};
    arg.dims = p.linear ? Dims{p.type.elements()} : p.type.dims;
    arg.strides = Strides(TensorType{p.stored, arg.dims});
    args_.push_back(std::move(arg));
  }
  for (const Alloc& a : kernel.allocs) {
    Cell cell{.shared = a.space == AllocSpace::kShared, .width = a.lanes};
    cell.dims.assign(a.extents.begin(), a.extents.end());
    Dims rows = cell.dims;
    if (!rows.empty()) rows.back() += a.skew;
    cell.strides = Strides(TensorType{a.dtype, rows});
    const int64_t slots = TensorType{a.dtype, rows}.elements() * a.lanes;
    cell.bits.resize(static_cast<size_t>(slots * (cell.shared ? 1 : lanes_)));
    cell.known.resize(cell.bits.size());
    if (cell.shared && options.check_races) cell.watch.resize(cell.bits.size());
    cells_.push_back(std::move(cell));
  }
  if (options.check_races) WatchArgs();
}

// Arguments that overlap share one record, in units of the smallest element if all are aligned to it.
void KernelMemory::WatchArgs() {
  std::vector<size_t> order(args_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return args_[a].slice.bytes < args_[b].slice.bytes; });
  watches_.reserve(args_.size());
  for (size_t i = 0; i < order.size();) {
    const uint8_t* begin = args_[order[i]].slice.bytes;
    const uint8_t* end = begin;
    int64_t unit = 8;
    bool written = false;
    size_t j = i;
    for (; j < order.size() && (j == i || args_[order[j]].slice.bytes < end); ++j) {
      const Arg& arg = args_[order[j]];
      end = std::max<const uint8_t*>(end, arg.slice.bytes + arg.slice.size);
      unit = std::min(unit, (arg.slice.bytes - begin) % arg.size == 0 ? arg.size : 1);
      written = written || kernel_.params[order[j]].access != KernelAccess::kRead;
    }
    if (written) watches_.emplace_back(static_cast<size_t>((end - begin + unit - 1) / unit));
    for (; i < j; ++i) {
      Arg& arg = args_[order[i]];
      arg.watch = written ? &watches_.back() : nullptr;
      arg.watch_offset = arg.slice.bytes - begin;
      arg.watch_unit = unit;
    }
  }
}

void KernelMemory::StartGroup(std::array<int64_t, 3> group) {
  group_ = group;
  ++group_number_;
  Barrier(Fence::kBoth);
  for (Cell& cell : cells_) std::fill(cell.known.begin(), cell.known.end(), uint8_t{0});
}

void KernelMemory::Barrier(Fence fence) {
  if (fence != Fence::kGlobal) ++shared_epoch_;
  if (fence != Fence::kShared) ++buffer_epoch_;
}

void KernelMemory::Forget(uint32_t alloc, absl::Span<const uint8_t> active) {
  Cell& cell = cells_[alloc];
  for (size_t i = 0; i < cell.known.size(); ++i) {
    if (cell.shared || active[i % static_cast<size_t>(lanes_)] != 0) cell.known[i] = 0;
  }
}

bool KernelMemory::Varies(const ExprNode& load) const {
  return load.kind != ExprKind::kLoad || load.ref >= args_.size() || args_[load.ref].watch != nullptr;
}

std::string KernelMemory::NameOf(KernelPlace place) const {
  return absl::StrCat("%", place.alloc ? kernel_.allocs[place.number].name : kernel_.params[place.number].name);
}

std::string KernelMemory::Who(int lane) const {
  return absl::StrCat("by invocation ", lane, " of workgroup [", absl::StrJoin(group_, ", "), "]");
}

absl::Status KernelMemory::Locate(KernelPlace place, absl::Span<const int64_t> index, int width,
                                  int64_t& element) const {
  const Dims& dims = place.alloc ? cells_[place.number].dims : args_[place.number].dims;
  const Dims& strides = place.alloc ? cells_[place.number].strides : args_[place.number].strides;
  if (index.size() != dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(place), " has ", dims.size(), " axes, ", index.size(), " indices are given"));
  }
  // Vectors of a scalar array are consecutive elements of its last axis.
  const int run = place.alloc && cells_[place.number].width > 1 ? 1 : width;
  bool inside = !dims.empty() || run == 1;
  element = 0;
  for (size_t k = 0; k < dims.size(); ++k) {
    inside = inside && index[k] >= 0 && index[k] + (k + 1 == dims.size() ? run : 1) <= dims[k];
    element += index[k] * strides[k];
  }
  if (inside && !place.alloc && run > 1 && element % run != 0) {
    return absl::OutOfRangeError(absl::StrCat(NameOf(place), " at [", absl::StrJoin(index, ", "), "] (", run,
                                              " elements) is not aligned to its lanes,"));
  }
  if (inside) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(NameOf(place), " at [", absl::StrJoin(index, ", "), "]",
                                            run > 1 ? absl::StrCat(" (", run, " elements)") : "",
                                            " is out of range, it has extents [", absl::StrJoin(dims, ", "), "],"));
}

absl::Status KernelMemory::Race(const KernelPlace& place, int64_t element, int lane, const char* what, int32_t other,
                                uint32_t other_group) const {
  const std::string who = other_group == kMany          ? "several workgroups"
                          : other_group == kAtomicGroup ? "atomics of other workgroups"
                          : other_group != 0            ? absl::StrCat("workgroup number ", other_group - 1)
                          : other == kManyLanes         ? "several invocations"
                          : other == kAtomicLanes       ? "atomics of other invocations"
                                                        : absl::StrCat("invocation ", other);
  return absl::AbortedError(absl::StrCat("race on element ", element, " of ", NameOf(place), ": ", what, " ", Who(lane),
                                         " and ", who, " without a barrier between"));
}

absl::Status KernelMemory::CheckRead(Access& a, int lane, bool grouped, const KernelPlace& place, int64_t element) {
  const uint32_t epoch = grouped ? buffer_epoch_ : shared_epoch_;
  if (a.write_epoch == epoch && a.writer != lane) return Race(place, element, lane, "read", a.writer, 0);
  if (grouped && a.write_group != 0 && a.write_group != group_number_) {
    if (!last_) return Race(place, element, lane, "read", 0, a.write_group);
    if (!kernel_.params[place.number].coherent) {
      return absl::AbortedError(
          absl::StrCat("element ", element, " of ", NameOf(place), ": read ", Who(lane),
                       " inside if_last of what another workgroup wrote, but the parameter is not coherent"));
    }
  }
  a.reader = a.read_epoch == epoch && a.reader != lane ? kManyLanes : lane;
  a.read_epoch = epoch;
  a.read_group = a.read_group == 0 || a.read_group == group_number_ ? group_number_ : kMany;
  return absl::OkStatus();
}

absl::Status KernelMemory::CheckWrite(Access& a, int lane, Touch touch, bool grouped, const KernelPlace& place,
                                      int64_t element) {
  const uint32_t epoch = grouped ? buffer_epoch_ : shared_epoch_;
  const bool atomic = touch == Touch::kAtomic;
  if (a.write_epoch == epoch && a.writer != lane && !(atomic && a.writer == kAtomicLanes))
    return Race(place, element, lane, "write", a.writer, 0);
  if (a.read_epoch == epoch && a.reader != lane) return Race(place, element, lane, "write", a.reader, 0);
  if (grouped && !last_) {
    const bool both_atomic = atomic && a.write_group == kAtomicGroup;
    if (a.write_group != 0 && a.write_group != group_number_ && !both_atomic)
      return Race(place, element, lane, "write", 0, a.write_group);
    if (a.read_group != 0 && a.read_group != group_number_) return Race(place, element, lane, "write", 0, a.read_group);
  }
  a.write_epoch = epoch;
  a.writer = atomic ? kAtomicLanes : lane;
  a.write_group = atomic ? kAtomicGroup : group_number_;
  return absl::OkStatus();
}

absl::Status KernelMemory::TouchArg(KernelPlace place, int64_t element, int lane, Touch touch, bool write) {
  Arg& arg = args_[place.number];
  if (arg.watch == nullptr) return absl::OkStatus();
  const int64_t first = (arg.watch_offset + element * arg.size) / arg.watch_unit;
  for (int64_t u = first; u < first + arg.size / arg.watch_unit; ++u) {
    Access& a = (*arg.watch)[static_cast<size_t>(u)];
    AGC_RETURN_IF_ERROR(write ? CheckWrite(a, lane, touch, true, place, element)
                              : CheckRead(a, lane, true, place, element));
  }
  return absl::OkStatus();
}

size_t KernelMemory::CellAt(const Cell& cell, int64_t element, int component, int lane) const {
  const int64_t slot = cell.width > 1 ? element * cell.width + component : element + component;
  return static_cast<size_t>(cell.shared ? slot : slot * lanes_ + lane);
}

absl::Status KernelMemory::Read(KernelPlace place, absl::Span<const int64_t> index, int lane, DType dtype, Touch touch,
                                absl::Span<uint64_t> bits) {
  int64_t element = 0;
  if (const absl::Status s = Locate(place, index, static_cast<int>(bits.size()), element); !s.ok()) {
    return absl::OutOfRangeError(absl::StrCat("read of ", s.message(), " ", Who(lane)));
  }
  const auto unknown = [&](int64_t e) {
    return absl::FailedPreconditionError(
        absl::StrCat("read of ", NameOf(place), " at element ", e, " ", Who(lane), ", which was never written"));
  };
  for (size_t c = 0; c < bits.size(); ++c) {
    if (place.alloc) {
      Cell& cell = cells_[place.number];
      const size_t at = CellAt(cell, element, static_cast<int>(c), lane);
      if (cell.known[at] == 0) return unknown(element);
      if (!cell.watch.empty() && touch == Touch::kPlain)
        AGC_RETURN_IF_ERROR(CheckRead(cell.watch[at], lane, false, place, element));
      bits[c] = cell.bits[at];
      continue;
    }
    const Arg& arg = args_[place.number];
    const int64_t e = element + static_cast<int64_t>(c);
    if (kernel_.params[place.number].access == KernelAccess::kWrite) {
      return absl::InvalidArgumentError(absl::StrCat("read of ", NameOf(place), ", which is declared as written only"));
    }
    if (arg.slice.known != nullptr &&
        std::count(arg.slice.known + e * arg.size, arg.slice.known + (e + 1) * arg.size, 0) != 0)
      return unknown(e);
    if (arg.watch != nullptr && touch == Touch::kPlain) AGC_RETURN_IF_ERROR(TouchArg(place, e, lane, touch, false));
    const Scalar v = LoadElement(arg.stored, arg.slice.bytes + e * arg.size);
    bits[c] = arg.stored == dtype ? v.bits : Convert(v, dtype).bits;
  }
  return absl::OkStatus();
}

absl::Status KernelMemory::Write(KernelPlace place, absl::Span<const int64_t> index, int lane, DType dtype, Touch touch,
                                 absl::Span<const uint64_t> bits) {
  int64_t element = 0;
  if (const absl::Status s = Locate(place, index, static_cast<int>(bits.size()), element); !s.ok()) {
    return absl::OutOfRangeError(absl::StrCat("write of ", s.message(), " ", Who(lane)));
  }
  for (size_t c = 0; c < bits.size(); ++c) {
    if (place.alloc) {
      Cell& cell = cells_[place.number];
      const size_t at = CellAt(cell, element, static_cast<int>(c), lane);
      if (!cell.watch.empty()) AGC_RETURN_IF_ERROR(CheckWrite(cell.watch[at], lane, touch, false, place, element));
      cell.bits[at] = bits[c];
      cell.known[at] = 1;
      continue;
    }
    Arg& arg = args_[place.number];
    const int64_t e = element + static_cast<int64_t>(c);
    if (kernel_.params[place.number].access == KernelAccess::kRead) {
      return absl::InvalidArgumentError(absl::StrCat("write of ", NameOf(place), ", which is declared as read only"));
    }
    AGC_RETURN_IF_ERROR(TouchArg(place, e, lane, touch, true));
    Scalar v = Convert({dtype, bits[c]}, arg.stored);
    if (IsFloat(arg.stored)) v = Scalar::Float(arg.stored, v.f());  // kDouble keeps registers unrounded
    StoreElement(v, arg.slice.bytes + e * arg.size);
    if (arg.slice.known != nullptr) std::fill_n(arg.slice.known + e * arg.size, arg.size, uint8_t{1});
  }
  return absl::OkStatus();
}

absl::Status KernelMemory::Load(const StripLoad& load) {
  const StripInstr& instr = *load.instr;
  const KernelPlace place{instr.kind == ExprKind::kAllocLoad, instr.ref};
  if (instr.kind == ExprKind::kStage || instr.ref >= (place.alloc ? cells_.size() : args_.size())) {
    return absl::InternalError("an expression reads what a kernel has not (a stage or an unknown buffer)");
  }
  if (!place.alloc && args_[place.number].watch == nullptr && args_[place.number].slice.known == nullptr &&
      instr.width == 1 && load.index.size() == args_[place.number].dims.size()) {
    return LoadDirect(load, args_[place.number]);
  }
  const bool uniform =
      std::count(load.stride.begin(), load.stride.end(), 0) == static_cast<int64_t>(load.stride.size());
  if (place.alloc && !cells_[place.number].shared && uniform) return LoadRegister(load, place);
  absl::InlinedVector<int64_t, 4> index(load.index.size());
  absl::InlinedVector<uint64_t, 4> bits(load.out.size());
  for (int lane = 0; lane < load.lanes; ++lane) {
    std::fill(bits.begin(), bits.end(), 0);
    if (load.Active(lane)) {
      for (size_t k = 0; k < index.size(); ++k) index[k] = load.At(k, lane);
      AGC_RETURN_IF_ERROR(Read(place, index, lane, instr.dtype, Touch::kPlain, absl::MakeSpan(bits)));
    }
    for (size_t c = 0; c < bits.size(); ++c) load.out[c][lane] = bits[c];
  }
  return absl::OkStatus();
}

// One element of a register alloc, the same one in every lane: a copy of its slots.
absl::Status KernelMemory::LoadRegister(const StripLoad& load, KernelPlace place) {
  absl::InlinedVector<int64_t, 4> index;
  for (size_t k = 0; k < load.index.size(); ++k) index.push_back(load.At(k, 0));
  absl::InlinedVector<uint64_t, 4> one(load.out.size());
  const auto slow = [&](int lane) {
    return Read(place, index, lane, load.instr->dtype, Touch::kPlain, absl::MakeSpan(one));
  };
  int64_t element = 0;
  if (!Locate(place, index, load.instr->width, element).ok()) return slow(0);
  const Cell& cell = cells_[place.number];
  for (size_t c = 0; c < load.out.size(); ++c) {
    const size_t at = CellAt(cell, element, static_cast<int>(c), 0);
    for (int lane = 0; lane < load.lanes; ++lane) {
      if (cell.known[at + static_cast<size_t>(lane)] == 0 && load.Active(lane)) return slow(lane);
    }
    std::copy_n(cell.bits.begin() + static_cast<std::ptrdiff_t>(at), load.lanes, load.out[c]);
  }
  return absl::OkStatus();
}

bool KernelMemory::WriteRegister(KernelPlace place, absl::Span<const int64_t> index, const uint8_t* active,
                                 absl::Span<const uint64_t* const> values, int step) {
  int64_t element = 0;
  if (!place.alloc || cells_[place.number].shared) return false;
  if (!Locate(place, index, static_cast<int>(values.size()), element).ok()) return false;  // the slow way says why
  Cell& cell = cells_[place.number];
  for (size_t c = 0; c < values.size(); ++c) {
    const size_t at = CellAt(cell, element, static_cast<int>(c), 0);
    uint64_t* bits = cell.bits.data() + at;
    uint8_t* known = cell.known.data() + at;
    for (int lane = 0; lane < lanes_; ++lane) {
      if (active[lane] == 0) continue;
      bits[lane] = values[c][lane * step];
      known[lane] = 1;
    }
  }
  return true;
}

// What is only read and known as a whole: no record to keep.
absl::Status KernelMemory::LoadDirect(const StripLoad& load, const Arg& arg) {
  absl::InlinedVector<int64_t, 64> elements(static_cast<size_t>(load.lanes), -1);
  for (int lane = 0; lane < load.lanes; ++lane) {
    if (!load.Active(lane)) continue;
    int64_t element = 0;
    bool inside = true;
    for (size_t k = 0; k < arg.dims.size(); ++k) {
      const int64_t i = load.At(k, lane);
      inside = inside && i >= 0 && i < arg.dims[k];
      element += i * arg.strides[k];
    }
    if (!inside) {
      absl::InlinedVector<int64_t, 4> index;
      for (size_t k = 0; k < arg.dims.size(); ++k) index.push_back(load.At(k, lane));
      uint64_t none[1] = {};
      return Read({false, load.instr->ref}, index, lane, load.instr->dtype, Touch::kPlain, none);
    }
    elements[static_cast<size_t>(lane)] = element;
  }
  DecodeElements(arg.stored, arg.slice.bytes, elements.data(), load.lanes, load.out[0]);
  for (int lane = 0; arg.stored != load.instr->dtype && lane < load.lanes; ++lane) {
    load.out[0][lane] = Convert({arg.stored, load.out[0][lane]}, load.instr->dtype).bits;
  }
  return absl::OkStatus();
}

}  // namespace agc
