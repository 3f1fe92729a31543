// One graph as text, at values on the edges: evaluated op by op, as a device rounds, and by the loop executor as
// compiled for a software device and a large GPU, which have to agree within a tolerance.
//   EdgesOf({{"u8[3]", {0, 0, 0}}}, {"i32[] = argmax %x0 {axis = 0}"}) == {0}
#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/pipeline.h"
#include "test/unit/e2e_tools.h"

namespace agc::test {

using Doubles = std::vector<double>;
struct EdgeInput {
  std::string type = {};
  Doubles values = {};  // one fills the tensor
};

// A module whose graph @g gives the value of the last line; line k defines %k.
inline Program EdgeProgram(const std::vector<EdgeInput>& inputs, const std::vector<std::string>& lines) {
  std::vector<std::string> params;
  for (const EdgeInput& in : inputs) params.push_back(absl::StrCat("input %x", params.size(), ": ", in.type));
  const std::string type = lines.back().substr(0, lines.back().find(" ="));
  std::string text = absl::StrCat("module @m {\n  graph @g(", absl::StrJoin(params, ", "), ") -> (%y: ", type, ") {\n");
  for (size_t k = 0; k < lines.size(); ++k) absl::StrAppend(&text, "    %", k, ": ", lines[k], "\n");
  absl::StrAppend(&text, "    output %y = %", lines.size() - 1, "\n  }\n}\n");
  return Parsed(text);
}

inline EvalInputs EdgeInputs(const Program& p, const std::vector<EdgeInput>& inputs) {
  EvalInputs in;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const TensorType type = p.graphs[0].params[k].type;
    Doubles values = inputs[k].values;
    if (values.size() == 1) values.assign(static_cast<size_t>(type.elements()), values[0]);
    in.params[absl::StrCat("x", k)] = TensorOf(type, values);
  }
  return in;
}

// `tolerance`: by how much the compiled programs may differ.
inline Doubles EdgesOf(const std::vector<EdgeInput>& inputs, const std::vector<std::string>& lines,
                       double tolerance = 0) {
  const Program p = EdgeProgram(inputs, lines);
  if (p.graphs.empty()) return {};
  const EvalInputs in = EdgeInputs(p, inputs);
  const EvalResult want = Evaluated(p, "g", in, EvalMode::kExact);
  for (const char* name : {"lavapipe", "h200"}) {
    const EvalResult got = Executed(p, "g", in, {}, FakeTarget(name).value());
    EXPECT_EQ(Difference(got, want, tolerance), "") << name << ": " << absl::StrJoin(lines, "; ");
  }
  return Numbers(want.outputs.at("y"));
}

}  // namespace agc::test
