#include "tools/agc/trial.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ir/text/text.h"

namespace agc::tool {

Trial::Trial(std::string command) : command_(std::move(command)) {
  std::error_code none;
  file_ = (std::filesystem::temp_directory_path(none) / absl::StrCat("agc-trial-", getpid(), ".agir")).string();
  if (command_.find("{}") == std::string::npos) absl::StrAppend(&command_, " {}");
}

Trial::~Trial() {
  std::error_code none;
  std::filesystem::remove(file_, none);
}

absl::StatusOr<int> Trial::Run(const Program& program) const {
  std::ofstream out(file_, std::ios::trunc);
  out << Print(program);
  out.close();
  if (!out) return absl::UnavailableError(absl::StrCat("cannot write ", file_));
  const std::string line = absl::StrCat("(", absl::StrReplaceAll(command_, {{"{}", file_}}), ") >/dev/null 2>&1");
  const int status = std::system(line.c_str());
  if (status == -1) return absl::UnavailableError(absl::StrCat("cannot start a shell for: ", command_));
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace agc::tool
