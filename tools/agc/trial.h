// Trying a command on variants of a module: what bisect and reduce share.
//   Trial trial("agc check {} --input x=0.5");
//   AGC_ASSIGN_OR_RETURN(const int code, trial.Run(program));   // {} is a file with the module's text
#pragma once
#include <string>

#include "absl/status/statusor.h"
#include "ir/program.h"

namespace agc::tool {

class Trial {
 public:
  // The file is named by process, beside other temporary files, and removed at the end.
  explicit Trial(std::string command);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Exit code of the command, which a shell runs without output; 128 + n where signal n ended it. Errors: the file
  // cannot be written, the shell cannot be started.
  absl::StatusOr<int> Run(const Program& program) const;

 private:
  std::string command_ = {}, file_ = {};
};

}  // namespace agc::tool
