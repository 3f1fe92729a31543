// Names of a kernel's parameters, allocs and variables in GLSL. A name is what its text says where GLSL allows that and
// nothing that is visible there has it already; else it gets a suffix.
//   let a.b ... let a_b     =>     float a_b ... float a_b_1
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/kernel.h"

namespace agc {

std::string GlslName(absl::string_view name);  // letters, digits and underscores, nothing that GLSL names itself

class GlslNames {
 public:
  explicit GlslNames(const Kernel& kernel);  // declares parameters and shared allocs, which are visible everywhere

  void Enter();  // a block in braces
  void Leave();
  const std::string& DeclareVar(VarId v);
  const std::string& DeclareAlloc(uint32_t alloc);  // a register alloc, where its statement stands

  const std::string& param(uint32_t i) const { return params_[i]; }
  const std::string& alloc(uint32_t i) const { return allocs_[i]; }
  const std::string& var(VarId v) const { return vars_[v]; }

 private:
  std::string Take(absl::string_view name);

  const Kernel& kernel_;
  std::vector<std::string> params_ = {}, allocs_ = {}, vars_ = {};
  std::set<std::string> visible_ = {};
  std::vector<std::vector<std::string>> scopes_ = {};  // names that go with the block, innermost last
};

}  // namespace agc
