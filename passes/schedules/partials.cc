#include "passes/schedules/partials.h"

#include "absl/strings/str_cat.h"

namespace agc {

Partials AddPartials(KernelBuilder& b, const Nest& nest, const std::vector<int64_t>& dims, int64_t counters,
                     Built& built, std::vector<int32_t>& args) {
  Partials p;
  const auto add = [&](absl::string_view name, const TensorType& type, bool counter) {
    built.scratch.push_back({std::string(name), type, counter});
    args.push_back(-static_cast<int32_t>(built.scratch.size()));
    return b.AddParam(name, type, KernelAccess::kReadWrite, /*coherent=*/!counter);
  };
  p.params.resize(nest.components.size());
  for (const NestStage& stage : nest.stages) {
    if (stage.kind == StageKind::kMap) continue;
    for (int c = 0; c < stage.combiner->components; ++c) {
      const uint32_t number = stage.first_component + static_cast<uint32_t>(c);
      const TensorType type{nest.components[number].dtype, Dims(dims.begin(), dims.end())};
      p.params[number] = add(absl::StrCat("parts", number), type, false);
    }
  }
  p.counter = add("arrived", {DType::kU32, {counters}}, true);
  return p;
}

int64_t PartialParams(const Nest& nest) {
  int64_t n = 1;
  for (const NestStage& stage : nest.stages) n += stage.kind == StageKind::kMap ? 0 : stage.combiner->components;
  return n;
}

void StorePartials(const Partials& p, const NestStage& stage, absl::Span<const Expr> values, Index index,
                   std::vector<Stmt>& body) {
  for (size_t c = 0; c < values.size(); ++c)
    body.push_back(SetBuffer(p.params[stage.first_component + c], index, values[c], stage.loc));
}

std::vector<Expr> LoadPartials(KernelBuilder& b, const Nest& nest, const Partials& p, const NestStage& stage,
                               Index index) {
  std::vector<Expr> values;
  for (int c = 0; c < stage.combiner->components; ++c) {
    const uint32_t number = stage.first_component + static_cast<uint32_t>(c);
    values.push_back(b.pool().Load(p.params[number], index, nest.components[number].dtype));
  }
  return values;
}

}  // namespace agc
