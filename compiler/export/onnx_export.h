// Graphs as ONNX models (opset 20): inputs and outputs keep their names, states become initialisers.
//   AGC_ASSIGN_OR_RETURN(const std::string bytes, ExportOnnx(module.program(), "infer", weights));
// What ONNX has an operator for is written as that; other composites are written as what they are defined by.
#pragma once
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/import/weights.h"
#include "ir/program.h"

namespace agc {

inline constexpr int64_t kExportOpset = 20;

// Errors: InvalidArgument for a graph that is not there, updates states (ONNX has none) or reads a state without a
// weight; Unimplemented, with the op's location, for ops that neither ONNX has nor decompose into such.
absl::StatusOr<std::string> ExportOnnx(const Program& program, absl::string_view graph,
                                       const std::vector<Weight>& weights);

}  // namespace agc
