#include "compiler/agc.h"

#include "absl/strings/str_cat.h"
#include "codegen/bundle_writer.h"
#include "ir/base/file.h"

namespace agc {

absl::Status AsStatus(const rt::Status& status) {
  static constexpr absl::StatusCode kCodes[] = {absl::StatusCode::kOk,
                                                absl::StatusCode::kInvalidArgument,
                                                absl::StatusCode::kNotFound,
                                                absl::StatusCode::kUnimplemented,
                                                absl::StatusCode::kResourceExhausted,
                                                absl::StatusCode::kDataLoss,
                                                absl::StatusCode::kFailedPrecondition,
                                                absl::StatusCode::kInternal};
  return status.ok() ? absl::OkStatus() : absl::Status(kCodes[static_cast<int>(status.code())], status.message());
}

Bundle::Bundle(rt::Bundle content) : content_(std::move(content)), bytes_(WriteBundle(content_)) {}

absl::Status Bundle::WriteFile(const std::string& path) const {
  return agc::WriteFile(path, {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()});
}

absl::Status WriteBundleFile(const std::string& path, const rt::Bundle& content) {
  const BundlePieces all = PiecesOf(content);
  static constexpr char kPadding[rt::kBundleAlignment] = {};
  std::vector<absl::string_view> pieces = {{reinterpret_cast<const char*>(all.head.data()), all.head.size()}};
  uint64_t at = all.head.size();
  for (const BundlePieces::Segment& s : all.segments) {
    pieces.emplace_back(kPadding, s.at - at);
    pieces.emplace_back(reinterpret_cast<const char*>(s.bytes.data()), s.bytes.size());
    at = s.at + s.bytes.size();
  }
  return agc::WriteFile(path, pieces);
}

absl::StatusOr<Bundle> Compile(const Module& module, absl::string_view target, CompileOptions options) {
  AGC_RETURN_IF_ERROR(module.status());
  AGC_ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
  AGC_ASSIGN_OR_RETURN(rt::Bundle content, CompileProgram(Clone(module.program()), parsed, options));
  return Bundle(std::move(content));
}

}  // namespace agc
