// NumPy's .npy files (format 1.0 to 3.0, little-endian, C order) as HostTensors. numpy has no bfloat16: a bf16 tensor
// is written as its bits in '<u2', and such a file is read as bf16 where the caller asks for that type.
//   AGC_ASSIGN_OR_RETURN(HostTensor x, ReadNpy("x.npy", TensorType{DType::kF32, {2, 3}}));
#pragma once
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/eval/tensor.h"

namespace agc {

// NotFound if the file cannot be opened, DataLoss if it is no .npy file or too short, Unimplemented for big-endian,
// Fortran-ordered or structured arrays, InvalidArgument if it has not the type asked for.
absl::StatusOr<HostTensor> ReadNpy(const std::string& path, const std::optional<TensorType>& expected = std::nullopt);
absl::Status WriteNpy(const std::string& path, const HostTensor& tensor);

}  // namespace agc
