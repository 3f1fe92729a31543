// Nests: what a kernel computes. Axes with extents, buffer parameters, and stages in A-normal form; no reduction hides
// inside an Expr.
//   nest @k1(%x: f32[8,64]) -> (%y: f32[8,64]) axes n:8 k:64 j:64 {
//     %m[n] = reduce max:f32 over j : %x[n,j]
//     %s[n] = reduce add:f32 over j : exp(%x[n,j] - %m)
//     store %y[n,k] = exp(%x[n,k] - %m) / %s
//   }
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/base/loc.h"
#include "ir/combiner.h"
#include "ir/expr.h"
#include "ir/type.h"

namespace agc {

struct NestParam {
  std::string name = {};  // without '%'
  TensorType type = {};
  bool written = false;  // outputs follow inputs
};

enum class StageKind : uint8_t { kMap, kReduce, kContract, kScan };
absl::string_view Name(StageKind kind);

// One result of a stage, a function of `axes`. kStage nodes refer to components by their number in the nest.
struct Component {
  std::string name = {};
  std::vector<VarId> axes = {};
  DType dtype = DType::kF32;
  uint32_t stage = 0;
};

struct NestStage {
  StageKind kind = StageKind::kMap;
  const Combiner* combiner = nullptr;  // reduce, contract, scan
  uint32_t first_component = 0;        // its components are numbered from here, one per component of the combiner
  std::vector<VarId> over = {};        // reduce, contract: reduction axes; scan: the one axis
  ExprId when = {};                    // elements where it is false are skipped; invalid: none
  std::vector<ExprId> values = {};     // map, reduce: one per component; contract: the two sides
  Loc loc = {};
  std::string origin = {};  // root op's name
};

struct NestStore {
  uint32_t param = 0;
  std::vector<ExprId> index = {};  // one per axis of the buffer; usually axes
  ExprId value = {};
};

// How the nest is to be computed: a family of the schedule table with its parameters. Empty family: not chosen yet.
struct Schedule {
  std::string family = {};
  std::vector<std::pair<std::string, std::variant<int64_t, std::string>>> params = {};
  std::vector<std::pair<std::string, std::string>> place = {};  // component -> inline, register, shared, reread
  int64_t Int(absl::string_view name, int64_t fallback) const;
  void Set(absl::string_view name, int64_t value);
};

struct Nest {
  std::string name = {};
  std::string label = {};  // root op, for kernel names
  std::unique_ptr<ExprPool> pool = std::make_unique<ExprPool>();
  std::vector<NestParam> params = {};
  std::vector<VarId> axes = {};  // variables of the pool with range [0, extent - 1]
  std::vector<Component> components = {};
  std::vector<NestStage> stages = {};  // in order of use: a stage reads earlier ones
  std::vector<NestStore> stores = {};
  Schedule schedule = {};
  Loc loc = {};

  VarId AddAxis(std::string axis, int64_t extent);
  int64_t extent(VarId axis) const { return pool->var(axis).hi + 1; }
  // Appends the stage with its components; their axes are given per component.
  uint32_t AddStage(NestStage stage, std::vector<Component> results);
  Expr at(ExprId id) const { return pool->at(id); }
};

Nest Clone(const Nest& nest);

// Removes stages that neither a store nor a stage that stays reads; whether there were any.
bool DropDeadStages(Nest& nest);

// Axes of a contraction by the side that mentions them: batch both and the output, m the left, n the right side only,
// k those reduced.
struct ContractAxes {
  std::vector<VarId> batch = {}, m = {}, n = {}, k = {};
};
ContractAxes ClassifyContraction(const Nest& nest, const NestStage& stage);

}  // namespace agc
