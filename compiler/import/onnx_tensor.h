// Values of TensorProtos as bytes in host-visible form, where they lie if the file has them so.
//   ExternalFiles files(model.directory);
//   AGC_ASSIGN_OR_RETURN(const TensorView w, ViewOf(proto, files));
#pragma once
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/import/onnx_model.h"

namespace agc::onnx {

struct TensorView {
  TensorType type = {};
  ByteSpan bytes = {};                     // type.bytes() of them
  std::shared_ptr<const void> owner = {};  // keeps what is not in the model's own file
  HostTensor ToHost() const { return {type, {bytes.begin(), bytes.end()}}; }
};

// Files beside the model with the bytes of large tensors, each mapped once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}
  // InvalidArgument for a place outside the directory, NotFound for a file that is not there.
  absl::StatusOr<MappedFile> Open(const std::string& location);

 private:
  std::string directory_ = {};
  std::map<std::string, MappedFile> files_ = {};
};

// Errors name the tensor: Unimplemented for element types that the type system lacks, InvalidArgument for elements that
// are not as many as the shape says.
absl::StatusOr<TensorView> ViewOf(const TensorProto& proto, ExternalFiles& files);
TensorView ViewOf(HostTensor tensor);  // owns it

// The number of elements, unless an extent is negative or there are more than 2^40.
absl::StatusOr<int64_t> ElementsOf(absl::Span<const int64_t> dims);

}  // namespace agc::onnx
