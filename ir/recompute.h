// How often a stage computes the same value.
#pragma once
#include "ir/nest.h"

namespace agc {

// How often each distinct value of a stage is computed on average: windows that overlap compute elements again. 1 where
// no axis pair enters the stage through one sum only.
double RecomputeFactor(const Nest& nest, const NestStage& stage);

}  // namespace agc
