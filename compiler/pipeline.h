// The default order of passes, with the reason for each place.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace agc {

// The passes that take a module from `from` to the plan stage.
std::vector<std::string> DefaultPipeline(Stage from = Stage::kTensor);

}  // namespace agc
