#include "compiler/pipeline.h"

namespace agc {
namespace {

struct Line {
  const char* pass;
  Stage at;  // the stage the pass runs at
};

constexpr Line kLines[] = {
    {"add-init", Stage::kTensor},          // first, so that @init goes through everything
    {"canonicalize", Stage::kTensor},      // cheap identities before the graph grows by its gradients
    {"cse", Stage::kTensor},               // forward values that are computed twice would get two cotangents
    {"dce", Stage::kTensor},               // nothing unused is differentiated
    {"rewrite", Stage::kTensor},           // composites by name, while they still have names
    {"autograd", Stage::kTensor},          // on composites: their own rules are better than those of their parts
    {"decompose", Stage::kTensor},         // from here on every op says its value at an index
    {"precision", Stage::kPrimitive},      // on primitives: the insides of composites and of gradients too
    {"rewrite", Stage::kPrimitive},        // what decompositions put side by side
    {"canonicalize", Stage::kPrimitive},   // folds what autograd's zeros and ones left
    {"cse", Stage::kPrimitive},            // forward and backward share subexpressions
    {"dce", Stage::kPrimitive},            // cotangents nobody asked for
    {"add-run-index", Stage::kPrimitive},  // adds ops, so before groups are formed
    {"form-groups", Stage::kPrimitive},    // on the final graph
    {"lower-to-nests", Stage::kPrimitive},
    {"simplify-expr", Stage::kNest},   // before schedules look at the stages
    {"assign-storage", Stage::kNest},  // before schedules look at strides
    {"choose-schedule", Stage::kNest},
    {"apply-schedule", Stage::kScheduled},
    {"order", Stage::kLoop},  // before alias: in-place needs to know who still reads
    {"alias", Stage::kLoop},
    {"fuse-horizontally", Stage::kLoop},  // on final parameters and epochs
    {"legalize", Stage::kLoop},           // after alias: parameters are final
    {"expand-math", Stage::kLoop},        // after legalize: half floats are computed in f32 by now
    {"vectorize", Stage::kLoop},          // after legalize: it compares addresses
    {"place-lets", Stage::kLoop},         // after legalize: addresses and guards are hoisted too
    {"dedupe-kernels", Stage::kLoop},     // last, on the text that will be compiled
    {"plan-memory", Stage::kLoop},
    {"place-barriers", Stage::kPlan},  // from byte ranges, so after offsets
    {"check-plan", Stage::kPlan},
};

}  // namespace

std::vector<std::string> DefaultPipeline(Stage from) {
  std::vector<std::string> passes;
  for (const Line& line : kLines) {
    if (line.at >= from) passes.emplace_back(line.pass);
  }
  return passes;
}

}  // namespace agc
