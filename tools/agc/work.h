// How much work an entry is: what bench divides by its times.
#pragma once
#include <string>

#include "absl/status/statusor.h"
#include "ir/program.h"
#include "runtime/format.h"

namespace agc::tool {

// Two for each product that a contraction of the graph adds up; elementwise work and other reductions do not count. At
// stage nest and scheduled the nests that the graph runs are counted, else the ops of `reference`.
absl::StatusOr<double> FlopsOf(const Program& program, const Program& reference, const std::string& graph);

// Bytes of the arguments: each once, twice where it is read and written.
double BytesOf(const rt::FlatStep& step);

}  // namespace agc::tool
