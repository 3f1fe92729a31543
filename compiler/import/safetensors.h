// Weights from safetensors files: 8 bytes with the length of a JSON header, the header ({"name": {"dtype": "F32",
// "shape": [2, 3], "data_offsets": [0, 24]}, ...}), then the bytes. The file is mapped, nothing is copied.
//   AGC_ASSIGN_OR_RETURN(const std::vector<Weight> weights, ReadSafetensors("mlp.safetensors", {{"fc.weight",
//   "fc.w"}})); AGC_ASSIGN_OR_RETURN(bundle, WithWeights(std::move(bundle), weights));
#pragma once
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/import/mapped_file.h"
#include "compiler/import/weights.h"

namespace agc {

// `names`: what tensors of the file are called in the module; a key that ends in '*' maps all names that begin so, by
// their heads. Errors: NotFound for a file that is not there, DataLoss for a broken one, Unimplemented for element
// types that the type system lacks, InvalidArgument for a key of `names` that no tensor has.
absl::StatusOr<std::vector<Weight>> ReadSafetensors(const std::string& path,
                                                    const std::map<std::string, std::string>& names = {});
// The same of bytes, which must outlive the weights.
absl::StatusOr<std::vector<Weight>> ParseSafetensors(ByteSpan bytes,
                                                     const std::map<std::string, std::string>& names = {});

}  // namespace agc
