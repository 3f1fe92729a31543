// Stages that compute the same under other names. An op that is read along an output's axis and along a reduction's is
// lowered to a stage for each:
//   %s0[i,j] = contract add over k : %x[i,k] ; %w[k,j]          %s0[i,j] = contract add over k : %x[i,k] ; %w[k,j]
//   %s1[i,r] = contract add over l : %x[i,l] ; %w[l,r]    =>    %m[i] = reduce max over j : %s0
//   %m[i] = reduce max over r : %s1                             store %y[i,j] = %s0 - %m
//   store %y[i,j] = %s0 - %m
#pragma once
#include "ir/nest.h"

namespace agc {

// Renames axes of stages, and of what reads them, so that equal stages become one, where no expression and no stage
// would then mean two different axes by one. Returns whether any did.
bool MergeStages(Nest& nest);

}  // namespace agc
