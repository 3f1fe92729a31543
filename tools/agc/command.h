// Subcommands of `agc`: each takes the arguments after its name and returns the exit code: 0 done, 1 the answer is no,
// 2 an error, which it has printed.
#pragma once
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace agc::tool {

struct Command {
  absl::string_view name = {};
  absl::string_view summary = {};
  int (*run)(const std::vector<std::string>& args) = nullptr;
};

// The whole file; "-" is the standard input.
absl::StatusOr<std::string> ReadInput(const std::string& path);
// Prints the status' message on stderr, headed by "error: " where it has no such word yet; returns 2.
int Failed(const absl::Status& status);

int Bench(const std::vector<std::string>& args);
int Bisect(const std::vector<std::string>& args);
int Check(const std::vector<std::string>& args);
int Compile(const std::vector<std::string>& args);
int Devices(const std::vector<std::string>& args);
int Dump(const std::vector<std::string>& args);
int Eval(const std::vector<std::string>& args);
int Export(const std::vector<std::string>& args);
int Grad(const std::vector<std::string>& args);
int Ops(const std::vector<std::string>& args);
int Opt(const std::vector<std::string>& args);
int Passes(const std::vector<std::string>& args);
int Reduce(const std::vector<std::string>& args);
int RunModel(const std::vector<std::string>& args);

}  // namespace agc::tool
