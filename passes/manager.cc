#include "passes/manager.h"

#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/base/status.h"
#include "ir/text/text.h"
#include "ir/verify/verify.h"
#include "passes/registry.h"
#include "passes/reproducer.h"

namespace agc {
namespace {

absl::Status WriteFile(const std::string& path, absl::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return absl::InvalidArgumentError(absl::StrCat("cannot write ", path));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? absl::OkStatus()
                                           : absl::DataLossError(absl::StrCat("cannot write ", path));
}

// The names that run: from `start_at` to `stop_after`, both included.
absl::StatusOr<std::vector<std::string>> Selected(absl::Span<const std::string> names, const ManagerOptions& options) {
  const auto position = [&](const std::string& name, size_t fallback) -> absl::StatusOr<size_t> {
    if (name.empty()) return fallback;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return i;
    }
    return absl::InvalidArgumentError(absl::StrCat("pass ", name, " is not part of the pipeline"));
  };
  AGC_ASSIGN_OR_RETURN(const size_t first, position(options.start_at, 0));
  AGC_ASSIGN_OR_RETURN(const size_t last, position(options.stop_after, names.size() - 1));
  if (names.empty() || last < first) return std::vector<std::string>();
  return std::vector<std::string>(names.begin() + first, names.begin() + last + 1);
}

class Runner {
 public:
  Runner(Program& program, PassContext& context, const ManagerOptions& options)
      : program_(program), context_(context), options_(options), given_(program.stage) {}

  absl::Status Run(absl::Span<const PassDef* const> passes) {
    if (options_.verify) {
      AGC_RETURN_IF_ERROR(Verify(program_));  // what comes from outside is the user's, so the status is kept
    }
    AGC_RETURN_IF_ERROR(Dump("input"));
    for (const PassDef* pass : passes) AGC_RETURN_IF_ERROR(RunOne(*pass));
    return absl::OkStatus();
  }

 private:
  bool wants_text() const { return (options_.verify && options_.compare) || !options_.reproducer.empty(); }

  absl::Status RunOne(const PassDef& pass) {
    const std::string before = !wants_text() ? std::string() : text_.empty() ? Print(program_) : std::move(text_);
    text_.clear();
    const Program input = options_.check_equivalence ? Clone(program_) : Program();
    const Stage stage = program_.stage;
    const ReproducerScope scope(options_.reproducer, Reproducer(pass, before));
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<bool> result = pass.fn(program_, context_);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    if (options_.time) absl::FPrintF(options_.log, "%9.3f ms  %s\n", elapsed.count(), pass.name);
    if (!result.ok()) {
      const bool internal = result.status().code() == absl::StatusCode::kInternal;
      // What the checker refuses of a plan that came from outside is no fault of a pass.
      if (internal && pass.name == "check-plan" && given_ == Stage::kPlan)
        return absl::InvalidArgumentError(result.status().message());
      if (internal) return Broken(pass, before, result.status().message());
      return result.status();
    }
    program_.stage = pass.After(stage);
    const bool changed = *result || program_.stage != stage;
    if (options_.verify) AGC_RETURN_IF_ERROR(CheckResult(pass, before, changed));
    if (options_.check_equivalence && options_.equivalent != nullptr && changed) {
      const absl::Status same = options_.equivalent(input, program_);
      if (!same.ok())
        return Broken(pass, before, absl::StrCat("it changed what the program computes: ", same.message()),
                      absl::StatusCode::kAborted);
    }
    if (options_.print_changed && changed) {
      absl::FPrintF(options_.log, "// after %s\n%s", pass.name, Print(program_));
    }
    return Dump(pass.name);
  }

  absl::Status CheckResult(const PassDef& pass, absl::string_view before, bool changed) {
    if (const absl::Status s = Verify(program_); !s.ok()) {
      return Broken(pass, before, absl::StrCat("the result does not verify: ", s.message()));
    }
    for (const Kernel& kernel : program_.kernels) AGC_RETURN_IF_ERROR(VerifyLimits(kernel, context_.target));
    if (!options_.compare) return absl::OkStatus();
    text_ = Print(program_);
    const bool differs = text_ != before;
    if (differs && !changed) return Broken(pass, before, "it changed the program but reported no change");
    if (!differs && changed) return Broken(pass, before, "it reported a change but left the program as it was");
    return absl::OkStatus();
  }

  // The input of a pass as text, headed by the command that runs it again.
  std::string Reproducer(const PassDef& pass, absl::string_view before) const {
    return absl::StrCat("// agc opt --passes=", pass.name, options_.reproducer_flags.empty() ? "" : " ",
                        options_.reproducer_flags, " ", options_.reproducer, "\n", before);
  }

  // Aborted for the answer no of --check-equivalence, which is no failure of the check.
  absl::Status Broken(const PassDef& pass, absl::string_view before, absl::string_view why,
                      absl::StatusCode code = absl::StatusCode::kInternal) const {
    const absl::Status status(code, absl::StrCat("pass ", pass.name, ": ", why));
    if (options_.reproducer.empty()) return status;
    const absl::Status written = WriteFile(options_.reproducer, Reproducer(pass, before));
    if (!written.ok()) return WithNote(status, written.message());
    return WithNote(status, absl::StrCat("run again with: agc opt --passes=", pass.name,
                                         options_.reproducer_flags.empty() ? "" : " ", options_.reproducer_flags, " ",
                                         options_.reproducer));
  }

  absl::Status Dump(absl::string_view name) {
    if (options_.dump_dir.empty()) return absl::OkStatus();
    return WriteFile(absl::StrFormat("%s/%02d-%s.agir", options_.dump_dir, dumps_++, name), Print(program_));
  }

  Program& program_;
  PassContext& context_;
  const ManagerOptions& options_;
  const Stage given_;  // stage of the program that came in
  int dumps_ = 0;
  std::string text_ = {};  // of the program, where it is known
};

}  // namespace

absl::Status CheckChain(absl::Span<const std::string> names, Stage stage) {
  std::string from = "the module is at";
  for (const std::string& name : names) {
    const PassDef* pass = FindPass(name);
    if (pass == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("no pass is called ", name, "; `agc passes` lists them"));
    if ((pass->accepts & SetOf(stage)) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("pass ", name, " accepts stage ", ToString(pass->accepts),
                                                     ", but ", from, " stage ", Name(stage)));
    }
    if (pass->After(stage) != stage) from = absl::StrCat("pass ", name, " leaves");
    stage = pass->After(stage);
  }
  return absl::OkStatus();
}

absl::Status RunPipeline(Program& program, absl::Span<const std::string> names, PassContext& context,
                         const ManagerOptions& options) {
  AGC_ASSIGN_OR_RETURN(const std::vector<std::string> selected, Selected(names, options));
  AGC_RETURN_IF_ERROR(CheckChain(selected, program.stage));
  std::vector<const PassDef*> passes;
  for (const std::string& name : selected) passes.push_back(FindPass(name));
  return RunPasses(program, passes, context, options);
}

absl::Status RunPasses(Program& program, absl::Span<const PassDef* const> passes, PassContext& context,
                       const ManagerOptions& options) {
  if (options.rewrite_limit >= 0) context.rewrites_left = options.rewrite_limit;
  return Runner(program, context, options).Run(passes);
}

}  // namespace agc
