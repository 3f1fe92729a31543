// agc compile MODEL -o MODEL.agb: a module in text, or an ONNX model, to a bundle.
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "compiler/agc.h"
#include "ir/base/status.h"
#include "tools/agc/command.h"
#include "tools/agc/model.h"

namespace agc::tool {
namespace {

Usage CompileUsage() {
  return {.command = "compile",
          .summary =
              "compiles a module in text or an ONNX model to a bundle, which any Vulkan device runs that meets its "
              "requirements",
          .operand = "MODEL.agir|MODEL.onnx",
          .options = Join({{{"o", "FILE", "the bundle; default: MODEL.agb beside the module"}},
                           ImportTable(),
                           {{"input", "NAME=FILE", "a value whose shape binds the dimensions of an ONNX model"}},
                           TargetTable(),
                           CompileTable(),
                           {{"strip", "", "leave GLSL and module text out of the bundle"},
                            {"explain", "", "print the passes' remarks on stderr: what was not done, and why"},
                            {"time", "", "print milliseconds per pass on stderr"},
                            {"dump-dir", "DIR", "write the module after every pass to DIR/<number>-<pass>.agir"}},
                           DeviceTable()}),
          .example = "agc compile mlp.agir -o mlp.agb --explain"};
}

absl::Status MakeDirectory(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--dump-dir: cannot make ", dir, ": ", error.message()));
}

absl::StatusOr<int> Run(const Flags& flags) {
  AGC_ASSIGN_OR_RETURN(const Model model, ReadModel(flags));
  if (model.is_bundle) {
    return absl::InvalidArgumentError(absl::StrCat(model.path, " is a bundle, a module in text is expected"));
  }
  if (flags.operand() == "-" && !flags.Has("o")) {
    return absl::InvalidArgumentError("say with -o where the bundle goes: the module has no file name");
  }
  CompileOptions options = CompileOptionsOf(flags);
  std::vector<std::string> remarks;
  options.strip = flags.Has("strip");
  options.time = flags.Has("time");
  options.dump_dir = flags.Text("dump-dir");
  options.remarks = &remarks;
  if (!options.dump_dir.empty()) AGC_RETURN_IF_ERROR(MakeDirectory(options.dump_dir));
  AGC_ASSIGN_OR_RETURN(const Target target, TargetOf(flags));
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileModel(model, target, options));
  for (size_t i = 0; flags.Has("explain") && i < remarks.size(); ++i) {
    std::fprintf(stderr, "remark: %s\n", remarks[i].c_str());
  }
  const std::string beside = std::filesystem::path(flags.operand()).replace_extension(".agb").string();
  const std::string path = flags.Text("o", beside);
  std::error_code none;
  if (std::filesystem::equivalent(path, flags.operand(), none)) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o ", path, " is the module itself, which the bundle would replace"));
  }
  AGC_RETURN_IF_ERROR(WriteBundleFile(path, content));
  return 0;
}

}  // namespace

int Compile(const std::vector<std::string>& args) { return RunCommand(CompileUsage(), args, Run); }

}  // namespace agc::tool
