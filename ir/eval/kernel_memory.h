// Memory as a kernel being executed sees it: arguments, shared and register allocs, each element with who touched it
// last. Owns the checks of ranges, never-written reads and races.
//   KernelMemory memory(kernel, args, options);
//   memory.StartGroup({0, 0, 0});
//   memory.Write(place, {3}, lane, bits)  // Aborted if another invocation touched element 3 since the last Fence
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/eval/kernel_eval.h"
#include "ir/eval/strip.h"

namespace agc {

// A parameter or an alloc.
struct KernelPlace {
  bool alloc = false;
  uint32_t number = 0;
};
enum class Touch : uint8_t { kPlain, kAtomic };

class KernelMemory : public StripMemory {
 public:
  KernelMemory(const Kernel& kernel, absl::Span<const ArenaSlice> args, const KernelOptions& options);

  // Forgets allocs; what earlier workgroups touched stays known.
  void StartGroup(std::array<int64_t, 3> group);
  // Orders what the workgroup did before against what it does next.
  void Barrier(Fence fence);
  // Inside if_last, what the other workgroups wrote through coherent parameters may be read.
  void SetLast(bool last) { last_ = last; }
  // The alloc's elements hold nothing any more, for the active lanes.
  void Forget(uint32_t alloc, absl::Span<const uint8_t> active);

  absl::Status Load(const StripLoad& load) override;
  // One lane's access of bits.size() consecutive elements (components of a vector alloc), as register bits of `dtype`.
  absl::Status Read(KernelPlace place, absl::Span<const int64_t> index, int lane, DType dtype, Touch touch,
                    absl::Span<uint64_t> bits);
  absl::Status Write(KernelPlace place, absl::Span<const int64_t> index, int lane, DType dtype, Touch touch,
                     absl::Span<const uint64_t> bits);
  // Sets one element of a register alloc for all active lanes; false if `place` is no register. The common store.
  bool WriteRegister(KernelPlace place, absl::Span<const int64_t> index, const uint8_t* active,
                     absl::Span<const uint64_t* const> values, int step);
  // Loads that must be made for every lane: of allocs and of what is watched for races.
  bool Varies(const ExprNode& load) const;

 private:
  // Who touched an element last. Epochs count barriers; groups are numbered from 1, 0: none, kMany: several.
  struct Access {
    uint32_t write_epoch = 0, read_epoch = 0, write_group = 0, read_group = 0;
    int32_t writer = -1, reader = -1;
  };
  struct Arg {
    ArenaSlice slice = {};
    Dims dims = {}, strides = {};
    DType stored = DType::kF32;
    int64_t size = 4;                          // bytes of an element
    std::vector<Access>* watch = nullptr;      // shared by overlapping arguments; null: only read
    int64_t watch_offset = 0, watch_unit = 1;  // bytes
  };
  struct Cell {  // an alloc
    Dims dims = {}, strides = {};
    bool shared = false;
    int width = 1;
    std::vector<uint64_t> bits = {};  // element * width + component, times lanes for registers
    std::vector<uint8_t> known = {};
    std::vector<Access> watch = {};  // shared
  };

  void WatchArgs();
  absl::Status LoadDirect(const StripLoad& load, const Arg& arg);
  absl::Status LoadRegister(const StripLoad& load, KernelPlace place);
  absl::Status Locate(KernelPlace place, absl::Span<const int64_t> index, int width, int64_t& element) const;
  absl::Status CheckRead(Access& a, int lane, bool grouped, const KernelPlace& place, int64_t element);
  absl::Status CheckWrite(Access& a, int lane, Touch touch, bool grouped, const KernelPlace& place, int64_t element);
  absl::Status TouchArg(KernelPlace place, int64_t element, int lane, Touch touch, bool write);
  absl::Status Race(const KernelPlace& place, int64_t element, int lane, const char* what, int32_t other,
                    uint32_t other_group) const;
  std::string NameOf(KernelPlace place) const;
  std::string Who(int lane) const;
  size_t CellAt(const Cell& cell, int64_t element, int component, int lane) const;

  const Kernel& kernel_;
  const KernelOptions options_;
  int lanes_ = 1;
  std::vector<Arg> args_ = {};
  std::vector<Cell> cells_ = {};
  std::vector<std::vector<Access>> watches_ = {};
  std::array<int64_t, 3> group_ = {0, 0, 0};
  uint32_t group_number_ = 0, buffer_epoch_ = 0, shared_epoch_ = 0;
  bool last_ = false;
};

}  // namespace agc
