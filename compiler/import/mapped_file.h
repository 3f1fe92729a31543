// A file mapped for reading: weights of any size are looked at where they lie, and pages that nobody reads cost
// nothing.
//   AGC_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open("model.onnx"));
//   file.bytes();
#pragma once
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/import/wire.h"

namespace agc {

class MappedFile {
 public:
  // NotFound where it cannot be opened, InvalidArgument where it is no regular file. Copies share the mapping.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  ByteSpan bytes() const { return bytes_; }

 private:
  std::shared_ptr<const void> owner_ = {};
  ByteSpan bytes_ = {};
};

}  // namespace agc
