#include "codegen/spirv.h"

#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>

#include <algorithm>
#include <mutex>
#include <spirv-tools/libspirv.hpp>
#include <spirv-tools/optimizer.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "codegen/spirv_contraction.h"
#include "ir/base/status.h"

namespace agc {
namespace {

constexpr spv_target_env kEnv = SPV_ENV_VULKAN_1_2;

// glslang counts its users, so it stays initialised until the process ends.
void StartGlslang() {
  static std::once_flag once;
  std::call_once(once, [] { glslang::InitializeProcess(); });
}

// The number after the first "ERROR: <string>:" of a glslang log, or 0.
size_t FirstErrorLine(absl::string_view log) {
  for (absl::string_view line : absl::StrSplit(log, '\n')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(line, ':');
    size_t number = 0;
    if (parts.size() > 3 && parts[0] == "ERROR" && absl::SimpleAtoi(parts[2], &number) && number > 0) return number;
  }
  return 0;
}

absl::Status GlslError(absl::string_view glsl, absl::string_view kernel_name, absl::string_view log) {
  std::string message = absl::StrCat("kernel ", kernel_name, ": the generated GLSL does not compile");
  for (absl::string_view line : absl::StrSplit(log, '\n', absl::SkipWhitespace())) {
    if (!absl::StartsWith(line, "Linked")) absl::StrAppend(&message, "\n  ", absl::StripAsciiWhitespace(line));
  }
  const size_t number = FirstErrorLine(log);
  const std::vector<absl::string_view> lines = absl::StrSplit(glsl, '\n');
  if (number > 0 && number <= lines.size()) absl::StrAppend(&message, "\n  line ", number, ": ", lines[number - 1]);
  return absl::InternalError(message);
}

absl::StatusOr<std::vector<uint32_t>> FrontEnd(absl::string_view glsl, absl::string_view kernel_name, bool debug) {
  StartGlslang();
  glslang::TShader shader(EShLangCompute);
  const char* text = glsl.data();
  const int length = static_cast<int>(glsl.size());
  const char* name = "kernel";
  shader.setStringsWithLengthsAndNames(&text, &length, &name, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  const auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  if (!shader.parse(GetDefaultResources(), 450, false, messages)) {
    return GlslError(glsl, kernel_name, shader.getInfoLog());
  }
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(messages)) return GlslError(glsl, kernel_name, program.getInfoLog());
  const glslang::TIntermediate* tree = program.getIntermediate(EShLangCompute);
  if (tree == nullptr) return GlslError(glsl, kernel_name, "ERROR: no compute stage");
  glslang::SpvOptions options;
  options.generateDebugInfo = debug;
  options.disableOptimizer = true;
  options.validate = false;
  std::vector<uint32_t> words;
  spv::SpvBuildLogger logger;
  glslang::GlslangToSpv(*tree, words, &logger, &options);
  if (words.empty()) return GlslError(glsl, kernel_name, absl::StrCat("ERROR: ", logger.getAllMessages()));
  return words;
}

spvtools::MessageConsumer AppendTo(std::string* log) {
  return [log](spv_message_level_t level, const char*, const spv_position_t& position, const char* message) {
    if (level <= SPV_MSG_ERROR)
      absl::StrAppend(log, log->empty() ? "" : "\n  ", "word ", position.index, ": ", message);
  };
}

void RegisterPasses(spvtools::Optimizer& optimizer, int level) {
  // The interface stays: every parameter of the kernel keeps its binding, used or not.
  if (level >= 2) {
    optimizer.RegisterPerformancePasses();
  } else if (level == 1) {
    optimizer.RegisterPass(spvtools::CreateInlineExhaustivePass())
        .RegisterPass(spvtools::CreateEliminateDeadFunctionsPass())
        .RegisterPass(spvtools::CreateLocalSingleBlockLoadStoreElimPass())
        .RegisterPass(spvtools::CreateLocalSingleStoreElimPass())
        .RegisterPass(spvtools::CreateLocalMultiStoreElimPass())
        .RegisterPass(spvtools::CreateAggressiveDCEPass(/*preserve_interface=*/true))
        .RegisterPass(spvtools::CreateSimplificationPass())
        .RegisterPass(spvtools::CreateRedundancyEliminationPass())
        .RegisterPass(spvtools::CreateAggressiveDCEPass(/*preserve_interface=*/true));
  }
}

absl::StatusOr<std::vector<uint32_t>> Optimize(std::vector<uint32_t> words, absl::string_view kernel_name,
                                               const SpirvOptions& options) {
  std::string log;
  spvtools::Optimizer optimizer(kEnv);
  optimizer.SetMessageConsumer(AppendTo(&log));
  RegisterPasses(optimizer, words.size() > kMaxOptimizedWords ? 0 : options.optimize);
  if (!options.debug) optimizer.RegisterPass(spvtools::CreateStripDebugInfoPass());
  optimizer.RegisterPass(spvtools::CreateCompactIdsPass());
  spvtools::OptimizerOptions run;
  run.set_run_validator(false);  // ValidateSpirv does, with the layout rules that the kernels use
  run.set_preserve_bindings(true);
  std::vector<uint32_t> optimized;
  if (!optimizer.Run(words.data(), words.size(), &optimized, run)) {
    return absl::InternalError(absl::StrCat("kernel ", kernel_name, ": the SPIR-V optimiser failed\n  ", log));
  }
  return optimized;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> CompileGlsl(absl::string_view glsl, absl::string_view kernel_name,
                                                  const SpirvOptions& options) {
  AGC_ASSIGN_OR_RETURN(std::vector<uint32_t> words, FrontEnd(glsl, kernel_name, options.debug));
  if (options.precise) words = ForbidContraction(std::move(words));
  AGC_ASSIGN_OR_RETURN(words, Optimize(std::move(words), kernel_name, options));
  if (options.precise) words = ForbidContraction(std::move(words));  // copies that unrolling made
  AGC_RETURN_IF_ERROR(ValidateSpirv(words, kernel_name));
  return words;
}

absl::Status ValidateSpirv(absl::Span<const uint32_t> words, absl::string_view kernel_name) {
  std::string log;
  spvtools::SpirvTools tools(kEnv);
  tools.SetMessageConsumer(AppendTo(&log));
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);
  options.SetWorkgroupScalarBlockLayout(true);
  if (tools.Validate(words.data(), words.size(), options)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("kernel ", kernel_name, ": the SPIR-V is not valid\n  ", log));
}

std::string DisassembleSpirv(absl::Span<const uint32_t> words) {
  std::string log, text;
  spvtools::SpirvTools tools(kEnv);
  tools.SetMessageConsumer(AppendTo(&log));
  const uint32_t options =
      SPV_BINARY_TO_TEXT_OPTION_NO_HEADER | SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES;
  if (!tools.Disassemble(words.data(), words.size(), &text, options)) {
    return absl::StrCat("; not a SPIR-V module: ", log, "\n");
  }
  return text;
}

}  // namespace agc
