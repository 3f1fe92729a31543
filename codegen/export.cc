#include "codegen/export.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "spirv_cross/spirv_cross_c.h"

namespace agc {

absl::StatusOr<std::string> SpirvToGlsl(absl::Span<const uint32_t> words) {
  spvc_context context = nullptr;
  if (spvc_context_create(&context) != SPVC_SUCCESS) return absl::ResourceExhaustedError("out of memory");
  const std::unique_ptr<spvc_context_s, void (*)(spvc_context)> owner(context, spvc_context_destroy);
  spvc_parsed_ir parsed = nullptr;
  spvc_compiler compiler = nullptr;
  spvc_compiler_options options = nullptr;
  const char* text = nullptr;
  if (spvc_context_parse_spirv(context, words.data(), words.size(), &parsed) != SPVC_SUCCESS ||
      spvc_context_create_compiler(context, SPVC_BACKEND_GLSL, parsed, SPVC_CAPTURE_MODE_TAKE_OWNERSHIP, &compiler) !=
          SPVC_SUCCESS ||
      spvc_compiler_create_compiler_options(compiler, &options) != SPVC_SUCCESS ||
      spvc_compiler_options_set_uint(options, SPVC_COMPILER_OPTION_GLSL_VERSION, 460) != SPVC_SUCCESS ||
      spvc_compiler_options_set_bool(options, SPVC_COMPILER_OPTION_GLSL_VULKAN_SEMANTICS, SPVC_TRUE) != SPVC_SUCCESS ||
      spvc_compiler_install_compiler_options(compiler, options) != SPVC_SUCCESS ||
      spvc_compiler_compile(compiler, &text) != SPVC_SUCCESS) {
    return absl::UnimplementedError(
        absl::StrCat("SPIRV-Cross cannot write the module as GLSL: ", spvc_context_get_last_error_string(context)));
  }
  return std::string(text);
}

}  // namespace agc
