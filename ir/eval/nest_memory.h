// What a nest being evaluated works on: spaces of axis values in strips, and the memory its loads and stage reads see.
//   NestSpace space(nest, component.axes);
//   space.Fill(256, 100);   // lanes of every axis for points 256 to 355, row-major
#pragma once
#include <string>
#include <vector>

#include "ir/eval/strip.h"
#include "ir/nest.h"

namespace agc {

inline constexpr int kStrip = 256;
using StripSlots = std::vector<uint64_t>;

struct NestSpace {
  std::vector<VarId> vars = {};
  std::vector<int64_t> extents = {};
  std::vector<StripSlots> lanes = {};  // per axis
  int64_t size = 1;

  NestSpace(const Nest& nest, absl::Span<const VarId> axes);
  void Fill(int64_t start, int n);
  void Bind(StripMachine& m);
  bool Has(VarId v) const;
};

// Where a parameter or a stage's component lies; components are kept as register bits.
struct NestPlace {
  std::string name = {};
  TensorType type = {};
  Dims strides = {};
  uint8_t* bytes = nullptr;
  DType stored = DType::kF32;  // format of the bytes; kI64 for register bits
};

class NestMemory : public StripMemory {
 public:
  std::vector<NestPlace> params = {}, components = {};
  std::vector<StripSlots> arrays = {};  // of the components

  NestMemory(const Nest& nest, absl::Span<HostTensor* const> tensors);
  absl::Status Load(const StripLoad& load) override;
};

}  // namespace agc
