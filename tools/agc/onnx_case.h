// ONNX test cases: a model beside folders with `input_0.pb`, `output_0.pb`, ..., as the standard's own tests have them.
//   AGC_ASSIGN_OR_RETURN(const CaseResult r, RunCase(device, "test_add/model.onnx", "test_add/test_data_set_0", {},
//   {}));
#pragma once
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/options.h"
#include "runtime/device.h"
#include "tools/agc/compare.h"

namespace agc::tool {

struct CaseResult {
  std::vector<Difference> outputs = {};
  std::vector<std::string> baked = {};  // inputs whose values the module was compiled for
  bool equal() const;
};

// Imports the model for the inputs' shapes, compiles it, runs it once and compares its outputs. The status is why it
// was refused, in one line.
absl::StatusOr<CaseResult> RunCase(const rt::Device& device, const std::string& model, const std::string& directory,
                                   const CompileOptions& options, const Limits& limits);

// `agc check --cases FILE`: a line `MODEL DIRECTORY` per case, in one process; prints a line of JSON for each. The exit
// code is 0 where all are equal, else 1.
absl::StatusOr<int> RunCases(const rt::Device& device, const std::string& file, const CompileOptions& options,
                             const Limits& limits);

}  // namespace agc::tool
